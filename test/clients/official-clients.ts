// The official JavaScript clients in the versions that are in use, each behind the few calls that scenarios need. Their
// own retries, parsers and helpers are left on: they are what is being tested.
import { describe, expect, test } from "bun:test";
import { viewOf } from "../fixtures/client-view.ts";
import { asking, type Dialect, dialectOf, type DialectName, hosted, type Turn } from "../fixtures/dialects.ts";
import { installed, missing } from "../fixtures/optional.ts";
import type { Stack } from "../fixtures/stack.ts";

// the packages' own types are not there in a plain checkout, and differ between versions
type Json = Record<string, any>;
type Server = Readonly<{ url: string; key: string; fetch: typeof fetch }>;

type OfficialClient = Readonly<{
  /** The package's name, and what it is called in tests. */
  name: string;
  label: string;
  dialect: Dialect;
  /** Null where the package is not installed. */
  module: Json | null;
}>;

const openaiMajors = { 7: "openai", 6: "openai-6", 5: "openai-5", 4: "openai-4" };
const anthropicVersions = { 1: "@anthropic-ai/sdk", "0.137": "anthropic-0.137", "0.60": "anthropic-0.60" };

async function installedClients(names: Json, brand: string, ...spoken: DialectName[]): Promise<OfficialClient[]> {
  const versions = Object.entries(names).sort(([a], [b]) => Number(b) - Number(a));
  const clients = versions.flatMap(([version, name]) =>
    spoken.map((dialect) => ({ name, label: `${brand} ${version}, ${dialect}`, dialect: dialectOf[dialect] })),
  );
  return Promise.all(
    clients.map(async (client) => ({ ...client, module: await installed<Json>(client.name, import.meta.dir) })),
  );
}
const clients: readonly OfficialClient[] = [
  ...(await installedClients(openaiMajors, "openai", "chat", "responses")),
  ...(await installedClients(anthropicVersions, "anthropic", "messages")),
];

/** For describe.each: those that speak a dialect and are installed; the others are skipped with a printed reason. */
export function clientsOf(...names: readonly DialectName[]): [string, OfficialClient][] {
  return clients
    .filter(({ dialect }) => names.includes(dialect.name))
    .filter(({ label, name, module }) => {
      const absent = missing(name, module !== null, "run npm ci in test/clients");
      if (absent) describe(label, () => test.skip("is not installed", () => {}));
      return !absent;
    })
    .map((client) => [client.label, client]);
}

/** The calls of one client's object, by the same names in each dialect. */
type Calls = Readonly<{
  /** The package's own object. */
  sdk: Json;
  create(body: object, options?: object): Promise<Json & AsyncIterable<Json>>;
  /** What the helper puts together of a stream. */
  helped(body: object): Promise<Json>;
  /** What the client's parser makes of an answer in the shape of a schema; null where it has none. */
  parsed(body: object, schema: object): Promise<any>;
  /** The text that an event of a stream brings. */
  textOf(event: Json): string;
}>;

/** What the client's zod helper adds. */
const parseable = { $brand: "auto-parseable-response-format", $parseRaw: JSON.parse };

function connect({ dialect, module }: OfficialClient, { url, key, fetch }: Server): Calls {
  if (dialect.name === "messages") {
    const sdk = new module!["Anthropic"]({ baseURL: url, apiKey: key, fetch });
    const { messages } = sdk;
    return {
      sdk,
      create: (body, options) => messages.create(body, options),
      helped: (body) => messages.stream(body).finalMessage(),
      async parsed(body, schema) {
        const format = { type: "json_schema", schema, parse: JSON.parse };
        if (messages.parse === undefined) return null;
        return (await messages.parse({ ...body, output_config: { format } })).parsed_output;
      },
      textOf: (event) => event["delta"]?.text ?? "",
    };
  }
  const sdk = new module!["OpenAI"]({ baseURL: `${url}/v1`, apiKey: key, fetch });
  if (dialect.name === "responses") {
    const { responses } = sdk;
    return {
      sdk,
      create: (body, options) => responses.create(body, options),
      helped: (body) => responses.stream(body).finalResponse(),
      async parsed(body, schema) {
        const format = { type: "json_schema", name: "answer", strict: true, schema, ...parseable };
        const asked = { ...body, text: { format } };
        const streamed = (await responses.stream(asked).finalResponse()).output_parsed;
        expect(streamed).toEqual((await responses.parse(asked)).output_parsed);
        return streamed;
      },
      textOf: (event) => (event["type"] === "response.output_text.delta" ? event["delta"] : ""),
    };
  }
  // versions before 5 keep the helpers under `beta`
  const { completions } = sdk.chat;
  const helpers = completions.stream === undefined ? sdk.beta.chat.completions : completions;
  return {
    sdk,
    create: (body, options) => completions.create(body, options),
    helped: (body) => helpers.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion(),
    async parsed(body, schema) {
      const json_schema = { name: "answer", strict: true, schema };
      const format = { type: "json_schema", json_schema, ...parseable };
      return (await helpers.parse({ ...body, response_format: format })).choices[0].message.parsed;
    },
    textOf: (event) => event["choices"][0]?.delta.content ?? "",
  };
}

export type NewClient = Calls & Readonly<{ email: string; sent(): number }>;

/** What the scenarios of a client need of a gateway that searches. */
export function served(stack: Stack, client: OfficialClient) {
  const { dialect } = client;
  return {
    /** A client of a new account, and the number of HTTP requests that it made. */
    async newClient(credit?: number, key?: string): Promise<NewClient> {
      const { api_key, email } = await stack.gateway.account(credit);
      let requests = 0;
      const counting = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        requests++;
        return fetch(input, init);
      };
      const server = { url: stack.gateway.url, key: key ?? api_key, fetch: Object.assign(counting, fetch) };
      return { ...connect(client, server), email, sent: () => requests };
    },
    /** A request that shows all there is of a script, or of its marker. */
    ask(script: string, more: Json = {}, ...turns: readonly Turn[]): Json {
      const marker = script.includes("#") ? script : stack.node.marker(script);
      const usual = { model: hosted, [dialect.budgets[0]!]: 2_100, ...dialect.showing.at(-1) };
      return asking(dialect, `hello [[${marker}]]`, { ...usual, ...more }, turns);
    },
    /** What a reply says, as the client gave it. */
    told(reply: Json) {
      const written = JSON.stringify(reply);
      const { text, finish, usage } = viewOf(dialect.endpoint, false, written);
      const json = JSON.parse(written) as Json;
      // of a response the client's helpers may leave members out
      const gathered = dialect.name === "responses" ? json : dialect.reader.ofReply(json);
      return { text, ending: finish!, usage, ...dialect.reader.told(gathered) };
    },
  };
}

/** The error that the promise rejects with. */
export async function failure(promise: PromiseLike<unknown>): Promise<Error & Json> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("expected an error");
}
