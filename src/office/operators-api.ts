// The operators' API: every verb that a token may ask for, at /api/v1/ and its words. `accounts disable` is
// POST /api/v1/accounts/disable with its input as JSON; what changes nothing also answers GET, with its input in the query.
import type { TObject, TSchema } from "@sinclair/typebox";
import { AccountError, EmailTaken } from "../account/people/accounts.ts";
import type { OperatorToken } from "../account/records.ts";
import { isExpected } from "../core/expected-error.ts";
import { isRecord } from "../core/is-record.ts";
import type { Log } from "../core/log.ts";
import { parseOutsideJson } from "../core/outside-json.ts";
import { formatPath } from "../core/schema-errors.ts";
import { StoreUnavailable } from "../core/types.ts";
import { findVerb } from "./registry.ts";
import type { OperatorsDescription } from "./operators-description.ts";
import { allows, isForApi, operatorsApiPath, problemWith, ScopeTooSmall, type Verb } from "./verb.ts";
import { ConfigIsOther } from "./config-editing.ts";
import type { Work } from "./work.ts";

const bodyMaxBytes = 8 * 1024 * 1024;
/** The name of an unknown field may be as long as the body. */
const fieldMaxLength = 200;

type Asker = OperatorToken & Readonly<{ address: string | null }>;

export class OperatorsApi {
  readonly #work: Work;
  readonly #log: Log;

  constructor(work: Work, log: Log) {
    this.#work = work;
    this.#log = log;
  }

  /** The reply at `path`, which is below `operatorsApiPath`. */
  async answer(request: Request, path: string, address: string | null): Promise<Response> {
    try {
      if (path === "/openapi.json") return Response.json(await this.description());
      const token = await this.#tokenOf(request);
      if (token === null)
        return refusal(401, "authentication_error", "The token is missing, wrong, expired or revoked.", {
          "www-authenticate": "Bearer",
        });
      const verb = await verbAt(path);
      if (verb === null) return refusal(404, "not_found_error", `There is nothing at ${operatorsApiPath}${path}.`);
      const reads = verb.scope === "read";
      if (request.method !== "POST" && (request.method !== "GET" || !reads)) {
        const allowed = reads ? "GET, POST" : "POST";
        return refusal(405, "invalid_request_error", `${verb.name} takes ${allowed}.`, { allow: allowed });
      }
      if (!allows(token.scope, verb.scope)) {
        const needed = `${verb.name} needs a token of the scope ${verb.scope}; this one has ${token.scope}.`;
        return refusal(403, "permission_error", needed);
      }
      return await this.#run(request, verb, { ...token, address });
    } catch (thrown) {
      return this.#failed(thrown);
    }
  }

  async description(): Promise<OperatorsDescription> {
    const { describeOperatorsApi } = await import("./operators-description.ts");
    return describeOperatorsApi(this.#work.consoleUrl);
  }

  async #run(request: Request, verb: Verb, { name, scope, address }: Asker): Promise<Response> {
    const input = request.method === "GET" ? inputOfQuery(request.url, verb.input) : await inputOfBody(request);
    if (input instanceof Response) return input;
    const wrong = problemWith(verb, input);
    if (wrong !== null) {
      const field = formatPath(wrong.path).slice(0, fieldMaxLength);
      return refusal(400, "invalid_request_error", `${field === "" ? "" : `${field} `}${wrong.problem}`, {}, field);
    }
    const asked = { actor: { kind: "token", name, scope, address }, input, progress: () => {} } as const;
    const result = await verb.run(this.#work, asked);
    return Response.json(verb.json?.(result) ?? result ?? null, { headers: noStore });
  }

  #tokenOf(request: Request): Promise<OperatorToken | null> {
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (token === undefined) return Promise.resolve(null);
    return this.#work.office.read(({ tokens }) => tokens.find(token));
  }

  #failed(thrown: unknown): Response {
    if (thrown instanceof ScopeTooSmall) return refusal(403, "permission_error", `${thrown.message}.`);
    if (thrown instanceof EmailTaken || thrown instanceof ConfigIsOther)
      return refusal(409, "conflict_error", thrown.message);
    if (thrown instanceof AccountError) return refusal(400, "invalid_request_error", thrown.message);
    if (thrown instanceof StoreUnavailable) {
      return refusal(503, "api_error", "The ledger cannot be read or written right now. Nothing was done.");
    }
    if (isExpected(thrown)) return refusal(400, "invalid_request_error", (thrown as Error).message);
    this.#log("error", "a request to the operators' API failed", { error: String(thrown) });
    return refusal(500, "api_error", "Internal error.");
  }
}

/** No reply may be kept: some hold keys. */
const noStore = { "cache-control": "no-store" } as const;

async function verbAt(path: string): Promise<Verb | null> {
  const name = path
    .split("/")
    .filter((word) => word !== "")
    .join(" ");
  const verb = await findVerb(name);
  return verb !== null && isForApi(verb) ? verb : null;
}

async function inputOfBody(request: Request): Promise<unknown> {
  const bytes = await boundedBody(request);
  if (bytes === null) return refusal(413, "invalid_request_error", `The body may have at most ${bodyMaxBytes} bytes.`);
  if (bytes.length === 0) return {};
  const wrong = refusal(400, "invalid_request_error", "The body must be a JSON object.");
  try {
    const read = parseOutsideJson(new TextDecoder().decode(bytes));
    return isRecord(read) ? read : wrong;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return wrong;
    throw thrown;
  }
}

/** Null if the body is larger. */
async function boundedBody(request: Request): Promise<Uint8Array | null> {
  if (Number(request.headers.get("content-length") ?? 0) > bodyMaxBytes) return null;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > bodyMaxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A query has only texts: values are read as the schema expects them, and the schema refuses what cannot be read. */
function inputOfQuery(url: string, { properties }: TObject): Record<string, unknown> {
  const given = [...new URL(url).searchParams];
  return Object.fromEntries(
    given.map(([field, text]) => [field, valueOf(text, properties[field] as TSchema | undefined)]),
  );
}

function valueOf(text: string, schema: TSchema | undefined): unknown {
  switch (schema?.["type"]) {
    case "integer":
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "array":
      return text.split(",");
    default:
      return text;
  }
}

const refusal = (
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  field: string | null = null,
): Response =>
  Response.json(
    { error: { type, message, ...(field === null || field === "" ? {} : { field }) } },
    { status, headers: { ...noStore, ...headers } },
  );
