// How many requests a node gets at once where its engine decides: as many as it can run without leaving many waiting.
// A decider: loads in, a number out.
//
//   more waits in the engine than a batch takes in with its next steps, twice in a row  -> our share of what it runs
//   the same while it reads our prompts, which it does a few at a time in any case      -> as if nothing waited
//   its cache is nearly full, so it would preempt requests                              -> an eighth less, once that is reached
//   hardly anything waits, its cache has room, and all slots are in use                 -> more, in growing steps
//   the same, and the only free slots are those that bulk leaves to others               -> the same, until it has queued
//
// The numbers include other users of the engine. Each gateway reduces its slots by its share of the load, so the one with the
// most gives up the most to a newcomer.
import { nodeSlotsMax } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";
import type { EngineLoad } from "../engine-load.ts";

/** Slots to begin with where the engine does not report its concurrency; an engine with fewer is known by its second answer. */
export const autoSlotsStart = 16;
/** Share of the engine's cache, from 0 to 1: vLLM preempts requests when it is full, and each token of theirs fills it. */
const autoSlotsCacheFull = 0.95;
const autoSlotsCacheRoom = 0.85;
/** A request that waits longer than this while prompts are read waits for the reading, not for a slot. */
const autoSlotsReadingMs = 100;
/** The step doubles after this many growths. */
const autoSlotsGrowthsOfStep = 2;

export class AutoSlots {
  #slots: number;
  #elsewhere = 0;
  readonly #most: number;
  #step: number;
  #growths = 0;
  #queued = false;
  /** It has shown how many it runs: what bulk leaves free there is free. */
  #isKnown = false;

  /** `requestsMax`: how many requests the engine reports to run at once; null where it does not report it. */
  constructor(requestsMax: number | null) {
    this.#most = Math.min(requestsMax ?? nodeSlotsMax, nodeSlotsMax);
    this.#slots = Math.min(requestsMax ?? autoSlotsStart, this.#most);
    this.#step = this.#slots;
  }

  get slots(): number {
    return this.#slots;
  }

  /** Requests that the engine has from others. */
  get elsewhere(): number {
    return this.#elsewhere;
  }

  /** `busy`: our requests there. `unreadMs`: how long it is expected to read their prompts. `kept`: slots that bulk leaves. */
  take({ running, waiting, cacheUse }: EngineLoad, busy: number, unreadMs: Ms = 0, kept = 0): void {
    const hasCacheRoom = (cacheUse ?? 0) < autoSlotsCacheRoom;
    const isReading = unreadMs > autoSlotsReadingMs && hasCacheRoom;
    const total = Math.max(running + waiting, busy);
    this.#elsewhere = total - busy;
    const wasQueued = this.#queued;
    // Arrivals since the engine's last step wait for the next one: with many requests there are always some.
    this.#queued = !isReading && waiting > Math.max(1, running >> 3);
    if (this.#queued) {
      if (wasQueued && busy > 0) this.#shrink(busy - Math.ceil((waiting * busy) / total));
    } else if (cacheUse !== null && cacheUse >= autoSlotsCacheFull) {
      if (busy > 0 && busy <= this.#slots) this.#shrink(busy - Math.max(1, busy >> 3));
    } else if ((isReading || waiting <= running >> 4) && hasCacheRoom) {
      if (busy >= this.#slots) this.#isKnown = false;
      if (busy + (this.#isKnown ? 0 : kept) >= this.#slots) this.#grow();
    }
  }

  forgetOthers(): void {
    this.#elsewhere = 0;
    this.#queued = this.#isKnown = false;
  }

  #shrink(slots: number): void {
    this.#slots = Math.max(1, Math.min(this.#slots, slots));
    this.#step = 1;
    this.#growths = 0;
    this.#isKnown = true;
  }

  #grow(): void {
    this.#slots = Math.min(this.#most, this.#slots + this.#step);
    this.#growths += 1;
    if (this.#growths % autoSlotsGrowthsOfStep === 0) this.#step = Math.min(2 * this.#step, this.#slots);
  }
}
