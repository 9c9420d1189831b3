// Text that a client carries in a field that it must return unread. It is encoded, not encrypted: it holds nothing that
// the caller has not seen or asked for.

/** Tells ours from a foreign value, and a later form from this one; never empty, as clients expect. */
const marker = "tg1.";

export const carried = (text: string): string => marker + Buffer.from(text, "utf8").toString("base64url");

/** The text that `carried` put into the value; empty for a foreign one. */
export const textCarriedIn = (value: unknown): string =>
  typeof value === "string" && value.startsWith(marker)
    ? Buffer.from(value.slice(marker.length), "base64url").toString("utf8")
    : "";
