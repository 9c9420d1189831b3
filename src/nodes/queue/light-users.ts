// Who came lately with few requests: the latest two, so that one of them is somebody else for everyone who asks.
import type { Ms } from "../../core/types.ts";
import type { Share } from "./share.ts";

/** Ten people who ask once a minute each are seen as there. */
const lightForMs = 30_000;

type Light = { share: Share | null; member: Share | null; at: Ms };

export class LightUsers {
  #latest: Light = { share: null, member: null, at: -Infinity };
  #other: Light = { share: null, member: null, at: -Infinity };

  came(share: Share, member: Share, now: Ms): void {
    if (this.#latest.member !== member) [this.#latest, this.#other] = [this.#other, this.#latest];
    this.#latest.share = share;
    this.#latest.member = member;
    this.#latest.at = now;
  }

  areThere(now: Ms): boolean {
    return now <= this.#latest.at + lightForMs;
  }

  /** Whether others than this account were there; with `member`, other end users of it. */
  areBeside(share: Share, member: Share | null, now: Ms): boolean {
    const isBeside = (light: Light): boolean =>
      now <= light.at + lightForMs &&
      (member === null ? light.share !== share : light.share === share && light.member !== member);
    return isBeside(this.#latest) || isBeside(this.#other);
  }
}
