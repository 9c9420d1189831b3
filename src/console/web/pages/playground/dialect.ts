// What the playground needs from a dialect: it turns a conversation into a body, and events into the answer.
import { isRecord } from "../../../../core/is-record.ts";
import { count } from "../../format.ts";
import { t } from "../../texts.ts";
import {
  type Answer,
  type Picture,
  readSchema,
  readTools,
  type Settings,
  stopSequences,
  type Turn,
} from "./conversation.ts";

export interface PlaygroundDialect {
  readonly endpoint: string;
  body(settings: Settings, turns: readonly Turn[]): Record<string, unknown>;
  /** Adds the events of one stream to the answer, and ignores unknown ones. */
  reader(answer: Answer): (event: WireEvent) => void;
}

/** The JSON of one `data:` line, in the dialect's shape; fields are checked before use. */
export type WireEvent = Readonly<Record<string, unknown>>;

export type Json = Readonly<Record<string, unknown>>;

export const record = (value: unknown): Json => (isRecord(value) ? value : {});
export const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(record) : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const whole = (value: unknown): number => (typeof value === "number" ? value : 0);

/** The tools and schema from the editors; the page does not send while one of them is invalid. */
export function editedOf(settings: Settings): {
  tools: Exclude<ReturnType<typeof readTools>, string>;
  schema: Exclude<ReturnType<typeof readSchema>, string>;
  stop: readonly string[];
} {
  const tools = readTools(settings.tools);
  const schema = readSchema(settings.schema);
  return {
    tools: typeof tools === "string" ? [] : tools,
    schema: typeof schema === "string" ? null : schema,
    stop: stopSequences(settings.stop),
  };
}

/** Drops undefined fields, so that the shown request has only what was set. */
export const compactBody = (body: Json): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));

export function addSource(answer: Answer, citation: Json): void {
  const url = text(citation["url"]);
  if (url === "" || answer.sources.some((source) => source.url === url)) return;
  answer.sources.push({ url, title: text(citation["title"]) || url });
}

/** The texts of its `content`, one per line. */
export const textsOf = (holder: Json): string =>
  list(holder["content"])
    .map((part) => text(part["text"]))
    .join("\n");

/** Adds the result of a call that the server ran. */
export function endCall(answer: Answer, id: string, result: string, failed: boolean): void {
  const call = answer.serverCalls.find((each) => each.id === id);
  if (call !== undefined) Object.assign(call, { result, failed });
}

export const dataUrl = ({ type, base64 }: Picture): string => `data:${type};base64,${base64}`;

export function fail(answer: Answer, error: Json): void {
  answer.state = "failed";
  answer.error = quotaSentence(error) ?? (text(error["message"]) || t("play.failed"));
}

/** A sentence for a budget that exceeds the balance, with both numbers; null for any other error. */
function quotaSentence({ spendable, requested, max_tokens: fitting }: Json): string | null {
  if (typeof spendable !== "number" || typeof requested !== "number") return null;
  return t("play.quota", {
    requested: count(requested),
    left: count(spendable),
    help: spendable <= 0 ? "credit" : typeof fitting === "number" ? "budget" : "smaller",
    budget: typeof fitting === "number" ? count(fitting) : "",
  });
}
