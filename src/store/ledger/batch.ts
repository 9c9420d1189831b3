// One commit's worth of work as it travels to the writer: account changes first, then journal lines, as JSON text.
// Text, because a structured clone of the same rows costs 1.5 times as much in all and twice as much on the main thread.
import { quotaOf, type Entry, type EntryKind } from "../../account/entry.ts";
import type { AccountChange } from "../../account/journal.ts";
import type { AccountId } from "../../core/types.ts";

/** The columns of a journal line after `sequence`, which SQLite gives, in the order of the table. */
export type JournalRow = readonly [
  billingKey: string,
  kind: EntryKind,
  account: number,
  at: number,
  period: number,
  used: number,
  creditDelta: number,
  endpoint: string | null,
  model: string | null,
  inputFresh: number | null,
  inputCached: number | null,
  output: number | null,
  reasoning: number | null,
  inputCents: number | null,
  cachedInputCents: number | null,
  outputCents: number | null,
  billedTokens: number | null,
  estimated: 0 | 1 | null,
];

export type Batch = Readonly<{ changes: readonly AccountChange[]; rows: readonly JournalRow[] }>;

/** A change that broke a rule of a table, by its place in the batch; it was left out, and the rest was written. */
export type RefusedChange = Readonly<{ index: number; reason: string }>;

/** The accounts whose creation was refused: there is nothing that their lines could be about. */
export function accountsNotMade(changes: Batch["changes"], refused: readonly RefusedChange[]): ReadonlySet<AccountId> {
  const notMade = new Set<AccountId>();
  for (const { index } of refused) {
    const change = changes[index];
    if (change?.change === "create") notMade.add(change.account);
  }
  return notMade;
}

const noReply = [null, null, null, null, null, null, null, null, null, null, null] as const;

export function rowOf(entry: Entry): JournalRow {
  const { billingKey, kind, account, at, period, used, creditDelta, reply } = entry;
  if (reply === null) return [billingKey, kind, account, at, period, used, creditDelta, ...noReply];
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
  ];
}

/** What a batch adds to one account, summed so that a busy account costs one update a commit. */
export class AccountSum {
  creditDelta = 0;
  readonly uses: { quota: string; period: number; used: number }[] = [];

  add([, kind, , , period, used, creditDelta]: JournalRow): void {
    this.creditDelta += creditDelta;
    const quota = quotaOf(kind);
    if (quota === null || used === 0) return;
    const use = this.uses.find((each) => each.quota === quota && each.period === period);
    if (use === undefined) this.uses.push({ quota, period, used });
    else use.used += used;
  }
}
