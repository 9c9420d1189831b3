// How many of something expensive run at once, in all and for one account, so that no account keeps the others waiting
// and the gateway is nobody's weapon: fetches of addresses that strangers chose, PDFs that are read.
import type { AccountId } from "../core/types.ts";

type Waiting = { account: AccountId; enter(): void };

export class AccountTurns {
  readonly #max: number;
  readonly #accountMax: number;
  /** What runs now, by account; an account without any is not in it. */
  readonly #running = new Map<AccountId, number>();
  readonly #waiting = new Set<Waiting>();
  #all = 0;

  constructor(max: number, accountMax: number) {
    this.#max = max;
    this.#accountMax = accountMax;
  }

  get running(): number {
    return this.#all;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Waits for a turn, which is given back by disposing it. Rejects with the reason of `cancelSignal` when that is aborted. */
  enter(account: AccountId, cancelSignal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (cancelSignal.aborted) return reject(cancelSignal.reason);
      if (this.#mayRun(account)) return resolve(this.#run(account));
      const waiting: Waiting = {
        account,
        enter: () => {
          cancelSignal.removeEventListener("abort", leave);
          resolve(this.#run(account));
        },
      };
      const leave = () => {
        this.#waiting.delete(waiting);
        reject(cancelSignal.reason);
      };
      this.#waiting.add(waiting);
      cancelSignal.addEventListener("abort", leave, { once: true });
    });
  }

  #mayRun(account: AccountId): boolean {
    return this.#all < this.#max && (this.#running.get(account) ?? 0) < this.#accountMax;
  }

  #run(account: AccountId): Disposable {
    this.#all++;
    this.#running.set(account, (this.#running.get(account) ?? 0) + 1);
    let over = false;
    return {
      [Symbol.dispose]: () => {
        if (over) return;
        over = true;
        this.#end(account);
      },
    };
  }

  /** The longest waiting whose account has a turn left goes next. */
  #end(account: AccountId): void {
    const left = this.#running.get(account)! - 1;
    if (left === 0) this.#running.delete(account);
    else this.#running.set(account, left);
    this.#all--;
    for (const waiting of this.#waiting) {
      if (!this.#mayRun(waiting.account)) continue;
      this.#waiting.delete(waiting);
      return waiting.enter();
    }
  }
}
