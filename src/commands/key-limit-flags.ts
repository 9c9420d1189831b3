// The flags by which `keys create` and `keys limits` say what a key may do.
import type { NewLimits } from "../account/account-keys.ts";
import { type Flags, type FlagTable, readWhole, textFlag, UsageError } from "./command.ts";

export const keyLimitFlags = {
  "limit-day": { type: "string" },
  "limit-month": { type: "string" },
  expires: { type: "string" },
  models: { type: "string" },
  addresses: { type: "string" },
  "limit-end-user-day": { type: "string" },
  "forwards-users": { type: "boolean" },
} as const satisfies FlagTable;

/** What was given. `lifted` is the word for a limit that goes; none: there is no such word. Throws UsageError. */
export function keyLimitsOf(flags: Flags, lifted: string | null = null): NewLimits {
  const read = <Value>(flag: keyof typeof keyLimitFlags, valueOf: (text: string) => Value) => {
    const text = textFlag(flags, flag);
    if (text === "") throw new UsageError(`--${flag} must not be empty`);
    return text === undefined ? undefined : text === lifted ? null : valueOf(text);
  };
  const tokens = (flag: "limit-day" | "limit-month" | "limit-end-user-day") =>
    read(flag, (text) => readWhole(`--${flag}`, text, 1));
  const list = (flag: "models" | "addresses") => read(flag, (text) => text.split(",").map((part) => part.trim()));
  const [forwards, forwardsNot] = [flags["forwards-users"], flags["no-forwards-users"]].map((flag) => flag === true);
  if (forwards && forwardsNot) throw new UsageError("--forwards-users and --no-forwards-users contradict each other");
  const asked = {
    limit_day: tokens("limit-day"),
    limit_month: tokens("limit-month"),
    expires_at: read("expires", (text) => text),
    models: list("models"),
    addresses: list("addresses"),
    forwards_users: forwards ? true : forwardsNot ? false : undefined,
    limit_end_user_day: tokens("limit-end-user-day"),
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined)) as NewLimits;
}
