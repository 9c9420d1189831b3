// Finds a browser's address as far as it is known: behind a proxy, the other end of the connection is the proxy's.
import { clientAddress } from "../http/client-address.ts";
import { forwardingHeaderIn, isNearAddress } from "../http/forwarding.ts";
import type { Log } from "../core/log.ts";

export type BrowserAddress = Readonly<{
  address: string;
  /** It is a proxy's, behind which browsers cannot be told apart. */
  isShared: boolean;
}>;

export class BrowserAddresses {
  readonly #header: string | null;
  readonly #log: Log;
  #unnamed: string | null = null;

  /** `header`: where a proxy in front names the browser's address; null: there is none. */
  constructor(header: string | null, log: Log) {
    this.#header = header;
    this.#log = log;
  }

  /** What an operator should know of proxies that were seen; null: nothing. */
  get notice(): string | null {
    if (this.#unnamed === null) return null;
    const wrong = this.#header === null ? "address_header of [console] is missing" : `it sends no ${this.#header}`;
    return (
      `browsers come through a proxy (it sends ${this.#unnamed}), but ${wrong}: ` +
      "all of them count as one, and sign-in attempts are only slowed down; name the header that has their address"
    );
  }

  of(request: Request, connection: Parameters<typeof clientAddress>[1]): BrowserAddress {
    const peer = clientAddress(request, connection, this.#header) ?? "";
    if (this.#header !== null && request.headers.has(this.#header)) return { address: peer, isShared: false };
    // From elsewhere it is a stranger's word, who would like not to be counted by the address.
    const by = isNearAddress(peer) ? forwardingHeaderIn(request.headers) : null;
    if (by !== null && this.#unnamed === null) {
      this.#unnamed = by;
      this.#log("warn", this.notice!);
    }
    return { address: peer, isShared: by !== null };
  }
}
