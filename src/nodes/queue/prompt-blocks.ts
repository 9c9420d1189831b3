// A prompt as chained hashes of its blocks: two prompts share as many of them as their texts begin alike, and no text
// is kept. Blocks are small at the beginning, where short prompts differ, and grow, so that a long prompt has few.
//
// The hashes cover the conversation rather than the bytes for an engine, which are written for a particular node. The
// order is that of chat templates: system text, tools, all other turns. A later turn's prompt has the blocks of the
// earlier one and more.
import type { Ask, Part, PromptBlocks, Tool, Turn } from "../../core/types.ts";

export const noBlocks: PromptBlocks = { hashes: new Uint32Array(0), bytes: 0, end: 0, before: 0, beforeBytes: 0 };

/** How many blocks of each size follow each other; what comes after them is counted but not hashed. */
const sizes = [
  { bytes: 256, blocks: 64 },
  { bytes: 1_024, blocks: 240 },
  { bytes: 4_096, blocks: 960 },
] as const;
const [small, middle, large] = sizes;
export const promptBlocksMax = small.blocks + middle.blocks + large.blocks;

export function blockBytes(index: number): number {
  if (index < small.blocks) return small.bytes;
  return index < small.blocks + middle.blocks ? middle.bytes : large.bytes;
}

/** The total size of the first `count` blocks. */
export function bytesOfBlocks(count: number): number {
  const inMiddle = Math.min(middle.blocks, Math.max(0, count - small.blocks));
  const inLarge = Math.max(0, count - small.blocks - middle.blocks);
  return Math.min(count, small.blocks) * small.bytes + inMiddle * middle.bytes + inLarge * large.bytes;
}

/** An image's tokens do not depend on its bytes. */
const imageBytes = 6_000;
/** How much of an inline image's beginning and end identifies it. */
const imageSampleLength = 4_096;
/** Characters that are encoded at once: each takes at most three bytes. */
const stepLength = 16_384;

const scratch = Buffer.alloc(3 * stepLength + large.bytes);
const words = new Int32Array(scratch.buffer, scratch.byteOffset, scratch.byteLength >> 2);

/** The prompt being read: only one is at a time, and it ends in the turn of the event loop in which it began. */
const found = new Uint32Array(promptBlocksMax);

class Blocks {
  /** How many hashes are in `found`. */
  #count: number;
  #hash: number;
  /** Bytes in the scratch buffer that belong to no block yet. */
  #rest = 0;
  #bytes: number;
  #before: number;
  #beforeBytes: number;

  constructor({ hashes, bytes, before, beforeBytes }: PromptBlocks) {
    found.set(hashes);
    this.#count = hashes.length;
    this.#hash = hashes.at(-1) ?? 0;
    this.#bytes = bytes;
    this.#before = before;
    this.#beforeBytes = beforeBytes;
  }

  get all(): PromptBlocks {
    const [bytes, before, beforeBytes] = [this.#bytes, this.#before, this.#beforeBytes];
    return { hashes: found.slice(0, this.#count), bytes, end: this.#mark(), before, beforeBytes };
  }

  /** A hash of everything so far. */
  #mark(): number {
    const end = (this.#rest + 15) & ~15;
    for (let at = this.#rest; at < end; at++) scratch[at] = 0;
    return hashOf(this.#hash ^ this.#bytes, 0, end >> 2) || 1;
  }

  add(text: string): void {
    if (text.length <= stepLength) return this.#take(text);
    for (let at = 0; at < text.length; at += stepLength) this.#take(text.slice(at, at + stepLength));
  }

  tool({ name, description }: Tool): void {
    this.add(`\ntool ${name}\n`);
    if (description !== null) this.add(description); // its parameters are long and seldom the only difference
  }

  turn(turn: Turn): void {
    if (turn.role === "assistant") {
      this.#before = this.#mark();
      this.#answer(turn);
      this.#beforeBytes = this.#bytes;
    } else this.#question(turn);
  }

  /** Templates leave out the thoughts of earlier answers. */
  #answer({ content, calls }: Extract<Turn, { role: "assistant" }>): void {
    this.add("assistant");
    if (content !== null) this.add(content);
    for (const { name, arguments: text } of calls) {
      this.add(name);
      this.add(text);
    }
  }

  #question(turn: Exclude<Turn, { role: "assistant" }>): void {
    this.add(turn.role);
    if (turn.role === "prompt") this.add(turn.tokens === null ? turn.content : turn.tokens.join());
    else if (typeof turn.content === "string") this.add(turn.content);
    else for (const part of turn.content) this.#part(part);
  }

  #part(part: Part): void {
    if (part.kind === "text") return this.add(part.text);
    const { url } = part;
    this.add(`${part.kind} ${url.length} ${url.slice(0, imageSampleLength)} ${url.slice(-imageSampleLength)}`);
    this.#bytes += imageBytes - Math.min(url.length, 2 * imageSampleLength);
  }

  #take(text: string): void {
    if (this.#count >= promptBlocksMax) return void (this.#bytes += Buffer.byteLength(text));
    const written = scratch.write(text, this.#rest);
    this.#bytes += written;
    const end = this.#rest + written;
    let at = 0;
    for (;;) {
      const size = blockBytes(this.#count);
      if (at + size > end || this.#count >= promptBlocksMax) break;
      this.#hash = hashOf(this.#hash, at >> 2, (at + size) >> 2);
      found[this.#count++] = this.#hash;
      at += size;
    }
    this.#rest = this.#count >= promptBlocksMax ? 0 : end - at;
    if (at > 0 && this.#rest > 0) scratch.copyWithin(0, at, end);
  }
}

/** Hashes words of the scratch buffer in four lanes, because one lane would wait for each multiplication. */
function hashOf(before: number, from: number, to: number): number {
  let [a, b, c, d] = [before, ~before, 0x2545f491, 0x5bd1e995];
  for (let at = from; at < to; at += 4) {
    a = Math.imul(a ^ words[at]!, 0x9e3779b1);
    a = (a << 13) | (a >>> 19);
    b = Math.imul(b ^ words[at + 1]!, 0x85ebca6b);
    b = (b << 13) | (b >>> 19);
    c = Math.imul(c ^ words[at + 2]!, 0xc2b2ae35);
    c = (c << 13) | (c >>> 19);
    d = Math.imul(d ^ words[at + 3]!, 0x27d4eb2f);
    d = (d << 13) | (d >>> 19);
  }
  return mixed(a ^ ((b << 7) | (b >>> 25)) ^ ((c << 12) | (c >>> 20)) ^ ((d << 18) | (d >>> 14)));
}

/** A 32-bit number in which each input bit affects each output bit. */
export function mixed(number: number): number {
  let hash = Math.imul(number ^ (number >>> 16), 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The blocks of a conversation, or of what follows the blocks `before`. */
export function promptBlocks(turns: readonly Turn[], tools: readonly Tool[], before = noBlocks): PromptBlocks {
  const blocks = new Blocks(before);
  let first = 0;
  while (turns[first]?.role === "system") blocks.turn(turns[first++]!);
  for (const tool of tools) blocks.tool(tool);
  for (; first < turns.length; first++) blocks.turn(turns[first]!);
  return blocks.all;
}

/** Inputs that are read one by one have no shared prefix worth keeping. */
export function promptBlocksOf({ prepared, turns, tools, inputs, voice, bodyBytes }: Ask): PromptBlocks {
  if (inputs !== undefined || voice !== undefined) return { ...noBlocks, bytes: bodyBytes };
  if (prepared === undefined) return promptBlocks(turns, tools);
  return turns.length === 0 ? prepared.blocks : promptBlocks(turns, [], prepared.blocks);
}

/** As text for another thread: one and a half kilobytes for a long prompt, seven for the longest. */
export function packBlocks({ hashes, bytes, end, before, beforeBytes }: PromptBlocks): string {
  if (bytes === 0) return "";
  const text = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.byteLength).toString("base64");
  return `${bytes} ${end} ${before} ${beforeBytes} ${text}`;
}

export function unpackBlocks(packed: string): PromptBlocks {
  if (packed === "") return noBlocks;
  const [bytes, end, before, beforeBytes, text = ""] = packed.split(" ");
  const hashes = new Uint32Array(Uint8Array.fromBase64(text).buffer);
  return { hashes, bytes: Number(bytes), end: Number(end), before: Number(before), beforeBytes: Number(beforeBytes) };
}
