// What somebody had of the nodes' work, as start-time fair queueing counts it (Goyal, Vin and Cheng, 1996): a share's tag is
// its work by its weight, on a scale that it has in common with those who wait beside it. The least tag is next.
//
// Who was idle begins where the others are, so that idleness earns nothing, and who was alone owes nothing for that.

/** Of an account, or of somebody whom it serves. */
export class Share {
  tag = 0;
  weight = 1;
  /** Requests that wait, and those that run. */
  waiting = 0;
  running = 0;
  /** What its answers come to; null until the first has ended. */
  answerWork: number | null = null;
  /** The tag of the last of `members` whose turn it was. */
  turn = 0;
  #members: Shares<string> | null = null;
  /** Where its requests wait. */
  readonly lines = new Set<{ moved(): void }>();

  get members(): Shares<string> {
    return (this.#members ??= new Shares(idleMembersMax));
  }

  /** It has something to do again, beside those whose turn is at `turn`. */
  join(turn: number): void {
    this.tag = Math.min(Math.max(this.tag, turn), turn + aheadMax / this.weight);
  }

  /** An answer came to so much. */
  answered(work: number): void {
    this.answerWork = this.answerWork === null ? work : this.answerWork + 0.2 * (work - this.answerWork);
  }

  /** It had so much more work, or less. */
  had(work: number): void {
    this.tag += work / this.weight;
    for (const line of this.lines) line.moved();
  }
}

/** Beyond this, what somebody had is forgotten: it may have been on nodes of which nobody else had need. */
const aheadMax = 500_000;

/** Of accounts that wait for nothing and run nothing, so many are kept, and of those whom each of them serves. */
export const idleAccountsMax = 10_000;
const idleMembersMax = 100;

export class Shares<Key> {
  readonly #all = new Map<Key, Share>();
  /** The one that has been idle for longest first. */
  readonly #idle = new Set<Key>();

  constructor(readonly idleMax: number) {}

  /** Those who wait for something, or run something. */
  get active(): number {
    return this.#all.size - this.#idle.size;
  }

  /** That of somebody who asks: to be followed by `used`, whatever becomes of the request. */
  of(key: Key): Share {
    this.#idle.delete(key);
    let share = this.#all.get(key);
    if (share === undefined) this.#all.set(key, (share = new Share()));
    return share;
  }

  /** To be told when a request begins to wait, or to run, or no longer does. */
  used(key: Key, { waiting, running }: Share): void {
    if (waiting + running > 0) return void this.#idle.delete(key);
    this.#idle.add(key);
    if (this.#idle.size <= this.idleMax) return;
    const oldest = this.#idle.values().next().value!;
    this.#idle.delete(oldest);
    this.#all.delete(oldest);
  }
}
