// A node that the gateway starts itself: started, watched, restarted when it ends or falls silent, and ended with the
// gateway.
//
//   start -> answers within its time -> watched -> silent too long  -> ended, and restarted after a pause
//         -> ends, or does not answer in time                       -> the same
//
// The pause doubles with each failure and is short again once the node has answered for a while.
import { logLines } from "../../core/child-log.ts";
import type { Clock } from "../../core/clock.ts";
import type { ManagedNodeConfig } from "../../config/config.ts";
import { nodeConnectTimeoutMs } from "../../core/limits.ts";
import { nodeProbeIntervalMs, nodeProbeTimeoutMs } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { NodeClient } from "../client/client.ts";
import { originOf } from "../client/dial.ts";
import { get, isReply } from "../client/get.ts";
import { type GuardedChild, startGuarded } from "./guarded-child.ts";

/** A node that has answered before and then is silent for this long is restarted. */
const managedSilenceMs = 2 * 60_000;
const managedStopGraceMs = 10_000;
const managedRestartMinMs = 1_000;
const managedRestartMaxMs = 60_000;
/** A node that has answered for this long is restarted without the pauses of earlier failures. */
const managedSettledMs = 60_000;

assert(managedRestartMinMs < managedRestartMaxMs, "waits before a program's restart grow");

export type ManagedNodeParts = Readonly<{
  clock: Clock;
  log: Log;
  /** Variables for the program beside its own `env`; read at each start. */
  environment(): Readonly<Record<string, string>>;
  limits?: Partial<ManagedLimits>;
}>;

export type ManagedLimits = Readonly<{
  probeIntervalMs: Ms;
  silenceMs: Ms;
  stopGraceMs: Ms;
  restartMinMs: Ms;
  restartMaxMs: Ms;
  settledMs: Ms;
}>;

const defaultLimits: ManagedLimits = {
  probeIntervalMs: nodeProbeIntervalMs,
  silenceMs: managedSilenceMs,
  stopGraceMs: managedStopGraceMs,
  restartMinMs: managedRestartMinMs,
  restartMaxMs: managedRestartMaxMs,
  settledMs: managedSettledMs,
};

/** While it starts, so that a small model is available at once. */
const startProbeMs = 250;

export class ManagedNode {
  /** May be replaced while it runs; changes of the program itself apply at the next start. */
  config: ManagedNodeConfig;
  readonly #parts: ManagedNodeParts;
  readonly #limits: ManagedLimits;
  readonly #closing = Promise.withResolvers<string>();
  readonly #over: Promise<void>;
  #closed = false;
  /** When it began to answer since its last start; null before that. */
  #answeredSince: Ms | null = null;
  #arrival = Promise.withResolvers<void>();

  /** Starts it once `before` has settled, or at once where that is null. Does not wait until it answers. */
  constructor(config: ManagedNodeConfig, parts: ManagedNodeParts, before: Promise<unknown> | null = null) {
    this.config = config;
    this.#parts = parts;
    this.#limits = { ...defaultLimits, ...parts.limits };
    this.#over = this.#run(before);
  }

  /** Settles when it answers; null where it already does. */
  get arrival(): Promise<void> | null {
    return this.#answeredSince === null ? this.#arrival.promise : null;
  }

  /** Ends it: SIGTERM, then SIGKILL after the grace. Resolves when it is gone. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.resolve("stopped");
    await this.#over;
  }

  async #run(before: Promise<unknown> | null): Promise<void> {
    const { clock, log } = this.#parts;
    const { restartMinMs, restartMaxMs, settledMs } = this.#limits;
    if (before !== null) await Promise.race([before, this.#closing.promise]);
    let pauseMs = restartMinMs;
    while (!this.#closed) {
      const child = this.#start();
      const life = new AbortController();
      const reason = await Promise.race([child.ended, this.#watch(life.signal), this.#closing.promise]);
      const settled = this.#answeredSince !== null && clock.monotonic() - this.#answeredSince >= settledMs;
      life.abort();
      this.#answeredSince = null;
      child.end();
      const end = await child.ended;
      if (this.#closed) return;
      if (settled) pauseMs = restartMinMs;
      log("error", "a managed node failed and is being restarted", {
        node: this.config.name,
        reason: reason === end ? end : `${reason}; then ${end}`,
        seconds: pauseMs / 1000,
      });
      await this.#rest(pauseMs);
      pauseMs = Math.min(2 * pauseMs, restartMaxMs);
    }
  }

  #start(): GuardedChild {
    const { name: node, managed } = this.config;
    const { log, environment } = this.#parts;
    const child = startGuarded({
      command: managed.command,
      environment: { ...forOthers(environment()), ...managed.environment },
      folder: managed.folder,
      graceMs: this.#limits.stopGraceMs,
    });
    const lines = { says: "a node says", saidMore: "a node said more", fields: { node } };
    for (const stream of child.output) logLines(stream, lines, log);
    log("info", "a node is started", { node, pid: child.pid ?? null });
    return child;
  }

  /** Resolves with the reason for a restart; pending while it is healthy. */
  async #watch(over: AbortSignal): Promise<string> {
    const { clock, log } = this.#parts;
    const { probeIntervalMs, silenceMs } = this.#limits;
    let heardAt = clock.monotonic();
    for (;;) {
      await this.#rest(this.#answeredSince === null ? startProbeMs : probeIntervalMs);
      if (over.aborted) return "over";
      const answers = await this.#answers();
      if (over.aborted) return "over";
      const now = clock.monotonic();
      const { name: node, managed } = this.config;
      if (answers && this.#answeredSince === null) {
        this.#answeredSince = now;
        this.#arrival.resolve();
        this.#arrival = Promise.withResolvers();
        log("info", "a node answers", { node });
      }
      if (answers) heardAt = now;
      else if (this.#answeredSince === null && now - heardAt > managed.startTimeoutMs) {
        return `it did not answer within ${managed.startTimeoutMs / 1000} s`;
      } else if (this.#answeredSince !== null && now - heardAt > silenceMs) {
        return `it has not answered for ${Math.round((now - heardAt) / 1000)} s`;
      }
    }
  }

  async #answers(): Promise<boolean> {
    const { url, apiKey } = this.config;
    const address = new URL(url);
    const client = new NodeClient(originOf(address), {
      clock: this.#parts.clock,
      connectTimeoutMs: nodeConnectTimeoutMs,
    });
    const answer = await get(client, `${address.pathname.replace(/\/+$/, "")}/models`, apiKey, nodeProbeTimeoutMs);
    client.close();
    return isReply(answer) && answer.status < 500;
  }

  async #rest(pauseMs: Ms): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, pauseMs);
    await Promise.race([promise, this.#closing.promise]);
    clearTimeout(timer);
  }
}

/** Without the settings of this program's own engine and allocator, which other programs may obey or fail on. */
const forOthers = (environment: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !/^(?:BUN_JSC|MIMALLOC)_/.test(name)));
