// Recognizing engines: what each says about itself, and what must not be mistaken for one.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { NodeClient } from "../../src/nodes/client/client.ts";
import { dialSocket, originOf } from "../../src/nodes/client/dial.ts";
import { discoverLocalEngine, type Engine, factsOf, unlisted } from "../../src/nodes/engine.ts";
import { lookAt } from "../../src/nodes/health/look.ts";
import { RawNode, wholeReply } from "../fixtures/raw-node.ts";
import { recorded, recordedAs, recordedNode, type RecordedEngine } from "../fixtures/recorded-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

const opened = <Node extends { stop(): void }>(node: Node): Node => {
  open.push(node);
  return node;
};

/** A node that answers the paths given, else 404. */
const nodeOf = (paths: Record<string, string>): RawNode =>
  opened(new RawNode(({ path }, reply) => reply.write(paths[path] ?? wholeReply("404 Not Found", ""))));

const list = (...entries: object[]): string =>
  wholeReply(
    "200 OK",
    JSON.stringify({
      object: "list",
      data: entries.map((entry) => ({ id: "m", object: "model", created: 1, ...entry })),
    }),
  );

function engineOn(node: RawNode, known: Engine | null = null, timeoutMs = 2_000): Promise<Engine | null> {
  const client = new NodeClient(originOf(new URL(node.url)), { clock: systemClock });
  opened({ stop: () => client.close() });
  return lookAt({ client, basePath: "/v1", apiKey: null, timeoutMs }, known).then(({ engine }) => engine);
}

test.each([
  [{ enable_priority_scheduling: true, schedule_low_priority_values_first: false }, "high"],
  [{ enable_priority_scheduling: true, schedule_low_priority_values_first: true }, "low"],
  [{ enable_priority_scheduling: false, schedule_low_priority_values_first: true }, undefined],
  [{}, undefined],
] as const)("SGLang that reports %j begins %p numbers first", async (reported, urgentFirst) => {
  const info = wholeReply("200 OK", JSON.stringify({ version: "0.5.23", ...reported }));
  const node = nodeOf({ "/v1/models": list({ owned_by: "sglang" }), "/server_info": info });
  expect(await engineOn(node)).toMatchObject({ kind: "sglang", version: "0.5.23" });
  expect((await engineOn(node))!.urgentFirst).toBe(urgentFirst);
});

describe("which engine, as recorded", () => {
  const told: [RecordedEngine, Engine][] = [
    [
      "vllm",
      {
        kind: "vllm",
        version: "0.32.0",
        models: [{ name: "tiny-chat", contextTokens: 4_096, capabilities: {} }],
        chatModels: ["tiny-chat"],
      },
    ],
    [
      "sglang",
      {
        kind: "sglang",
        version: null,
        models: [{ name: "tiny-chat", contextTokens: 4_096, capabilities: {} }],
        chatModels: ["tiny-chat"],
      },
    ],
    [
      "ollama",
      {
        kind: "ollama",
        version: "0.0.0",
        models: [
          {
            name: "tiny-chat:latest",
            contextTokens: 4_096,
            capabilities: { chat: true, tools: true, thinking: true, images: false, audio: false, embeddings: false },
          },
        ],
        chatModels: ["tiny-chat:latest"],
      },
    ],
    [
      "llama-server",
      {
        kind: "llama.cpp",
        version: "b1-de3ff81",
        requestsMax: 2,
        models: [{ name: "tiny", contextTokens: 4_096, capabilities: { images: false, audio: false, tools: true } }],
        chatModels: ["tiny"],
      },
    ],
    [
      "llama-cpp-python",
      {
        kind: "llama-cpp-python",
        version: null,
        requestsMax: 1,
        models: [{ name: "/opt/models/sharedfil/tiny-model/tiny-chat.gguf", contextTokens: null, capabilities: {} }],
        chatModels: ["/opt/models/sharedfil/tiny-model/tiny-chat.gguf"],
      },
    ],
    [
      "litellm",
      {
        kind: "unknown",
        version: null,
        models: [
          { name: "tiny-chat", contextTokens: 2_048, capabilities: { chat: true } },
          { name: "tiny-ollama", contextTokens: null, capabilities: {} },
        ],
        chatModels: ["tiny-chat", "tiny-ollama"],
      },
    ],
    [
      "sglang-router",
      {
        kind: "sglang-router",
        version: null,
        models: [{ name: "unknown", contextTokens: null, capabilities: {} }],
        chatModels: [],
      },
    ],
    [
      "transformers-cache",
      {
        kind: "transformers",
        version: null,
        models: [{ name: "tollgate/tiny-chat", contextTokens: null, capabilities: {} }],
        chatModels: ["tollgate/tiny-chat"],
      },
    ],
    [
      "vllm-router",
      {
        kind: "vllm",
        version: null,
        models: [{ name: "tiny-chat", contextTokens: 2_048, capabilities: {} }],
        chatModels: ["tiny-chat"],
      },
    ],
  ];
  for (const [engine, expected] of told)
    test(engine, async () => expect(await engineOn(opened(recordedNode(engine)))).toEqual(expected));
  test("transformers that is pinned to a folder lists nothing", async () =>
    expect(await engineOn(opened(recordedNode("transformers")))).toBeNull());
  test("what is known is not asked for again while the list is the same, but for what Ollama has loaded", async () => {
    for (const [engine, again] of [
      ["vllm", ["/v1/models"]],
      ["ollama", ["/v1/models", "/api/version", "/api/ps"]],
    ] as const) {
      const node = opened(recordedNode(engine));
      const known = await engineOn(node);
      const before = node.requests.length;
      expect(await engineOn(node, known)).toBe(known);
      expect(node.requests.slice(before).map(({ path }) => path)).toEqual([...again]);
    }
  });
  test("a context that Ollama had stands while the model is not loaded, and another one is seen", async () => {
    let running = recorded("ollama", "80-api-ps");
    const node = opened(recordedNode("ollama", { "/api/ps": (_, reply) => reply.write(running) }));
    const known = await engineOn(node);
    running = recordedAs("ollama", "80-api-ps", () => '{"models":[]}');
    expect(await engineOn(node, known)).toBe(known);
    running = recordedAs("ollama", "80-api-ps", (body) => body.replace("4096", "32768"));
    expect((await engineOn(node, known))!.models[0]).toMatchObject({ contextTokens: 32_768 });
    running = recordedAs("ollama", "80-api-ps", () => '{"models":[]}');
    expect((await engineOn(node))!.models[0]).toMatchObject({ contextTokens: null });
  });
  test("num_ctx of a Modelfile is the context of a model that is not loaded", async () => {
    const show = wholeReply(
      "200 OK",
      JSON.stringify({ parameters: 'stop    "x"\nnum_ctx                        16384' }),
    );
    const node = opened(recordedNode("ollama", { "/api/ps": wholeReply("200 OK", "{}"), "/api/show": show }));
    expect((await engineOn(node))!.models[0]).toMatchObject({ contextTokens: 16_384 });
  });
});

describe("which engine, by what is told", () => {
  test("by the owner in its model list", async () => {
    expect(await engineOn(nodeOf({ "/v1/models": list({ owned_by: "organization_owner" }) }))).toMatchObject({
      kind: "lm-studio",
      models: [{ contextTokens: null }],
    });
  });
  test("an adapter of vLLM has its base model's context", async () => {
    const entry = (id: string, more: object) => ({ id, object: "model", owned_by: "vllm", ...more });
    const data = [
      entry("adapter", { parent: "base", max_model_len: null }),
      entry("base", { parent: null, max_model_len: 4_096 }),
      entry("lost", { parent: "gone", max_model_len: null }),
    ];
    const engine = await engineOn(
      nodeOf({ "/v1/models": wholeReply("200 OK", JSON.stringify({ object: "list", data })) }),
    );
    expect(engine?.models.map(({ contextTokens }) => contextTokens)).toEqual([4_096, 4_096, null]);
  });
  test("by routes of its own", async () => {
    expect(
      await engineOn(
        nodeOf({ "/v1/models": list({}), "/info": wholeReply("200 OK", '{"max_total_tokens":4096,"version":"3"}') }),
      ),
    ).toMatchObject({ kind: "tgi", version: "3", models: [{ contextTokens: 4_096 }] });
  });
  test("unknown stays unknown", async () => {
    expect(await engineOn(nodeOf({ "/v1/models": list({ owned_by: "somebody" }) }))).toEqual({
      kind: "unknown",
      version: null,
      models: [{ name: "m", contextTokens: null, capabilities: {} }],
      chatModels: ["m"],
    });
  });
  const others: [string, string][] = [
    ["a web page", wholeReply("200 OK", "<html>", "Content-Type: text/html\r\n")],
    ["other JSON", wholeReply("200 OK", '{"models":[]}')],
    ["an empty list", wholeReply("200 OK", '{"object":"list","data":[]}')],
    ["a list of something else", wholeReply("200 OK", '{"object":"list","data":[{"id":1}]}')],
    ["404", wholeReply("404 x", "")],
    ["a redirect", wholeReply("302 Found", "", "Location: http://127.0.0.1:1/v1/models\r\n")],
  ];
  for (const [name, reply] of others)
    test(`none: ${name}`, async () => expect(await engineOn(nodeOf({ "/v1/models": reply }))).toBeNull());
});

describe("a node that lies or says too much", () => {
  const lies = [0, -1, 1, 1e300, 4_096.5, "4096", null, true, [], {}];
  test.each(lies.map((lie) => [JSON.stringify(lie), lie] as const))("a context of %s is not told", async (_, lie) => {
    const engine = await engineOn(nodeOf({ "/v1/models": list({ owned_by: "vllm", max_model_len: lie }) }));
    expect(engine!.models[0]!.contextTokens).toBeNull();
    const props = wholeReply(
      "200 OK",
      JSON.stringify({ default_generation_settings: { n_ctx: lie }, build_info: lie }),
    );
    const other = await engineOn(nodeOf({ "/v1/models": list({ owned_by: "llamacpp" }), "/props": props }));
    expect(other!.models[0]!.contextTokens).toBeNull();
    const ps = JSON.stringify({ models: [{ name: "tiny-chat:latest", context_length: lie }, lie] });
    const node = opened(recordedNode("ollama", { "/api/ps": wholeReply("200 OK", ps) }));
    expect((await engineOn(node))!.models[0]!.contextTokens).toBeNull();
  });
  test("names of the language's own objects are names", async () => {
    const engine = await engineOn(nodeOf({ "/v1/models": list({ id: "__proto__" }, { id: "constructor" }) }));
    expect(engine!.models.map(({ name }) => name)).toEqual(["__proto__", "constructor"]);
    expect(factsOf(engine!, "toString")).toBeNull();
  });
  test("100,000 models, a list of 10 MB, one without an end, and one that is never sent", async () => {
    const many = Array.from({ length: 10_000 }, (_none, index) => ({ id: `m${index}` }));
    expect((await engineOn(nodeOf({ "/v1/models": list(...many) })))!.models.length).toBe(1_000);
    const most = Array.from({ length: 100_000 }, (_none, index) => ({ id: `m${index}` }));
    expect(await engineOn(nodeOf({ "/v1/models": list(...most) }))).toBeNull();
    expect(await engineOn(nodeOf({ "/v1/models": list({ id: "m".repeat(10_000_000) }) }))).toBeNull();
    const endless = opened(
      new RawNode((_, reply) => {
        reply.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
        const more = setInterval(() => reply.write("[".repeat(65_536)), 1);
        void reply.closed.then(() => clearInterval(more));
      }),
    );
    expect(await engineOn(endless)).toBeNull();
    const started = performance.now();
    const slow = opened(new RawNode((_, reply) => reply.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")));
    expect(await engineOn(slow, null, 100)).toBeNull();
    expect(performance.now() - started).toBeLessThan(5_000);
  });
  test("routes of its own that never answer leave what the list says", async () => {
    const node = opened(recordedNode("vllm", { "/version": () => {} }));
    expect(await engineOn(node, null, 100)).toMatchObject({
      kind: "vllm",
      version: null,
      models: [{ contextTokens: 4_096 }],
    });
  });
});

describe("the model that is asked for where none is named", () => {
  const chatModels = async (...entries: object[]) =>
    (await engineOn(nodeOf({ "/v1/models": list(...entries) })))!.chatModels;
  test("is no embedding or rerank model, by what the engine says of it", async () => {
    const embedding = recordedAs("ollama", "01-models", (body) =>
      body.replace('"data":[', '"data":[{"id":"mystery:latest","object":"model","created":2,"owned_by":"library"},'),
    );
    const node = opened(
      recordedNode("ollama", {
        "/v1/models": embedding,
        "/api/show": ({ body }, reply) =>
          reply.write(
            body.includes("mystery")
              ? wholeReply("200 OK", '{"capabilities":["embedding"]}')
              : recorded("ollama", "81-api-show"),
          ),
      }),
    );
    expect((await engineOn(node))!.chatModels).toEqual(["tiny-chat:latest"]);
    expect(await chatModels({ id: "a", mode: "embedding" }, { id: "b", mode: "rerank" }, { id: "c" })).toEqual(["c"]);
  });
  test("nor by its name, where the engine says nothing of it; where all are named so, names say nothing", async () => {
    const names = ["text-embedding-nomic", "BAAI/bge-m3", "qwen3-reranker", "qwen3"].map((id) => ({ id }));
    expect(await chatModels(...names)).toEqual(["qwen3"]);
    expect(await chatModels({ id: "embed-everything" }, { id: "rerank" })).toEqual(["embed-everything", "rerank"]);
  });
  test("is not the placeholder of a router", async () => {
    expect(await chatModels({ id: "unknown" })).toEqual([]);
    expect(await chatModels({ id: "unknown" }, { id: "m" })).toEqual(["unknown", "m"]);
  });
  test("what is not listed is told, but of those that answer to any name", async () => {
    const ollama = (await engineOn(opened(recordedNode("ollama"))))!;
    expect(unlisted(ollama, ["*", "tiny-chat", "tiny-chat:latest"])).toBeNull();
    expect(unlisted(ollama, ["qwen3"])).toBe("does not list qwen3, but tiny-chat:latest");
    expect(unlisted((await engineOn(opened(recordedNode("llama-server"))))!, ["qwen3"])).toBeNull();
    expect(unlisted((await engineOn(opened(recordedNode("sglang-router"))))!, ["qwen3"])).toBeNull();
  });
});

describe("a local engine", () => {
  const discover = (ports: Record<number, number>) =>
    discoverLocalEngine((origin, listener) => {
      const port = ports[origin.port];
      if (port === undefined) setTimeout(() => listener.closed("ECONNREFUSED"), 0);
      else dialSocket({ ...origin, port }, listener);
    });
  test("is found on its default port and serves every model by what it lists", async () => {
    expect(await discover({ 8080: opened(recordedNode("llama-server")).port })).toEqual({
      name: "llama-cpp",
      url: "http://127.0.0.1:8080/v1",
      apiKey: null,
      slots: "auto",
      models: { "*": "*" },
    });
  });
  test("the first in order wins", async () => {
    const node = opened(recordedNode("vllm"));
    expect(await discover({ 8080: node.port, 8000: node.port })).toMatchObject({ name: "vllm" });
  });
  test("none: nothing listens, another web server does, or one that never answers", async () => {
    expect(await discover({})).toBeNull();
    expect(await discover({ 8080: nodeOf({ "/v1/models": wholeReply("200 OK", "<html>") }).port })).toBeNull();
    const silent = opened(new RawNode(() => {}));
    expect(await discover({ 8080: silent.port, 8000: silent.port })).toBeNull();
  });
});
