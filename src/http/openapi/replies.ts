// The gateway's reply objects and stream events as JSON Schema. Tests check real replies against it.
import type { JsonSchema } from "../../docs/openapi-document.ts";
import { anything, either, flag, list, object, only, orNull, ref, text, whole } from "./shape.ts";

const pageEnds = (item: JsonSchema) => ({
  data: list(item),
  first_id: orNull(text()),
  last_id: orNull(text()),
  has_more: flag(),
});
const pageOf = (item: JsonSchema): JsonSchema => object({ object: only("list"), ...pageEnds(item) });

const tokens = (description: string): JsonSchema => whole(description);

const cacheWrites = tokens("Tokens written into the node's prompt cache, where it reports them; not billed.");

const chatUsage = object({
  prompt_tokens: tokens("Input, cached or not."),
  completion_tokens: tokens("Output, including reasoning."),
  total_tokens: tokens("Their sum."),
  "prompt_tokens_details?": object({ cached_tokens: whole(), "cache_write_tokens?": cacheWrites }, "Of hosted models."),
  "completion_tokens_details?": object({ reasoning_tokens: whole() }, "Of hosted models."),
});

const annotation = object({
  type: only("url_citation"),
  url_citation: object({ start_index: whole(), end_index: whole(), url: text(), title: text() }),
});

const finishReason = only("stop", "tool_calls", "length", "content_filter");

const chat = {
  ChatToolCall: object({
    id: text(),
    type: only("function"),
    function: object({ name: text(), arguments: text("JSON exactly as the model wrote it.") }),
  }),
  ChatCompletion: object({
    id: text(),
    object: only("chat.completion"),
    created: whole("Unix time in seconds."),
    model: text(),
    choices: list(
      object({
        index: whole("The answer's number."),
        message: object({
          role: only("assistant"),
          content: orNull(text("`null` where tools are called and nothing is said.")),
          refusal: orNull(text("What the model said instead, where its node marks refusals.")),
          "annotations?": list(annotation, "Where the answer cites search results."),
          "reasoning_content?": text("The model's reasoning."),
          "tool_calls?": list(ref("ChatToolCall")),
        }),
        logprobs: orNull(object({ content: list(anything()), refusal: anything() })),
        finish_reason: finishReason,
      }),
    ),
    usage: chatUsage,
  }),
  ChatCompletionChunk: object({
    id: text(),
    object: only("chat.completion.chunk"),
    created: whole(),
    model: text(),
    choices: list(
      object({
        index: whole("The number of the answer that it belongs to."),
        delta: object({
          "role?": only("assistant"),
          "content?": orNull(text()),
          "refusal?": text(),
          "reasoning_content?": text(),
          "annotations?": list(annotation),
          "tool_calls?": list(
            object({
              index: whole(),
              "id?": text("In the first chunk of a call."),
              "type?": only("function"),
              function: object({ "name?": text(), "arguments?": text() }),
            }),
          ),
        }),
        finish_reason: { enum: [...finishReason.enum!, null] },
        logprobs: anything(),
      }),
      "Empty in the last chunk where `stream_options.include_usage` is true; otherwise it repeats the last choice twice: without " +
        "and with its `finish_reason`, as clients put chunks together in different ways.",
    ),
    "usage?": chatUsage,
  }),
} satisfies Record<string, JsonSchema>;

const completionLogprobs = object({
  tokens: list(text()),
  token_logprobs: list(anything()),
  top_logprobs: list(anything()),
  text_offset: list(anything()),
});

/** An event of a stream is the same object. */
const completion = (finish: JsonSchema, usage: "usage" | "usage?"): JsonSchema =>
  object({
    id: text(),
    object: only("text_completion"),
    created: whole("Unix time in seconds."),
    model: text(),
    choices: list(
      object({
        index: whole("The answer's number."),
        text: text(),
        logprobs: orNull(completionLogprobs),
        finish_reason: finish,
      }),
    ),
    [usage]: chatUsage,
  });

const fim = (type: string, member: "message" | "delta", said: JsonSchema, finish: JsonSchema): JsonSchema =>
  object({
    id: text(),
    object: only(type),
    created: whole("Unix time in seconds."),
    model: text(),
    choices: list(object({ index: whole("The answer's number."), [member]: said, finish_reason: finish })),
    [member === "message" ? "usage" : "usage?"]: chatUsage,
  });

const completions = {
  Completion: completion(finishReason, "usage"),
  CompletionEvent: completion({ enum: [...finishReason.enum!, null] }, "usage?"),
  FimCompletion: fim("chat.completion", "message", object({ role: only("assistant"), content: text() }), finishReason),
  FimCompletionEvent: fim("chat.completion.chunk", "delta", object({ content: text() }), {
    enum: [...finishReason.enum!, null],
  }),
} satisfies Record<string, JsonSchema>;

const messagesUsage = object({
  input_tokens: tokens("Input; for hosted models only the uncached part."),
  output_tokens: tokens("Output, including reasoning."),
  "cache_read_input_tokens?": tokens("Only for hosted models: the cached input."),
  "cache_creation_input_tokens?": tokens("Only for hosted models: 0."),
  "server_tool_use?": object({ web_search_requests: whole(), web_fetch_requests: whole() }),
});

const contentBlock = either(
  object({ type: only("text"), text: text(), "citations?": list(anything()) }),
  object({ type: only("thinking"), thinking: text(), signature: text() }),
  object(
    { type: only("tool_use"), id: text(), name: text(), input: { type: "object" } },
    "A call for the client to answer.",
  ),
  object({ type: only("server_tool_use"), id: text(), name: text(), input: { type: "object" } }, "A search."),
  object({ type: only("web_search_tool_result"), tool_use_id: text(), content: anything() }, "What it found."),
  object(
    { type: only("mcp_tool_use"), id: text(), name: text(), server_name: text(), input: { type: "object" } },
    "A call that the gateway ran.",
  ),
  object(
    { type: only("mcp_tool_result"), tool_use_id: text(), is_error: flag(), content: list(anything()) },
    "What came of it.",
  ),
);

const stopDetails = {
  "stop_details?": object({
    type: only("refusal"),
    category: only(null),
    explanation: text("What the model said. With a format, it stands here alone."),
  }),
};

const message = (stopReason: JsonSchema): JsonSchema =>
  object({
    id: text(),
    type: only("message"),
    role: only("assistant"),
    model: text(),
    content: list(ref("ContentBlock")),
    stop_reason: stopReason,
    stop_sequence: orNull(text()),
    ...stopDetails,
    usage: messagesUsage,
  });

const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"] as const;

const messages = {
  ContentBlock: contentBlock,
  Message: message(only(...stopReasons)),
  MessageStart: object({ type: only("message_start"), message: message(only(null)) }),
  ContentBlockStart: object({ type: only("content_block_start"), index: whole(), content_block: ref("ContentBlock") }),
  ContentBlockDelta: object({
    type: only("content_block_delta"),
    index: whole(),
    delta: either(
      object({ type: only("text_delta"), text: text() }),
      object({ type: only("thinking_delta"), thinking: text() }),
      object({ type: only("signature_delta"), signature: text() }),
      object({ type: only("input_json_delta"), partial_json: text() }),
      object({ type: only("citations_delta"), citation: anything() }),
    ),
  }),
  ContentBlockStop: object({ type: only("content_block_stop"), index: whole() }),
  MessageDelta: object({
    type: only("message_delta"),
    delta: object({ stop_reason: only(...stopReasons), stop_sequence: orNull(text()), ...stopDetails }),
    usage: messagesUsage,
  }),
  MessageStop: object({ type: only("message_stop") }),
  Ping: object({ type: only("ping") }),
  InputTokens: object({ input_tokens: whole() }),
} satisfies Record<string, JsonSchema>;

const outputItem = either(
  object({
    id: text(),
    type: only("message"),
    status: text(),
    role: only("assistant"),
    content: list(
      either(
        object({
          type: only("output_text"),
          text: text(),
          annotations: list(anything(), "Where it cites search results."),
          logprobs: list(anything()),
        }),
        object({ type: only("refusal"), refusal: text() }),
      ),
    ),
  }),
  object({
    id: text(),
    type: only("reasoning"),
    summary: list(object({ type: only("summary_text"), text: text() })),
    "encrypted_content?": text('With `include: ["reasoning.encrypted_content"]`.'),
  }),
  object(
    { id: text(), type: only("function_call"), status: text(), call_id: text(), name: text(), arguments: text() },
    "A call for the client to answer with a `function_call_output`.",
  ),
  object({ id: text(), type: only("custom_tool_call"), status: text(), call_id: text(), name: text(), input: text() }),
  object({ id: text(), type: only("web_search_call"), status: text(), action: anything() }),
  object({ id: text(), type: only("mcp_call"), status: text(), server_label: text(), name: text(), arguments: text() }),
  object({ id: text(), type: only("compaction"), encrypted_content: text() }),
);

const responsesUsage = object({
  input_tokens: whole(),
  input_tokens_details: object({ cached_tokens: whole(), cache_write_tokens: cacheWrites }),
  output_tokens: whole(),
  output_tokens_details: object({ reasoning_tokens: whole() }),
  total_tokens: whole(),
});

const number: JsonSchema = { type: "number" };

const responses = {
  OutputItem: outputItem,
  Response: object(
    {
      id: text(),
      object: only("response"),
      created_at: whole("Unix time in seconds."),
      completed_at: orNull(whole()),
      status: only("in_progress", "completed", "incomplete", "failed"),
      error: orNull(object({ code: text(), message: text() })),
      incomplete_details: orNull(object({ reason: only("max_output_tokens", "content_filter") })),
      instructions: orNull(text()),
      max_output_tokens: orNull(whole()),
      max_tool_calls: orNull(whole()),
      model: text(),
      parallel_tool_calls: flag(),
      previous_response_id: orNull(text()),
      "conversation?": object({ id: text() }),
      prompt_cache_key: orNull(text()),
      reasoning: object({ effort: orNull(text()), summary: orNull(text()) }),
      safety_identifier: orNull(text()),
      service_tier: text(),
      store: flag(),
      background: flag(),
      temperature: number,
      text: anything(),
      tool_choice: anything(),
      tools: list(anything()),
      top_logprobs: whole(),
      top_p: number,
      presence_penalty: number,
      frequency_penalty: number,
      truncation: text(),
      user: orNull(text()),
      metadata: { type: "object" },
      output: list(ref("OutputItem")),
      usage: orNull(responsesUsage),
      "output_text?": text("The answer's whole text."),
    },
    "It repeats the request's settings.",
  ),
  Compaction: object({
    id: text(),
    object: only("response.compaction"),
    created_at: whole(),
    output: list(
      either(
        object({ id: text(), type: only("message"), status: text(), role: only("user"), content: list(anything()) }),
        object({ id: text(), type: only("compaction"), encrypted_content: text() }),
      ),
      "The user's messages, followed by one compaction.",
    ),
    usage: responsesUsage,
  }),
  ResponseInputTokens: object({ object: only("response.input_tokens"), input_tokens: whole() }),
  ResponseDeleted: object({ id: text(), object: only("response"), deleted: only(true) }),
  File: object({
    id: text(),
    object: only("file"),
    bytes: whole(),
    created_at: whole("Unix time in seconds."),
    expires_at: orNull(whole("The same.")),
    filename: text(),
    purpose: text(),
    status: only("processed"),
  }),
  Files: pageOf(ref("File")),
  FileDeleted: object({ id: text(), object: only("file"), deleted: only(true) }),
  Batch: object({
    id: text(),
    object: only("batch"),
    endpoint: text(),
    model: orNull(text("The first of its models.")),
    errors: orNull(
      object({
        object: only("list"),
        data: list(
          object({ code: text(), line: orNull(whole("From 1.")), message: text(), param: orNull(text()) }),
          "Why nothing of it runs.",
        ),
      }),
    ),
    input_file_id: text(),
    completion_window: text(),
    status: only(
      ...["validating", "in_progress", "cancelling", "finalizing", "completed", "expired", "cancelled", "failed"],
    ),
    output_file_id: orNull(text("What was answered.")),
    error_file_id: orNull(text("What was not, and why.")),
    created_at: whole("Unix time in seconds."),
    ...Object.fromEntries(
      ["in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled"].map((state) => [
        `${state}_at`,
        orNull(whole()),
      ]),
    ),
    expires_at: whole(),
    request_counts: object({ total: whole(), completed: whole(), failed: whole() }),
    usage: object({
      input_tokens: whole(),
      input_tokens_details: object({ cached_tokens: whole() }),
      output_tokens: whole(),
      output_tokens_details: object({ reasoning_tokens: whole() }),
      total_tokens: whole(),
    }),
    metadata: orNull({ type: "object" }),
    billed_tokens: whole("In balance tokens."),
    waits: orNull(text("Why it does not go on now.")),
  }),
  Batches: pageOf(ref("Batch")),
  MessageBatch: object({
    id: text(),
    type: only("message_batch"),
    processing_status: only("in_progress", "canceling", "ended"),
    request_counts: object({
      processing: whole(),
      succeeded: whole(),
      errored: whole(),
      canceled: whole(),
      expired: whole(),
    }),
    created_at: text("In ISO 8601."),
    expires_at: text(),
    ended_at: orNull(text()),
    cancel_initiated_at: orNull(text()),
    archived_at: only(null),
    results_url: orNull(text()),
  }),
  MessageBatches: object(pageEnds(ref("MessageBatch"))),
  MessageBatchDeleted: object({ id: text(), type: only("message_batch_deleted") }),
  InputItems: pageOf(ref("ConversationItem")),
  Conversation: object({
    id: text(),
    object: only("conversation"),
    created_at: whole("Unix time in seconds."),
    metadata: { type: "object" },
  }),
  ConversationDeleted: object({ id: text(), object: only("conversation.deleted"), deleted: only(true) }),
  ConversationItem: object({ id: text(), type: text() }, "An item, with the fields of its type."),
  ResponseLifecycle: object({ type: text(), sequence_number: whole(), response: ref("Response") }),
  ResponseOutputItem: object({
    type: text(),
    sequence_number: whole(),
    output_index: whole(),
    item: ref("OutputItem"),
  }),
  ResponseItemProgress: object({
    type: text(),
    sequence_number: whole(),
    item_id: text(),
    output_index: whole(),
    "content_index?": whole(),
    "summary_index?": whole(),
    "annotation_index?": whole(),
    "delta?": text(),
    "text?": text(),
    "name?": text("The name of the call whose arguments are complete."),
    "arguments?": text(),
    "input?": text(),
    "part?": anything(),
    "annotation?": anything(),
    "logprobs?": list(anything()),
  }),
} satisfies Record<string, JsonSchema>;

const models = {
  Model: object({
    id: text(),
    object: only("model"),
    type: only("model"),
    created: whole("Unix time in seconds."),
    created_at: text("The same as a text."),
    owned_by: text(),
    name: text(),
    display_name: text(),
    kind: text("`chat`, `embedding`, `rerank`, `transcription` or `speech`."),
    description: text("Its input and output in a sentence."),
    context_window: tokens("Context window in tokens."),
    max_input_tokens: tokens("The same, under another name."),
    context_length: tokens("The same, or less where the model's nodes have less."),
    max_tokens: tokens("The largest output budget."),
    max_output_tokens: tokens("The same, or the context window where that is smaller."),
    reasoning_effort: flag("Whether the model accepts the depth setting."),
    capabilities: {
      type: "object",
      description:
        "`vision`, `tools`, `reasoning`, `structured_output` and `json_mode`, each `true` or `false`; with the header " +
        "`anthropic-version` under the names of Anthropic's libraries, each with `supported`.",
    },
    lifecycle: only("active"),
    line: only(null),
    deprecated_at: only(null),
    retires_at: only(null),
    pricing: object({
      "prompt?": text("Dollars per input token, as a decimal; absent for models that hear or speak."),
      "completion?": text("Dollars per output token."),
      "input_cache_read?": text("Dollars per cached input token."),
      "request?": text("Dollars per request."),
      "price_per_minute?": text("Dollars per minute of audio."),
      "price_per_1k_characters?": text("Dollars per 1,000 characters of text."),
    }),
    architecture: object({
      modality: text("`text+image->text`, for example."),
      input_modalities: list(text()),
      output_modalities: list(text()),
      tokenizer: only("Other"),
      instruct_type: only(null),
    }),
    supported_parameters: list(text("Names as in chat completions.")),
    top_provider: object({
      context_length: tokens("As `context_length`."),
      max_completion_tokens: tokens("As `max_output_tokens`."),
      is_moderated: only(false),
    }),
    per_request_limits: only(null),
    max_context_length: tokens("As `context_window`."),
    loaded_context_length: tokens("As `context_length`."),
  }),
  ModelList: object({
    object: only("list"),
    data: list(ref("Model")),
    has_more: flag(),
    first_id: orNull(text()),
    last_id: orNull(text()),
  }),
} satisfies Record<string, JsonSchema>;

const counts = {
  Tokenization: object({
    object: only("tokenization"),
    model: orNull(text()),
    count: whole(),
    exact: flag("`false`: an estimate, made without the model's own tokenizer."),
    tokenizer: text(),
    max_model_len: orNull(tokens("The model's context window.")),
    "tokens?": list(whole(), "Only with `return_tokens: true`."),
  }),
  Quote: object({
    object: only("quote"),
    model: text(),
    endpoint: text("The endpoint of the request."),
    input_tokens: whole(),
    exact: flag("`false`: an estimate, made without the model's own tokenizer."),
    output_tokens_max: whole(),
    price_max: tokens("The maximum cost in balance tokens."),
    price_max_usd: { type: "number" },
    coder_calls: whole("1: it takes one of the account's coder calls, and no tokens."),
    priority: text("The priority that applies: `interactive`, `standard` or `bulk`."),
    position: whole("The place in line; 0: it would begin at once."),
    expected_first_token_ms: whole("An estimate that includes the wait in line."),
  }),
} satisfies Record<string, JsonSchema>;

const errorTypes = [
  "invalid_request_error",
  "authentication_error",
  "not_found_error",
  "rate_limit_error",
  "api_error",
] as const;

/** What a refusal for lack of balance or calls has beside its message. */
const quotaFacts = {
  "spendable?": whole("Where a budget does not fit: the remaining balance tokens, minus those of open requests."),
  "requested?": whole("The output budget that could not be reserved."),
  "max_tokens?": whole("The largest output budget that would fit."),
  "used?": whole("Where the coder calls are used up: the calls made in this window."),
  "limit?": whole("The plan's number of calls."),
  "resets_at?": whole("When the allowance of tokens or calls renews: Unix time in seconds."),
};

const errors = {
  Error: object(
    {
      error: object({
        type: only(...errorTypes),
        message: text(),
        code: orNull(text()),
        param: orNull(text()),
        ...quotaFacts,
      }),
    },
    "An error of chat-completions, responses and the routes beside them.",
  ),
  MessagesError: object(
    {
      type: only("error"),
      error: object({ type: only(...errorTypes), message: text(), "details?": { type: "object" }, ...quotaFacts }),
      request_id: text("Also in the header `request-id`."),
    },
    "An error of the messages dialect.",
  ),
} satisfies Record<string, JsonSchema>;

// ---------------------------------------------------------------- embeddings and reranking

const inputUsage = object({ prompt_tokens: whole(), total_tokens: whole() });

const inputs = {
  Embeddings: object({
    object: only("list"),
    data: list(
      object({
        object: only("embedding"),
        index: whole("The input's index in the request."),
        embedding: either(list(number), text("The vector's 32-bit floats in base64.")),
      }),
    ),
    model: text(),
    usage: inputUsage,
  }),
  Ranking: object({
    id: text(),
    object: only("list"),
    model: text(),
    results: list(
      object({
        index: whole("The document's index in the request."),
        relevance_score: number,
        "document?": object({ text: text() }),
      }),
    ),
    usage: inputUsage,
    meta: object(
      {
        billed_units: object({ input_tokens: whole() }),
        tokens: object({ input_tokens: whole(), output_tokens: whole() }),
      },
      "The usage in the form for Cohere's clients.",
    ),
  }),
} satisfies Record<string, JsonSchema>;

export const replySchemas: Readonly<Record<string, JsonSchema>> = {
  ...chat,
  ...completions,
  ...messages,
  ...responses,
  ...inputs,
  ...models,
  ...counts,
  ...errors,
};

type Events = Readonly<Record<string, Readonly<{ description: string; schema: JsonSchema }>>>;

/** The events of each dialect's stream. */
export const chatEvents: Events = {
  data: {
    description:
      "A chunk. Reasoning comes first, in `reasoning_content`; the chunk with the " +
      "`finish_reason` comes behind them, and a last chunk has the `usage` (without choices where " +
      "`stream_options.include_usage` is true), then the line `data: [DONE]` " +
      "ends the stream. A failed stream ends with an error object instead. Lines that begin with `:` keep the connection open.",
    schema: ref("ChatCompletionChunk"),
  },
};

export const fimEvents: Events = {
  data: {
    description:
      "More text. The event after the `finish_reason` has the `usage`, then the line `data: [DONE]` ends the stream. " +
      "A failed stream ends with an error object instead. Lines that begin with `:` keep the connection open.",
    schema: ref("FimCompletionEvent"),
  },
};

export const completionsEvents: Events = {
  data: {
    description:
      "More text. The event after the `finish_reason` has the `usage` (without choices where " +
      "`stream_options.include_usage` is true), then the line `data: [DONE]` ends the stream. A failed stream ends with an " +
      "error object instead. Lines that begin with `:` keep the connection open.",
    schema: ref("CompletionEvent"),
  },
};

export const messagesEvents: Events = {
  message_start: { description: "The message begins; its input is counted.", schema: ref("MessageStart") },
  content_block_start: { description: "A block begins.", schema: ref("ContentBlockStart") },
  content_block_delta: { description: "More of a block.", schema: ref("ContentBlockDelta") },
  content_block_stop: { description: "The block is complete.", schema: ref("ContentBlockStop") },
  message_delta: { description: "The stop reason and the usage.", schema: ref("MessageDelta") },
  message_stop: { description: "The end.", schema: ref("MessageStop") },
  ping: { description: "A sign of life while the client waits.", schema: ref("Ping") },
  error: { description: "The answer failed, and nothing follows.", schema: ref("MessagesError") },
};

const lifecycle = (description: string) => ({ description, schema: ref("ResponseLifecycle") });
const progress = (description: string) => ({ description, schema: ref("ResponseItemProgress") });

export const responsesEvents: Events = {
  "response.created": lifecycle("The response was created."),
  "response.in_progress": lifecycle("It is in progress; repeated as a sign of life."),
  "response.output_item.added": { description: "An item begins.", schema: ref("ResponseOutputItem") },
  "response.content_part.added": progress("A message's text begins."),
  "response.output_text.delta": progress("More of a message's text."),
  "response.output_text.annotation.added": progress("The text cites a search result."),
  "response.output_text.done": progress("The text is complete."),
  "response.refusal.delta": progress("More of a refusal, where its node marks it."),
  "response.refusal.done": progress("The refusal is complete."),
  "response.content_part.done": progress("The message's part is complete."),
  "response.reasoning_summary_part.added": progress("Thoughts begin."),
  "response.reasoning_summary_text.delta": progress("More reasoning text."),
  "response.reasoning_summary_text.done": progress("The reasoning text is complete."),
  "response.reasoning_summary_part.done": progress("The reasoning is complete."),
  "response.function_call_arguments.delta": progress("More of a call's arguments."),
  "response.function_call_arguments.done": progress("They are complete."),
  "response.custom_tool_call_input.delta": progress("More of a custom tool's input."),
  "response.custom_tool_call_input.done": progress("It is complete."),
  "response.web_search_call.in_progress": progress("A search begins."),
  "response.web_search_call.searching": progress("It runs."),
  "response.web_search_call.completed": progress("It has ended."),
  "response.mcp_call.in_progress": progress("A tool of an MCP server is called."),
  "response.mcp_call_arguments.delta": progress("Its arguments."),
  "response.mcp_call_arguments.done": progress("They are complete."),
  "response.mcp_call.completed": progress("The call has ended."),
  "response.mcp_call.failed": progress("The call failed; the model continues."),
  "response.output_item.done": { description: "The item is complete.", schema: ref("ResponseOutputItem") },
  "response.completed": lifecycle("The end, with the usage; then the line `data: [DONE]`."),
  "response.incomplete": lifecycle("The end of an answer that the output budget cut."),
  "response.failed": lifecycle("The answer failed, and nothing follows."),
};
