// GET /openapi.json: a description that an official validator takes, and that real replies, events and errors fit.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { chatCompletionsBody } from "../../src/dialects/chat/request.ts";
import { Dialects } from "../../src/dialects/registry.ts";
import { embeddingsBody } from "../../src/dialects/embeddings/request.ts";
import { speechBody } from "../../src/dialects/audio/speech.ts";
import { rerankBody } from "../../src/dialects/rerank/request.ts";
import { messagesBody } from "../../src/dialects/messages/request.ts";
import { responsesBody } from "../../src/dialects/responses/body.ts";
import type { JsonSchema, Method, OpenApiDocument, Operation } from "../../src/docs/openapi-document.ts";
import { describeApi } from "../../src/http/openapi/description.ts";
import { plainSchema } from "../../src/http/openapi/plain-schema.ts";
import { refusals } from "../../src/core/refusals.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

setDefaultTimeout(120_000);

const description = describeApi({ catalog: embeddedCatalog(), baseUrl: "https://llm.example.org" });
const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  (Object.entries(methods) as [Method, Operation][]).map(([method, operation]) => ({ method, path, operation })),
);

let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: "" });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

describe("the description", () => {
  test("is taken by an official validator", async () => {
    const validator = new Validator();
    const result = await validator.validate(structuredClone(description) as Record<string, any>);
    expect(result.errors ?? []).toEqual([]);
    expect([result.valid, validator.version]).toEqual([true, "3.1"]);
    const broken = { ...structuredClone(description), paths: { "/x": { get: { responses: "none" } } } };
    expect((await new Validator().validate(broken as Record<string, any>)).valid).toBe(false);
  });

  test("every reference in it leads somewhere, and every schema is used", () => {
    const text = JSON.stringify(description);
    const names = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!));
    expect([...names].sort()).toEqual(Object.keys(description.components.schemas).sort());
  });

  test("every route of every dialect is in it", () => {
    const context = { sealingKey: new Uint8Array(32), clock: systemClock, storesResponses: true };
    for (const { routes } of new Dialects(context).all) {
      for (const { path } of routes)
        expect([path, Object.keys(description.paths[path] ?? {})]).toEqual([path, ["post"]]);
    }
  });

  test.each([
    ["ChatCompletionsRequest", chatCompletionsBody],
    ["MessagesRequest", messagesBody],
    ["ResponsesRequest", responsesBody],
    ["EmbeddingsRequest", embeddingsBody],
    ["RerankRequest", rerankBody],
    ["SpeechRequest", speechBody],
  ])("%s has every field that the dialect checks, under the dialect's conditions", (name, checked) => {
    const { properties = {}, required } = description.components.schemas[name]!;
    const plain = plainSchema(checked);
    expect(Object.keys(properties).sort()).toEqual(Object.keys(plain.properties!).sort());
    expect(required).toEqual(plain.required);
    for (const [field, { minimum, maximum }] of Object.entries(plain.properties!)) {
      expect([field, properties[field]!.minimum, properties[field]!.maximum]).toEqual([field, minimum, maximum]);
    }
  });

  test("every operation has a sample in each language, an id of its own and a described refusal of wrong keys", () => {
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
    for (const { operation } of operations) {
      expect(operation["x-codeSamples"]?.map(({ lang }) => lang)).toEqual(["Shell", "JavaScript", "Python"]);
      if (operation.security === undefined) expect(Object.keys(operation.responses)).toContain("401");
    }
  });

  test("every refusal of the error table is described somewhere, but for the WebSocket's", () => {
    const described = new Set(
      operations.flatMap(({ operation }) =>
        Object.entries(operation.responses).flatMap(([, { content }]) =>
          Object.keys(content?.["application/json"]?.examples ?? {}),
        ),
      ),
    );
    const missing = Object.keys(refusals).filter((name) => !described.has(name));
    const ofSockets = ["invalid_stream_id", "websocket_stream_limit_reached", "websocket_connection_limit_reached"];
    expect(missing).toEqual([...ofSockets, "upgrade_required"]);
  });
});

describe("TypeBox schemas as plain JSON Schema", () => {
  test.each([
    [Type.Union([Type.Literal("a"), Type.Literal("b")]), { enum: ["a", "b"] }],
    [Type.Union([Type.Union([Type.Literal("a")]), Type.Null()]), { enum: ["a", null] }],
    [Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]), { type: ["integer", "null"], minimum: 1 }],
    [Type.Union([Type.String(), Type.Boolean()]), { anyOf: [{ type: "string" }, { type: "boolean" }] }],
    [Type.Record(Type.String(), Type.Number()), { type: "object", additionalProperties: { type: "number" } }],
    [Type.Record(Type.String(), Type.Unknown()), { type: "object" }],
    [Type.Unknown(), {}],
  ])("%#", (schema, plain) => {
    expect(plainSchema(schema)).toEqual(plain as JsonSchema);
    const ajv = new Ajv2020({ strict: false });
    for (const value of ["a", "b", "c", null, 0, 1, true, { x: 1 }, { x: "1" }, []]) {
      expect([value, ajv.validate(plain, value)]).toEqual([value, Value.Check(schema, value)]);
    }
  });
});

// ---------------------------------------------------------------------------------------------------------------
// Real replies
// ---------------------------------------------------------------------------------------------------------------

/** The schemas with no room for a member that is not described. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, closed(inner)] as const);
  const copy = Object.fromEntries(entries) as Record<string, unknown>;
  return "properties" in copy && copy["type"] === "object" ? { ...copy, additionalProperties: false } : copy;
}

const openMembers = new Set(["mcp_call", "InputItems", "ConversationItem"]);
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema(
  {
    $id: "api",
    components: {
      schemas: Object.fromEntries(
        Object.entries(description.components.schemas).map(([name, schema]) => [
          name,
          openMembers.has(name) ? schema : closed(schema),
        ]),
      ),
    },
  },
  "api",
);

/** Each is compiled once: that takes longer than all else here. */
const validators = new Map<string, ValidateFunction>();
function misfits(schema: JsonSchema, value: unknown): string[] {
  const text = JSON.stringify(schema).replaceAll('"#/', '"api#/');
  const validate = validators.getOrInsertComputed(text, () => ajv.compile(JSON.parse(text)));
  return validate(value)
    ? []
    : validate.errors!.map(
        ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
      );
}

const schemaOf = (path: string, method: Method, status: number): JsonSchema =>
  description.paths[path]![method]!.responses[status]!.content!["application/json"]!.schema;

const ask = (path: string, body?: unknown, method = body === undefined ? "GET" : "POST"): Promise<Response> =>
  fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.operatorKey}` },
    body: body === undefined ? undefined : JSON.stringify(body),
  });

const tools = [{ name: "forecast", parameters: { type: "object", properties: { place: { type: "string" } } } }];
const hello = [{ role: "user", content: "Say hello" }];

/** Requests that bring each form of an answer out of the demo node: text, thoughts, calls. */
const asked: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
  ["/v1/chat/completions", { model: "core-3", messages: hello }],
  ["/v1/chat/completions", { model: "open-01-3BIT-REAP", messages: hello, reasoning_effort: "high" }],
  [
    "/v1/chat/completions",
    {
      model: "core-3",
      messages: hello,
      tools: tools.map((tool) => ({ type: "function", function: tool })),
      tool_choice: "required",
    },
  ],
  ["/v1/messages", { model: "core-3", max_tokens: 300, messages: hello }],
  [
    "/v1/messages",
    {
      model: "open-01-3BIT-REAP",
      max_tokens: 300,
      messages: hello,
      thinking: { type: "enabled", budget_tokens: 2000 },
    },
  ],
  [
    "/v1/messages",
    {
      model: "core-3",
      max_tokens: 300,
      messages: hello,
      tools: tools.map(({ name, parameters }) => ({ name, input_schema: parameters })),
      tool_choice: { type: "any" },
    },
  ],
  ["/v1/responses", { model: "core-3", input: "Say hello" }],
  [
    "/v1/responses",
    {
      model: "open-01-3BIT-REAP",
      input: "Say hello",
      reasoning: { effort: "high" },
      include: ["reasoning.encrypted_content"],
    },
  ],
  [
    "/v1/responses",
    {
      model: "core-3",
      input: "Hi",
      tools: tools.map((tool) => ({ type: "function", ...tool })),
      tool_choice: "required",
    },
  ],
];

describe("real replies fit it, with no member that it does not name", () => {
  test.concurrent.each(asked)("POST %s %j", async (path, body) => {
    const reply = await ask(path, body);
    expect(reply.status).toBe(200);
    expect(misfits(schemaOf(path, "post", 200), await reply.json())).toEqual([]);
  });

  test.concurrent.each(asked)("the events of POST %s %j", async (path, body) => {
    const text = await (await ask(path, { ...body, stream: true })).text();
    const declared = description.paths[path]!.post!["x-events"]!;
    const events = text
      .split("\n\n")
      .map((event) => ({
        name: /^event: (.*)$/m.exec(event)?.[1] ?? "data",
        data: /^data: (.*)$/m.exec(event)?.[1] ?? "[DONE]",
      }))
      .filter(({ data }) => data !== "[DONE]");
    expect(events.length).toBeGreaterThan(3);
    for (const { name, data } of events) {
      expect(Object.keys(declared)).toContain(name);
      expect([name, ...misfits(declared[name]!.schema, JSON.parse(data))]).toEqual([name]);
    }
  });

  test("what is counted, listed, stored and deleted", async () => {
    const stored = (await (await ask("/v1/responses", { model: "core-3", input: "Keep this" })).json()) as {
      id: string;
    };
    const one = `/v1/responses/${stored.id}`;
    const begun = await ask("/v1/conversations", { metadata: {} });
    const made: unknown = await begun.json();
    expect(misfits(schemaOf("/v1/conversations", "post", 200), made)).toEqual([]);
    const { id } = made as { id: string };
    const own = `/v1/conversations/${id}`;
    const added: unknown = await (await ask(`${own}/items`, { items: hello })).json();
    expect(misfits(schemaOf("/v1/conversations/{id}/items", "post", 200), added)).toEqual([]);
    const item = (added as { first_id: string }).first_id;
    const calls: readonly (readonly [Method, string, string, number, unknown?])[] = [
      ["post", "/v1/tokenize", "/v1/tokenize", 200, { text: "Hello", return_tokens: true }],
      ["post", "/v1/tokenize", "/v1/tokenize", 200, { model: "core-3", messages: hello }],
      ["post", "/v1/messages/count_tokens", "/v1/messages/count_tokens", 200, { model: "core-3", messages: hello }],
      ["post", "/v1/responses/input_tokens", "/v1/responses/input_tokens", 200, { model: "core-3", input: "Hello" }],
      ["post", "/v1/responses/compact", "/v1/responses/compact", 200, { model: "core-3", input: hello }],
      ["get", "/v1/models", "/v1/models", 200],
      ["get", "/v1/models/{id}", "/v1/models/core-3", 200],
      ["get", "/v1/models/{id}", "/v1/models/none", 404],
      ["get", "/v1/responses/{id}", one, 200],
      ["get", "/v1/responses/{id}/input_items", `${one}/input_items?order=asc`, 200],
      ["get", "/v1/responses/{id}/input_items", `${one}/input_items?limit=0`, 400],
      ["post", "/v1/responses/{id}/cancel", `${one}/cancel`, 400, {}],
      ["delete", "/v1/responses/{id}", one, 200],
      ["get", "/v1/conversations/{id}", own, 200],
      ["post", "/v1/conversations/{id}", own, 200, { metadata: { a: "b" } }],
      ["get", "/v1/conversations/{id}/items", `${own}/items`, 200],
      ["get", "/v1/conversations/{id}/items/{item_id}", `${own}/items/${item}`, 200],
      ["post", "/v1/responses", "/v1/responses", 200, { model: "core-3", input: "Hi", conversation: id }],
      ["delete", "/v1/conversations/{id}/items/{item_id}", `${own}/items/${item}`, 200],
      ["delete", "/v1/conversations/{id}", own, 200],
      ["post", "/v1/conversations/{id}/items", `${own}/items`, 404, { items: hello }],
      ["get", "/v1/responses/{id}", one, 404],
    ];
    for (const [method, path, address, status, body] of calls) {
      const reply = await ask(address, body, method.toUpperCase());
      expect([address, reply.status]).toEqual([address, status]);
      expect([address, ...misfits(schemaOf(path, method, status), await reply.json())]).toEqual([address]);
    }
  });

  test("the errors, one of each that a client can cause", async () => {
    const calls: readonly (readonly [path: string, body: string, status: number, headers?: Record<string, string>])[] =
      [
        ["/v1/chat/completions", "{", 400],
        ["/v1/chat/completions", '{"model":"none","messages":[{"role":"user","content":"x"}]}', 400],
        ["/v1/chat/completions", "{}", 401, { authorization: "Bearer sk-none" }],
        ["/v1/chat/completions", "{}", 415, { "content-encoding": "compress" }],
        ["/v1/messages", '{"model":"core-3"}', 400],
        ["/v1/messages", "{}", 401, { authorization: "" }],
        ["/v1/responses", '{"model":"core-3","input":"x","previous_response_id":"resp_0"}', 400],
        ["/v1/tokenize", JSON.stringify({ text: "x".repeat(4_000_001) }), 413],
      ];
    for (const [path, body, status, headers] of calls) {
      const reply = await fetch(`${gateway.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.operatorKey}`, ...headers },
        body,
      });
      expect([path, body.slice(0, 60), reply.status]).toEqual([path, body.slice(0, 60), status]);
      expect(misfits(schemaOf(path, "post", status), await reply.json())).toEqual([]);
    }
  });
});

test("the server gives the description with its own address, compressed where that is taken, and not twice", async () => {
  const reply = await fetch(`${gateway.url}/openapi.json`, { headers: { "accept-encoding": "gzip" } });
  expect(reply.headers.get("content-encoding")).toBe("gzip");
  const served = (await reply.json()) as OpenApiDocument;
  expect(served.servers).toEqual([{ url: gateway.url }]);
  expect(Object.keys(served.paths)).toEqual(Object.keys(description.paths));
  const etag = reply.headers.get("etag")!;
  const again = await fetch(`${gateway.url}/openapi.json`, { headers: { "if-none-match": etag } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});
