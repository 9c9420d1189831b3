// A share of the nodes' work under start-time fair queueing (Goyal, Vin and Cheng, 1996): a share's tag is its work
// divided by its weight, on a scale that it has in common with those who wait beside it. The lowest tag is next.
//
// A share that was idle starts level with the others, so idleness earns nothing, and a share that was alone owes
// nothing for that.

/** An account's, or an end user's. */
export class Share {
  tag = 0;
  weight = 1;
  /** Waiting requests, and running ones. */
  waiting = 0;
  running = 0;
  /** The expected work of its answers; null until the first has ended. */
  answerWork: number | null = null;
  /** The tag of the last of `members` that had its turn. */
  turn = 0;
  #members: Shares<string> | null = null;
  /** Where its requests wait. */
  readonly lines = new Set<{ moved(): void }>();

  get members(): Shares<string> {
    return (this.#members ??= new Shares(idleMembersMax));
  }

  /** It has requests again, beside those whose turn is at `turn`. */
  join(turn: number): void {
    this.tag = Math.min(Math.max(this.tag, turn), turn + aheadMax / this.weight);
  }

  /** An answer took this much work. */
  answered(work: number): void {
    this.answerWork = this.answerWork === null ? work : this.answerWork + 0.2 * (work - this.answerWork);
  }

  /** Adds work, or subtracts it where negative. */
  had(work: number): void {
    this.tag += work / this.weight;
    for (const line of this.lines) line.moved();
  }
}

/** Work beyond this lead is forgotten: it may have been on nodes that no one else needed. */
const aheadMax = 500_000;

/** How many idle accounts are kept, and how many idle end users of each. */
export const idleAccountsMax = 10_000;
const idleMembersMax = 100;

export class Shares<Key> {
  readonly #all = new Map<Key, Share>();
  /** The longest idle first. */
  readonly #idle = new Set<Key>();

  constructor(readonly idleMax: number) {}

  /** Those with waiting or running requests. */
  get active(): number {
    return this.#all.size - this.#idle.size;
  }

  /** The share of a requester. Call `used` afterwards, whatever happens to the request. */
  of(key: Key): Share {
    this.#idle.delete(key);
    let share = this.#all.get(key);
    if (share === undefined) this.#all.set(key, (share = new Share()));
    return share;
  }

  /** Of someone who was here before; undefined where not, or too long ago. */
  known(key: Key): Share | undefined {
    return this.#all.get(key);
  }

  /** Call when a request begins to wait or run, or no longer does. */
  used(key: Key, { waiting, running }: Share): void {
    if (waiting + running > 0) return void this.#idle.delete(key);
    this.#idle.add(key);
    if (this.#idle.size <= this.idleMax) return;
    const oldest = this.#idle.values().next().value!;
    this.#idle.delete(oldest);
    this.#all.delete(oldest);
  }
}
