// Packs texts for the counting Worker: in UTF-8, one after the other.
import type { EncodedTexts } from "../core/types.ts";

export function bytesOf(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return bytes;
}

export function encodeTexts(texts: readonly string[]): EncodedTexts {
  const bytes = new Uint8Array(bytesOf(texts));
  const ends = new Uint32Array(texts.length);
  const encoder = new TextEncoder();
  let end = 0;
  for (const [index, text] of texts.entries()) {
    end += encoder.encodeInto(text, bytes.subarray(end)).written;
    ends[index] = end;
  }
  return { bytes, ends };
}
