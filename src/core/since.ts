// A time in the past: a moment, or minutes, hours, days or weeks ago.
import { momentOfText } from "./iso-time.ts";
import type { Ms } from "./types.ts";
import { dayMs, hourMs } from "./units.ts";

const units = { m: hourMs / 60, h: hourMs, d: dayMs, w: 7 * dayMs } as const;

/** Null for a text that is none of these, or a time to come. */
export function sinceOf(text: string, now: Ms): Ms | null {
  const [, number, unit] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  const at = number === undefined ? momentOfText(text) : now - Number(number) * units[unit as keyof typeof units];
  return at === null || at >= now ? null : Math.max(0, at);
}
