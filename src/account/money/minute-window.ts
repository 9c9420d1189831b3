// How many requests and tokens a plan or a key may have in a minute. A decider.
//
// The window slides: in no 60 s there are more. A request counts when it is admitted, with the input that it is expected to
// read and the output that it reserves, cached or not; of an open budget that is what it begins with. Its end corrects that:
// what it did not use is free again at once, and what it used beyond counts from then on. One that is refused, for whatever,
// counts nothing. One that is larger than the limit is admitted where nothing else counts.
//
// Requests of one second share a slot, which leaves the window 60 s after its last request: 60 slots at most.
import type { Ms } from "../../core/types.ts";
import type { RateLeft, RatesLeft } from "../../core/rates-left.ts";

export const windowMs = 60_000;
const slotMs = 1_000;

/** `at`: of its last request. */
type Slot = { at: Ms; requests: number; tokens: number };

/** The time of each slot, its requests and its tokens. */
export type WrittenSlots = readonly (readonly [Ms, number, number])[];

export class MinuteWindow {
  requestsMax: number | null = null;
  tokensMax: number | null = null;
  readonly #slots: Slot[];

  constructor(slots: Slot[] = []) {
    this.#slots = slots;
  }

  /** As `slots` gave them; where the clock stepped back since, what has elapsed counts. */
  static of(slots: WrittenSlots, now: Ms): MinuteWindow {
    const ahead = Math.max(0, (slots.at(-1)?.[0] ?? now) - now);
    return new MinuteWindow(slots.map(([at, requests, tokens]) => ({ at: at - ahead, requests, tokens })));
  }

  get slots(): WrittenSlots {
    return this.#slots.map(({ at, requests, tokens }) => [at, requests, tokens]);
  }

  /** Until a request of that many tokens may be admitted; 0: now. */
  waitMs(tokens: number, now: Ms): Ms {
    while (this.#slots.length > 0 && this.#slots[0]!.at + windowMs <= now) this.#slots.shift();
    let requests = (this.requestsMax ?? Infinity) - 1;
    let left = (this.tokensMax ?? Infinity) - Math.min(tokens, this.tokensMax ?? Infinity);
    for (const slot of this.#slots) {
      requests -= slot.requests;
      left -= slot.tokens;
    }
    let wait = 0;
    for (const slot of this.#slots) {
      if (requests >= 0 && left >= 0) break;
      requests += slot.requests;
      left += slot.tokens;
      wait = windowMs - (now - slot.at);
    }
    return wait;
  }

  /** Nothing counts anymore. */
  isOver(now: Ms): boolean {
    return (this.#slots.at(-1)?.at ?? -Infinity) + windowMs <= now;
  }

  /** Counts an admitted request. */
  count(tokens: number, now: Ms): void {
    const last = this.#slots.at(-1);
    if (last === undefined || slotOf(last.at) !== slotOf(now)) {
      this.#slots.push({ at: now, requests: 1, tokens });
    } else {
      last.at = Math.max(last.at, now);
      last.requests += 1;
      last.tokens += tokens;
    }
  }

  /** A request that counted `counted` tokens at a time used `used`. */
  correct(counted: number, countedAt: Ms, used: number, now: Ms): void {
    if (used === counted) return;
    const isMore = used > counted;
    const slot = this.#slots.findLast(({ at }) => slotOf(at) === slotOf(isMore ? now : countedAt));
    if (slot !== undefined) slot.tokens = Math.max(0, slot.tokens + used - counted);
    else if (isMore)
      this.#slots.push({ at: Math.max(now, this.#slots.at(-1)?.at ?? now), requests: 0, tokens: used - counted });
  }

  rates(now: Ms): Omit<RatesLeft, "at"> {
    let [requests, tokens, resetMs] = [0, 0, 0];
    for (const slot of this.#slots) {
      if (slot.at + windowMs <= now) continue;
      requests += slot.requests;
      tokens += slot.tokens;
      resetMs = windowMs - (now - slot.at);
    }
    return { requests: left(this.requestsMax, requests, resetMs), tokens: left(this.tokensMax, tokens, resetMs) };
  }
}

const slotOf = (at: Ms): number => Math.floor(at / slotMs);

const left = (limit: number | null, used: number, resetMs: Ms): RateLeft | null =>
  limit === null ? null : { limit, remaining: Math.max(0, limit - used), resetMs };
