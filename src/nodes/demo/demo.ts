// The demo node: an HTTP server on a loopback port that speaks the node protocol with made-up answers.
import type { Clock } from "../../core/clock.ts";
import { isRecord } from "../../core/is-record.ts";
import { answerTo, type DemoAnswer, type DemoRequest, type DemoToken } from "./demo-answer.ts";
import { plainAnswerTo, type PlainDemoRequest } from "./demo-completion.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

export interface DemoNode {
  /** Base address for NodeConfig.url, e.g. http://127.0.0.1:41234/v1 */
  readonly url: string;
  stop(): Promise<void>;
}

export type DemoNodeOptions = Readonly<{
  /** The models it lists; it answers to any name. */
  models: readonly Readonly<{ id: string; contextTokens: number }>[];
  clock: Clock;
  /** How fast it writes; Infinity: without a pause. */
  tokensPerSecond?: number;
}>;

const tokensPerSecondDefault = 80;
/** The gateway limits what clients send; images come in the body as base64. */
const bodyMaxBytes = 128 * 1024 * 1024;
const contextTokens = 262_144;

export function startDemoNode({ models, clock, tokensPerSecond = tokensPerSecondDefault }: DemoNodeOptions): DemoNode {
  const pauseMs = 1000 / tokensPerSecond;
  const list = models.map(({ id, contextTokens: max_model_len }) => ({
    id,
    object: "model",
    created: 0,
    owned_by: "tollgate-demo",
    max_model_len,
  }));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0, // slow readers are the gateway's concern
    maxRequestBodySize: bodyMaxBytes,
    development: false,
    routes: {
      "/health": () => new Response(""),
      "/v1/models": () => Response.json({ object: "list", data: list }),
      "/v1/chat/completions": { POST: complete },
      "/v1/completions": { POST: completePlainly },
    },
    fetch: ({ url }) => failure(404, "NotFoundError", `There is no ${new URL(url).pathname} here`),
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) };

  async function complete(incoming: Request): Promise<Response> {
    const text = await incoming.text();
    const request = parseRequest(text);
    if (request === null) {
      return failure(400, "BadRequestError", "The body must be a JSON object with a list of messages");
    }
    return answered(text, request, answerTo(request, text), chatForm);
  }

  async function completePlainly(incoming: Request): Promise<Response> {
    const text = await incoming.text();
    const request = parseObject(text) as PlainDemoRequest | null;
    if (request === null) return failure(400, "BadRequestError", "The body must be a JSON object");
    return answered(text, request, plainAnswerTo(request), plainForm);
  }

  async function answered(
    text: string,
    request: Pick<DemoRequest, "model" | "stream" | "stream_options">,
    answer: DemoAnswer,
    form: AnswerForm,
  ): Promise<Response> {
    if (answer.promptTokens > contextTokens) {
      const requested = `you requested ${answer.promptTokens} tokens in the messages`;
      return failure(
        400,
        "BadRequestError",
        `This model's maximum context length is ${contextTokens} tokens. However, ${requested}.`,
      );
    }
    const head = {
      id: `${form.idPrefix}-demo-${Bun.hash(text).toString(16)}`,
      created: Math.floor(clock.wall() / 1000),
      model: String(request.model ?? models[0]?.id ?? "demo"),
    };
    if (request.stream === true) return streamed(framesOf(request, answer, head, form), pauseMs);
    if (pauseMs > 0) await Bun.sleep(pauseMs * answer.tokens.length);
    return Response.json({
      object: form.object,
      ...head,
      choices: [{ index: 0, ...form.whole(answer), finish_reason: answer.finish, stop_reason: answer.stopReason }],
      usage: usageOf(answer, answer.tokens.length, reasonedIn(answer)),
    });
  }
}

type Head = Readonly<{ id: string; created: number; model: string }>;

type AnswerForm = Readonly<{
  idPrefix: string;
  object: string;
  eventObject: string;
  /** The content of an event's first choice; null: one without a token. */
  event(token: DemoToken | null): object;
  whole(answer: DemoAnswer): object;
}>;

const chatForm: AnswerForm = {
  idPrefix: "chatcmpl",
  object: "chat.completion",
  eventObject: "chat.completion.chunk",
  event: (token) => ({ delta: token === null ? {} : deltaOf(token) }),
  whole: (answer) => ({ message: messageOf(answer) }),
};

const plainForm: AnswerForm = {
  idPrefix: "cmpl",
  object: "text_completion",
  eventObject: "text_completion",
  event: (token) => ({ text: token?.kind === "content" ? token.text : "", logprobs: null }),
  whole: (answer) => ({ text: textOf(answer, "content"), logprobs: null }),
};

function parseObject(text: string): object | null {
  try {
    const json: unknown = parseOutsideJson(text);
    return isRecord(json) ? json : null;
  } catch {
    return null; // answered as a bad request
  }
}

function parseRequest(text: string): DemoRequest | null {
  const json = parseObject(text);
  const messages = (json as { messages?: unknown } | null)?.messages;
  const valid = Array.isArray(messages) && messages.every((message) => typeof message === "object" && message !== null);
  return valid ? (json as DemoRequest) : null;
}

const failure = (code: number, type: string, message: string): Response =>
  Response.json({ error: { message, type, param: null, code } }, { status: code });

/** Sends the frames one by one at the pace of `pauseMs`; stops when the reader has gone. */
function streamed(frames: Iterator<string>, pauseMs: number): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    async pull(controller) {
      if (pauseMs > 0) await Bun.sleep(pauseMs);
      const { value, done } = frames.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

/** The events of a stream: role, one per token, the finish reason, usage if it was asked for, the terminator. */
function* framesOf(
  request: Pick<DemoRequest, "stream_options">,
  answer: DemoAnswer,
  head: Head,
  form: AnswerForm,
): Generator<string> {
  const { include_usage, continuous_usage_stats } = request.stream_options ?? {};
  let produced = 0;
  let reasoned = 0;
  const frame = (choices: readonly object[], usage: object | null): string =>
    `data: ${JSON.stringify({ object: form.eventObject, ...head, choices, ...(usage === null ? {} : { usage }) })}\n\n`;
  const running = () => (continuous_usage_stats === true ? usageOf(answer, produced, reasoned) : null);
  const choice = (said: object, finish_reason: string | null = null) => [{ index: 0, ...said, finish_reason }];

  if (form === chatForm) yield frame(choice({ delta: { role: "assistant", content: "" } }), running());
  for (const token of answer.tokens) {
    produced += 1;
    if (token.kind === "reasoning") reasoned += 1;
    yield frame(choice(form.event(token)), running());
  }
  yield frame(
    [{ index: 0, ...form.event(null), finish_reason: answer.finish, stop_reason: answer.stopReason }],
    running(),
  );
  if (include_usage === true) yield frame([], usageOf(answer, produced, reasoned));
  yield "data: [DONE]\n\n";
}

function deltaOf(token: DemoToken): object {
  switch (token.kind) {
    case "reasoning":
      return { reasoning_content: token.text };
    case "content":
      return { content: token.text };
    case "call": {
      const { index, id, name } = token;
      return { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] };
    }
    case "arguments":
      return { tool_calls: [{ index: token.index, function: { arguments: token.text } }] };
  }
}

const textOf = ({ tokens }: DemoAnswer, kind: "reasoning" | "content"): string =>
  tokens.map((token) => (token.kind === kind ? token.text : "")).join("");

const reasonedIn = ({ tokens }: DemoAnswer): number => tokens.filter(({ kind }) => kind === "reasoning").length;

function messageOf(answer: DemoAnswer): object {
  const { tokens } = answer;
  const calls = tokens.flatMap((token) =>
    token.kind === "call"
      ? [
          {
            id: token.id,
            type: "function",
            function: { name: token.name, arguments: argumentsOf(tokens, token.index) },
          },
        ]
      : [],
  );
  return {
    role: "assistant",
    content: calls.length > 0 ? null : textOf(answer, "content"),
    reasoning_content: textOf(answer, "reasoning") || null,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

const argumentsOf = (tokens: readonly DemoToken[], index: number): string =>
  tokens.map((token) => (token.kind === "arguments" && token.index === index ? token.text : "")).join("");

function usageOf({ promptTokens, cachedTokens }: DemoAnswer, produced: number, reasoned: number): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: produced,
    total_tokens: promptTokens + produced,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoned },
  };
}
