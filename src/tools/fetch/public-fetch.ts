// The interface for reading an address that a stranger chose, without ever touching anything but the public internet.
// Images and files given by URL come through it, and web pages that a search found.
import type { AccountId } from "../../core/types.ts";

export type FetchOptions = Readonly<{
  /** Whose request it is: no account may keep the others from fetching. */
  account: AccountId;
  /** A body that is larger, or says that it is, is refused; nothing is cut off. */
  bytesMax: number;
  /** From the call to the last byte, over all redirects and the wait for a turn. */
  timeoutMs: number;
  redirectsMax: number;
  /** The value of the `accept` header: "image/*", "text/html". */
  accept: string;
}>;

export type Fetched = Readonly<{
  /** The address after the last redirect. */
  url: string;
  /** The content-type without its parameters, in lower case: "text/html"; empty if there is none. */
  mediaType: string;
  /** The charset parameter of the content-type in lower case; null if there is none. */
  charset: string | null;
  bytes: Uint8Array;
}>;

/**
 * The address gave nothing. It says no more on purpose: a blocked address, a closed port, a bad certificate and a 404
 * look alike, so that nobody can map a private network through us.
 */
export class FetchRefused extends Error {
  override readonly name = "FetchRefused";

  constructor() {
    super("The address could not be read");
  }
}

export interface PublicFetch {
  /**
   * Gets an http or https address. Resolves with the body of a 200; rejects with FetchRefused for everything else, also
   * when `cancelSignal` is aborted, at once.
   */
  get(url: string, options: FetchOptions, cancelSignal: AbortSignal): Promise<Fetched>;
}
