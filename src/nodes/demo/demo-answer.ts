// Computes the demo node's answer from the request alone: the same request gives the same answer.
//
//   (1) `tools` are offered and tool_choice is "required" or names one           -> call it (or the first)
//   (2) the last message is a tool's result                                      -> say what the tool gave, citing it
//   (3) `tools` are offered, tool_choice is not "none", and the user's last
//       message contains a word of a tool's name ("weather" of get_weather)      -> call that tool
//   (4) response_format is json_schema or json_object                            -> JSON that fits
//   (5) anything else                                                            -> a text that says it is synthetic
//
// (1) and (3) make one call for each of two things that the question joins ("Paris and Rome"), unless
// parallel_tool_calls is false. `stop` and `max_tokens` cut the answer as an engine would.
import { type Fill, instanceOf } from "./demo-instance.ts";

type DemoMessage = Readonly<{
  role?: unknown;
  content?: unknown;
  tool_calls?: readonly Readonly<{ id?: unknown; function?: Readonly<{ name?: unknown; arguments?: unknown }> }>[];
  tool_call_id?: unknown;
}>;

/** The fields of a chat-completions request that the demo node reads. */
export type DemoRequest = Readonly<{
  model?: unknown;
  messages: readonly DemoMessage[];
  stream?: unknown;
  stream_options?: Readonly<{ include_usage?: unknown; continuous_usage_stats?: unknown }> | null;
  max_tokens?: unknown;
  max_completion_tokens?: unknown;
  stop?: unknown;
  tools?: readonly DemoTool[] | null;
  tool_choice?: unknown;
  parallel_tool_calls?: unknown;
  response_format?: Readonly<{ type?: unknown; json_schema?: Readonly<{ schema?: unknown }> }> | null;
  reasoning_effort?: unknown;
  chat_template_kwargs?: Readonly<{ enable_thinking?: unknown; thinking?: unknown }> | null;
}>;
type DemoTool = Readonly<{ function?: Readonly<{ name?: unknown; parameters?: unknown }> }>;

/** One step of the answer; each counts as one token. The first part of a call carries its id and name. */
export type DemoToken =
  | Readonly<{ kind: "reasoning" | "content"; text: string }>
  | Readonly<{ kind: "call"; index: number; id: string; name: string }>
  | Readonly<{ kind: "arguments"; index: number; text: string }>;

export type DemoAnswer = Readonly<{
  tokens: readonly DemoToken[];
  finish: "stop" | "tool_calls" | "length";
  /** The stop sequence that cut the answer; null when none did. */
  stopReason: string | null;
  promptTokens: number;
  cachedTokens: number;
}>;

const piecePattern = /\s?\S{1,6}|\s/gu;
/** Engines cache prompts in blocks of this many tokens. */
const cacheBlockTokens = 16;
/** What a chat template adds to each message. */
const tokensPerMessage = 4;
const quotedMax = 300;

/** Computes the whole answer. `id` is the request's own text, from which its tool calls get their ids. */
export function answerTo(request: DemoRequest, id: string): DemoAnswer {
  const { messages } = request;
  const reasoning = thinks(request) ? pieces(thought(request)) : [];
  const calls = callsOf(request);
  const whole = calls.length > 0 ? "" : contentOf(request);
  const { text, stopReason } = cutAtStop(whole, request.stop);
  const tokens: DemoToken[] = [
    ...reasoning.map((piece): DemoToken => ({ kind: "reasoning", text: piece })),
    ...pieces(text).map((piece): DemoToken => ({ kind: "content", text: piece })),
    ...calls.flatMap(({ name, json }, index): DemoToken[] => [
      { kind: "call", index, id: `call_${Bun.hash(`${id} ${index}`).toString(16).padStart(16, "0")}`, name },
      ...pieces(json).map((piece): DemoToken => ({ kind: "arguments", index, text: piece })),
    ]),
  ];
  const budget = Number(request.max_tokens ?? request.max_completion_tokens ?? Number.POSITIVE_INFINITY);
  const cut = tokens.length > budget;
  const known = messages.slice(0, messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const cached = known.reduce((sum, message) => sum + messageTokens(message), 0);
  return {
    tokens: cut ? tokens.slice(0, budget) : tokens,
    finish: cut ? "length" : calls.length > 0 ? "tool_calls" : "stop",
    stopReason: cut ? null : stopReason,
    promptTokens:
      messages.reduce((sum, message) => sum + messageTokens(message), 0) +
      pieces(JSON.stringify(request.tools ?? "")).length,
    cachedTokens: cached - (cached % cacheBlockTokens),
  };
}

// ---------------------------------------------------------------- tools

function callsOf(request: DemoRequest): { name: string; json: string }[] {
  const tool = wantedTool(request);
  if (tool === null) return [];
  const question = questionOf(request.messages);
  const things = request.parallel_tool_calls === false ? [null] : thingsOf(question);
  return things.map((thing) => ({
    name: String(tool.function?.name),
    json: JSON.stringify(instanceOf(tool.function?.parameters ?? {}, fillFrom(question, thing))),
  }));
}

function wantedTool({ tools, tool_choice, messages }: DemoRequest): DemoTool | null {
  if (!Array.isArray(tools) || tools.length === 0 || tool_choice === "none") return null;
  const offered: readonly DemoTool[] = tools;
  if (typeof tool_choice === "object" && tool_choice !== null) {
    const { name } = (tool_choice as DemoTool).function ?? {};
    return offered.find((tool) => tool.function?.name === name) ?? null;
  }
  if (tool_choice !== "required" && messages.at(-1)?.role === "tool") return null;
  const question = questionOf(messages).toLowerCase();
  const named = offered.find((tool) =>
    wordsOfName(String(tool.function?.name)).some((word) => question.includes(word)),
  );
  return named ?? (tool_choice === "required" ? offered[0]! : null);
}

/** The words that ask for a tool: "weather" for `get_weather` and `getWeather`. Verbs that any question may hold are left out. */
function wordsOfName(name: string): string[] {
  const common = new Set(["get", "set", "list", "make", "for", "the", "and", "tool", "call", "with", "from"]);
  const words = name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.filter((word) => word.length >= 3 && !common.has(word));
}

const thingsMaxLength = 10_000;

/** "Paris and Rome" names two things, "in Paris" one; [null] without any. */
function thingsOf(question: string): (string | null)[] {
  const words = question.slice(0, thingsMaxLength);
  const two = /(?<![\p{L}-])(\p{Lu}[\p{L}-]{1,60})\s{1,9}(?:and|or|versus|vs)\s{1,9}(\p{Lu}[\p{L}-]{1,60})/u.exec(
    words,
  );
  if (two !== null) return [two[1]!, two[2]!];
  return [/\b(?:in|for|of|at|about|called|named)\s{1,9}(\p{Lu}[\p{L}-]{1,60})/u.exec(words)?.[1] ?? null];
}

/** A search gets the question, any other tool the thing that the question names. */
function fillFrom(question: string, thing: string | null): Fill {
  const whole = /^(?:q|query|question|text|prompt|input|search|search_query)$/i;
  return (property) => (whole.test(property) ? question.slice(0, quotedMax) || null : thing);
}

// ---------------------------------------------------------------- text

function contentOf({ messages, response_format, tools }: DemoRequest): string {
  const question = questionOf(messages);
  if (response_format?.type === "json_schema") {
    return JSON.stringify(instanceOf(response_format.json_schema?.schema ?? {}, fillFrom(question, null)));
  }
  if (response_format?.type === "json_object") {
    return JSON.stringify({ synthetic: true, question: question.slice(0, quotedMax) });
  }
  const last = messages.at(-1);
  if (last?.role === "tool") {
    const results = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
    const said = results.map((result) => `${toolName(messages, result)} gave ${given(textOf(result.content))}`);
    return `This is a synthetic answer of Tollgate's demo node. The tools were run: ${said.join("; ")}.`;
  }
  const received = [`${messages.length} message${messages.length === 1 ? "" : "s"}`];
  if (Array.isArray(tools) && tools.length > 0) received.push(`${tools.length} tool${tools.length === 1 ? "" : "s"}`);
  const images = messages.reduce((sum, { content }) => sum + imagesIn(content), 0);
  if (images > 0) received.push(`${images} image${images === 1 ? "" : "s"}`);
  return (
    "This is a synthetic answer: Tollgate's built-in demo node made it, no language model did. " +
    `You asked ${quote(question)}. The request arrived with ${received.join(", ")}. ` +
    "Start Tollgate with --node URL, or name your inference nodes in its configuration, to get real answers."
  );
}

function thought({ messages, reasoning_effort }: DemoRequest): string {
  const first = `The question is ${quote(questionOf(messages).slice(0, 80))}. `;
  if (reasoning_effort === "low" || reasoning_effort === "minimal") return first;
  return `${first}I am the demo node and know nothing, so I show how an answer would arrive.`;
}

function thinks({ reasoning_effort, chat_template_kwargs }: DemoRequest): boolean {
  if (reasoning_effort === "none" || reasoning_effort === "off") return false;
  return chat_template_kwargs?.enable_thinking !== false && chat_template_kwargs?.thinking !== false;
}

/** The titles of numbered sources, each with its mark, as a model cites them; otherwise the inside of a fenced result. */
function given(result: string): string {
  const sources = [...result.matchAll(/^\[(\d{1,9})\] (.{1,500})\nhttps?:\S/gm)].map(
    ([, number, title]) => `${title} [${number}]`,
  );
  if (sources.length > 0) return sources.join(", ");
  const fence = /^<<<(\w{1,60})\n/m.exec(result);
  if (fence === null) return quote(result);
  const from = fence.index + fence[0].length;
  const end = result.lastIndexOf(`\n${fence[1]}>>>`);
  return quote(end < from ? result : result.slice(from, end));
}

function toolName(messages: readonly DemoMessage[], result: DemoMessage): string {
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? []);
  return String(calls.find(({ id }) => id === result.tool_call_id)?.function?.name ?? "a tool");
}

/** The answer up to the first stop sequence, which is not part of it. */
export function cutAtStop(text: string, stop: unknown): { text: string; stopReason: string | null } {
  let cut: { text: string; stopReason: string | null } = { text, stopReason: null };
  for (const sequence of Array.isArray(stop) ? stop : [stop]) {
    const at = typeof sequence === "string" && sequence !== "" ? cut.text.indexOf(sequence) : -1;
    if (at >= 0) cut = { text: cut.text.slice(0, at), stopReason: sequence };
  }
  return cut;
}

// ---------------------------------------------------------------- messages

/**
 * What the person wrote, without what an agent adds: its long instructions contain a word of some tool's name, which
 * made Claude Code start subagents without end. The gateway marks instructions in the middle of a conversation, Claude
 * Code marks the others.
 */
function questionOf(messages: readonly DemoMessage[]): string {
  const asked = messages
    .filter(({ role }) => role === "user")
    .map(({ content }) => textOf(content))
    .findLast((text) => !text.startsWith("<system>\n"));
  return withoutReminders(asked ?? "").trim();
}

function withoutReminders(text: string): string {
  const [start, end] = ["<system-reminder>", "</system-reminder>"] as const;
  const [before = "", ...rest] = text.split(start);
  const kept = rest.map((part) => (part.includes(end) ? part.slice(part.indexOf(end) + end.length) : start + part));
  return before + kept.join("");
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: unknown } | null) => (typeof part?.text === "string" ? part.text : "")).join(" ");
}

const imagesIn = (content: unknown): number =>
  Array.isArray(content) ? content.filter((part: { type?: unknown } | null) => part?.type === "image_url").length : 0;

/** An image counts as 256 tokens, whatever its size. */
const messageTokens = ({ content, tool_calls }: DemoMessage): number =>
  tokensPerMessage +
  pieces(textOf(content)).length +
  256 * imagesIn(content) +
  (tool_calls === undefined ? 0 : pieces(JSON.stringify(tool_calls)).length);

export const quote = (text: string): string => `"${text.length > quotedMax ? `${text.slice(0, quotedMax)}...` : text}"`;

/** Cuts a text into tokens: a space and up to six letters each, never through a surrogate pair. */
export const pieces = (text: string): string[] => text.match(piecePattern) ?? [];
