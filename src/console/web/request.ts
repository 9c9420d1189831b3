// Requests to the console's own API.
import { consoleHeader, undoHeader } from "../api/console-header.ts";
import type { LiveEvent } from "../api/live.ts";
import type { BodyOf, QueryOf, ReplyOf, RouteName } from "../api/routes.ts";
import type { ApiError, Faults } from "../api/shapes.ts";
import { language } from "./language.ts";
import { t } from "./texts.ts";

/** A path with a number in the place of `:id`. */
type Filled<Path> = Path extends `${infer Start}/:id${infer End}` ? `${Start}/${number}${End}` : Path;
/** The routes of a method by the path that a page asks for. */
type Paths<Method extends string> = {
  [Name in RouteName as Name extends `${Method} ${infer Path}` ? Filled<Path> : never]: Name;
};
type Get = Paths<"GET">;
type Post = Paths<"POST">;
/** Paths whose reply is a file. */
export type FilePath = { [Path in keyof Post]: ReplyOf<Post[Path]> extends null ? Path : never }[keyof Post];

/** A query as pages write it: numbers become text, and empty or null values are left out. */
type Given<Query> = { readonly [Field in keyof Query]: GivenText<Extract<Query[Field], string | undefined>> };
type GivenText<Text extends string | undefined> = Text | (string extends Text ? number | null : never);
/** Optional if every field of it is. */
type GivenQuery<Path extends keyof Get> =
  QueryOf<Get[Path]> extends null
    ? []
    : object extends QueryOf<Get[Path]>
      ? [query?: Given<QueryOf<Get[Path]>>]
      : [query: Given<QueryOf<Get[Path]>>];

/** A request that failed; `message` is a sentence for people. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  constructor(
    message: string,
    /** HTTP status, or 0 if no answer came. */
    readonly status: number,
    readonly code: ApiError["error"]["code"] | null,
    readonly faults: Faults = [],
  ) {
    super(message);
  }
}

/** Called when the server says that the session has ended. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export const get = <Path extends keyof Get>(path: Path, ...[query]: GivenQuery<Path>): Promise<ReplyOf<Get[Path]>> =>
  send("GET", path + search(query ?? {}));

export const post = <Path extends keyof Post>(
  path: Path,
  ...[body]: BodyOf<Post[Path]> extends null ? [] : [body: BodyOf<Post[Path]>]
): Promise<ReplyOf<Post[Path]>> => send("POST", path, body ?? null);

export const address = <Path extends keyof Get>(path: Path, ...[query]: GivenQuery<Path>): string =>
  `/console/api${path}${search(query ?? {})}`;

let undoName: string | null = null;

/** Names the change that `act` asks for at once; gives what takes it back. */
export async function undoable(act: () => Promise<unknown>): Promise<() => Promise<unknown>> {
  const name = randomName();
  undoName = name;
  const acting = act();
  undoName = null;
  await acting;
  return () => post("/undo", { name });
}

/** Of a change, so that it is known again. `crypto.randomUUID` is missing over plain HTTP from another machine. */
export const randomName = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

type Query = Readonly<Record<string, string | number | null | undefined>>;

/** `?a=1&b=2`, without empty values. */
export function search(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}

/** How long the browser may take to copy a file. */
const downloadMs = 60_000;

export async function download(path: FilePath): Promise<void> {
  const response = await ask("POST", path);
  if (!response.ok) throw await errorOf(response, await json(response));
  const [, name = ""] = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "") ?? [];
  saveFile(await response.blob(), name);
}

export function saveFile(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), downloadMs);
}

export function listenTo<Name extends LiveEvent["event"]>(
  source: EventSource,
  name: Name,
  take: (data: Extract<LiveEvent, { event: Name }>["data"]) => void,
): void {
  source.addEventListener(name, ({ data }) => take(JSON.parse(data)));
}

async function send<Reply>(method: string, path: string, body: object | null = null): Promise<Reply> {
  const response = await ask(method, path, body);
  const reply = await json(response);
  // The one cast of the contract: the same server serves this page, and answers with what its routes say.
  if (response.ok) return reply as Reply;
  throw await errorOf(response, reply);
}

/** Throws RequestError if no answer comes. */
async function ask(method: string, path: string, body: object | null = null): Promise<Response> {
  try {
    return await fetch(`/console/api${path}`, {
      method,
      headers: {
        ...(body !== null && { "content-type": "application/json" }),
        ...(undoName !== null && { [undoHeader]: undoName }),
      },
      body: body === null ? null : JSON.stringify(body),
    });
  } catch {
    throw new RequestError(t("request.unreachable"), 0, null);
  }
}

/** Null if the body is no JSON, such as a proxy's error page. */
const json = (response: Response): Promise<unknown> => response.json().catch(() => null);

/** What the server said, in the person's language; English needs no catalog. */
export const inWords = async (message: string): Promise<string> =>
  language === "en" ? message : (await import("./phrases.ts")).inWords(message);

async function errorOf(response: Response, reply: unknown): Promise<RequestError> {
  const {
    code = null,
    message = t("request.status", { status: String(response.status) }),
    faults = [],
  } = (reply as Partial<ApiError> | null)?.error ?? {};
  if (code === "not_signed_in") onSignedOut();
  for (const fault of faults) fault.problem = await inWords(fault.problem);
  return new RequestError(await inWords(message), response.status, code, faults);
}

/** Of the API of models, as the signed-in account. Throws what the reply says. */
export async function askApi(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(path, { ...init, headers: { [consoleHeader]: "1", ...init.headers } });
  if (response.ok) return response;
  const reply = (await json(response)) as { error?: { message?: string } } | null;
  throw new RequestError(
    await inWords(reply?.error?.message ?? t("request.status", { status: String(response.status) })),
    response.status,
    null,
  );
}

/** A file for batches; gives its id. Not by fetch, which says nothing of how far an upload is. */
export function upload(file: File, onProgress: (sent: number) => void): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = new XMLHttpRequest();
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", file);
  request.upload.onprogress = ({ loaded }) => onProgress(Math.min(loaded, file.size));
  request.onerror = () => reject(new Error(t("request.upload")));
  request.onload = () => {
    const reply = JSON.parse(request.responseText || "{}") as { id?: string; error?: { message?: string } };
    if (reply.id !== undefined) return resolve(reply.id);
    const status = t("request.status", { status: String(request.status) });
    void inWords(reply.error?.message ?? status).then((message) => reject(new Error(message)));
  };
  request.open("POST", "/v1/files");
  request.setRequestHeader(consoleHeader, "1");
  request.send(form);
  return promise;
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
