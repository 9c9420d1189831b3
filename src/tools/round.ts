// A round: one generation, from an Ask to its Ending. Loops and checks wrap the one below without knowing it.
import type { Ask, Ending, Sink } from "../core/types.ts";

/** Resolves with exactly one Ending after the last piece. Never rejects for a node's failure. */
export type Round = (ask: Ask, sink: Sink) => Promise<Ending>;
