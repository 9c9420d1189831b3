// What a dialect is: it reads a client's body into an Ask and writes an answer's pieces as its own events or JSON.
// A dialect knows no balance, node, database or server.
import type { ByteWriter } from "../core/byte-writer.ts";
import type { KnownModels } from "../core/catalog.ts";
import type { Ask, Endpoint, FinishReason, Piece, Refusal, Usage } from "../core/types.ts";
import type { Earlier, References, StoredResponse } from "./stored-responses.ts";

/** What a reply says of itself in every event: minted by the gateway, never taken from a node. */
export type ReplyIdentity = Readonly<{ requestId: string; createdSeconds: number }>;

/** The end of an answer as a client sees it. */
export type AnswerEnd = Readonly<{ reason: FinishReason; stopSequence: string | null; usage: Usage }>;

/** A reply as the events of a stream, or as one JSON document: the stream, collected. */
export type ReplyForm = "events" | "whole";

/**
 * Writes one reply. Each result is zero or more whole server-sent events; of the form "whole" there are none, and what `end`
 * returns is the reply.
 */
export interface Encoder {
  /** A sign of life while nothing else can be sent; valid before and between all events. */
  keepAlive(): string;
  piece(piece: Piece): string;
  /**
   * Writes the event of a text or reasoning literal that lies in `bytes` from `start` to `end` (see `Sink.literal`), if
   * that event is all there is to write; else false, nothing was written, and the literal is to come as a piece.
   */
  literal?(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean;
  /** What the request's input counts, for an encoder that shows it at the start; called at most once, maybe too late. */
  inputCounted?(tokens: number): void;
  /** The last events; called once, after the charge is on disk. */
  end(end: AnswerEnd): string;
  /** The dialect's error event; called instead of `end`, never followed by a terminator. */
  failure(refusal: Refusal): string;
}

export type DialectName = "chat-completions" | "messages" | "responses" | "compaction";

/** What a Worker read, as it goes to the main thread: an Ask without its turns and without objects of classes. */
export type PackedAsk = Omit<Ask, "turns" | "model" | "prepared">;

/** `OwnAsk` is the Ask with what this dialect alone must remember of the request (settings that it echoes, say). */
export interface Dialect<OwnAsk extends Ask = Ask> {
  readonly name: DialectName;
  readonly endpoint: Endpoint;
  /** What a body, not checked yet, refers to; absent in dialects whose requests carry everything themselves. */
  references?(body: unknown): References | null;
  /**
   * A checked request, or the refusal that names the field. `bodyBytes` is the size of the body as sent, `earlier` what
   * was found for its references.
   */
  read(body: unknown, bodyBytes: number, catalog: KnownModels, earlier?: Earlier): OwnAsk | Refusal;
  /** For an Ask that a Worker read: what cannot go to another thread as it is, as something that can, and back. */
  pack?(ask: Omit<OwnAsk, "turns" | "model">): PackedAsk;
  unpack?(packed: PackedAsk, ask: Ask): OwnAsk;
  /** This dialect for one request: its finished response goes to `keep` in the moment in which its end is written. */
  keeping?(ask: OwnAsk, keep: (response: StoredResponse) => void): Dialect<OwnAsk>;
  encoder(ask: OwnAsk, reply: ReplyIdentity, form: ReplyForm): Encoder;
  /** The HTTP status of a refusal in this dialect; `ask` is null when the body was not read. */
  statusOf(refusal: Refusal, ask: OwnAsk | null): number;
  /** The error body as JSON text. */
  errorBody(refusal: Refusal, requestId: string): string;
}
