// Finds the parts of a conversation that must be fetched or read first, and replaces them with the result.
import type { Ask, MediaPart, Part, Turn, UnreadyPart } from "../../core/types.ts";

const isUnready = (part: Part): part is MediaPart =>
  part.kind === "file" || (part.kind === "image" && !part.url.startsWith("data:"));

/** Identifies a part: equal parts are fetched once. */
const keyOf = (part: MediaPart): string => `${part.kind} ${part.kind === "file" ? part.name : ""} ${part.url}`;

/** True for a request with a part that `Media.ready` must replace. */
export const needsMedia = ({ prepared, turns }: Ask): boolean =>
  (prepared?.unready.length ?? 0) > 0 ||
  turns.some(({ content }) => typeof content === "object" && content !== null && content.some(isUnready));

/** The parts that are not ready, by their keys, in order: those of `before`, then those of `turns`. */
export function unreadyParts(turns: readonly Turn[], before: readonly UnreadyPart[] = []): Map<string, UnreadyPart> {
  const unready = new Map(before.map((one) => [keyOf(one.part), one]));
  for (const { content } of turns) {
    if (typeof content !== "object" || content === null) continue;
    for (const part of content) {
      if (!isUnready(part)) continue;
      const key = keyOf(part);
      unready.set(key, { part, places: (unready.get(key)?.places ?? 0) + 1 });
    }
  }
  return unready;
}

/** The Ask with each unready part of `turns` replaced by what was found for it, or left out. */
export function withParts<AnyAsk extends Ask>(ask: AnyAsk, found: ReadonlyMap<string, Part>): AnyAsk {
  let bodyBytes = ask.bodyBytes;
  const turns = ask.turns.map((turn): Turn => {
    if ((turn.role !== "user" && turn.role !== "tool") || typeof turn.content === "string") return turn;
    const content = turn.content.flatMap((part) => {
      if (!isUnready(part)) return [part];
      const ready = found.get(keyOf(part));
      bodyBytes += (ready === undefined ? 0 : bytesOf(ready)) - part.url.length;
      if (ready === undefined) return [];
      // One address may appear twice with different detail levels.
      return [ready.kind === "image" && part.kind === "image" ? { ...ready, detail: part.detail } : ready];
    });
    return { ...turn, content };
  });
  return { ...ask, turns, bodyBytes };
}

/** What a part adds to a body's size. */
const bytesOf = (part: Part): number => (part.kind === "text" ? Buffer.byteLength(part.text) : part.url.length);

/** The size of a part in one of its places, in UTF-16 units. */
export const sizeOf = (part: Part): number => (part.kind === "text" ? part.text.length : part.url.length);
