// Libraries that are too large for CI, or need a compiler, through what people do with them. Each is a program in `libraries/` that
// prints a line for each case; `libraries/install` brings them. What of the lines is the library's own doing is in the guide.
import { beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { missing } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, once } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const folder = join(import.meta.dir, "libraries");
const built = join(folder, ".built");
const remedy = "run test/clients/libraries/install, with the language on the PATH";
const stack = useStack({ search: true });

const refused = {
  key: "Invalid API key provided",
  balance: "Quota exceeded",
  context: "prompt is too long: 5000 tokens > 4096 maximum",
  flood: "Routes are temporarily busy. Please retry.",
};
const stopped = "The model stopped answering. Please retry.";
const whole = { text: "Hi there!", tools: "Rain and sun.", object: "Dune", image: "Hi there!", ...refused };
const streamed = { ...whole, stream: "Hi there!", failed: stopped, left: "" };
/** The same in each dialect. */
const inAll = (cases: object, dialects = ["chat", "responses", "messages"]): Record<string, string> =>
  Object.fromEntries(
    dialects.flatMap((dialect) => Object.entries(cases).map(([name, said]) => [`${dialect} ${name}`, said as string])),
  );
const asyncOpenai = {
  ...refused,
  text: "Hi there! 140",
  stream: "Hi there! 140",
  tools: "Rain and sun. in 4",
  object: "Dune",
  image: "Hi there!",
  response: "Hi there! 140 reasoning+message",
  "response stream": "Hi there! (Let me think.)",
  "response tools": "It is sunny in Paris.",
  "response long": "Hi there! 140",
  models: "true",
  left: "",
  unread: "",
  model: "The model `nobody` does not exist",
  "failed chat": stopped,
  "failed response": stopped,
};
const { image: _, ...crewai } = { ...whole, stream: "Hi there!", tools: "It is sunny in Paris.", failed: stopped };
const crewaiSaid = {
  ...inAll({ ...crewai, "tools stream": "Rain and sun." }),
  // It passes over calls, and over `response.failed`, in a streamed response.
  "responses tools stream": "ERROR ValueError Invalid response",
  "responses failed": "Hi there",
};
const rust = (library: string) => [join(built, "rust/debug/libraries"), library];
const python = (name: string) => [join(built, name, "bin/python"), join(folder, `${name}_cases.py`)];
const java = ["java", "-cp", `${join(built, "spring")}:${join(built, "spring/*")}`, "Libraries"];

/** `asked`: how often a request is sent that is answered with a 429 and `retry-after`. */
test.each([
  ["async-openai", rust("async-openai"), asyncOpenai, "async-openai", 4],
  ["genai", rust("genai"), inAll(streamed), "genai-chat", 1],
  ["rig", rust("rig"), { ...inAll(streamed), socket: "Hi there! Hi there!", models: "true" }, "rig-chat", 1],
  [
    "spring",
    java,
    inAll({ ...streamed, model: "`nobody`", "tools stream": "Rain and sun." }, ["chat", "messages"]),
    "spring-chat",
    4,
  ],
  ["crewai", python("crewai"), crewaiSaid, "crewai-chat", 3],
  [
    "inspect",
    python("inspect"),
    { ...inAll(whole), "messages count": "17", evaluation: "success 1.0 2800" },
    "inspect-chat",
    3,
  ],
] as const)("%s", async (name, words, expected, tag, asked) => {
  const file = words[0] === "java" ? join(built, "spring/Libraries.class") : words[0]!;
  if (missing(name, existsSync(file), remedy, false)) return;
  const [rich, poor] = [await stack.gateway.account(), await stack.gateway.account(0)];
  const { code, stdout, stderr } = await runToEnd([...words, stack.gateway.url], {
    env: { ...process.env, KEY: rich.api_key, POOR: poor.api_key },
  });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  const said = stdout.matchAll(/^([a-z]+(?: [a-z]+)?(?: [a-z]+)?): (.*)$/gm);
  const lines = Object.fromEntries([...said].map(([, what, value]) => [what!, value!]));
  expect(Object.keys(lines).sort()).toEqual(Object.keys(expected).sort());
  for (const [what, value] of Object.entries(expected)) expect(`${what}: ${lines[what]}`).toContain(value);
  expect(lines["unread"] ?? "").toBe("");
  expect(await stack.node.requests(`status-429#${tag}`)).toHaveLength(asked);
  await eventually("no node answers one that left", async () => (await stack.node.open()) === 0);
  // Inspect asks for "hello, world" first, to learn whether a model of responses tells its thoughts.
  expect(await stack.gateway.usage(poor.email)).toHaveLength(name === "inspect" ? 1 : 0);
  const rows = await stack.gateway.usage(rich.email);
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.every(({ billed_tokens: billed }) => billed > 0)).toBe(true);
});

test("promptfoo", async () => {
  const [node, promptfoo] = ["node/bin/node", "promptfoo/dist/src/entrypoint.js"].map((file) =>
    join(folder, "node_modules", file),
  ) as [string, string];
  if (missing("promptfoo", existsSync(node) && existsSync(promptfoo), remedy, false)) return;
  using own = temporaryFolder();
  const { api_key, email } = await stack.gateway.account();
  const report = join(own.path, "report.json");
  const words = ["eval", "-c", join(folder, "promptfoo.yaml"), "--no-table", "--no-cache", "-o", report];
  const { code, stdout } = await runToEnd([node, promptfoo, ...words], {
    env: {
      ...process.env,
      URL: stack.gateway.url,
      OPENAI_API_KEY: api_key,
      ANTHROPIC_API_KEY: api_key,
      PROMPTFOO_CONFIG_DIR: own.path,
      PROMPTFOO_DISABLE_TELEMETRY: "1",
      PROMPTFOO_DISABLE_UPDATE: "1",
    },
  });
  expect({ code, stdout: code === 0 ? "" : stdout }).toEqual({ code: 0, stdout: "" });
  const { stats } = (await Bun.file(report).json()).results as { stats: object };
  expect(stats).toMatchObject({ successes: 6, failures: 0, errors: 0, tokenUsage: { total: 840 } });
  expect(await stack.gateway.usage(email)).toHaveLength(6);
});

beforeAll(async () => {
  const object = callArguments(0, '{"title":', '"Dune","year":1965}');
  await stack.node.define("json-tool", once(callStart(0, "call_1", "structured_output"), object, finish("tool_calls")));
});
