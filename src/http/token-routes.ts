// Free routes that count tokens or quote a request. They need a key, reserve nothing, and count off the main thread.
import type { Dialect, RequestHead } from "../dialects/dialect.ts";
import { type Body, isLarge, type GatewayParts, readAsk } from "../gateway.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { countInput, readTokenize, tokenize, type TokenizeRequest } from "../tokens/tokenize.ts";
import type { AccountId, Principal, Refusal } from "../core/types.ts";
import { BodyTurns } from "./body-turns.ts";
import type { ApiRoutes } from "./api-routes.ts";
import { clientAddress } from "./client-address.ts";
import { askerOf, ArrivedHead, readBody } from "./incoming.ts";
import type { Connection } from "./peer-address.ts";
import type { KeyHeaders } from "./key-headers.ts";
import type { QuoteParts, Quotes } from "./quote.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import type { Site } from "./site.ts";

/** Answers a request with a valid key and body. */
type Count = (body: Body, asker: Principal, dialect: Dialect) => Promise<object | Refusal>;

const tokenizePath = "/v1/tokenize";

type TokenParts = Pick<GatewayParts, "keys" | "clock"> &
  Omit<QuoteParts, "counts" | "quotes"> &
  Readonly<{ keyHeaders: KeyHeaders }>;

export class TokenRoutes {
  readonly #parts: TokenParts;
  readonly #counts: TokenCounts;
  readonly #site: Site | null;
  readonly #addressHeader: string | null;
  readonly #bodyTurns = new BodyTurns();
  readonly #quotes: Quotes | null;

  /** `quotes`: absent where nothing is quoted. */
  constructor(
    parts: TokenParts,
    counts: TokenCounts,
    site: Site | null,
    addressHeader: string | null,
    quotes: Quotes | null = null,
  ) {
    this.#quotes = quotes;
    this.#addressHeader = addressHeader;
    this.#parts = parts;
    this.#counts = counts;
    this.#site = site;
  }

  addRoutesTo(api: ApiRoutes): void {
    const { all, usual } = this.#parts.dialects;
    api.add("POST", tokenizePath, (request, connection) => this.tokenize(request, connection, usual));
    const quotes = this.#quotes;
    if (quotes !== null)
      api.add("POST", "/v1/quote", (request, connection) => this.#quote(request, connection, quotes));
    for (const dialect of all) {
      for (const { path, counted } of dialect.routes) {
        if (counted === undefined) continue;
        api.add("POST", path, (request, connection, id) =>
          this.countInput(request, connection, new ArrivedHead(request, path, id), dialect, counted),
        );
      }
    }
  }

  tokenize(request: Request, connection: Connection | null, dialect: Dialect): Promise<Response> {
    const head = new ArrivedHead(request, tokenizePath, "");
    return this.#answer(request, connection, dialect, async (body, { account }) => {
      const wanted = await this.#readTokenize(head, body, account, dialect);
      if (isRefusal(wanted)) return wanted;
      using _conversation = wanted.kind === "messages" ? wanted.ask.prepared : undefined;
      return await tokenize(wanted, this.#counts, account, request.signal);
    });
  }

  async #readTokenize(
    head: RequestHead,
    body: Body,
    account: AccountId,
    dialect: Dialect,
  ): Promise<TokenizeRequest | Refusal> {
    const { catalog, largeBodies } = this.#parts;
    if (isLarge(body)) return largeBodies!.readTokenize(head, body, account, dialect, catalog);
    return readTokenize(body.json, catalog, (json) =>
      dialect.read({ head, body: json, bodyBytes: body.bytes, catalog }),
    );
  }

  countInput(
    request: Request,
    connection: Connection | null,
    head: RequestHead,
    dialect: Dialect,
    reply: (tokens: number) => object,
  ): Promise<Response> {
    return this.#answer(request, connection, dialect, async (body, asker) => {
      const read = await readAsk(head, body, asker, dialect, this.#parts);
      if (isRefusal(read)) return read;
      using _conversation = read.ask.prepared;
      return await countInput(read.ask, reply, this.#counts, asker.account, request.signal);
    });
  }

  /** Takes the body of any dialect, and refuses in its form. */
  async #quote(request: Request, connection: Connection | null, quotes: Quotes): Promise<Response> {
    const parts: QuoteParts = { ...this.#parts, counts: this.#counts, quotes };
    const { quotedDialect, quote } = await import("./quote.ts"); // loaded when it is first asked for
    const assumed = parts.dialects.speaking(request.headers) ?? parts.dialects.usual;
    const count: Count = (body, asker, dialect) => quote(request, body, dialect, asker, parts);
    return this.#answer(request, connection, assumed, count, (body) => quotedDialect(request, body, parts));
  }

  async #answer(
    request: Request,
    connection: Connection | null,
    assumed: Dialect,
    count: Count,
    dialectOf: (body: Body) => Dialect | Refusal = () => assumed,
  ): Promise<Response> {
    const requestId = mintRequestId(this.#parts.clock.wall());
    const address = clientAddress(request, connection, this.#addressHeader);
    const asker = await askerOf(request, this.#parts.keyHeaders, this.#parts, this.#site, address);
    if (isRefusal(asker)) return refusalReply(assumed, asker, requestId);
    const body = await readBody(request, asker.account, this.#parts.largeBodies !== undefined, this.#bodyTurns);
    if (isRefusal(body)) return refusalReply(assumed, body, requestId);
    const dialect = dialectOf(body);
    if (isRefusal(dialect)) return refusalReply(assumed, dialect, requestId);
    const counted = await count(body, asker, dialect);
    if (isRefusal(counted)) return refusalReply(dialect, counted, requestId);
    return jsonReply(JSON.stringify(counted), requestId);
  }
}
