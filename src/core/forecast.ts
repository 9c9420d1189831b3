// What a request that has to wait can expect, as an estimate for people and programs.
import type { Ms } from "./types.ts";

/**
 * `position`: 0 where the request begins at once, 1 where it is next in line. `waitMs`: until a node takes it.
 * `firstTokenMs`: until its first token, including that wait.
 */
export type Forecast = Readonly<{ position: number; waitMs: Ms; firstTokenMs: Ms }>;

/** The same of any line; `firstTokenMs` is null where nothing is known of how fast it moves. */
export type Outlook = Readonly<{ position: number; firstTokenMs: Ms | null }>;

/** Of a line that says only its places: by how far it has come since the first look. */
export function outlookOf(positionNow: () => number | null, now: () => Ms): () => Outlook | null {
  let first: Readonly<{ position: number; at: Ms }> | null = null;
  return () => {
    const position = positionNow();
    if (position === null) return null;
    first ??= { position, at: now() };
    const came = first.position - position;
    return { position, firstTokenMs: came <= 0 ? null : ((now() - first.at) / came) * position };
  };
}
