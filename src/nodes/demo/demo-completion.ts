// Computes the demo node's answer to a plain completion from the request alone: a text that says it is synthetic.
import { cutAtStop, type DemoAnswer, type DemoRequest, type DemoToken, pieces, quote } from "./demo-answer.ts";

export type PlainDemoRequest = Pick<DemoRequest, "model" | "stream" | "stream_options" | "max_tokens" | "stop"> &
  Readonly<{ prompt?: unknown; suffix?: unknown }>;

const shownMax = 80;
/** OpenAI's default, which engines share. */
const tokensDefault = 16;

export function plainAnswerTo({ prompt, suffix, max_tokens, stop }: PlainDemoRequest): DemoAnswer {
  const read = typeof prompt === "string" ? prompt : "";
  const promptTokens = Array.isArray(prompt) ? prompt.length : pieces(read).length;
  const follows = typeof suffix === "string" ? ` and before ${quote(suffix.slice(0, shownMax))}` : "";
  const where = typeof prompt === "string" ? `behind ${quote(read.slice(-shownMax))}` : `behind ${promptTokens} tokens`;
  const { text, stopReason } = cutAtStop(` (synthetic: what Tollgate's demo node writes ${where}${follows})`, stop);
  const written = pieces(text);
  const budget = typeof max_tokens === "number" ? max_tokens : tokensDefault;
  const cut = written.length > budget;
  return {
    tokens: written.slice(0, budget).map((piece): DemoToken => ({ kind: "content", text: piece })),
    finish: cut ? "length" : "stop",
    stopReason: cut ? null : stopReason,
    promptTokens: promptTokens + (typeof suffix === "string" ? pieces(suffix).length : 0),
    cachedTokens: 0,
  };
}
