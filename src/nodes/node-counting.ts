// Has nodes count the tokens of prompts and texts, because they have the model's tokenizer and chat template.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { nodeCountBytesMax } from "../core/limits.ts";
import type { Ask, Model } from "../core/types.ts";
import type { NodeEndpoint } from "./node-endpoint.ts";
import type { CountRequest } from "./token-count.ts";

/** Text of all counts that a node makes at once. */
const nodeCountsBytesMax = 4 * 1024 * 1024;

export class NodeCounting {
  readonly #serving: (modelId: string) => Iterable<NodeEndpoint>;
  #countedBytes = 0;

  /** `serving`: the healthy nodes for a model. */
  constructor(serving: (modelId: string) => Iterable<NodeEndpoint>) {
    this.#serving = serving;
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
    for (const node of this.#serving(model.id)) {
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
