// POST /v1/tokenize and the routes that count a request's input, apart from HTTP. The specification leaves the replies'
// form open: tokenize uses vLLM's names, the others those that their dialects' SDKs expect.
import { encodingDefault, type KnownModels } from "../core/catalog.ts";
import { tokenizeTextMaxBytes } from "../core/limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Ask, Model, Refusal } from "../core/types.ts";
import type { TokenCount, TokenCounts } from "./node-count.ts";

/** The main thread writes ids as JSON: 256 KiB of text give up to 2 MB and take a few milliseconds. */
const tokenIdsTextMaxBytes = 256 * 1024;

/** `Read`: a request whose messages are to be counted, with the rest of its reading. */
export type TokenizeRequest<Read = WithAsk> =
  | Readonly<{ kind: "text"; text: string; model: Model | null; returnTokens: boolean }>
  | (Read & Readonly<{ kind: "messages"; model: Model | null }>);
type WithAsk = Readonly<{ ask: Ask }>;

export type TokenizeReply = Readonly<{
  object: "tokenization";
  model: string | null;
  count: number;
  /** False where the count is an estimate, because another tokenizer counted or the model may search first. */
  exact: boolean;
  tokenizer: string;
  /** Context window in tokens, where a model was named. */
  max_model_len: number | null;
  /** Only with `return_tokens: true`: the ids in the model's catalog encoding, which then also counts. */
  tokens?: readonly number[];
}>;

/**
 * The body of POST /v1/tokenize: `text`, or `messages` (with `tools` and the like) as in chat-completions; `model` and
 * `return_tokens` are optional. `readMessages` is the chat-completions dialect's.
 */
export function readTokenize<Read extends WithAsk>(
  body: unknown,
  catalog: KnownModels,
  readMessages: (body: unknown) => Read | Refusal,
): TokenizeRequest<Read> | Refusal {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return malformed("The body must be an object");
  const { text, messages, model: id, return_tokens: returnTokens } = body as Record<string, unknown>;
  if (id != null && typeof id !== "string") return malformed("model must be a string");
  if (returnTokens != null && typeof returnTokens !== "boolean") return malformed("return_tokens must be a boolean");
  const model = id == null ? null : catalog.models.get(id);
  if (model === undefined) return refuse("unknown_model", { model: String(id) });

  if (text != null && messages != null) return malformed("Send text or messages, not both");
  if (text == null && messages == null) return malformed("Send text (a string) or messages (an array)");
  if (text == null) {
    if (returnTokens === true) return malformed("return_tokens goes with text, not with messages");
    const read = readMessages({ ...body, model: (model ?? anyModel(catalog)).id });
    return isRefusal(read) ? read : { ...read, kind: "messages", model };
  }
  if (typeof text !== "string") return malformed("text must be a string");
  const bytes = Buffer.byteLength(text);
  if (bytes > tokenizeTextMaxBytes) return refuse("text_too_long");
  if (returnTokens === true && bytes > tokenIdsTextMaxBytes) {
    return malformed(`return_tokens goes with texts of up to ${tokenIdsTextMaxBytes} bytes`);
  }
  return { kind: "text", text, model, returnTokens: returnTokens === true };
}

/** Messages without a model are counted for one that also reads images. */
function anyModel({ models }: KnownModels): Model {
  const all = [...models.values()].filter(({ kind }) => kind === "chat");
  return all.find(({ readsImages }) => readsImages) ?? all[0]!;
}

const malformed = (reason: string): Refusal => refuse("malformed", { reason });

/** The reply of POST /v1/tokenize; refused like `Counter.count`. */
export async function tokenize(
  request: TokenizeRequest,
  counts: TokenCounts,
  account: AccountId,
  cancelSignal: AbortSignal,
): Promise<TokenizeReply | Refusal> {
  const { model } = request;
  const head = { object: "tokenization", model: model?.id ?? null } as const;
  const encoding = model?.encoding ?? encodingDefault;
  const window = { max_model_len: model?.contextTokens ?? null };
  if (request.kind === "text" && request.returnTokens) {
    const tokens = await counts.encode(request.text, encoding, account, cancelSignal);
    if (isRefusal(tokens)) return tokens;
    return { ...head, count: tokens.length, exact: false, tokenizer: encoding, ...window, tokens: [...tokens] };
  }
  const counted = await countOf(request, counts, account, cancelSignal);
  if (isRefusal(counted)) return counted;
  const { tokens, exact, tokenizer } = counted;
  return { ...head, count: tokens, exact, tokenizer, ...window };
}

function countOf(
  request: TokenizeRequest,
  counts: TokenCounts,
  account: AccountId,
  cancelSignal: AbortSignal,
): Promise<TokenCount | Refusal> {
  if (request.kind === "text") return counts.ofText(request.text, request.model, account, cancelSignal);
  if (request.model === null) return counts.estimateOfAsk(request.ask, encodingDefault, account, cancelSignal);
  return counts.ofAsk(request.ask, account, cancelSignal);
}

/** The reply of a route that counts a request's input, built by `reply`; refused like `Counter.count`. */
export async function countInput(
  ask: Ask,
  reply: (tokens: number) => object,
  counts: TokenCounts,
  account: AccountId,
  cancelSignal: AbortSignal,
): Promise<object | Refusal> {
  const counted = await counts.ofAsk(ask, account, cancelSignal);
  return isRefusal(counted) ? counted : reply(counted.tokens);
}
