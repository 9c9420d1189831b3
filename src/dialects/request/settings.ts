// Settings that all three dialects share: the output budget, the reasoning depth and stop strings.
import { furtherStopsMaxLength, outputTokensMax, outputTokensMin, stopSequencesMax } from "../../core/limits.ts";
import type { Ask, CoderBilling, Effort, Model, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

/** Clamps a budget to 1..65,536 (spec, per-request limits: no error). */
export const clampBudget = (tokens: number | null | undefined, otherwise: number): number =>
  tokens == null ? otherwise : Math.min(Math.max(tokens, outputTokensMin), outputTokensMax);

/** For a shop's own model a budget never exceeds its context, and is open where the request names none. */
export function budgetOf(
  tokens: number | null | undefined,
  { tier, contextTokens, outputTokensDefault }: Model,
  billing: CoderBilling,
): Pick<Ask, "outputTokensMax" | "openBudget"> {
  const budget = clampBudget(tokens, outputTokensDefault[billing]);
  if (tier !== "own") return { outputTokensMax: budget };
  const within = { outputTokensMax: Math.min(budget, contextTokens) };
  return tokens == null ? { ...within, openBudget: true } : within;
}

/** Clients send the values of several vendors; all are mapped to one scale. */
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

/** Between budgets that clients send: 1,024 is the least, opencode sends 15,999 for `high` and 31,999 for `max`. */
export function effortOfBudget(tokens: number): Effort {
  if (tokens < 1_024) return "minimal";
  if (tokens < 4_096) return "low";
  if (tokens < 12_288) return "medium";
  return tokens < 24_576 ? "high" : "max";
}

const noStops: readonly string[] = [];

/** The non-empty ones; for a hosted model only the first 4 (spec, request fields). A refusal names the field, `at`. */
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
