// The same question in three dialects, asked with the official packages, and their answers in one form.
import OpenAI from "openai";
import { installed } from "../../fixtures/optional.ts";

export type Dialect = "chat" | "messages" | "responses";
/** A dialect, and whether the answer is streamed. */
export type Way = readonly [Dialect, boolean];
export const ways: readonly Way[] = [
  ["chat", false],
  ["chat", true],
  ["messages", false],
  ["messages", true],
  ["responses", false],
  ["responses", true],
];

type Call = Readonly<{ name: string; arguments: string }>;
type Turn =
  | Readonly<{ role: "user"; content: string }>
  | Readonly<{ role: "call"; id: string; name: string; arguments: string }>
  | Readonly<{ role: "result"; id: string; content: string }>;

export type Question = Readonly<{
  prompt: string | readonly Turn[];
  model?: string;
  maxTokens?: number | null;
  stop?: readonly string[];
  tools?: readonly Tool[];
  /** `required`, or the name of a tool. */
  choice?: string;
  parallel?: boolean;
  schema?: object;
  thinks?: boolean;
  /** Fields of the chat dialect alone. */
  chatOnly?: Readonly<Record<string, unknown>>;
  signal?: AbortSignal;
}>;
type Tool = Readonly<{ name: string; description: string; parameters: object }>;

export type Answer = Readonly<{
  text: string;
  reasoning: string;
  calls: readonly Call[];
  /** `stop`, `length`, `calls`, or the stop sequence that the messages dialect names. */
  end: string;
  /** Blocks or items, in their order, where the dialect has them. */
  parts: readonly string[];
  usage: Readonly<{ input: number; cached: number; output: number }>;
}>;

/** The client got an error instead of an answer. */
export class Refusal extends Error {
  constructor(
    readonly status: number | null,
    readonly body: unknown,
    message: string,
  ) {
    super(message);
  }
}

type Block = Readonly<{ type: string; text?: string; thinking?: string; name?: string; input?: unknown }>;
type Message = Readonly<{
  content: readonly Block[];
  stop_reason: string;
  stop_sequence: string | null;
  usage: Readonly<Record<string, number>>;
}>;
type AnthropicClient = Readonly<{
  messages: Readonly<{
    create(body: object, options?: object): Promise<Message>;
    stream(body: object, options?: object): { finalMessage(): Promise<Message> };
    countTokens(body: object): Promise<{ input_tokens: number }>;
  }>;
}>;
type AnthropicModule = Readonly<{ Anthropic: new (options: object) => AnthropicClient }>;

const anthropicModule = await installed<AnthropicModule>(
  "@anthropic-ai/sdk",
  new URL("../../clients/", import.meta.url).pathname,
);

/** What stands in the way of asking at all; null: nothing. */
export const clientsMissing =
  anthropicModule === null ? "Run npm ci in test/clients first: it brings the official packages." : null;

/** A stream as its client has it so far. */
export type RawStream = { text: string; readonly ended: Promise<void> };

export class Clients {
  readonly openai: OpenAI;
  readonly anthropic: AnthropicClient;
  readonly #url: string;
  readonly #apiKey: string;

  constructor(url: string, apiKey: string) {
    this.#url = url;
    this.#apiKey = apiKey;
    if (anthropicModule === null) throw new Error(clientsMissing!);
    const options = { apiKey, maxRetries: 0, timeout: 120_000 };
    this.openai = new OpenAI({ baseURL: `${url}/v1`, ...options });
    this.anthropic = new anthropicModule.Anthropic({ baseURL: url, ...options });
  }

  /** @throws Refusal when the gateway answered with an error, before the answer or in its middle. */
  async ask(dialect: Dialect, stream: boolean, question: Question): Promise<Answer> {
    try {
      const { signal } = question;
      if (dialect === "chat") return await this.#chat(chatBody(question), stream, { signal });
      if (dialect === "messages") return await this.#messages(messagesBody(question), stream, { signal });
      return await this.#responses(responsesBody(question), stream, { signal });
    } catch (thrown) {
      const { status, error, message } = thrown as { status?: number; error?: unknown; message: string };
      if (thrown instanceof Refusal) throw thrown;
      throw new Refusal(status ?? null, error ?? null, message);
    }
  }

  /** Asks for a stream without a package, which would hide what came before an error. */
  raw(dialect: Dialect, question: Question): RawStream {
    const [path, body] = {
      chat: ["/v1/chat/completions", chatBody(question)],
      messages: ["/v1/messages", messagesBody(question)],
      responses: ["/v1/responses", responsesBody(question)],
    }[dialect] as [string, object];
    const read = async (): Promise<void> => {
      const reply = await fetch(this.#url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#apiKey}` },
        body: JSON.stringify({ ...body, stream: true }),
      });
      const decoder = new TextDecoder();
      for await (const bytes of reply.body!) stream.text += decoder.decode(bytes as Uint8Array, { stream: true });
    };
    const stream: { text: string; ended: Promise<void> } = { text: "", ended: Promise.resolve() };
    stream.ended = read();
    return stream;
  }

  async #chat(body: object, stream: boolean, options: object): Promise<Answer> {
    const { completions } = this.openai.chat;
    if (!stream) {
      const reply = await completions.create(body as OpenAI.ChatCompletionCreateParamsNonStreaming, options);
      const { message, finish_reason } = reply.choices[0]!;
      return {
        text: message.content ?? "",
        reasoning: reasoningOf(message),
        calls: (message.tool_calls ?? []).map((call) => (call as { function: Call }).function),
        end: finish_reason === "tool_calls" ? "calls" : finish_reason,
        parts: [],
        usage: chatUsage(reply.usage!),
      };
    }
    const events = await completions.create(
      {
        ...(body as OpenAI.ChatCompletionCreateParamsStreaming),
        stream: true,
        stream_options: { include_usage: true },
      },
      options,
    );
    let text = "";
    let reasoning = "";
    let end = "";
    let usage: OpenAI.CompletionUsage | null = null;
    const calls: { name: string; arguments: string }[] = [];
    for await (const chunk of events) {
      usage = chunk.usage ?? usage;
      const [choice] = chunk.choices;
      text += choice?.delta.content ?? "";
      reasoning += reasoningOf(choice?.delta);
      end = choice?.finish_reason ?? end;
      for (const { index, function: piece } of choice?.delta.tool_calls ?? []) {
        const call = (calls[index] ??= { name: "", arguments: "" });
        call.name += piece?.name ?? "";
        call.arguments += piece?.arguments ?? "";
      }
    }
    if (usage === null) throw new Refusal(null, null, "the stream ended without usage");
    return { text, reasoning, calls, end: end === "tool_calls" ? "calls" : end, parts: [], usage: chatUsage(usage) };
  }

  async #messages(body: object, stream: boolean, options: object): Promise<Answer> {
    const { messages } = this.anthropic;
    const reply = stream ? await messages.stream(body, options).finalMessage() : await messages.create(body, options);
    const { usage, stop_reason } = reply;
    const ends: Record<string, string> = { end_turn: "stop", max_tokens: "length", tool_use: "calls" };
    return {
      text: joined(reply.content, "text"),
      reasoning: joined(reply.content, "thinking"),
      calls: reply.content
        .filter(({ type }) => type === "tool_use")
        .map(({ name, input }) => ({ name: name!, arguments: JSON.stringify(input) })),
      end: stop_reason === "stop_sequence" ? reply.stop_sequence! : (ends[stop_reason] ?? stop_reason),
      parts: reply.content.map(({ type }) => type),
      usage: {
        input: usage["input_tokens"]! + (usage["cache_read_input_tokens"] ?? 0),
        cached: usage["cache_read_input_tokens"] ?? 0,
        output: usage["output_tokens"]!,
      },
    };
  }

  async #responses(body: object, stream: boolean, options: object): Promise<Answer> {
    let reply: OpenAI.Responses.Response | null = null;
    if (stream) {
      const params = { ...body, stream: true } as OpenAI.Responses.ResponseCreateParamsStreaming;
      for await (const event of await this.openai.responses.create(params, options)) {
        if (event.type === "error") throw new Refusal(null, event, event.message);
        if ("response" in event) ({ response: reply } = event);
      }
    } else {
      const params = body as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      reply = await this.openai.responses.create(params, options);
    }
    if (reply?.usage === undefined || reply.usage === null || reply.error !== null) {
      throw new Refusal(null, reply?.error ?? null, reply?.error?.message ?? "the response has no end");
    }
    const calls = reply.output.filter((item) => item.type === "function_call");
    const cut = reply.status === "incomplete" ? "length" : "stop";
    return {
      text: reply.output_text,
      reasoning: reply.output
        .filter((item) => item.type === "reasoning")
        .map((item) => [...(item.content ?? []), ...item.summary].map(({ text }) => text).join(""))
        .join(""),
      calls: calls.map(({ name, arguments: json }) => ({ name, arguments: json })),
      end: cut === "stop" && calls.length > 0 ? "calls" : cut,
      parts: reply.output.map(({ type }) => type),
      usage: {
        input: reply.usage.input_tokens,
        cached: reply.usage.input_tokens_details.cached_tokens,
        output: reply.usage.output_tokens,
      },
    };
  }
}

const reasoningOf = (message: object | undefined): string =>
  (message as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";

const joined = (content: readonly Block[], type: "text" | "thinking"): string =>
  content.map((block) => (block.type === type ? (block[type] ?? "") : "")).join("");

const chatUsage = (usage: OpenAI.CompletionUsage): Answer["usage"] => ({
  input: usage.prompt_tokens,
  cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
  output: usage.completion_tokens,
});

/** Hosted, because the output budget and the depth reach the node of a hosted model only. */
export const hosted = "open-10-W8A16";
/** First-party, for which five stop sequences hold. */
export const firstParty = "core-3";
/** Fields with which the tiny model goes on to the end of its budget. */
export const neverEnds = { logit_bias: { "2039": -100, "2041": -100 }, temperature: 1.9 };
const defined = (fields: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const turnsOf = ({ prompt }: Question): readonly Turn[] =>
  typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;

function chatBody(question: Question): object {
  const { model, maxTokens, stop, tools, choice, parallel, schema, thinks, chatOnly } = question;
  return defined({
    model: model ?? hosted,
    temperature: 0,
    messages: turnsOf(question).map((turn) => {
      if (turn.role === "user") return turn;
      if (turn.role === "result") return { role: "tool", tool_call_id: turn.id, content: turn.content };
      const call = { id: turn.id, type: "function", function: { name: turn.name, arguments: turn.arguments } };
      return { role: "assistant", content: null, tool_calls: [call] };
    }),
    max_tokens: maxTokens === null ? undefined : (maxTokens ?? 300),
    stop,
    tools: tools?.map((tool) => ({ type: "function", function: tool })),
    tool_choice:
      choice === undefined || choice === "required" || choice === "none"
        ? choice
        : { type: "function", function: { name: choice } },
    parallel_tool_calls: parallel,
    response_format: schema && { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    reasoning_effort: effortOf(thinks),
    ...chatOnly,
  });
}

function messagesBody(question: Question): object {
  const { model, maxTokens, stop, tools, choice, parallel, schema, thinks } = question;
  return defined({
    model: model ?? hosted,
    // this dialect takes no temperature beside thinking
    temperature: 0,
    messages: turnsOf(question).map((turn) => {
      if (turn.role === "user") return turn;
      if (turn.role === "result")
        return { role: "user", content: [{ type: "tool_result", tool_use_id: turn.id, content: turn.content }] };
      const call = { type: "tool_use", id: turn.id, name: turn.name, input: JSON.parse(turn.arguments) as unknown };
      return { role: "assistant", content: [call] };
    }),
    max_tokens: maxTokens ?? (thinks === true ? 2_000 : 300),
    stop_sequences: stop,
    tools: tools?.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    tool_choice: defined({
      type: choice === undefined ? "auto" : choice === "required" ? "any" : choice === "none" ? "none" : "tool",
      name: choice === undefined || choice === "required" || choice === "none" ? undefined : choice,
      disable_parallel_tool_use: parallel === false ? true : undefined,
    }),
    ...(tools === undefined ? { tool_choice: undefined } : {}),
    output_config: schema && { format: { type: "json_schema", schema } },
    thinking:
      thinks === undefined ? undefined : thinks ? { type: "enabled", budget_tokens: 1_024 } : { type: "disabled" },
  });
}

function responsesBody(question: Question): object {
  const { model, maxTokens, tools, choice, parallel, schema, thinks } = question;
  return defined({
    model: model ?? hosted,
    temperature: 0,
    store: false,
    input: turnsOf(question).map((turn) => {
      if (turn.role === "user") return turn;
      if (turn.role === "result") return { type: "function_call_output", call_id: turn.id, output: turn.content };
      return { type: "function_call", call_id: turn.id, name: turn.name, arguments: turn.arguments };
    }),
    max_output_tokens: maxTokens === null ? undefined : (maxTokens ?? 300),
    tools: tools?.map((tool) => ({ type: "function", ...tool, strict: false })),
    tool_choice:
      choice === undefined || choice === "required" || choice === "none" ? choice : { type: "function", name: choice },
    parallel_tool_calls: parallel,
    text: schema && { format: { type: "json_schema", name: "answer", schema, strict: true } },
    reasoning: thinks === undefined ? undefined : { effort: effortOf(thinks) },
  });
}

const effortOf = (thinks: boolean | undefined): string | undefined =>
  thinks === undefined ? undefined : thinks ? "high" : "none";
