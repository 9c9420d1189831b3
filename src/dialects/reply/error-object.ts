// The error body of the dialects that come from OpenAI.
import { factsOf, messageOf, refusals, type RefusalRow } from "../../core/refusals.ts";
import type { Refusal } from "../../core/types.ts";

export function errorBody(refusal: Refusal): string {
  const { type, code, param }: RefusalRow = refusals[refusal.refusal];
  return JSON.stringify({
    error: { type, message: messageOf(refusal), code, param: param ?? null, ...factsOf(refusal) },
  });
}
