// Request bodies for the description: the dialects' own schemas, prose for each field, and details of messages, tools
// and items where the schemas are loose.
import type { TSchema } from "@sinclair/typebox";
import { speechBody } from "../../dialects/audio/speech.ts";
import { chatCompletionsBody } from "../../dialects/chat/request.ts";
import { completionsBody, completionTokensDefault } from "../../dialects/completions/request.ts";
import { embeddingsBody } from "../../dialects/embeddings/request.ts";
import { messagesBody } from "../../dialects/messages/request.ts";
import { rerankBody } from "../../dialects/rerank/request.ts";
import { conversationItemsMax, metadataLimits } from "../../dialects/responses/conversations.ts";
import { responsesBody } from "../../dialects/responses/body.ts";
import type { JsonSchema } from "../../docs/openapi-document.ts";
import {
  answersMax,
  inputsMax,
  outputTokensDefault,
  outputTokensMax,
  tokenizeTextMaxBytes,
} from "../../core/limits.ts";
import type { Model, ModelKind } from "../../core/types.ts";
import { plainSchema } from "./plain-schema.ts";
import { anything, described, either, flag, list, object, only, orNull, ref, text, whole } from "./shape.ts";

/** What a field is for, and the form of its values where the checked schema allows anything. */
type Detail = string | Readonly<{ prose: string; inside: (checked: JsonSchema) => JsonSchema }>;
type Details = Readonly<Record<string, Detail>>;

/** Fields with the same prose. */
const all = (prose: string, ...names: readonly string[]): Details =>
  Object.fromEntries(names.map((name) => [name, prose]));

const toolName: JsonSchema = { type: "string", minLength: 1 };
const jsonSchema = (description: string): JsonSchema => ({ type: "object", description });
const listOf =
  (items: JsonSchema) =>
  (checked: JsonSchema): JsonSchema => ({ ...checked, items });
const objectOf =
  (inside: JsonSchema) =>
  (checked: JsonSchema): JsonSchema => ({ ...checked, properties: inside.properties, required: inside.required ?? [] });

const budget = `Output budget in tokens, held from the balance until the request ends. Values outside of 1 to ${outputTokensMax} are moved to the nearest end`;
const sampling = {
  temperature: "How freely the model chooses; passed on to the node.",
  top_p: "Nucleus sampling; passed on to the node.",
  ...all("Passed on to the node.", "presence_penalty", "frequency_penalty"),
} satisfies Details;
const model = "Id of the model, as `GET /v1/models` lists it.";
const stream = "`true`: server-sent events instead of one JSON reply.";
const search =
  "`true`: the model may search the web, and its answer cites the results. Once the day's searches are used up, it " +
  "answers without searching.";
const tier =
  'The urgency, like the header `x-priority`: `"priority"` is interactive, `"flex"` is bulk, `"default"` is standard. ' +
  "The plan sets the maximum; the reply shows the priority that applied.";
const parallel = "`false`: at most one tool call in an answer.";

// ---------------------------------------------------------------- chat-completions

const chatPart = either(
  object({ type: only("text"), text: text() }, "Text."),
  object(
    {
      type: only("image_url"),
      image_url: object({
        url: text("A public http(s) address, or a data URL of a PNG, JPEG, GIF or WebP."),
        "detail?": text(),
      }),
    },
    "An image, for models that read images. One that cannot be fetched is left out.",
  ),
  object(
    {
      type: only("file"),
      file: object({ "file_data?": text("Base64, a data URL, or an http(s) address."), "filename?": text() }),
    },
    "A PDF or a text file, read as text.",
  ),
);

const chatText = either({ type: "string" }, list(object({ type: only("text"), text: text() })));

/** Each role has its own fields, which its reader checks; the checked schema knows only the role. */
const chatMessage = either(
  object({ role: only("system", "developer"), content: chatText }, "Instructions for the model."),
  object({ role: only("user"), content: either({ type: "string" }, list(chatPart)) }, "The user's message."),
  object(
    {
      role: only("assistant"),
      "content?": either({ type: "string" }, list(object({ type: only("text"), text: text() })), { type: "null" }),
      "tool_calls?": list(ref("ChatToolCall"), "The calls in that answer."),
      "reasoning_content?": orNull(text("Its reasoning, returned to the model.")),
    },
    "An earlier answer.",
  ),
  object(
    { role: only("tool"), tool_call_id: text("The call that it answers."), content: chatText },
    "The result of a call.",
  ),
);

/** A word, or the object that names a tool. */
const toolChoice = (named: JsonSchema): JsonSchema => ({
  anyOf: [only("auto", "none", "required"), named, { type: "null" }],
});

const chatDetails: Details = {
  model,
  messages: {
    prose: "The conversation, oldest first.",
    inside: listOf(chatMessage),
  },
  max_tokens: `${budget}. Default ${outputTokensDefault}, for a coder model ${outputTokensMax}, unless the operator configured others.`,
  max_completion_tokens: "Another name for `max_tokens`. It wins where both are given.",
  stream,
  stream_options:
    "A stream's usage is in its last chunk, after the `finish_reason`. `include_usage: true`: that chunk's `choices` are " +
    "empty; otherwise they repeat the last choice without text.",
  tools: {
    prose:
      "Functions that the model may call. A hosted web search enables the built-in search. Tools that the server would " +
      "have to run are refused; other types are ignored.",
    inside: listOf(ref("ChatTool")),
  },
  tool_choice: {
    prose: '`"auto"` (default), `"none"`, `"required"`, or an object that names one of `tools`.',
    inside: () => toolChoice(object({ type: only("function"), function: object({ name: text() }) })),
  },
  parallel_tool_calls: parallel,
  service_tier: tier,
  response_format: {
    prose:
      "The form of the answer: `text`, `json_object` or `json_schema`, where the model supports it. An answer that does not " +
      "match the schema is requested again; if all attempts fail, nothing is charged. A stream is charged for what was delivered.",
    inside: objectOf(
      object({
        type: only("text", "json_object", "json_schema"),
        "json_schema?": object({ "name?": text(), schema: jsonSchema("A JSON Schema."), "strict?": flag() }),
      }),
    ),
  },
  reasoning_effort: "How deeply hosted models think. First-party tiers accept the field and choose their own depth.",
  web_search: search,
  web_search_options: {
    prose: "Like `web_search: true`, with the user's location.",
    inside: objectOf(
      object({
        "user_location?": object({
          "approximate?": object({ "city?": text(), "region?": text(), "country?": text() }),
        }),
        "allowed_domains?": list(text()),
        "blocked_domains?": list(text()),
        "max_uses?": whole(),
      }),
    ),
  },
  stop: "Texts that end the answer; the first 4 that are not empty count.",
  functions: "The older form of `tools`, which is not supported: leave it out.",
  function_call: "The older form of `tool_choice`, which is not supported: leave it out.",
  n:
    `How many answers to return, at most ${answersMax} from models that the operator added; from others always 1. The input is ` +
    "charged once, and `n` times the budget is reserved.",
  ...sampling,
  ...all("Passed on to the node.", "top_k", "min_p", "repetition_penalty", "seed", "logit_bias"),
  logprobs: "`true`: return log probabilities of the answer's tokens, where the node provides them.",
  top_logprobs: "How many alternatives to return for each token; requires `logprobs: true`.",
  modalities: 'Always `["text"]`.',
  audio: "Refused: answers are text.",
  moderation: "Refused: this server moderates nothing.",
};

// ---------------------------------------------------------------- messages

const messagesSource = either(
  object({ type: only("base64"), media_type: text(), data: text() }),
  object({ type: only("url"), url: text() }),
);

const messagesBlock: JsonSchema = {
  anyOf: [
    object({ type: only("text"), text: text() }, "Text."),
    object({ type: only("image"), source: messagesSource }, "An image, for models that read images."),
    object({ type: only("document"), source: anything(), "title?": text(), "context?": text() }, "A PDF or a text."),
    object({ type: only("tool_use"), id: text(), name: text(), input: { type: "object" } }, "An assistant's call."),
    object(
      { type: only("tool_result"), tool_use_id: text(), "content?": anything(), "is_error?": flag() },
      "The answer to a call.",
    ),
    object({ type: only("thinking"), thinking: text(), "signature?": text() }, "An assistant's thoughts, given back."),
    object({ type: text() }, "Any other block is ignored."),
  ],
};

const messagesContent: JsonSchema = {
  anyOf: [{ type: "string" }, list(messagesBlock)],
  description: "A text, or content blocks.",
};

const completionsDetails: Details = {
  model,
  prompt:
    "The text to continue, sent unchanged without a chat template: a text, the model's own tokens where its engine reads " +
    "tokens, or a list of one of these. Models that the operator added accept several prompts. Each gets " +
    `${"`n`"} answers, in the order of the prompts; a request may have ${answersMax} answers in total.`,
  suffix:
    "The text after the gap, for engines that fill in the middle themselves (Ollama). Refused elsewhere: use the model's " +
    "own fill-in tokens in `prompt`.",
  max_tokens:
    `${budget}. Default ${completionTokensDefault}. It limits the answers of all models. With ${"`echo`"}, 0 returns only ` +
    "the prompt with its log probabilities, from models that the operator added.",
  stream,
  stream_options:
    "A stream's usage is in its last event, after the `finish_reason`. `include_usage: true`: that event's `choices` are " +
    "empty; otherwise they repeat the last choice without text.",
  echo: "`true`: the answer begins with the prompt. Refused where the engine cannot do it.",
  n: "Answers per prompt, from models that the operator added; from others always 1. The prompt is charged once.",
  best_of:
    "How many answers the model writes to each prompt. All are charged, and the `n` likeliest are returned. Not " +
    "available in streams; for other models always 1.",
  stop: "Texts that end the answer. Hosted models use the first 4, others all of them.",
  ...sampling,
  ...all("Passed on to nodes that know it.", "top_k", "min_p", "repetition_penalty"),
  seed: "Passed on to the node.",
  logit_bias: "A map from token ids to biases of -100 to 100; passed on to the node.",
  logprobs: "How many alternatives to return for each token, with their log probabilities; passed on to the node.",
};

const messagesDetails: Details = {
  model,
  max_tokens: `${budget}. The dialect requires it; here the default is ${outputTokensDefault}, for a coder model ${outputTokensMax}, unless the operator configured others.`,
  messages: {
    prose: "The conversation, oldest first.",
    inside: (checked) => ({
      ...checked,
      items: { ...checked.items!, properties: { ...checked.items!.properties, content: messagesContent } },
    }),
  },
  system: { prose: "Instructions before the conversation.", inside: () => messagesContent },
  tools: {
    prose: "Tools that the model may call. A `web_search_...` tool enables the built-in search.",
    inside: listOf(
      object({
        name: toolName,
        "description?": text(),
        "input_schema?": jsonSchema("A JSON Schema of its input."),
        "type?": text("Absent or `custom` for a tool of your own."),
      }),
    ),
  },
  tool_choice: "Whether a tool must be called, and which.",
  thinking: "Whether to show reasoning, and `budget_tokens`: how deeply a hosted model thinks.",
  output_config: "`effort`: the depth as a word. `format`: a `json_schema` that the answer must match.",
  output_format: "The older place of `output_config.format`.",
  stop_sequences: "Texts that end the answer; the first 4 that are not empty count.",
  stream,
  mcp_servers: "Refused unless empty: operators connect servers, requests cannot.",
  container: "Refused: this server runs no code and has no skills.",
  compaction: "Refused: ask for a summary in `messages`.",
  thread: "Refused: threads are not kept here. Send the whole conversation.",
  web_search: search,
  temperature: sampling.temperature,
  top_p: sampling.top_p,
  top_k: "Passed on to the node.",
};

// ---------------------------------------------------------------- responses

const responsesPart = either(
  object({ type: only("input_text", "output_text"), text: text() }, "Text."),
  object({ type: only("input_image"), "image_url?": text(), "detail?": text() }, "An image, by address or data URL."),
  object(
    { type: only("input_file"), "file_data?": text(), "file_url?": text(), "filename?": text() },
    "A PDF or a text file.",
  ),
  object({ type: text() }, "Any other part is ignored."),
);

const responsesItem: JsonSchema = {
  type: "object",
  anyOf: [
    object(
      {
        "type?": only("message"),
        role: only("user", "assistant", "system", "developer"),
        content: either({ type: "string" }, list(responsesPart)),
      },
      "A message.",
    ),
    object(
      { type: only("function_call"), call_id: text(), name: text(), arguments: text("JSON.") },
      "A call that the model made.",
    ),
    object(
      { type: only("function_call_output"), call_id: text(), output: either({ type: "string" }, list(responsesPart)) },
      "The answer to a call.",
    ),
    object({ type: only("reasoning"), "encrypted_content?": orNull(text()) }, "Thoughts, given back."),
    object({ type: only("item_reference"), id: text() }, "An item of a stored response."),
    object({ type: text() }, "Items of other types are kept where they are calls or outputs, else ignored."),
  ],
};

const newItems = list(responsesItem, `At most ${conversationItemsMax}.`);
const metadata: JsonSchema = {
  type: "object",
  description: `At most ${metadataLimits.pairs} pairs, whose keys have at most ${metadataLimits.keyLength} characters.`,
  additionalProperties: { type: "string", maxLength: metadataLimits.valueLength },
};

const responsesDetails: Details = {
  model,
  input: {
    prose: "A text, or the items of the conversation, oldest first.",
    inside: () => ({ anyOf: [{ type: "string" }, list(responsesItem)] }),
  },
  instructions: "Instructions before the conversation.",
  tools: {
    prose: "Functions, custom tools and namespaces of them. `web_search` enables the built-in search.",
    inside: listOf(
      object({
        type: text("`function`, `custom`, `namespace` or `web_search`; others are ignored."),
        "name?": toolName,
        "description?": orNull(text()),
        "parameters?": orNull(jsonSchema("A JSON Schema of a function's arguments.")),
      }),
    ),
  },
  tool_choice: {
    prose: '`"auto"` (default), `"none"`, `"required"`, or an object that names one of `tools`.',
    inside: () => toolChoice(object({ type: only("function", "custom"), name: text() })),
  },
  parallel_tool_calls: parallel,
  service_tier: tier,
  reasoning: {
    prose: "`effort`: how deeply hosted models think.",
    inside: objectOf(object({ "effort?": orNull(text()), "summary?": orNull(text()) })),
  },
  text: {
    prose: "`format`: the form of the answer, `text`, `json_object` or `json_schema`.",
    inside: objectOf(
      object({
        "format?": orNull(
          object({
            type: only("text", "json_object", "json_schema"),
            "name?": text(),
            "schema?": jsonSchema("A JSON Schema."),
            "strict?": orNull(flag()),
          }),
        ),
      }),
    ),
  },
  max_output_tokens: `${budget}. Default ${outputTokensDefault}, unless the operator configured another.`,
  max_tool_calls: "The maximum number of built-in searches.",
  stream,
  store: "`true` (default): later requests may continue from this response's id.",
  include: "Additional parts of the reply: `reasoning.encrypted_content`, `web_search_call.action.sources`.",
  previous_response_id: "A stored response that this one continues.",
  generate: "False: nothing is generated or charged. The request is checked, and its response can be continued.",
  conversation:
    "A conversation. Its items precede the input, and the input and the answer are added to it, even without `store`.",
  ...all("Accepted and repeated in the reply.", "prompt_cache_key", "safety_identifier", "user"),
  metadata: "Stored with the response and repeated in the reply.",
  truncation: "Accepted and repeated in the reply.",
  web_search: search,
  ...sampling,
  top_logprobs: "Accepted and repeated in the reply.",
  background: "True: the response is answered at once and goes on without its client. It must be stored.",
  prompt: "Refused: this server stores no prompts. Send `instructions` and `input`.",
  moderation: "Refused: this server moderates nothing.",
};

// ---------------------------------------------------------------- embeddings and reranking

const speechDetails: Details = {
  model,
  input: "The text to read.",
  voice: "A voice that the model has, by name; left out where it has only one.",
  response_format: "The format of the audio; nodes need not have all of them.",
  stream_format: "`sse`: events with audio in base64, `speech.audio.delta`, and `speech.audio.done` at the end.",
  speed: "1 is as the voice speaks usually.",
  instructions: "How to speak, for models that can be told.",
};

const embeddingsDetails: Details = {
  model,
  input: {
    prose: `One text or up to ${inputsMax}, or the same as lists of the model's tokens.`,
    inside: () => ({
      anyOf: [
        { type: "string", minLength: 1 },
        { type: "array", minItems: 1, maxItems: inputsMax, items: { type: "string", minLength: 1 } },
        { type: "array", minItems: 1, items: { type: "integer" } },
        { type: "array", minItems: 1, maxItems: inputsMax, items: { type: "array", items: { type: "integer" } } },
      ],
    }),
  },
  encoding_format: "The form of a vector: numbers, or its little-endian 32-bit floats in base64.",
  dimensions: "The length of a vector. Refused where the model produces another length.",
  user: "Ignored.",
};

const rerankDetails: Details = {
  model,
  query: "The text to compare the documents with.",
  documents: "Texts, or objects with `text`.",
  top_n: "How many of the best documents to return; by default all.",
  return_documents: "`true`: results include their documents' texts.",
};

// ---------------------------------------------------------------- putting together

/** Every field that the dialect checks, in its order; a field without prose is a mistake in this file. */
function bodyOf(
  checked: TSchema,
  details: Details,
  listed: readonly Pick<Model, "id" | "kind">[],
  kind: ModelKind = "chat",
): JsonSchema {
  const plain = plainSchema(checked);
  const properties = Object.entries(plain.properties!).map(([name, field]): [string, JsonSchema] => {
    const detail = details[name];
    if (detail === undefined) throw new Error(`the field ${name} is not described`);
    const { prose, inside } = typeof detail === "string" ? { prose: detail, inside: () => field } : detail;
    return [name, { ...inside(field), description: prose }];
  });
  const fields = Object.fromEntries(properties);
  fields["model"] = { type: "string", ...namesOf(listed, kind), description: model };
  return { ...plain, properties: fields, description: "Fields that are not listed are ignored." };
}

/** Without listed models, any name will do. */
function namesOf(listed: readonly Pick<Model, "id" | "kind">[], kind: ModelKind): JsonSchema {
  const ids = listed.filter((model) => model.kind === kind).map(({ id }) => id);
  return ids.length === 0 ? {} : { enum: ids };
}

/** The bodies under their names among the description's schemas; `models`: the listed ones. */
export function requestSchemas(models: readonly Model[]): Readonly<Record<string, JsonSchema>> {
  const chat = bodyOf(chatCompletionsBody, chatDetails, models);
  const messages = bodyOf(messagesBody, messagesDetails, models);
  const responses = bodyOf(responsesBody, responsesDetails, models);
  const { input: _, stream: __, conversation: ___, ...compacted } = responses.properties!;
  return {
    ChatCompletionsRequest: chat,
    CompletionsRequest: bodyOf(completionsBody, completionsDetails, models),
    ChatTool: object({
      type: only("function"),
      function: object({
        name: toolName,
        "description?": text(),
        "parameters?": jsonSchema("A JSON Schema of its arguments."),
        "strict?": orNull(flag()),
      }),
    }),
    MessagesRequest: messages,
    ResponsesRequest: responses,
    CompactRequest: {
      ...responses,
      properties: { ...compacted, input: responses.properties!["input"]! },
      required: ["model"],
      description: "As POST /v1/responses; never streamed.",
    },
    CreateConversationRequest: object({ "items?": orNull(newItems), "metadata?": orNull(metadata) }),
    UpdateConversationRequest: object({ metadata: orNull(metadata) }),
    CreateItemsRequest: object({ items: newItems }),
    EmbeddingsRequest: bodyOf(embeddingsBody, embeddingsDetails, models, "embedding"),
    RerankRequest: bodyOf(rerankBody, rerankDetails, models, "rerank"),
    SpeechRequest: bodyOf(speechBody, speechDetails, models, "speech"),
    TokenizeRequest: {
      type: "object",
      properties: {
        text: text(`The text, at most ${tokenizeTextMaxBytes} bytes. Either \`text\` or \`messages\`.`),
        messages: described(
          chat.properties!["messages"]!,
          "Messages as on chat-completions, with `tools` and the like.",
        ),
        model: { type: "string", enum: models.map(({ id }) => id), description: "Whose tokens are counted." },
        return_tokens: flag("`true`: the tokens' ids too, of texts up to 256 KiB."),
      },
      required: [],
      anyOf: [{ required: ["text"] }, { required: ["messages"] }],
    },
  };
}
