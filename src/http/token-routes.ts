// The free routes that count tokens: POST /v1/tokenize, /v1/messages/count_tokens and /v1/responses/input_tokens. They
// need a key, reserve nothing and are not counted by flood protection; counting itself happens off the main thread.
import type { Dialect } from "../dialects/dialect.ts";
import { type Body, isLarge, type Parts, readAsk } from "../gateway.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import {
  countMessages,
  countResponsesInput,
  readTokenize,
  tokenize,
  type TokenizeRequest,
} from "../tokens/tokenize.ts";
import type { AccountId, Ask, Refusal } from "../core/types.ts";
import { BodyTurns } from "./body-turns.ts";
import { accountOf, type KnownKeys, readBody } from "./incoming.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import type { Site } from "./site.ts";

/** Answers a request whose key and body are in order. */
type Count = (body: Body, account: AccountId, cancelSignal: AbortSignal) => Promise<object | Refusal>;

type TokenParts = Pick<Parts, "catalog" | "storedResponses" | "largeBodies" | "clock"> & Readonly<{ keys: KnownKeys }>;

export class TokenRoutes {
  readonly #parts: TokenParts;
  readonly #counts: TokenCounts;
  readonly #site: Site | null;
  readonly #bodyTurns = new BodyTurns();

  constructor(parts: TokenParts, counts: TokenCounts, site: Site | null) {
    this.#parts = parts;
    this.#counts = counts;
    this.#site = site;
  }

  /** POST /v1/tokenize; `dialect` reads its `messages`. */
  tokenize(request: Request, dialect: Dialect): Promise<Response> {
    return this.#answer(request, dialect, async (body, account, cancelSignal) => {
      const wanted = await this.#readTokenize(body, account, dialect);
      if (isRefusal(wanted)) return wanted;
      using _conversation = wanted.kind === "messages" ? wanted.ask.prepared : undefined;
      return await tokenize(wanted, this.#counts, account, cancelSignal);
    });
  }

  async #readTokenize(body: Body, account: AccountId, dialect: Dialect): Promise<TokenizeRequest | Refusal> {
    const { catalog, largeBodies } = this.#parts;
    if (isLarge(body)) return largeBodies!.readTokenize(body, account, dialect, catalog);
    return readTokenize(body.json, catalog, (json) => dialect.read(json, body.bytes, catalog));
  }

  /** POST /v1/messages/count_tokens */
  countMessages(request: Request, dialect: Dialect): Promise<Response> {
    return this.#answer(request, dialect, this.#countAsk(dialect, countMessages));
  }

  /** POST /v1/responses/input_tokens */
  countResponsesInput(request: Request, dialect: Dialect): Promise<Response> {
    return this.#answer(request, dialect, this.#countAsk(dialect, countResponsesInput));
  }

  #countAsk(
    dialect: Dialect,
    count: (ask: Ask, counts: TokenCounts, account: AccountId, cancelSignal: AbortSignal) => Promise<object | Refusal>,
  ): Count {
    return async (body, account, cancelSignal) => {
      const ask = await readAsk(body, account, dialect, this.#parts);
      if (isRefusal(ask)) return ask;
      using _conversation = ask.prepared;
      return await count(ask, this.#counts, account, cancelSignal);
    };
  }

  async #answer(request: Request, dialect: Dialect, count: Count): Promise<Response> {
    const requestId = mintRequestId(this.#parts.clock.wall());
    const account = accountOf(request, this.#parts.keys, this.#site);
    if (isRefusal(account)) return refusalReply(dialect, account, requestId);
    const body = await readBody(request, account, this.#parts.largeBodies !== undefined, this.#bodyTurns);
    if (isRefusal(body)) return refusalReply(dialect, body, requestId);
    const counted = await count(body, account, request.signal);
    if (isRefusal(counted)) return refusalReply(dialect, counted, requestId);
    return jsonReply(JSON.stringify(counted), requestId);
  }
}
