// Reads a moment that somebody wrote, as ISO 8601 alone: what else `Date.parse` takes is read differently by each runtime.
import type { Ms } from "./types.ts";

const shape = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/;

/** Null for what is none. A day is its first moment; without a time zone it is UTC, wherever the server stands. */
export function momentOfText(text: string): Ms | null {
  const [, day, time = "00:00", zone = "Z"] = shape.exec(text) ?? [];
  if (day === undefined) return null;
  const moment = Date.parse(`${day}T${time}${zone}`);
  // Some runtimes take the 31st of June for the 1st of July.
  const isDay = new Date(`${day}T00:00Z`).getUTCDate() === Number(day.slice(8));
  return Number.isNaN(moment) || !isDay ? null : moment;
}
