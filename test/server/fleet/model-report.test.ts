// What is told of models: what nodes offer, what is served of it, what is missing; and the [[models]] that are suggested.
import { describe, expect, test } from "bun:test";
import { ConfigError, readConfig } from "../../../src/config/config.ts";
import { configuredCatalog } from "../../../src/config/configured-catalog.ts";
import { embeddedCatalog, modelsByName, sampleModelOf } from "../../../src/core/catalog.ts";
import { unknownModels } from "../../../src/core/plans.ts";
import { planIds } from "../../../src/core/plan-ids.ts";
import type { EngineKind } from "../../../src/nodes/engine-kind.ts";
import type { Capabilities } from "../../../src/nodes/model-facts.ts";
import { hadModels, modelReport, understoodNames } from "../../../src/server/fleet/model-report.ts";
import { servedModels } from "../../../src/server/fleet/served-models.ts";
import { suggestedModels, suggestionText } from "../../../src/server/fleet/suggested-models.ts";

type Listed = readonly [name: string, contextTokens?: number | null, capabilities?: Capabilities];
type Given = { config?: string; listed?: readonly Listed[]; kind?: EngineKind; isWell?: boolean; signUp?: boolean };

/** As the program would tell it, of one node. */
function told({ config: toml = "", listed = [], kind = "ollama", isWell = true, signUp = false }: Given) {
  const node = toml.includes("[[nodes]]") ? "" : '[[nodes]]\nname = "box"\nurl = "http://box:8000/v1"\n';
  const config = readConfig("gate.toml", `${node}${toml}`, {}, {});
  const engine = {
    kind,
    version: null,
    models: listed.map(([name, contextTokens = null, capabilities = {}]) => ({ name, contextTokens, capabilities })),
    chatModels: listed.map(([name]) => name),
  };
  const nodes = config.nodes.map(({ name, models }) => ({ name, models, engine, isWell }));
  const models = servedModels({
    catalog: configuredCatalog(config, embeddedCatalog()),
    own: config.models,
    nodes,
    outputTokens: null,
    servesListed: !signUp,
    showsListed: false,
  });
  const known = { models: modelsByName(models) };
  return { config, known, nodes, report: modelReport(known, config.models.length > 0, nodes) };
}

/** The model of samples. */
function sample(given: Given): string | null {
  const { known, nodes } = told(given);
  return sampleModelOf(known, hadModels(known, nodes))?.id ?? null;
}

const suggested = (given: Given): string => {
  const { config, report } = told(given);
  return suggestionText(suggestedModels(report, config), config, planIds);
};

describe("the report", () => {
  test("says which node has a model, under which name and at which price", () => {
    const { report } = told({
      config: '[[models]]\nid = "house"\nnode_model = "qwen3:8b"\nprice = 0.2\n[[models]]\nid = "llama"\n',
      listed: [
        ["qwen3:8b", 40_960, { images: false, tools: true }],
        ["spare", 8_192],
      ],
    });
    expect(report.served).toMatchObject([
      {
        id: "house",
        by: "configuration",
        nodes: ["box"],
        missing: null,
        price: { input: 0.2, cached: 0.2, output: 0.2 },
        context: 40_960,
      },
      { id: "llama", nodes: [], missing: "no node lists llama", price: null },
    ]);
    expect(report.offered).toMatchObject([
      { name: "qwen3:8b", served_as: ["house"], can: ["tools"], cannot: ["images"] },
      { name: "spare", served_as: [] },
    ]);
  });

  test("a node that is down is why its model is missing", () => {
    const { report } = told({ config: '[[models]]\nid = "llama"', listed: [["llama"]], isWell: false });
    expect(report.served).toMatchObject([{ missing: "box should serve it, but is down" }]);
  });

  test("a name that a node has by its configuration, and does not list, is missing", () => {
    const config = '[[nodes]]\nname = "box"\nurl = "http://box:1/v1"\n[nodes.models]\n"core-3" = "gone"\n';
    const { report } = told({ config, listed: [["llama"]] });
    expect(report.served.find(({ id }) => id === "core-3")).toMatchObject({ nodes: [], missing: expect.any(String) });
  });
});

describe("samples", () => {
  test.each<readonly [string, Given, string]>([
    ["the usual model where nodes have it", { listed: [["core-3"], ["qwen3:8b"]] }, "core-3"],
    ["the usual model where a node answers to it by another", { listed: [["qwen3:8b"], ["llama3"]] }, "core-3"],
    ["the usual model where no node has been seen", { listed: [["qwen3:8b"]], isWell: false }, "core-3"],
    ["the usual model where the demo node answers", { listed: [], kind: "demo" }, "core-3"],
    ["a model of the configuration", { config: '[[models]]\nid = "house"\n', listed: [["house"]] }, "house"],
    [
      "one that nodes have before one that they lack",
      { config: '[[models]]\nid = "gone"\n[[models]]\nid = "house"\n', listed: [["house"]] },
      "house",
    ],
  ])("name %s", (_, given, expected) => {
    expect(sample(given)).toBe(expected);
  });
});

describe("the line of the start", () => {
  test("tells which names in plans mean no model, and which was probably meant", () => {
    const { known } = told({ listed: [["qwen3:8b"]] });
    const plan = { id: "family", models: ["qwen3:8b", "qwn3:8b", "core-3", "zzzzzzzzzzzzzzzz"] };
    expect(unknownModels([plan, { id: "free", models: null }], known.models)).toEqual([
      {
        plan: "family",
        problem: 'names the model "qwn3:8b", which is not served: did you mean "qwen3:8b"?',
      },
      { plan: "family", problem: 'names the model "zzzzzzzzzzzzzzzz", which is not served' },
    ]);
  });

  test("names what requests may use, and how to write it down", () => {
    const line = understoodNames(told({ listed: [["qwen3:8b"], ["llama3:latest"]] }).report);
    expect(line).toBe(
      "Models: the 21 of the catalog (core-1.6-lite, core-1.6-pro, and 19 more), and what the nodes list: qwen3:8b, " +
        "llama3:latest = llama3. tollgate models suggest writes them down as your own [[models]].",
    );
    const own = '[[models]]\nid = "house"\naliases = ["gpt-5"]\n';
    expect(understoodNames(told({ config: own, listed: [["house"]] }).report)).toBe(
      "Models of the configuration: house = gpt-5.",
    );
  });

  test("says what is not served where strangers can sign up, and lets no sign of a name be a command", () => {
    expect(understoodNames(told({ listed: [["qwen3:8b"]], signUp: true }).report)).toContain(
      "but not by their own names what the nodes list: qwen3:8b.",
    );
    expect(understoodNames(told({ listed: [["\u001b[2J"]], signUp: true }).report)).toContain('"\\u001b[2J"');
    expect(understoodNames(told({ listed: [["core-3"]], kind: "demo" }).report)).not.toContain("suggest");
  });
});

describe("what is suggested", () => {
  const strange = [
    'a"b\\c',
    "schön",
    "x\u007fy",
    "z\u0085",
    "with space",
    "\ud800",
    "a".repeat(201),
    "tab\t",
    "# no",
    "]",
  ];

  test("starts as it is, and also with every comment uncommented", () => {
    const listed: Listed[] = [["qwen3:8b", 40_960], ["/models/tiny.gguf"], ["llama3:latest"], ["Qwen/Qwen3-8B"]];
    const all: Listed[] = [
      ...listed,
      ["bge", null, { chat: false, embeddings: true }],
      ...strange.map((name): Listed => [name]),
    ];
    const text = suggested({ listed: all });
    const { models } = readConfig("gate.toml", text, {}, {});
    expect(models.slice(0, 5)).toMatchObject([
      { id: "qwen3:8b", nodeModel: "qwen3:8b", aliases: [] },
      { id: "tiny", nodeModel: "/models/tiny.gguf", aliases: ["/models/tiny.gguf"] },
      { id: "llama3", nodeModel: "llama3:latest", aliases: ["llama3:latest"] },
      { id: "Qwen/Qwen3-8B", nodeModel: "Qwen/Qwen3-8B" },
      { id: "bge", kind: "embedding" },
    ]);
    expect(models.map(({ id }) => id)).toContain('a"b\\c');
    const uncommented = text.replaceAll(/^# (?=[a-z_]+ = )/gm, "");
    expect(readConfig("gate.toml", uncommented, {}, {}).models[0]).toMatchObject({
      contextTokens: 40_960,
      plans: planIds,
      outputTokens: 4_096,
    });
  });

  test("every name that is understood today is understood with it, and ids that the file speaks of keep their price", () => {
    const config =
      '[[nodes]]\nname = "box"\nurl = "http://box:1/v1"\n[nodes.models]\n"open-01-3BIT-REAP" = "big"\n"*" = "*"\n' +
      '[[mcp]]\nname = "files"\nurl = "http://box:2/"\nmodels = ["core-3"]\n';
    const listed: Listed[] = [["big"], ["llama3:latest"], ["x/y.gguf"], ["y"]];
    const { report } = told({ config, listed });
    const pasted = config + suggested({ config, listed });
    const next = told({ config: pasted, listed });
    const names = ({ served }: typeof report) => served.flatMap(({ id, aliases }) => [id, ...aliases]);
    const lost = names({ ...report, served: report.served.filter(({ by }) => by === "nodes") }).filter(
      (name) => !names(next.report).includes(name) && name !== "big",
    );
    expect(lost).toEqual([]);
    const priceOf = (id: string) => next.report.served.find((model) => model.id === id)?.price;
    expect(priceOf("open-01-3BIT-REAP")).toEqual({ input: 1.95, cached: 0.2, output: 3.9 });
    expect(priceOf("core-3")).toEqual({ input: 3.35, cached: 3.35, output: 3.35 });
  });

  test("what the configuration has is left out, and its names are not given again", () => {
    const config = '[[models]]\nid = "house"\nnode_model = "qwen3:8b"\naliases = ["llama"]\n';
    const { config: read, report } = told({ config, listed: [["qwen3:8b"], ["llama"], ["new"]] });
    expect(suggestedModels(report, read).models.map(({ id }) => id)).toEqual(["new"]);
    expect(() => readConfig("gate.toml", config + suggested({ config, listed: [["new"]] }), {}, {})).not.toThrow(
      ConfigError,
    );
  });
});
