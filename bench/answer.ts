// The answer that the paced node gives and that every client checks: a text of equal, numbered tokens, as JSON and as
// server-sent events of the chat-completions dialect. Tokens are numbered so that a lost, doubled or moved one is
// noticed.

/** `tokenBytes` is the size of one token's text; at least 7, the size of the number that it carries. */
export type AnswerShape = Readonly<{ tokens: number; tokenBytes: number }>;

/** Smallest token: a space, `t` and five digits. */
export const tokenBytesMin = 7;

const created = 1_790_000_000;
const id = "chatcmpl-0123456789abcdef0123456789abcdef";
const promptTokens = 16;

/** The text of the token at `index`, e.g. " t00042". */
function tokenText(index: number, shape: AnswerShape): string {
  return ` t${index.toString().padStart(5, "0")}`.padEnd(shape.tokenBytes, "x");
}

/** The whole answer's text. */
export function answerText(shape: AnswerShape): string {
  let text = "";
  for (let index = 0; index < shape.tokens; index++) text += tokenText(index, shape);
  return text;
}

/** The body of a non-streaming reply. */
export function answerJson(shape: AnswerShape): string {
  return JSON.stringify({
    id,
    object: "chat.completion",
    created,
    model: "bench",
    choices: [
      { index: 0, message: { role: "assistant", content: answerText(shape) }, logprobs: null, finish_reason: "stop" },
    ],
    usage: usageOf(shape),
  });
}

/** The events of a streaming reply, in order: the role, one event per token, then the end. */
export function answerEvents(shape: AnswerShape): Readonly<{ role: string; tokens: string[]; end: string[] }> {
  const tokens: string[] = [];
  for (let index = 0; index < shape.tokens; index++)
    tokens.push(choiceEvent({ content: tokenText(index, shape) }, null));
  return {
    role: choiceEvent({ role: "assistant", content: "" }, null),
    tokens,
    end: [choiceEvent({}, "stop"), event({ ...envelope, choices: [], usage: usageOf(shape) }), "data: [DONE]\n\n"],
  };
}

const envelope = { id, object: "chat.completion.chunk", created, model: "bench" };

function choiceEvent(delta: object, finishReason: string | null): string {
  return event({ ...envelope, choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }] });
}

function event(json: object): string {
  return `data: ${JSON.stringify(json)}\n\n`;
}

function usageOf(shape: AnswerShape) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: shape.tokens,
    total_tokens: promptTokens + shape.tokens,
  };
}
