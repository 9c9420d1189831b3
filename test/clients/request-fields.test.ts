// Every field, tool and content part that the official types let a client send: each is served, or ignored because the
// answer does not depend on it, or refused by its name. What a new version of a library adds is missing here, and fails.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRefusal, messageOf } from "../../src/core/refusals.ts";
import { readBody } from "../fixtures/reading.ts";
import { missing } from "../fixtures/optional.ts";
import { pixelUrl } from "../fixtures/pictures.ts";
import { type DialectName, dialects } from "../golden/dialects.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";

/** `served`, `ignored: WHY`, or what a request has that is refused, and the beginning of the refusal. */
type Treatment = "served" | `ignored: ${string}` | Readonly<{ refused: unknown; says: string }>;
type Table = Readonly<Record<string, Treatment>>;

const refused = (value: unknown, says: string): Treatment => ({ refused: value, says });
const repeated = "ignored: repeated in the reply, and of no use to a model";
const billing = "ignored: about another server's prices, places or priorities";
const caching = "ignored: nodes find what they have cached by themselves";
const about = "ignored: about the request, not part of it";

const sampling: Table = { temperature: "served", top_p: "served" };

const chatFields: Table = {
  ...sampling,
  messages: "served",
  model: "served",
  audio: refused({ voice: "a", format: "wav" }, "audio must be left out: answers are text"),
  frequency_penalty: "served",
  function_call: refused({ name: "f" }, "function_call must be left out"),
  functions: refused([{ name: "f" }], "functions must be left out"),
  logit_bias: "served",
  logprobs: "served",
  max_completion_tokens: "served",
  max_tokens: "served",
  metadata: about,
  modalities: refused(["text", "audio"], "modalities must be"),
  moderation: refused({ model: "m" }, "moderation must be left out"),
  n: refused(2, "n must be 1"),
  parallel_tool_calls: "served",
  prediction: "ignored: it makes the same answer faster",
  presence_penalty: "served",
  prompt_cache_key: caching,
  prompt_cache_options: caching,
  prompt_cache_retention: caching,
  reasoning_effort: "served",
  response_format: "served",
  safety_identifier: about,
  seed: "served",
  service_tier: "served",
  stop: "served",
  store: "ignored: chats are not kept, and asking for one by its id says so",
  stream: "served",
  stream_options: "served",
  tool_choice: "served",
  tools: "served",
  top_logprobs: "served",
  user: about,
  verbosity: "ignored: a wish that agents send of themselves and most models do not know",
  web_search_options: "served",
};

const responsesFields: Table = {
  ...sampling,
  access_programs: billing,
  background: refused(true, "background: needs a stored response"), // nothing is stored here
  context_management: "ignored: the whole conversation goes to the model, and too long a one is refused",
  conversation: "served",
  image: "ignored: images are shown to the model as they are",
  include: "served",
  input: "served",
  instructions: "served",
  max_output_tokens: "served",
  max_tool_calls: "served",
  metadata: "served",
  model: "served",
  moderation: refused({ model: "m" }, "moderation must be left out"),
  parallel_tool_calls: "served",
  previous_response_id: "served",
  prompt: refused({ id: "pmpt_1" }, "prompt must be left out"),
  prompt_cache_key: caching,
  prompt_cache_options: caching,
  prompt_cache_retention: caching,
  reasoning: "served",
  safety_identifier: repeated,
  service_tier: "served",
  store: "served",
  stream: "served",
  stream_options: "ignored: events are not padded",
  text: "served",
  tool_choice: "served",
  tools: "served",
  top_logprobs: "ignored: repeated in the reply, whose logprobs are empty",
  truncation: "ignored: too long a conversation is refused, which costs nothing",
  user: repeated,
};

const messagesFields: Table = {
  ...sampling,
  top_k: "served",
  max_tokens: "served",
  messages: "served",
  model: "served",
  betas: "ignored: goes out as a header",
  billing_policy: billing,
  cache_control: caching,
  compaction: refused({ type: "summarize" }, "compaction must be left out"),
  container: refused({ skills: [] }, "container must be left out"),
  context_management: "ignored: the whole conversation goes to the model, and too long a one is refused",
  diagnostics: caching,
  fallback_credit_token: billing,
  fallbacks: "ignored: no model here declines and hands on",
  inference_geo: billing,
  mcp_servers: refused([{ type: "url", url: "https://mcp.example", name: "m" }], "mcp_servers must be left out"),
  metadata: about,
  output_config: "served",
  output_format: "served",
  service_tier: billing,
  speed: billing,
  stop_sequences: "served",
  stream: "served",
  system: "served",
  thinking: "served",
  thread: refused({ type: "new" }, "Message threads are not kept here"),
  tool_choice: "served",
  tools: "served",
  user_profile_id: about,
  workspace_id: about,
};

const clientRuns = "ignored: the client would run it, and sees that nothing calls it";
const notRun = (type: string): Treatment => refused({ type }, `tools[0]: a tool of type ${type} is not run here`);

const responsesTools: Table = {
  function: "served",
  custom: "served",
  namespace: "served",
  web_search: "served",
  web_search_2025_08_26: "served",
  web_search_preview: "served",
  web_search_preview_2025_03_11: "served",
  file_search: notRun("file_search"),
  code_interpreter: notRun("code_interpreter"),
  mcp: notRun("mcp"),
  image_generation: "ignored: agents always offer it, and an answer without an image shows that there is none",
  programmatic_tool_calling: "ignored: the model calls the same tools one by one",
  tool_search: "ignored: tools that may be searched for are offered at once",
  computer: clientRuns,
  computer_use_preview: clientRuns,
  local_shell: clientRuns,
  shell: clientRuns,
  apply_patch: clientRuns,
};

/** Without their dates, which come last. */
const messagesTools: Table = {
  custom: "served",
  web_search: "served",
  code_execution: notRun("code_execution_20250825"),
  web_fetch: notRun("web_fetch_20250910"),
  mcp_toolset: notRun("mcp_toolset"),
  advisor: "ignored: another model's advice, which an agent may do without",
  tool_search_tool_bm25: "ignored: tools that may be searched for are offered at once",
  tool_search_tool_regex: "ignored: tools that may be searched for are offered at once",
  bash: clientRuns,
  browser_toolset: clientRuns,
  computer: clientRuns,
  computer_toolset: clientRuns,
  memory: clientRuns,
  text_editor: clientRuns,
};

const chatParts: Table = {
  text: "served",
  image_url: "served",
  input_audio: refused({ input_audio: { data: "", format: "wav" } }, "messages[0].content[0].input_audio: the model"),
  file: "served",
};

const responsesParts: Table = {
  input_text: "served",
  input_image: "served",
  input_file: "served",
};

const earlier = "ignored: what another server's tool gave, of which the answer that follows in the history speaks";
const messagesBlocks: Table = {
  text: "served",
  image: "served",
  document: "served",
  container_upload: refused({ file_id: "file_1" }, "messages[0].content[0].file_id: nothing runs in a container here"),
  search_result: "served",
  thinking: "served",
  redacted_thinking: "ignored: only the server that wrote it can read it",
  tool_use: "served",
  tool_result: "served",
  server_tool_use: "served",
  web_search_tool_result: "served",
  mcp_tool_use: "served",
  mcp_tool_result: "served",
  compaction: "served",
  web_fetch_tool_result: earlier,
  advisor_tool_result: earlier,
  code_execution_tool_result: earlier,
  bash_code_execution_tool_result: earlier,
  text_editor_code_execution_tool_result: earlier,
  tool_search_tool_result: earlier,
  mcp_tool_listing: "ignored: a list of tools that are not run here",
  tool_addition: "ignored: all tools are in `tools`",
  tool_removal: "ignored: all tools are in `tools`",
  fallback: "ignored: which model another server asked",
};

// ------------------------------------------------------------------------------------------------- the official types

const modules = join(import.meta.dir, "node_modules");
const typesOf = (file: string): string => readFileSync(join(modules, file), "utf8");
const chatFile = "openai/resources/chat/completions/completions.d.ts";
const responsesFile = "openai/resources/responses/responses.d.ts";
const messagesFile = "@anthropic-ai/sdk/resources/messages/messages.d.ts";
const betaFile = "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts";

/** The body of an interface, which may stand inside a namespace. */
function interfaceOf(types: string, name: string): string {
  const start = new RegExp(`^( *)(?:export )?interface ${name} (?:extends \\w+ )?\\{$`, "m").exec(types);
  if (start === null) throw new Error(`there is no interface ${name}`);
  const from = start.index + start[0].length;
  return types.slice(from, types.indexOf(`\n${start[1]}}`, from)).replaceAll(`\n${start[1]}    `, "\n");
}

const fieldsOf = (file: string, name: string): string[] =>
  [...interfaceOf(typesOf(file), name).matchAll(/^(\w+)\??:/gm)].map(([, field]) => field!);

/** The values of `type` of all members of a union of interfaces. */
function kindsOf(file: string, union: string): string[] {
  const types = typesOf(file);
  const members = new RegExp(`^export type ${union} = (.*);$`, "m").exec(types);
  if (members === null) throw new Error(`there is no union ${union}`);
  const kinds = members[1]!.split(" | ").flatMap((member) => {
    const type = /^type\??: (.*);$/m.exec(interfaceOf(types, member.split(".").at(-1)!));
    return [...(type?.[1] ?? "").matchAll(/'([^']+)'/g)].map(([, kind]) => kind!);
  });
  return [...new Set(kinds)];
}

const undated = (kinds: readonly string[]): string[] => [...new Set(kinds.map((kind) => kind.replace(/_\d{8}$/, "")))];

// ---------------------------------------------------------------------------------------------------------- the check

const catalog = embeddedCatalog();
const model = "open-05-3BIT-REAP";
const plain: Readonly<Record<DialectName, object>> = {
  chat: { model, messages: [{ role: "user", content: "hello" }] },
  messages: { model, max_tokens: 9, messages: [{ role: "user", content: "hello" }] },
  responses: { model, input: "hello" },
};
const withContent: Readonly<Record<DialectName, (part: object) => object>> = {
  chat: (part) => ({ model, messages: [{ role: "user", content: [part] }] }),
  messages: (part) => ({ model, max_tokens: 9, messages: [{ role: "user", content: [part] }] }),
  responses: (part) => ({ model, input: [{ role: "user", content: [part] }] }),
};

/** The words of the refusal; null: it is accepted. */
function refusalOf(dialect: DialectName, body: object): string | null {
  const read = readBody(dialects[dialect], body, 100, catalog);
  return isRefusal(read) ? messageOf(read) : null;
}

type Subject = Readonly<{
  dialect: DialectName;
  table: Table;
  official: () => readonly string[];
  /** A request with `value` as what is named. */
  body: (name: string, value: unknown) => object;
}>;

const field =
  (dialect: DialectName) =>
  (name: string, value: unknown): object => ({ ...plain[dialect], [name]: value });
const tool =
  (dialect: DialectName) =>
  (type: string, value: unknown): object => ({ ...plain[dialect], tools: [{ type, ...(value as object) }] });
const part =
  (dialect: DialectName) =>
  (type: string, value: unknown): object =>
    withContent[dialect]({ type, ...(value as object) });

const subjects: Readonly<Record<string, Subject>> = {
  "fields of chat-completions": {
    dialect: "chat",
    table: chatFields,
    official: () => fieldsOf(chatFile, "ChatCompletionCreateParamsBase"),
    body: field("chat"),
  },
  "fields of responses": {
    dialect: "responses",
    table: responsesFields,
    official: () => fieldsOf(responsesFile, "ResponseCreateParamsBase"),
    body: field("responses"),
  },
  "fields of messages": {
    dialect: "messages",
    table: messagesFields,
    official: () => [
      ...["temperature", "top_p", "top_k"], // the library's newest version has lost them
      ...fieldsOf(messagesFile, "MessageCreateParamsBase"),
      ...fieldsOf(betaFile, "MessageCreateParamsBase"),
    ],
    body: field("messages"),
  },
  "tools of responses": {
    dialect: "responses",
    table: responsesTools,
    official: () => kindsOf(responsesFile, "Tool"),
    body: tool("responses"),
  },
  "tools of messages": {
    dialect: "messages",
    table: messagesTools,
    official: () => undated([...kindsOf(messagesFile, "ToolUnion"), ...kindsOf(betaFile, "BetaToolUnion")]),
    body: tool("messages"),
  },
  "parts of chat-completions": {
    dialect: "chat",
    table: chatParts,
    official: () => kindsOf(chatFile, "ChatCompletionContentPart"),
    body: part("chat"),
  },
  "parts of responses": {
    dialect: "responses",
    table: responsesParts,
    official: () => kindsOf(responsesFile, "ResponseInputContent"),
    body: part("responses"),
  },
  "blocks of messages": {
    dialect: "messages",
    table: messagesBlocks,
    official: () => [...kindsOf(messagesFile, "ContentBlockParam"), ...kindsOf(betaFile, "BetaContentBlockParam")],
    body: part("messages"),
  },
};

/** Of responses: a response repeats them, so their form is checked. */
const repeatedFields = ["prompt_cache_key", "safety_identifier", "top_logprobs", "truncation", "user"];

const lacksTypes = missing(
  "the official clients' types",
  [chatFile, betaFile].every((file) => existsSync(join(modules, file))),
  "run npm ci in test/clients",
);

describe.each(Object.entries(subjects))("%s", (_, { dialect, table, official, body }) => {
  test.skipIf(lacksTypes)("all that the official types have, and nothing else", () => {
    expect([...new Set(official())].sort()).toEqual(Object.keys(table).sort());
  });

  test("what an answer depends on and is not served is refused by its name", () => {
    const rows = Object.entries(table).filter(([, treatment]) => typeof treatment === "object");
    for (const [name, treatment] of rows) {
      const { refused: value, says } = treatment as Exclude<Treatment, string>;
      expect([name, refusalOf(dialect, body(name, value))]).toEqual([name, expect.stringContaining(says)]);
    }
  });

  test("what is ignored is no error", () => {
    for (const [name, treatment] of Object.entries(table)) {
      if (typeof treatment !== "string" || treatment === "served") continue;
      const value = repeatedFields.includes(name) ? null : { id: "a" };
      expect([name, refusalOf(dialect, body(name, value))]).toEqual([name, null]);
    }
  });
});

describe("no tool is left that could be called", () => {
  const ignoredTools = { chat: { type: "image_generation" }, messages: { type: "bash_20250124", name: "bash" } };
  test.each([
    ["responses", { tools: [{ type: "image_generation" }], tool_choice: "required" }],
    ["responses", { tools: [{ type: "web_search", external_web_access: false }], tool_choice: "required" }],
    ["responses", { tools: [{ type: "image_generation" }], tool_choice: { type: "image_generation" } }],
    ["responses", { tools: [], tool_choice: { type: "allowed_tools", mode: "required", tools: [] } }],
    ["chat", { tools: [ignoredTools.chat], tool_choice: "required" }],
    ["messages", { tools: [ignoredTools.messages], tool_choice: { type: "any" } }],
    ["messages", { tools: [ignoredTools.messages], tool_choice: { type: "tool", name: "bash" } }],
  ] as const)("%s %p", (dialect, more) => {
    expect(refusalOf(dialect, { ...plain[dialect], ...more })).toStartWith("tool_choice");
    expect(refusalOf(dialect, { ...plain[dialect], ...more, tool_choice: undefined })).toBeNull();
  });
});

test("files inside of tool results and documents are seen too", () => {
  const result = (content: object) => ({ type: "tool_result", tool_use_id: "a", content: [content] });
  const image = { type: "image", source: { type: "file", file_id: 1 } };
  const inside = { type: "document", source: { type: "content", content: [image] } };
  for (const block of [result(image), inside]) {
    expect(refusalOf("messages", withContent.messages(block))).toContain("file_id must be the id of an uploaded file");
  }
  const output = { type: "function_call_output", call_id: "a", output: [{ type: "input_image", file_id: 1 }] };
  expect(refusalOf("responses", { model, input: [output] })).toStartWith("input[0].output[0].file_id must be");
});

test("an address beside the id of a file is read", () => {
  const image = { type: "input_image", file_id: "file_1", image_url: pixelUrl };
  expect(refusalOf("responses", withContent.responses(image))).toBeNull();
});
