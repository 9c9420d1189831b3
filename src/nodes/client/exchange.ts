// One request to a node and its response, as both sides of the client see them.
import type { SpooledFile } from "../../core/types.ts";
import type { ResponseHeaders } from "./framing.ts";

/** Strings are encoded when they are written; a file is read from `at` on while it goes out. */
export type RequestPart = string | Buffer | FilePart;
export type FilePart = Readonly<{ file: Pick<SpooledFile, "bytes" | "read">; at: number }>;

export type ExchangeFault = Readonly<{
  kind:
    | "unreachable" // refused, no route, unknown name, timeout, or an invalid certificate
    | "no-reply" // closed before a byte of the reply
    | "broken" // closed within the reply
    | "malformed"; // not HTTP as we accept it
  /** For the operator's log; contains nothing that the node sent. */
  cause: string;
}>;

/** Receives one response. After `end` or `fault` nothing more comes; after `Exchange.abort` nothing at all. */
export interface ExchangeHandler {
  head(status: number, headers: ResponseHeaders): void;
  /** A part of the body: a view into the read's buffer, valid only during the call. */
  body(bytes: Buffer, start: number, end: number): void;
  /** All parts of one read of the socket were delivered. */
  readEnd(): void;
  end(): void;
  fault(fault: ExchangeFault): void;
  /** Asked before a request is written again; absent: always true. */
  mayBeSentAgain?(): boolean;
}

export interface Exchange {
  /** Stops reading from the node until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes the connection at once; the handler hears nothing more. */
  abort(): void;
  /** The caller needs no more. Keeps the connection if the response ends within `drainMs`, else closes it. */
  release(drainMs: number): void;
}
