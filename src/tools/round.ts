// A round: one generation of a model, from an Ask to its Ending. The tool loop, the checks of structured output and the
// gateway's spine call each other through it, so that each can wrap the one below without knowing it.
import type { Ask, Ending, Sink } from "../core/types.ts";

/** Resolves with exactly one Ending after the last piece. Never rejects for a node's failure. */
export type Round = (ask: Ask, sink: Sink) => Promise<Ending>;
