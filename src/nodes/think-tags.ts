// Splits the thought off an answer from a node without a reasoning parser: "<think>...</think>" at its start.
//
//   undecided --- the text begins with <think> ---> inside --- </think> ---> over
//       |                                                                      ^
//       +------------------- it begins with anything else ---------------------+
//
// Only the start of an answer is checked: later text may mention the tags freely. Where the chat template has already
// written the opening tag into the prompt (DeepSeek R1, QwQ), the answer starts inside. The operator must configure this,
// because nothing in the text shows it before </think>, and by then a stream has shown the thought as the answer.
import { decodedLength } from "./fast-path/template.ts";

/** Where the parts go; literals are JSON string literals with their quotes. */
export type ThinkTagsSink = Readonly<{
  text(literal: string, logprobs: string | null): void;
  reasoning(literal: string, characters: number): void;
}>;

const opening = "<think>";
const closing = "</think>";
const space = 0x20;
const lessThan = 0x3c;
const backslash = 0x5c;
type Held = Readonly<{ literal: string; logprobs: string | null }>;

export class ThinkTags {
  readonly #sink: ThinkTagsSink;
  readonly #opened: boolean;
  #state: "undecided" | "inside" | "over" = "undecided";
  /** Pieces that may still turn out to be the opening tag, and their text without leading white space. */
  readonly #held: Held[] = [];
  #start = "";
  /** The end of the thought so far that may be the start of the closing tag. */
  #tail = "";
  /** Line breaks around the tags belong to neither part. */
  #skipsSpace = false;

  /** `opened`: the answer starts inside the thought. An opening tag that still comes counts as the tag. */
  constructor(sink: ThinkTagsSink, opened: boolean) {
    this.#sink = sink;
    this.#opened = opened;
  }

  /** Nothing is held back, and nothing more will be split off. */
  get over(): boolean {
    return this.#state === "over" && !this.#skipsSpace;
  }

  text(literal: string, logprobs: string | null): void {
    if (this.#state === "inside" && this.#tail === "" && !this.#skipsSpace && !mayHoldTag(literal)) {
      return this.#sink.reasoning(literal, decodedLength(literal));
    }
    if (this.#state === "undecided" && !this.#opened && this.#held.length === 0 && !mayBeginThought(literal)) {
      this.#state = "over";
      return this.#sink.text(literal, logprobs);
    }
    const text = JSON.parse(literal) as string;
    if (this.#state === "undecided") this.#decide(text, literal, logprobs);
    else if (this.#state === "inside") this.#think(text);
    else this.#answer(text, literal, logprobs);
  }

  /** Something else follows (a call, the end): what is held goes out as what it resembles. */
  flush(): void {
    if (this.#held.length > 0 && this.#opened) this.#reason(this.#start);
    else for (const { literal, logprobs } of this.#held) this.#sink.text(literal, logprobs);
    this.#held.length = 0;
    this.#reason(this.#tail);
    this.#tail = "";
    this.#state = "over";
    this.#skipsSpace = false;
  }

  #decide(text: string, literal: string, logprobs: string | null): void {
    this.#held.push({ literal, logprobs });
    const start = (this.#start + text).trimStart();
    this.#start = start;
    if (start.startsWith(opening)) {
      this.#enter(start.slice(opening.length));
    } else if (!opening.startsWith(start)) {
      if (this.#opened) this.#enter(start);
      else this.flush();
    }
  }

  #enter(text: string): void {
    this.#held.length = 0;
    this.#state = "inside";
    this.#skipsSpace = true;
    this.#think(text);
  }

  #think(given: string): void {
    let text = this.#tail + given;
    this.#tail = "";
    if (this.#skipsSpace) text = text.trimStart();
    if (text === "") return;
    const end = text.indexOf(closing);
    if (end < 0) {
      const held = heldLength(text);
      this.#tail = text.slice(text.length - held);
      this.#reason(text.slice(0, text.length - held));
      return;
    }
    this.#reason(text.slice(0, end));
    this.#state = "over";
    this.#skipsSpace = true;
    const rest = text.slice(end + closing.length);
    this.#answer(rest, JSON.stringify(rest), null);
  }

  #answer(text: string, literal: string, logprobs: string | null): void {
    if (!this.#skipsSpace) return this.#sink.text(literal, logprobs);
    const kept = text.trimStart();
    if (kept === "") return;
    this.#skipsSpace = false;
    if (kept === text) this.#sink.text(literal, logprobs);
    else this.#sink.text(JSON.stringify(kept), null);
  }

  #reason(text: string): void {
    if (text === "") return;
    this.#skipsSpace = false;
    this.#sink.reasoning(JSON.stringify(text), text.length);
  }
}

/** Whether an answer's first piece can begin with a tag, white space or an escape. Usually it cannot. */
export function mayBeginThought(literal: string): boolean {
  let at = 1;
  while (literal.charCodeAt(at) === space) at++;
  const first = literal.charCodeAt(at);
  return first === lessThan || first === backslash || at === literal.length - 1; // an escape may be a line break
}

/** Whether a literal may begin with white space, plain or escaped. */
export function mayBeginBlank(literal: string): boolean {
  const first = literal.charCodeAt(1);
  return first <= space || first === backslash || first >= 0x80;
}

/** Whether a piece of the thought may hold the start of the closing tag; engines in Go write "<" as an escape. */
const mayHoldTag = (literal: string): boolean => literal.includes("<") || /\\u003c/i.test(literal);

/** Length of the longest suffix of `text` that begins the closing tag. */
function heldLength(text: string): number {
  for (let length = Math.min(text.length, closing.length - 1); length > 0; length--) {
    if (closing.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
