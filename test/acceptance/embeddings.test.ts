// Embeddings and reranking over HTTP: what clients of OpenAI, Jina and Cohere send and read, and that each request is
// reserved, charged and refused like any other.
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { base64Of, InputsNode, inputsConfig, scoreOf, tokensIn, vectorOf } from "../fixtures/inputs-node.ts";

setDefaultTimeout(120_000);

const node = new InputsNode();
const tei = new InputsNode({ lists: ["tei-rerank", "only-floats"], ranksAtRoot: true, floatsOnly: true });
let gateway: GatewayProcess;
const priced = "price = 5"; // a token costs a balance token
beforeAll(async () => {
  gateway = await GatewayProcess.start({
    config: `${inputsConfig(node, [
      ["bge-tiny", "embedding", priced],
      ["rerank-tiny", "rerank", priced],
      ["chat-tiny", "chat", priced],
      ["only-floats", "embedding"],
      ["tei-rerank", "rerank", priced],
    ])}[[nodes]]\nname = "tei"\nurl = "${tei.url}"\nslots = 4\n[nodes.models]\n"only-floats" = "x"\n"tei-rerank" = "x"\n`,
  });
});
afterEach(() => gateway.expectNothingReserved());
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node[Symbol.dispose]();
  tei[Symbol.dispose]();
});

type Answer = Readonly<{ status: number; body: any; headers: Headers }>;
async function post(account: Account, path: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  const reply = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${account.api_key}` },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  return { status: reply.status, body: await reply.json(), headers: reply.headers };
}
const embed = (account: Account, input: unknown, more: object = {}) =>
  post(account, "/v1/embeddings", { model: "bge-tiny", input, ...more });
const rank = (account: Account, more: object) => post(account, "/v1/rerank", { model: "rerank-tiny", ...more });
const charges = async ({ email }: Account) =>
  (await gateway.usage(email)).map(({ endpoint, model, input, output, billed_tokens, estimated }) => ({
    endpoint,
    model,
    input,
    output,
    billed_tokens,
    estimated,
  }));

describe("embeddings", () => {
  test.each([
    ["a string", "héllo", ["héllo"]],
    ["strings", ["a", "bb"], ["a", "bb"]],
    ["tokens", [5, 6, 7], [[5, 6, 7]]],
    ["lists of tokens", [[5], [6, 7]], [[5], [6, 7]]],
  ])("%s become vectors, charged by the node's count", async (_, input, inputs) => {
    const account = await gateway.account();
    const { status, body, headers } = await embed(account, input, { user: "u" });
    const tokens = tokensIn(inputs);
    expect([status, headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
    expect(body).toEqual({
      object: "list",
      data: inputs.map((each, index) => ({ object: "embedding", index, embedding: [...vectorOf(each)] })),
      model: "bge-tiny",
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
    expect(await charges(account)).toEqual([
      {
        endpoint: "/v1/embeddings",
        model: "bge-tiny",
        input: tokens,
        output: 0,
        billed_tokens: tokens,
        estimated: false,
      },
    ]);
    expect(node.requests.at(-1)).toEqual({ path: "/v1/embeddings", body: { model: "bge-tiny", input: inputs } });
  });

  test("base64 is what the node's floats are, whether it writes them so or not", async () => {
    const account = await gateway.account();
    const wanted = base64Of(vectorOf("a"));
    for (const model of ["bge-tiny", "only-floats"]) {
      const { body } = await embed(account, ["a"], { model, encoding_format: "base64" });
      expect([model, body.data[0].embedding]).toEqual([model, wanted]);
    }
  });

  test("dimensions are asked of the node, and refused where it makes others", async () => {
    const account = await gateway.account();
    expect((await embed(account, "a", { dimensions: 8 })).status).toBe(200);
    expect(node.requests.at(-1)!.body).toMatchObject({ dimensions: 8 });
    const refused = await embed(account, "a", { dimensions: 4 });
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      "dimensions must be left out: the model makes vectors of 8 numbers here",
    ]);
    expect(await charges(account)).toHaveLength(1);
  });

  test.each([
    [{}, "input is missing: must be a string, an array of strings"],
    [{ input: [{}] }, "input[0] must be a string or tokens"],
    [{ input: "" }, "input must not be empty"],
    [{ input: [] }, "input must not be empty"],
    [{ input: ["a", ""] }, "input[1] must not be empty"],
    [{ input: ["a", 1] }, "input[1] must be a string"],
    [{ input: [1, "a"] }, "input must be an array of tokens"],
    [{ input: [[1], []] }, "input[1] must not be empty"],
    [{ input: [[1], ["a"]] }, "input[1] must be an array of tokens"],
    [{ input: [-1] }, "input must be an array of tokens"],
    [{ input: [1.5] }, "input must be an array of tokens"],
    [{ input: [{ toString: 1 }] }, "input[0] must be a string"],
    [{ input: Array(16_385).fill("a") }, "input must have at most 16384 items"],
    [{ input: "a", encoding_format: "hex" }, "encoding_format"],
    [{ input: "a", dimensions: 0 }, "dimensions"],
    [{ input: "a", model: "chat-tiny" }, "model must be one that makes embeddings: chat-tiny gives answers"],
    [{ input: "a", model: "rerank-tiny" }, "model must be one that makes embeddings: rerank-tiny is for reranking"],
    [{ input: "a", model: "none" }, "The model `none` does not exist"],
  ])("%j is a 400 that names it", async (body, message) => {
    const account = await gateway.account();
    const reply = await post(account, "/v1/embeddings", { model: "bge-tiny", ...body });
    expect([reply.status, reply.body.error.type]).toEqual([400, "invalid_request_error"]);
    expect(reply.body.error.message).toContain(message);
    await gateway.expectUncharged(account);
  });

  test("every base address leads there, and a wrong key is refused in OpenAI's form", async () => {
    const account = await gateway.account();
    for (const path of ["/embeddings", "/v1/v1/embeddings", "/openai/v1/embeddings", "/v1/embeddings/"]) {
      expect([path, (await post(account, path, { model: "bge-tiny", input: "a" })).status]).toEqual([path, 200]);
    }
    const refused = await embed({ ...account, api_key: "sk-none" }, "a");
    expect([refused.status, refused.body.error.code]).toEqual([401, "invalid_api_key"]);
  });

  test.each([
    ["more inputs than a small body has", Array.from({ length: 2_048 }, (_, index) => `text ${index} é`), {}],
    ["a large body", ["a", "b é \u{1f600}"], { padding: "x".repeat(largeBodyMinBytes) }],
    ["a large body of tokens", [[1, 2], [3]], { padding: "x".repeat(largeBodyMinBytes) }],
    ["a body of very many tokens", Array.from({ length: 20 }, () => Array(4_000).fill(7) as number[]), {}],
  ])("%s gives the same as a small one", async (_, input: unknown[], more) => {
    const account = await gateway.account();
    const { status, body } = await embed(account, input, { ...more, encoding_format: "base64" });
    expect(status).toBe(200);
    expect(body.data.map(({ embedding }: { embedding: string }) => embedding)).toEqual(
      input.map((each) => base64Of(vectorOf(each))),
    );
    expect(node.requests.at(-1)!.body.input).toEqual(input);
    expect(await charges(account)).toMatchObject([{ input: tokensIn(input), estimated: false }]);
  });

  test.each(["one missing", "one twice", "no number", "other dimensions", "break off"])(
    "an answer with %s is an error, and free",
    async (fault) => {
      const account = await gateway.account();
      const { status, body } = await embed(account, [fault, "b", "c"]);
      expect([status, body.error.type]).toEqual([500, "api_error"]);
      await gateway.expectUncharged(account);
    },
  );

  test("an error of the node is free, and says nothing of its words", async () => {
    const account = await gateway.account();
    for (const status of [500, 503, 400, 404]) {
      const reply = await embed(account, [`status ${status} at 10.0.0.7`]);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(JSON.stringify(reply.body)).not.toContain("10.0.0.7");
    }
    await gateway.expectUncharged(account);
  });

  test.each(["no usage", "absurd usage"])("with %s our own count is charged, flagged", async (fault) => {
    const account = await gateway.account();
    const { body } = await embed(account, [`${fault}: the quick brown fox jumps over the lazy dog`, "b"]);
    const [row] = await charges(account);
    expect(row).toMatchObject({ estimated: true, input: body.usage.prompt_tokens });
    expect(row!.input).toBeGreaterThan(8);
    expect(row!.input).toBeLessThan(40);
  });

  test("a client that leaves before its answer pays nothing, and the node is left at once", async () => {
    const account = await gateway.account();
    const leaving = new AbortController();
    const before = node.left;
    const reply = post(account, "/v1/embeddings", { model: "bge-tiny", input: "hold" }, leaving.signal).catch(
      () => null,
    );
    await eventually("the node is asked", async () => node.requests.at(-1)?.body.input?.toString() === "hold");
    expect((await gateway.show(account.email)).reserved).toBeGreaterThan(0);
    leaving.abort();
    expect(await reply).toBeNull();
    await eventually("the node is left", async () => node.left === before + 1);
    await gateway.expectUncharged(account);
  });

  test("what the input is expected to cost is reserved, and more than the balance is refused before a node is asked", async () => {
    const account = await gateway.account(0);
    const { spendable } = await gateway.show(account.email);
    const asked = node.requests.length;
    const refused = await embed(account, "x".repeat(2 * spendable + 1_000));
    expect([refused.status, refused.body.error.code]).toEqual([429, "insufficient_quota"]);
    expect(refused.body.error.requested).toBeGreaterThan(spendable);
    expect(node.requests.length).toBe(asked);
    expect((await embed(account, "x".repeat(100))).status).toBe(200);
  });
});

describe("rerank", () => {
  const query = "q é";
  const documents = ["one", "two", "three"];
  const best = documents
    .map((text, index) => ({ index, relevance_score: scoreOf(query, text) }))
    .sort((one, other) => other.relevance_score - one.relevance_score);

  // Cohere's ClientV2 knows no other address than the second
  test.each(["/v1/rerank", "/v2/rerank"])(
    "documents are ordered at %s, in a form for clients of Jina, Cohere and vLLM",
    async (path) => {
      const account = await gateway.account();
      const asked = { model: "rerank-tiny", query, documents, max_tokens_per_doc: 4_096 };
      const { status, body } = await post(account, path, asked);
      const tokens = tokensIn(documents);
      expect(status).toBe(200);
      expect(body).toEqual({
        id: expect.stringMatching(/^rerank-/),
        object: "list",
        model: "rerank-tiny",
        results: best,
        usage: { prompt_tokens: tokens, total_tokens: tokens },
        meta: { billed_units: { input_tokens: tokens }, tokens: { input_tokens: tokens, output_tokens: 0 } },
      });
      expect(await charges(account)).toEqual([
        {
          endpoint: "/v1/rerank",
          model: "rerank-tiny",
          input: tokens,
          output: 0,
          billed_tokens: tokens,
          estimated: false,
        },
      ]);
    },
  );

  test.each([
    ["a small body", {}],
    ["a large body", { padding: "x".repeat(largeBodyMinBytes) }],
  ])("top_n and return_documents hold in %s, whatever form documents have", async (_, more) => {
    const account = await gateway.account();
    const odd = ['a "b" \\ é', { text: "two" }, "three"];
    const { body } = await rank(account, { query, documents: odd, top_n: 2, return_documents: true, ...more });
    const texts = odd.map((each) => (typeof each === "string" ? each : each.text));
    const wanted = texts
      .map((text, index) => ({ index, relevance_score: scoreOf(query, text), document: { text } }))
      .sort((one, other) => other.relevance_score - one.relevance_score);
    expect(body.results).toEqual(wanted.slice(0, 2));
    expect(node.requests.at(-1)!.body).toMatchObject({ query, documents: texts, top_n: 2 });
  });

  test("a node that ranks as text-embeddings-inference does is asked in its form, and our count is charged", async () => {
    const account = await gateway.account();
    const { status, body } = await rank(account, { model: "tei-rerank", query, documents });
    expect([status, body.results]).toEqual([200, best]);
    expect(tei.requests.slice(-2).map(({ path }) => path)).toEqual(["/v1/rerank", "/rerank"]);
    expect(await charges(account)).toMatchObject([{ estimated: true, endpoint: "/v1/rerank" }]);
  });

  test("errors have one form at both addresses", async () => {
    const account = await gateway.account();
    const asked = { model: "no-such", query, documents };
    const [first, second] = [await post(account, "/v1/rerank", asked), await post(account, "/v2/rerank", asked)];
    expect([second.status, second.body]).toEqual([400, first.body]);
  });

  test.each([
    [{ documents }, "query"],
    [{ query, documents: [] }, "documents"],
    [{ query: "", documents }, "query"],
    [{ query, documents: [1] }, "documents[0]"],
    [{ query, documents: ["a", { title: "b" }] }, "documents[1]"],
    [{ query, documents: ["a", ""] }, "documents[1] must not be empty"],
    [{ query, documents, top_n: 0 }, "top_n"],
    [{ query, documents, model: "bge-tiny" }, "model must be one that reranks: bge-tiny is for embeddings"],
  ])("%j is a 400 that names it", async (body, message) => {
    const account = await gateway.account();
    const reply = await rank(account, body);
    expect(reply.status).toBe(400);
    expect(reply.body.error.message).toContain(message);
    await gateway.expectUncharged(account);
  });
});

describe("the window of their own", () => {
  test("is apart from the chats', in the same form", async () => {
    await using small = await GatewayProcess.start({
      config: inputsConfig(
        node,
        [
          ["bge-tiny", "embedding"],
          ["rerank-tiny", "rerank"],
        ],
        "[limits]\nembedding_requests_per_minute = 3",
      ),
    });
    const { api_key } = await small.account();
    const send = (path: string, body: object) =>
      fetch(small.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${api_key}` },
        body: JSON.stringify(body),
      });
    const vector = () => send("/v1/embeddings", { model: "bge-tiny", input: "a" });
    expect((await vector()).status).toBe(200);
    expect((await send("/v1/rerank", { model: "rerank-tiny", query: "a", documents: ["b"] })).status).toBe(200);
    expect((await send("/v1/embeddings", { model: "bge-tiny" })).status).toBe(400); // malformed: counted, too
    const refused = await vector();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(((await refused.json()) as { error: { message: string } }).error.message).toMatch(/^Too many requests/);
    expect((await send("/v1/chat/completions", { model: "bge-tiny" })).status).toBe(400); // the chats' window is open
    await small.configure(
      inputsConfig(node, [["bge-tiny", "embedding"]], "[limits]\nembedding_requests_per_minute = 100"),
    );
    await small.reload();
    expect((await vector()).status).toBe(200);
  });
});
