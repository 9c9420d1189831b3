// Whether a request contains anything for its model to see beside text.
import type { Ask } from "./types.ts";

export function hasImages({ turns, prepared }: Pick<Ask, "turns" | "prepared">): boolean {
  if (prepared !== undefined && prepared.images > 0) return true;
  return turns.some(({ content }) => Array.isArray(content) && content.some(({ kind }) => kind === "image"));
}
