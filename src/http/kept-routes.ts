// A request about what an account keeps, which another room answers.
import type { Dialect } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import type { Body, GatewayParts } from "../gateway.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { Soon } from "../core/soon.ts";
import type { Model, Principal, Refusal } from "../core/types.ts";
import { clientAddress } from "./client-address.ts";
import { readBody } from "./incoming.ts";
import type { KeyHeaders } from "./key-headers.ts";
import type { RequestWatch } from "./metrics/request-watch.ts";
import type { Connection } from "./peer-address.ts";
import { jsonReply, refusalReply } from "./reply.ts";

export type KeptAsked = Readonly<{
  asker: Principal;
  /** Null: by a signed-in browser. */
  key: string | null;
  /** The id in the address; "" where there is none. */
  id: string;
  request: Request;
  address: string | null;
  body(): Promise<Body | Refusal>;
}>;

/** JSON text, or a whole reply. */
export type KeptReply = string | Response | Refusal;
export type AnswerKept = (route: string, asked: KeptAsked) => Promise<KeptReply>;

/** What such a room has of the server, if it sends requests of its own. */
export type Inside = Readonly<{
  parts: GatewayParts & Readonly<{ admission: { refuseModel(asker: Principal, model: Model): Soon<Refusal | null> } }>;
  dialects: Dialects;
  watch: RequestWatch;
}>;

type Parties = Readonly<{
  answer: AnswerKept;
  clock: GatewayParts["clock"];
  keyHeaders: KeyHeaders;
  addressHeader: string | null;
  whoseIs(request: Request, connection: Connection | null): Promise<Principal | Refusal>;
  /** The dialect of a request's errors. */
  dialectOf(request: Request): Dialect;
}>;

export async function answerKept(
  route: string,
  { request, connection, id }: Readonly<{ request: Request; connection: Connection | null; id: string }>,
  { answer, clock, keyHeaders, addressHeader, whoseIs, dialectOf }: Parties,
): Promise<Response> {
  const requestId = mintRequestId(clock.wall());
  const asker = await whoseIs(request, connection);
  if (isRefusal(asker)) return refusalReply(dialectOf(request), asker, requestId);
  const address = clientAddress(request, connection, addressHeader);
  const body = () => readBody(request, asker.account, true);
  const key = keyHeaders.keyOf(request.headers);
  const reply = await answer(route, { asker, key, id, request, address, body });
  if (reply instanceof Response) return reply;
  return isRefusal(reply) ? refusalReply(dialectOf(request), reply, requestId) : jsonReply(reply, requestId);
}
