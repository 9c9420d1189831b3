// Reads replies of gateways and nodes that we do not know: what of a reply is text, how many tokens it reports, and
// whether it ended well. Every event is parsed as JSON; what that costs is in the client's own CPU time.
import type { DialectName } from "./dialect.ts";

/** What the three dialects have in common for a load test, all of it optional: it comes from strangers. */
type Event = {
  type?: string;
  error?: unknown;
  choices?: { delta?: Delta }[];
  usage?: { completion_tokens?: number; output_tokens?: number } | null;
  response?: { usage?: { output_tokens?: number } | null; error?: unknown } | null;
};
type Delta = { content?: string | null; reasoning?: string; reasoning_content?: string; tool_calls?: unknown[] };

export class ReplyMeter {
  /** Events that carried a piece of the answer: text, thoughts or the arguments of a call. */
  textEvents = 0;
  /** Output tokens by the reply's usage; null when it reports none. */
  reportedTokens: number | null = null;
  #ended = false;
  #error: string | null = null;
  #carry = "";
  readonly #dialect: DialectName;

  constructor(dialect: DialectName) {
    this.#dialect = dialect;
  }

  /** The next part of a stream of server-sent events; lines may end with either line feed. */
  feed(text: string): void {
    const received = this.#carry === "" ? text : this.#carry + text;
    let from = 0;
    for (let end = received.indexOf("\n"); end >= 0; end = received.indexOf("\n", from)) {
      if (received.startsWith("data:", from)) this.#data(received.slice(from + "data:".length, end).trim());
      from = end + 1;
    }
    this.#carry = received.slice(from);
  }

  /** The whole body of a non-streaming reply. */
  body(text: string): void {
    const reply = parsed(text);
    if (reply === null) {
      this.#error = "the reply is no JSON";
      return;
    }
    this.#readUsage(reply.usage);
    this.#ended = true;
  }

  /** Null when the reply of this status is whole, else what is wrong; begins with the status. */
  failure(status: number): string | null {
    if (this.#error !== null) return `${status} ${this.#error}`;
    return this.#ended ? null : `${status} without an end`;
  }

  #data(data: string): void {
    if (data === "[DONE]") {
      this.#ended = true;
      return;
    }
    const event = parsed(data);
    if (event === null) this.#error ??= "an event is no JSON";
    else if (event.error !== undefined && event.error !== null) this.#error ??= `stream: ${messageOf(event.error)}`;
    else if (this.#dialect === "chat") this.#chat(event);
    else if (this.#dialect === "messages") this.#messages(event);
    else this.#responses(event);
  }

  #chat(event: Event): void {
    const delta = event.choices?.[0]?.delta;
    if (delta?.content || delta?.reasoning || delta?.reasoning_content || delta?.tool_calls) this.textEvents++;
    this.#readUsage(event.usage);
  }

  #messages(event: Event): void {
    if (event.type === "content_block_delta") this.textEvents++;
    else if (event.type === "message_delta") this.#readUsage(event.usage);
    else if (event.type === "message_stop") this.#ended = true;
  }

  #responses(event: Event): void {
    if (event.type?.endsWith(".delta")) this.textEvents++;
    else if (event.type === "response.completed" || event.type === "response.incomplete") {
      this.#readUsage(event.response?.usage);
      this.#ended = true;
    } else if (event.type === "response.failed") {
      this.#error ??= `stream: ${messageOf(event.response?.error)}`;
    }
  }

  #readUsage(usage: Event["usage"]): void {
    this.reportedTokens = usage?.completion_tokens ?? usage?.output_tokens ?? this.reportedTokens;
  }
}

/** The message of an error body, to be counted by; bodies without one are shortened. */
export function errorMessage(body: string): string {
  const reply = parsed(body);
  return reply?.error === undefined ? shortened(body) : messageOf(reply.error);
}

function messageOf(error: unknown): string {
  const { message } = Object(error) as { message?: unknown };
  return shortened(typeof message === "string" ? message : JSON.stringify(error));
}

/** Numbers are blotted out, so that errors that differ in a count or an id are counted together. */
function shortened(text: string): string {
  return text.replace(/\d+/g, "N").replace(/\s+/g, " ").trim().slice(0, 100);
}

/** Null for what is not JSON object. */
function parsed(text: string): Event | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Event) : null;
  } catch {
    return null; // whoever asked says what is not JSON
  }
}
