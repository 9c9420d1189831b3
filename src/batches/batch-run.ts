// Runs one batch: its lines, as many at once as nodes take, each through the spine as any request; and at the end its files.
//
//   validating    every line is read; where one is wrong, none runs
//   in progress   lines that the log does not know run; answers that the ledger does not know are charged
//   finalizing    all answers are charged, nothing runs: the files are written from the log
//
// It may be stopped at any moment, by a kill, too. Whoever runs it next begins with what is on disk.
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { billedTokens, ratesOf } from "../account/money/price.ts";
import type { BookKeys, Books } from "../account/money/books.ts";
import { largeBodyMinBytes, smallBodyTokensMax } from "../core/limits.ts";
import { isRefusal, messageOf, refusals, refuse, type RefusalName } from "../core/refusals.ts";
import {
  type AccountId,
  type Ask,
  type Endpoint,
  type Model,
  type Ms,
  noKey,
  type Plan,
  type Principal,
  type Refusal,
  type Slot,
  type Usage,
} from "../core/types.ts";
import { momentOf } from "../core/clock.ts";
import type { WorkerClient } from "../core/workers.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { Files, FileWriter } from "../files/files.ts";
import { admit, type Admitted, type Body, type GatewayParts, isRefused, serve } from "../gateway.ts";
import type { RequestWatch } from "../http/metrics/request-watch.ts";
import { RequestRecord } from "../telemetry/request-record.ts";
import { readBodyJson } from "../bodies/body-json.ts";
import { type Batch, type BatchEnd, hasEnded, noSums } from "./batch.ts";
import { type Answered, BatchLog, recordsOf } from "./batch-log.ts";
import { batchPriced } from "./batch-price.ts";
import { answerLost, lineRequestId, repliedLine, type Unrun, unrunLine } from "./line-error.ts";
import { LineOutlet } from "./line-outlet.ts";
import { type LineIndex, type ModelLines, runBody } from "./lines.ts";
import type { LinesCall, Split } from "./lines-worker.ts";

/**
 * Lines of a model, for each of its nodes, whose answers have not begun. An engine reads prompts in the order in which they come,
 * so that somebody who chats waits behind these; and answers that began together end together, with as many prompts at once.
 * Where answers have no beginning, as embeddings, an engine that waits for prompts would be idle.
 */
const unbegunMost = 16;
const unbegunUsual = 2;
/** Of shorter answers more begin in a step. */
const shortTokens = 32;
/** Between one that begins and the next, with some to spare: so many keep an engine full for each that ends in a step. */
const stepsOfPrompt = 2.4;
const linesAtOnceMax = 2_048;
/** What lines under way may have in bodies, and in large answers. */
const bodiesBytesMax = 64 * 1024 * 1024;
const answersBytesMax = 256 * 1024 * 1024;
/** Shorter lines are read here, at once. */
const splitMinBytes = 64 * 1024;
/** Where a line cannot run now: from the first wait to the longest. */
const pauseMinMs = 1_000;
const pauseMaxMs = 15_000;
/** Of a line that a node failed. */
const triesMax = 3;

const batchesEndpoint: Record<Batch["form"], Endpoint> = {
  openai: "/v1/batches",
  anthropic: "/v1/messages/batches",
};

export type BatchRunParts = Readonly<{
  gateway: GatewayParts & Readonly<{ admission: Pick<Books, "admit" | "refuseModel"> }>;
  dialectAt(endpoint: Endpoint): Dialect;
  watch: Pick<RequestWatch, "refused" | "admitted" | "replied" | "ended">;
  worker: Pick<WorkerClient<LinesCall>, "call">;
  files: Pick<Files, "get" | "read" | "writer" | "remove" | "accountBytesMax" | "hasRoom">;
  ofHash: BookKeys["ofHash"];
  planOf(account: AccountId): Plan;
  /** Whether the ledger has a charge with this key. */
  isCharged(requestId: string): Promise<boolean>;
  /** Whether this gateway is still the one that runs the batch. */
  isOurs(): boolean;
  /** Whether other gateways may run it. */
  isShared: boolean;
  save(batch: Batch, durably: boolean): Promise<void>;
}>;

type Group = ModelLines & {
  next: number;
  /** Those that serve it, as far as lines have come to them. */
  nodes: Set<string>;
  unbegun: number;
  pausedUntil: Ms;
  pauseMs: Ms;
  later: { place: number; at: Ms }[];
};

type Line = Readonly<{ place: number; customId: string; record: RequestRecord }>;

/** How a line ended, or why it must run again. */
type Outcome = "done" | Readonly<{ later: Refusal }> | Readonly<{ isVoid: Refusal }>;

/** What will be otherwise later. All else is an answer to the line, or a fault that may be of the line. */
const waitsFor: ReadonlySet<RefusalName> = new Set<RefusalName>([
  ...([
    "busy",
    "busy_unreachable",
    "busy_unlisted",
    "model_unreachable",
    "model_unlisted",
    "model_unavailable",
  ] as const),
  ...([
    "model_paused",
    "quota_exceeded",
    "budget_over_quota",
    "key_quota_exceeded",
    "end_user_quota_exceeded",
    "member_quota_exceeded",
  ] as const),
  ...([
    "budget_over_key_quota",
    "budget_over_end_user_quota",
    "budget_over_member_quota",
    "coder_quota_reached",
    "quota_unverified",
  ] as const),
  ...(["stopping", "too_many_requests", "rate_limited", "deadline_unmet"] as const),
]);
const mayBeOfNode: ReadonlySet<RefusalName> = new Set<RefusalName>([
  "node_failed",
  "internal",
  "answer_misfit",
  "not_called",
]);

export class BatchRun {
  readonly batch: Batch;
  readonly #folder: string;
  readonly #parts: BatchRunParts;
  readonly #dialect: Dialect;
  #index!: LineIndex;
  #input!: FileHandle;
  #log!: BatchLog;
  #groups: Group[] = [];
  /** By a line's place: 1 where it was answered or failed, or is under way. */
  #isTaken!: Uint8Array;
  #done = 0;
  readonly #owed = new Map<number, Answered>();
  readonly #models: Model[] = [];
  readonly #placeOfModel = new Map<Model, number>();
  readonly #tries = new Map<number, number>();
  readonly #open = new Map<number, LineOutlet | null>();
  #bodiesBytes = 0;
  #answersBytes = 0;
  #settling = false;
  #timer: Timer | null = null;
  #isClosed = false;
  /** Lines may have run of which the log does not know, as its disk was damaged. */
  readonly #isTakenUp: boolean;
  #isChanged = false;
  readonly #over = Promise.withResolvers<void>();

  constructor(batch: Batch, folder: string, parts: BatchRunParts) {
    this.batch = batch;
    this.#isTakenUp = batch.state !== "validating";
    this.#folder = folder;
    this.#parts = parts;
    this.#dialect = parts.dialectAt(batch.endpoint);
  }

  /** Resolves when it has ended, or was closed. Rejects where the disk or the database fails: then it may be run again. */
  async run(): Promise<void> {
    this.batch.waits = null; // until it has tried
    const path = join(this.#folder, "input.jsonl");
    this.#index = await this.#parts.worker.call<LineIndex>({ order: "index", path, endpoint: this.batch.endpoint });
    if (this.#isClosed) return;
    if (this.batch.state === "validating" && !(await this.#isValid())) return;
    this.#input = await open(path, "r");
    try {
      await this.#resume();
      this.#pump();
      await this.#over.promise;
      await this.#log.flush();
      if (!this.#isClosed) await this.#finish(path);
    } finally {
      if (this.#timer !== null) clearTimeout(this.#timer);
      await this.#log?.close();
      await this.#input.close();
    }
  }

  /** No more lines run; those under way end free of charge. */
  end(as: BatchEnd): void {
    if (this.batch.end !== null || hasEnded(this.batch)) return;
    this.batch.end = as;
    if (as === "cancelled") {
      this.batch.state = "cancelling";
      this.batch.cancellingAt = this.#parts.gateway.clock.wall();
    }
    this.#cut();
  }

  /** Lets go of it: lines under way end free of charge, and run again where it is taken up. */
  close(): void {
    this.#isClosed = true;
    this.#cut();
  }

  get underWay(): number {
    return this.#open.size + (this.#settling ? 1 : 0);
  }

  /** Whether something has changed since it was last asked. */
  takeChanged(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  #cut(): void {
    this.#isChanged = true;
    for (const outlet of this.#open.values()) outlet?.cancelSignal.abort(refuse("stopping"));
    if (this.#log !== undefined) this.#pump();
  }

  // ---------------------------------------------------------------- beginning

  /** Each of its models must be served and allowed; a wrong line ends it, and nothing has run. */
  async #isValid(): Promise<boolean> {
    const { batch } = this;
    const { gateway, save } = this.#parts;
    const { errors, models, starts } = this.#index;
    const found = [...errors];
    const principal = found.length === 0 ? await this.#principal() : null;
    for (const { model: name, first: line } of found.length === 0 ? models : []) {
      const model = gateway.catalog.models.get(name);
      const param = "body.model";
      const wrong =
        model === undefined
          ? refuse("unknown_model", { model: name })
          : principal === null
            ? refuse("invalid_api_key")
            : await gateway.admission.refuseModel(principal, model);
      if (wrong?.refusal === "quota_unverified") throw new Error(messageOf(wrong));
      const code = wrong === null ? "model_not_found" : (refusals[wrong.refusal].code ?? wrong.refusal);
      if (wrong !== null) found.push({ code, line, message: messageOf(wrong), param });
      else if (model!.kind !== this.#dialect.modelKind) {
        found.push({
          code: "model_not_found",
          line,
          message: `The model \`${name}\` is not one for ${batch.endpoint}`,
          param,
        });
      }
    }
    Object.assign(batch, { errors: found, total: starts.length, model: models[0]?.model ?? null });
    // Anthropic's form has no errors of a batch: each of its lines says why it has not run.
    const isRefused = found.length > 0 && batch.form === "openai";
    if (isRefused) Object.assign(batch, { state: "failed", end: "failed", total: 0, endedAt: gateway.clock.wall() });
    else {
      if (found.length > 0) batch.end = "failed";
      const state = batch.end === "cancelled" ? "cancelling" : "in_progress";
      Object.assign(batch, { state, startedAt: gateway.clock.wall() });
    }
    await save(batch, true);
    if (isRefused) await rm(join(this.#folder, "input.jsonl"), { force: true });
    return !isRefused;
  }

  /** What the log knows is done, or owed. */
  async #resume(): Promise<void> {
    const { order, models } = this.#index;
    this.#isTaken = new Uint8Array(order.length);
    const sums = (this.batch.sums = { ...noSums });
    const path = join(this.#folder, "log");
    let end = 0;
    for await (const record of recordsOf(path)) {
      ({ end } = record);
      const { head } = record;
      if ("charged" in head) {
        const answered = this.#owed.get(head.charged);
        if (answered !== undefined) this.#isPaid(answered, head.billed);
      } else if ("failed" in head) {
        this.#owed.delete(head.failed);
        this.#isTaken[head.failed] = 1;
        this.#done += 1;
        sums.failed += 1;
      } else if (head.answered === undefined) this.#models[head.model] = head.as as Model;
      else {
        this.#isTaken[head.answered] = 1;
        this.#owed.set(head.answered, head);
      }
    }
    this.#log = await BatchLog.open(path, end, this.#parts.isShared);
    const lines = { unbegun: 0, pausedUntil: 0, pauseMs: pauseMinMs };
    this.#groups = models.map((model) => ({ ...model, ...lines, nodes: new Set(), next: model.from, later: [] }));
    for (const { answered, model } of this.#owed.values()) this.#models[model] ??= this.#modelOf(answered);
  }

  /** At today's price: the log has lost the one that the line had. */
  #modelOf(place: number): Model {
    const at = this.#index.order.indexOf(place);
    const name = this.#groups.find(({ from, to }) => at >= from && at < to)!.model;
    const model = this.#parts.gateway.catalog.models.get(name);
    if (model === undefined) throw new Error(`the price of ${name} is lost, and it is not served`);
    return batchPriced(model, this.#parts.planOf(this.batch.account));
  }

  #isPaid({ answered, usage }: Answered, billed: number): void {
    const { sums } = this.batch;
    this.#owed.delete(answered);
    this.#done += 1;
    sums.completed += 1;
    sums.input += usage.inputFresh;
    sums.cachedInput += usage.inputCached;
    sums.output += usage.output;
    sums.reasoning += usage.reasoning;
    sums.billed += billed;
    this.#isChanged = true;
  }

  // ---------------------------------------------------------------- lines

  /** Begins what may begin now. Called after every event. */
  #pump(): void {
    const { clock } = this.#parts.gateway;
    const isStopping = this.#isClosed || this.batch.end !== null;
    if (this.#owed.size > 0 && !this.#isClosed) void this.#settleOwed();
    if (isStopping || this.#done === this.#index.order.length) {
      if (this.#open.size === 0 && (this.#isClosed || (this.#owed.size === 0 && !this.#settling))) this.#over.resolve();
      return;
    }
    let next = Number.POSITIVE_INFINITY;
    for (const group of this.#groups) {
      const now = clock.monotonic();
      while (group.pausedUntil <= now && group.unbegun < this.#unbegunOf(group) && this.#hasRoom()) {
        const place = this.#take(group, now);
        if (place === null) break;
        this.#begin(group, place);
      }
      if (group.pausedUntil > now) next = Math.min(next, group.pausedUntil);
      else for (const { at } of group.later) next = Math.min(next, Math.max(at, now + pauseMinMs / 10));
    }
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = next === Number.POSITIVE_INFINITY ? null : setTimeout(() => this.#pump(), next - clock.monotonic());
  }

  #unbegunOf({ nodes }: Group): number {
    const { output, completed } = this.batch.sums;
    const count = Math.max(1, nodes.size);
    if (this.#dialect.modelKind !== "chat") return count * unbegunMost;
    const lines = completed / Math.max(1, output);
    const most = Math.min(unbegunMost, Math.max(unbegunUsual, Math.round(shortTokens * lines)));
    const endInStep = completed === 0 ? most : (this.#open.size / count) * lines;
    return count * Math.min(most, Math.max(1, Math.ceil(stepsOfPrompt * endInStep)));
  }

  #hasRoom(): boolean {
    return (
      this.#open.size < linesAtOnceMax && this.#bodiesBytes < bodiesBytesMax && this.#answersBytes < answersBytesMax
    );
  }

  #take(group: Group, now: Ms): number | null {
    const due = group.later.findIndex(({ at }) => at <= now);
    if (due !== -1) return group.later.splice(due, 1)[0]!.place;
    while (group.next < group.to) {
      const place = this.#index.order[group.next++]!;
      if (this.#isTaken[place] === 0) return place;
    }
    return null;
  }

  #begin(group: Group, place: number): void {
    const size = this.#index.sizes[place]!;
    this.#isTaken[place] = 1;
    this.#open.set(place, null);
    this.#bodiesBytes += size;
    group.unbegun += 1;
    let isWaiting = true;
    const leaves = (): void => {
      if (!isWaiting) return;
      isWaiting = false;
      group.unbegun -= 1;
      this.#pump();
    };
    this.#line(place, group.nodes, leaves)
      .catch((error: unknown): Outcome => {
        const { log } = this.#parts.gateway;
        log("error", "a line of a batch failed", { batch: this.batch.id, line: place, error: String(error) });
        return { later: refuse("internal") };
      })
      .then((outcome) => {
        this.#open.delete(place);
        this.#bodiesBytes -= size;
        if (outcome === "done") this.#goesOn(group);
        else if ("later" in outcome) this.#waits(group, place, outcome.later);
        else this.#isVoid(outcome.isVoid);
        leaves();
        this.#pump();
      })
      .catch((error: unknown) => this.#over.reject(error));
  }

  #goesOn(group: Group): void {
    group.pauseMs = pauseMinMs;
    group.pausedUntil = 0;
    this.batch.waits = null;
  }

  #waits(group: Group, place: number, why: Refusal): void {
    const now = this.#parts.gateway.clock.monotonic();
    group.later.push({ place, at: now + group.pauseMs });
    if (why.refusal === "stopping" || mayBeOfNode.has(why.refusal)) return;
    const { resets_at: at } = why.detail ?? {};
    const until =
      at === undefined ? "" : `; it goes on by ${new Date(Number(at) * 1000).toISOString()}, or once there is more`;
    this.batch.waits = messageOf(why) + until;
    this.#isChanged = true;
    if (group.pausedUntil > now) return; // of lines that were under way together, the first counts
    group.pausedUntil = now + group.pauseMs;
    group.pauseMs = Math.min(pauseMaxMs, 2 * group.pauseMs);
  }

  #isVoid(why: Refusal): void {
    if (this.batch.end !== null) return;
    const message = `${messageOf(why)}: the key of the batch is void, or its account disabled`;
    this.batch.errors = [{ code: why.refusal, message, line: null, param: null }];
    this.end("failed");
  }

  async #principal(): Promise<Principal | null> {
    const { account, keyHash } = this.batch;
    if (keyHash === null) return { account, key: noKey, limits: null };
    const found = await this.#parts.ofHash(keyHash);
    return found?.account === account ? found : null;
  }

  /** `begins` is called when its answer does. */
  async #line(place: number, nodes: Set<string>, begins: () => void): Promise<Outcome> {
    const { gateway, watch, files } = this.#parts;
    const { batch } = this;
    if (!files.hasRoom()) return { later: refuse("storage_full") };
    const { customId, body } = await this.#read(place);
    if (this.#isClosed || batch.end !== null) return { later: refuse("stopping") };
    const requestId = lineRequestId(batch.id, place);
    if (this.#isTakenUp && (await this.#parts.isCharged(requestId))) {
      gateway.log("error", "a batch's log has lost an answer that was charged", {
        batch: batch.id,
        request: requestId,
      });
      await this.#writeFailed(place, unrunLine(batch.form, requestId, customId, answerLost));
      return "done";
    }
    const { clock } = gateway;
    const record = new RequestRecord(requestId, batchesEndpoint[batch.form], clock.wall(), clock.monotonic());
    const head = { route: batch.endpoint, id: "", search: "", headers: new Headers() };
    const signedIn = () => this.#principal();
    const { address } = batch;
    record.address = address;
    const parts = this.#partsOf(nodes);
    const incoming = { requestId, head, key: null, signedIn, address, body: async () => body };
    const admitted = await admit(incoming, this.#dialect, parts);
    if (admitted === "for others") throw new Error("the main thread serves all lines");
    const line = { place, customId, record };
    if (isRefused(admitted)) {
      watch.refused(record, admitted);
      return this.#failed(line, admitted.refused);
    }
    const watched = watch.admitted(record, admitted.principal, admitted.ask, admitted.endUser);
    const { outlet, room, isOwed } = this.#outletOf(line, admitted, begins);
    this.#open.set(place, outlet);
    if (this.#isClosed || batch.end !== null) outlet.cancelSignal.abort(refuse("stopping"));
    try {
      await serve(admitted, outlet, parts, record);
    } finally {
      watch.ended(record, watched);
      this.#answersBytes -= room.taken;
    }
    const answered = isOwed();
    if (outlet.isUnkept) return { later: refuse("storage_full") };
    if (answered === null) return this.#failed(line, outlet.failure ?? refuse("internal"), admitted.ask);
    if (outlet.charged === null) this.#owed.set(place, answered);
    else this.#wasCharged(answered, outlet.charged);
    watch.replied(record, 200);
    return "done";
  }

  #outletOf({ place, customId, record }: Line, { ask, writer, endUser }: Admitted, begins: () => void) {
    const { requestId, arrivedWall } = record;
    const room = { taken: 0 };
    let owed: Answered | null = null;
    const outlet = new LineOutlet({
      encoder: writer.encoder({ requestId, createdSeconds: Math.floor(arrivedWall / 1000) }, "whole", null),
      begins,
      takeRoom: (bytes) => {
        room.taken += bytes;
        this.#answersBytes += bytes;
        return this.#answersBytes <= answersBytesMax || this.#answersBytes === room.taken;
      },
      keep: async ({ usage, estimated }, reply) => {
        const model = this.#placeOf(ask.model);
        const answered = { answered: place, model, usage, estimated, ...(endUser === null ? {} : { endUser }) };
        await this.#log.write(answered, repliedLine(this.batch.form, requestId, customId, 200, reply));
        // Another gateway reads the log no sooner than this one has ceased to be sure.
        if (!this.#parts.isOurs()) throw new Error("another gateway runs the batch now");
        owed = answered;
      },
    });
    return { outlet, room, isOwed: (): Answered | null => owed };
  }

  /** It runs again later, or never: then the client gets why. */
  async #failed({ place, customId, record }: Line, why: Refusal, ask: Ask | null = null): Promise<Outcome> {
    if (waitsFor.has(why.refusal)) return { later: why };
    if (why.refusal === "invalid_api_key" || why.refusal === "address_not_allowed") return { isVoid: why };
    const tries = (this.#tries.get(place) ?? 0) + 1;
    if (mayBeOfNode.has(why.refusal) && tries < triesMax) {
      this.#tries.set(place, tries);
      return { later: why };
    }
    this.#tries.delete(place);
    const status = this.#dialect.statusOf(why, ask);
    await this.#writeRefused(place, customId, status, why);
    this.#parts.watch.replied(record, status);
    return "done";
  }

  #writeRefused(place: number, customId: string, status: number, why: Refusal): Promise<void> {
    const { id, form } = this.batch;
    const requestId = lineRequestId(id, place);
    const error = this.#dialect.errorBody(why, requestId);
    return this.#writeFailed(place, repliedLine(form, requestId, customId, status, error));
  }

  async #writeFailed(place: number, shown: string): Promise<void> {
    await this.#log.write({ failed: place }, shown);
    this.#done += 1;
    this.batch.sums.failed += 1;
    this.#isChanged = true;
  }

  #wasCharged(answered: Answered, usage: Usage): void {
    const billed = billedTokens(ratesOf(this.#models[answered.model]!.price), usage);
    this.#log.note({ charged: answered.answered, billed });
    this.#isPaid(answered, billed);
  }

  /** A model is written once, at the price that its lines have. */
  #placeOf(model: Model): number {
    let place = this.#placeOfModel.get(model);
    if (place !== undefined) return place;
    place = this.#models.push(batchPriced(model, this.#parts.planOf(this.batch.account))) - 1;
    this.#placeOfModel.set(model, place);
    this.#log.note({ model: place, as: this.#models[place] });
    return place;
  }

  async #read(place: number): Promise<Readonly<{ customId: string; body: Body | Refusal }>> {
    const { endpoint } = this.batch;
    const size = this.#index.sizes[place]!;
    const line = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await this.#input.read(line, 0, size, this.#index.starts[place]!);
    if (bytesRead < size) throw new Error("the input file has become shorter");
    if (size < splitMinBytes) {
      const json = JSON.parse(line.toString()) as { custom_id: string; body: object };
      return { customId: json.custom_id, body: { json: runBody(endpoint, json.body), bytes: size } };
    }
    const { customId, body } = await this.#parts.worker.call<Split>(
      { order: "split", line, endpoint },
      { moved: [line.buffer as ArrayBuffer] },
    );
    const large = { body, bytes: body.byteLength, cancelSignal: new AbortController().signal };
    if (body.byteLength >= largeBodyMinBytes) return { customId, body: large };
    const json = readBodyJson(new TextDecoder().decode(body), smallBodyTokensMax);
    if (json === null) return { customId, body: large };
    return { customId, body: isRefusal(json) ? json : { json: json.value, bytes: body.byteLength } };
  }

  /** The gateway's parts as a line sees them. `nodes` gets the name of the node that it comes to. */
  #partsOf(nodes: Set<string>): GatewayParts {
    const { gateway } = this.#parts;
    const { pool, admission } = gateway;
    const own: Pick<GatewayParts, "admission" | "pool"> = {
      admission: {
        countRequest: () => null,
        refuseFlooded: () => null,
        refuseModel: (...asked) => admission.refuseModel(...asked),
        admit: (request, now) => {
          const model = this.#models[this.#placeOf(request.ask.model)]!;
          return admission.admit({ ...request, ask: { ...request.ask, ...this.#asked, model } }, now);
        },
      },
      pool: {
        ...(pool.isServed === undefined ? {} : { isServed: (model) => pool.isServed!(model) }),
        enter: (...asked) => {
          const noted = (place: Slot | Refusal): Slot | Refusal => {
            if (!isRefusal(place)) nodes.add(place.nodeName);
            return place;
          };
          const entered = pool.enter(...asked);
          return entered instanceof Promise ? entered.then(noted) : noted(entered);
        },
      },
    };
    return Object.assign(Object.create(gateway) as GatewayParts, own);
  }

  /** What a line's books know of it: it is charged by its tokens, whatever else its model's calls are. */
  get #asked() {
    const endpoint = batchesEndpoint[this.batch.form];
    return { endpoint, coderBilling: "tokens", priority: "bulk", batch: true } as const;
  }

  // ---------------------------------------------------------------- charges

  /** Charges answers whose charge is not known of: after a kill, or where the ledger failed. */
  async #settleOwed(): Promise<void> {
    const owed = [...this.#owed].filter(([place]) => !this.#open.has(place));
    if (this.#settling || owed.length === 0) return;
    this.#settling = true;
    let pauseMs = 0;
    for (const [place, answered] of owed) {
      if (this.#isClosed) break;
      const why = await this.#settle(place, answered).catch((error: unknown) => {
        this.#parts.gateway.log("warn", "an answer of a batch waits for its charge", { error: String(error) });
        return refuse("quota_unverified");
      });
      if (why === null) continue;
      this.batch.waits = messageOf(why);
      pauseMs = pauseMinMs * 5;
      break;
    }
    const again = (): void => {
      this.#settling = false;
      this.#pump();
    };
    if (pauseMs === 0 || this.#isClosed) again();
    else setTimeout(again, pauseMs);
  }

  /** Null: it is charged, or is not to be. */
  async #settle(place: number, answered: Answered): Promise<Refusal | null> {
    const { gateway, isCharged, isOurs } = this.#parts;
    const { batch } = this;
    const requestId = lineRequestId(batch.id, place);
    const model = this.#models[answered.model]!;
    const { usage, estimated, endUser = null } = answered;
    if (await isCharged(requestId)) {
      this.#wasCharged(answered, usage);
      return null;
    }
    if (!isOurs()) return refuse("quota_unverified");
    // A key that is void by now asked while it was not.
    const { account, key, keyHash = null } = (await this.#principal()) ?? { account: batch.account, key: noKey };
    const outputTokensMax = Math.max(1, usage.output);
    const ask = { ...this.#asked, model, outputTokensMax };
    const inputTokens = usage.inputFresh + usage.inputCached;
    const request = { account, key, keyHash, ask, inputTokens, requestId, endUser: key === noKey ? null : endUser };
    const admitted = await gateway.admission.admit(request, momentOf(gateway.clock));
    if (isRefusal(admitted)) {
      if (waitsFor.has(admitted.refusal)) return admitted;
      // Nobody can pay for it, so nobody gets it.
      const { customId } = await this.#read(place);
      await this.#writeRefused(place, customId, this.#dialect.statusOf(admitted, null), admitted);
      this.#owed.delete(place);
      return null;
    }
    using hold = admitted;
    const refusal = hold.ready === null ? null : await hold.ready;
    if (refusal !== null) return refusal;
    this.#wasCharged(answered, await hold.settle(usage, estimated, gateway.clock.wall()));
    return null;
  }

  // ---------------------------------------------------------------- the end

  async #finish(path: string): Promise<void> {
    const { batch } = this;
    const { clock } = this.#parts.gateway;
    const { save, worker, files } = this.#parts;
    const end = (batch.end ??= "completed");
    const why = whyUnrun(batch);
    Object.assign(batch, { state: "finalizing", finalizingAt: clock.wall(), waits: null });
    batch.unrun = batch.total - batch.sums.completed - batch.sums.failed;
    await save(batch, true);
    const [log, unrun, made] = ["log", "unrun.jsonl", "results.new"].map((name) => join(this.#folder, name)) as [
      string,
      string,
      string,
    ];
    for (const left of [unrun, made]) await rm(left, { force: true });
    const isDone = await this.#doneLines(log);
    const done = isDone.reduce((sum, each) => sum + each, 0);
    if (done !== batch.total - batch.unrun) throw new Error("the log was damaged while the batch ran");
    if (batch.unrun > 0) {
      const { id: batchId, form } = batch;
      await worker.call({ order: "unrun", path, to: unrun, batchId, form, isDone, unrun: why });
    }
    if (batch.form === "anthropic") {
      const results = Bun.file(made).writer();
      await copy({ append: async (bytes) => void (results.write(bytes), await results.flush()) }, [
        shownIn(log, "charged"),
        shownIn(log, "failed"),
        bytesOf(unrun),
      ]);
      await results.end();
      await save(batch, true); // throws where another gateway runs it now
      await rename(made, join(this.#folder, "results.jsonl"));
    } else {
      const expiresAt = clock.wall() + batch.outputKeepMs;
      const write = async (kind: "outputFileId" | "errorFileId", of: AsyncIterable<Uint8Array>[]): Promise<void> => {
        if (batch[kind] !== null) await files.remove(batch.account, batch[kind]);
        const filename = `${batch.id}_${kind === "outputFileId" ? "output" : "error"}.jsonl`;
        const writer = await files.writer(batch.account, { filename, purpose: "batch_output", expiresAt });
        batch[kind] = writer.file.id;
        await save(batch, true);
        await copy(writer, of);
        await writer.finish();
      };
      if (batch.sums.completed > 0) await write("outputFileId", [shownIn(log, "charged")]);
      if (batch.sums.failed + batch.unrun > 0) await write("errorFileId", [shownIn(log, "failed"), bytesOf(unrun)]);
    }
    Object.assign(batch, { state: end, endedAt: clock.wall() });
    await save(batch, true);
    for (const left of [log, unrun, path]) await rm(left, { force: true });
  }

  async #doneLines(log: string): Promise<Uint8Array> {
    const isDone = new Uint8Array(this.#index.order.length);
    for await (const { head } of recordsOf(log)) {
      if ("failed" in head) isDone[head.failed] = 1;
      else if ("answered" in head && head.answered !== undefined) isDone[head.answered] = 1;
    }
    return isDone;
  }
}

function whyUnrun({ end, errors, waits }: Batch): Unrun {
  const because = waits === null ? "" : ` It waited: ${waits}`;
  if (end === "cancelled")
    return { code: "batch_cancelled", message: "The batch was cancelled before this request ran" };
  if (end === "failed") return { code: "batch_failed", message: errors[0]?.message ?? "The batch failed" };
  return { code: "batch_expired", message: `The completion window ended before this request ran.${because}` };
}

/** What clients get of answers, or of lines that failed. */
async function* shownIn(log: string, which: "charged" | "failed"): AsyncGenerator<Uint8Array> {
  const failed = new Set<number>();
  if (which === "charged") for await (const { head } of recordsOf(log)) if ("failed" in head) failed.add(head.failed);
  for await (const { head, shown } of recordsOf(log)) {
    const isShown =
      which === "failed"
        ? "failed" in head
        : "answered" in head && head.answered !== undefined && !failed.has(head.answered);
    if (isShown) yield Buffer.concat([shown, newline]);
  }
}

const newline = Buffer.from("\n");

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  if (await Bun.file(path).exists()) for await (const bytes of Bun.file(path).stream()) yield bytes;
}

const copyBytes = 256 * 1024;

async function copy(to: Pick<FileWriter, "append">, from: readonly AsyncIterable<Uint8Array>[]): Promise<void> {
  let gathered: Uint8Array[] = [];
  let bytes = 0;
  const write = async (): Promise<void> => {
    if (bytes > 0) await to.append(Buffer.concat(gathered));
    gathered = [];
    bytes = 0;
  };
  for (const each of from) {
    for await (const piece of each) {
      gathered.push(piece);
      bytes += piece.length;
      if (bytes >= copyBytes) await write();
    }
  }
  await write();
}
