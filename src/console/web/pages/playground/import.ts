// Conversations from a file that export.ts wrote, perhaps by hand since. Each becomes a new one.
import { isRecord } from "../../../../core/is-record.ts";
import { now } from "../../clock.ts";
import { t } from "../../texts.ts";
import { type Answer, defaultSettings, newAnswer, restoredSettings, type Settings } from "./conversation.ts";
import { bytesOf, type Read } from "./conversation-store.ts";
import { type Json, list, record, text, whole } from "./dialect.ts";
import { exportFormat } from "./export.ts";
import { pictureOf } from "./pictures.tsx";
import { dialects } from "./stream.ts";
import { type Conversation, newId, type Step } from "./tree.ts";

const fileMaxBytes = 256 * 1024 * 1024;

const numberOf = (value: unknown): number | null => (typeof value === "number" ? value : null);
const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);
const timeOf = (value: unknown): number => Date.parse(text(value)) || now();

/** Rejects with a sentence where the file is none. */
export async function conversationsIn(file: File, owner: string): Promise<readonly Read[]> {
  const json = file.size > fileMaxBytes ? null : parsed(await file.text());
  if (!isRecord(json) || json["format"] !== exportFormat) throw new Error(t("play.import_failed", { name: file.name }));
  return list(json["conversations"]).map((given) => conversationOf(given, owner));
}

function parsed(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}

function conversationOf(given: Json, owner: string): Read {
  const messages = list(given["messages"]);
  const ids = new Map(messages.map((message) => [text(message["id"]), newId()]));
  const steps = messages.flatMap((message) => {
    const turn = turnOf(message);
    const [id, parent = null] = [ids.get(text(message["id"])), ids.get(text(message["parent"]))];
    return turn === null || id === undefined ? [] : [{ id, parent, at: timeOf(message["created_at"]), turn }];
  });
  const settings = restoredSettings(settingsOf(record(given["settings"])));
  const [createdAt, updatedAt] = [timeOf(given["created_at"]), timeOf(given["updated_at"])];
  const leaf = ids.get(text(given["last_message"])) ?? steps.at(-1)?.id ?? null;
  const title = text(given["title"]).slice(0, 200) || t("play.conversation");
  const conversation: Conversation = {
    id: newId(),
    title,
    createdAt,
    leaf,
    lane: 0,
    steps: new Map(steps.map((step) => [step.id, step])),
  };
  const { id, lane } = conversation;
  const entry = {
    owner,
    id,
    title,
    pinned: false,
    createdAt,
    updatedAt,
    leaf,
    lane,
    settings,
    bytes: bytesOf(conversation),
  };
  return { entry, steps };
}

/** Those that have the type of their defaults; where that is null, a number. */
function settingsOf(given: Json): Settings {
  const fitting = Object.entries(defaultSettings).map(([name, usual]) => {
    const value = given[name];
    return [name, typeof value === (usual === null ? "number" : typeof usual) ? value : usual];
  });
  const settings = Object.fromEntries(fitting) as Settings;
  return Object.hasOwn(dialects, settings.dialect) ? settings : { ...settings, dialect: defaultSettings.dialect };
}

function turnOf(message: Json): Step["turn"] | null {
  switch (message["role"]) {
    case "user": {
      const files = [...list(message["images"]), ...list(message["files"])];
      const pictures = files.map(({ name, type, base64 }) => pictureOf(text(name), text(type), text(base64)));
      return { role: "user", text: text(message["text"]), pictures };
    }
    case "tool": {
      const { name, call_id, output, lane } = message;
      return { role: "tool", callId: text(call_id), name: text(name), output: text(output), lane: whole(lane) };
    }
    case "assistant":
      return {
        role: "replies",
        lanes: list(message["answers"]).map((answer) => answerOf(answer, timeOf(message["created_at"]))),
      };
    default:
      return null;
  }
}

function answerOf(given: Json, at: number): Answer {
  const { input, output, cached, reasoning } = record(given["usage"]);
  const call = ({ id, name, arguments: json }: Json) => ({ id: text(id), name: text(name), arguments: text(json) });
  return {
    ...newAnswer(text(given["model"]), at),
    state: given["state"] === "done" || given["state"] === "failed" ? given["state"] : "stopped",
    text: text(given["text"]),
    reasoning: text(given["reasoning"]),
    calls: list(given["calls"]).map(call),
    sources: list(given["sources"]).map(({ url, title }) => ({ url: text(url), title: text(title) })),
    usage:
      input === undefined
        ? null
        : { input: whole(input), output: whole(output), cached: whole(cached), reasoning: whole(reasoning) },
    error: textOf(given["error"]),
    requestId: textOf(given["request_id"]),
    costUsd: numberOf(given["cost_usd"]),
    firstTokenMs: numberOf(given["first_token_ms"]),
    totalMs: numberOf(given["total_ms"]),
    complete: true,
  };
}
