// The nodes as those know them who send requests there: which of them serve a model, and well. And has them count the tokens
// of prompts and texts, because they have the model's tokenizer and chat template.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { nodeCountBytesMax } from "../core/limits.ts";
import type { Ask, Model } from "../core/types.ts";
import { type NodeModelOf, servesAmong } from "./model-routes.ts";
import type { NodeEndpoint } from "./node-endpoint.ts";
import type { NodeHealth } from "./queue/slot-queue.ts";
import type { CountRequest } from "./token-count.ts";

/** Text of all counts that a node makes at once. */
const nodeCountsBytesMax = 4 * 1024 * 1024;

/** `Node`: what is known of one. */
export abstract class KnownNodes<Node extends Readonly<{ endpoint: NodeEndpoint; health: NodeHealth }>> {
  protected drained: Readonly<{ has(name: string): boolean }> = new Set();
  #nodes = new Map<string, Node>();
  #serves: ReturnType<typeof servesAmong>;
  #countedBytes = 0;

  protected constructor(protected readonly nodeModelOf: NodeModelOf) {
    this.#serves = servesAmong(() => [], nodeModelOf);
  }

  protected get nodes(): Map<string, Node> {
    return this.#nodes;
  }

  protected set nodes(nodes: Map<string, Node>) {
    this.#nodes = nodes;
    this.#serves = servesAmong(() => [...nodes.values()].map(({ endpoint }) => routedOf(endpoint)), this.nodeModelOf);
  }

  protected isServedBy({ endpoint }: Node, modelId: string): boolean {
    return this.#serves(routedOf(endpoint), modelId);
  }

  /** Whatever their health. */
  protected *serving(modelId: string): Iterable<NodeEndpoint> {
    for (const node of this.#nodes.values()) if (this.isServedBy(node, modelId)) yield node.endpoint;
  }

  *#wellFor(modelId: string): Iterator<NodeEndpoint> & Iterable<NodeEndpoint> {
    for (const [name, node] of this.#nodes) {
      if (node.health === "well" && !this.drained.has(name) && this.isServedBy(node, modelId)) yield node.endpoint;
    }
  }

  /** Whether a node that is well serves the model. */
  isServed(modelId: string): boolean {
    return !this.#wellFor(modelId).next().done;
  }

  /** See Slot. */
  alikeTo(endpoint: NodeEndpoint, modelId: string): ReadonlySet<string> {
    const traits = endpoint.traitsFor(modelId);
    const all = [...this.#nodes.values()].map((node) => node.endpoint);
    const alike = all.filter((each) => each.traitsFor(modelId) === traits);
    return new Set([endpoint, ...alike].map(({ config }) => config.name));
  }

  /** See NodeCounter: null where no healthy node for the model can count. */
  countAsk(ask: Ask, cancelSignal: AnyCancelSignal, mayRead = false): Promise<number | null> {
    return this.#count(ask.model, ask.bodyBytes, cancelSignal, (node) => node.countRequestOfAsk(ask, mayRead));
  }

  /** Tokens of a text alone, as the model reads it; null where no healthy node for the model can count. */
  countText(model: Model, text: string, cancelSignal: AnyCancelSignal): Promise<number | null> {
    return this.#count(model, text.length, cancelSignal, (node) => node.countRequestOfText(model.id, text));
  }

  /** `size`: roughly the bytes that the node would tokenize. */
  async #count(
    model: Model,
    size: number,
    cancelSignal: AnyCancelSignal,
    requestFor: (node: NodeEndpoint) => CountRequest | null,
  ): Promise<number | null> {
    if (size > nodeCountBytesMax || this.#countedBytes + size > nodeCountsBytesMax) return null;
    for (const node of this.#wellFor(model.id)) {
      const request = requestFor(node);
      if (request === null) continue;
      this.#countedBytes += size;
      try {
        return await node.count(request, cancelSignal);
      } finally {
        this.#countedBytes -= size;
      }
    }
    return null;
  }
}

const routedOf = ({ config: { models }, engine }: NodeEndpoint) => ({ models, engine });
