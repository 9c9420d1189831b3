// Limits how many expensive operations run at once, in total and per account: fetches of strangers' addresses, PDFs,
// searches, calls of MCP servers, inflated bodies, lookups of stored responses. Waiting accounts take turns.
import { FairQueue } from "./fair-queue.ts";
import type { AccountId } from "./types.ts";

type Waiting = Readonly<{ account: AccountId; enter(): void }>;

export class AccountTurns {
  readonly #max: number;
  readonly #accountMax: number;
  /** Running operations by account; accounts without any are absent. */
  readonly #running = new Map<AccountId, number>();
  readonly #waiting = new FairQueue<Waiting>();
  #all = 0;

  constructor(max: number, accountMax: number) {
    this.#max = max;
    this.#accountMax = accountMax;
  }

  get running(): number {
    return this.#all;
  }

  openOf(account: AccountId): number {
    return (this.#running.get(account) ?? 0) + this.waitingOf(account);
  }

  waitingOf(account: AccountId): number {
    return this.#waiting.countOf(account);
  }

  /** A turn at once, if one is left for the account; dispose of it to give it back. */
  take(account: AccountId): Disposable | null {
    return this.#mayRun(account) ? this.#run(account) : null;
  }

  /** Waits for a turn. Rejects with the reason of `cancelSignal` when that aborts. */
  enter(account: AccountId, cancelSignal?: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (cancelSignal?.aborted === true) return reject(cancelSignal.reason);
      const turn = this.take(account);
      if (turn !== null) return resolve(turn);
      const waiting: Waiting = {
        account,
        enter: () => {
          cancelSignal?.removeEventListener("abort", leave);
          resolve(this.#run(account));
        },
      };
      const leave = () => {
        this.#waiting.leave(waiting);
        reject(cancelSignal!.reason);
      };
      this.#waiting.enter(waiting);
      cancelSignal?.addEventListener("abort", leave, { once: true });
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

  #end(account: AccountId): void {
    const left = this.#running.get(account)! - 1;
    if (left === 0) this.#running.delete(account);
    else this.#running.set(account, left);
    this.#all--;
    const next = this.#waiting.next((each) => this.#mayRun(each));
    if (next === null) return;
    this.#waiting.leave(next);
    next.enter();
  }
}
