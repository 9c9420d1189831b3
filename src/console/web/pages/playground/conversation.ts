// What a conversation of the playground is made of, independent of a dialect: settings, turns and answers.
import { signal } from "@preact/signals";
import { isRecord } from "../../../../core/is-record.ts";

export type DialectName = "chat-completions" | "messages" | "responses";

export type Effort = "" | "off" | "low" | "medium" | "high";

/** Empty texts and nulls leave a parameter to the server. */
export type Settings = Readonly<{
  model: string;
  /** Is asked the same beside it; empty where one model answers alone. */
  second: string;
  dialect: DialectName;
  system: string;
  outputTokensMax: number | null;
  temperature: number | null;
  topP: number | null;
  effort: Effort;
  /** One stop sequence a line. */
  stop: string;
  webSearch: boolean;
  /** JSON: a list of {name, description, parameters}. */
  tools: string;
  /** JSON: a schema that the answer must fit. */
  schema: string;
}>;

/** A picture, a PDF or a text file in UTF-8, by its type. */
export type Picture = Readonly<{ name: string; type: string; base64: string; file: Blob }>;
export const pdfType = "application/pdf";
export const textType = "text/plain";
export const isImage = ({ type }: Picture): boolean => type.startsWith("image/");
export type Call = { id: string; name: string; arguments: string };
/** Of a tool that the server ran by itself, on an MCP server; `result` is null until it is there. */
export type ServerCall = Call & { server: string; result: string | null; failed: boolean };
type Source = Readonly<{ url: string; title: string }>;
/** Of the messages dialect, which wants its thinking back with the signature when tools were called. */
type Thinking = { text: string; signature: string };
type Usage = Readonly<{ input: number; output: number; cached: number; reasoning: number }>;

export type UserTurn = Readonly<{ role: "user"; text: string; pictures: readonly Picture[] }>;
/** `lane`: which of two models side by side called it. */
export type ToolTurn = Readonly<{ role: "tool"; callId: string; name: string; output: string; lane: number }>;

/** Written to while the stream comes in; `revision` says that it changed. */
export type Answer = {
  readonly role: "assistant";
  readonly model: string;
  readonly startedAt: number;
  state: "streaming" | "done" | "stopped" | "failed";
  reasoning: string;
  text: string;
  thinking: Thinking[];
  calls: Call[];
  /** What was searched for on the web. */
  searches: string[];
  serverCalls: ServerCall[];
  sources: Source[];
  usage: Usage | null;
  finish: string | null;
  error: string | null;
  requestId: string | null;
  /** What it was charged, as the usage page has it; null until that is known, and where nothing was charged. */
  costUsd: number | null;
  firstTokenMs: number | null;
  totalMs: number | null;
  /** True once the stream said that it is at its end: one that just stops is broken. */
  complete: boolean;
};

export type Turn = UserTurn | ToolTurn | Answer;

/** Parsed settings: `tools` and `schema` are JSON that was checked. */
export type NeutralTool = Readonly<{ name: string; description: string; parameters: Record<string, unknown> }>;

export const defaultSettings: Settings = {
  model: "",
  second: "",
  dialect: "chat-completions",
  system: "",
  outputTokensMax: null,
  temperature: null,
  topP: null,
  effort: "",
  stop: "",
  webSearch: false,
  tools: "",
  schema: "",
};

export const settings = signal<Settings>(defaultSettings);
/** Counts the changes of the answers that are being written. */
export const revision = signal(0);

export const change = (part: Partial<Settings>): void => {
  settings.value = { ...settings.value, ...part };
};

export const newAnswer = (model: string, startedAt: number): Answer => ({
  role: "assistant",
  model,
  startedAt,
  state: "streaming",
  reasoning: "",
  text: "",
  thinking: [],
  calls: [],
  searches: [],
  serverCalls: [],
  sources: [],
  usage: null,
  finish: null,
  error: null,
  requestId: null,
  costUsd: null,
  firstTokenMs: null,
  totalMs: null,
  complete: false,
});

/** The tools of the editor, or a sentence that says what is wrong with them. */
export function readTools(text: string): readonly NeutralTool[] | string {
  if (text.trim() === "") return [];
  const value = parsed(text);
  if (value instanceof Error) return `Not JSON: ${value.message}`;
  if (!Array.isArray(value)) return "Expected a list of tools: [{ … }]";
  const tools: NeutralTool[] = [];
  for (const [index, tool] of (value as readonly unknown[]).entries()) {
    if (!isRecord(tool) || typeof tool["name"] !== "string") return `Tool ${index + 1} has no name`;
    const { name, description, parameters } = tool;
    if (!isRecord(parameters)) return `Tool ${index + 1} has no parameters (a JSON schema)`;
    tools.push({ name, description: typeof description === "string" ? description : "", parameters });
  }
  return tools;
}

/** The schema of the editor, null if there is none, or a sentence that says what is wrong with it. */
export function readSchema(text: string): Record<string, unknown> | null | string {
  if (text.trim() === "") return null;
  const value = parsed(text);
  if (value instanceof Error) return `Not JSON: ${value.message}`;
  return isRecord(value) ? value : "A JSON schema is an object: { … }";
}

export const stopSequences = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return error;
  }
}
