// Texts that a seed says, and what an engine makes of them: four bytes are a token, 16 tokens are a block, and a block's hash
// covers everything before it, and the salt, as vLLM's does.
const charactersPerToken = 4;
export const blockTokens = 16;
const blockCharacters = charactersPerToken * blockTokens;

export type Message = Readonly<{ role: "system" | "user" | "assistant"; content: string }>;

/** What an engine works on: `blocks` are those of the prompt and of its answer, `tokens` those of the prompt. */
export type EnginePrompt = Readonly<{ tokens: number; blocks: Uint32Array }>;

const letters = Buffer.from("abcdefghijklmnopqrstuvwxyz012345");

/** Random words, the same for the same seed. */
export function textOf(seed: string, tokens: number): string {
  let state = Bun.hash.xxHash32(seed) | 1;
  const bytes = Buffer.allocUnsafe(tokens * charactersPerToken);
  for (let at = 0; at < bytes.length; at += 4) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = 32;
    bytes[at + 1] = letters[state & 31]!;
    bytes[at + 2] = letters[(state >>> 5) & 31]!;
    bytes[at + 3] = letters[(state >>> 10) & 31]!;
  }
  return bytes.toString("latin1");
}

/** The template of the model: a message, and what stands before an answer. */
export const writtenOut = ({ role, content }: Message): string => `<|${role}|>${content}<|end|>`;
export const answerBegins = "<|assistant|>";
export const answerEnds = "<|end|>";

/** What a model answers; other prompts get other answers. */
export const answerTo = (lastMessage: string, tokens: number): string => textOf(lastMessage.slice(-512), tokens);

/** A text that grows, and its blocks. */
export class GrowingText {
  readonly #blocks: number[] = [];
  #rest = "";
  #hash: number;
  #length = 0;

  constructor(salt = "") {
    this.#hash = Bun.hash.xxHash32(salt);
  }

  get tokens(): number {
    return Math.ceil(this.#length / charactersPerToken);
  }

  get blocks(): Uint32Array {
    return Uint32Array.from(this.#blocks);
  }

  add(text: string): this {
    this.#length += text.length;
    const bytes = Buffer.from(this.#rest + text, "latin1");
    let at = 0;
    for (; at + blockCharacters <= bytes.length; at += blockCharacters) {
      this.#hash = Bun.hash.xxHash32(bytes.subarray(at, at + blockCharacters), this.#hash);
      this.#blocks.push(this.#hash);
    }
    this.#rest = bytes.toString("latin1", at);
    return this;
  }
}
