// Asks an engine to count a prompt's tokens, where it can.
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { limitAtEndOfTurn } from "../core/end-of-turn.ts";
import type { Ask, PreparedTurns } from "../core/types.ts";
import type { NodeClient } from "./client/client.ts";
import type { ExchangeHandler } from "./client/exchange.ts";
import type { EngineKind } from "./engine-kind.ts";
import { requestHead } from "./client/request-head.ts";
import { readingPath, readingRequest } from "./ollama.ts";

/** How long to wait for a node's own count before using ours; agents ask for 24 at once and expect them within a second. */
const nodeCountTimeoutMs = 900;

/** Paths are relative to the engine's root, above the /v1 of its OpenAI-compatible routes. */
export type CountRequest = Readonly<{ path: string; body: string | readonly Buffer[] }>;

/** Where an engine counts a chat-completions body exactly, template and tools included. */
const chatPaths: Partial<Record<EngineKind, string>> = {
  vllm: "/tokenize",
  sglang: "/tokenize", // older versions know only texts and answer 4xx
  "llama.cpp": "/v1/chat/completions/input_tokens",
};

/** Where it counts a prompt alone. */
const promptPaths: Partial<Record<EngineKind, string>> = {
  vllm: "/tokenize",
  sglang: "/tokenize",
  "llama.cpp": "/tokenize",
};

/**
 * Null where this engine cannot count the request: images become tokens only in prefill, files only when they are read,
 * and given tokens need no counting. `body` writes the request for an answer, without fields that the counter refuses.
 * `mayRead`: see NodeCounter.
 */
export function countRequestOfAsk(
  ask: Ask,
  body: () => readonly Buffer[],
  engine: EngineKind,
  mayRead = false,
): CountRequest | null {
  const path = (ask.plain === undefined ? chatPaths : promptPaths)[engine];
  if (ask.turns.some((turn) => turn.role === "prompt" && turn.tokens !== null)) return null;
  const media = (ask.prepared !== undefined && hasMedia(ask.prepared)) || ask.turns.some(turnHasMedia);
  // Inputs are not a conversation.
  if (media || ask.inputs !== undefined || ask.voice !== undefined) return null;
  if (path !== undefined) return { path, body: body() };
  return mayRead && engine === "ollama" && ask.prepared === undefined ? readByOllama(body()) : null;
}

/** Ollama cannot count, but it reports how many tokens it read. A prompt that it just read stays in its cache. */
function readByOllama(body: readonly Buffer[]): CountRequest | null {
  const request = readingRequest(Buffer.concat(body).toString());
  return request === null ? null : { path: readingPath(request), body: JSON.stringify(request) };
}

const hasMedia = ({ images, unready }: PreparedTurns): boolean => images > 0 || unready.length > 0;

function turnHasMedia(turn: Ask["turns"][number]): boolean {
  return Array.isArray(turn.content) && turn.content.some(({ kind }) => kind !== "text");
}

/** Null where this engine cannot count a plain text. */
export function countRequestOfText(text: string, nodeModel: string, engine: EngineKind): CountRequest | null {
  switch (engine) {
    case "vllm":
    case "sglang":
      return { path: "/tokenize", body: JSON.stringify({ model: nodeModel, prompt: text, add_special_tokens: false }) };
    case "llama.cpp":
      return { path: "/tokenize", body: JSON.stringify({ content: text, add_special: false }) };
    default:
      return null;
  }
}

/** Bytes kept from each end of an answer: the count stands before or after the list of all token ids. */
const endBytes = 256;
const comma = 0x2c;

/** Sends the request; null: no count within nodeCountTimeoutMs, or cancelled. Keeps no list of token ids. */
export function askForCount(
  client: NodeClient,
  { path, body }: CountRequest,
  apiKey: string | null,
  cancelSignal: AnyCancelSignal,
): Promise<number | null> {
  return new Promise((resolve) => {
    if (cancelSignal.aborted) return resolve(null);
    let status = 0;
    let first = "";
    let last = "";
    let commas = 0;
    let answered = false;
    const finish = (count: number | null): void => {
      if (answered) return;
      answered = true;
      clearTimeout(timer);
      cancelSignal.removeEventListener("abort", giveUp);
      resolve(count);
    };
    const handler: ExchangeHandler = {
      head(code) {
        status = code;
      },
      body(bytes, start, end) {
        if (first.length < endBytes) first += bytes.toString("latin1", start, Math.min(end, start + endBytes));
        last = (last + bytes.toString("latin1", Math.max(start, end - endBytes), end)).slice(-endBytes);
        for (let at = start; at < end; at++) if (bytes[at] === comma) commas++;
      },
      readEnd() {},
      end: () => finish(status === 200 ? countOf(first, last, commas) : null),
      fault: () => finish(null),
    };
    const parts = typeof body === "string" ? [Buffer.from(body)] : body;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const head = requestHead("POST", path, client.origin.hostHeader, apiKey, length);
    const exchange = client.send([head, ...parts], handler);
    const giveUp = (): void => {
      exchange.abort();
      finish(null);
    };
    const timer = limitAtEndOfTurn(nodeCountTimeoutMs, giveUp);
    cancelSignal.addEventListener("abort", giveUp);
  });
}

/** `{"count": n, ... "tokens": [...]}` in either order, `{"input_tokens": n}`, `{"tokens": [...]}` alone, or Ollama's form. */
function countOf(first: string, last: string, commas: number): number | null {
  const named = /"(?:count|input_tokens|prompt_eval_count)"\s*:\s*(\d{1,9})\s*[,}]/;
  const [, digits] = named.exec(first) ?? named.exec(last) ?? [];
  if (digits !== undefined) return Number(digits);
  // An empty list may mean that the engine did not know the request's field (llama-server).
  return /^\s*\{\s*"tokens"\s*:\s*\[\s*\d/.test(first) && /\d\s*\]\s*\}\s*$/.test(last) ? commas + 1 : null;
}
