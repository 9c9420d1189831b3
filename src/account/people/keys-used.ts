// Remembers when keys were last used, and writes it down now and then: nothing of it is on a request's path but the note
// of a time. A crash forgets at most what is not written yet.
import { type AccountId, defaultKey, type KeyId, type Ms } from "../../core/types.ts";
import type { Journal } from "../journal.ts";
import type { LoadedAccount } from "../money/loaded-account.ts";
import type { LoadedKey } from "../money/loaded-key.ts";

/** What has a last use: a named key, or an account for its first key. */
export type Used = {
  usedAt: Ms | null;
  /** The disk knows an earlier one, or none. */
  isUseUnwritten: boolean;
};

export class KeysUsed {
  readonly #journal: Pick<Journal, "change" | "writable">;
  readonly #unwritten: Readonly<{ used: Used; account: AccountId; key: KeyId }>[] = [];

  constructor(journal: Pick<Journal, "change" | "writable">) {
    this.#journal = journal;
  }

  /** A request came by this key; `named` is null for the account's first one. */
  used(account: LoadedAccount, named: LoadedKey | null, key: KeyId, now: Ms): void {
    if (key < defaultKey) return;
    const used: Used = named ?? account;
    used.usedAt = now;
    if (used.isUseUnwritten) return;
    used.isUseUnwritten = true;
    this.#unwritten.push({ used, account: account.id, key });
  }

  /** Queues some of what the disk does not know, with whatever else is committed next. */
  write(most: number): void {
    if (!this.#journal.writable) return;
    for (const { used, account, key } of this.#unwritten.splice(0, most)) {
      used.isUseUnwritten = false;
      this.#journal.change({ change: "key_used", account, key, at: used.usedAt! });
    }
  }
}
