// Requests to the console's own API.
import type { ApiError } from "../api.ts";

/** A request that was not answered with a success; `message` is a sentence for people. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  constructor(
    message: string,
    /** HTTP status, or 0 where no answer came. */
    readonly status: number,
    readonly code: ApiError["error"]["code"] | null,
  ) {
    super(message);
  }
}

/** Called when the server says that nobody is signed in anymore. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export const get = <Reply>(path: string, query: Query = {}): Promise<Reply> => send<Reply>("GET", path + search(query));

export const post = <Reply, Body extends object = Record<string, never>>(path: string, body?: Body): Promise<Reply> =>
  send<Reply>("POST", path, body);

export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** `?a=1&b=2` of those that have a value. */
export function search(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}

/** How long the browser may take to copy a file that it was given. */
const downloadMs = 60_000;

/** Asks for a file, which the browser keeps under the name that the server gave it. */
export async function download(path: string): Promise<void> {
  const response = await ask("POST", path);
  if (!response.ok) throw errorOf(response, await json(response));
  const [, name = ""] = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "") ?? [];
  saveFile(await response.blob(), name);
}

/** Gives the browser a file to keep. */
export function saveFile(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), downloadMs);
}

async function send<Reply>(method: string, path: string, body?: object): Promise<Reply> {
  const response = await ask(method, path, body);
  const reply = await json(response);
  if (response.ok) return reply as Reply;
  throw errorOf(response, reply);
}

/** Throws RequestError where no answer comes. */
async function ask(method: string, path: string, body?: object): Promise<Response> {
  try {
    return await fetch(`/console/api${path}`, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
  } catch {
    throw new RequestError("The server cannot be reached. Check the connection and try again.", 0, null);
  }
}

/** Null if it is not one, as with a proxy's own page. */
const json = (response: Response): Promise<unknown> => response.json().catch(() => null);

function errorOf(response: Response, reply: unknown): RequestError {
  const { code = null, message = `The server answered with status ${response.status}.` } =
    (reply as Partial<ApiError> | null)?.error ?? {};
  if (code === "not_signed_in") onSignedOut();
  return new RequestError(message, response.status, code);
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
