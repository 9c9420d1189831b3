// One commit's worth of work on its way to the writer: account changes first, then journal lines, as JSON text. Text,
// because a structured clone of the same rows costs 1.5 times as much in all and twice as much on the main thread.
import { type Entry, quotaOf } from "../../account/money/entry.ts";
import type { AccountChange } from "../../account/journal.ts";
import { type AccountId, defaultKey, type KeyId } from "../../core/types.ts";
import type { RowOf } from "./schema.ts";

/** The columns of a journal line in the order of `JournalRow`; SQLite gives it its `sequence`. */
export const journalColumns = [
  "billing_key",
  "kind",
  "account_id",
  "at",
  "period",
  "used",
  "credit_delta",
  "endpoint",
  "model",
  "input_fresh",
  "input_cached",
  "output",
  "reasoning",
  "input_cents",
  "cached_input_cents",
  "output_cents",
  "billed_tokens",
  "estimated",
  "input_parts",
  "cached_input_parts",
  "output_parts",
  "key_id",
  "end_user_id",
  "node",
  "wait_ms",
  "sent_ms",
  "first_token_ms",
  "duration_ms",
  "priority",
  "asked_model",
  "tags",
  "cost_center",
] as const;

type Line = RowOf<"journal">;
type InOrder<Names extends readonly (keyof Line)[]> = { readonly [Place in keyof Names]: Line[Names[Place]] };
type Missing = Exclude<keyof Line, "sequence" | (typeof journalColumns)[number]>;
/** `never`, so that nothing compiles, where a column of the table is missing above. */
export type JournalRow = [Missing] extends [never] ? InOrder<typeof journalColumns> : never;

/** `endUsers`: names for lines, by the lines' places; the writer knows their numbers. Absent where no line has one. */
export type Batch = Readonly<{
  /** In units, each of which is written or left out as a whole. */
  changes: readonly (readonly AccountChange[])[];
  rows: readonly JournalRow[];
  endUsers?: Readonly<Record<number, string>> | undefined;
}>;

export function batchOf(changes: Batch["changes"], entries: readonly Entry[]): Batch {
  const rows = entries.map(rowOf);
  let endUsers: Record<number, string> | undefined;
  for (let place = 0; place < entries.length; place += 1) {
    const { endUser } = entries[place]!;
    if (endUser != null) (endUsers ??= {})[place] = endUser;
  }
  return endUsers === undefined ? { changes, rows } : { changes, rows, endUsers };
}

/** A unit that broke a rule of a table, by its place in the batch; it was left out, and the rest was written. */
export type RefusedChange = Readonly<{ index: number; reason: string }>;

/** The accounts whose creation was refused: there is nothing that their lines could be about. */
export function accountsNotMade(changes: Batch["changes"], refused: readonly RefusedChange[]): ReadonlySet<AccountId> {
  const notMade = new Set<AccountId>();
  for (const { index } of refused) {
    for (const change of changes[index]!) if (change.change === "create") notMade.add(change.account);
  }
  return notMade;
}

const noReply = [null, null, null, null, null, null, null, null, null, null, null, null, null, null] as const;
const noCourse = [null, null, null, null, null, null, null, null, null] as const;

export function rowOf(entry: Entry): JournalRow {
  const { billingKey, kind, account, key, at, period, used, creditDelta, reply } = entry;
  if (reply === null)
    return [billingKey, kind, account, at, period, used, creditDelta, ...noReply, key, null, ...noCourse];
  return [
    billingKey,
    kind,
    account,
    at,
    period,
    used,
    creditDelta,
    reply.endpoint,
    reply.model,
    reply.inputFresh,
    reply.inputCached,
    reply.output,
    reply.reasoning,
    reply.inputCents,
    reply.cachedInputCents,
    reply.outputCents,
    reply.billedTokens,
    reply.estimated ? 1 : 0,
    reply.parts?.input ?? null,
    reply.parts?.cachedInput ?? null,
    reply.parts?.output ?? null,
    key,
    null,
    reply.course?.node ?? null,
    reply.course?.waitMs ?? null,
    reply.course?.sentMs ?? null,
    reply.course?.firstTokenMs ?? null,
    reply.course?.durationMs ?? null,
    reply.course?.priority ?? null,
    reply.course?.askedModel ?? null,
    reply.course?.tags ?? null,
    reply.costCenter ?? null,
  ];
}

export const atPlace = 3;
export const keyPlace = 21;
export const endUserPlace = 22;

/** What a batch adds to one account, summed so that a busy account costs one update a commit. */
export class AccountSum {
  creditDelta = 0;
  readonly uses: { quota: string; period: number; used: number }[] = [];
  /** Of named keys, by day. */
  readonly keyUses: { key: KeyId; day: number; used: number }[] = [];
  /** Of the lines one by one: nearly all are of different ones. Null where no line has any. */
  endUserUses: { endUser: number; day: number; used: number }[] | null = null;

  add(row: JournalRow): void {
    const [, kind, , , period, used, creditDelta] = row;
    const key = row[keyPlace];
    this.creditDelta += creditDelta;
    if (kind === "charge" && key > defaultKey) {
      this.#addToKey(key, period, used - creditDelta);
      const endUser = row[endUserPlace];
      if (endUser !== null) (this.endUserUses ??= []).push({ endUser, day: period, used: used - creditDelta });
    }
    const quota = quotaOf(kind);
    if (quota === null || used === 0) return;
    const use = this.uses.find((each) => each.quota === quota && each.period === period);
    if (use === undefined) this.uses.push({ quota, period, used });
    else use.used += used;
  }

  #addToKey(key: KeyId, day: number, billed: number): void {
    const use = this.keyUses.find((each) => each.key === key && each.day === day);
    if (use === undefined) this.keyUses.push({ key, day, used: billed });
    else use.used += billed;
  }
}
