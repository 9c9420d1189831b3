// Inflates compressed bodies beside the streams, accounts in turn, with the output limited while it is produced.
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { bodyMaxBytes } from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import { refuse } from "../core/refusals.ts";
import { AccountTurns } from "../core/account-turns.ts";
import type { AccountId, Refusal } from "../core/types.ts";
import type { ArrivingBody } from "./arriving-bodies.ts";

/** The output is at most this many times the input; agents' conversations compress to a tenth. */
const inflatedRatioMax = 100;
/** Small bodies of repeated text compress better than that, and cost little. */
const inflatedAlwaysMaxBytes = 1024 * 1024;
/** Bodies that a thread inflates at once, each at up to 32 MiB and 60 ms of a core; others wait their turn. */
const inflatingMax = 4;
const inflatingAccountMax = 2;

assert(inflatingAccountMax < inflatingMax, "an account leaves turns to others: compressed bodies");

export type Encoding = "gzip" | "deflate" | "br" | "zstd";

/** Output comes in pieces of this size: bodies of 1 MB take at most 16 turns of the event loop. */
const chunkSize = 64 * 1024;
/** RFC 9659: a decoder need not support a window larger than 8 MiB, nor spend memory on one. */
const zstdWindowLogMax = 23;

const inflaters = {
  gzip: () => createGunzip({ chunkSize }),
  // The name means zlib's format; some clients omit its two header bytes.
  deflate: (first: number) => ((first & 0x0f) === 8 ? createInflate({ chunkSize }) : createInflateRaw({ chunkSize })),
  br: () => createBrotliDecompress({ chunkSize }),
  zstd: () => createZstdDecompress({ chunkSize, params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLogMax } }),
} as const;

/** How a body is compressed; null: not at all; "unknown": unsupported, or several encodings. */
export function encodingOf(headers: Headers): Encoding | "unknown" | null {
  const named = headers.get("content-encoding");
  if (named === null) return null;
  const encoding = named.trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return null;
  if (encoding === "x-gzip") return "gzip";
  return Object.hasOwn(inflaters, encoding) ? (encoding as Encoding) : "unknown";
}

const turns = new AccountTurns(inflatingMax, inflatingAccountMax);

/** The body before compression, with its memory counted in `arrival`. Rejects when `cancelSignal` aborts. */
export async function inflate(
  compressed: Uint8Array,
  encoding: Encoding,
  account: AccountId,
  cancelSignal: AbortSignal,
  arrival: ArrivingBody,
): Promise<Uint8Array | Refusal> {
  using _turn = await turns.enter(account, cancelSignal);
  const ratioMaxBytes = Math.max(inflatedAlwaysMaxBytes, compressed.byteLength * inflatedRatioMax);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const inflater = inflaters[encoding](compressed[0] ?? 0);
  inflater.end(compressed);
  try {
    // Leaving the loop early destroys it.
    for await (const chunk of inflater as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      if (bytes > bodyMaxBytes) return refuse("body_too_large");
      if (bytes > ratioMaxBytes) {
        return refuse("unreadable", {
          reason: `The request body inflates to more than ${inflatedRatioMax} times its size; send it uncompressed`,
        });
      }
      const refusal = arrival.take(chunk.byteLength);
      if (refusal !== null) return refusal;
      chunks.push(chunk);
    }
  } catch (error) {
    return refuse("unreadable", { reason: `The request body is not valid ${encoding}: ${(error as Error).message}` });
  }
  // Bun 1.4.5 reports nothing where zstd data end too early.
  if (bytes === 0)
    return refuse("unreadable", { reason: `The request body is empty, or its ${encoding} data end early` });
  return Buffer.concat(chunks, bytes);
}
