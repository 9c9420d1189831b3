// The spine: a request's whole life in two functions. Everything else is called from here.
//
//   key -> principal -> body -> Ask -> Hold -> Slot -> Piece* -> charge on disk -> end
//
// What the client received is charged before it sees the end, even one with an error event, unless the gateway or a node
// failed. Every other exit gives the whole hold back, and every refusal is a row of core/refusals.ts.
import { type Outlook, outlookOf } from "./core/forecast.ts";
import { isPriority, priorities } from "./core/priority.ts";
import { standsAs, type Standing } from "./core/standing.ts";
import type { Catalog, KnownModels } from "./core/catalog.ts";
import { answersOf, asksForSeveral } from "./core/answer-budget.ts";
import { type Clock, momentOf } from "./core/clock.ts";
import type { Asker, BookKeys, RequestBooks } from "./account/money/books.ts";
import { endUserName, nobodyNamed } from "./core/end-user.ts";
import type { LargeBodies, LargeBody } from "./bodies/large-bodies.ts";
import { type AnyCancelSignal, CancelSignal, signalOf } from "./core/cancel-signal.ts";
import { GenerationBudget, mayAskAgain } from "./core/generation-budget.ts";
import { HeldBudget } from "./core/growing-budget.ts";
import type { AnswerEnd, Dialect, DialectRequest, Reading, RequestHead, Writer } from "./dialects/dialect.ts";
import { tooDeep } from "./dialects/request/field.ts";
import { earlierOf, bytesOf, type References, type StoredResponses } from "./dialects/stored-responses.ts";
import { busyRetrySeconds, largeBodyMinBytes } from "./core/limits.ts";
import type { Log } from "./core/log.ts";
import { refusedByLimits } from "./core/key-limits.ts";
import { standIns, withStandIns } from "./core/fallback.ts";
import { isRefusal, refuse } from "./core/refusals.ts";
import { withTagsOf } from "./core/request-tags.ts";
import type { Soon } from "./core/soon.ts";
import { GapSink } from "./telemetry/gap-sink.ts";
import { RequestRecord, type RoundRecord } from "./telemetry/request-record.ts";
import type { Media, ReadyAsk } from "./tools/media/media.ts";
import { expectedInput, mostInput } from "./tools/expected-input.ts";
import type { ModelHabits } from "./tools/model-habits.ts";
import { needsMedia } from "./tools/media/media-parts.ts";
import type { Checker } from "./tools/format/answer-checker.ts";
import type { Round } from "./tools/round.ts";
import type { ToolLoop } from "./tools/tool-loop.ts";
import {
  type AccountId,
  type Ask,
  type Ending,
  type GrowingBudget,
  type Hold,
  type Ms,
  OutcomeUnknown,
  type Principal,
  type Refusal,
  type Sink,
  type Slot,
  StoreUnavailable,
  type Usage,
  noUsage,
} from "./core/types.ts";
import { sumOfUsage } from "./core/usage.ts";

/** The parts of the gateway that a request meets, in order. */
export type GatewayParts = Readonly<{
  /** A key's expiry and allowed addresses are in its limits. */
  keys: Pick<BookKeys, "principal" | "principalNow">;
  catalog: Catalog;
  admission: RequestBooks;
  /** How models behave, as their answers have shown. */
  habits: Pick<ModelHabits, "expected" | "saw">;
  /** The header in which programs name their end user; null: none. */
  endUserHeader?: () => string | null;
  /**
   * Whether other parts must serve a request; null: one that has a large body or refers to a stored response. Absent:
   * all are served here.
   */
  isForOthers?: (ask: Ask | null) => boolean;
  pool: {
    enter(
      ask: Ask,
      account: AccountId,
      cancelSignal: AnyCancelSignal,
      excluded?: ReadonlySet<string>,
      standing?: Standing,
    ): Soon<Slot | Refusal>;
    /** What a request that waits can expect; null where it does not wait (anymore). Absent: nobody here knows. */
    forecastOf?(waiting: Promise<Slot | Refusal>): Outlook | null;
    /** Whether a node that is well serves the model. Absent: nobody here knows, and no model falls back. */
    isServed?(modelId: string): boolean;
  };
  /** The input tokens of a request for which no node reported any; null: not in time. Absent: estimates are charged. */
  countInput?: (ask: Ask, account: AccountId) => Promise<number | null>;
  /** Fetches and reads images and files. Absent: only inline images are kept. */
  media?: Pick<Media, "ready">;
  /** Runs the gateway's own tools between the rounds of an answer. Absent: there are none. */
  toolLoop?: Pick<ToolLoop, "answer" | "offeredBytes" | "offers">;
  /** Checks answers against the client's format. Absent: they are delivered as the node wrote them. */
  checker?: Checker;
  /** Reads large bodies in a Worker. Absent: all bodies are small. */
  largeBodies?: Pick<LargeBodies, "readAsk" | "readTokenize">;
  /** Null where nothing is stored: then no request can refer to an earlier one. */
  storedResponses: Pick<StoredResponses, "find" | "keep"> | null;
  clock: Clock;
  log: Log;
}>;

/** A request as the HTTP side received it. */
export type Incoming = Readonly<{
  requestId: string;
  /** Its path and headers. */
  head: RequestHead;
  /** Null: no key, or two different ones. */
  key: string | null;
  /** The account of a signed-in browser's request, which has no key. Null or absent: a key is required. */
  signedIn?: (() => Soon<Principal | null>) | null;
  /** The client's address where known. Absent: unknown. */
  address?: string | null;
  /** The body, or why it cannot be read. */
  body(account: AccountId): Promise<Body | Refusal>;
}>;

/** A parsed body and its size as sent, or a large one. `upload`: of a form, what is on the disk. */
export type Body = Readonly<{ json: unknown; bytes: number; upload?: Disposable }> | LargeBody;
export const isLarge = (body: Body): body is LargeBody => "body" in body;

/** Where an answer goes: the client's stream, or the collector of a non-streaming reply. */
export interface Outlet extends Sink {
  /** Aborted when the client leaves or stops reading; with a Refusal as its reason when the gateway ends the reply. */
  readonly cancelSignal: AnyCancelSignal;
  /** Whether a byte of the reply was written: a client that leaves before that has received nothing and pays nothing. */
  readonly opened: boolean;
  /** Whether part of the answer was written, beyond signs of life. */
  readonly delivered: boolean;
  /** The request waits in line; `forecast` says what it can expect now, and null once it no longer waits. */
  waits?(forecast: () => Outlook | null): void;
  /** The whole answer, where it must be on disk before its charge; rejects where it is not, and nothing is charged. */
  keep?(end: Extract<Ending, { kind: "end" }>): Promise<void>;
  /** The last word of a served request, whose charge is on disk. A promise where the reply must be stored first. */
  end(end: AnswerEnd): void | Promise<void>;
  /** The last word of a refused or failed request; the charge for what was delivered is on disk. */
  fail(refusal: Refusal): void;
  /** Breaks off the connection without a last word, because it is unknown whether the reply was charged. */
  breakOff(): void;
}

export type Admitted = Readonly<{
  principal: Principal;
  ask: Ask;
  hold: Hold;
  writer: Writer;
  /** The end user that the key's program named; null: it may not name any. */
  endUser: string | null;
}>;
/** Without an end user, the key's program asks for itself. */
type Served = Omit<Admitted, "writer" | "endUser"> & Partial<Pick<Admitted, "endUser">>;
/** Why a request is not served; `ask` is null before its body was read, `by` where its key is unknown. */
export type Refused = Readonly<{ refused: Refusal; ask: Ask | null; by: Principal | null }>;
export const isRefused = (result: Admitted | Refused): result is Refused => "refused" in result;
/** Other parts must serve it; nothing was counted or reserved for it here. */
export type ForOthers = "for others";

/**
 * Decides whether a request is served: 401 key, 413/400 body, 401 key again, 400 model, 429 flood, 429 coder calls or
 * balance.
 */
export async function admit(
  incoming: Incoming,
  dialect: Dialect,
  parts: GatewayParts,
): Promise<Admitted | Refused | ForOthers> {
  let ask: Ask | null = null;
  let by: Principal | null = null;
  /** What a Worker prepared from a large body, until an admitted request owns it. */
  let prepared: Disposable | null = null;
  try {
    const known = principalOf(incoming, parts);
    const first = known instanceof Promise ? await known : known;
    if (first === null) return { refused: refuse("invalid_api_key"), ask, by };
    by = first;
    const forbidden = refusedAs(first, incoming, parts);
    if (forbidden !== null) return { refused: forbidden, ask, by };
    const { account } = first;
    const body = await incoming.body(account);
    if (isRefusal(body)) return { refused: body, ask, by };
    // A small request may refer to a long stored conversation: a flood of them is refused before any is fetched, and a
    // flood of large bodies before any is read.
    const refers = isLarge(body) || (dialect.references?.(body.json) ?? null) !== null;
    if (refers && parts.isForOthers?.(null) === true) return "for others";
    if (!isLarge(body)) prepared = body.upload ?? null;
    const { modelKind } = dialect;
    const flooded = refers ? await parts.admission.refuseFlooded(account, parts.clock.monotonic(), modelKind) : null;
    if (flooded !== null) return { refused: flooded, ask, by };
    // The end user is read only where the key may name one.
    const forwardsUsers = first.limits?.forwardsUsers === true;
    const unsaid = await readAsk(incoming.head, body, first, dialect, parts, forwardsUsers);
    const read = withTags(withUrgency(unsaid, incoming.head), incoming.head);
    if (!isRefusal(read)) {
      ask = read.ask;
      prepared = ask.prepared ?? prepared;
    }
    // A client may take minutes to send its body: a key or session that became void meanwhile starts nothing.
    const stillKnown = principalOf(incoming, parts);
    const principal = stillKnown instanceof Promise ? await stillKnown : stillKnown;
    if (principal === null || principal.account !== account || principal.key !== first.key) {
      return { refused: refuse("invalid_api_key"), ask, by: null };
    }
    const forbiddenNow = refusedAs(principal, incoming, parts);
    if (forbiddenNow !== null) return { refused: forbiddenNow, ask, by };
    const now = momentOf(parts.clock);
    if (isRefusal(read)) {
      // Invalid parameters count for flood protection, an unknown model does not (design, order of checks).
      const counted =
        read.refusal === "unknown_model" ? null : await parts.admission.countRequest(account, now.monotonic, modelKind);
      return { refused: counted ?? read, ask, by };
    }
    if (parts.isForOthers?.(read.ask) === true) return "for others";
    const inputTokens = expectedInputWithTools(read.ask, account, parts);
    const expected = parts.habits.expected(read.ask, inputTokens);
    const endUser = forwardsUsers ? endUserOf(incoming.head, read, parts) : null;
    const { requestId } = incoming;
    const { key, keyHash } = principal;
    const asked = heldFor(asItself(read.ask, parts));
    const request = { account, key, keyHash, ask: asked, inputTokens, expected, requestId, endUser };
    const admitted = parts.admission.admit(request, now);
    const hold = admitted instanceof Promise ? await admitted : admitted;
    if (isRefusal(hold)) return { refused: hold, ask, by };
    prepared = null;
    return { principal, ask: read.ask, writer: read.writer, hold, endUser };
  } catch (error) {
    if (error instanceof StoreUnavailable) return { refused: refuse("quota_unverified"), ask, by };
    throw error;
  } finally {
    prepared?.[Symbol.dispose]();
  }
}

/** The headers win: they exist for programs whose bodies have no such fields. */
export function withUrgency(read: Reading | Refusal, { headers }: RequestHead): Reading | Refusal {
  const [priority, deadline] = [headers.get("x-priority"), headers.get("x-deadline-ms")];
  if ((priority === null && deadline === null) || isRefusal(read)) return read;
  const deadlineMs = deadline === null ? undefined : deadlineOf(deadline);
  const isKnown = priority === null || isPriority(priority);
  if (isKnown && deadlineMs !== null) {
    return { ...read, ask: { ...read.ask, priority: priority ?? read.ask.priority, deadlineMs } };
  }
  read.ask.prepared?.[Symbol.dispose]();
  const reason = isKnown
    ? `The header x-deadline-ms must be a whole number of milliseconds from 1 to ${deadlineMaxMs}`
    : `The header x-priority must be one of ${priorities.join(", ")}`;
  return refuse("malformed", { reason });
}

function withTags(read: Reading | Refusal, { headers }: RequestHead): Reading | Refusal {
  const header = headers.get("x-tags");
  if (header === null || isRefusal(read)) return read;
  const tags = withTagsOf(header, read.ask.tags);
  return tags === undefined ? read : { ...read, ask: { ...read.ask, tags } };
}

/** No line is longer, whatever the configuration says. */
const deadlineMaxMs = 3_600_000;

function deadlineOf(text: string): Ms | null {
  const ms = /^[0-9]{1,7}$/.test(text) ? Number(text) : 0;
  return ms >= 1 && ms <= deadlineMaxMs ? ms : null;
}

/** The header wins: an operator named it, and user interfaces send the same body for everyone. */
function endUserOf({ headers }: RequestHead, { endUser }: Reading, { endUserHeader }: GatewayParts): string {
  const header = endUserHeader?.() ?? null;
  const said = header === null ? null : headers.get(header);
  return said === null || said.trim() === "" ? (endUser ?? nobodyNamed) : endUserName(said);
}

/** Plans and keys must allow the model that serves the request, whatever it stands for. */
function asItself(ask: Ask, { catalog }: Pick<GatewayParts, "catalog">): Ask {
  const { id, standsFor } = ask.model;
  return standsFor === undefined ? ask : { ...ask, model: catalog.models.get(id) ?? ask.model };
}

/** The budget applies to each answer. */
const heldFor = (ask: Ask): Ask =>
  asksForSeveral(ask) ? { ...ask, outputTokensMax: ask.outputTokensMax * answersOf(ask), openBudget: undefined } : ask;

const expectedInputWithTools = (ask: Ask, account: AccountId, { toolLoop }: Pick<GatewayParts, "toolLoop">): number =>
  expectedInput(ask, toolLoop?.offeredBytes(ask, account));

/** Whose request it is, as known now: one map lookup for a known key. Null: no one's. */
const principalOf = ({ key, signedIn }: Incoming, { keys }: Pick<GatewayParts, "keys">): Soon<Principal | null> =>
  key === null ? (signedIn?.() ?? null) : keys.principal(key);

const refusedAs = (
  { limits }: Principal,
  { address }: Incoming,
  { clock }: Pick<GatewayParts, "clock">,
): Refusal | null => (limits === null ? null : refusedByLimits(limits, clock.wall(), address ?? null));

type ReadParts = Pick<GatewayParts, "catalog" | "storedResponses" | "largeBodies"> &
  Readonly<{ pool?: Pick<GatewayParts["pool"], "isServed">; admission: Pick<RequestBooks, "refuseModel"> }>;

/** Reads a body together with the stored responses that it refers to. */
export async function readAsk(
  head: RequestHead,
  body: Body,
  asker: Asker,
  dialect: Dialect,
  { catalog: all, storedResponses, largeBodies, pool, admission }: ReadParts,
  namesUser = false,
): Promise<Reading | Refusal> {
  const { account } = asker;
  const isServed = (id: string): boolean => pool?.isServed?.(id) !== false;
  const others = standIns(all, isServed);
  let catalog: KnownModels = all;
  if (others.length > 0) {
    const refusals = await Promise.all(others.map((model) => admission.refuseModel(asker, model)));
    catalog = withStandIns(
      all,
      isServed,
      others.filter((_, place) => refusals[place] === null),
    );
  }
  const find = storedResponses === null ? null : (references: References) => storedResponses.find(account, references);
  if (isLarge(body)) return largeBodies!.readAsk(head, body, account, dialect, catalog, find, null, namesUser);
  const { json, bytes } = body;
  const request: DialectRequest = { head, body: json, bodyBytes: bytes, catalog, namesUser };
  const references = dialect.references?.(json) ?? null;
  // A body that nests too deep is refused by its dialect: nothing is fetched for it, and it could not be written for a
  // Worker.
  if (references === null || find === null || tooDeep(json)) return dialect.read(request);
  const earlier = await find(references);
  if (isRefusal(earlier)) return earlier;
  if (largeBodies === undefined || bytesOf(earlier) < largeBodyMinBytes) {
    return dialect.read({ ...request, earlier: earlierOf(earlier) });
  }
  // What was found may be as large as a body.
  const encoded = new TextEncoder().encode(JSON.stringify(json));
  const large = { body: encoded, bytes, cancelSignal: neverCancelled };
  return largeBodies.readAsk(head, large, account, dialect, catalog, find, earlier, namesUser);
}

const neverCancelled = new AbortController().signal;

/** What every step of serving a request needs. */
type Serving = Readonly<{
  account: AccountId;
  standing: Standing;
  hold: Hold;
  outlet: Pick<Outlet, "cancelSignal" | "opened" | "waits">;
  cancelSignal: AnyCancelSignal;
  parts: GatewayParts;
  record: RequestRecord;
}>;

/** Its client left before a byte of the reply was written. */
const isUnheard = ({ cancelSignal, opened }: Pick<Outlet, "cancelSignal" | "opened">): boolean =>
  cancelSignal.aborted && !opened && !isRefusal(cancelSignal.reason);

/**
 * Serves an admitted request. Whatever happens, the outlet gets its last word and an unsettled hold goes back. `record`
 * gets the course of the request, for metrics and traces.
 */
export async function serve(
  { principal: { account, key, limits }, ask: asked, hold: admitted, endUser = null }: Served,
  outlet: Outlet,
  parts: GatewayParts,
  record = new RequestRecord("", asked.endpoint, 0, 0),
): Promise<void> {
  using hold = admitted;
  using _conversation = asked.prepared;
  using _upload = asked.voice?.kind === "heard" ? asked.voice.file : null;
  const { clock, log } = parts;
  const person = limits?.member ?? null;
  const whose = standsAs(person, endUser === nobodyNamed ? null : endUser, key);
  const beginBy = asked.deadlineMs === undefined ? undefined : record.arrivedAt + asked.deadlineMs;
  const standing = { ...whose, weight: limits?.weight ?? 1, priority: admitted.priority ?? "standard", beginBy };
  record.priority = standing.priority;
  const serving: Serving = { account, standing, outlet, hold, cancelSignal: outlet.cancelSignal, parts, record };
  try {
    if (asked.warms === true) return await endWarm(hold, outlet, record);
    if (hold.ready !== null) {
      // A coder call is on disk before the first byte goes out; others wait for requests of their account to settle.
      outlet.waits?.(outlookOf(() => hold.position?.() ?? null, clock.monotonic));
      const refusal = await begun(hold, outlet.cancelSignal);
      if (refusal !== null) return fail(refusal, hold, outlet, record);
    }
    const held = hold.outputHeld ?? null;
    const counted = { ...asked, generations: new GenerationBudget(answersOf(asked)) };
    const ask =
      held === null ? counted : { ...counted, outputTokensMax: held.most, growing: new HeldBudget(hold, held, clock) };
    // Nodes fetch nothing: media given by address become data before the request waits for a slot.
    using media = needsMedia(ask) ? await readMedia(ask, serving) : null;
    if (media !== null && media.refusal !== null) return fail(media.refusal, hold, outlet, record);
    // Its files are texts now.
    if (media !== null) {
      const { input } = parts.habits.expected(media.ask, expectedInputWithTools(media.ask, account, parts));
      await hold.expect?.(noUsage, input, clock.wall());
    }
    let ending = await answer(media?.ask ?? ask, outlet, serving);
    const { reason } = outlet.cancelSignal;
    // A failed answer that misses its format is charged for what was delivered; any other failure costs nothing.
    const owes = ending.kind === "failed" && outlet.delivered && ending.delivered !== undefined;
    if (ending.kind === "failed" && !owes) return fail(ending.refusal, hold, outlet, record);
    // what the gateway itself does costs the client nothing
    if (ending.kind !== "end" && isRefusal(reason)) return fail(reason, hold, outlet, record);
    if (isUnheard(outlet)) return record.left();
    const { usage, estimated } = ending.kind === "failed" ? ending.delivered! : ending;
    if (ending.kind === "end" && outlet.keep !== undefined) await outlet.keep(ending);
    const answeredAt = clock.monotonic();
    record.settling = { from: answeredAt, to: null };
    const charged = await hold.settle(usage, estimated, clock.wall(), record.course(answeredAt)); // on disk before the client sees the end
    record.settling.to = clock.monotonic();
    if (ending.kind === "failed") {
      record.failed(ending.refusal.refusal, { usage: charged, estimated: estimated || charged !== usage });
      return outlet.fail(ending.refusal);
    }
    if (charged !== usage) ending = { ...ending, usage: charged, estimated: true };
    record.answered(ending);
    if (ending.kind !== "end") return;
    const ended = outlet.end(ending);
    if (ended !== undefined) await ended;
  } catch (error) {
    const { requestId } = record;
    if (error instanceof OutcomeUnknown) {
      record.failed("quota_unverified");
      return outlet.breakOff();
    }
    if (!(error instanceof StoreUnavailable)) log("error", "request failed", { requestId, error: String(error) });
    fail(refuse(error instanceof StoreUnavailable ? "quota_unverified" : "internal"), hold, outlet, record);
  }
}

/** Nothing was generated, so nothing is charged. */
function endWarm(hold: Hold, outlet: Outlet, record: RequestRecord): void | Promise<void> {
  hold[Symbol.dispose]();
  const nothing = { kind: "end", reason: "stop", stopSequence: null, usage: noUsage, estimated: false } as const;
  record.answered(nothing);
  return outlet.end(nothing);
}

/** Why the request does not begin, or null. A client that leaves gives up its place in line. */
async function begun(hold: Hold, cancelSignal: AnyCancelSignal): Promise<Refusal | null> {
  const leave = (): void => hold[Symbol.dispose]();
  if (cancelSignal.aborted) leave();
  else cancelSignal.addEventListener("abort", leave, { once: true });
  const refusal = await hold.ready;
  cancelSignal.removeEventListener("abort", leave);
  if (!cancelSignal.aborted) return refusal;
  return isRefusal(cancelSignal.reason) ? cancelSignal.reason : (refusal ?? left);
}

/** No one reads it. */
const left = refuse("busy", { seconds: busyRetrySeconds });

/** Gives the hold back first, because the client may retry as soon as it sees the failure. */
function fail(refusal: Refusal, hold: Hold, outlet: Outlet, record: RequestRecord): void {
  record.failed(refusal.refusal);
  hold[Symbol.dispose]();
  outlet.fail(refusal);
}

/** Null where nothing reads media: then the node's request leaves out what is not inline. */
async function readMedia(ask: Ask, { account, cancelSignal, parts, record }: Serving): Promise<ReadyAsk | null> {
  const { media, clock } = parts;
  if (media === undefined) return null;
  const from = clock.monotonic();
  const ready = await media.ready(ask, account, signalOf(cancelSignal));
  record.media = { from, to: clock.monotonic() };
  return ready;
}

/** All the output of a request: one answer, or several. */
function answer(ask: Ask, outlet: Outlet, serving: Serving): Promise<Ending> {
  const { hold, cancelSignal, parts, record } = serving;
  const { clock } = parts;
  const content = record.trace?.content ?? null;
  const heard = content?.isOf(record.account) === true ? content.listen(outlet) : outlet;
  const sink = record.gap === null ? heard : new GapSink(heard, clock, record.gap);
  const expect: Expect = (spent, inputTokens) => {
    const isWithin = hold.expect?.(spent, inputTokens, clock.wall()) ?? true;
    if (ask.growing === undefined) return isWithin;
    ask.growing.spent = spent.output;
    return hasRoom(ask.growing, isWithin);
  };
  if (!asksForSeveral(ask)) return oneAnswer(ask, sink, serving, expect);
  const stop = new CancelSignal();
  const spentBy = new Map<number, Usage>();
  const roundOf =
    (index: number): Round =>
    (ask, sink) =>
      oneAnswer(ask, sink, { ...serving, cancelSignal: stop }, (spent, inputTokens) => {
        spentBy.set(index, spent);
        return expect([...spentBy.values()].reduce(sumOfUsage), inputTokens);
      });
  return import("./tools/several-answers.ts").then(({ severalAnswers }) =>
    severalAnswers(ask, sink, cancelSignal, stop, roundOf),
  );
}

/** Whether another round may begin after rounds with the usage `spent`. */
type Expect = (spent: Usage, inputTokens: number) => boolean | Promise<boolean>;

/** What plain requests do without. */
const loadRetries = () =>
  Promise.all([import("./tools/format/structured-output.ts"), import("./tools/retried-in-words.ts")]);
let retries: Awaited<ReturnType<typeof loadRetries>> | null = null;

/** One round of generation, or as many as the calls of our own tools take. */
function oneAnswer(ask: Ask, sink: Sink, serving: Serving, goesOn: Expect): Promise<Ending> {
  const { account, parts } = serving;
  // There is nothing to enforce, and nothing to run.
  const isPlain = ask.tools.length === 0 && ask.format === null && parts.toolLoop?.offers(ask, account) !== true;
  return isPlain ? generateCounted(ask, sink, serving) : enforcedAnswer(ask, sink, serving, goesOn);
}

async function enforcedAnswer(ask: Ask, sink: Sink, serving: Serving, goesOn: Expect): Promise<Ending> {
  const { account, cancelSignal, parts, record } = serving;
  const { checker, clock, log, toolLoop } = parts;
  const [{ structuredOutput, wantsForm }, { retriedInWords }] = (retries ??= await loadRetries());
  const isChecked = checker !== undefined && wantsForm(ask);
  const repeated = () => void (record.repeats += 1);
  const generation = retriedInWords((ask, sink) => generateCounted(ask, sink, serving), { log, repeated });
  const round = isChecked ? structuredOutput(generation, { checker, account, log, repeated }) : generation;
  if (toolLoop === undefined) return round(ask, sink);
  const called = (isSearch: boolean) => {
    const from = clock.monotonic();
    return (failed: boolean) => void record.addToolCall({ isSearch, failed, from, to: clock.monotonic() });
  };
  const counted: Round = (ask, sink) => {
    record.toolRounds += 1;
    return round(ask, sink);
  };
  return toolLoop.answer(ask, { account, cancelSignal: signalOf(cancelSignal), called, goesOn }, sink, counted);
}

/** Whether another round may write anything. */
async function hasRoom(growing: GrowingBudget, isWithin: Soon<boolean>): Promise<boolean> {
  if (!(await isWithin)) return false;
  await growing.grow(0);
  return growing.outputTokens > 0;
}

/** A generation with counted input. Its usage predicts that of others. */
async function generateCounted(ask: Ask, sink: Sink, serving: Serving): Promise<Ending> {
  const ending = await generateAndCount(ask, sink, serving);
  const { account, parts, record } = serving;
  // A repeat's prompt contains the misfit, which no client sent and no one pays for.
  if (ending.kind !== "failed" && record.repeats === 0) {
    parts.habits.saw(ask, expectedInputWithTools(ask, account, parts), ending.usage);
  }
  return ending;
}

async function generateAndCount(ask: Ask, sink: Sink, serving: Serving): Promise<Ending> {
  const ending = await tryNodes(ask, sink, serving);
  // Only charges need a count: not a failure, an end by the gateway itself, or an answer that was not heard.
  if (ending.kind === "failed" || !ending.estimated || isRefusal(serving.cancelSignal.reason)) return ending;
  if (isUnheard(serving.outlet) || ask.voice !== undefined) return ending;
  return withCountedInput(ending, ask, serving);
}

/** A body's size says little about its tokens, so an input that no node counted is counted before its charge. */
async function withCountedInput<Charged extends Exclude<Ending, { kind: "failed" }>>(
  ending: Charged,
  ask: Ask,
  { account, parts }: Serving,
): Promise<Charged> {
  const counted = (await parts.countInput?.(ask, account)) ?? null;
  if (counted === null) return ending;
  const inputFresh = Math.min(counted, mostInput(ask));
  return { ...ending, usage: { ...ending.usage, inputFresh, inputCached: 0 } };
}

/** Runs the request on a node, and once on another if the first gave no byte of a reply. */
async function tryNodes(ask: Ask, sink: Sink, serving: Serving): Promise<Ending> {
  const { parts, record } = serving;
  const round = record.beginRound(parts.clock.monotonic());
  const tried: Tried = { nodes: none };
  const first = await tryNode(ask, sink, serving, round, tried);
  if (first.kind !== "failed" || first.elsewhere === false || round.node === null || !mayAskAgain(ask)) return first;
  const again = record.beginRound(parts.clock.monotonic());
  const second = await tryNode(ask, sink, serving, again, tried);
  return second.kind === "failed" && again.node === null ? first : second; // no other node: the first one's reason
}

/** The nodes that must not be asked again. */
type Tried = { nodes: ReadonlySet<string> };
const none: ReadonlySet<string> = new Set();

async function tryNode(
  ask: Ask,
  sink: Sink,
  { account, standing, cancelSignal, outlet, parts: { pool, clock }, record }: Serving,
  round: RoundRecord,
  tried: Tried,
): Promise<Ending> {
  // The answer has begun with its first round.
  const waits = record.toolRounds > 1 ? { ...standing, beginBy: undefined } : standing;
  const entered = pool.enter(ask, account, cancelSignal, tried.nodes, waits);
  if (entered instanceof Promise) outlet.waits?.(() => pool.forecastOf?.(entered) ?? null);
  const place = entered instanceof Promise ? await entered : entered;
  if (isRefusal(place)) {
    round.endedAt = clock.monotonic();
    return { kind: "failed", refusal: place, elsewhere: false };
  }
  using slot = place;
  round.node = slot.nodeName;
  round.startedAt = entered instanceof Promise ? clock.monotonic() : round.queuedAt;
  const began = () => void (round.firstPieceAt = clock.monotonic());
  const ending = await slot.run(ask, account, cancelSignal, sink, began);
  round.endedAt = clock.monotonic();
  round.ending = ending.kind;
  if (ending.kind === "failed") round.cause = slot.cause ?? null;
  if (ending.kind !== "failed") round.usage = ending.usage;
  else tried.nodes = ending.elsewhere === "unlike" ? slot.alike(ask.model.id) : new Set([slot.nodeName]);
  return ending;
}
