// When a link expires: a time, or hours or days from now.
import { systemClock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import { momentOfText } from "../core/iso-time.ts";
import { dayMs, hourMs } from "../core/units.ts";
import type { SchemaError } from "../core/schema-errors.ts";
import type { Ms } from "../core/types.ts";

/** Null for a text that is none of these, or a time that has passed. */
function momentOf(text: string, now: Ms): Ms | null {
  const [, number, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  const at = number === undefined ? momentOfText(text) : now + Number(number) * (unit === "h" ? hourMs : dayMs);
  return at !== null && at > now ? at : null;
}

const expected = "must be a time to come such as 2026-12-31T12:00:00Z, or hours or days such as 48h or 7d";

export const expiryProblem = ({ expires }: Readonly<{ expires?: string }>): SchemaError | null =>
  expires === undefined || momentOf(expires, systemClock.wall()) !== null
    ? null
    : { path: ["expires"], problem: `${expected}, is ${JSON.stringify(expires)}` };

/** Absent: `usualMs` from now. Throws CommandError where the time has passed meanwhile. */
export function expiryOf(text: string | undefined, now: Ms, usualMs: Ms): Ms {
  const at = text === undefined ? now + usualMs : momentOf(text, now);
  if (at === null) throw new CommandError(`expires ${expected}`);
  return at;
}
