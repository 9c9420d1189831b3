// The rows of the matrix: every client in every way in which it can be asked, as a function from a server and a script
// to what the client made of the reply. Nothing of the clients is changed but their base address and key.
import { collected, type Chunk } from "../fixtures/events.ts";
import type { MessagesEvent } from "../fixtures/messages-events.ts";
import { installed } from "../fixtures/optional.ts";
import { type DialectName, messageOf, model, type ScriptName } from "./matrix-references.ts";
import { promptOf } from "./matrix-servers.ts";

type Json = Record<string, any>;
/** `url` is without /v1. */
type Server = Readonly<{ url: string; key: string }>;
export type Row = Readonly<{
  name: string;
  dialect: DialectName;
  /** What the client made of the reply, as values of its own. */
  run(server: Server, script: ScriptName): Promise<unknown>;
}>;

const from = import.meta.dir;
const module = (name: string): Promise<Json | null> => installed<Json>(name, from);

const openaiMajors = { 7: "openai", 6: "openai-6", 5: "openai-5", 4: "openai-4" };
const anthropicVersions = { "1.11": "@anthropic-ai/sdk", "0.137": "anthropic-0.137", "0.60": "anthropic-0.60" };
const aiMajors = {
  7: { ai: "ai", openai: "@ai-sdk/openai", compatible: "@ai-sdk/openai-compatible", anthropic: "@ai-sdk/anthropic" },
  6: {
    ai: "ai-6",
    openai: "ai-sdk-openai-6",
    compatible: "ai-sdk-openai-compatible-6",
    anthropic: "ai-sdk-anthropic-6",
  },
};

const packages = [
  ...Object.values(openaiMajors),
  ...Object.values(anthropicVersions),
  ...Object.values(aiMajors).flatMap((major) => Object.values(major)),
  "@openai/agents",
];
const modules = new Map(await Promise.all(packages.map(async (name) => [name, await module(name)] as const)));
/** Packages that are not installed; without any of them there is no matrix. */
export const absent: readonly string[] = packages.filter((name) => modules.get(name) === null);
const used = (name: string): Json => modules.get(name)!;

const command = {
  type: "object",
  properties: { command: { type: "string" } },
  required: ["command"],
  additionalProperties: false,
};
const callsTools = (script: ScriptName): boolean => script === "one-tool" || script === "two-tools";

// -------------------------------------------------------------------------------------------------- chat-completions

function chatBody(script: ScriptName): Json {
  return {
    model,
    messages: [{ role: "user", content: promptOf("chat", script) }],
    ...(script === "stop-sequence" ? { stop: ["END"] } : {}),
    ...(script === "web-search" ? { web_search: true } : {}),
    ...(callsTools(script)
      ? { tools: [{ type: "function", function: { name: "bash", description: "run", parameters: command } }] }
      : {}),
  };
}

function openaiRows(): Row[] {
  return Object.entries(openaiMajors).flatMap(([major, name]) => {
    const client = ({ url, key }: Server): Json => new (used(name)["OpenAI"])({ baseURL: `${url}/v1`, apiKey: key });
    const row = (way: string, run: (client: Json, body: Json) => unknown): Row => ({
      name: `openai ${major} ${way}`,
      dialect: "chat",
      run: async (server, script) => run(client(server), chatBody(script)),
    });
    return [
      row("create", ({ chat }, body) => chat.completions.create(body)),
      row("create, streamed", async ({ chat }, body) => {
        const chunks: Chunk[] = [];
        for await (const chunk of await chat.completions.create({ ...body, stream: true })) chunks.push(chunk);
        const usage = chunks.map((chunk) => chunk.usage ?? null).filter((told) => told !== null);
        return {
          ...collected({ chunks, comments: [], done: true }),
          usage,
          ids: new Set(chunks.map(({ id }) => id)).size,
        };
      }),
      row(".stream()", ({ chat, beta }, body) => {
        const completions = chat.completions.stream === undefined ? beta.chat.completions : chat.completions;
        return completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
      }),
    ];
  });
}

// ---------------------------------------------------------------------------------------------------------- messages

function messagesBody(script: ScriptName): Json {
  return {
    model,
    max_tokens: 4_096,
    messages: [{ role: "user", content: promptOf("messages", script) }],
    thinking: { type: "enabled", budget_tokens: 1_024 },
    ...(script === "stop-sequence" ? { stop_sequences: ["END"] } : {}),
    ...(script === "web-search" ? { tools: [{ type: "web_search_20250305", name: "web_search" }] } : {}),
    ...(callsTools(script) ? { tools: [{ name: "bash", description: "run", input_schema: command }] } : {}),
  };
}

function anthropicRows(): Row[] {
  return Object.entries(anthropicVersions).flatMap(([version, name]) => {
    const client = ({ url, key }: Server): Json => new (used(name)["Anthropic"])({ baseURL: url, apiKey: key });
    const row = (way: string, run: (messages: Json, body: Json) => unknown): Row => ({
      name: `Anthropic ${version} ${way}`,
      dialect: "messages",
      run: async (server, script) => run(client(server)["messages"], messagesBody(script)),
    });
    return [
      row("create", (messages, body) => messages["create"](body)),
      row("create, streamed", async (messages, body) => {
        const events: MessagesEvent[] = [];
        for await (const event of await messages["create"]({ ...body, stream: true })) events.push(event);
        return { types: typesOf(events), message: messageOf(events) };
      }),
      row(".stream()", (messages, body) => messages["stream"](body).finalMessage()),
    ];
  });
}

/** Types of events in their order; how often one repeats depends on where a text was cut. */
const typesOf = (events: readonly { type: string }[]): string[] =>
  events.map(({ type }) => type).filter((type, at, all) => type !== "ping" && type !== all[at - 1]);

// --------------------------------------------------------------------------------------------------------- responses

function responsesBody(script: ScriptName): Json {
  const tool = { type: "function", name: "bash", description: "run", parameters: command, strict: false };
  const search = script === "web-search";
  return {
    model,
    input: promptOf("responses", script),
    store: false,
    include: ["reasoning.encrypted_content", ...(search ? ["web_search_call.action.sources"] : [])],
    ...(search ? { tools: [{ type: "web_search" }] } : {}),
    ...(callsTools(script) ? { tools: [tool] } : {}),
  };
}

function openaiResponsesRows(): Row[] {
  return Object.entries(openaiMajors).flatMap(([major, name]) => {
    const client = ({ url, key }: Server): Json => new (used(name)["OpenAI"])({ baseURL: `${url}/v1`, apiKey: key });
    const row = (way: string, run: (responses: Json, body: Json) => unknown): Row => ({
      name: `openai ${major} ${way}`,
      dialect: "responses",
      run: async (server, script) => run(client(server)["responses"], responsesBody(script)),
    });
    return [
      row("create", (responses, body) => responses["create"](body)),
      row("create, streamed", async (responses, body) => {
        const events: Json[] = [];
        for await (const event of await responses["create"]({ ...body, stream: true })) events.push(event);
        return { types: typesOf(events as never), last: events.at(-1)!["response"] };
      }),
      row(".stream()", (responses, body) => responses["stream"](body).finalResponse()),
    ];
  });
}

// ------------------------------------------------------------------------------------------------------------ AI SDK

type AiOptions = Readonly<{ model: unknown; tools?: Json; providerOptions?: Json }>;

function aiRows(): Row[] {
  return Object.entries(aiMajors).flatMap(([major, names]) => {
    const ai = used(names.ai);
    const rows = (kind: string, dialect: DialectName, options: (server: Server, script: ScriptName) => AiOptions) =>
      ["generateText", "streamText"].map((way): Row => ({
        name: `AI SDK ${major} ${kind} ${way}`,
        dialect,
        async run(server, script) {
          const bash = { bash: ai["tool"]({ description: "run", inputSchema: ai["jsonSchema"](command) }) };
          const asked = {
            prompt: promptOf(dialect, script),
            maxOutputTokens: 3_000,
            maxRetries: 0,
            ...(script === "stop-sequence" ? { stopSequences: ["END"] } : {}),
            ...(callsTools(script) ? { tools: bash } : {}),
            ...options(server, script),
          };
          const result = way === "streamText" ? ai[way]({ ...asked, onError: () => {} }) : await ai[way](asked);
          return aiResult(result);
        },
      }));
    return [
      ...rows("openai-compatible", "chat", ({ url, key }, script) => {
        const settings = { name: "gateway", baseURL: `${url}/v1`, apiKey: key, includeUsage: true };
        const provider = used(names.compatible)["createOpenAICompatible"](settings);
        const searches = script === "web-search" ? { providerOptions: { gateway: { web_search: true } } } : {};
        return { model: provider.chatModel(model), ...searches };
      }),
      ...rows("openai .chat", "chat", ({ url, key }, script) => {
        // the provider has no setting for a search of this dialect
        const searching = (input: string, init: RequestInit): Promise<Response> =>
          fetch(input, { ...init, body: JSON.stringify({ ...JSON.parse(init.body as string), web_search: true }) });
        const settings = { baseURL: `${url}/v1`, apiKey: key, fetch: script === "web-search" ? searching : fetch };
        return { model: used(names.openai)["createOpenAI"](settings).chat(model) };
      }),
      ...rows("anthropic", "messages", ({ url, key }, script) => {
        const provider = used(names.anthropic)["createAnthropic"]({ baseURL: `${url}/v1`, apiKey: key });
        const tools = { web_search: provider.tools.webSearch_20250305({}) };
        return {
          model: provider(model),
          providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1_024 } } },
          ...(script === "web-search" ? { tools } : {}),
        };
      }),
      ...rows("openai", "responses", ({ url, key }, script) => {
        const provider = used(names.openai)["createOpenAI"]({ baseURL: `${url}/v1`, apiKey: key });
        return {
          model: provider(model),
          providerOptions: { openai: { store: false, forceReasoning: true, include: ["reasoning.encrypted_content"] } },
          ...(script === "web-search" ? { tools: { web_search: provider.tools.webSearch({}) } } : {}),
        };
      }),
    ];
  });
}

/** The same of a result and of a stream's promises. */
async function aiResult(result: Json): Promise<unknown> {
  const fields = ["text", "reasoningText", "content", "toolCalls", "finishReason", "sources", "usage", "warnings"];
  return Object.fromEntries(await Promise.all(fields.map(async (field) => [field, await result[field]])));
}

// ------------------------------------------------------------------------------------------------------------ Agents

function agentsRows(): Row[] {
  const agents = used("@openai/agents");
  const row = (dialect: "chat" | "responses", streamed: boolean): Row => ({
    name: `Agents ${streamed ? "streamed" : "whole"}`,
    dialect,
    async run({ url, key }, script) {
      const client = new (used("openai")["OpenAI"])({ baseURL: `${url}/v1`, apiKey: key });
      const Model = dialect === "chat" ? "OpenAIChatCompletionsModel" : "OpenAIResponsesModel";
      const asked: unknown[] = [];
      const bash = agents["tool"]({
        name: "bash",
        description: "run",
        strict: false,
        parameters: { ...command, additionalProperties: true },
        execute: (input: unknown) => (asked.push(input), Promise.resolve("done")),
      });
      const search = script === "web-search";
      const {
        tools: _,
        input: __,
        messages: ___,
        model: ____,
        ...settings
      } = dialect === "chat" ? chatBody(script) : responsesBody(script);
      const agent = new agents["Agent"]({
        name: "assistant",
        instructions: "be brief",
        model: new agents[Model](client, model),
        modelSettings: { store: false, providerData: settings },
        tools: [
          ...(callsTools(script) ? [bash] : []),
          ...(search && dialect === "responses" ? [agents["webSearchTool"]()] : []),
        ],
      });
      const runner = new agents["Runner"]({ tracingDisabled: true });
      const result = await runner.run(agent, promptOf(dialect, script), streamed ? { stream: true } : {});
      await result.completed;
      return { finalOutput: result.finalOutput, asked, history: result.history };
    },
  });
  return [row("chat", false), row("chat", true), row("responses", false), row("responses", true)];
}

/** Every row; only to be called where no package is absent. */
export const matrixRows = (): readonly Row[] => [
  ...openaiRows(),
  ...anthropicRows(),
  ...openaiResponsesRows(),
  ...aiRows(),
  ...agentsRows(),
];
