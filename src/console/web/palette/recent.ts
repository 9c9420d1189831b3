// Recent choices in the palette, kept in this browser for each account.
import { owner } from "../pages/playground/owner.ts";

const recentMax = 6;

const keyOf = (): string => `tollgate-recent ${owner.value}`;

/** Newest first. Empty if the browser keeps nothing. */
export function recentIds(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf()) ?? "[]");
    return Array.isArray(kept) ? kept.filter((id) => typeof id === "string").slice(0, recentMax) : [];
  } catch {
    return [];
  }
}

export function remember(id: string): void {
  try {
    const ids = [id, ...recentIds().filter((other) => other !== id)].slice(0, recentMax);
    localStorage.setItem(keyOf(), JSON.stringify(ids));
  } catch {
    // Only the list of recent choices is missing then.
  }
}
