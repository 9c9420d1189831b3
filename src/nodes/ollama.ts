// Ollama's own routes: an unloaded model's context, and whether a prompt fits, which it would otherwise cut.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { type NodeReply, isReply, type NoReply, post } from "./client/get.ts";
import { type Asking, rootOf } from "./engine-routes.ts";
import { parseNodeJson, record } from "./json.ts";

/** Has Ollama load the model, as a request would. Resolves early when the client leaves. */
export async function loadModel(asking: Asking, nodeModel: string, cancelSignal: AnyCancelSignal): Promise<void> {
  await postWhileStaying(asking, "/api/generate", { model: nodeModel, stream: false }, cancelSignal);
}

/** The words of its refusal. */
const tooLongWords = /input length exceeds the context length|prompt is longer than the context length/;

/** The prompt's tokens if it fits, "too long", or null: it does not say. Ollama reads the prompt and keeps it. */
export async function promptOnOllama(
  asking: Asking,
  chatBody: string,
  cancelSignal: AnyCancelSignal,
): Promise<number | "too long" | null> {
  const request = readingRequest(chatBody);
  const answer = request === null ? null : await postWhileStaying(asking, readingPath(request), request, cancelSignal);
  if (answer === null || !isReply(answer)) return null;
  if (answer.status === 400 && tooLongWords.test(answer.body.slice(0, wordsMaxLength))) return "too long";
  const count = answer.status === 200 ? record(parseNodeJson(answer.body))?.["prompt_eval_count"] : null;
  return typeof count === "number" && Number.isSafeInteger(count) && count > 0 ? count : null;
}

const wordsMaxLength = 1_000;

/** A prompt without a conversation has its own route. */
export const readingPath = (request: Readonly<Record<string, unknown>>): string =>
  "messages" in request ? "/api/chat" : "/api/generate";

/** The request that reads a prompt and writes one token; null: its fields mean something else there. */
export function readingRequest(json: string): Record<string, unknown> | null {
  const body = record(parseNodeJson(json));
  if (body === null) return null;
  const { model, messages: given, prompt, suffix, tools } = body;
  const rest = { stream: false, truncate: false, options: { num_predict: 1 } };
  if (typeof prompt === "string") return { model, prompt, ...(suffix === undefined ? {} : { suffix }), ...rest };
  if (!Array.isArray(given)) return null;
  const messages = given.map(record).map(nativeMessage);
  if (messages.includes(null)) return null;
  const think = body["reasoning_effort"] === "none" ? { think: false } : {};
  return { model, messages, ...(tools === undefined ? {} : { tools }), ...think, ...rest };
}

function nativeMessage(message: Record<string, unknown> | null): Record<string, unknown> | null {
  const content = message?.["content"] ?? "";
  if (message === null || typeof content !== "string") return null;
  const calls = message["tool_calls"];
  const thinking = message["reasoning_content"];
  return {
    role: message["role"],
    content,
    ...(typeof thinking === "string" ? { thinking } : {}),
    ...(Array.isArray(calls)
      ? { tool_calls: calls.map((call) => nativeCall(record(record(call)?.["function"]))) }
      : {}),
  };
}

const nativeCall = (called: Record<string, unknown> | null) => ({
  function: { name: called?.["name"], arguments: record(parseNodeJson(String(called?.["arguments"]))) ?? {} },
});

/** Null where the client left first. */
async function postWhileStaying(
  { client, basePath, apiKey, timeoutMs }: Asking,
  path: string,
  body: object,
  cancelSignal: AnyCancelSignal,
): Promise<NodeReply | NoReply | null> {
  const left = Promise.withResolvers<null>();
  const leave = (): void => left.resolve(null);
  cancelSignal.addEventListener("abort", leave);
  const answered = post(client, rootOf(basePath) + path, JSON.stringify(body), apiKey, timeoutMs);
  const answer = await Promise.race([answered, left.promise]);
  cancelSignal.removeEventListener("abort", leave);
  return answer;
}
