// The texts that bench/tokens.ts counts: what people send, and what somebody would send to keep a tokenizer busy.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadVocabulary } from "../src/tokens/vocabulary.ts";

/** Makes a text of about that many bytes of UTF-8, the same in every run. */
export type MakeText = (bytes: number) => Uint8Array;
/** A whole number from 0 to below the given one. */
type Chance = (below: number) => number;

/** The one that the others are compared with. */
export const proseName = "English prose (documents)";

const digits = "0123456789";
const smallLetters = "abcdefghijklmnopqrstuvwxyz";
const letters = smallLetters + smallLetters.toUpperCase();

export const texts: Readonly<Record<string, MakeText>> = {
  [proseName]: (bytes) => repeated(filesOf("{.,src,bench,test}/*.md"), bytes),
  "code (the sources)": (bytes) => repeated(filesOf("src/**/*.ts"), bytes),
  JSON: (bytes) => repeated(filesOf("data/{catalog,grafana-dashboard}.json"), bytes),

  a: (bytes) => repeated("a", bytes),
  spaces: (bytes) => repeated(" ", bytes),
  "line feeds": (bytes) => repeated("\n", bytes),
  "one Han character": (bytes) => repeated("語", bytes),
  "one emoji": (bytes) => repeated("😀", bytes),

  "random small letters": (bytes) => characters(bytes, smallLetters),
  "random syllables": (bytes) => joined(bytes, (chance) => pick(chance, "bcdfghklmnprst") + pick(chance, "aeiou")),
  "random small and capital letters": (bytes) => characters(bytes, letters),
  "random words of 2 to 9 letters": (bytes) =>
    joined(bytes, (chance) => ` ${Array.from({ length: 2 + chance(8) }, () => pick(chance, smallLetters)).join("")}`),
  "random base64 in lines": (bytes) =>
    joined(bytes, (chance) => `${Array.from({ length: 76 }, () => pick(chance, `${letters}${digits}+/`)).join("")}\n`),
  "random hexadecimal": (bytes) => characters(bytes, `${digits}abcdef`),
  "random printable ASCII": (bytes) => range(bytes, 0x20, 95),
  "random Latin-1": (bytes) => range(bytes, 0, 256),
  "random Cyrillic": (bytes) => range(bytes, 0x430, 32),
  "random Arabic": (bytes) => range(bytes, 0x627, 36),
  "random Hangul": (bytes) => range(bytes, 0xac00, 11_172),
  "random Han, of 3,000": (bytes) => range(bytes, 0x4e00, 3_000),
  "random Unicode": (bytes) => range(bytes, 0xe000, 0x110000 - 0xe000),
  "random emoji": (bytes) => range(bytes, 0x1f300, 500),
  "letters with random marks": (bytes) =>
    joined(bytes, (chance) => pick(chance, smallLetters) + String.fromCodePoint(0x300 + chance(112))),
  "random bytes, mended": (bytes) => mended(bytes),
  "random white space": (bytes) => characters(bytes, " \t\n\r\u00a0\u3000"),
  "random runs of - and =": (bytes) => joined(bytes, (chance) => pick(chance, "-=").repeat(1 + chance(200))),

  // The longest tokens fit everywhere, and hardly ever two beside each other.
  "letters of random tokens": (bytes) => randomTokens(bytes, (token) => token.replace(/\P{L}+/gu, "")),
  "beginnings of random tokens": (bytes) =>
    randomTokens(bytes, (token, chance) => token.replace(/\P{L}+/gu, "").slice(0, 1 + chance(token.length))),
  "random tokens of small letters": (bytes) => randomTokens(bytes, (token) => token.replace(/[^a-z]+/g, "")),
  "the same without their last letters": (bytes) =>
    randomTokens(bytes, (token) => token.replace(/[^a-z]+/g, "").slice(0, -1)),
};

function filesOf(pattern: string): string {
  const root = join(import.meta.dir, "..");
  const paths = [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort();
  return paths.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
}

function repeated(unit: string, bytes: number): Uint8Array {
  return cut(Buffer.from(unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))), bytes);
}

function range(bytes: number, first: number, count: number): Uint8Array {
  return joined(bytes, (chance) => String.fromCodePoint(first + chance(count)));
}

function characters(bytes: number, alphabet: string): Uint8Array {
  return joined(bytes, (chance) => pick(chance, alphabet));
}

function pick(chance: Chance, alphabet: string): string {
  return alphabet[chance(alphabet.length)]!;
}

function randomTokens(bytes: number, part: (token: string, chance: Chance) => string): Uint8Array {
  const vocabulary = loadVocabulary("o200k_base");
  const decoder = new TextDecoder();
  return joined(bytes, (chance) => {
    const rank = chance(vocabulary.size);
    const token = vocabulary.bytes.subarray(vocabulary.starts[rank]!, vocabulary.starts[rank + 1]!);
    return part(decoder.decode(token), chance);
  });
}

/** What a decoder makes of random bytes. */
function mended(bytes: number): Uint8Array {
  const chance = makeChance();
  const noise = Uint8Array.from({ length: bytes }, () => chance(256));
  return cut(Buffer.from(new TextDecoder().decode(noise)), bytes);
}

/** Parts put together until they are that long. */
function joined(bytes: number, part: (chance: Chance) => string): Uint8Array {
  const chance = makeChance();
  const parts: string[] = [];
  for (let size = 0; size < bytes; size += Buffer.byteLength(parts.at(-1)!)) parts.push(part(chance));
  return cut(Buffer.from(parts.join("")), bytes);
}

/** Not in the middle of a character. */
function cut(text: Uint8Array, bytes: number): Uint8Array {
  let end = Math.min(bytes, text.length);
  while (end < text.length && (text[end]! & 0xc0) === 0x80) end--;
  return text.subarray(0, end);
}

function makeChance(): Chance {
  let state = 1;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}
