// Parses a request's body as JSON, or says why it cannot be read. Runs on the main thread and in the Worker for large
// bodies.
import { jsonScanMinLength } from "../core/limits.ts";
import { JsonScan } from "../core/outside-json.ts";
import { refuse } from "../core/refusals.ts";
import type { Refusal } from "../core/types.ts";

export type BodyJson = Readonly<{ value: unknown }>;

/** Null for a text with more than `tokensMax` brackets, commas and colons, which would take too long here. */
export function readBodyJson(text: string, tokensMax: number): BodyJson | Refusal | null {
  if (text.length >= jsonScanMinLength) {
    const scan = new JsonScan();
    const excess = scan.push(text);
    if (excess !== null) return refuse("unreadable", { reason: `The request body ${excess}` });
    if (scan.tokens > tokensMax) return null;
  }
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return refuse("unreadable", { reason: `The request body is not valid JSON: ${(error as Error).message}` });
  }
}
