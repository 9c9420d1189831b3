// A round: one generation of a model, from an Ask to its Ending. The tool loop, the validation of structured output and
// the gateway's spine all call each other through it, so that each can wrap the one below without knowing it.
import type { Ask, Ending, Sink } from "../core/types.ts";

/** Resolves with exactly one Ending after the last piece; never rejects for what a node did. */
export type Round = (ask: Ask, sink: Sink) => Promise<Ending>;
