// Recognizes browsers that signed in to an account before, so that a stranger's tries on its name do not count against
// them. The browser keeps a signed text that is no secret: the account's number and a random number of the browser.
// It opens nothing, and is valid only while the account has the same password and is not disabled. Nothing is kept
// here.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { AccountRecord } from "../records.ts";

type Owner = Pick<AccountRecord, "id" | "passwordHash" | "disabledAt">;

const browserBytes = 12;
/** Number of the account, of the browser, and both signed; base64url. */
const shape = /^(\d{1,15})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/;

export class KnownBrowsers {
  readonly #key: Uint8Array;

  /** `secret` is the data folder's own; what is signed here is good for nothing else that it protects. */
  constructor(secret: Uint8Array) {
    this.#key = createHmac("sha256", secret).update("known browsers").digest();
  }

  /** What a browser on which the owner signed in keeps; `before`, which it had already, stays its number. */
  introduce(owner: Owner, before: string | null): string {
    const browser = before ?? randomBytes(browserBytes).toString("base64url");
    return `${owner.id}.${browser}.${this.#sign(owner.id, browser, owner.passwordHash).toString("base64url")}`;
  }

  /** The browser's number, if it signed in to the account of `owner` before. Any text is safe; `owner` may be null. */
  recognize(kept: string | null, owner: Owner | null): string | null {
    const [, account, browser, signature] = shape.exec(kept ?? "") ?? [];
    if (account === undefined || browser === undefined || signature === undefined) return null;
    // Also for null, so that the time it takes does not reveal which accounts exist.
    const fits = timingSafeEqual(
      Buffer.from(signature, "base64url"),
      this.#sign(Number(account), browser, owner?.passwordHash ?? null),
    );
    const isOwners = owner !== null && owner.id === Number(account) && owner.disabledAt === null;
    return fits && isOwners && owner.passwordHash !== null ? browser : null;
  }

  /** A hash of a password has its salt, so that each new one is another. */
  #sign(account: number, browser: string, passwordHash: string | null): Buffer {
    return createHmac("sha256", this.#key)
      .update(`${account}.${browser}.${passwordHash ?? ""}`)
      .digest();
  }
}
