// Notices on their way: one POST at a time for each webhook, repeated after growing pauses, and given up after some
// hours. Everything is in memory and bounded, and is lost when the process ends.
import type { WebhookConfig } from "../config/webhooks.ts";
import type { Clock } from "../core/clock.ts";
import { hourMs } from "../core/units.ts";
import type { Log } from "../core/log.ts";
import type { Notice } from "../core/notice.ts";
import type { Ms } from "../core/types.ts";

/** Waiting notices of one webhook; further ones are given up. */
export const noticesWaitingMax = 100;
/** Pauses after each failed attempt: 3.7 hours in all. */
export const webhookRetriesMs: readonly number[] = [
  5_000,
  30_000,
  2 * 60_000,
  10 * 60_000,
  30 * 60_000,
  hourMs,
  2 * hourMs,
];

/** Null where it was accepted; otherwise the reason. */
export type Post = (webhook: WebhookConfig, notice: Notice, now: Ms) => Promise<string | null>;

/** A webhook's state for operators. Counts are for this process. */
export type WebhookState = Readonly<{
  config: WebhookConfig;
  sent: number;
  failed: number;
  dropped: number;
  waiting: number;
  lastSentAt: Ms | null;
  /** Why the last attempt failed; null where it did not. */
  problem: string | null;
}>;

type Parts = Readonly<{ post: Post; clock: Clock; log: Log }>;

export class Deliveries {
  readonly #parts: Parts;
  #targets = new Map<string, Target>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Replaces the webhooks. Waiting notices follow a webhook's name to its new address. */
  configure(webhooks: readonly WebhookConfig[]): void {
    const before = this.#targets;
    this.#targets = new Map(
      webhooks.map((config) => {
        const target = before.get(config.name) ?? new Target(config, this.#parts);
        before.delete(config.name);
        target.config = config;
        return [config.name, target];
      }),
    );
    for (const gone of before.values()) gone.close();
  }

  get isEmpty(): boolean {
    return this.#targets.size === 0;
  }

  /** Returns at once. */
  tell(notice: Notice): void {
    for (const target of this.#targets.values()) {
      if (notice.event !== "test" && target.config.events.includes(notice.event)) target.add(notice);
    }
  }

  states(): readonly WebhookState[] {
    return [...this.#targets.values()].map((target) => target.state);
  }

  /** Returns how many were on their way. */
  close(): number {
    return [...this.#targets.values()].reduce((sum, target) => sum + target.close(), 0);
  }
}

type Delivery = { readonly notice: Notice; tries: number; nextAt: Ms };

class Target {
  config: WebhookConfig;
  readonly #parts: Parts;
  #waiting: Delivery[] = [];
  #posting = false;
  #timer: Timer | null = null;
  #closed = false;
  #sent = 0;
  #failed = 0;
  #dropped = 0;
  #lastSentAt: Ms | null = null;
  #problem: string | null = null;

  constructor(config: WebhookConfig, parts: Parts) {
    this.config = config;
    this.#parts = parts;
  }

  get state(): WebhookState {
    return {
      config: this.config,
      sent: this.#sent,
      failed: this.#failed,
      dropped: this.#dropped,
      waiting: this.#waiting.length,
      lastSentAt: this.#lastSentAt,
      problem: this.#problem,
    };
  }

  add(notice: Notice): void {
    if (this.#waiting.length >= noticesWaitingMax) return this.#drop(notice, `${noticesWaitingMax} others wait`);
    this.#waiting.push({ notice, tries: 0, nextAt: this.#parts.clock.monotonic() });
    this.#look();
  }

  close(): number {
    this.#closed = true;
    this.#disarm();
    return this.#waiting.length;
  }

  /** The longest due goes first, so that a notice that its receiver rejects delays no other. */
  #look(): void {
    if (this.#posting || this.#closed) return;
    this.#disarm();
    let next: Delivery | null = null;
    for (const delivery of this.#waiting) if (next === null || delivery.nextAt < next.nextAt) next = delivery;
    if (next === null) return;
    const delayMs = next.nextAt - this.#parts.clock.monotonic();
    if (delayMs <= 0) return void this.#post(next);
    this.#timer = setTimeout(() => this.#look(), delayMs);
    this.#timer.unref();
  }

  async #post(delivery: Delivery): Promise<void> {
    const { post, clock, log } = this.#parts;
    const { notice } = delivery;
    this.#posting = true;
    const problem = await post(this.config, notice, clock.wall());
    this.#posting = false;
    if (problem === null) {
      this.#sent += 1;
      this.#lastSentAt = clock.wall();
      this.#forget(delivery);
    } else {
      this.#failed += 1;
      const pauseMs = webhookRetriesMs[delivery.tries];
      delivery.tries += 1;
      if (delivery.tries === 1) {
        log("warn", "a notice was not accepted", { webhook: this.config.name, notice: notice.event, reason: problem });
      }
      if (pauseMs === undefined) {
        this.#forget(delivery);
        this.#drop(notice, `${delivery.tries} tries failed: ${problem}`);
      } else delivery.nextAt = clock.monotonic() + pauseMs;
    }
    this.#problem = problem;
    this.#look();
  }

  #forget(delivery: Delivery): void {
    this.#waiting = this.#waiting.filter((other) => other !== delivery);
  }

  #drop({ event }: Notice, reason: string): void {
    this.#dropped += 1;
    this.#parts.log("error", "a notice was given up", { webhook: this.config.name, notice: event, reason });
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
