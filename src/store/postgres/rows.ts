// Rows as the statements of a batch read them, and what a batch decided as the statements that write it.
import { dayOf, coderWindowOf, type Period, type Quota } from "../../account/quota.ts";
import { type KeyLimits, type AccountId, defaultKey, type KeyId, type Ms, type PlanId } from "../../core/types.ts";
import type { HoldRecord } from "../../account/admission.ts";
import { AccountSum, endUserPlace, type JournalRow, rowOf } from "../ledger/batch.ts";
import { arrayOf, call, type Call, type Row } from "./connection.ts";
import type { LaneDecision, OpenHold, OpenSearch, LaneOperation } from "./decide.ts";
import {
  accountColumns,
  addEndUsers,
  addEndUserUse,
  addKeyUse,
  deleteHolds,
  insertHolds,
  insertLines,
  keepUse,
  keyColumns,
  setSearchCalls,
  updateAccounts,
  updateHolds,
  updateKeys,
} from "./statements.ts";

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
  } & Sums
>;

export function keyRowOf(row: Row): KeyRow {
  const { account, id, name, key_hash, used_at, revoked, held, waiting_held, begun, expected } = row as KeyRow;
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
    limits: keyLimitsOf(row),
  };
}

/** Null where nothing is limited. */
export function keyLimitsOf(row: Row): KeyLimits | null {
  const limits = row as Readonly<Record<LimitColumn, number | null>>;
  const { models, addresses } = row as Readonly<Record<"models" | "addresses", string | null>>;
  if (!hasLimits(row)) return null;
  return {
    expiresAt: limits.expires_at,
    tokensPerDay: limits.tokens_per_day,
    tokensPerMonth: limits.tokens_per_month,
    models: listOf(models),
    addresses: listOf(addresses),
    forwardsUsers: limits.forwards_users === 1,
    endUserTokensPerDay: limits.end_user_tokens_per_day,
  };
}

const numberColumns = [
  "expires_at",
  "tokens_per_day",
  "tokens_per_month",
  "forwards_users",
  "end_user_tokens_per_day",
] as const;
type LimitColumn = (typeof numberColumns)[number];
const limitColumns = [...numberColumns, "models", "addresses"] as const;
const hasLimits = (row: Row): boolean => limitColumns.some((column) => row[column] !== null);
const listOf = (json: string | null): readonly string[] | null =>
  json === null ? null : (JSON.parse(json) as readonly string[]);

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
  const { searches, searchCalls } = decision;
  const calls: Call[] = [];
  const columns = <Item>(items: readonly Item[], ...of: ((item: Item) => string | number | boolean | null)[]) =>
    of.map((column) => arrayOf(items.map(column)));
  if (entries.length > 0) {
    const lines = entries.map((entry, place) => {
      const endUser = endUsersOfEntries[place]!;
      return endUser === null ? rowOf(entry) : (rowOf(entry).with(endUserPlace, endUser) as unknown as JournalRow);
    });
    calls.push(call(insertLines, ...lines[0]!.map((_, index) => arrayOf(lines.map((line) => line[index]!)))));
    const sums = sumsOf(lines);
    const uses = sums.flatMap(([account, { keyUses }]) => keyUses.map((use) => ({ account, ...use })));
    if (uses.length > 0) {
      const parts = columns(
        uses,
        ({ account }) => account,
        ({ key }) => key,
        ({ day }) => day,
        ({ used }) => used,
      );
      calls.push(call(addKeyUse, ...parts));
    }
    if (endUsers.length > 0) {
      const parts = columns(
        endUsers,
        ({ account }) => account,
        ({ id }) => id,
        ({ key }) => key,
        ({ name }) => name,
        ({ day }) => day,
      );
      calls.push(call(addEndUsers, ...parts));
    }
    const used = sums.flatMap(([account, sum]) => endUserUsesOf(account, sum));
    if (used.length > 0) {
      const parts = columns(
        used,
        ({ account }) => account,
        ({ endUser }) => endUser,
        ({ day }) => day,
        ({ used }) => used,
      );
      calls.push(call(addEndUserUse, ...parts));
    }
  }
  if (searchCalls.length > 0) {
    const parts = columns(
      searchCalls,
      ({ account }) => account,
      ({ day }) => day,
      ({ calls }) => calls,
    );
    calls.push(call(setSearchCalls, ...parts));
  }
  if (made.length > 0 || searches.length > 0) {
    const parts = columns(
      [...made.map(heldRow), ...searches.map(searchRow)],
      ({ requestId }) => requestId,
      ({ account }) => account,
      ({ key }) => key,
      ({ budget }) => budget,
      ({ cost }) => cost,
      ({ waits }) => waits,
      ({ searches }) => searches,
      ({ endUser }) => endUser,
    );
    calls.push(call(insertHolds, lane, now, ...parts));
  }
  if (updated.length > 0) {
    const parts = columns(
      updated,
      ({ requestId }) => requestId,
      ({ budget }) => budget,
      ({ cost }) => cost,
      ({ waits }) => waits,
    );
    calls.push(call(updateHolds, ...parts));
  }
  if (removed.length > 0) calls.push(call(deleteHolds, arrayOf(removed)));
  if (kept.length > 0) {
    const parts = columns(
      kept,
      ({ account }) => account,
      ({ quota }) => quota,
      ({ period }) => period,
      ({ used }) => used,
    );
    calls.push(call(keepUse, ...parts));
  }
  if (accounts.length > 0) {
    const names = Object.keys(accountColumns) as readonly (keyof typeof accountColumns)[];
    const parts = columns(accounts, ({ id }) => id, ...names.map((name) => (row: AccountRow) => row[name]));
    calls.push(call(updateAccounts, ...parts));
  }
  if (keys.length > 0) {
    const names = Object.keys(keyColumns) as readonly (keyof typeof keyColumns)[];
    const ofKey = names.map((name) => (row: KeyRow) => row[name]);
    calls.push(
      call(
        updateKeys,
        ...columns(
          keys,
          ({ account }) => account,
          ({ id }) => id,
          ...ofKey,
        ),
      ),
    );
  }
  return calls;
}

type HoldRow = Pick<HoldRecord, "requestId" | "key" | "budget" | "cost" | "waits" | "endUser"> &
  Readonly<{ account: AccountId; searches: number }>;

const heldRow = ({ requestId, account, record }: OpenHold): HoldRow => ({ ...record, requestId, account, searches: 0 });

const searchRow = ({ requestId, account }: OpenSearch): HoldRow => ({
  requestId,
  account,
  key: defaultKey,
  budget: 0,
  cost: 0,
  waits: false,
  searches: 1,
  endUser: null,
});

/** One statement must not add to a row twice. */
function endUserUsesOf(account: AccountId, { endUserUses }: AccountSum) {
  const sums = new Map<string, { account: AccountId; endUser: number; day: Period; used: number }>();
  for (const { endUser, day, used } of endUserUses ?? []) {
    const sum = sums.get(`${endUser} ${day}`);
    if (sum === undefined) sums.set(`${endUser} ${day}`, { account, endUser, day, used });
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
