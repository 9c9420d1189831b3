// Limits the memory of an account's large bodies while they arrive: a hundred uploads at once would fill it. Slow
// uploads take no room from other accounts.
import { busyRetrySeconds, largeBodiesAccountBytesMax } from "../core/limits.ts";
import { refuse } from "../core/refusals.ts";
import type { AccountId, Refusal } from "../core/types.ts";

/** Bodies of this thread's requests that have not arrived completely: a stop does not wait for replies to them. */
export const unreadBodies = { count: 0 };

export class ArrivingBodies {
  /** Bytes; accounts without any are absent. */
  readonly #held = new Map<AccountId, number>();
  readonly #accountBytesMax: number;

  constructor(accountBytesMax = largeBodiesAccountBytesMax) {
    this.#accountBytesMax = accountBytesMax;
  }

  /** A body begins to arrive. Dispose of the result to give back its room. */
  enter(account: AccountId): ArrivingBody {
    return new ArrivingBody(this, account);
  }

  take(account: AccountId, bytes: number): boolean {
    const held = (this.#held.get(account) ?? 0) + bytes;
    if (held > this.#accountBytesMax) return false;
    if (bytes > 0) this.#held.set(account, held);
    return true;
  }

  giveBack(account: AccountId, bytes: number): void {
    const left = (this.#held.get(account) ?? 0) - bytes;
    if (left > 0) this.#held.set(account, left);
    else this.#held.delete(account);
  }
}

export class ArrivingBody implements Disposable {
  readonly #bodies: ArrivingBodies;
  readonly #account: AccountId;
  #bytes = 0;

  constructor(bodies: ArrivingBodies, account: AccountId) {
    this.#bodies = bodies;
    this.#account = account;
  }

  /** This many more bytes are about to be kept; busy where the account's bodies already take too much. */
  take(bytes: number): Refusal | null {
    if (!this.#bodies.take(this.#account, bytes)) return refuse("busy", { seconds: busyRetrySeconds });
    this.#bytes += bytes;
    return null;
  }

  [Symbol.dispose](): void {
    this.#bodies.giveBack(this.#account, this.#bytes);
    this.#bytes = 0;
  }
}
