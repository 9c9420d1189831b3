// Requests that wait for the same nodes: accounts in the order of their shares, an account's people, end users and keys in
// the order of theirs, a person's keys and end users likewise, and each one's requests first come, first served.
import type { AccountId, Ms } from "../../core/types.ts";
import { Line, type Link } from "./line.ts";
import { type Ranked, Ranks } from "./ranks.ts";
import type { Share } from "./share.ts";

/** A request in line. */
export interface InLine {
  readonly place: Readonly<{ account: AccountId; member: string; own?: string | undefined }>;
  readonly share: Share;
  readonly memberShare: Share;
  readonly ownShare: Share;
  readonly since: Ms;
  inOwn: Link<this> | null;
}

export type AccountInLine<T extends InLine> = Ranked<AccountId, Branch<MemberInLine<T>>>;
/** Its keys and end users where it is a person, else only itself. */
export type MemberInLine<T extends InLine> = Branch<Places<T>>;

/** Of one key or end user. */
class Places<T extends InLine> extends Line<T> {
  get since(): Ms {
    return this.first!.value.since;
  }
}

/** An account's members or a member's keys, and how many of their requests are in this line. */
class Branch<Inside extends Readonly<{ length: number; since: Ms }>> {
  readonly ranks = new Ranks<string, Inside>();
  length = 0;

  constructor(readonly weight: number) {}

  /** Since when its oldest request waits. */
  get since(): Ms {
    let since = Infinity;
    for (const { inside } of this.ranks) since = Math.min(since, inside.since);
    return since;
  }
}

export class FairLine<T extends InLine> {
  readonly #accounts = new Ranks<AccountId, Branch<MemberInLine<T>>>();

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
    const { place, share, memberShare, ownShare } = waiting;
    let account = this.#accounts.get(place.account);
    if (account === undefined) {
      account = this.#accounts.add(place.account, share, new Branch(share.weight), order);
      this.weight += share.weight;
    }
    const { ranks } = account.inside;
    const member = ranks.get(place.member) ?? ranks.add(place.member, memberShare, new Branch(1), order);
    const owns = member.inside.ranks;
    const own = owns.get(place.own ?? "") ?? owns.add(place.own ?? "", ownShare, new Places(), order);
    waiting.inOwn = own.inside.append(waiting);
    member.inside.length++;
    account.inside.length++;
  }

  remove({ place, inOwn }: T): void {
    const account = this.#accounts.get(place.account)!;
    const { ranks } = account.inside;
    const member = ranks.get(place.member)!;
    const owns = member.inside.ranks;
    const own = owns.get(place.own ?? "")!;
    own.inside.remove(inOwn!);
    member.inside.length--;
    account.inside.length--;
    if (own.inside.length === 0) owns.remove(own);
    if (owns.length === 0) ranks.remove(member);
    if (ranks.length > 0) return;
    this.#accounts.remove(account);
    this.weight -= account.inside.weight;
  }

  /** How many of its member's requests go before it. */
  before({ place, inOwn }: T): number {
    let own = 0;
    for (let link = inOwn!.before; link !== null; link = link.before) own++;
    let before = own;
    for (const { key, inside } of this.#accounts.get(place.account)!.inside.ranks.get(place.member)!.inside.ranks)
      if (key !== (place.own ?? "")) before += Math.min(inside.length, own + 1);
    return before;
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
  for (const { inside } of ranks.inOrder()) yield* inTurnOf(inside);
}

/** A member's. */
export function* inTurnOf<T extends InLine>({ ranks }: MemberInLine<T>): Generator<T> {
  for (const { inside: places } of ranks.inOrder())
    for (let link = places.first; link !== null; link = link.after) yield link.value;
}
