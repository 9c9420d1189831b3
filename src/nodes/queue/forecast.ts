// What a request in line can expect: how many go first, and how long that takes. An estimate for people and programs. It
// decides nothing about who is next.
import type { AccountId, Ms } from "../../core/types.ts";

/** A line's accounts with their requests, and within an account its end users with theirs. */
type LineOf<User> = Iterable<Readonly<{ key: AccountId; inside: Readonly<{ length: number; ranks: Iterable<User> }> }>>;
type EndUserInLine = Readonly<{
  key: string;
  inside: Readonly<{
    length: number;
    ranks: Iterable<Readonly<{ key: string; inside: Readonly<{ length: number }> }>>;
  }>;
}>;
type Asks = Readonly<{ account: AccountId; member: string; own?: string | undefined }>;

/**
 * Counts the requests that go before one of `member` of `account`, who has `before` of its own before it (null: as many as
 * one more would have). Accounts take turns, and so do the members of an account and what is a member's own: each other
 * one has at most one more than that before it. `order` is below 0 for a line that goes first as a whole, and above 0 for
 * one that comes later.
 */
export function aheadOf<Line extends Readonly<{ line: LineOf<EndUserInLine> }>>(
  lines: Iterable<Line>,
  asks: Asks,
  before: number | null,
  order: (line: Line) => number,
): number {
  const { account, member } = asks;
  const among = [...lines].map((each) => ({ line: each.line, place: order(each) })).filter(({ place }) => place <= 0);
  const same = among.filter(({ place }) => place === 0);
  const own = before ?? same.reduce((sum, { line }) => sum + beforeOneMore(line, asks), 0);
  let ofAccount = own;
  for (const { line } of same) {
    for (const { key, inside } of line) {
      if (key !== account) continue;
      for (const user of inside.ranks) if (user.key !== member) ofAccount += Math.min(user.inside.length, own + 1);
    }
  }
  let ahead = ofAccount;
  for (const { line, place } of among) {
    for (const { key, inside } of line) {
      if (place < 0) ahead += inside.length;
      else if (key !== account) ahead += Math.min(inside.length, ofAccount + 1);
    }
  }
  return ahead;
}

function beforeOneMore(line: LineOf<EndUserInLine>, { account, member, own = "" }: Asks): number {
  let before = 0;
  for (const { key, inside } of line) {
    if (key !== account) continue;
    const all = [...inside.ranks].flatMap((user) => (user.key === member ? [...user.inside.ranks] : []));
    const mine = all.find((each) => each.key === own)?.inside.length ?? 0;
    for (const each of all) before += each.key === own ? mine : Math.min(each.inside.length, mine + 1);
  }
  return before;
}

/** How often a node takes a request out of its line, learned while there is one. */
export class LinePace {
  /** Null until a request came out of the line right behind another. */
  everyMs: Ms | null = null;
  #lastAt: Ms | null = null;

  /** A request came out of the line. `isMore`: others still wait, so the time to the next one counts. */
  took(now: Ms, isMore: boolean): void {
    if (this.#lastAt !== null) {
      const tookMs = now - this.#lastAt;
      this.everyMs = this.everyMs === null ? tookMs : this.everyMs + 0.2 * (tookMs - this.everyMs);
    }
    this.#lastAt = isMore ? now : null;
  }
}
