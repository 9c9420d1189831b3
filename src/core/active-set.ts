// Who is there right now: members come and go with every request.
//
// Not a Set: when its table is outgrown or cleaned up, the runtime links the old table to the new one. An old table that
// survived a garbage collection so keeps all later members alive until the next full one, request after request: 7 KB
// each, and a fifth of all collections full ones. Here nothing refers to a member that has left.

/** A member's place, for `leave`. */
export type Seat<Member> = { member: Member | null; at: number };

export class ActiveSet<Member> {
  readonly #seats: Seat<Member>[] = [];

  get size(): number {
    return this.#seats.length;
  }

  join(member: Member): Seat<Member> {
    const seat: Seat<Member> = { member, at: this.#seats.length };
    this.#seats.push(seat);
    return seat;
  }

  /** Does nothing where the member has left already. */
  leave(seat: Seat<Member>): void {
    if (seat.member === null) return;
    seat.member = null;
    const last = this.#seats.pop()!;
    if (last === seat) return;
    last.at = seat.at;
    this.#seats[seat.at] = last;
  }

  /** Those who are there now, in no order; who leaves meanwhile is still named. */
  members(): Member[] {
    return this.#seats.map(({ member }) => member!);
  }
}
