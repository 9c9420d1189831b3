// The names and shapes under which a model sees the tools of a responses request.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { OfferedTools, type ToolOrigin } from "../../../src/dialects/responses/offered-tools.ts";
import { anySearch } from "../../../src/dialects/request/search-request.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";

const definitions = (tools: readonly Record<string, unknown>[]) =>
  tools.map((definition, index) => ({ at: `tools[${index}]`, definition }));

function offered(...tools: Record<string, unknown>[]): OfferedTools {
  const result = OfferedTools.read(definitions(tools));
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function refusal(tool: Record<string, unknown>): string {
  const result = OfferedTools.read(definitions([tool]));
  if (!isRefusal(result)) throw new Error("was accepted");
  return messageOf(result);
}

test("naming thousands of long names that begin alike takes no time with their square", () => {
  const long = "n".repeat(60);
  const tools = Array.from({ length: 40_000 }, (_, index) => ({
    type: index % 2 === 0 ? "function" : "custom",
    name: long + (index >> 1).toString(36).padStart(4, "0"),
  }));
  const from = process.cpuUsage();
  expect(new Set(names(offered(...tools))).size).toBe(tools.length);
  const { user, system } = process.cpuUsage(from);
  expect((user + system) / 1_000).toBeLessThan(3_000);
}, 120_000);

const named = (name: string) => ({ type: "function", name, parameters: { type: "object" } });
const names = (tools: OfferedTools): string[] => tools.tools.map((tool) => tool.name);

describe("offered tools", () => {
  test("functions keep name, description, schema and strictness", () => {
    const tool = { ...named("bash"), description: "run", strict: true, defer_loading: true };
    expect(offered(tool, { type: "function", name: "ls" }).tools).toEqual([
      { name: "bash", description: "run", parameters: { type: "object" }, strict: true },
      { name: "ls", description: null, parameters: { type: "object", properties: {} }, strict: null },
    ]);
  });

  test("namespaces are flattened and told apart again", () => {
    const tools = offered({ type: "namespace", name: "multi_agent_v1", tools: [named("wait_agent")] }, named("bash"));
    expect(names(tools)).toEqual(["multi_agent_v1__wait_agent", "bash"]);
    expect(tools.origin("multi_agent_v1__wait_agent")).toEqual({
      kind: "function",
      namespace: "multi_agent_v1",
      name: "wait_agent",
    });
    expect(tools.origin("bash")).toEqual({ kind: "function", namespace: null, name: "bash" });
    expect(tools.origin("never_offered")).toEqual({ kind: "function", namespace: null, name: "never_offered" });
  });

  test("flat names are unique, no longer than 64 and of plain characters, and each leads back", () => {
    const name = fc.oneof(
      fc.constantFrom("a", "b", "a__b", "x".repeat(64), "x".repeat(65)),
      fc.string({ minLength: 1 }),
    );
    const tool = fc.record({ type: fc.constantFrom("function", "custom"), name });
    const namespace = fc.record({ type: fc.constant("namespace"), name, tools: fc.array(tool) });
    fc.assert(
      fc.property(fc.array(fc.oneof(tool, namespace)), (given) => {
        const tools = offered(...given);
        expect(new Set(names(tools)).size).toBe(tools.tools.length);
        for (const flatName of names(tools)) {
          expect(flatName).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
          expect(tools.flatName(tools.origin(flatName))).toBe(flatName);
        }
      }),
    );
  });

  test("a hundred thousand tools that want one name are named in linear time", () => {
    const tools = offered(...Array.from({ length: 100_000 }, (_, index) => named(`${"é".repeat(64)}${index}`)));
    expect(new Set(names(tools)).size).toBe(100_000);
  });

  test("a plain tool keeps its name when a flattened one would take it", () => {
    const tools = offered({ type: "namespace", name: "a", tools: [named("b")] }, named("a__b"));
    expect(names(tools)).toEqual(["a__b_2", "a__b"]);
    expect(tools.origin("a__b_2").namespace).toBe("a");
  });

  test("a later definition of a tool replaces an earlier one", () => {
    const tools = offered({ ...named("bash"), description: "old" }, { ...named("bash"), description: "new" });
    expect(tools.tools.map((tool) => tool.description)).toEqual(["new"]);
  });

  test("a custom tool is a function of one string, its grammar told in words", () => {
    const format = { type: "grammar", syntax: "lark", definition: 'start: "a"' };
    const [tool] = offered({ type: "custom", name: "apply_patch", description: "Edits files.", format }).tools;
    expect(tool).toMatchObject({
      name: "apply_patch",
      parameters: { type: "object", properties: { input: { type: "string" } }, required: ["input"] },
    });
    expect(tool!.description).toStartWith("Edits files.\n\n");
    expect(tool!.description).toEndWith('The input must match this Lark grammar:\nstart: "a"');
    expect(offered({ type: "custom", name: "x" }).origin("x").kind).toBe("custom");
  });

  test("what agents always offer is left out; a web search counts unless it must stay offline", () => {
    const hosted = ["image_generation", "local_shell", "tool_search", "computer_use_preview"];
    expect(offered(...hosted.map((type) => ({ type }))).tools).toEqual([]);
    expect(offered({ type: "image_generation" }).webSearch).toBeNull();
    expect(offered({ type: "web_search" }).webSearch).toEqual(anySearch);
    expect(offered({ type: "web_search_preview" }).webSearch).toEqual(anySearch);
    expect(offered({ type: "web_search_2025_08_26", external_web_access: true }).webSearch).toEqual(anySearch);
    expect(offered({ type: "web_search", external_web_access: false }).webSearch).toBeNull();
  });

  test.each([
    [{ type: "function" }, "tools[0].name must be a string of 1 to 256 characters"],
    [{ type: "custom", name: 5 }, "tools[0].name must be a string of 1 to 256 characters"],
    [{ type: "function", name: "a", parameters: [] }, "tools[0].parameters must be a JSON Schema object"],
    [{ type: "namespace", tools: [] }, "tools[0].name must be a string of 1 to 256 characters"],
    [{ type: "function", name: "n".repeat(257) }, "tools[0].name must be a string of 1 to 256 characters"],
    [{ type: "namespace", name: "n".repeat(257), tools: [] }, "tools[0].name must be a string of 1 to 256 characters"],
    [{ type: "namespace", name: "a" }, "tools[0].tools must be an array"],
    [{ type: "namespace", name: "a", tools: [null] }, "tools[0].tools[0] must be an object"],
    [{ type: "namespace", name: "a", tools: [{ type: "function" }] }, "tools[0].tools[0].name must be a string of 1"],
  ])("%p is refused", (tool, reason) => {
    expect(refusal(tool)).toStartWith(reason);
  });
});

describe("tool_choice", () => {
  const tools = offered(
    named("a"),
    named("b"),
    { type: "custom", name: "c" },
    {
      type: "namespace",
      name: "n",
      tools: [named("d")],
    },
  );
  const select = (choice: unknown) => {
    const selection = tools.select(choice);
    if (isRefusal(selection)) return messageOf(selection);
    return { tools: selection.tools.map((tool) => tool.name), choice: selection.toolChoice };
  };
  const all = ["a", "b", "c", "n__d"];

  test.each([
    ["auto", { tools: all, choice: "auto" }],
    ["none", { tools: all, choice: "none" }],
    ["required", { tools: all, choice: "required" }],
    [
      { type: "function", name: "b" },
      { tools: all, choice: { named: "b" } },
    ],
    [
      { type: "function", name: "d", namespace: "n" },
      { tools: all, choice: { named: "n__d" } },
    ],
    [
      { type: "custom", name: "c" },
      { tools: all, choice: { named: "c" } },
    ],
    [{ type: "web_search" }, 'tool_choice "web_search": none of the tools given can be called here'],
    [
      {
        type: "allowed_tools",
        mode: "auto",
        tools: [
          { type: "function", name: "a" },
          { type: "custom", name: "c" },
        ],
      },
      { tools: ["a", "c"], choice: "auto" },
    ],
    [
      {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "b" }, { type: "web_search" }, null],
      },
      { tools: ["b"], choice: "required" },
    ],
    [
      { type: "allowed_tools", mode: "required", tools: [{ type: "web_search" }] },
      "tool_choice allowed_tools: none of the tools given can be called here",
    ],
    [{ type: "function", name: "z" }, "tool_choice.name: there is no tool named z in tools"],
    [{ type: "function" }, "tool_choice.name must be a string"],
    [{ type: "allowed_tools" }, "tool_choice.tools must be an array"],
  ] as const)("%p leaves %p", (choice, expected) => {
    expect(select(choice)).toEqual(expected as never);
  });

  test("of another form is refused", () => {
    for (const choice of ["any", {}, 5, null]) expect(select(choice)).toStartWith('tool_choice must be "none"');
  });

  test("required needs tools that can be called: of hosted ones the web search alone", () => {
    const refusalOf = (...given: Parameters<typeof offered>) => {
      const none = offered(...given).select("required");
      return isRefusal(none) && messageOf(none);
    };
    expect(refusalOf()).toBe("tool_choice required needs tools");
    expect(refusalOf({ type: "image_generation" })).toBe(
      "tool_choice required: none of the tools given can be called here",
    );
    expect(offered({ type: "web_search" }).select("required")).toMatchObject({
      toolChoice: "auto",
      forcesSearch: true,
    });
    expect(offered({ type: "web_search" }).select({ type: "web_search" })).toMatchObject({ forcesSearch: true });
  });

  test("an origin keeps its kind, name and namespace", () => {
    const origin: ToolOrigin = { kind: "function", namespace: "n", name: "d" };
    expect(tools.origin(tools.flatName(origin))).toEqual(origin);
    expect(tools.flatName({ kind: "function", namespace: "gone", name: "tool" })).toBe("gone__tool");
  });
});
