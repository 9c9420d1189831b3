// The three dialects as a load client needs them: what to send, and how to recognize a piece of text and the end.

export type DialectName = "chat" | "messages" | "responses";

export type ClientDialect = Readonly<{
  path: string;
  /** The key that comes before the JSON string of a piece of the answer's text, in streams. */
  streamTextKey: string;
  /** The event that ends a whole stream begins with this. */
  terminator: string;
  /** The same key in a non-streaming reply. */
  replyTextKey: string;
  body(ask: BenchAsk): object;
}>;

export type BenchAsk = Readonly<{ model: string; prompt: string; outputTokensMax: number; stream: boolean }>;

/** A first-party text model of the catalog. */
export const benchModel = "core-3";

export const clientDialects: Readonly<Record<DialectName, ClientDialect>> = {
  chat: {
    path: "/v1/chat/completions",
    streamTextKey: '"content":"',
    terminator: "data: [DONE]",
    replyTextKey: '"content":"',
    body: (ask) => ({
      model: ask.model,
      messages: [{ role: "user", content: ask.prompt }],
      max_tokens: ask.outputTokensMax,
      ...(ask.stream ? { stream: true } : {}),
    }),
  },
  messages: {
    path: "/v1/messages",
    streamTextKey: '"text":"',
    terminator: "event: message_stop",
    replyTextKey: '"text":"',
    body: (ask) => ({
      model: ask.model,
      max_tokens: ask.outputTokensMax,
      messages: [{ role: "user", content: ask.prompt }],
      ...(ask.stream ? { stream: true } : {}),
    }),
  },
  responses: {
    path: "/v1/responses",
    streamTextKey: '"delta":"',
    terminator: "event: response.completed",
    replyTextKey: '"text":"',
    body: (ask) => ({
      model: ask.model,
      input: ask.prompt,
      max_output_tokens: ask.outputTokensMax,
      ...(ask.stream ? { stream: true } : {}),
    }),
  },
};

/** Narrows a flag's value; throws for an unknown dialect. */
export function dialectNamed(name: string): DialectName {
  if (name === "chat" || name === "messages" || name === "responses") return name;
  throw new Error(`--dialect needs chat, messages or responses, not "${name}"`);
}
