// A line of the request log, as the console and `tollgate requests --json` show it, and the filter as people write it.
import { inPlainWords } from "./refusal-words.ts";
import { anyRequest, type LogFilter, type LogPage, type LogPlace, type LogRow } from "../core/request-log.ts";
import { type Priority, priorities } from "../core/priority.ts";
import { inputUnitAt } from "../core/model-kinds.ts";
import type { AccountId, Ms } from "../core/types.ts";
import { keyNameOf } from "./people/key-names.ts";
import { costUsd, sumInWords } from "./money/price.ts";

export type RequestRow = Readonly<{
  /** When it ended. */
  time: string;
  request_id: string;
  /** Null where no key was known. */
  account: string | null;
  account_id: number | null;
  key: string | null;
  endpoint: string;
  /** Empty where the body was not read. */
  model: string;
  /** The one that was asked for, where the model stood in for it. */
  asked_model: string | null;
  /** Sorted, with commas between; null where it has none. */
  tags: string | null;
  /** Whom it is booked to. */
  cost_center: string | null;
  node: string | null;
  /** The client's; null where it is unknown or not kept anymore. For operators alone. */
  address: string | null;
  /** How urgent it was in line. */
  priority: string;
  /** Of the reply's headers: one that failed in the middle has 200 and a reason. */
  status: number;
  /** Null where it was served. */
  reason: string | null;
  why: string | null;
  /** What its node said of it, where that failed. For operators alone. */
  cause: string | null;
  /** For nodes, all passes together. Null, here and below: that was not measured. */
  wait_ms: number | null;
  /** From its arrival to the first node, to the first token and to its end. */
  sent_ms: number | null;
  first_token_ms: number | null;
  duration_ms: number | null;
  input: number;
  cached_input: number;
  output: number;
  reasoning: number;
  billed_tokens: number;
  cost_usd: number;
  /** How the balance tokens came about, at the prices of then; null where nothing was charged. */
  sum: string | null;
  /** Others like it, of the same minute, that have no line of their own. */
  more: number;
}>;

export type RequestRows = Readonly<{
  rows: RequestRow[];
  /** Null after the last one. */
  next: string | null;
  /** How far back was looked, where a search gave up. */
  searched_to: string | null;
  /** Refused and failed ones that are not kept, because there were too many. */
  gone: number;
}>;

export const requestRowsOf = (page: LogPage, emailOf: (account: AccountId) => string): RequestRows => ({
  rows: page.rows.map((row) => rowOf(row, emailOf)),
  next: page.next === null ? null : `${page.next.served}-${page.next.failed}`,
  searched_to: page.searchedTo === null ? null : timeOf(page.searchedTo),
  gone: page.gone,
});

function rowOf(row: LogRow, emailOf: (account: AccountId) => string): RequestRow {
  const isKnown = row.account > 0;
  return {
    time: timeOf(row.at),
    request_id: row.requestId,
    account: isKnown ? emailOf(row.account) : null,
    account_id: isKnown ? row.account : null,
    key: isKnown ? keyNameOf(row.key, row.keyName) : null,
    endpoint: row.endpoint,
    model: row.model,
    asked_model: row.askedModel,
    tags: row.tags,
    cost_center: row.costCenter,
    address: row.address,
    priority: row.priority ?? "standard",
    node: row.node,
    status: row.status,
    reason: row.reason,
    why: row.reason === null ? null : inPlainWords(row.reason),
    cause: row.cause,
    wait_ms: row.waitMs,
    sent_ms: row.sentMs,
    first_token_ms: row.firstTokenMs,
    duration_ms: row.durationMs,
    input: row.input,
    cached_input: row.cachedInput,
    output: row.output,
    reasoning: row.reasoning,
    billed_tokens: row.billedTokens,
    cost_usd: costUsd(row.billedTokens),
    sum: sumOf(row),
    more: row.more,
  };
}

function sumOf(row: LogRow): string | null {
  const { inputCents, cachedInputCents, outputCents, cachedInput, output } = row;
  if (inputCents === null || cachedInputCents === null || outputCents === null) return null;
  const parts = {
    input: row.inputParts ?? 0,
    cachedInput: row.cachedInputParts ?? 0,
    output: row.outputParts ?? 0,
  };
  const usage = { inputFresh: row.input - cachedInput, inputCached: cachedInput, output };
  return sumInWords(
    { inputCents, cachedInputCents, outputCents, parts },
    usage,
    row.billedTokens,
    inputUnitAt(row.endpoint),
  );
}

const timeOf = (at: Ms): string => new Date(at).toISOString();

/** `next` of the page before; a place that cannot be is the newest. */
export function logPlaceOf(text: string | undefined): LogPlace | null {
  const [, served, failed] = /^(\d{1,16}(?:\.\w{1,40})?)-(\d{1,16})$/.exec(text ?? "") ?? [];
  return served === undefined ? null : { served, failed: Number(failed) };
}

/** What people write for a filter, but the account and the key, which are somebody's to know. */
const logWords = [
  "model",
  "node",
  "endpoint",
  "status",
  "reason",
  "address",
  "end_user",
  "priority",
  "from",
  "to",
  "wait_min_ms",
  "first_token_min_ms",
  "duration_min_ms",
  "tokens_min",
  "billed_min",
  "request_id",
] as const;
export type LogWords = Partial<Readonly<Record<(typeof logWords)[number], string | undefined>>>;

/** The filter, or what is wrong with it in words. */
export function logFilterOf(words: LogWords): LogFilter | string {
  const of = (name: keyof LogWords): string | null => words[name]?.trim() || null;
  const status = of("status");
  const statuses = status === null ? null : /^[1-5](?:xx|\d\d)$/.exec(status.toLowerCase());
  if (status !== null && statuses === null) return "status must be one such as 429, or 4xx or 5xx";
  const priority = of("priority") as Priority | null;
  if (priority !== null && !priorities.includes(priority)) return `priority must be one of ${priorities.join(", ")}`;
  const times = [of("from"), of("to")].map((time) => (time === null ? null : Date.parse(time)));
  if (times.some((time) => Number.isNaN(time))) {
    return "from and to must be times such as 2026-03-28 or 2026-03-28T12:00:00Z";
  }
  const minima = (["wait_min_ms", "first_token_min_ms", "duration_min_ms", "tokens_min", "billed_min"] as const).map(
    (name) => (of(name) === null ? null : /^\d{1,15}$/.test(of(name)!) ? Number(of(name)) : Number.NaN),
  );
  if (minima.some((least) => Number.isNaN(least))) return "what is asked for at least must be a whole number";
  const [from = null, to = null] = times;
  const [waitMinMs = null, firstTokenMinMs = null, durationMinMs = null, tokensMin = null, billedMin = null] = minima;
  return {
    ...anyRequest,
    model: of("model"),
    node: of("node"),
    endpoint: of("endpoint"),
    status: statuses === null ? null : statusRange(statuses[0]),
    reason: of("reason"),
    address: of("address"),
    endUser: of("end_user"),
    priority,
    from,
    to,
    waitMinMs,
    firstTokenMinMs,
    durationMinMs,
    tokensMin,
    billedMin,
    requestId: of("request_id"),
  };
}

const statusRange = (status: string): readonly [number, number] =>
  status.endsWith("xx") ? [Number(status[0]) * 100, Number(status[0]) * 100 + 99] : [Number(status), Number(status)];
