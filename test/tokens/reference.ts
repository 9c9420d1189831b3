// tiktoken itself, as WebAssembly: what the tokenizer is compared with. The gateway never runs it.
import { Tiktoken } from "tiktoken/lite";
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "json" };
import { Reading, Tokenizer } from "../../src/tokens/tokenizer.ts";

export const reference = new Tiktoken(o200kBase.bpe_ranks, o200kBase.special_tokens, o200kBase.pat_str);

export const tokenizer = new Tokenizer("o200k_base");
export const { vocabulary } = tokenizer;
/** Its windows are so small that ordinary pieces need several, and that some do not fit together at first. */
export const tinyWindows = new Tokenizer("o200k_base", 16);

/** The same tokens read a few steps at a time. */
export function encodeInSteps(text: string): Uint32Array {
  const reading = new Reading(tokenizer, new TextEncoder().encode(text), true);
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
  "ing",
  "the",
  " the",
  "\r\n",
  "//",
  "👩‍👩‍👧",
  "<|endoftext|>",
];
