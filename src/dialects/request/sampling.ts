// Sampling fields of the chat and plain-completions dialects.
import { Type } from "@sinclair/typebox";
import type { Sampling } from "../../core/types.ts";
import { numberBetween, optional, whole } from "./field.ts";

export const samplingFields = {
  temperature: optional(numberBetween(0, 2)),
  top_p: optional(numberBetween(0, 1)),
  top_k: optional(whole),
  min_p: optional(numberBetween(0, 1)),
  presence_penalty: optional(numberBetween(-2, 2)),
  frequency_penalty: optional(numberBetween(-2, 2)),
  repetition_penalty: optional(numberBetween(0, 10)),
  seed: optional(whole),
  logit_bias: optional(Type.Record(Type.String(), numberBetween(-100, 100), { description: "an object of numbers" })),
};

/** Nodes get them unchanged. */
export const samplingNames = Object.keys(samplingFields) as (keyof typeof samplingFields & keyof Sampling)[];
