// Handlers for routes of the console's contract: what they get, and what they may answer.
import type { TSchema } from "@sinclair/typebox";
import type { Office } from "../../account/office.ts";
import type { AccountRecord, SessionRecord } from "../../account/records.ts";
import type { MailLanguage } from "../../core/mail.ts";
import {
  type Access,
  type AccessOf,
  type BodyOf,
  type QueryOf,
  type ReplyOf,
  type RouteName,
  type RouteShape,
  routes,
} from "../api/routes.ts";
import type { ApiErrorCode, Done, Faults } from "../api/shapes.ts";

export type Visitor = Readonly<{ session: SessionRecord; account: AccountRecord }>;

export type Call<Of extends Access = Access, Body = unknown, Query = unknown> = Readonly<{
  visitor: Of extends "public" ? Visitor | null : Visitor;
  body: Body;
  query: Query;
  /** The number in the path; 0 if the path has none. */
  id: number;
  request: Request;
  /** The browser's, as far as it is known. */
  address: string;
  /** The address is a proxy's, behind which browsers are indistinguishable. */
  isShared: boolean;
  browser: string;
  /** Of those that we speak, the one that the browser wants most; null: none. */
  language: MailLanguage | null;
  /** The office, whose change the page may take back if it named it. */
  undoable(office: Office): Office;
}>;

export type CallOf<Name extends RouteName> = Call<AccessOf<Name>, BodyOf<Name>, QueryOf<Name>>;

/** A refused call, with a sentence for people; its code decides the status. */
export type Failure = Readonly<{
  failure: ApiErrorCode;
  message: string;
  retrySeconds?: number;
  faults?: Faults;
}>;

export class WithCookies<Reply> {
  readonly cookies: readonly string[];

  constructor(
    readonly reply: Reply,
    ...cookies: readonly string[]
  ) {
    this.cookies = cookies;
  }
}

/** The JSON of the contract for status 200, a failure, or a Response if the contract has no JSON for the route. */
type RouteAnswer<Reply> = Failure | (Reply extends null ? Response : Reply | WithCookies<Reply>);
export type AnswerOf<Name extends RouteName> = RouteAnswer<ReplyOf<Name>>;

const consoleBodyMaxBytes = 64 * 1024;

export const done: Done = { done: true };

export const fail = (failure: ApiErrorCode, message: string, retrySeconds?: number): Failure =>
  retrySeconds === undefined ? { failure, message } : { failure, message, retrySeconds };

/** An error's message as a sentence for people. */
export const sentence = ({ message }: Pick<Error, "message">): string =>
  `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;

export const isFailure = (answer: unknown): answer is Failure =>
  typeof answer === "object" && answer !== null && "failure" in answer;

export type Route = Readonly<{
  /** "GET" or "POST". */
  method: string;
  path: string;
  access: Access;
  body: TSchema | null;
  bodyMaxBytes: number;
  query: TSchema | null;
  /** The caller has checked access, origin, body and query. */
  handle(call: Call): object | Promise<object>;
}>;

export function route<Name extends RouteName>(
  name: Name,
  handle: (call: CallOf<Name>) => AnswerOf<Name> | Promise<AnswerOf<Name>>,
): Route {
  const { access, body, bodyMaxBytes = consoleBodyMaxBytes, query }: RouteShape = routes[name];
  const [method = "", path = ""] = name.split(" ");
  return {
    method,
    path,
    access,
    body: body ?? null,
    bodyMaxBytes,
    query: query ?? null,
    // A cast, because the caller checks body and query against the very schemas that the handler's types come from.
    handle: handle as Route["handle"],
  };
}
