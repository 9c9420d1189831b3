// What is served: the catalog alone, with what nodes list, or a shop's own models.
import { describe, expect, test } from "bun:test";
import { ownModelContextTokensDefault } from "../../../src/config/models.ts";
import { claimsOf, embeddedCatalog } from "../../../src/core/catalog.ts";
import { readConfig } from "../../../src/config/config.ts";
import type { Capabilities } from "../../../src/nodes/model-facts.ts";
import type { EngineKind } from "../../../src/nodes/engine-kind.ts";
import { type ModelSources, servedModels } from "../../../src/server/fleet/served-models.ts";

type Listed = readonly [name: string, contextTokens?: number | null, capabilities?: Capabilities];

const node = (
  listed: readonly Listed[],
  kind: EngineKind = "ollama",
  models: Record<string, string> = { "*": "*" },
) => ({
  models,
  engine: {
    kind,
    version: null,
    models: listed.map(([name, contextTokens = null, capabilities = {}]) => ({ name, contextTokens, capabilities })),
    chatModels: listed.map(([name]) => name),
  },
});

const served = (sources: Partial<ModelSources>) =>
  servedModels({
    catalog: embeddedCatalog(),
    own: [],
    nodes: [],
    outputTokens: null,
    servesListed: true,
    showsListed: false,
    ...sources,
  });
const own = (...rows: readonly string[]) =>
  readConfig("gate.toml", rows.map((row) => `[[models]]\n${row}\n`).join(""), {}, {}).models;

describe("with no models configured", () => {
  test("the 21 of the specification are served as they are", () => {
    expect(served({})).toEqual([...embeddedCatalog().models.values()]);
    expect(served({ nodes: [node([["core-3"]], "demo")] })).toHaveLength(21);
  });

  test("what nodes list is served beside them for nothing, and lists leave it out", () => {
    const [model] = served({ nodes: [node([["qwen3:8b", 40_960, { images: false }], ["core-3"]])] }).slice(21);
    expect(model).toMatchObject({
      id: "qwen3:8b",
      kind: "chat",
      tier: "own",
      nodeModel: "qwen3:8b",
      hidden: true,
      contextTokens: 40_960,
      readsImages: false,
      price: { kind: "split", inputCents: 0, cachedInputCents: 0, outputCents: 0 },
    });
    expect(served({ nodes: [node([["qwen3:8b"]])], showsListed: true }).at(-1)).toMatchObject({ hidden: false });
  });

  test("a tag that may be left out is left out in another name", () => {
    expect(served({ nodes: [node([["llama3:latest"]])] }).at(-1)).toMatchObject({
      id: "llama3:latest",
      aliases: ["llama3"],
    });
    expect(served({ nodes: [node([["llama3:latest"], ["llama3"]])] })[21]).toMatchObject({ aliases: [] });
  });

  test("nothing without a price is served where strangers sign up", () => {
    expect(served({ nodes: [node([["qwen3:8b"]])], servesListed: false })).toHaveLength(21);
  });

  test("neither the demo node, nor one whose models are named, nor odd names add any", () => {
    const nodes = [
      node([["made-up"]], "demo"),
      node([["qwen"]], "vllm", { "core-3": "qwen" }),
      node([["with space"], ["x".repeat(201)], [""], ["openai/*"]]),
    ];
    expect(served({ nodes })).toHaveLength(21);
  });

  test("a model is what its engine says it is for", () => {
    const models = served({ nodes: [node([["e", null, { embeddings: true, chat: false }], ["bge-reranker"]])] }).slice(
      21,
    );
    expect(models.map(({ kind }) => kind)).toEqual(["embedding", "rerank"]);
  });

  test("a market of models adds a thousand at most", () => {
    const many = Array.from({ length: 5_000 }, (_, index): Listed => [`m${index}`]);
    expect(served({ nodes: [node(many)] })).toHaveLength(21 + 1_000);
  });
});

describe("a shop's own models", () => {
  test("are the only ones, with what their nodes tell of what their rows leave out", () => {
    const nodes = [node([["qwen3:8b", 40_960, { images: false }]]), node([["qwen3:8b", 8_192], ["other"]])];
    expect(served({ own: own('id = "house"\nnode_model = "qwen3:8b"'), nodes })).toEqual([
      {
        id: "house",
        kind: "chat",
        tier: "own",
        nodeModel: "qwen3:8b",
        aliases: [],
        hidden: false,
        plans: null,
        readsAudio: false,
        readsDepth: true,
        contextTokens: 8_192,
        readsImages: false,
        structuredOutput: "json_schema",
        unclaimed: ["images", "tools"],
        price: { kind: "split", inputCents: 0, cachedInputCents: 0, outputCents: 0 },
        budgetLimitsAnswer: true,
        outputTokensDefault: { calls: 8_192, tokens: 8_192 },
        encoding: "o200k_base",
        coder: false,
      },
    ]);
  });

  test("are as their rows say, whatever nodes tell", () => {
    const rows = own(
      'id = "m"\ncontext = 1000\nimages = true\ndefault_output_tokens = 7\nreasoning = false\nhidden = true',
    );
    const nodes = [node([["m", 8_192, { images: false }]])];
    expect(served({ own: rows, nodes, outputTokens: 99 })[0]).toMatchObject({
      contextTokens: 1_000,
      readsImages: true,
      readsDepth: false,
      hidden: true,
      outputTokensDefault: { calls: 7 },
    });
  });

  test.each([
    ["the node's own table", { house: "qwen3:8b" }],
    ["a name for all that no node names", { "*": "qwen3:8b" }],
  ])("are what nodes tell under the name of %s", (_, models) => {
    const nodes = [
      node(
        [
          ["qwen3:8b", 40_960, { images: false, tools: true }],
          ["house", 100],
        ],
        "vllm",
        models,
      ),
      node([["house", 200, { tools: false }]], "vllm", { other: "house" }),
    ];
    const [model] = served({ own: own('id = "house"'), nodes });
    expect(model).toMatchObject({ contextTokens: 40_960, readsImages: false, unclaimed: ["images"] });
  });

  test("read images and any length where nobody says otherwise", () => {
    expect(served({ own: own('id = "m"'), outputTokens: 99 })[0]).toMatchObject({
      contextTokens: ownModelContextTokensDefault,
      readsImages: true,
      outputTokensDefault: { tokens: 99 },
    });
  });

  test("claim what their rows or their nodes say, and are asked for the rest all the same", () => {
    const claimed = (row: string, nodes: Parameters<typeof served>[0]["nodes"] = []) => {
      const [model] = served({ own: own(`id = "m"\n${row}`), nodes });
      expect(model).toMatchObject({ structuredOutput: "json_schema" });
      return claimsOf(model!);
    };
    expect(claimed("")).toEqual({ images: false, tools: false, formats: "none" });
    const all = { images: true, tools: true, formats: "json_schema" } as const;
    expect(claimed('images = true\ntools = true\nstructured_output = "json_schema"')).toEqual(all);
    expect(claimed("", [node([["m", 8_192, { images: true, tools: true }]])])).toMatchObject({
      images: true,
      tools: true,
    });
    expect(claimed("tools = false", [node([["m", 8_192, { tools: true }]])])).toMatchObject({ tools: false });
  });

  // price of a row, cents of a million tokens: input, cached, output
  test.each([
    ["0", 0, 0, 0],
    ["0.07", 7, 7, 7],
    ["{ input = 0.29, cached = 0.03, output = 1.13 }", 29, 3, 113],
    ["{ input = 2.5, output = 10 }", 250, 250, 1_000],
    ["{ output = 1 }", 0, 0, 100],
  ])("with the price %s cost %i, %i and %i cents", (price, inputCents, cachedInputCents, outputCents) => {
    const [model] = own(`id = "m"\nprice = ${price}`);
    expect(model!.price).toEqual({ kind: "split", inputCents, cachedInputCents, outputCents });
  });

  test.each([
    ["0.005", [0, 5_000], [0, 5_000], [0, 5_000]],
    ["{ input = 0.000001, output = 1.234567 }", [0, 1], [0, 1], [123, 4_567]],
    ["{ input = 9999.999999, cached = 0.29, output = 0 }", [999_999, 9_999], [29, 0], [0, 0]],
  ])("with the price %s cost parts of cents exactly", (price, input, cached, output) => {
    const [model] = own(`id = "m"\nprice = ${price}`);
    expect(model!.price).toEqual({
      kind: "split",
      inputCents: input[0]!,
      cachedInputCents: cached[0]!,
      outputCents: output[0]!,
      parts: { input: input[1]!, cachedInput: cached[1]!, output: output[1]! },
    });
  });

  const dollars = "dollars per million tokens from 0 to 10000, with up to 6 decimals";
  // rows, what is wrong with them
  test.each([
    [['id = "a"', 'id = "a"'], "gate.toml:4: models[1].id must be unique, is also the id of models[0]"],
    [['id = "a"\nplans = ["gold"]'], "models[0].plans[0] must be one of "],
    [['id = "a"\nprice = 0.0000005'], `gate.toml:3: models[0].price must be ${dollars}, is 5e-7`],
    [['id = "a"\nprice = { cached = 0.0010001 }'], `models[0].price.cached must be ${dollars}, is 0.0010001`],
    [['id = "a"\nprice = "1"'], `models[0].price must be ${dollars}, or a table such as `],
    [['id = "a b"'], "models[0].id must be a name without spaces"],
    [["price = 1"], "models[0].id is missing"],
  ])("%j are refused", (rows, problem) => {
    expect(() => own(...rows)).toThrow(problem);
  });

  test("that share a name are refused, with the line", () => {
    const toml = '[[models]]\nid = "a"\naliases = ["b", "c", "c"]\n[[models]]\nid = "b"';
    expect(() => readConfig("gate.toml", toml, {}, {})).toThrow(
      'gate.toml:3: models[0].aliases[2] must be unique: "c" is a name of "a", too\n' +
        'gate.toml:5: models[1].id must be unique: "b" is a name of "a", too',
    );
  });
});
