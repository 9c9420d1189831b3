// Plays an answer to an encoder or a collector as the server's outlets do, with texts as strings or as the bytes of a
// node's read.
import { ByteWriter } from "../../src/core/byte-writer.ts";
import { Collected } from "../../src/dialects/reply/collected.ts";
import type { AnswerEnd, Encoder } from "../../src/dialects/dialect.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Ask, Piece, Refusal } from "../../src/core/types.ts";
import { type AnyDialectName, dialects, identity, opened } from "./dialects.ts";
import { writerOf } from "../fixtures/reading.ts";

export type Step =
  | Piece
  /** Nothing came for so long that a sign of life is due. */
  | Readonly<{ kind: "silence" }>
  /** The request's input was counted. */
  | Readonly<{ kind: "counted"; tokens: number }>;

export type Answer = Readonly<{ steps: readonly Step[]; end: AnswerEnd | Refusal }>;

/** How texts come: pieces with a string, or literals in the buffer of a read. */
export type Way = "strings" | "bytes";
export const ways: readonly Way[] = ["strings", "bytes"];

/** The whole stream. */
export function streamOf(name: AnyDialectName, ask: Ask, { steps, end }: Answer, way: Way): string {
  const encoder = writerOf(ask).encoder(identity, "events");
  const out = new ByteWriter(64); // small, so that it has to grow
  for (const step of steps) write(encoder, step, way, out);
  out.text(isRefusal(end) ? encoder.failure(end) : encoder.end(end));
  return opened(out.toString());
}

function write(encoder: Encoder, step: Step, way: Way, out: ByteWriter): void {
  switch (step.kind) {
    case "silence":
      return out.text(encoder.keepAlive());
    case "counted":
      return encoder.inputCounted?.(step.tokens);
    default: {
      const read = way === "bytes" ? readWith(step) : null;
      const written = read !== null && encoder.literal?.(read.kind, read.bytes, read.start, read.end, out) === true;
      if (!written) out.text(encoder.piece(step));
    }
  }
}

/** The whole reply of a request that does not stream; the error document if the answer fails. */
export function replyOf(name: AnyDialectName, ask: Ask, { steps, end }: Answer, way: Way): string {
  if (isRefusal(end)) return dialects[name].errorBody(end, identity.requestId);
  const collected = new Collected(writerOf(ask).encoder(identity, "whole"));
  for (const step of steps) {
    if (step.kind === "silence" || step.kind === "counted") continue;
    const read = way === "bytes" ? readWith(step) : null;
    if (read === null) collected.piece(step);
    else collected.literal(read.kind, read.bytes, read.start, read.end);
  }
  return opened(collected.end(end));
}

type Read = Readonly<{ kind: "text" | "reasoning"; bytes: Uint8Array; start: number; end: number }>;

/** A read of a node's socket in which the piece's literal lies; null for pieces that never come as bytes. */
function readWith(piece: Piece): Read | null {
  if ((piece.kind !== "text" || piece.logprobs !== null) && piece.kind !== "reasoning") return null;
  const before = 'data: {"choices":[{"delta":{"content":';
  const bytes = Buffer.from(`${before}${piece.literal}}}]}\n\n`);
  const start = Buffer.byteLength(before);
  return { kind: piece.kind, bytes, start, end: start + Buffer.byteLength(piece.literal) };
}
