// Requests about what an account keeps, which another room answers.
import type { Dialects } from "../dialects/registry.ts";
import type { Body, GatewayParts } from "../gateway.ts";
import type { Soon } from "../core/soon.ts";
import type { Model, Principal, Refusal } from "../core/types.ts";
import type { RequestWatch } from "./metrics/request-watch.ts";

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
export type AnswerKept = (route: string, asked: KeptAsked) => Promise<KeptReply>;

/** What such a room has of the server, if it sends requests of its own. */
export type Inside = Readonly<{
  parts: GatewayParts & Readonly<{ admission: { refuseModel(asker: Principal, model: Model): Soon<Refusal | null> } }>;
  dialects: Dialects;
  watch: RequestWatch;
}>;
