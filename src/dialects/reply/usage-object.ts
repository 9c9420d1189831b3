// The usage object of the two dialects whose answers are choices.
import type { Model, Usage } from "../../core/types.ts";

/** Hosted models add the details (spec, usage table). */
export function usageBody(model: Model, usage: Usage): object {
  const prompt_tokens = usage.inputFresh + usage.inputCached;
  const completion_tokens = usage.output;
  const total_tokens = prompt_tokens + completion_tokens;
  if (model.tier === "first-party") return { prompt_tokens, completion_tokens, total_tokens };
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens,
    prompt_tokens_details: {
      cached_tokens: usage.inputCached,
      ...(usage.cacheWritten === undefined ? {} : { cache_write_tokens: usage.cacheWritten }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
