// Requests that wait for the same nodes: accounts in the order of their shares, an account's end users in the order of
// theirs, and each one's requests first come, first served.
import type { AccountId, Ms } from "../../core/types.ts";
import { Line, type Link } from "./line.ts";
import { type Ranked, Ranks } from "./ranks.ts";
import type { Share } from "./share.ts";

/** A request in line. */
export interface InLine {
  readonly place: Readonly<{ account: AccountId; member: string }>;
  readonly share: Share;
  readonly memberShare: Share;
  readonly since: Ms;
  inMember: Link<this> | null;
}

export type AccountInLine<T extends InLine> = Ranked<AccountId, Members<T>>;

/** An account's end users, and how many of its requests are in this line. */
class Members<T extends InLine> {
  readonly ranks = new Ranks<string, Line<T>>();
  length = 0;

  constructor(readonly weight: number) {}

  /** Since when its oldest request waits. */
  get since(): Ms {
    let since = Infinity;
    for (const { inside } of this.ranks) since = Math.min(since, inside.first!.value.since);
    return since;
  }
}

export class FairLine<T extends InLine> {
  readonly #accounts = new Ranks<AccountId, Members<T>>();

  /** Counts accounts. */
  get length(): number {
    return this.#accounts.length;
  }

  /** The sum over all accounts. */
  weight = 0;

  /** The lowest tag in line. */
  get turn(): number {
    return this.#accounts.first?.tag ?? Infinity;
  }

  has(account: AccountId): boolean {
    return this.#accounts.get(account) !== undefined;
  }

  /** `order`: its place among everything that waits. */
  add(waiting: T, order: number): void {
    const { place, share, memberShare } = waiting;
    let account = this.#accounts.get(place.account);
    if (account === undefined) {
      account = this.#accounts.add(place.account, share, new Members(share.weight), order);
      this.weight += share.weight;
    }
    const { inside } = account;
    const member = inside.ranks.get(place.member) ?? inside.ranks.add(place.member, memberShare, new Line(), order);
    waiting.inMember = member.inside.append(waiting);
    inside.length++;
  }

  remove({ place, inMember }: T): void {
    const account = this.#accounts.get(place.account)!;
    const { ranks } = account.inside;
    const member = ranks.get(place.member)!;
    member.inside.remove(inMember!);
    account.inside.length--;
    if (member.inside.length === 0) ranks.remove(member);
    if (ranks.length > 0) return;
    this.#accounts.remove(account);
    this.weight -= account.inside.weight;
  }

  /** The line must not change until the caller is done. */
  inTurn(): Generator<AccountInLine<T>> {
    return this.#accounts.inOrder();
  }

  /** In any order. */
  [Symbol.iterator](): Iterator<AccountInLine<T>> {
    return this.#accounts[Symbol.iterator]();
  }
}

/** An account's requests in the order of their turns. */
export function* requestsOf<T extends InLine>({ inside: { ranks } }: AccountInLine<T>): Generator<T> {
  for (const { inside: places } of ranks.inOrder())
    for (let link = places.first; link !== null; link = link.after) yield link.value;
}
