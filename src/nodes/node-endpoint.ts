// One node as it is spoken to: its connections, its engine, and the requests that are made for it. How it is, and who
// gets a place on it, is the pool's to decide, which may be on another thread.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import type { Clock } from "../core/clock.ts";
import { modelNameOn, type NodeConfig } from "../config/config.ts";
import {
  nodeAfterFinishMs,
  nodeConnectTimeoutMs,
  nodeFirstPieceMs,
  nodeIdleSocketMs,
  nodeProbeTimeoutMs,
  nodeStallMs,
} from "../core/limits.ts";
import type { AccountId, Ask, Ending, Ms, Sink } from "../core/types.ts";
import { type Dial, NodeClient, originOf } from "./client/client.ts";
import { type Engine, unknownEngine } from "./engine.ts";
import type { Failure } from "./failure/failure.ts";
import { generate, type GenerationLimits } from "./generation.ts";
import { KnownShapes } from "./fast-path/known-shapes.ts";
import { type Look, lookAt } from "./health/look.ts";
import type { Channel } from "./reader.ts";
import { type LargeNodeRequest, largeNodeRequest, type NodeRequest, nodeRequest } from "./request.ts";
import { requestHead } from "./client/request-head.ts";
import { askForCount, countRequestOfAsk, countRequestOfText, type CountRequest } from "./token-count.ts";

/** Time limits of what is said to a node, in milliseconds; the defaults are those of core/limits.ts. */
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

/** What a request met on its node; plain data, because it may be told to another thread. */
export type NodeOutcome = Readonly<{
  failure: Pick<Failure, "cause" | "blames"> | null;
  unreachable: boolean;
  /** It gave an answer of HTTP, whatever it said. */
  responded: boolean;
  overloaded: boolean;
  /** Null unless the answer came to its end. */
  answered: Readonly<{ firstPieceMs: Ms; outputTokens: number }> | null;
}>;

export type EndpointOptions = Readonly<{
  clock: Clock;
  limits: EndpointLimits;
  /** Seam for tests: how sockets are opened. */
  dial?: Dial | undefined;
}>;

export class NodeEndpoint {
  config: NodeConfig;
  engine: Engine = unknownEngine;
  readonly #clock: Clock;
  readonly #limits: EndpointLimits;
  readonly #client: NodeClient;
  readonly #basePath: string;
  /** By the model's name on the node. */
  readonly #shapes = new Map<string, KnownShapes<Channel>>();

  constructor(config: NodeConfig, { clock, limits, dial }: EndpointOptions) {
    this.config = config;
    this.#clock = clock;
    this.#limits = limits;
    const url = new URL(config.url);
    this.#basePath = url.pathname.replace(/\/+$/, "");
    this.#client = new NodeClient(originOf(url), { clock, ...limits, ...(dial === undefined ? {} : { dial }) });
  }

  /** Whether its connections may serve another configuration of the node. */
  isAt({ url, apiKey }: NodeConfig): boolean {
    return this.config.url === url && this.config.apiKey === apiKey;
  }

  /** Runs one generation; resolves once, never rejects, and calls `outcome` right before it does. `began`: see Slot. */
  async generate(
    ask: Ask,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
    sink: Sink,
    outcome: (outcome: NodeOutcome) => void,
    beganThere?: () => void,
  ): Promise<Ending> {
    const { apiKey, models, thinkTagOpened = [] } = this.config;
    const nodeModel = modelNameOn(models, ask.model.id, this.engine.models);
    const { body, ...expected } = this.#nodeRequest(ask, account, nodeModel);
    const opened = ask.effort !== "off" && thinkTagOpened.some((name) => name === nodeModel || name === "*");
    const path = `${this.#basePath}/chat/completions`;
    const head = requestHead("POST", path, this.#client.origin.hostHeader, apiKey, byteLengthOf(body));
    const request = typeof body === "string" ? [head, body] : [head, ...body];
    const client = this.#client;
    const clock = this.#clock;
    const askedAt = clock.monotonic();
    let firstPieceMs: Ms | null = null;
    const began = (): void => {
      firstPieceMs = clock.monotonic() - askedAt;
      beganThere?.();
    };
    const { ending, failure, unreachable, responded, overloaded } = await generate({
      ask,
      request,
      expected,
      thinkTagOpened: opened,
      shapes: this.#shapesOf(nodeModel),
      client,
      limits: this.#limits,
      cancelSignal,
      sink,
      began,
    });
    const answered =
      ending.kind === "end" && firstPieceMs !== null ? { firstPieceMs, outputTokens: ending.usage.output } : null;
    outcome({ failure, unreachable, responded, overloaded, answered });
    return ending;
  }

  #shapesOf(nodeModel: string): KnownShapes<Channel> {
    let shapes = this.#shapes.get(nodeModel);
    if (shapes === undefined) this.#shapes.set(nodeModel, (shapes = new KnownShapes()));
    return shapes;
  }

  /** As for account 0: whose request it is changes the key of the node's prompt cache, not the prompt. */
  countRequestOfAsk(ask: Ask): CountRequest | null {
    const nodeModel = modelNameOn(this.config.models, ask.model.id, this.engine.models);
    return countRequestOfAsk(ask, () => textOf(this.#nodeRequest(ask, 0, nodeModel).body), this.engine.kind);
  }

  #nodeRequest(ask: Ask, account: AccountId, nodeModel: string): NodeRequest | LargeNodeRequest {
    const { depth } = this.config;
    const { kind } = this.engine;
    if (ask.prepared === undefined) return nodeRequest(ask, account, nodeModel, kind, depth);
    return largeNodeRequest({ ...ask, prepared: ask.prepared }, account, nodeModel, kind, depth);
  }

  countRequestOfText(modelId: string, text: string): CountRequest | null {
    return countRequestOfText(text, modelNameOn(this.config.models, modelId, this.engine.models), this.engine.kind);
  }

  count({ path, body }: CountRequest, cancelSignal: AnyCancelSignal): Promise<number | null> {
    const root = this.#basePath.replace(/\/v1$/, "");
    return askForCount(this.#client, { path: root + path, body }, this.config.apiKey, cancelSignal);
  }

  /** How it is. `known`: the engine that it was, which is not found out again where its models are the same. */
  look(known: Engine | null): Promise<Look> {
    return lookAt(this.#client, this.#basePath, this.config.apiKey, this.#limits.probeTimeoutMs, known);
  }

  /** What decides whether it takes a kind of request: its engine, and what the model is there. */
  traitsFor(modelId: string): string {
    return `${this.engine.kind} ${modelNameOn(this.config.models, modelId, this.engine.models)}`;
  }

  close(): void {
    this.#client.close();
  }
}

/** Names of those that have the same for the model as this one, which is among them. */
export function alikeAmong(
  endpoints: Iterable<NodeEndpoint>,
  endpoint: NodeEndpoint,
  modelId: string,
): ReadonlySet<string> {
  const traits = endpoint.traitsFor(modelId);
  const alike = [...endpoints].filter((each) => each.traitsFor(modelId) === traits);
  return new Set([endpoint, ...alike].map(({ config }) => config.name));
}

type RequestBody = (NodeRequest | LargeNodeRequest)["body"];

const byteLengthOf = (body: RequestBody): number =>
  typeof body === "string" ? Buffer.byteLength(body) : body.reduce((sum, part) => sum + part.length, 0);
const textOf = (body: RequestBody): string =>
  typeof body === "string" ? body : Buffer.concat(body as Buffer[]).toString();
