// Rows as the statements of a batch read them, and what a batch decided as the statements that write it.
import { dayOf, coderWindowOf, type Period, type Quota } from "../../account/money/quota.ts";
import { type KeyLimits, type AccountId, defaultKey, type KeyId, type Ms, type PlanId } from "../../core/types.ts";
import { keyLimitsOf } from "../changes/record.ts";
import { AccountSum, endUserPlace, type JournalRow, rowOf } from "../ledger/batch.ts";
import { type BulkStatement, callOf } from "./bulk.ts";
import { arrayOf, call, type Call, type Row } from "./connection.ts";
import type { LaneDecision, OpenHold, OpenSearch, LaneOperation } from "./decide.ts";
import {
  addEndUserUse,
  addKeyUse,
  deleteHolds,
  insertHolds,
  insertLines,
  keepUse,
  setEndUserMinutes,
  setEndUsers,
  setSearchCalls,
  updateAccounts,
  updateHolds,
  updateKeys,
} from "./statements.ts";

export const nameHashOf = (name: string): string => Bun.SHA256.hash(name, "base64");

type Sums = Readonly<{ held: number; waiting_held: number; begun: number; expected: number }>;

/** By the names of the columns, as the statement gives it. A batch counts in the flood windows of its own copy. */
export type AccountRow = Readonly<
  {
    id: AccountId;
    key_hash: string;
    plan: PlanId;
    credit: number;
    disabled: boolean;
    key_used_at: Ms | null;
    cost_center: string | null;
    /** See MinuteWindow. */
    minute: string | null;
    holds: number;
    searches_held: number;
    allowance_day: Period;
    allowance_used: number;
    coder_window: Period;
    coder_used: number;
    searches_day: Period;
    searches_used: number;
  } & Sums
> & {
  flood_opens: Ms;
  flood_latest: Ms;
  flood_count: number;
  inputs_opens: Ms;
  inputs_latest: Ms;
  inputs_count: number;
};

export type KeyRow = Readonly<
  {
    account: AccountId;
    id: KeyId;
    name: string;
    /** Null where it was revoked. */
    key_hash: string | null;
    used_at: Ms | null;
    revoked: boolean;
    limits: KeyLimits | null;
    minute: string | null;
  } & Sums
>;

export function keyRowOf(row: Row): KeyRow {
  const { account, id, name, key_hash, used_at, revoked, held, waiting_held, begun, expected, minute } = row as KeyRow;
  return {
    account,
    id,
    name,
    key_hash,
    used_at,
    revoked,
    held,
    waiting_held,
    begun,
    expected,
    minute,
    limits: keyLimitsOf(row),
  };
}

/** Periods that accounts come to at a moment, whose use their rows do not have. */
export function missingUse(
  accounts: readonly AccountRow[],
  operations: readonly LaneOperation[],
  now: Ms,
): readonly Readonly<{ account: AccountId; quota: Quota; period: Period }>[] {
  const [day, window] = [dayOf(now), coderWindowOf(now)];
  const callers = new Set<AccountId>();
  const searches: Readonly<{ account: AccountId; day: Period }>[] = [];
  for (const operation of operations) {
    if (operation.op === "admit" && operation.ask.model.coder) callers.add(operation.account);
    if (operation.op === "search") searches.push({ account: operation.account, day });
    // It counts for the day on which it was taken.
    if (operation.op === "search end") {
      searches.push({ account: operation.search.account, day: dayOf(operation.search.takenAt) });
    }
  }
  const searched = accounts.flatMap(({ id, searches_day }) => {
    const days = new Set(searches.filter(({ account }) => account === id).map((search) => search.day));
    days.delete(searches_day);
    return [...days].map((period) => ({ account: id, quota: "searches" as const, period }));
  });
  const others = accounts.flatMap(({ id, allowance_day, coder_window }) => [
    ...(allowance_day === day ? [] : [{ account: id, quota: "allowance" as const, period: day }]),
    ...(coder_window === window || !callers.has(id)
      ? []
      : [{ account: id, quota: "coder_calls" as const, period: window }]),
  ]);
  return searches.length === 0 ? others : [...others, ...searched];
}

/** The statements that write a decision; none where it changed nothing. */
export function writesOf(decision: LaneDecision, lane: string): readonly Call[] {
  const { accounts, entries, endUsersOfEntries, endUsers, keys, kept, made, removed, updated, now } = decision;
  const { searches, searchCalls, endUserMinutes } = decision;
  const calls: Call[] = [];
  const write = <Name extends string>(
    statement: BulkStatement<Name>,
    rows: Parameters<typeof callOf<Name>>[1],
    ...shared: readonly (string | number)[]
  ): void => {
    if (rows.length > 0) calls.push(callOf(statement, rows, ...shared));
  };
  if (entries.length > 0) {
    const lines = entries.map((entry, place) => {
      const endUser = endUsersOfEntries[place]!;
      return endUser === null ? rowOf(entry) : (rowOf(entry).with(endUserPlace, endUser) as unknown as JournalRow);
    });
    calls.push(call(insertLines, ...lines[0]!.map((_, index) => arrayOf(lines.map((line) => line[index]!)))));
    const sums = sumsOf(lines);
    const uses = sums.flatMap(([account, { keyUses }]) => keyUses.map((use) => ({ account, ...use })));
    write(
      addKeyUse,
      uses.map(({ account, key, day, used }) => ({ account_id: account, key_id: key, day, used })),
    );
    write(
      setEndUsers,
      endUsers.map(({ account, id, key, name, day }) => {
        return { account_id: account, id, key_id: key, name, first_day: day, last_day: day };
      }),
    );
    write(
      addEndUserUse,
      sums.flatMap(([account, sum]) => endUserUsesOf(account, sum)),
    );
  }
  write(
    setSearchCalls,
    searchCalls.map(({ account, day, calls: count }) => ({ account_id: account, day, calls: count })),
  );
  write(
    setEndUserMinutes,
    endUserMinutes
      .map(({ account, key, name, minute }) => {
        return { account_id: account, key_id: key, name_hash: nameHashOf(name), minute, latest: now };
      })
      .sort((a, b) => a.account_id - b.account_id || a.key_id - b.key_id || (a.name_hash < b.name_hash ? -1 : 1)),
  );
  write(insertHolds, [...made.map(heldRow), ...searches.map(searchRow)], lane, now);
  write(
    updateHolds,
    updated.map(({ requestId, budget, cost, waits }) => ({ request_id: requestId, tokens: budget, cost, waits })),
  );
  write(
    deleteHolds,
    removed.map((request_id) => ({ request_id })),
  );
  write(
    keepUse,
    kept.map(({ account, quota, period, used }) => ({ account_id: account, quota, period, used })),
  );
  write(updateAccounts, accounts);
  write(
    updateKeys,
    keys.map((row) => ({ ...row, account_id: row.account, limits: null })),
  );
  return calls;
}

const heldRow = ({ requestId, account, record: { key, budget, cost, waits, endUser } }: OpenHold) => ({
  request_id: requestId,
  account_id: account,
  key_id: key,
  tokens: budget,
  cost,
  waits,
  searches: 0,
  end_user: endUser,
});

const searchRow = ({ requestId, account }: OpenSearch) => ({
  request_id: requestId,
  account_id: account,
  key_id: defaultKey,
  tokens: 0,
  cost: 0,
  waits: false,
  searches: 1,
  end_user: null,
});

/** One statement must not add to a row twice. */
function endUserUsesOf(account: AccountId, { endUserUses }: AccountSum) {
  const sums = new Map<string, { account_id: AccountId; end_user_id: number; day: Period; used: number }>();
  for (const { endUser, day, used } of endUserUses ?? []) {
    const sum = sums.get(`${endUser} ${day}`);
    if (sum === undefined) sums.set(`${endUser} ${day}`, { account_id: account, end_user_id: endUser, day, used });
    else sum.used += used;
  }
  return [...sums.values()];
}

function sumsOf(lines: readonly JournalRow[]): readonly (readonly [AccountId, AccountSum])[] {
  const sums = new Map<AccountId, AccountSum>();
  for (const line of lines) {
    const account = line[2];
    let sum = sums.get(account);
    if (sum === undefined) sums.set(account, (sum = new AccountSum()));
    sum.add(line);
  }
  return [...sums];
}
