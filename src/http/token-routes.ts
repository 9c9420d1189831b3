// The free routes that count tokens: POST /v1/tokenize, /v1/messages/count_tokens and /v1/responses/input_tokens. They
// need a key, reserve nothing and are not counted by flood protection; counting itself happens off the main thread.
import type { Dialect } from "../dialects/dialect.ts";
import { type Body, type Parts, readAsk } from "../gateway.ts";
import { isRefusal } from "../refusals.ts";
import { mintRequestId } from "../request-id.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { countMessages, countResponsesInput, readTokenize, tokenize } from "../tokens/tokenize.ts";
import type { AccountId, Ask, Refusal } from "../types.ts";
import { BodyTurns } from "./body-turns.ts";
import { accountOf, readJson } from "./incoming.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import type { Site } from "./site.ts";

/** Answers a request whose key and body are in order. */
type Count = (body: Body, account: AccountId, gone: AbortSignal) => Promise<object | Refusal>;

type TokenParts = Pick<Parts, "keys" | "catalog" | "storedResponses" | "clock">;

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
    return this.#answer(request, dialect, async ({ json, bytes }, account, gone) => {
      const { catalog } = this.#parts;
      const wanted = readTokenize(json, catalog, (body) => dialect.read(body, bytes, catalog));
      return isRefusal(wanted) ? wanted : tokenize(wanted, this.#counts, account, gone);
    });
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
    count: (ask: Ask, counts: TokenCounts, account: AccountId, gone: AbortSignal) => Promise<object | Refusal>,
  ): Count {
    return async (body, account, gone) => {
      const ask = await readAsk(body, account, dialect, this.#parts);
      return isRefusal(ask) ? ask : count(ask, this.#counts, account, gone);
    };
  }

  async #answer(request: Request, dialect: Dialect, count: Count): Promise<Response> {
    const requestId = mintRequestId(this.#parts.clock.wall());
    const account = accountOf(request, this.#parts.keys, this.#site);
    if (isRefusal(account)) return refusalReply(dialect, account, requestId);
    const body = await readJson(request, this.#bodyTurns);
    if (isRefusal(body)) return refusalReply(dialect, body, requestId);
    const counted = await count(body, account, request.signal);
    if (isRefusal(counted)) return refusalReply(dialect, counted, requestId);
    return jsonReply(JSON.stringify(counted), requestId);
  }
}
