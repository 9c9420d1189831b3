// Settings that all three dialects share once they are read: the output budget, the reasoning depth and stop strings.
import { outputTokensMax, outputTokensMin, stopSequencesMax } from "../../core/limits.ts";
import type { Effort } from "../../core/types.ts";

/** Moves a budget to the nearest end of 1..65,536 (spec, per-request limits: no error). */
export const clampBudget = (tokens: number | null | undefined, otherwise: number): number =>
  tokens == null ? otherwise : Math.min(Math.max(tokens, outputTokensMin), outputTokensMax);

/** Clients send the values of several vendors; all are accepted and mapped to one scale. */
export const efforts: Readonly<Record<string, Effort>> = {
  off: "off",
  none: "off",
  minimal: "minimal",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "max",
  max: "max",
};

/** The first 4 non-empty strings; more would be refused by some engines (vLLM takes 4). */
export const stopSequences = (stop: string | readonly string[] | null | undefined): readonly string[] =>
  (typeof stop === "string" ? [stop] : (stop ?? [])).filter((sequence) => sequence !== "").slice(0, stopSequencesMax);
