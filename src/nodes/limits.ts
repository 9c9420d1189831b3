// Limits that several files here use; the unit comes last in the name.
import { assert } from "../core/assert.ts";

/** A connection that was alive within the last second is not half open (fault 23 of test/fixtures/node-faults.ts). */
export const nodeIdleSocketMs = 1_000;
/** What is read of an error body for its meaning, in UTF-16 units. */
export const nodeErrorTextMaxLength = 8 * 1024;
export const nodeProbeIntervalMs = 5_000;
export const nodeProbeTimeoutMs = 3_000;
/** For the one token that an operator's command asks for; its model may have to be loaded first. */
export const nodeTrialTimeoutMs = 30_000;
/** A node that answered 429 or 503 gets no new request for this long. */
export const nodeCoolOffMs = 1_000;
/** No tool has a longer name: the dialects take 64 and 128 characters. */
export const calledNameMaxLength = 1_024;
/** Repeats written out, of a pattern's parts, a text's length or a list's items: llama.cpp refuses more than 2,000. */
export const grammarRepeatsMax = 1_000;

assert(nodeIdleSocketMs < 5_000, "nodes close idle sockets after 5 s");
assert(nodeProbeTimeoutMs < nodeProbeIntervalMs, "a probe of a node ends before the next begins");
