// The parts of a conversation, independent of the dialect: settings, turns and answers.
import { signal } from "@preact/signals";
import { t } from "../../texts.ts";
import { isRecord } from "../../../../core/is-record.ts";

export type DialectName = "chat-completions" | "messages" | "responses";

export type Effort = "" | "off" | "low" | "medium" | "high";

/** Empty strings and nulls leave a parameter to the server. */
export type Settings = Readonly<{
  model: string;
  /** The other models of a comparison, one a line; empty: one model answers alone. */
  others: string;
  dialect: DialectName;
  system: string;
  outputTokensMax: number | null;
  temperature: number | null;
  topP: number | null;
  effort: Effort;
  /** One stop sequence per line. */
  stop: string;
  webSearch: boolean;
  /** JSON: a list of {name, description, parameters}. */
  tools: string;
  /** JSON: a schema that the answer must fit. */
  schema: string;
}>;

/** A picture, a PDF, a UTF-8 text file or a recording, by its type. */
export type Picture = Readonly<{ name: string; type: string; base64: string; file: Blob }>;
export const pdfType = "application/pdf";
export const textType = "text/plain";
export const isAudio = ({ type }: Picture): boolean => type.startsWith("audio/");
export const isImage = ({ type }: Picture): boolean => type.startsWith("image/");
/** Of what is no base64, nothing. */
export function bytesOfBase64(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
export const textOfBase64 = (base64: string): string => new TextDecoder().decode(bytesOfBase64(base64));
export type Call = { id: string; name: string; arguments: string };
/** A call that the server itself ran on an MCP server; `result` is null until it arrives. */
export type ServerCall = Call & { server: string; result: string | null; failed: boolean };
type Source = Readonly<{ url: string; title: string }>;
/** The messages dialect expects its thinking and signature back after tool calls. */
type Thinking = { text: string; signature: string };
type Usage = Readonly<{ input: number; output: number; cached: number; reasoning: number }>;

export type UserTurn = Readonly<{ role: "user"; text: string; pictures: readonly Picture[] }>;
/** `lane`: which of the models side by side made the call. */
export type ToolTurn = Readonly<{ role: "tool"; callId: string; name: string; output: string; lane: number }>;

/** Changed in place while the stream comes in; `revision` counts the changes. */
export type Answer = {
  readonly role: "assistant";
  readonly model: string;
  readonly startedAt: number;
  state: "streaming" | "done" | "stopped" | "failed";
  reasoning: string;
  text: string;
  thinking: Thinking[];
  calls: Call[];
  searches: string[];
  serverCalls: ServerCall[];
  sources: Source[];
  usage: Usage | null;
  finish: string | null;
  error: string | null;
  requestId: string | null;
  /** The charge, as on the usage page; null: not known yet, or nothing was charged. */
  costUsd: number | null;
  firstTokenMs: number | null;
  /** Its place in line, in words, as the server said it last. */
  place?: string;
  totalMs: number | null;
  /** True once the stream has announced its end; a stream that just stops is broken. */
  complete: boolean;
};

export type Turn = UserTurn | ToolTurn | Answer;

/** Parsed settings: `tools` and `schema` are JSON that was checked. */
type NeutralTool = Readonly<{ name: string; description: string; parameters: Record<string, unknown> }>;

export const defaultSettings: Settings = {
  model: "",
  others: "",
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

/** What was kept, by an older console, too. */
export function restoredSettings(kept: Partial<Settings> & Readonly<{ second?: string }>): Settings {
  const { second = "", others = second, ...known } = kept;
  return { ...defaultSettings, ...known, others };
}

export const modelsOf = ({ model, others }: Settings): readonly string[] => [
  model,
  ...others.split("\n").filter((id) => id !== ""),
];

export const settings = signal<Settings>(defaultSettings);
/** Counts changes of answers that are being written. */
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

/** The tools from the editor, or a sentence about what is wrong with them. */
export function readTools(text: string): readonly NeutralTool[] | string {
  if (text.trim() === "") return [];
  const value = parsed(text);
  if (value instanceof Error) return t("play.not_json", { why: value.message });
  if (!Array.isArray(value)) return t("play.tools_list");
  const tools: NeutralTool[] = [];
  for (const [index, tool] of (value as readonly unknown[]).entries()) {
    if (!isRecord(tool) || typeof tool["name"] !== "string") return t("play.tool_no_name", { number: index + 1 });
    const { name, description, parameters } = tool;
    if (!isRecord(parameters)) return t("play.tool_no_parameters", { number: index + 1 });
    tools.push({ name, description: typeof description === "string" ? description : "", parameters });
  }
  return tools;
}

/** The schema from the editor, null if there is none, or a sentence about what is wrong with it. */
export function readSchema(text: string): Record<string, unknown> | null | string {
  if (text.trim() === "") return null;
  const value = parsed(text);
  if (value instanceof Error) return t("play.not_json", { why: value.message });
  return isRecord(value) ? value : t("play.schema_object");
}

export const stopSequences = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return error;
  }
}
