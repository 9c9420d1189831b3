// Text that a client carries and returns unread: encoded, not encrypted, because the caller knows all of it.

/** Distinguishes ours from foreign values, and later forms from this one; never empty, as clients expect. */
const marker = "tg1.";

export const carried = (text: string): string => marker + Buffer.from(text, "utf8").toString("base64url");

/** The text that `carried` put into the value; empty for a foreign one. */
export const textCarriedIn = (value: unknown): string =>
  typeof value === "string" && value.startsWith(marker)
    ? Buffer.from(value.slice(marker.length), "base64url").toString("utf8")
    : "";
