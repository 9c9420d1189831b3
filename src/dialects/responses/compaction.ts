// Compaction: one opaque item stands for a conversation. The request becomes one for a summary, which goes out sealed.
import type { Ask, Turn } from "../../core/types.ts";
import type { Item } from "../stored-responses.ts";

/** The last turn of a conversation that must be summarized. */
const compactionTurn: Turn = {
  role: "user",
  content: [
    "Stop here and write a handover note. It will replace this whole conversation: whoever goes on sees only the note.",
    "Do not go on with the task and do not call tools. State, as briefly as is complete:",
    "- what the user asked for, with every requirement, preference and limit, in their words where the words matter",
    "- what was done and found, with exact names, paths, commands, values and errors that are still needed",
    "- decisions that were taken, and why",
    "- what is unfinished, and the next steps",
    "Write the note only.",
  ].join("\n"),
};

/** The request turned into one for a summary of its conversation; its other wishes are dropped. */
export const summarising = <AnyAsk extends Ask>(ask: AnyAsk): AnyAsk => ({
  ...ask,
  turns: [...ask.turns, compactionTurn],
  tools: [],
  toolChoice: "none", // nor the gateway's own
  format: null,
  webSearch: null,
});

/** How a summary re-enters a conversation: as the user's words, because not every template allows a late system turn. */
export const summaryTurn = (summary: string): Turn => ({
  role: "user",
  content: `The conversation so far was replaced by this handover note:\n\n${summary}`,
});

/** The user's messages as items, which POST /v1/responses/compact returns before the summary; `stored`: referenced. */
export const userMessages = (items: readonly Item[], stored?: ReadonlyMap<string, Item>): readonly Item[] =>
  items
    .map((item) => (item.type === "item_reference" ? (stored?.get(item.id as string) ?? item) : item))
    .filter(({ type, role }) => (type ?? "message") === "message" && role === "user")
    .map(({ id, content }) => ({
      id: typeof id === "string" ? id : `msg_${crypto.randomUUID().replaceAll("-", "")}`,
      type: "message",
      role: "user",
      status: "completed",
      content: typeof content === "string" ? [{ type: "input_text", text: content }] : (content ?? []),
    }));
