// Conversations as files: JSON with every version of every message, its files and its cost, and Markdown of what is shown.
import { now } from "../../clock.ts";
import { bytes, count, dollars, fullMoment } from "../../format.ts";
import { t } from "../../texts.ts";
import { type Answer, isImage, type Picture } from "./conversation.ts";
import type { Entry, Read } from "./conversation-store.ts";
import { readConversation } from "./places.ts";
import { pathTo, type Step } from "./tree.ts";

export const exportFormat = "tollgate-conversations";
const iso = (ms: number): string => new Date(ms).toISOString();

/** One conversation at a time, so that at most one is in memory twice. */
export async function jsonOf(entries: readonly Entry[]): Promise<Blob> {
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
  const head = `{"format":"${exportFormat}","version":1,"exported_at":"${iso(now())}","conversations":[\n`;
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
    const { name, callId: call_id, output, lane } = turn;
    return { ...base, role: "tool", name, call_id, output, lane };
  }
  const answers = turn.lanes.flatMap((answer) => {
    if (answer === null) return [];
    const { model, state, text, reasoning, calls, sources, usage, error } = answer;
    const { requestId: request_id, costUsd: cost_usd, firstTokenMs: first_token_ms, totalMs: total_ms } = answer;
    const told = { model, state, text, reasoning, calls, sources, usage, error };
    return [{ ...told, request_id, cost_usd, first_token_ms, total_ms }];
  });
  return { ...base, role: "assistant", answers };
}

/** Answers are Markdown already, with their code, tables and formulas. */
export function markdownOf({ entry, steps }: Read): string {
  const conversation = { steps: new Map(steps.map((step) => [step.id, step])) };
  const parts = pathTo(conversation, entry.leaf).flatMap(({ turn }): readonly string[] => {
    if (turn.role === "user") {
      const files = turn.pictures.map(({ name, file }) => `- \`${name.replaceAll("`", "'")}\` (${bytes(file.size)})`);
      return [`## ${t("play.you")}`, turn.text, files.join("\n")];
    }
    if (turn.role === "tool") return [`**${t("play.result_of", { name: turn.name })}**`, fenced(turn.output)];
    return turn.lanes.flatMap((answer) => (answer === null ? [] : answerParts(answer)));
  });
  const title = entry.title.replaceAll(/\s+/g, " ");
  return `${[`# ${title}`, `_${fullMoment(entry.updatedAt)}_`, ...parts].filter((part) => part !== "").join("\n\n")}\n`;
}

function answerParts(answer: Answer): readonly string[] {
  const { model, reasoning, text, calls, serverCalls, sources, usage, costUsd, error } = answer;
  const thought = reasoning.replaceAll(/<(?=\/?(?:details|summary))/gi, "&lt;");
  const called = [...serverCalls, ...calls].flatMap((call) => [`**${call.name}**`, fenced(call.arguments, "json")]);
  const cited = sources.map(
    ({ url, title }, index) => `${index + 1}. [${title.replaceAll(/[[\]\\]/g, "\\$&")}](<${url}>)`,
  );
  const cost = [
    ...(usage === null ? [] : [t("play.in_out", { input: count(usage.input), output: count(usage.output) })]),
    ...(costUsd === null ? [] : [dollars(costUsd)]),
  ];
  return [
    `## ${model}`,
    reasoning === "" ? "" : `<details>\n<summary>${t("play.reasoning")}</summary>\n\n${thought}\n\n</details>`,
    ...called,
    text,
    error === null ? "" : `> ${error}`,
    cited.length === 0 ? "" : `### ${t("play.sources")}\n\n${cited.join("\n")}`,
    cost.length === 0 ? "" : `_${cost.join(" · ")}_`,
  ];
}

/** A fence that is longer than any in the text. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
