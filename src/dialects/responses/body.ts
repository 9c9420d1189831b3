// A body of POST /v1/responses, and the ask that it becomes.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { Ask } from "../../core/types.ts";
import { flag, numberBetween, oneOf, optional, record, text, whole, wholeBetween } from "../request/field.ts";
import { leftOut } from "../request/not-served.ts";
import { serviceTier } from "../request/service-tier.ts";
import type { OfferedTools } from "./offered-tools.ts";
import type { Item } from "../stored-responses.ts";

// Other fields are accepted and ignored, because clients send fields that other servers know.
export const Body = Type.Object({
  model: text,
  input: optional(Type.Union([Type.String(), Type.Array(record)], { description: "a string or an array of items" })),
  instructions: optional(text),
  tools: optional(Type.Array(record, { description: "an array of tools" })),
  tool_choice: optional(Type.Union([Type.String(), record], { description: "a string or an object" })),
  parallel_tool_calls: optional(flag),
  reasoning: optional(record),
  text: optional(record),
  max_output_tokens: optional(whole),
  max_tool_calls: optional(whole),
  stream: optional(flag),
  store: optional(flag),
  include: optional(Type.Array(Type.String(), { description: "an array of strings" })),
  previous_response_id: optional(text),
  generate: optional(flag),
  conversation: optional(
    Type.Union([Type.String(), Type.Object({ id: Type.String() })], {
      description: "an id or an object with one",
    }),
  ),
  prompt_cache_key: optional(text),
  safety_identifier: optional(text),
  service_tier: serviceTier,
  user: optional(text),
  metadata: optional(record),
  truncation: optional(oneOf("auto", "disabled")),
  web_search: optional(flag),
  temperature: optional(numberBetween(0, 2)),
  top_p: optional(numberBetween(0, 1)),
  presence_penalty: optional(numberBetween(-2, 2)),
  frequency_penalty: optional(numberBetween(-2, 2)),
  top_logprobs: optional(wholeBetween(0, 20)),
  background: optional(flag),
  prompt: leftOut("prompts are not stored here; send instructions and input"),
  moderation: leftOut("nothing is moderated here"),
});
export type ResponsesBody = Static<typeof Body>;
export const responsesBody: TSchema = Body;

/** An Ask with what this dialect must remember about the request to write its reply. */
export type ResponsesAsk = Ask &
  Readonly<{
    /** The client's names for the tools that the model calls. */
    offered: OfferedTools;
    /** The settings that every response object repeats, as members of a JSON object. */
    echo: string;
    /** True if reasoning is also sent sealed, so that a client can return it. */
    sealsReasoning: boolean;
    /** True if web searches are shown with all the addresses that they found. */
    showsSources: boolean;
    /** Not null if the reply is one sealed summary of the conversation instead of an answer: inside a response, or alone. */
    compacts: "in a response" | "alone" | null;
    /** True if later requests may refer to the response. */
    store: boolean;
    previousResponseId: string | null;
    /** The conversation that input and answer join. */
    conversationId: string | null;
    /**
     * The request's own input, if it must be stored with the response: as items, or as their JSON text where it is a
     * text or in a large body. For POST /v1/responses/compact, the user's messages of the conversation, which its reply
     * repeats.
     */
    input: readonly Item[] | string;
  }>;
