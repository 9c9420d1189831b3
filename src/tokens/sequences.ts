// Reads the tiktoken package's rank files. Files rather than modules: only encodings in use are in memory.
import { readFileSync } from "node:fs";
import cl100kBase from "tiktoken/encoders/cl100k_base.json" with { type: "file" };
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "file" };
import p50kBase from "tiktoken/encoders/p50k_base.json" with { type: "file" };
import r50kBase from "tiktoken/encoders/r50k_base.json" with { type: "file" };
import { assert } from "../core/assert.ts";
import type { EncodingName } from "../core/types.ts";

/** An encoding's byte sequences by rank. */
export type Sequences = Readonly<{
  /** Every sequence, one after the other. */
  bytes: Uint8Array;
  /** Where a rank's sequence starts; one entry more than there are ranks. An unused rank has no bytes. */
  starts: Uint32Array;
}>;

/** Imported as files these are paths, whatever the compiler takes JSON for. */
const paths: Readonly<Record<EncodingName, unknown>> = {
  o200k_base: o200kBase,
  cl100k_base: cl100kBase,
  p50k_base: p50kBase,
  r50k_base: r50kBase,
};

const space = 0x20;
const padding = 0x3d;
const sextets = new Int8Array(128).fill(-1);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  sextets[digit.charCodeAt(0)] = value;
}

/** Reads an encoding's file: lines of `! <first rank> <base64> <base64> ...`, in the order of their ranks. */
export function readSequences(encoding: EncodingName): Sequences {
  const { bpe_ranks: ranks } = JSON.parse(readFileSync(String(paths[encoding]), "utf8")) as { bpe_ranks: string };
  const bytes = new Uint8Array(ranks.length);
  const starts: number[] = [0];
  for (const line of ranks.split("\n")) {
    const head = /^! (\d+) /.exec(line);
    assert(head !== null, "a line begins with its first rank");
    const first = Number(head[1]);
    assert(first >= starts.length - 1, "ranks go up");
    while (starts.length - 1 < first) starts.push(starts.at(-1)!);
    decodeLine(line, head[0].length, bytes, starts);
  }
  return { bytes: bytes.slice(0, starts.at(-1)), starts: Uint32Array.from(starts) };
}

/** By hand, because 200,000 calls of a base64 decoder take 250 ms and this takes 20. */
function decodeLine(line: string, from: number, bytes: Uint8Array, starts: number[]): void {
  let end = starts.at(-1)!;
  let bits = 0;
  let bitCount = 0;
  for (let at = from; at <= line.length; at++) {
    const digit = at === line.length ? space : line.charCodeAt(at);
    if (digit === space) {
      if (end > starts.at(-1)!) starts.push(end);
      bitCount = 0;
    } else if (digit !== padding) {
      const sextet = sextets[digit] ?? -1;
      assert(sextet >= 0, "the ranks are base64");
      bits = (bits << 6) | sextet;
      bitCount += 6;
      if (bitCount >= 8) {
        bitCount -= 8;
        bytes[end++] = bits >>> bitCount;
      }
    }
  }
}
