// Reads a moment from ISO 8601 only: each runtime reads the other forms that `Date.parse` takes differently.
import type { Ms } from "./types.ts";

const shape = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/;

/** Null where it is none. A day means its first moment; without a time zone it is UTC, wherever the server is. */
export function momentOfText(text: string): Ms | null {
  const [, day, time = "00:00", zone = "Z"] = shape.exec(text) ?? [];
  if (day === undefined) return null;
  const moment = Date.parse(`${day}T${time}${zone}`);
  // Some runtimes read the 31st of June as the 1st of July.
  const isDay = new Date(`${day}T00:00Z`).getUTCDate() === Number(day.slice(8));
  return Number.isNaN(moment) || !isDay ? null : moment;
}
