// The spine: a request's whole life in two functions. Everything else is called from here.
//
//   key -> account -> body -> Ask -> Hold -> Slot -> Piece* -> charge on disk -> end
//
// Every exit before the charge gives the hold back in full, and every refusal is a row of refusals.ts.
import type { Catalog } from "./catalog.ts";
import type { Clock } from "./clock.ts";
import type { AnswerEnd, Dialect } from "./dialects/dialect.ts";
import type { StoredResponses } from "./dialects/stored-responses.ts";
import type { Log } from "./log.ts";
import { isRefusal, refuse } from "./refusals.ts";
import { GapSink } from "./telemetry/gap-sink.ts";
import { RequestRecord } from "./telemetry/request-record.ts";
import { type Media, needsMedia, type ReadyAsk } from "./tools/media.ts";
import type { Checker } from "./tools/answer-checker.ts";
import type { Round } from "./tools/round.ts";
import { structuredOutput, wantsForm } from "./tools/structured-output.ts";
import type { ToolLoop } from "./tools/tool-loop.ts";
import {
  type AccountId,
  type Ask,
  type Ending,
  type Hold,
  type Refusal,
  type Sink,
  type Slot,
  StoreUnavailable,
} from "./types.ts";

/** The parts of the gateway that a request meets, in the order in which it meets them. */
export type Parts = Readonly<{
  keys: { account(key: string): AccountId | null };
  catalog: Catalog;
  admission: {
    countRequest(account: AccountId, now: number): Refusal | null;
    refuseFlooded(account: AccountId, now: number): Refusal | null;
    admit(account: AccountId, ask: Ask, requestId: string, now: number): Hold | Refusal;
  };
  pool: {
    enter(
      ask: Ask,
      account: AccountId,
      gone: AbortSignal,
      excluded?: ReadonlySet<string>,
    ): Slot | Refusal | Promise<Slot | Refusal>;
  };
  /** The input tokens of a request of which no node said them; null: not in time. Absent: estimates are charged. */
  countInput?: (ask: Ask, account: AccountId) => Promise<number | null>;
  /** Fetches and reads images and files. Absent: those that are not inline images are left out. */
  media?: Pick<Media, "ready">;
  /** Runs the gateway's own tools between the rounds of an answer. Absent: there are none. */
  toolLoop?: Pick<ToolLoop, "answer">;
  /** Checks answers against the format that a client asked for. Absent: they are delivered as the node wrote them. */
  checker?: Checker;
  /** Null where nothing is kept: then no request can refer to an earlier one. */
  storedResponses: StoredResponses | null;
  clock: Clock;
  log: Log;
}>;

/** What a request brings, as the HTTP side read it. */
export type Incoming = Readonly<{
  requestId: string;
  /** Null: no key, or two different ones. */
  key: string | null;
  /** The account of a signed-in browser's request, which brings no key. Null or absent: a key is needed. */
  signedIn?: (() => AccountId | null) | null;
  /** The parsed body with its size in bytes, or why it cannot be read. */
  body(): Promise<Body | Refusal>;
}>;

/** `bytes` is its size as sent. */
export type Body = Readonly<{ json: unknown; bytes: number }>;

/** Where an answer goes: the client's stream, or the collector of a non-streaming reply. */
export interface Outlet extends Sink {
  /** Aborted when the client leaves or stops reading; with a Refusal as its reason when the gateway ends the reply. */
  readonly gone: AbortSignal;
  /** The last word of a served request; its charge is on disk. */
  end(end: AnswerEnd): void;
  /** The last word of a refused or failed one; nothing was charged. */
  fail(refusal: Refusal): void;
}

export type Admitted = Readonly<{ account: AccountId; ask: Ask; hold: Hold }>;
/** Why a request is not served; `ask` is null when its body was not read. */
export type Refused = Readonly<{ refused: Refusal; ask: Ask | null }>;
export const isRefused = (result: Admitted | Refused): result is Refused => "refused" in result;

/** Decides whether a request is served: 401 key, 413/400 body, 400 model, 429 flood, 429 coder calls or balance. */
export async function admit(incoming: Incoming, dialect: Dialect, parts: Parts): Promise<Admitted | Refused> {
  let ask: Ask | null = null;
  try {
    const account = incoming.key === null ? (incoming.signedIn?.() ?? null) : parts.keys.account(incoming.key);
    if (account === null) return { refused: refuse("invalid_api_key"), ask };
    const body = await incoming.body();
    if (isRefusal(body)) return { refused: body, ask };
    // A small request may refer to a long stored conversation: a flood of them is refused before any is fetched.
    const refers = (dialect.references?.(body.json) ?? null) !== null;
    const flooded = refers ? parts.admission.refuseFlooded(account, parts.clock.wall()) : null;
    if (flooded !== null) return { refused: flooded, ask };
    const read = await readAsk(body, account, dialect, parts);
    const now = parts.clock.wall();
    if (isRefusal(read)) {
      // Parameters that cannot be served count for flood protection, an unknown model does not (design, order of checks).
      const counted = read.refusal === "unknown_model" ? null : parts.admission.countRequest(account, now);
      return { refused: counted ?? read, ask };
    }
    ask = read;
    const hold = parts.admission.admit(account, ask, incoming.requestId, now);
    return isRefusal(hold) ? { refused: hold, ask } : { account, ask, hold };
  } catch (error) {
    if (error instanceof StoreUnavailable) return { refused: refuse("quota_unverified"), ask };
    throw error;
  }
}

/** Reads a body together with the stored responses that it refers to. */
export async function readAsk(
  { json, bytes }: Body,
  account: AccountId,
  dialect: Dialect,
  { catalog, storedResponses }: Pick<Parts, "catalog" | "storedResponses">,
): Promise<Ask | Refusal> {
  const references = dialect.references?.(json) ?? null;
  if (references === null || storedResponses === null) return dialect.read(json, bytes, catalog);
  const earlier = await storedResponses.find(account, references);
  return isRefusal(earlier) ? earlier : dialect.read(json, bytes, catalog, earlier);
}

/**
 * Serves an admitted request; whatever happens, the outlet gets its last word and an unsettled hold goes back. How it
 * went is in `record`, for whoever counts or traces.
 */
export async function serve(
  { account, ask, hold: admitted }: Admitted,
  outlet: Outlet,
  parts: Parts,
  record = new RequestRecord("", ask.endpoint, 0, 0),
): Promise<void> {
  using hold = admitted;
  const { clock, log } = parts;
  try {
    if (hold.ready !== null) await hold.ready; // a coder call is on disk before the first byte goes out
    // No node fetches anything: what the request names by address is data before it waits for a place.
    using media = needsMedia(ask) ? await readMedia(ask, account, outlet.gone, parts, record) : null;
    const ending = await answer(media?.ask ?? ask, account, outlet, parts, record);
    if (ending.kind === "failed") return fail(ending.refusal, outlet, record);
    const { reason } = outlet.gone;
    if (ending.kind === "gone" && isRefusal(reason)) return fail(reason, outlet, record); // our own doing costs the client nothing
    record.settling = { from: clock.monotonic(), to: null };
    await hold.settle(ending.usage, ending.estimated, clock.wall()); // on disk before the client sees the end
    record.settling.to = clock.monotonic();
    record.answered(ending);
    if (ending.kind === "end") outlet.end(ending);
  } catch (error) {
    const { requestId } = record;
    if (!(error instanceof StoreUnavailable)) log("error", "request failed", { requestId, error: String(error) });
    fail(refuse(error instanceof StoreUnavailable ? "quota_unverified" : "internal"), outlet, record);
  }
}

function fail(refusal: Refusal, outlet: Outlet, record: RequestRecord): void {
  record.failed(refusal.refusal);
  outlet.fail(refusal);
}

/** Null where nothing reads media: then what is not inline is left out by the node's request. */
async function readMedia(
  ask: Ask,
  account: AccountId,
  gone: AbortSignal,
  { media, clock }: Parts,
  record: RequestRecord,
): Promise<ReadyAsk | null> {
  if (media === undefined) return null;
  const from = clock.monotonic();
  const ready = await media.ready(ask, account, gone);
  record.media = { from, to: clock.monotonic() };
  return ready;
}

/** One answer: a round of generation, or as many as the calls of our own tools take. */
function answer(ask: Ask, account: AccountId, outlet: Outlet, parts: Parts, record: RequestRecord): Promise<Ending> {
  const { gone } = outlet;
  const { checker, clock, log, toolLoop } = parts;
  const sink = record.gap === null ? outlet : new GapSink(outlet, clock, record.gap);
  const generation: Round = async (ask, sink) => {
    const ending = await generate(ask, account, gone, sink, parts, record);
    // What is not charged needs no count: a failure, and an end of our own doing.
    if (ending.kind === "failed" || !ending.estimated || isRefusal(gone.reason)) return ending;
    return withCountedInput(ending, ask, account, parts);
  };
  const isChecked = checker !== undefined && wantsForm(ask);
  const round = isChecked
    ? structuredOutput(generation, { checker, account, log, repeated: () => void (record.repeats += 1) })
    : generation;
  if (toolLoop === undefined) return round(ask, sink);
  const called = (isSearch: boolean) => {
    const from = clock.monotonic();
    return (failed: boolean) => void record.addToolCall({ isSearch, failed, from, to: clock.monotonic() });
  };
  const counted: Round = (ask, sink) => {
    record.toolRounds += 1;
    return round(ask, sink);
  };
  return toolLoop.answer(ask, { account, gone, called }, sink, counted);
}

/** The size of a body says little about its tokens, so that an input which nobody counted is counted before its charge. */
async function withCountedInput<Charged extends Exclude<Ending, { kind: "failed" }>>(
  ending: Charged,
  ask: Ask,
  account: AccountId,
  { countInput }: Parts,
): Promise<Charged> {
  const counted = (await countInput?.(ask, account)) ?? null;
  if (counted === null) return ending;
  const inputFresh = Math.min(counted, ask.model.contextTokens);
  return { ...ending, usage: { ...ending.usage, inputFresh, inputCached: 0 } };
}

/** Runs the request on a node, and once on another if the first gave no byte of a reply. */
async function generate(
  ask: Ask,
  account: AccountId,
  gone: AbortSignal,
  sink: Sink,
  { pool, clock }: Parts,
  record: RequestRecord,
): Promise<Ending> {
  const first = await generateOnce();
  if (first.kind !== "failed" || !first.elsewhere || first.nodeName === null) return first;
  const second = await generateOnce(new Set([first.nodeName]));
  return second.kind === "failed" && second.nodeName === null ? first : second; // no other node: the first one's reason

  async function generateOnce(excluded?: ReadonlySet<string>): Promise<Ending & { nodeName: string | null }> {
    const round = record.beginRound(clock.monotonic());
    const place = await pool.enter(ask, account, gone, excluded);
    if (isRefusal(place)) {
      round.endedAt = clock.monotonic();
      return { kind: "failed", refusal: place, elsewhere: false, nodeName: null };
    }
    using slot = place;
    const { nodeName } = slot;
    round.node = nodeName;
    round.startedAt = clock.monotonic();
    const began = () => void (round.firstPieceAt = clock.monotonic());
    const ending = await slot.generate(ask, account, gone, sink, began);
    round.endedAt = clock.monotonic();
    round.ending = ending.kind;
    if (ending.kind !== "failed") round.usage = ending.usage;
    return { ...ending, nodeName };
  }
}
