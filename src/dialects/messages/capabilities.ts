// A model's capabilities under the names of Anthropic's library, with every member that it knows.
import { claimsOf } from "../../core/catalog.ts";
import type { Model } from "../../core/types.ts";

export function capabilities(model: Model) {
  const depth = supported(model.readsDepth);
  const { images, formats } = claimsOf(model);
  const [yes, no] = [supported(true), supported(false)];
  return {
    batch: no,
    citations: no,
    code_execution: no,
    context_management: {
      ...no,
      clear_thinking_20251015: null,
      clear_tool_uses_20250919: null,
      compact_20260112: null,
    },
    effort: { ...depth, low: depth, medium: depth, high: depth, xhigh: depth, max: depth },
    image_input: supported(images),
    pdf_input: yes,
    server_tools: { ...yes, code_execution: no, web_search: yes },
    structured_outputs: supported(formats === "json_schema"),
    thinking: { ...yes, types: { adaptive: yes, between_tools: yes, disabled: depth, enabled: yes } },
  };
}

const supported = (isSupported: boolean) => ({ supported: isSupported });
