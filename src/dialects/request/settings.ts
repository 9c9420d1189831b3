// Settings that all three dialects share once they are read: the output budget, the reasoning depth and stop strings.
import { furtherStopsMaxLength, outputTokensMax, outputTokensMin, stopSequencesMax } from "../../core/limits.ts";
import type { Effort, Model, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

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

const noStops: readonly string[] = [];

/** Those that are not empty; of a hosted model the first 4 (spec, request fields). A refusal names the field, `at`. */
export function stopSequences(
  stop: string | readonly string[] | null | undefined,
  { tier }: Model,
  at: string,
): readonly string[] | Refusal {
  if (stop === null || stop === undefined) return noStops;
  const given = (typeof stop === "string" ? [stop] : stop).filter((sequence) => sequence !== "");
  if (tier === "hosted") return given.slice(0, stopSequencesMax);
  const further = given.slice(stopSequencesMax).reduce((length, sequence) => length + sequence.length, 0);
  if (further <= furtherStopsMaxLength) return given;
  return malformed(
    `${at} must have at most ${furtherStopsMaxLength} characters beyond the first ${stopSequencesMax} sequences`,
  );
}
