// The office where the books are in memory beside SQLite: one unit at a time, each on what the one before it committed. Reads
// are there at once, so that a unit is decided within one turn of the event loop, and what others wait for is its commit.
import { assert } from "../core/assert.ts";
import type { Clock } from "../core/clock.ts";
import { type Ms, StoreUnavailable } from "../core/types.ts";
import { Draft } from "./draft.ts";
import type { UnitJournal } from "./journal.ts";
import { type Office, type Unit, unitOf, type UnitParts } from "./office.ts";
import type { OfficeMemory } from "./office-memory.ts";

/** A unit waits this long for those before it: as long as a disk that takes no writes lets the first one wait. */
const queuedMaxMs: Ms = 10_000;

type Parts = Omit<UnitParts, "standings"> & Readonly<{ memory: OfficeMemory; journal: UnitJournal; clock: Clock }>;

export class QueuedOffice implements Office {
  readonly #parts: UnitParts & Parts;
  /** Resolves when the last unit in line has ended. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = { ...parts, standings: parts.memory };
  }

  async change<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result> {
    const { clock } = this.#parts;
    const cameAt = clock.monotonic();
    const before = this.#last;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last = ended;
    await before;
    try {
      if (clock.monotonic() - cameAt >= queuedMaxMs) throw new StoreUnavailable("the disk takes no writes");
      return await this.#commit(work);
    } finally {
      end();
    }
  }

  async read<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result> {
    const draft = new Draft();
    const result = await work(unitOf(this.#parts, draft, this.#parts.clock.wall()));
    assert(draft.isEmpty, "what reads alone changes nothing");
    return result;
  }

  async idle(): Promise<void> {
    await this.#last;
  }

  async #commit<Result>(work: (unit: Unit) => Promise<Result>): Promise<Result> {
    const { memory, journal, clock } = this.#parts;
    const draft = new Draft();
    const result = await inThisTurn(work(unitOf(this.#parts, draft, clock.wall())));
    if (draft.isEmpty) return result;
    memory.decided(draft);
    const sequences = draft.changes.length === 0 ? [] : [journal.changes(draft.changes)];
    for (const entry of draft.entries) sequences.push(journal.append(entry));
    const outcomes = await Promise.allSettled(sequences.map((sequence) => journal.durable(sequence)));
    const lost = outcomes.find((outcome) => outcome.status === "rejected");
    memory.resolved(lost === undefined);
    if (lost !== undefined) throw lost.reason;
    return result;
  }
}

/** A unit that waits for anything outside the office blocks all others. */
async function inThisTurn<Result>(deciding: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const turn = setImmediate(() => reject(new Error("a unit of the office waits for nothing but what it reads")));
  try {
    return await Promise.race([deciding, late]);
  } finally {
    clearImmediate(turn);
  }
}
