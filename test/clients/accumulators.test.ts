// Clients that put a chat stream together, each in its own way, with the usage as it comes and as they ask for it: whole
// text, one finish reason, every call and the exact usage. `accumulators/install` brings those that npm does not.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

const folder = join(import.meta.dir, "accumulators");
const built = join(folder, ".built");
const remedy = "run test/clients/accumulators/install, with the language on the PATH";
const model = "core-3";
const said = { text: "Hi there!|stop|0|140", "one-tool": "|tool_calls|1|140" } as const;
const forms = ["default", "apart"] as const;

const programs = [
  ["Python", join(folder, ".venv/bin/python"), [join(folder, "accumulate.py")]],
  [
    "Java",
    join(built, "java/Accumulate.class"),
    ["java", "-cp", `${join(built, "java")}:${join(built, "java/*")}`, "Accumulate"],
  ],
  ["Go", join(built, "accumulate-go"), []],
] as const;

const stack = useStack();
const readers = {
  Python: ["openai-python", "naive loop", "langchain", "llama-index", "litellm"],
  Java: ["openai-java"],
  Go: ["openai-go"],
};

describe.each(programs)("accumulators in %s", (language, file, words) => {
  const absent = missing(`clients in ${language}`, existsSync(file), remedy, false);

  test.skipIf(absent)("see the whole answer once, with its usage", async () => {
    const { api_key } = await stack.gateway.account();
    const program = language === "Java" ? [...words] : [file, ...words];
    const { code, stdout, stderr } = await runToEnd([...program, `${stack.gateway.url}/v1`, model], {
      env: { ...process.env, KEY: api_key },
    });
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.split("\n").filter((line) => / (default|apart) /.test(line));
    const expected = readers[language].flatMap((reader) =>
      forms.flatMap((form) => Object.entries(said).map(([script, whole]) => `${reader} ${form} ${script}: ${whole}`)),
    );
    // It ends OpenAI's own form, usage without choices, with a stop of its own.
    const known = lines.map((line) =>
      line.replace("litellm apart one-tool: |stop|", "litellm apart one-tool: |tool_calls|"),
    );
    expect(known.sort()).toEqual(expected.sort());
  });
});

type Json = Record<string, any>;
const weather = { type: "function", function: { name: "get_weather", parameters: { type: "object", properties: {} } } };
const askedBy = (form: (typeof forms)[number], script: string): Json => ({
  model,
  messages: [{ role: "user", content: `hello [[${script}]]` }],
  ...(form === "apart" ? { stream_options: { include_usage: true } } : {}),
  ...(script === "one-tool" ? { tools: [weather] } : {}),
});

// oxlint-disable-next-line typescript/no-misused-promises -- Bun waits for it
describe.each(["openai", "openai-6", "openai-5", "openai-4"])("accumulators in JavaScript, %s", async (name) => {
  const sdk = await installed<Json>(name, import.meta.dir);
  const absent = missing(name, sdk !== null, "run npm ci in test/clients");

  test.skipIf(absent).each(forms)("its helper sees the whole answer once, with its usage (%s)", async (form) => {
    const { api_key } = await stack.gateway.account();
    const client = new sdk!["OpenAI"]({ baseURL: `${stack.gateway.url}/v1`, apiKey: api_key });
    const { completions } = client.chat.completions.stream === undefined ? client.beta.chat : client.chat;
    for (const [script, whole] of Object.entries(said)) {
      const { choices, usage } = await completions.stream(askedBy(form, script)).finalChatCompletion();
      const [{ message, finish_reason }] = choices;
      const seen = [message.content ?? "", finish_reason, message.tool_calls?.length ?? 0, usage.total_tokens];
      expect([choices.length, seen.join("|")]).toEqual([1, whole]);
    }
  });
});

describe.each([
  ["ai", "@ai-sdk/openai-compatible"],
  ["ai-6", "ai-sdk-openai-compatible-6"],
  // oxlint-disable-next-line typescript/no-misused-promises -- Bun waits for it
])("accumulators in JavaScript, %s", async (name, provider) => {
  const [sdk, made] = [await installed<Json>(name, import.meta.dir), await installed<Json>(provider, import.meta.dir)];
  const absent = missing(provider, sdk !== null && made !== null, "run npm ci in test/clients");

  test.skipIf(absent).each(forms)("streamText sees the whole answer once, with its usage (%s)", async (form) => {
    const { api_key } = await stack.gateway.account();
    const baseURL = `${stack.gateway.url}/v1`;
    const compatible = made!["createOpenAICompatible"]({
      name: "t",
      baseURL,
      apiKey: api_key,
      includeUsage: form === "apart",
    });
    for (const [script, whole] of Object.entries(said)) {
      const inputSchema = sdk!["jsonSchema"]({ type: "object", properties: {} });
      const streamed = sdk!["streamText"]({
        model: compatible.chatModel(model),
        prompt: `hello [[${script}]]`,
        tools: script === "one-tool" ? { get_weather: sdk!["tool"]({ inputSchema }) } : {},
      });
      const [text, finish, calls, usage] = [
        await streamed.text,
        await streamed.finishReason,
        await streamed.toolCalls,
        await streamed.totalUsage,
      ];
      expect([text, String(finish).replace("-", "_"), calls.length, usage.totalTokens].join("|")).toBe(whole);
    }
  });
});
