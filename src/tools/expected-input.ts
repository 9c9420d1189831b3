// Estimates a request's tokens before they are counted, from lengths alone: rather too many than too few. What an
// engine adds is in model-habits.ts. Charges are counted.
import { isPdf, pdfStartWithinBytes } from "../core/file-text.ts";
import { audioTokens, unitsOf } from "../core/voices.ts";
import { expectedTokens, hasInputs, mostTokens } from "../core/inputs.ts";
import type { Ask, Part } from "../core/types.ts";

/** A large picture at engines' usual settings; some take 16,384, most far less. */
const expectedImageTokens = 4_096;

/** At most the model's context for each prompt, a round's maximum charge. `offeredBytes`: the operator's tools. */
export function expectedInput(ask: Ask, offeredBytes = 0): number {
  if (hasInputs(ask)) return expectedTokens(ask);
  if (ask.voice !== undefined) return unitsOf(ask.voice);
  const { answers, model, bodyBytes, prepared, turns } = ask;
  let textBytes = bodyBytes + offeredBytes;
  let tokens = 0;
  const add = (part: Part, places: number): void => {
    if (part.kind === "text") return;
    textBytes -= part.url.length * places;
    tokens += mediaTokens(part, model.contextTokens) * places;
  };
  if (prepared !== undefined) {
    textBytes -= prepared.imageBytes;
    tokens += prepared.images * expectedImageTokens;
    for (const { part, places } of prepared.unready) if (part.kind === "file") add(part, places);
  }
  for (const { content } of turns) {
    if (typeof content === "object" && content !== null) for (const part of content) add(part, 1);
  }
  return Math.min(Math.max(0, textBytes) + tokens, model.contextTokens * (answers?.prompts ?? 1));
}

/** The most that a request can have read, by any count. */
export const mostInput = (ask: Ask): number => (hasInputs(ask) ? mostTokens(ask) : ask.model.contextTokens);

/** A file's text is unknown until it is read. It seldom has more tokens than bytes, unless it is a compressed PDF. */
function mediaTokens({ kind, url }: Exclude<Part, { kind: "text" }>, contextTokens: number): number {
  if (kind === "image") return expectedImageTokens;
  if (kind === "audio") return audioTokens(url);
  return url.startsWith("data:") && !mayBePdf(url) ? url.length : contextTokens;
}

/** Base64 has 4 characters for 3 bytes. */
const pdfStartWithinLength = Math.ceil(pdfStartWithinBytes / 3) * 4;

/** Looks where readers look, at the beginning. A file without the signature within this many characters may still be one. */
function mayBePdf(url: string): boolean {
  const from = url.indexOf(",") + 1;
  const begin = Buffer.from(url.slice(from, from + pdfStartWithinLength), "base64");
  const isSeen = begin.length >= pdfStartWithinBytes || url.length <= from + pdfStartWithinLength;
  return !isSeen || isPdf(begin);
}
