// How many answers a request asks for. The specification's models give one.
import { Type } from "@sinclair/typebox";
import { answersMax } from "../../core/limits.ts";
import type { Answers, Model, Refusal } from "../../core/types.ts";
import { malformed, optional } from "./field.ts";

export const answersField = optional(
  Type.Integer({ minimum: 1, maximum: answersMax, description: `a whole number from 1 to ${answersMax}` }),
);

/** `at`: the field with the number of answers per prompt. Undefined: one answer. */
export function readAnswers({ tier }: Model, prompts: number, each: number, at: string): Answers | undefined | Refusal {
  if (prompts === 1 && each === 1) return undefined;
  if (tier !== "own" && each > 1) {
    return malformed(`${at} must be 1: one request gives one choice; send several requests for more`);
  }
  if (tier !== "own") return malformed("prompt must be one prompt: send a request for each of several");
  if (prompts * each <= answersMax) return { prompts, each };
  return malformed(`prompt: a request may ask for ${answersMax} answers, ${at} of each prompt, not ${prompts * each}`);
}
