// tiktoken itself, as WebAssembly: what the tokenizers are compared with. The gateway never runs it.
import { Tiktoken } from "tiktoken/lite";
import cl100kBase from "tiktoken/encoders/cl100k_base.json" with { type: "json" };
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "json" };
import p50kBase from "tiktoken/encoders/p50k_base.json" with { type: "json" };
import r50kBase from "tiktoken/encoders/r50k_base.json" with { type: "json" };
import { TokenReading, Tokenizer } from "../../src/tokens/tokenizer.ts";
import type { EncodingName } from "../../src/core/types.ts";

/** A tokenizer, and what it is compared with. */
export type Compared = Readonly<{
  reference: Tiktoken;
  tokenizer: Tokenizer;
  /** Its windows are so small that ordinary pieces need several, and that some do not fit together at first. */
  tinyWindows: Tokenizer;
}>;

function compared(
  encoding: EncodingName,
  file: Readonly<{ bpe_ranks: string; special_tokens: Record<string, number>; pat_str: string }>,
): Compared {
  return {
    reference: new Tiktoken(file.bpe_ranks, file.special_tokens, file.pat_str),
    tokenizer: new Tokenizer(encoding),
    tinyWindows: new Tokenizer(encoding, 16),
  };
}

export const encodings: Readonly<Record<EncodingName, Compared>> = {
  o200k_base: compared("o200k_base", o200kBase),
  cl100k_base: compared("cl100k_base", cl100kBase),
  p50k_base: compared("p50k_base", p50kBase),
  r50k_base: compared("r50k_base", r50kBase),
};

export const { reference, tokenizer } = encodings.o200k_base;

/** The same tokens read a few steps at a time. */
export function encodeInSteps(text: string): Uint32Array {
  const reading = new TokenReading(tokenizer, new TextEncoder().encode(text), true);
  while (!reading.advance(1));
  return reading.tokens();
}

/** Characters and fragments of every class that the pieces depend on, and some that look like others. */
export const fragments: readonly string[] = [
  ..."abstrevlmdABSTRé日本語ßʰǅʕªکاع𐐀𐐨𠀀",
  ..." \t\n\r\v\f\u0085\u00a0\u2028\u3000\ufeff\u200d\u0000",
  ..."0129٣½Ⅷ²",
  ..."!/'\"-_.,(){}[]<>|=+*&#@$%^~`\\:;?€😀",
  ..."\u0301\u0903\u20dd\u0345\u{1e000}",
  "\ud800",
  "\udc00",
  "'s",
  "'RE",
  "'ſ",
  "'Ll",
  "'ll",
  "'ve",
  "ing",
  "the",
  " the",
  "\r\n",
  "//",
  "👩‍👩‍👧",
  "<|endoftext|>",
];
