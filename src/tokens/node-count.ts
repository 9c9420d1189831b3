// Counts a request's tokens: by the node if it can, as the reply's usage will, otherwise by our estimate.
import { type AnyCancelSignal, signalOf } from "../core/cancel-signal.ts";
import { encodingDefault } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { nodeCountBytesMax } from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import { isRefusal } from "../core/refusals.ts";
import type { AccountId, Ask, EncodingName, Model, Ms, PreparedTurns, Refusal } from "../core/types.ts";
import type { TokenCounter } from "./counter.ts";
import { bytesOf } from "./encoded-texts.ts";
import { renderAsk, type Rendering } from "./render.ts";

/** A charge waits this long for the count of an input that no node reported, while its hold stays open. */
const unreportedCountTimeoutMs = 2_000;
/** The first part of that, for the node's own count. */
const unreportedNodeCountTimeoutMs = 400;
/** Counts that a node made, by content. */
export const countingCacheEntriesMax = 4_096;
export const countingCacheMs = 60_000;

assert(unreportedNodeCountTimeoutMs < unreportedCountTimeoutMs, "our own count has time behind the node's");

/** What nodes can count; null: none for the model can, or none answered in time. Never rejects. */
export interface NodeCounter {
  /**
   * Tokens of the prompt that the request would become, tools and template included. `mayRead`: also by a node that
   * must read the prompt for it, which is right after it has just read it, and too expensive for a free count.
   */
  countAsk(ask: Ask, cancelSignal: AbortSignal, mayRead?: boolean): Promise<number | null>;
  /** Tokens of a text alone, without a template or added special tokens. */
  countText(model: Model, text: string, cancelSignal: AbortSignal): Promise<number | null>;
}

export type TokenCount = Readonly<{
  tokens: number;
  /** True where the reply's usage will agree. */
  exact: boolean;
  /** `model` where the model's own tokenizer counted, otherwise the catalog's encoding that we used. */
  tokenizer: string;
}>;

const ownTokenizer = "model";
/** UTF-8 bytes per token in most languages, roughly. */
const bytesPerToken = 4;

type Cached = Readonly<{ count: TokenCount; until: Ms }>;

export class TokenCounts {
  readonly #counter: TokenCounter;
  readonly #nodes: NodeCounter | null;
  readonly #clock: Pick<Clock, "monotonic">;
  /** By content, least recently used first. */
  readonly #cache = new Map<string, Cached>();

  /** `nodes`: null where nodes are never asked. */
  constructor(counter: TokenCounter, nodes: NodeCounter | null, clock: Pick<Clock, "monotonic">) {
    this.#counter = counter;
    this.#nodes = nodes;
    this.#clock = clock;
  }

  /** Tokens of the prompt; refused like `Counter.count`. `nodeGone`: when to stop waiting for the node's count. */
  async ofAsk(
    ask: Ask,
    account: AccountId,
    cancelSignal: AbortSignal,
    nodeCancelSignal = cancelSignal,
    mayRead = false,
  ): Promise<TokenCount | Refusal> {
    const { model, prepared, turns, tools, toolChoice, effort, format, webSearch, plain } = ask;
    const rest = [plain, turns, tools, toolChoice, effort, format, webSearch];
    // Everything that the count depends on, and nothing else.
    const content = () => JSON.stringify([model.id, prepared?.messages.toString() ?? null, ...rest]);
    const count = async (): Promise<TokenCount | Refusal> => {
      const tokens = (await this.#nodes?.countAsk(ask, nodeCancelSignal, mayRead)) ?? null;
      // Only the model's search shows how much searching adds.
      if (tokens !== null) return { tokens, exact: !webSearch, tokenizer: ownTokenizer };
      return this.estimateOfAsk(ask, model.encoding, account, cancelSignal);
    };
    // Messages with an unread file are not written yet, so they do not show the content.
    return (prepared?.unready.length ?? 0) > 0 ? count() : this.#cached(ask.bodyBytes, content, count);
  }

  /** The input to charge where no node reported any, by its texts if not counted in time; null: a large body. */
  async ofUnreported(ask: Ask, account: AccountId): Promise<number | null> {
    const cancelSignal = AbortSignal.timeout(unreportedCountTimeoutMs);
    const nodeCancelSignal = AbortSignal.timeout(unreportedNodeCountTimeoutMs);
    const counted = await this.ofAsk(ask, account, cancelSignal, nodeCancelSignal, true);
    if (!isRefusal(counted)) return counted.tokens;
    if (ask.prepared !== undefined) return null;
    const { texts, extraTokens } = renderAsk(ask);
    return Math.ceil(bytesOf(texts) / bytesPerToken) + extraTokens;
  }

  /** Our own count for a node that cannot count; null: not in time. */
  async ofUncounted(ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal): Promise<number | null> {
    const signal = AbortSignal.any([signalOf(cancelSignal), AbortSignal.timeout(unreportedCountTimeoutMs)]);
    const counted = await this.estimateOfAsk(ask, ask.model.encoding, account, signal);
    return isRefusal(counted) ? null : counted.tokens;
  }

  /** Like `ofAsk` without asking a node: for a request whose model is unknown. */
  estimateOfAsk(
    ask: Ask,
    encoding: EncodingName,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<TokenCount | Refusal> {
    if (ask.prepared === undefined) return this.#estimate(renderAsk(ask), encoding, account, cancelSignal);
    return this.#estimatePrepared(ask, ask.prepared, encoding, account, cancelSignal);
  }

  async #estimatePrepared(
    ask: Ask,
    prepared: PreparedTurns,
    encoding: EncodingName,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<TokenCount | Refusal> {
    const rest = await this.#estimate(renderAsk(ask), encoding, account, cancelSignal);
    if (isRefusal(rest)) return rest;
    const rendering = await prepared.render();
    if (isRefusal(rendering)) return rendering;
    const counted = await this.#counter.countEncoded(encoding, rendering.texts, account, cancelSignal);
    return isRefusal(counted) ? counted : { ...rest, tokens: rest.tokens + counted + rendering.extraTokens };
  }

  /** The tokens of a text; `model` is null where the caller named none. Refused like `Counter.count`. */
  async ofText(
    text: string,
    model: Model | null,
    account: AccountId,
    cancelSignal: AbortSignal,
  ): Promise<TokenCount | Refusal> {
    const content = () => JSON.stringify([model?.id ?? null, text]);
    return this.#cached(text.length, content, async () => {
      const tokens = model === null ? null : ((await this.#nodes?.countText(model, text, cancelSignal)) ?? null);
      if (tokens !== null) return { tokens, exact: true, tokenizer: ownTokenizer };
      return this.#estimate(
        { texts: [text], extraTokens: 0 },
        model?.encoding ?? encodingDefault,
        account,
        cancelSignal,
      );
    });
  }

  /** The ids of a text's tokens; refused like `Counter.count`. */
  encode(
    text: string,
    encoding: EncodingName,
    account: AccountId,
    cancelSignal: AbortSignal,
  ): Promise<Uint32Array | Refusal> {
    return this.#counter.encode(encoding, text, account, cancelSignal);
  }

  async #estimate(
    { texts, extraTokens }: Rendering,
    encoding: EncodingName,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<TokenCount | Refusal> {
    const tokens = await this.#counter.count(encoding, texts, account, cancelSignal);
    if (isRefusal(tokens)) return tokens;
    return { tokens: tokens + extraTokens, exact: false, tokenizer: encoding };
  }

  /** Keeps only nodes' counts: agents repeat them. A SHA-256 key: no account can pass its text off as another's. */
  async #cached(
    size: number,
    content: () => string,
    count: () => Promise<TokenCount | Refusal>,
  ): Promise<TokenCount | Refusal> {
    if (this.#nodes === null || size > nodeCountBytesMax) return count();
    const key = new Bun.CryptoHasher("sha256").update(content()).digest("base64");
    const now = this.#clock.monotonic();
    const cached = this.#cache.get(key);
    this.#cache.delete(key);
    if (cached !== undefined && now < cached.until) {
      this.#cache.set(key, cached);
      return cached.count;
    }
    const counted = await count();
    if (isRefusal(counted) || counted.tokenizer !== ownTokenizer) return counted;
    this.#cache.delete(key);
    this.#cache.set(key, { count: counted, until: now + countingCacheMs });
    if (this.#cache.size > countingCacheEntriesMax) this.#cache.delete(this.#cache.keys().next().value!);
    return counted;
  }
}
