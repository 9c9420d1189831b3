// One probe of a node: a GET of its model list, which costs its GPU nothing, and what the answer means in plain words.
//
//   a list of models                         -> well
//   no connection, no HTTP, 401, 403         -> down
//   502, 503, 504                            -> down: it loads its model, or a proxy has nothing behind it
//   a list at the address with /v1           -> down: the address is wrong
//   any other answer                         -> well, with a problem, unless its routes are known to be those of voices:
//                                               some engines list no models and work
import { type Engine, engineOf } from "../engine.ts";
import { type Asking, rootOf } from "../engine-routes.ts";
import { type NodeReply, get, isReply, type NoReply } from "../client/get.ts";

export type Look = Readonly<{
  health: "well" | "down";
  /** It accepted the connection but did not answer in time: it may be busy. */
  silent: boolean;
  /** Null where it lists no models. */
  engine: Engine | null;
  /** What is wrong, in words without an address; null where nothing is. */
  problem: string | null;
}>;

/** Takes at most a few times `timeoutMs` and never rejects. `known`: see engineOf. */
export async function lookAt(asking: Asking, known: Engine | null = null): Promise<Look> {
  const { client, basePath, apiKey, timeoutMs } = asking;
  const listed = await get(client, `${basePath}/models`, apiKey, timeoutMs);
  if (!isReply(listed)) return down(problemOf(listed), listed.kind === "silent");
  const engine = await engineOf(asking, listed, known);
  if (engine !== null) return { health: "well", silent: false, engine, problem: null };
  const { status } = listed;
  if (status === 401 || status === 403) return down(refusedKey(status, apiKey));
  if (status === 503) return down("it answers that it takes no requests yet (status 503): it may be loading its model");
  if (status === 502 || status === 504) return down(`a proxy answers, but no engine behind it (status ${status})`);
  if (!basePath.endsWith("/v1")) {
    const below = await get(client, `${basePath}/v1/models`, apiKey, timeoutMs);
    const isThere = isReply(below) && (await engineOf(asking, below)) !== null;
    if (isThere) return down("its API is one step further down: add /v1 to its address");
  }
  const problem = (await hasVoices(asking)) ? null : noList(listed);
  return { health: "well", silent: false, engine: null, problem };
}

/** Some servers of transcriptions and speech list no models, but all of their routes. */
async function hasVoices({ client, basePath, apiKey, timeoutMs }: Asking): Promise<boolean> {
  const routes = await get(client, `${rootOf(basePath)}/openapi.json`, apiKey, timeoutMs);
  if (!isReply(routes) || routes.status !== 200) return false;
  return ["transcriptions", "speech"].some((voice) => routes.body.includes(`"${basePath}/audio/${voice}"`));
}

const down = (problem: string, silent = false): Look => ({ health: "down", silent, engine: null, problem });

const refusedKey = (status: number, apiKey: string | null): string =>
  apiKey === null
    ? `it wants an API key (status ${status}): give it one with api_key_env in [[nodes]] of the configuration`
    : `it does not take the API key that it is given (status ${status})`;

function noList({ status, body }: NodeReply): string {
  if (status === 200 && /"data":\s?(?:\[\]|null)/.test(body)) return "it answers, but has no model: load one";
  return `it answers, but with no list of models (status ${status} at /models): is this an engine's address?`;
}

export function problemOf({ kind, cause }: NoReply): string {
  switch (kind) {
    case "silent":
      return `it takes the connection, but gives ${cause}`;
    case "no-reply":
    case "broken":
      return "it closes the connection without an answer";
    case "malformed":
      return "what listens there does not speak HTTP, or speaks https where the address says http";
    case "unreachable":
      return unreachable(cause);
  }
}

function unreachable(cause: string): string {
  if (cause === "ECONNREFUSED") return "it cannot be reached: nothing listens at its address";
  if (/NOTFOUND|EAI|DNS/.test(cause)) return "it cannot be reached: there is no host of its name";
  if (/EPROTO|WRONG_VERSION/.test(cause)) return "it cannot be reached by https: does it speak http?";
  if (/SSL|TLS|certificate/.test(cause)) return `it cannot be reached by https: ${inWords(cause)}`;
  return `it cannot be reached: ${cause}`;
}

/** For a certificate: what the operator can do, and the code to search for. */
function inWords(cause: string): string {
  if (cause.includes("ALTNAME")) return `its certificate is for another name than its address has (${cause})`;
  if (cause.includes("HAS_EXPIRED")) return `its certificate has expired (${cause})`;
  if (["SELF_SIGNED", "UNABLE_TO_VERIFY", "ISSUER"].some((part) => cause.includes(part)))
    return `no authority trusted here signed its certificate: name the authority's file in NODE_EXTRA_CA_CERTS (${cause})`;
  return cause;
}
