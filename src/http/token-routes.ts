// The free routes that count tokens: POST /v1/tokenize, and those on which dialects count a request's input. They
// need a key, reserve nothing and are not counted by flood protection; counting itself happens off the main thread.
import type { Dialect, RequestHead } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import { type Body, isLarge, type GatewayParts, readAsk } from "../gateway.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { countInput, readTokenize, tokenize, type TokenizeRequest } from "../tokens/tokenize.ts";
import type { AccountId, Refusal } from "../core/types.ts";
import { BodyTurns } from "./body-turns.ts";
import type { ApiRoutes } from "./api-routes.ts";
import { clientAddress } from "./client-address.ts";
import { askerOf, ArrivedHead, readBody } from "./incoming.ts";
import type { Connection } from "./peer-address.ts";
import type { KeyHeaders } from "./key-headers.ts";
import { jsonReply, refusalReply } from "./reply.ts";
import type { Site } from "./site.ts";

/** Answers a request whose key and body are in order. */
type Count = (body: Body, account: AccountId, cancelSignal: AbortSignal) => Promise<object | Refusal>;

const tokenizePath = "/v1/tokenize";

type TokenParts = Pick<GatewayParts, "keys" | "catalog" | "storedResponses" | "largeBodies" | "clock"> &
  Readonly<{ keyHeaders: KeyHeaders; dialects: Dialects }>;

export class TokenRoutes {
  readonly #parts: TokenParts;
  readonly #counts: TokenCounts;
  readonly #site: Site | null;
  readonly #addressHeader: string | null;
  readonly #bodyTurns = new BodyTurns();

  constructor(parts: TokenParts, counts: TokenCounts, site: Site | null, addressHeader: string | null) {
    this.#addressHeader = addressHeader;
    this.#parts = parts;
    this.#counts = counts;
    this.#site = site;
  }

  addRoutesTo(api: ApiRoutes): void {
    const { all, usual } = this.#parts.dialects;
    api.add("POST", tokenizePath, (request, connection) => this.tokenize(request, connection, usual));
    for (const dialect of all) {
      for (const { path, counted } of dialect.routes) {
        if (counted === undefined) continue;
        api.add("POST", path, (request, connection, id) =>
          this.countInput(request, connection, new ArrivedHead(request, path, id), dialect, counted),
        );
      }
    }
  }

  /** `dialect` reads its `messages`. */
  tokenize(request: Request, connection: Connection | null, dialect: Dialect): Promise<Response> {
    const head = new ArrivedHead(request, tokenizePath, "");
    return this.#answer(request, connection, dialect, async (body, account, cancelSignal) => {
      const wanted = await this.#readTokenize(head, body, account, dialect);
      if (isRefusal(wanted)) return wanted;
      using _conversation = wanted.kind === "messages" ? wanted.ask.prepared : undefined;
      return await tokenize(wanted, this.#counts, account, cancelSignal);
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

  /** `reply` is made of the count. */
  countInput(
    request: Request,
    connection: Connection | null,
    head: RequestHead,
    dialect: Dialect,
    reply: (tokens: number) => object,
  ): Promise<Response> {
    return this.#answer(request, connection, dialect, async (body, account, cancelSignal) => {
      const read = await readAsk(head, body, account, dialect, this.#parts);
      if (isRefusal(read)) return read;
      using _conversation = read.ask.prepared;
      return await countInput(read.ask, reply, this.#counts, account, cancelSignal);
    });
  }

  async #answer(request: Request, connection: Connection | null, dialect: Dialect, count: Count): Promise<Response> {
    const requestId = mintRequestId(this.#parts.clock.wall());
    const asker = await askerOf(request, this.#parts.keyHeaders, this.#parts, this.#site, () =>
      clientAddress(request, connection, this.#addressHeader),
    );
    if (isRefusal(asker)) return refusalReply(dialect, asker, requestId);
    const { account } = asker;
    const body = await readBody(request, account, this.#parts.largeBodies !== undefined, this.#bodyTurns);
    if (isRefusal(body)) return refusalReply(dialect, body, requestId);
    const counted = await count(body, account, request.signal);
    if (isRefusal(counted)) return refusalReply(dialect, counted, requestId);
    return jsonReply(JSON.stringify(counted), requestId);
  }
}
