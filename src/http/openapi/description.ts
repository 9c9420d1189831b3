// The API as one OpenAPI 3.1 description, made from what the program itself uses: the schemas that check bodies, the
// catalog, and the table of refusals.
import { version } from "../../../package.json" with { type: "json" };
import { type Catalog, listedModels } from "../../core/catalog.ts";
import { chatCompletions } from "../../dialects/chat/chat-completions.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { messages } from "../../dialects/messages/messages.ts";
import type {
  JsonSchema,
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  Reply,
} from "../../docs/openapi-document.ts";
import { bodyMaxBytes, floodRequestsMax, inputRequestsPerMinuteDefault } from "../../core/limits.ts";
import { type RefusalName, refusals, refuse } from "../../core/refusals.ts";
import { codeSamples } from "./code-samples.ts";
import { chatEvents, completionsEvents, fimEvents, messagesEvents, replySchemas, responsesEvents } from "./replies.ts";
import { requestSchemas } from "./requests.ts";
import { ref, text } from "./shape.ts";

export type ApiFacts = Readonly<{
  catalog: Catalog;
  /** {base_url}, without a trailing slash. */
  baseUrl: string;
}>;

const json = "application/json";
const plainText = "text/plain";

// ---------------------------------------------------------------- errors

const ofEveryRoute = [
  "invalid_api_key",
  "address_not_allowed",
  "quota_unverified",
  "internal",
] as const satisfies readonly RefusalName[];
const ofBodies = ["malformed", "unreadable", "body_too_large", "unsupported_encoding"] as const;
const ofModels = ["unknown_model"] as const;
const ofGeneration = [
  ...ofEveryRoute,
  ...ofBodies,
  ...ofModels,
  "context_length_exceeded",
  "context_budget_exceeded",
  "too_many_requests",
  "rate_limited",
  "quota_exceeded",
  "budget_over_quota",
  "key_quota_exceeded",
  "budget_over_key_quota",
  "end_user_quota_exceeded",
  "budget_over_end_user_quota",
  "member_quota_exceeded",
  "budget_over_member_quota",
  "busy",
  "busy_unreachable",
  "busy_unlisted",
  "deadline_unmet",
  "node_failed",
  "model_unreachable",
  "model_unlisted",
  "model_unavailable",
  "model_paused",
  "model_not_in_plan",
  "model_not_for_key",
  "answer_misfit",
  "not_called",
  "stopping",
] as const satisfies readonly RefusalName[];
const ofCounts = [...ofEveryRoute, ...ofBodies, ...ofModels, "busy"] as const satisfies readonly RefusalName[];
const ofReferences = ["previous_response_not_found"] as const satisfies readonly RefusalName[];

const retryAfter = {
  "retry-after": {
    description: "Seconds after which it may succeed, where waiting helps.",
    schema: { type: "integer" },
  },
} as const;
const requestIdHeader = {
  "x-request-id": {
    description: "The request's id, which is also the id of its row on the usage page.",
    schema: text(),
  },
} as const;

/** One reply for each status of the refusals, with their bodies as examples. */
function errorReplies(
  dialect: Dialect,
  names: readonly RefusalName[],
  schema: JsonSchema = ref(dialect === messages ? "MessagesError" : "Error"),
): Readonly<Record<string, Reply>> {
  const replies: Record<string, Reply> = {};
  for (const [status, group] of Object.entries(Object.groupBy(names, (name) => refusals[name].status))) {
    const examples = group!.map((name): [string, { value: unknown }] => [name, { value: errorExample(dialect, name) }]);
    replies[status] = {
      description: group!.map((name) => meanings[name]).join(" "),
      headers: { ...requestIdHeader, ...(status === "429" ? retryAfter : {}) },
      content: { [json]: { schema, examples: Object.fromEntries(examples) } },
    };
  }
  return replies;
}

const errorExample = (dialect: Dialect, name: RefusalName): unknown =>
  JSON.parse(
    dialect.errorBody(refuse(name, { ...exampleDetail, reason: reasons[name] ?? "" }), "req_0000000000000000"),
  );

/** Messages of refusals without a fixed one. */
const reasons: Readonly<Partial<Record<RefusalName, string>>> = {
  malformed: 'max_tokens must be a whole number, is "many"',
  unreadable: "The request body is not valid JSON: Unexpected EOF",
  not_found: "Response with id 'resp_0' not found.",
  busy: "waited_too_long",
  busy_unreachable: "nodes_unreachable",
  busy_unlisted: "not_listed",
  model_unreachable: "nodes_unreachable",
  model_unlisted: "not_listed",
};

const exampleDetail = {
  model: "core-9",
  tokens: 300_000,
  maximum: 262_144,
  id: "resp_0",
  seconds: 17,
  site_url: "https://llm.example.org",
  spendable: 1_205,
  requested: 4_096,
  used: 3,
  limit: 3,
  resets_at: 1_795_392_000,
  key: "build-bot",
  period: "day",
  address: "192.0.2.7",
} as const;

/** When each happens, in a sentence. */
const meanings: Readonly<Record<RefusalName, string>> = {
  invalid_api_key: "The key is missing or wrong.",
  malformed: "A field has an invalid value.",
  unreadable: "The body is not JSON.",
  unknown_model: "There is no such model.",
  model_not_in_plan: "The account's plan does not include this model.",
  model_not_for_key: "The key is limited to other models.",
  address_not_allowed: "The key is limited to other addresses.",
  context_budget_exceeded: "The input and the output budget together exceed the model's context window.",
  context_length_exceeded: "The input exceeds the model's context window.",
  previous_response_not_found: "The earlier response is not stored here.",
  threads_not_kept: "Message threads are not kept here.",
  not_found: "There is nothing with this id.",
  body_too_large: `The body is larger than ${bodyMaxBytes} bytes.`,
  file_too_large: "The file, or the account's files together, would be larger than they may be.",
  storage_full: "The server has no room for the file; nothing of it was kept.",
  text_too_long: "The text is too long to count.",
  unsupported_encoding: "The body has a compression other than gzip, br, zstd or deflate.",
  upgrade_required: "The request asks for another protocol than a WebSocket of version 13.",
  invalid_stream_id: "The `stream_id` of a WebSocket's message has other characters than names may have.",
  websocket_stream_limit_reached: "The WebSocket has as many streams as one may have.",
  websocket_connection_limit_reached: "The WebSocket was open for an hour.",
  rate_limited: "The plan or the API key has used the requests or tokens of its minute.",
  too_many_requests: `The account made more requests in a minute than its plan allows: ${floodRequestsMax}, unless the plan sets another number.`,
  quota_exceeded: "The output budget exceeds the balance.",
  budget_over_quota: "The output budget exceeds the remaining balance; `max_tokens` would fit.",
  key_quota_exceeded: "The output budget exceeds what the key may use per day or month.",
  budget_over_key_quota: "The output budget exceeds what the key may still use; `max_tokens` would fit.",
  end_user_quota_exceeded: "The output budget exceeds what each end user of the key may use per day.",
  budget_over_end_user_quota: "The output budget exceeds what the end user may still use; `max_tokens` would fit.",
  member_quota_exceeded: "The output budget exceeds what the member of the team may use per day or month.",
  budget_over_member_quota: "The output budget exceeds what the member may still use; `max_tokens` would fit.",
  coder_quota_reached: "The coder calls of this window are used up.",
  busy: "All nodes of the model are full, and the request's wait ran out.",
  busy_unreachable: "No node for this model of the catalog can be reached.",
  deadline_unmet: "The line is longer than the time that `x-deadline-ms` allows; nothing was charged.",
  busy_unlisted: "No node lists the model behind this one of the catalog.",
  model_unreachable: "No node with this model can be reached; nothing was charged.",
  model_unlisted: "Nodes answer, but none lists the model; nothing was charged.",
  quota_unverified: "The balance cannot be read or written; nothing was charged.",
  node_failed: "The model stopped answering; nothing was charged.",
  model_paused: "The model's nodes are paused for maintenance, and the request waited for the maximum time.",
  model_unavailable: "The model's node runs another model; nothing was charged.",
  answer_misfit: "The answer did not match the requested format; only what a stream had already delivered was charged.",
  not_called: "The model did not make the required tool call, even after a second request; nothing was charged.",
  stopping: "The server is stopping.",
  internal: "An error in the server.",
};

// ---------------------------------------------------------------- operations

const body = (schema: JsonSchema, examples: Readonly<Record<string, unknown>>): Operation["requestBody"] => ({
  required: true,
  content: {
    [json]: {
      schema,
      examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
    },
  },
});

function reply(description: string, schema: JsonSchema, streams = false): Reply {
  const stream: Readonly<Record<string, MediaType>> = { "text/event-stream": { schema: { type: "string" } } };
  return { description, headers: requestIdHeader, content: { [json]: { schema }, ...(streams ? stream : {}) } };
}

const plainReply = (description: string): Reply => ({ description, content: { [plainText]: { schema: text() } } });

const readiness = (description: string): Reply => ({
  description,
  content: {
    [json]: {
      schema: {
        type: "object",
        required: ["ready"],
        properties: {
          ready: { type: "boolean" },
          reason: { type: "string" },
          waits: {
            type: "array",
            items: { type: "string" },
            description: "What keeps some requests waiting while all others are served.",
          },
        },
      },
    },
  },
});

const idOf = (what: string): Parameter => ({
  name: "id",
  in: "path",
  required: true,
  description: `Id of the ${what}.`,
  schema: { type: "string", minLength: 1 },
});

const query = (name: string, description: string, schema: JsonSchema): Parameter => ({
  name,
  in: "query",
  required: false,
  description,
  schema,
});

type Operated = Omit<Operation, "operationId" | "tags" | "summary" | "description">;

const operation = (id: string, tag: string, summary: string, description: string, rest: Operated): Operation => ({
  operationId: id,
  tags: [tag],
  summary,
  description,
  ...rest,
});

const hello = [{ role: "user", content: "Say hello" }];
const forecastParameters = {
  type: "object",
  properties: { place: { type: "string" } },
  required: ["place"],
  additionalProperties: false,
};

function completions(): OpenApiDocument["paths"] {
  return {
    "/v1/chat/completions": {
      post: operation(
        "createChatCompletion",
        "Chat completions",
        "Answer a conversation",
        "The dialect of most client libraries. Reserves the output budget from the balance and charges the actual usage.",
        {
          requestBody: body(ref("ChatCompletionsRequest"), {
            plain: { model: "core-3", messages: hello },
            tools: {
              model: "core-3",
              messages: hello,
              tools: [{ type: "function", function: { name: "forecast", parameters: forecastParameters } }],
            },
          }),
          responses: {
            "200": reply("The answer, or its events.", ref("ChatCompletion"), true),
            ...errorReplies(chatCompletions, [...ofGeneration, "coder_quota_reached"]),
          },
          "x-events": chatEvents,
        },
      ),
    },
    "/v1/completions": {
      post: operation(
        "createCompletion",
        "Completions",
        "Continue a text",
        "For editors and evaluations: the model gets the prompt unchanged, without a chat template. Reserves the output " +
          "budget from the balance and charges the actual usage.",
        {
          requestBody: body(ref("CompletionsRequest"), {
            plain: { model: "core-3", prompt: "Once upon a time", max_tokens: 32 },
          }),
          responses: {
            "200": reply("The text, or its events.", ref("Completion"), true),
            ...errorReplies(chatCompletions, ofGeneration),
          },
          "x-events": completionsEvents,
        },
      ),
    },
    "/v1/fim/completions": {
      post: operation(
        "createFimCompletion",
        "Completions",
        "Fill in the middle",
        "The same for editors and libraries of Mistral's Codestral: a completion whose answer has the form of a chat. " +
          "`echo` and `logprobs` are ignored, and `max_tokens` defaults to 1,024.",
        {
          requestBody: body(ref("CompletionsRequest"), {
            plain: { model: "core-3", prompt: "def add(a, b):", suffix: "print(add(1, 2))", max_tokens: 32 },
          }),
          responses: {
            "200": reply("The text between the two, or its events.", ref("FimCompletion"), true),
            ...errorReplies(chatCompletions, ofGeneration),
          },
          "x-events": fimEvents,
        },
      ),
    },
  };
}

function answers(): OpenApiDocument["paths"] {
  return {
    "/v1/messages": {
      post: operation(
        "createMessage",
        "Messages",
        "Answer a conversation",
        "The dialect of Anthropic's client libraries and Claude Code. The key goes into `x-api-key` or `Authorization`.",
        {
          requestBody: body(ref("MessagesRequest"), { plain: { model: "core-3", max_tokens: 1024, messages: hello } }),
          responses: {
            "200": reply("The message, or its events.", ref("Message"), true),
            ...errorReplies(messages, [...ofGeneration, "coder_quota_reached", "threads_not_kept"]),
          },
          "x-events": messagesEvents,
        },
      ),
    },
    "/v1/responses": {
      post: operation(
        "createResponse",
        "Responses",
        "Answer input items",
        "The dialect of Codex and of OpenAI's newer libraries. Responses are stored unless `store` is false. A GET request that asks for a WebSocket opens one: each message with these fields and the type `response.create` is such a request, and its events come as messages.",
        {
          requestBody: body(ref("ResponsesRequest"), { plain: { model: "core-3", input: "Say hello" } }),
          responses: {
            "200": reply("The response, or its events.", ref("Response"), true),
            ...errorReplies(chatCompletions, [...ofGeneration, ...ofReferences, "not_found"]),
          },
          "x-events": responsesEvents,
        },
      ),
    },
    "/v1/responses/compact": {
      post: operation(
        "compactResponse",
        "Responses",
        "Summarize a conversation",
        "Returns the user's messages and one sealed item, which replace the whole conversation in later requests. Charged like an answer.",
        {
          requestBody: body(ref("CompactRequest"), { plain: { model: "core-3", input: hello } }),
          responses: {
            "200": reply("The items.", ref("Compaction")),
            ...errorReplies(chatCompletions, [...ofGeneration, ...ofReferences]),
          },
        },
      ),
    },
  };
}

/** For requests that hold no conversation. */
const ofInputs = [
  ...ofEveryRoute,
  ...ofBodies,
  ...ofModels,
  "context_length_exceeded",
  "too_many_requests",
  "rate_limited",
  "quota_exceeded",
  "busy",
  "busy_unreachable",
  "busy_unlisted",
  "node_failed",
  "model_unreachable",
  "model_unlisted",
  "model_unavailable",
  "model_paused",
  "model_not_in_plan",
  "stopping",
] as const satisfies readonly RefusalName[];

function withInputs(): OpenApiDocument["paths"] {
  return {
    "/v1/embeddings": {
      post: operation(
        "createEmbedding",
        "Embeddings and reranking",
        "Vectors of texts",
        `In OpenAI's form, for models of the kind \`embedding\`. An account may make ${inputRequestsPerMinuteDefault} such requests a minute unless the operator says otherwise; they are counted apart from all others, together with reranking.`,
        {
          requestBody: body(ref("EmbeddingsRequest"), {
            plain: { model: "bge-m3", input: ["What is a toll gate?", "A gate where a fee is paid."] },
          }),
          responses: {
            "200": reply("A vector of each input.", ref("Embeddings")),
            ...errorReplies(chatCompletions, ofInputs),
          },
        },
      ),
    },
    "/v1/rerank": ranking("rerank", "In the form of Jina, Cohere and vLLM, for models of the kind `rerank`."),
    "/v2/rerank": ranking("rerankV2", "The same, at the address of Cohere's `ClientV2`."),
  };
}

const recording: JsonSchema = {
  type: "object",
  required: ["file", "model"],
  properties: {
    file: { type: "string", description: "A recording in a format that the model reads, of up to 200 MiB." },
    model: { type: "string", description: "A model of the kind `transcription`." },
    language: { type: "string", description: "What is spoken, as in ISO 639-1; not for translations." },
    prompt: { type: "string", description: "Words to expect." },
    response_format: { type: "string", enum: ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"] },
    temperature: { type: "number", minimum: 0, maximum: 1 },
    stream: {
      type: "boolean",
      description: "Events `transcript.text.delta`, and `transcript.text.done` at the end.",
    },
    user: { type: "string", description: "The end user, for keys that may name one." },
  },
};

/** For requests to models that hear or speak. */
function voices(): OpenApiDocument["paths"] {
  const [tag, ofVoices] = [
    "Voices",
    errorReplies(
      chatCompletions,
      ofInputs.filter((name) => name !== "context_length_exceeded"),
    ),
  ];
  const uploads = errorReplies(chatCompletions, [...ofInputs, "file_too_large", "storage_full", "not_found"]);
  const heard = (operationId: string, summary: string, text: string) => ({
    post: operation(
      operationId,
      tag,
      summary,
      `${text} Paid by the second of audio. The model's nodes decide which forms of a reply there are; further fields are passed on to them.`,
      {
        requestBody: { required: true, content: { "multipart/form-data": { schema: recording } } },
        responses: {
          "200": {
            description: "The text in the form that was asked for.",
            headers: requestIdHeader,
            content: {
              [json]: { schema: { type: "object" } },
              "text/plain": { schema: { type: "string" } },
              "text/event-stream": { schema: { type: "string" } },
            },
          },
          ...uploads,
        },
      },
    ),
  });
  return {
    "/v1/audio/transcriptions": heard(
      "createTranscription",
      "Write down a recording",
      "In the language that is spoken.",
    ),
    "/v1/audio/translations": heard("createTranslation", "Write down a recording in English", "From any language."),
    "/v1/audio/speech": {
      post: operation(
        "createSpeech",
        tag,
        "Read a text aloud",
        "Audio comes while it is spoken. Paid by the character.",
        {
          requestBody: body(ref("SpeechRequest"), {
            plain: { model: "tts-1", voice: "alloy", input: "A toll gate asks for a coin." },
          }),
          responses: {
            "200": {
              description: "Audio in the format that was asked for, or events.",
              headers: requestIdHeader,
              content: {
                "audio/*": { schema: { type: "string" } },
                "text/event-stream": { schema: { type: "string" } },
              },
            },
            ...ofVoices,
          },
        },
      ),
    },
  };
}

function ranking(operationId: string, description: string): OpenApiDocument["paths"][string] {
  return {
    post: operation(operationId, "Embeddings and reranking", "Order documents by a query", description, {
      requestBody: body(ref("RerankRequest"), {
        plain: {
          model: "bge-reranker-v2-m3",
          query: "What is a toll gate?",
          documents: ["A gate where a fee is paid.", "A kind of bread."],
          top_n: 1,
        },
      }),
      responses: {
        "200": reply("The best documents, best first.", ref("Ranking")),
        ...errorReplies(chatCompletions, ofInputs),
      },
    }),
  };
}

const ofPages: readonly Parameter[] = [
  query("limit", "Items on a page, 20 unless given.", { type: "integer", minimum: 1, maximum: 100 }),
  query("order", "`desc` unless given.", { type: "string", enum: ["asc", "desc"] }),
  query("after", "Id of the last item of the page before.", { type: "string" }),
];

const showsResponse =
  "Exactly as it was sent; a background response as it is now. Its events are kept for 10 minutes after its end, by the " +
  "gateway that ran it.";

function stored(): OpenApiDocument["paths"] {
  const refused = errorReplies(chatCompletions, [...ofEveryRoute, "malformed", "not_found"]);
  const { 400: _, ...refusedById } = refused;
  return {
    "/v1/responses/{id}": {
      get: operation("getResponse", "Responses", "A stored response", showsResponse, {
        parameters: [
          idOf("response"),
          query("stream", "`true` streams the events of a background response.", {
            type: "string",
            enum: ["true", "false"],
          }),
          query("starting_after", "The number of the last event that was received.", { type: "integer", minimum: 0 }),
        ],
        responses: { "200": reply("The response.", ref("Response")), ...refused },
      }),
      delete: operation(
        "deleteResponse",
        "Responses",
        "Delete a stored response",
        "Later requests cannot continue from it.",
        {
          parameters: [idOf("response")],
          responses: { "200": reply("It is deleted.", ref("ResponseDeleted")), ...refusedById },
        },
      ),
    },
    "/v1/responses/{id}/input_items": {
      get: operation(
        "listInputItems",
        "Responses",
        "The input of a stored response",
        "Its items, newest first unless `order` is `asc`.",
        {
          parameters: [idOf("response"), ...ofPages],
          responses: { "200": reply("A page.", ref("InputItems")), ...refused },
        },
      ),
    },
    "/v1/responses/{id}/cancel": {
      post: operation(
        "cancelResponse",
        "Responses",
        "Cancel a response",
        "Ends a background response. What came until then is stored and charged. To stop any other, close its connection.",
        {
          parameters: [idOf("response")],
          responses: { "200": reply("The response.", ref("Response")), ...refused },
        },
      ),
    },
  };
}

function files(): OpenApiDocument["paths"] {
  const [tag, file] = ["Files", idOf("file")];
  const refused = errorReplies(chatCompletions, [...ofEveryRoute, "malformed"], errorOfEither);
  const ofUploads = ["unreadable", "file_too_large", "storage_full", "busy"] as const;
  const { 400: _, ...refusedById } = errorReplies(chatCompletions, [...ofEveryRoute, "not_found"], errorOfEither);
  const uploaded: JsonSchema = {
    type: "object",
    required: ["file", "purpose"],
    properties: {
      file: { type: "string" },
      purpose: { type: "string", enum: ["batch", "user_data", "vision"] },
      "expires_after[anchor]": { type: "string", enum: ["created_at"] },
      "expires_after[seconds]": { type: "integer", minimum: 3_600, maximum: 2_592_000 },
    },
  };
  const pages: readonly Parameter[] = [
    query("limit", "Files on a page, 10000 unless given.", { type: "integer", minimum: 1, maximum: 10_000 }),
    ...ofPages.slice(1),
    query("purpose", "Only files of this purpose.", { type: "string" }),
  ];
  return {
    "/v1/files": {
      get: operation("listFiles", tag, "The account's files", "Newest first unless `order` is `asc`.", {
        parameters: pages,
        responses: { "200": reply("A page.", ref("Files")), ...refused },
      }),
      post: operation(
        "createFile",
        tag,
        "Upload a file",
        "Requests name images, PDFs and text files by their ids. With the header `anthropic-version`, all these routes speak " +
          "in Anthropic's form; clients that send only `x-api-key` get errors in it.",
        {
          requestBody: { required: true, content: { "multipart/form-data": { schema: uploaded } } },
          responses: {
            "200": reply("The file.", ref("File")),
            ...errorReplies(chatCompletions, [...ofEveryRoute, "malformed", ...ofUploads], errorOfEither),
          },
        },
      ),
    },
    "/v1/files/{id}": {
      get: operation("getFile", tag, "A file", "Without its content.", {
        parameters: [file],
        responses: { "200": reply("The file.", ref("File")), ...refusedById },
      }),
      delete: operation("deleteFile", tag, "Delete a file", "Its content goes at once.", {
        parameters: [file],
        responses: { "200": reply("It is deleted.", ref("FileDeleted")), ...refusedById },
      }),
    },
    "/v1/files/{id}/content": {
      get: operation("getFileContent", tag, "The content of a file", "Always as a download.", {
        parameters: [file],
        responses: {
          "200": {
            description: "Its bytes.",
            headers: requestIdHeader,
            content: { "application/octet-stream": { schema: { type: "string" } } },
          },
          ...refusedById,
        },
      }),
    },
  };
}

const metadata: JsonSchema = { type: ["object", "null"], additionalProperties: { type: "string" } };
const batchLine = {
  custom_id: "one",
  params: { model: "core-3", max_tokens: 50, messages: hello },
};

function batches(): OpenApiDocument["paths"] {
  const tag = "Batches";
  const refused = errorReplies(chatCompletions, [...ofEveryRoute, "malformed"], errorOfEither);
  const ofOne = errorReplies(chatCompletions, [...ofEveryRoute, "malformed", "not_found"], errorOfEither);
  const { 400: _, ...refusedById } = ofOne;
  const endpoints = ["chat/completions", "completions", "messages", "responses", "embeddings", "rerank"];
  const created: JsonSchema = {
    type: "object",
    required: ["input_file_id", "endpoint", "completion_window"],
    properties: {
      input_file_id: { type: "string" },
      endpoint: { type: "string", enum: endpoints.map((path) => `/v1/${path}`) },
      completion_window: { type: "string", description: "Hours or days, up to `7d`.", examples: ["24h"] },
      metadata,
      output_expires_after: {
        type: ["object", "null"],
        required: ["anchor", "seconds"],
        properties: {
          anchor: { type: "string", enum: ["created_at"] },
          seconds: { type: "integer", minimum: 3_600, maximum: 2_592_000 },
        },
      },
    },
  };
  const given = { input_file_id: "file-0", endpoint: "/v1/chat/completions", completion_window: "24h" };
  return {
    "/v1/batches": {
      get: operation("listBatches", tag, "The account's batches", "Newest first.", {
        parameters: ofPages.filter(({ name }) => name !== "order"),
        responses: { "200": reply("A page.", ref("Batches")), ...refused },
      }),
      post: operation(
        "createBatch",
        tag,
        "Run the requests of a file",
        "A line for each: `custom_id`, `method`, `url` and `body`. They run at the lowest priority, in any order.",
        {
          requestBody: body(created, { plain: given }),
          responses: {
            "200": reply("The batch.", ref("Batch")),
            ...errorReplies(chatCompletions, [...ofEveryRoute, ...ofBodies, "not_found", "busy"], errorOfEither),
          },
        },
      ),
    },
    "/v1/batches/{id}": {
      get: operation("getBatch", tag, "A batch", "With its progress, and why it waits.", {
        parameters: [idOf("batch")],
        responses: { "200": reply("The batch.", ref("Batch")), ...refusedById },
      }),
    },
    "/v1/batches/{id}/cancel": {
      post: operation("cancelBatch", tag, "Cancel a batch", "What was done stays, and is charged.", {
        parameters: [idOf("batch")],
        responses: { "200": reply("The batch.", ref("Batch")), ...ofOne },
      }),
    },
    ...messageBatches(tag),
  };
}

const messageRequests: JsonSchema = {
  type: "array",
  minItems: 1,
  items: {
    type: "object",
    required: ["custom_id", "params"],
    properties: {
      custom_id: {
        type: "string",
        description: "Letters, digits, dashes and underscores.",
        minLength: 1,
        maxLength: 64,
      },
      params: ref("MessagesRequest"),
    },
  },
};

function messageBatches(tag: string): OpenApiDocument["paths"] {
  const refused = errorReplies(messages, [...ofEveryRoute, "malformed"]);
  const ofOne = errorReplies(messages, [...ofEveryRoute, "malformed", "not_found"]);
  const { 400: _, ...refusedById } = ofOne;
  const parameters = [idOf("batch")];
  const created: JsonSchema = { type: "object", required: ["requests"], properties: { requests: messageRequests } };
  return {
    "/v1/messages/batches": {
      get: operation("listMessageBatches", tag, "The account's batches of messages", "Newest first.", {
        parameters: [
          query("limit", "Batches on a page, 20 unless given.", { type: "integer", minimum: 1, maximum: 1_000 }),
          query("after_id", "The page after this batch.", { type: "string" }),
          query("before_id", "The page before this batch.", { type: "string" }),
        ],
        responses: { "200": reply("A page.", ref("MessageBatches")), ...refused },
      }),
      post: operation("createMessageBatch", tag, "Run requests for messages", "In Anthropic's form, for a day.", {
        requestBody: body(created, { plain: { requests: [batchLine] } }),
        responses: {
          "200": reply("The batch.", ref("MessageBatch")),
          ...errorReplies(messages, [...ofEveryRoute, ...ofBodies, "file_too_large", "storage_full", "busy"]),
        },
      }),
    },
    "/v1/messages/batches/{id}": {
      get: operation("getMessageBatch", tag, "A batch of messages", "With its progress.", {
        parameters,
        responses: { "200": reply("The batch.", ref("MessageBatch")), ...refusedById },
      }),
      delete: operation(
        "deleteMessageBatch",
        tag,
        "Delete a batch of messages",
        "Once it has ended, with its results.",
        {
          parameters,
          responses: { "200": reply("It is deleted.", ref("MessageBatchDeleted")), ...ofOne },
        },
      ),
    },
    "/v1/messages/batches/{id}/cancel": {
      post: operation("cancelMessageBatch", tag, "Cancel a batch of messages", "What was done stays, and is charged.", {
        parameters,
        responses: { "200": reply("The batch.", ref("MessageBatch")), ...refusedById },
      }),
    },
    "/v1/messages/batches/{id}/results": {
      get: operation(
        "getMessageBatchResults",
        tag,
        "What its requests came to",
        "A line for each, once it has ended.",
        {
          parameters,
          responses: {
            "200": {
              description: "The results.",
              headers: requestIdHeader,
              content: { "application/x-jsonl": { schema: { type: "string" } } },
            },
            ...refusedById,
          },
        },
      ),
    },
  };
}

function conversations(): OpenApiDocument["paths"] {
  const written = errorReplies(chatCompletions, [...ofEveryRoute, ...ofBodies, "not_found", "busy"]);
  const { 404: _, ...refusedAtFirst } = written;
  const { 400: malformed, ...refusedById } = errorReplies(chatCompletions, [
    ...ofEveryRoute,
    ...(["malformed", "not_found", "busy"] as const),
  ]);
  const tag = "Conversations";
  const conversation = idOf("conversation");
  const found = { "200": reply("The conversation.", ref("Conversation")) };
  const hello = { items: [{ role: "user", content: "Say hello" }] };
  return {
    "/v1/conversations": {
      post: operation(
        "createConversation",
        tag,
        "Begin a conversation",
        "Requests continue it by its id in `conversation` of `POST /v1/responses`. It is kept like a stored response: for the " +
          "same time after its last addition, and within the account's share, from which the oldest are deleted first.",
        {
          requestBody: body(ref("CreateConversationRequest"), { plain: { ...hello, metadata: { topic: "demo" } } }),
          responses: { ...found, ...refusedAtFirst },
        },
      ),
    },
    "/v1/conversations/{id}": {
      get: operation("getConversation", tag, "A conversation", "Without its items.", {
        parameters: [conversation],
        responses: { ...found, ...refusedById },
      }),
      post: operation("updateConversation", tag, "Change its metadata", "Replaces all of it.", {
        parameters: [conversation],
        requestBody: body(ref("UpdateConversationRequest"), { plain: { metadata: { topic: "other" } } }),
        responses: { ...found, ...written },
      }),
      delete: operation(
        "deleteConversation",
        tag,
        "Delete a conversation",
        "With its items. A running answer still arrives and is added nowhere.",
        {
          parameters: [conversation],
          responses: { "200": reply("It is deleted.", ref("ConversationDeleted")), ...refusedById },
        },
      ),
    },
    "/v1/conversations/{id}/items": {
      get: operation("listConversationItems", tag, "Its items", "Newest first unless `order` is `asc`.", {
        parameters: [conversation, ...ofPages],
        responses: { "200": reply("A page.", ref("InputItems")), 400: malformed!, ...refusedById },
      }),
      post: operation("createConversationItems", tag, "Add items", "At the end. Items without an id get one.", {
        parameters: [conversation],
        requestBody: body(ref("CreateItemsRequest"), { plain: hello }),
        responses: { "200": reply("What was added.", ref("InputItems")), ...written },
      }),
    },
    "/v1/conversations/{id}/items/{item_id}": {
      get: operation("getConversationItem", tag, "An item", "In the form of the list.", {
        parameters: [conversation, { ...idOf("item"), name: "item_id" }],
        responses: { "200": reply("The item.", ref("ConversationItem")), ...refusedById },
      }),
      delete: operation("deleteConversationItem", tag, "Delete an item", "The others stay.", {
        parameters: [conversation, { ...idOf("item"), name: "item_id" }],
        responses: { ...found, ...refusedById },
      }),
    },
  };
}

function counting(): OpenApiDocument["paths"] {
  return {
    "/v1/tokenize": {
      post: operation("tokenize", "Counting tokens", "Count a text or messages", "Free, and not limited per minute.", {
        requestBody: body(ref("TokenizeRequest"), { plain: { model: "core-3", text: "How many tokens is this?" } }),
        responses: {
          "200": reply("The count.", ref("Tokenization")),
          ...errorReplies(chatCompletions, [...ofCounts, "text_too_long"]),
        },
      }),
    },
    "/v1/quote": {
      post: operation(
        "quote",
        "Counting tokens",
        "Quote a request",
        "Takes the body of any request and returns its input tokens, its maximum cost, its place in line and when to expect its first token. The body's fields show the dialect; where they do not, `endpoint` names it. Free, and nothing runs.",
        {
          parameters: [
            query("endpoint", "The endpoint that the body is for, such as `/v1/messages`.", { type: "string" }),
          ],
          requestBody: body(ref("ChatCompletionsRequest"), { plain: { model: "core-3", messages: hello } }),
          responses: {
            "200": reply("The quote.", ref("Quote")),
            ...errorReplies(chatCompletions, [...ofCounts, "model_not_in_plan", "model_not_for_key"]),
          },
        },
      ),
    },
    "/v1/messages/count_tokens": {
      post: operation(
        "countMessageTokens",
        "Counting tokens",
        "Count the input of a message",
        "Takes the body of `POST /v1/messages`. Free, and not limited per minute.",
        {
          requestBody: body(ref("MessagesRequest"), { plain: { model: "core-3", messages: hello } }),
          responses: {
            "200": reply("The count.", ref("InputTokens")),
            ...errorReplies(messages, [...ofCounts, "threads_not_kept"]),
          },
        },
      ),
    },
    "/v1/responses/input_tokens": {
      post: operation(
        "countResponseTokens",
        "Counting tokens",
        "Count the input of a response",
        "Takes the body of `POST /v1/responses`. Free, and not limited per minute.",
        {
          requestBody: body(ref("ResponsesRequest"), { plain: { model: "core-3", input: "Say hello" } }),
          responses: {
            "200": reply("The count.", ref("ResponseInputTokens")),
            ...errorReplies(chatCompletions, [...ofCounts, ...ofReferences, "not_found"]),
          },
        },
      ),
    },
  };
}

/** Where the path names no dialect, the client's headers decide the form of an error. */
const errorOfEither: JsonSchema = { anyOf: [ref("Error"), ref("MessagesError")] };

function others(models: readonly string[]): OpenApiDocument["paths"] {
  return {
    "/v1/models": {
      get: operation(
        "listModels",
        "Models",
        "List the models",
        "The models that the plan and the key may use, in one document that the libraries of all dialects read as their own " +
          "list. Clients that send `anthropic-version`, or only `x-api-key`, get errors in the form of messages.",
        {
          parameters: [
            query("limit", "Models on a page.", { type: "integer", minimum: 1, maximum: 1000 }),
            query("after_id", "The page after this model.", { type: "string" }),
            query("before_id", "The page before this model.", { type: "string" }),
          ],
          responses: {
            "200": reply("The models.", ref("ModelList")),
            ...errorReplies(chatCompletions, ofEveryRoute, errorOfEither),
          },
        },
      ),
    },
    "/v1/models/{id}": {
      get: operation("getModel", "Models", "One model", "An entry of the list.", {
        parameters: [{ ...idOf("model"), schema: { type: "string", minLength: 1, examples: models.slice(0, 1) } }],
        responses: {
          "200": reply("The model.", ref("Model")),
          ...errorReplies(
            chatCompletions,
            [...ofEveryRoute, "not_found", "model_not_in_plan", "model_not_for_key"],
            errorOfEither,
          ),
        },
      }),
    },
    "/healthz": {
      get: operation("health", "Health", "Whether the process is alive", "Needs no key.", {
        security: [],
        responses: { "200": plainReply("It lives.") },
      }),
    },
    "/readyz": {
      get: operation("readiness", "Health", "Whether it accepts requests", "Needs no key.", {
        security: [],
        responses: {
          "200": readiness("It does."),
          "503": readiness("It is stopping, no node is available, or its ledger is wrong: `reason` says which."),
        },
      }),
    },
  };
}

// ---------------------------------------------------------------- the whole

const introduction = `One address, one key and one prepaid balance for every model, in three dialects and as plain
completions: what a client library sends to another service it can send here, with only its base address changed.

A key goes into \`Authorization: Bearer\` or \`x-api-key\`. Every reply has the header \`x-request-id\`.
Fields that an endpoint does not know are ignored; fields that it knows are checked, and a refusal names the wrong one.
A request that ends with an error status costs nothing.

The header \`x-priority\` (\`interactive\`, \`standard\` or \`bulk\`) says how urgent a request is beside others. Its plan says
what it has at most, and the reply's header what it had.

The header \`x-deadline-ms\` says how long it may wait in line. One that would wait longer is refused at once.

The header \`x-tags\` (\`invoices, batch-7\`), or \`metadata.tags\` of the body, says what a request is for. Reports sum up by it.`;

/** Takes some milliseconds: created at the first request and kept. */
export function describeApi({ catalog, baseUrl }: ApiFacts): OpenApiDocument {
  const listed = listedModels(catalog);
  const models = listed.map(({ id }) => id);
  const samples = codeSamples(baseUrl);
  const paths: OpenApiDocument["paths"] = {
    ...completions(),
    ...answers(),
    ...withInputs(),
    ...voices(),
    ...counting(),
    ...stored(),
    ...conversations(),
    ...files(),
    ...batches(),
    ...others(models),
  };
  const withSamples = Object.entries(paths).map(([path, methods]) => {
    const operations = Object.entries(methods).map(([method, operation]) => [
      method,
      { ...operation, "x-codeSamples": samples[operation.operationId] },
    ]);
    return [path, Object.fromEntries(operations)];
  });
  return {
    openapi: "3.1.0",
    info: {
      title: "Tollgate",
      version,
      summary: "Language-model inference in three dialects, and plain completions.",
      description: introduction,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: "Chat completions", description: "The dialect of most clients." },
      { name: "Completions", description: "Plain completions, without a conversation." },
      { name: "Messages", description: "The dialect of Anthropic's clients." },
      { name: "Responses", description: "The dialect of Codex, and what it stores." },
      { name: "Conversations", description: "Items that requests of responses share and add to." },
      { name: "Files", description: "Uploads that requests and batches name." },
      { name: "Batches", description: "Many requests in one file, run while others leave room." },
      { name: "Embeddings and reranking", description: "For search in one's own texts." },
      { name: "Voices", description: "Speech to text, and text to speech." },
      { name: "Counting tokens", description: "Free counts in each dialect." },
      { name: "Models", description: "What can be asked." },
      { name: "Health", description: "For supervisors and balancers." },
    ],
    security: [{ bearer: [] }, { apiKey: [] }],
    paths: Object.fromEntries(withSamples),
    components: {
      schemas: { ...requestSchemas(listed), ...replySchemas },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "The account's key." },
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "The same key, as Anthropic's clients send it.",
        },
      },
    },
  };
}
