// What a route of the console's API is: who may call it, what it takes, and what it returns.
import type { Static, TSchema } from "@sinclair/typebox";
import type { AccountRecord } from "../../account/records.ts";
import type { SessionRecord } from "../../account/sessions.ts";
import type { ApiErrorCode } from "../api.ts";

/** `operator` is also signed in; everything below is refused to others before the route sees it. */
export type Access = "public" | "account" | "operator";

/** Who is signed in. */
export type Visitor = Readonly<{ session: SessionRecord; account: AccountRecord }>;

export type Call<Of extends Access, Body, Query> = Readonly<{
  visitor: Of extends "public" ? Visitor | null : Visitor;
  body: Body;
  query: Query;
  /** The number in the path; 0 where the path has none. */
  id: number;
  request: Request;
  /** Of the browser, as far as it is known. */
  address: string;
  /** It is a proxy's, behind which browsers cannot be told apart. */
  isShared: boolean;
  browser: string;
}>;

/** A call that cannot be done, for people; its status is that of the code. */
export type Failure = Readonly<{ failure: ApiErrorCode; message: string; retrySeconds?: number }>;

/** JSON for 200, or a reply with a status, headers or a body of its own. */
export type Answer = Failure | Response | Readonly<Record<string, unknown>>;

export const fail = (failure: ApiErrorCode, message: string, retrySeconds?: number): Failure =>
  retrySeconds === undefined ? { failure, message } : { failure, message, retrySeconds };

export const isFailure = (answer: unknown): answer is Failure =>
  typeof answer === "object" && answer !== null && "failure" in answer;

export type Route = Readonly<{
  method: "GET" | "POST";
  /** Below /console/api; `:id` stands for a whole number. */
  path: string;
  access: Access;
  body: TSchema | null;
  query: TSchema | null;
  /** The caller has checked access, origin, body and query. */
  handle(call: Call<Access, unknown, unknown>): Answer | Promise<Answer>;
}>;

/** A route that takes neither body nor query. */
export function route<Of extends Access>(
  method: Route["method"],
  path: string,
  access: Of,
  handle: (call: Call<Of, null, null>) => Answer | Promise<Answer>,
): Route {
  return { method, path, access, body: null, query: null, handle: handle as Route["handle"] };
}

export function routeWithBody<Of extends Access, Body extends TSchema>(
  path: string,
  access: Of,
  body: Body,
  handle: (call: Call<Of, Static<Body>, null>) => Answer | Promise<Answer>,
): Route {
  return { method: "POST", path, access, body, query: null, handle: handle as Route["handle"] };
}

export function routeWithQuery<Of extends Access, Query extends TSchema>(
  path: string,
  access: Of,
  query: Query,
  handle: (call: Call<Of, null, Static<Query>>) => Answer | Promise<Answer>,
): Route {
  return { method: "GET", path, access, body: null, query, handle: handle as Route["handle"] };
}
