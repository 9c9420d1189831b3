// Reads when a link expires: a time, or hours or days from now.
import { momentOfText } from "../core/iso-time.ts";
import { dayMs, hourMs } from "../core/units.ts";
import type { Ms } from "../core/types.ts";
import { type Flags, textFlag, UsageError } from "./command.ts";

/** Of `--expires`; throws UsageError. */
export function expiryOf(flags: Flags, now: Ms, usualMs: Ms): Ms {
  const text = textFlag(flags, "expires");
  if (text === undefined) return now + usualMs;
  const [, number, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  const at = number === undefined ? momentOfText(text) : now + Number(number) * (unit === "h" ? hourMs : dayMs);
  if (at !== null && at > now) return at;
  throw new UsageError(
    `--expires must be a time to come such as 2026-12-31T12:00:00Z, or hours or days such as 48h or 7d, is ${JSON.stringify(text)}`,
  );
}
