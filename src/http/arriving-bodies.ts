// Limits the memory of an account's large bodies while they arrive and are inflated, before it is known what they ask
// for. Without a limit, a hundred uploads at once would fill the memory. An account's uploads, however slow, take no
// room from others.
import { busyRetrySeconds, largeBodiesAccountBytesMax } from "../core/limits.ts";
import { refuse } from "../core/refusals.ts";
import type { AccountId, Refusal } from "../core/types.ts";

/** Those that have not come whole, of this thread's requests: a stop waits for no reply to them. */
export const unreadBodies = { count: 0 };

export class ArrivingBodies {
  /** Bytes; an account without any is not in it. */
  readonly #held = new Map<AccountId, number>();
  readonly #accountBytesMax: number;

  constructor(accountBytesMax = largeBodiesAccountBytesMax) {
    this.#accountBytesMax = accountBytesMax;
  }

  /** A body begins to arrive. What it takes is given back by disposing it. */
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

  /** So many bytes more are about to be kept; busy where the account's bodies take too much already. */
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
