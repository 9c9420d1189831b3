// Reads an address that a stranger chose without touching anything but the public internet.
import type { AccountId } from "../../core/types.ts";

export type FetchOptions = Readonly<{
  /** Whose request it is, so that no account can keep the others from fetching. */
  account: AccountId;
  /** A body that is larger, or announces more, is refused; nothing is cut off. */
  bytesMax: number;
  /** From the call to the last byte, including all redirects and the wait for a turn. */
  timeoutMs: number;
  redirectsMax: number;
  /** The value of the `accept` header: "image/*", "text/html". */
  accept: string;
}>;

export type Fetched = Readonly<{
  /** The address after the last redirect. */
  url: string;
  /** The content-type without its parameters, in lower case: "text/html"; empty without one. */
  mediaType: string;
  /** The charset parameter of the content-type in lower case; null without one. */
  charset: string | null;
  bytes: Uint8Array;
}>;

/** Says no more on purpose: a blocked address and a 404 look alike, so that no one can map a private network. */
export class FetchRefused extends Error {
  override readonly name = "FetchRefused";

  constructor() {
    super("The address could not be read");
  }
}

/** No connection, no complete answer, or too much of it. Never leaves this layer: outside, all failures look alike. */
export class ExchangeFailed extends Error {
  override readonly name = "ExchangeFailed";
  /** True before a byte was exchanged, so that the next address of the same name may be tried. */
  readonly unreached: boolean;

  constructor(reason: string, unreached: boolean) {
    super(reason);
    this.unreached = unreached;
  }
}

export interface PublicFetch {
  /** Gets an http(s) address. Resolves with the body of a 200; rejects with FetchRefused for everything else. */
  get(url: string, options: FetchOptions, cancelSignal: AbortSignal): Promise<Fetched>;
}
