// What a request is expected to read, in tokens, before anybody has counted it: rather too much than too little, and from
// lengths alone, since it is asked for every request. Not what is charged; that is counted.
import { expectedBytesPerToken, expectedImageTokens } from "../core/limits.ts";
import type { Ask, Part } from "../core/types.ts";

/** At most the model's context, which is the most that a round is charged. */
export function expectedInput({ model, bodyBytes, prepared, turns }: Ask): number {
  let textBytes = bodyBytes;
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
  tokens += Math.ceil(Math.max(0, textBytes) / expectedBytesPerToken);
  return Math.min(tokens, model.contextTokens);
}

/** A file's text is not known before it was read: one that comes with the request has seldom more tokens than bytes. */
function mediaTokens({ kind, url }: Exclude<Part, { kind: "text" }>, contextTokens: number): number {
  if (kind === "image") return expectedImageTokens;
  return url.startsWith("data:") ? url.length : contextTokens;
}
