// Conversations as a JSON file: every version of every message, with its images and its cost.
import { now } from "../../clock.ts";
import { isImage, type Picture } from "./conversation.ts";
import { type Entry, readConversation } from "./conversation-store.ts";
import type { Step } from "./tree.ts";

const iso = (ms: number): string => new Date(ms).toISOString();

/** One conversation at a time, so that at most one is in memory twice. */
export async function exportOf(entries: readonly Entry[]): Promise<Blob> {
  const parts: Blob[] = [];
  for (const { owner, id } of entries) {
    const read = await readConversation(owner, id);
    if (read === null) continue; // another tab deleted it meanwhile
    const { title, createdAt, updatedAt, leaf, settings } = read.entry;
    const messages = read.steps.map(messageOf);
    const text = JSON.stringify(
      { id, title, created_at: iso(createdAt), updated_at: iso(updatedAt), last_message: leaf, settings, messages },
      null,
      2,
    );
    parts.push(new Blob([parts.length === 0 ? "" : ",\n", text]));
  }
  const head = `{"format":"tollgate-conversations","version":1,"exported_at":"${iso(now())}","conversations":[\n`;
  return new Blob([head, ...parts, "\n]}\n"], { type: "application/json" });
}

/** `parent` is the previous message; versions of a message have the same parent. */
function messageOf({ id, parent, at, turn }: Step): object {
  const base = { id, parent, created_at: iso(at) };
  if (turn.role === "user") {
    const sent = (some: readonly Picture[]) => some.map(({ name, type, base64 }) => ({ name, type, base64 }));
    const images = sent(turn.pictures.filter(isImage));
    const files = sent(turn.pictures.filter((picture) => !isImage(picture)));
    const along = { ...(images.length > 0 ? { images } : {}), ...(files.length > 0 ? { files } : {}) };
    return { ...base, role: "user", text: turn.text, ...along };
  }
  if (turn.role === "tool") {
    return { ...base, role: "tool", name: turn.name, call_id: turn.callId, output: turn.output };
  }
  return {
    ...base,
    role: "assistant",
    answers: turn.lanes.flatMap((answer) => {
      if (answer === null) return [];
      const { model, state, text, reasoning, calls, sources, usage, error, requestId, costUsd, firstTokenMs, totalMs } =
        answer;
      const times = { first_token_ms: firstTokenMs, total_ms: totalMs };
      return [
        {
          model,
          state,
          text,
          reasoning,
          calls,
          sources,
          usage,
          error,
          request_id: requestId,
          cost_usd: costUsd,
          ...times,
        },
      ];
    }),
  };
}
