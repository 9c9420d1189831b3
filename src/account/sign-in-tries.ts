// How often somebody may try to sign in: per account, whether it exists or not, and per address.
import { signInAddressTriesMax, signInTriesMax, signInWindowMs } from "../limits.ts";
import type { Ms } from "../types.ts";
import { RecentTries } from "./recent-tries.ts";

export class SignInTries {
  readonly #byName = new RecentTries(signInTriesMax, signInWindowMs);
  readonly #byAddress = new RecentTries(signInAddressTriesMax, signInWindowMs);

  /**
   * Counts a try, and gives 0; or the seconds until the next one is allowed, when it is not counted. `now` is
   * monotonic.
   */
  count(email: string, address: string, now: Ms): number {
    const name = nameOf(email);
    const place = networkOf(address);
    const waitMs = Math.max(this.#byName.waitMs(name, now), this.#byAddress.waitMs(place, now));
    if (waitMs > 0) return Math.ceil(waitMs / 1000);
    this.#byName.add(name, now);
    this.#byAddress.add(place, now);
    return 0;
  }

  /** The password was right: whoever knows it need not be slowed down. */
  succeeded(email: string): void {
    this.#byName.forget(nameOf(email));
  }
}

/** As the database compares e-mails: ASCII letters in any case. Hashed, so that a long name costs no more memory. */
const nameOf = (email: string): string =>
  Bun.hash(email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())).toString(36);

/** One household has a whole /64 of IPv6. */
function networkOf(address: string): string {
  if (!address.includes(":") || address.startsWith("::ffff:")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(":").length;
  return [...groups, ...Array<string>(Math.max(0, missing)).fill("0"), ...(tail ?? "").split(":")]
    .slice(0, 4)
    .join(":");
}
