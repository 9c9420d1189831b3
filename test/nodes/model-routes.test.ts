// Which of several nodes a model goes to, and under which name.
import { describe, expect, test } from "bun:test";
import type { Engine } from "../../src/nodes/engine.ts";
import type { EngineKind } from "../../src/nodes/engine-kind.ts";
import { modelNameOn, servesAmong } from "../../src/nodes/model-routes.ts";

const engine = (names: readonly string[], kind: EngineKind = "unknown"): Engine => ({
  kind,
  version: null,
  models: names.map((name) => ({ name, contextTokens: null, capabilities: {} })),
  chatModels: names,
});

describe("the name on a node", () => {
  // models of the node, what the node lists, the name that is configured for all nodes, the name it is asked for as "core-3"
  const names: [Record<string, string>, string[], string | null, string][] = [
    [{ "core-3": "qwen" }, ["llama"], null, "qwen"],
    [{ "core-2": "qwen", "*": "llama" }, ["qwen"], null, "llama"],
    [{ "*": "*" }, ["qwen", "core-3"], null, "core-3"],
    [{ "*": "*" }, ["qwen", "llama"], null, "qwen"],
    [{ "core-3": "*" }, ["qwen"], null, "qwen"],
    [{ "*": "*" }, [], null, "core-3"],
    [{ "*": "*" }, ["qwen", "llama"], "llama", "llama"],
    [{ "*": "*" }, ["qwen", "llama:latest"], "llama", "llama:latest"],
    [{ "*": "*" }, ["qwen"], "llama", "llama"],
    [{ "core-3": "mistral" }, ["llama", "mistral"], "llama", "mistral"],
  ];
  test.each(names)(
    "of a node with models %j that lists %j, where %j is configured, is %s",
    (models, listed, nodeModel, name) => {
      expect(modelNameOn(models, { id: "core-3", nodeModel }, engine(listed))).toBe(name);
    },
  );

  test("of a model that is called as members of objects are is its own", () => {
    expect(modelNameOn({ "*": "*" }, { id: "constructor", nodeModel: "constructor" }, engine(["constructor"]))).toBe(
      "constructor",
    );
  });

  test("is that of the one model of an engine that takes any name", () => {
    const llama = engine(["/models/qwen.gguf"], "llama.cpp");
    expect(modelNameOn({ "*": "*" }, { id: "qwen", nodeModel: "qwen" }, llama)).toBe("/models/qwen.gguf");
  });
});

describe("a model with a name on nodes", () => {
  const any = { "*": "*" };
  const served = (nodes: readonly { models: Record<string, string>; engine: Engine | null }[]): boolean[] => {
    const serves = servesAmong(
      () => nodes,
      (id) => (id === "mine" ? "qwen" : null),
    );
    return nodes.map((node) => serves(node, "mine"));
  };

  test("goes to the nodes that list it", () => {
    expect(
      served([
        { models: any, engine: engine(["llama"]) },
        { models: any, engine: engine(["qwen:latest"]) },
      ]),
    ).toEqual([false, true]);
  });

  test("goes to a node that takes any name where none lists it", () => {
    const llama = { models: any, engine: engine(["/models/qwen.gguf"], "llama.cpp") };
    expect(served([llama, { models: any, engine: engine(["llama"]) }])).toEqual([true, false]);
    expect(served([llama, { models: any, engine: engine(["qwen"]) }])).toEqual([false, true]);
  });

  test("goes to a node of which nothing is known yet", () => {
    expect(
      served([
        { models: any, engine: null },
        { models: any, engine: engine([]) },
      ]),
    ).toEqual([true, true]);
  });

  test("goes to the node alone that names it", () => {
    expect(
      served([
        { models: { mine: "qwen2" }, engine: engine(["llama"]) },
        { models: any, engine: engine(["qwen"]) },
      ]),
    ).toEqual([true, false]);
  });
});
