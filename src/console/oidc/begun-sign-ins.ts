// Started sign-ins with an identity provider: signed, kept by the browser for ten minutes, and each usable once.
import { createHmac, timingSafeEqual } from "node:crypto";
import { triedKeysMax } from "../../core/limits.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { ProviderChecks } from "./identity-provider.ts";

/** From the click to the identity provider's answer. */
export const providerSignInMs = 10 * 60_000;

export type BegunSignIn = Readonly<{
  checks: ProviderChecks;
  next: string;
  /** The id of the link that it uses. */
  link: number | null;
  /** The signed-in account to connect with the provider. */
  account: AccountId | null;
}>;

type Sealed = BegunSignIn & Readonly<{ expiresAt: Ms }>;

export class BegunSignIns {
  readonly #key: Uint8Array;
  /** States that came back, and until when they would be valid; oldest first. */
  readonly #over = new Map<string, Ms>();

  /** `secret` is the data folder's; the key derived from it signs nothing else. */
  constructor(secret: Uint8Array) {
    this.#key = createHmac("sha256", secret).update("sign-ins with a provider").digest();
  }

  seal(begun: BegunSignIn, now: Ms): string {
    const text = Buffer.from(JSON.stringify({ ...begun, expiresAt: now + providerSignInMs } satisfies Sealed));
    const written = text.toString("base64url");
    return `${written}.${this.#sign(written).toString("base64url")}`;
  }

  /** The started sign-in of the state that came back; null the next time. `kept` may be any text. */
  take(kept: string, state: string, now: Ms): BegunSignIn | null {
    const [written = "", signature = ""] = kept.split(".", 2);
    const given = Buffer.from(signature, "base64url");
    const own = this.#sign(written);
    if (given.length !== own.length || !timingSafeEqual(given, own)) return null;
    const { expiresAt, ...begun } = parseOutsideJson(Buffer.from(written, "base64url").toString()) as Sealed;
    if (now >= expiresAt || state !== begun.checks.state || this.#over.has(state)) return null;
    this.#over.set(state, expiresAt);
    for (const [oldest, until] of this.#over) {
      if (this.#over.size <= triedKeysMax && now < until) break;
      this.#over.delete(oldest);
    }
    return begun;
  }

  #sign(written: string): Buffer {
    return createHmac("sha256", this.#key).update(written).digest();
  }
}
