// Finds a browser's address. Behind a proxy, the connection itself only shows the proxy's.
import { clientAddress } from "../http/client-address.ts";
import { forwardingHeaderIn, isNearAddress } from "../http/forwarding.ts";
import type { Log } from "../core/log.ts";

type BrowserAddress = Readonly<{
  address: string;
  /** The address is a proxy's, behind which browsers are indistinguishable. */
  isShared: boolean;
}>;

export class BrowserAddresses {
  readonly #header: string | null;
  readonly #log: Log;
  #unnamed: string | null = null;

  /** `header`: the header in which a proxy puts the browser's address; null: none is configured. */
  constructor(header: string | null, log: Log) {
    this.#header = header;
    this.#log = log;
  }

  /** A warning for operators about a proxy that was seen; null: none. */
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
    // From farther away, the header may be forged to avoid being counted by address.
    const by = isNearAddress(peer) ? forwardingHeaderIn(request.headers) : null;
    if (by !== null && this.#unnamed === null) {
      this.#unnamed = by;
      this.#log("warn", this.notice!);
    }
    return { address: peer, isShared: by !== null };
  }
}
