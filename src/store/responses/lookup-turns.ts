// Whose look-up the Worker of stored responses gets next: it works in order, and a conversation may take it a second. An
// account's look-ups go one after the other, so that whoever asks for many holds others up for one of them.
import { storedResponsesLookupsMax, storedResponsesLookupsWaitingMax } from "../../core/limits.ts";
import type { AccountId } from "../../core/types.ts";

export class LookupTurns {
  readonly #running = new Set<AccountId>();
  /** In the order of turns; no list is empty. */
  readonly #waiting = new Map<AccountId, (() => void)[]>();

  /** Whether so many of the account wait that no more may. */
  isFull(account: AccountId): boolean {
    return (this.#waiting.get(account)?.length ?? 0) >= storedResponsesLookupsWaitingMax;
  }

  /** Calls `lookUp` when it is the account's turn, at once where nothing of its own and little of others runs. */
  async run<Result>(account: AccountId, lookUp: () => Promise<Result>): Promise<Result> {
    if (this.#running.size < storedResponsesLookupsMax && !this.#running.has(account)) this.#running.add(account);
    else await this.#turn(account);
    try {
      return await lookUp();
    } finally {
      this.#running.delete(account);
      this.#advance();
    }
  }

  #turn(account: AccountId): Promise<void> {
    return new Promise((enter) => {
      const waiting = this.#waiting.get(account);
      if (waiting === undefined) this.#waiting.set(account, [enter]);
      else waiting.push(enter);
    });
  }

  /** An account that gets a turn goes to the end of the line. */
  #advance(): void {
    for (const [account, waiting] of this.#waiting) {
      if (this.#running.has(account)) continue;
      this.#waiting.delete(account);
      const enter = waiting.shift()!;
      if (waiting.length > 0) this.#waiting.set(account, waiting);
      this.#running.add(account);
      return enter();
    }
  }
}
