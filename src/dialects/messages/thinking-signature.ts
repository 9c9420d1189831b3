// The signature of a thinking block. Clients return thinking with its signature, which the dialect's own servers check.
// Here nothing is checked, because a history may come from another server. A client that wants thinking omitted gets
// and returns only the signature, so the signature carries the thinking: otherwise a model would forget between two
// tool calls why it made the first.
import { carried, textCarriedIn } from "../request/carried-text.ts";

export const signatureOf = (omittedThinking: string): string => carried(omittedThinking);

/** The thinking that a signature carries; empty for a signature of shown thinking and for a foreign one. */
export const thinkingIn = (signature: unknown): string => textCarriedIn(signature);
