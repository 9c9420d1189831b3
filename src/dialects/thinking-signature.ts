// The signature of a thinking block. Clients send thinking back with its signature, which the dialect's own servers
// check. Here nothing is checked: a history may come from another server. But a client that wants thinking omitted gets
// and returns the signature alone, so it carries the thinking: else a model would forget between two tool calls why it
// made the first. It is encoded, not encrypted: it is the caller's own answer, which other dialects show as it is.

/** Tells ours from a foreign signature, and a later form from this one; never empty, as clients expect. */
const marker = "tg1.";

export const signatureOf = (omittedThinking: string): string =>
  marker + Buffer.from(omittedThinking, "utf8").toString("base64url");

/** The thinking that a signature carries; empty for a signature of shown thinking and for a foreign one. */
export const thinkingIn = (signature: unknown): string =>
  typeof signature === "string" && signature.startsWith(marker)
    ? Buffer.from(signature.slice(marker.length), "base64url").toString("utf8")
    : "";
