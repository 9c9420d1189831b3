// Routes about what an account keeps, which other rooms answer.
import type { Dialect } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import type { Body, GatewayParts } from "../gateway.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { Soon } from "../core/soon.ts";
import type { Endpoint, Model, Principal, Refusal } from "../core/types.ts";
import type { ApiRoutes } from "./api-routes.ts";
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
  address: () => string | null;
  body(): Promise<Body | Refusal>;
}>;

/** JSON text, or a whole reply. */
export type KeptReply = string | Response | Refusal;

export type KeptRoutes = Readonly<{
  /** A method and a path each. */
  routes: readonly string[];
  answer(route: string, asked: KeptAsked): Promise<KeptReply>;
}>;

/** What such a room has of the server, if it sends requests of its own. */
export type Inside = Readonly<{
  parts: GatewayParts & Readonly<{ admission: { refuseModel(asker: Principal, model: Model): Soon<Refusal | null> } }>;
  dialects: Dialects;
  watch: RequestWatch;
}>;

export type OpenKept = (inside: Inside) => KeptRoutes;

type Server = Readonly<{
  openKept?: OpenKept;
  keyHeaders: KeyHeaders;
  addressHeader?: string | null;
  whoseIs(request: Request, connection: Connection | null): Promise<Principal | Refusal>;
  /** The dialect of a request's errors. */
  dialectOf(request: Request): Dialect;
}>;

export function addKeptRoutes(api: Pick<ApiRoutes, "add">, inside: Inside, server: Server): void {
  const { keyHeaders, addressHeader = null } = server;
  const kept = server.openKept?.(inside);
  for (const route of kept?.routes ?? []) {
    const [method, path] = route.split(" ") as ["GET" | "POST" | "DELETE", Endpoint];
    api.add(method, path, async (request, connection, id) => {
      const requestId = mintRequestId(inside.parts.clock.wall());
      const asker = await server.whoseIs(request, connection);
      if (isRefusal(asker)) return refusalReply(server.dialectOf(request), asker, requestId);
      const address = () => clientAddress(request, connection, addressHeader);
      const body = () => readBody(request, asker.account, true);
      const key = keyHeaders.keyOf(request.headers);
      const reply = await kept!.answer(route, { asker, key, id, request, address, body });
      if (reply instanceof Response) return reply;
      return isRefusal(reply) ? refusalReply(server.dialectOf(request), reply, requestId) : jsonReply(reply, requestId);
    });
  }
}
