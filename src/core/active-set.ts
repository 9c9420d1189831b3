// The members that are active right now; they come and go with every request.
//
// Not a Set: when its table is outgrown or cleaned up, the runtime links the old table to the new one. An old table
// that survived a garbage collection then keeps all later members alive until the next full one, request after request:
// 7 KB each, and a fifth of all collections were full ones. Here nothing refers to a member that has left.

/** A member's place, for `leave`. */
export type ActiveHandle<Member> = { member: Member | null; at: number };

export class ActiveSet<Member> {
  readonly #handles: ActiveHandle<Member>[] = [];

  get size(): number {
    return this.#handles.length;
  }

  join(member: Member): ActiveHandle<Member> {
    const handle: ActiveHandle<Member> = { member, at: this.#handles.length };
    this.#handles.push(handle);
    return handle;
  }

  /** Does nothing where the member has already left. */
  leave(handle: ActiveHandle<Member>): void {
    if (handle.member === null) return;
    handle.member = null;
    const last = this.#handles.pop()!;
    if (last === handle) return;
    last.at = handle.at;
    this.#handles[handle.at] = last;
  }

  /** The current members in any order; one that leaves meanwhile is still included. */
  members(): Member[] {
    return this.#handles.map(({ member }) => member!);
  }
}
