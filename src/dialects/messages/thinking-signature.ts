// The signature of a thinking block. Clients send thinking back with its signature, which the dialect's own servers
// check. Here nothing is checked: a history may come from another server. But a client that wants thinking omitted gets
// and returns the signature alone, so it carries the thinking: else a model would forget between two tool calls why it
// made the first.
import { carried, textCarriedIn } from "../request/carried-text.ts";

export const signatureOf = (omittedThinking: string): string => carried(omittedThinking);

/** The thinking that a signature carries; empty for a signature of shown thinking and for a foreign one. */
export const thinkingIn = (signature: unknown): string => textCarriedIn(signature);
