// The gateway's side of one node: connections, engine and requests. The pool decides about health and slots.
import type { Priority } from "../core/priority.ts";
import { enginePriority } from "./engine-priority.ts";
import type { PlanId } from "../core/plan-ids.ts";
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { assert } from "../core/assert.ts";
import type { Clock } from "../core/clock.ts";
import { mayAskAgain } from "../core/generation-budget.ts";
import { hasInputs } from "../core/inputs.ts";
import type { NodeConfig } from "../config/config.ts";
import { modelNameOn, type NodeModelOf } from "./model-routes.ts";
import { nodeConnectTimeoutMs, nodeCountBytesMax } from "../core/limits.ts";
import { nodeCoolOffMs, nodeIdleSocketMs, nodeProbeTimeoutMs } from "./limits.ts";
import { blotted } from "../core/log.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Ask, Ending, Ms, Refusal, Sink, Voice } from "../core/types.ts";
import { answerRoom, askWithin, reportedContext, isPromptTooLong, surelyFits } from "./answer-room.ts";
import { NodeClient } from "./client/client.ts";
import { type Dial, originOf } from "./client/dial.ts";
import { isReply, post } from "./client/get.ts";
import { type Engine, factsOf, unknownEngine } from "./engine.ts";
import type { EngineKind } from "./engine-kind.ts";
import { askForLoad, type LoadAnswer } from "./engine-load.ts";
import { unknownField } from "./engine-fields.ts";
import { type Asking, rootOf } from "./engine-routes.ts";
import { failed, type Failure, failureOfStatus, nodeAway, tooLong } from "./failure/failure.ts";
import type { Overflow } from "./failure/overflow.ts";
import { askForStream } from "./generation.ts";
import { KnownShapes } from "./fast-path/known-shapes.ts";
import { type Look, lookAt } from "./health/look.ts";
import type { Channel } from "./reader.ts";
import { engineTraits } from "./engine-traits.ts";
import { countedBody, type LargeNodeRequest, largeNodeRequest, type NodeRequest, nodeRequest } from "./request.ts";
import { countedPrompt, isPlain, notTaken, plainRequest } from "./plain-request.ts";
import { bodyOfTextEmbeddingsInference, inputsBody, pathOf } from "./inputs/inputs-request.ts";
import { loadModel, promptOnOllama } from "./ollama.ts";
import type { GenerationLimits, ExchangeOutcome } from "./node-exchange.ts";
import { requestHead } from "./client/request-head.ts";
import { askForCount, countRequestOfAsk, countRequestOfText, type CountRequest } from "./token-count.ts";
import { estimatedInput } from "./usage.ts";

/** Longest silence before the first token; 15 minutes must be allowed. */
const nodeFirstPieceMs = 20 * 60_000;
/** Longest silence between two reads once the answer has begun. */
const nodeStallMs = 16 * 60_000;
/** Without configured models, first requests wait this long for the node's list; `transformers serve` takes 6 s. */
const nodeFirstLookMaxMs = 10_000;
/** Silence after the finish reason until an answer counts as complete. */
const nodeAfterFinishMs = 900;

export type EndpointLimits = GenerationLimits &
  Readonly<{ connectTimeoutMs: Ms; idleSocketMs: Ms; probeTimeoutMs: Ms }>;

export const endpointLimitsDefault: EndpointLimits = {
  firstPieceMs: nodeFirstPieceMs,
  stallMs: nodeStallMs,
  afterFinishMs: nodeAfterFinishMs,
  connectTimeoutMs: nodeConnectTimeoutMs,
  idleSocketMs: nodeIdleSocketMs,
  probeTimeoutMs: nodeProbeTimeoutMs,
};

/** What happened to a request on its node. Plain data, because it may go to another thread. */
export type NodeOutcome = Readonly<{
  failure: Pick<Failure, "cause" | "blames"> | null;
  unreachable: boolean;
  /** It gave a complete HTTP response, whatever the response said. */
  responded: boolean;
  overloaded: boolean;
  /** Null unless the answer was completed. The input counts are 0 where the node did not report them. */
  answered: Readonly<{ firstPieceMs: Ms; outputTokens: number; inputTokens: number; cachedTokens: number }> | null;
  /** The engine that a probe for this request found. */
  engine?: Engine;
}>;

/** llama-cpp-python, even behind a proxy, may end a stream without an event or a reason. */
const mayBeWordless: ReadonlySet<EngineKind> = new Set(["llama-cpp-python", "unknown"]);

/** Our own count of a prompt that the node cannot count; null: not in time. */
export type EstimateOfPrompt = (ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal) => Promise<number | null>;

/** Ollama loads every model with at least this context. */
const ollamaContextMinTokens = 2_048;
/** Another tokenizer makes about 1.1 times our count of a text, and never more than 1.5 times. */
const estimateMargin = 1.1;
const estimateErrorMax = 1.5;

type Attempt = Readonly<{
  ask: Ask;
  sender: Sender;
  nodeModel: string;
  cancelSignal: AnyCancelSignal;
  sink: Sink;
  began: () => void;
}>;

/** Whose request it is. `plan`, `person`: see PrefixCacheRule. */
export type Sender = Readonly<{
  account: AccountId;
  person?: string | null;
  plan?: PlanId | undefined;
  priority: Priority;
}>;

export type EndpointOptions = Readonly<{
  clock: Clock;
  limits: EndpointLimits;
  /** How sockets are opened; for tests. */
  dial?: Dial | undefined;
  estimate?: EstimateOfPrompt | null | undefined;
  nodeModelOf?: NodeModelOf | undefined;
  /** Whether requests wait for a first probe where only the engine knows its models' names. */
  looks?: boolean | undefined;
  /** See PrefixCacheRule; absent: the value for tests. */
  saltSeed?: bigint | undefined;
}>;

export class NodeEndpoint {
  config: NodeConfig;
  engine: Engine = unknownEngine;
  readonly #clock: Clock;
  readonly #limits: EndpointLimits;
  readonly #client: NodeClient;
  readonly #basePath: string;
  readonly #estimate: EstimateOfPrompt | null;
  readonly #nodeModelOf: NodeModelOf;
  readonly #saltSeed: bigint;
  #lookedAgain: Readonly<{ found: Promise<Look>; until: Ms }> | null = null;
  /** Requests wait for a probe: the names of the node's models are not known yet. */
  #looksFirst: boolean;
  #looking: Promise<Look> | null = null;
  /** An engine that a probe here found and that was not reported yet. */
  #found: Engine | null = null;
  /** Address and key, which must not appear in any text for operators. */
  readonly #secrets: readonly string[];
  /** By the model's name on the node. */
  readonly #shapes = new Map<string, KnownShapes<Channel>>();

  constructor(
    config: NodeConfig,
    {
      clock,
      limits,
      dial,
      estimate = null,
      nodeModelOf = notConfigured,
      saltSeed = 0n,
      looks = false,
    }: EndpointOptions,
  ) {
    this.#looksFirst = looks && config.managed === undefined && Object.values(config.models).includes("*");
    this.#estimate = estimate;
    this.#nodeModelOf = nodeModelOf;
    this.#saltSeed = saltSeed;
    this.config = config;
    this.#clock = clock;
    this.#limits = limits;
    const url = new URL(config.url);
    // A bare name may be a word that engines use, such as the engine's kind.
    this.#secrets = [config.url, url.host, config.apiKey ?? ""].filter(
      (text) => text === config.apiKey || /[.:]/.test(text),
    );
    this.#basePath = url.pathname.replace(/\/+$/, "");
    this.#client = new NodeClient(originOf(url), { clock, ...limits, ...(dial === undefined ? {} : { dial }) });
  }

  /** Whether its connections can serve another configuration of the node. */
  isAt({ url, apiKey }: NodeConfig): boolean {
    return this.config.url === url && this.config.apiKey === apiKey;
  }

  /** Runs one generation. Resolves once, never rejects, and calls `outcome` right before it resolves. `began`: see Slot. */
  async send(
    ask: Ask,
    sender: Sender,
    cancelSignal: AnyCancelSignal,
    sink: Sink,
    outcome: (outcome: NodeOutcome) => void,
    beganThere?: () => void,
  ): Promise<Ending> {
    const askedAt = this.#clock.monotonic();
    let firstPieceMs: Ms | null = null;
    const began = (): void => {
      firstPieceMs = this.#clock.monotonic() - askedAt;
      beganThere?.();
    };
    if (this.#looksFirst) await this.#firstLook(cancelSignal);
    // An engine that was never probed may know every field. A node that is down proves nothing about its fields.
    const isUnclear = this.engine === unknownEngine && unknownTo(ask, this.engine, this.config) !== null;
    const look = isUnclear ? await this.#lookAgain() : null;
    const nodeModel = this.#nameOf(ask.model.id);
    const isConversation = !hasInputs(ask) && ask.voice === undefined;
    const untaken = unknownTo(ask, this.engine, this.config) ?? (isPlain(ask) ? notTaken(ask, this.engine.kind) : null);
    const mayNotFit = isConversation && this.#mayNotFit(ask, nodeModel);
    const fitted = untaken ?? (mayNotFit ? await this.#fitted(ask, sender.account, nodeModel, cancelSignal) : ask);
    const attempt: Attempt = { ask: isRefusal(fitted) ? ask : fitted, sender, nodeModel, cancelSignal, sink, began };
    const mayRepeat = (): boolean => !cancelSignal.aborted && mayAskAgain(ask);
    let result =
      look?.health === "down"
        ? withFailure(unsent, nodeAway(ask, look.problem ?? "it is down"))
        : isRefusal(fitted)
          ? refusedHere(fitted)
          : await this.#once(attempt);
    if (result.failure?.lacksModel === true) {
      await this.#lookAgain();
      const now = this.#nameOf(ask.model.id);
      if (now !== nodeModel && mayRepeat()) result = await this.#once({ ...attempt, ask, nodeModel: now });
    } else if (isConversation && result.failure?.overflow !== undefined && !isRefusal(fitted) && mayRepeat()) {
      const again = await this.#instead(ask, fitted, nodeModel, result.failure.overflow, cancelSignal);
      result = isRefusal(again)
        ? withFailure(result, { ...result.failure, refusal: again })
        : await this.#once({ ...attempt, ask: again });
    } else if (result.wordless && mayBeWordless.has(this.engine.kind) && !isRefusal(fitted) && mayRepeat()) {
      const reason = await this.#reasonOfSilence(fitted, nodeModel);
      if (reason !== null) result = withFailure(result, reason);
    }
    const { ending, unreachable, responded, overloaded } = result;
    // Nodes and the proxies before them repeat keys and host names.
    const failure =
      result.failure === null ? null : { ...result.failure, cause: blotted(result.failure.cause, this.#secrets) };
    const answered = ending.kind === "end" && firstPieceMs !== null ? answeredIn(firstPieceMs, ending) : null;
    const met = { failure, unreachable, responded, overloaded, answered };
    outcome(this.#found === null ? met : { ...met, engine: this.#found });
    this.#found = null;
    return ending;
  }

  #once(attempt: Attempt): Promise<ExchangeOutcome> {
    if (attempt.ask.generations?.take() === false) return Promise.resolve(refusedHere(refuse("node_failed")));
    if (attempt.ask.voice !== undefined) return this.#voiceOnce(attempt, attempt.ask.voice);
    return hasInputs(attempt.ask) ? this.#inputsOnce(attempt) : this.#streamOnce(attempt);
  }

  #streamOnce({ ask, sender, nodeModel, cancelSignal, sink, began }: Attempt): Promise<ExchangeOutcome> {
    const { apiKey, thinkTagOpened = [] } = this.config;
    const { body, expected } = this.#nodeRequest(ask, sender, nodeModel);
    const opened =
      ask.effort !== "off" &&
      ask.plain === undefined &&
      thinkTagOpened.some((name) => name === nodeModel || name === "*");
    const head = requestHead("POST", this.#pathFor(ask), this.#client.origin.hostHeader, apiKey, byteLengthOf(body));
    return askForStream({
      ask,
      request: typeof body === "string" ? [head, body] : [head, ...body],
      expected,
      thinkTagOpened: opened,
      shapes: this.#shapesOf(ask, nodeModel),
      client: this.#client,
      limits: this.#limits,
      cancelSignal,
      sink,
      began,
    });
  }

  async #voiceOnce({ nodeModel, ...attempt }: Attempt, voice: Voice): Promise<ExchangeOutcome> {
    const [{ askForVoice }, { voiceRequest }] = await Promise.all([
      import("./voices/voice-exchange.ts"),
      import("./voices/voice-request.ts"),
    ]);
    const { path, type, bytes, body } = voiceRequest(voice, nodeModel, attempt.ask.stream);
    const { hostHeader } = this.#client.origin;
    const head = requestHead("POST", this.#basePath + path, hostHeader, this.config.apiKey, bytes, type);
    const request = [head, ...body];
    return askForVoice({ ...attempt, request, client: this.#client, limits: this.#limits }, voice);
  }

  /** Vectors or scores. Only text-embeddings-inference ranks on a path of its own, with its own form. */
  async #inputsOnce({ ask, ...attempt }: Attempt): Promise<ExchangeOutcome> {
    assert(hasInputs(ask), "what holds no conversation has inputs");
    const { askForInputs } = await import("./inputs/inputs-exchange.ts"); // many gateways are asked for none
    const send = (path: string, body: readonly Buffer[]): Promise<ExchangeOutcome> => {
      const head = requestHead("POST", path, this.#client.origin.hostHeader, this.config.apiKey, byteLengthOf(body));
      return askForInputs({ ...attempt, ask, request: [head, ...body], client: this.#client, limits: this.#limits });
    };
    const result = await send(this.#basePath + pathOf(ask.inputs), inputsBody(ask, attempt.nodeModel));
    if (!result.unrouted || ask.inputs.kind === "vectors" || attempt.cancelSignal.aborted) return result;
    if (ask.generations?.take() === false) return result;
    const second = await send(`${rootOf(this.#basePath)}/rerank`, bodyOfTextEmbeddingsInference(ask));
    return second.unrouted ? result : second;
  }

  get #asking(): Asking {
    const { apiKey } = this.config;
    return { client: this.#client, basePath: this.#basePath, apiKey, timeoutMs: this.#limits.probeTimeoutMs };
  }

  #nameOf(modelId: string): string {
    return modelNameOn(this.config.models, { id: modelId, nodeModel: this.#nodeModelOf(modelId) }, this.engine);
  }

  /** Whether the engine's reported context may be too small for the request. */
  #mayNotFit(ask: Ask, nodeModel: string): boolean {
    const contextTokens = reportedContext(this.engine, nodeModel);
    // Ollama reports the context of a model only once it is loaded.
    if (contextTokens === null) return this.engine.kind === "ollama" && !surelyFits(ask, ollamaContextMinTokens, 0);
    const answerTokens = budgetLimitsAnswer(ask) ? ask.outputTokensMax : 0;
    return !surelyFits(ask, contextTokens, answerTokens);
  }

  /** The request with a budget that fits; refused where the node would silently cut the prompt. */
  async #fitted(
    ask: Ask,
    account: AccountId,
    nodeModel: string,
    cancelSignal: AnyCancelSignal,
  ): Promise<Ask | Refusal> {
    const { kind } = this.engine;
    if (kind === "ollama") return this.#fittedForOllama(ask, account, nodeModel, cancelSignal);
    const contextTokens = reportedContext(this.engine, nodeModel)!;
    if (!budgetLimitsAnswer(ask)) return ask;
    // llama-server ends an answer where its context is full, just as it does at the budget.
    if (kind === "llama.cpp") return askWithin(ask, contextTokens) ?? ask;
    const promptTokens = await this.#counted(ask, nodeModel, cancelSignal);
    // Only the node refuses a prompt that fills the context, because it may have more than it reports.
    return askWithin(ask, answerRoom(ask, contextTokens, promptTokens)) ?? ask;
  }

  /** Ollama cuts the beginning off a long prompt, system message and tools first, and answers the rest. */
  async #fittedForOllama(
    ask: Ask,
    account: AccountId,
    nodeModel: string,
    cancelSignal: AnyCancelSignal,
  ): Promise<Ask | Refusal> {
    const asking = { ...this.#asking, timeoutMs: this.#limits.firstPieceMs };
    if (reportedContext(this.engine, nodeModel) === null) {
      await loadModel(asking, nodeModel, cancelSignal);
      if (!cancelSignal.aborted) await this.#lookAgain(this.engine);
    }
    const contextTokens = reportedContext(this.engine, nodeModel);
    if (contextTokens === null || surelyFits(ask, contextTokens, ask.outputTokensMax)) return ask;
    const estimate = (await this.#estimate?.(ask, account, cancelSignal)) ?? estimatedInput(ask);
    const isUnclear = estimate * estimateErrorMax > contextTokens && estimate < contextTokens * estimateErrorMax;
    const isSmall = ask.prepared === undefined && ask.plain === undefined && ask.bodyBytes <= nodeCountBytesMax;
    const said =
      isUnclear && isSmall && !cancelSignal.aborted
        ? await promptOnOllama(
            asking,
            Buffer.concat(this.#countedBody(ask, nodeModel) as Buffer[]).toString(),
            cancelSignal,
          )
        : null;
    // An older version that cut the prompt reports how much was left.
    const counted = typeof said === "number" && said * estimateErrorMax >= estimate ? said : null;
    const likely = counted ?? Math.ceil(estimate * estimateMargin);
    if (said === "too long" || (isUnclear ? likely : estimate) >= contextTokens) {
      const tokens = estimate > contextTokens ? estimate : Math.max(likely, contextTokens + 1);
      return refuse("context_length_exceeded", { tokens, maximum: contextTokens });
    }
    return askWithin(ask, contextTokens - (counted ?? estimate)) ?? ask;
  }

  /** The request to repeat after the node refused it as too long; a refusal with the real numbers where nothing helps. */
  async #instead(
    ask: Ask,
    sent: Ask,
    nodeModel: string,
    said: Overflow,
    cancelSignal: AnyCancelSignal,
  ): Promise<Ask | Refusal> {
    const contextTokens = said.contextTokens ?? reportedContext(this.engine, nodeModel);
    const promptTokens = said.promptTokens ?? (await this.#counted(ask, nodeModel, cancelSignal));
    const overflow = { ...said, contextTokens, promptTokens };
    const room = contextTokens === null || isPromptTooLong(overflow) ? 0 : answerRoom(ask, contextTokens, promptTokens);
    return askWithin(sent, room) ?? tooLong(ask, overflow);
  }

  /** llama-cpp-python refuses a stream by sending none: a request for one token says why; null: it does not. */
  async #reasonOfSilence(ask: Ask, nodeModel: string): Promise<Failure | null> {
    if (ask.generations?.take() === false) return null;
    const counted = Buffer.concat(this.#countedBody(ask, nodeModel) as Buffer[]);
    const body = `${counted.toString("utf8", 0, counted.length - 1)},"max_tokens":1}`;
    const answer = await post(this.#client, this.#pathFor(ask), body, this.config.apiKey, this.#limits.probeTimeoutMs);
    return isReply(answer) && answer.status >= 400 ? failureOfStatus(ask, answer.status, answer.body) : null;
  }

  /** The prompt's tokens, where this engine can count them. */
  #counted(ask: Ask, nodeModel: string, cancelSignal: AnyCancelSignal): Promise<number | null> | null {
    if (ask.bodyBytes > nodeCountBytesMax) return null;
    const request = countRequestOfAsk(ask, () => this.#countedBody(ask, nodeModel), this.engine.kind);
    return request === null ? null : this.count(request, cancelSignal);
  }

  /** Waits until the engine is known or clearly unknown. A node that stays silent for long gets the request anyway. */
  async #firstLook(cancelSignal: AnyCancelSignal): Promise<void> {
    const until = this.#clock.monotonic() + nodeFirstLookMaxMs;
    while (this.#looksFirst && this.engine.models.length === 0) {
      const { engine, silent } = await (this.#looking ?? this.look(null));
      if (engine !== null) this.engine = this.#found = engine;
      if (cancelSignal.aborted) return;
      if (!silent || this.#clock.monotonic() >= until) break;
    }
    this.#looksFirst = false;
  }

  /** The engine as it is now. Requests at the same time share one probe. */
  #lookAgain(known: Engine | null = null): Promise<Look> {
    const now = this.#clock.monotonic();
    if (this.#lookedAgain === null || now >= this.#lookedAgain.until) {
      const found = this.look(known).then((look) => {
        if (look.engine !== null) this.engine = this.#found = look.engine;
        return look;
      });
      this.#lookedAgain = { found, until: now + nodeCoolOffMs };
    }
    return this.#lookedAgain.found;
  }

  #shapesOf(ask: Ask, nodeModel: string): KnownShapes<Channel> {
    const key = ask.plain === undefined ? nodeModel : `plain ${nodeModel}`;
    let shapes = this.#shapes.get(key);
    if (shapes === undefined) this.#shapes.set(key, (shapes = new KnownShapes()));
    return shapes;
  }

  #pathFor(ask: Ask): string {
    return `${this.#basePath}${ask.plain === undefined ? "/chat/completions" : "/completions"}`;
  }

  countRequestOfAsk(ask: Ask, mayRead: boolean): CountRequest | null {
    return countRequestOfAsk(ask, () => this.#countedBody(ask, this.#nameOf(ask.model.id)), this.engine.kind, mayRead);
  }

  #countedBody(ask: Ask, nodeModel: string): readonly Buffer[] {
    const { kind } = this.engine;
    return isPlain(ask) ? countedPrompt(ask, nodeModel, kind) : countedBody(ask, nodeModel, kind, this.config);
  }

  #nodeRequest(
    ask: Ask,
    { account, person, plan, priority: urgency }: Sender,
    nodeModel: string,
  ): NodeRequest | LargeNodeRequest {
    const { kind } = this.engine;
    const { sharePrefixCache: sharing, priorityScheduling } = this.config;
    const priority = enginePriority(this.engine, priorityScheduling, urgency);
    const share = { sharing, seed: this.#saltSeed, plan, person, priority };
    if (isPlain(ask)) return plainRequest(ask, account, nodeModel, kind, this.config, share);
    if (ask.prepared === undefined) return nodeRequest(ask, account, nodeModel, kind, this.config, share);
    return largeNodeRequest({ ...ask, prepared: ask.prepared }, account, nodeModel, kind, this.config, share);
  }

  countRequestOfText(modelId: string, text: string): CountRequest | null {
    return countRequestOfText(text, this.#nameOf(modelId), this.engine.kind);
  }

  count({ path, body }: CountRequest, cancelSignal: AnyCancelSignal): Promise<number | null> {
    return askForCount(this.#client, { path: rootOf(this.#basePath) + path, body }, this.config.apiKey, cancelSignal);
  }

  /** Probes the node. `known`: the engine as it was, which is not identified again while its models are the same. */
  async look(known: Engine | null): Promise<Look> {
    const looking = (this.#looking = lookAt(this.#asking, known));
    const look = await looking;
    if (this.#looking === looking) this.#looking = null;
    return look;
  }

  load(): Promise<LoadAnswer> {
    return askForLoad(this.#asking);
  }

  /** What decides whether the node takes a kind of request: its engine and its name for the model. */
  traitsFor(modelId: string): string {
    return `${this.engine.kind} ${this.#nameOf(modelId)}`;
  }

  /** The model's context in tokens as the engine reports it; null where it reports none. */
  contextTokensOf(modelId: string): number | null {
    return factsOf(this.engine, this.#nameOf(modelId))?.contextTokens ?? null;
  }

  close(): void {
    this.#client.close();
  }
}

const unknownTo = (ask: Ask, { kind }: Engine, config: NodeConfig): Refusal | null =>
  unknownField(ask, kind, engineTraits[kind].sampling, config);

/** Names of the nodes that would ignore a field, unprobed ones included; a refusal where all would. */
export function unknowingAmong(ask: Ask, endpoints: Iterable<NodeEndpoint>): ReadonlySet<string> | Refusal {
  const unknowing = new Set<string>();
  let refusal: Refusal | null = null;
  let someKnow = false;
  for (const { engine, config } of endpoints) {
    const wrong = engine === unknownEngine ? null : unknownTo(ask, engine, config);
    if (wrong === null) someKnow = true;
    else unknowing.add(config.name);
    refusal ??= wrong;
  }
  return someKnow ? unknowing : (refusal ?? unknowing);
}

type RequestBody = (NodeRequest | LargeNodeRequest)["body"];

const byteLengthOf = (body: RequestBody): number =>
  typeof body === "string" ? Buffer.byteLength(body) : body.reduce((sum, part) => sum + part.length, 0);

const notConfigured: NodeModelOf = () => null;

/** For a request that was not sent, which proves nothing about the node. */
const unsent = {
  failure: null,
  unreachable: false,
  responded: false,
  overloaded: false,
  wordless: false,
  unrouted: false,
} as const;

const refusedHere = (refusal: Refusal): ExchangeOutcome => ({
  ...unsent,
  ending: { kind: "failed", refusal, elsewhere: "unlike", ofRequest: true },
});

const withFailure = (outcome: Omit<ExchangeOutcome, "ending">, failure: Failure): ExchangeOutcome => ({
  ...outcome,
  failure,
  ending: failed(failure),
});

function answeredIn(firstPieceMs: Ms, { usage, estimated }: Extract<Ending, { kind: "end" }>) {
  const { inputFresh, inputCached, output: outputTokens } = usage;
  if (estimated) return { firstPieceMs, outputTokens, inputTokens: 0, cachedTokens: 0 };
  return { firstPieceMs, outputTokens, inputTokens: inputFresh + inputCached, cachedTokens: inputCached };
}
