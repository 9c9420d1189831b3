// Which account a person of an identity provider has: found by the provider's issuer and the person's number there, which
// never change, and not by an address, which may be given to somebody else.
import type { AccountId, Ms } from "../core/types.ts";
import type { InSameCommit, Journal } from "./journal.ts";

export type Identity = Readonly<{ issuer: string; subject: string; account: AccountId; connectedAt: Ms }>;

/** Every call gives the committed state and throws StoreUnavailable when the disk cannot be read. */
export interface IdentityRecords {
  accountOfIdentity(issuer: string, subject: string): AccountId | null;
  identitiesOf(account: AccountId): readonly Identity[];
}

export class Identities {
  readonly #records: IdentityRecords;
  readonly #journal: Journal;
  #last: Promise<unknown> = Promise.resolve();

  constructor(records: IdentityRecords, journal: Journal) {
    this.#records = records;
    this.#journal = journal;
  }

  /** Null: nobody here is called so. */
  accountOf(issuer: string, subject: string): AccountId | null {
    return this.#records.accountOfIdentity(issuer, subject);
  }

  of(account: AccountId): readonly Identity[] {
    return this.#records.identitiesOf(account);
  }

  /** Takes the place of the account's one of the same issuer. Inside of `inTurn`, for one that nobody has. */
  async connect(identity: Identity, inSameCommit?: InSameCommit): Promise<void> {
    const sequence = this.append(identity);
    inSameCommit?.();
    await this.#journal.durable(sequence);
  }

  /** The same, on disk with what is appended in the same turn. */
  append(identity: Identity): number {
    return this.#journal.change({ change: "identity", identity });
  }

  /** One after the other, so that who looks whether there is an account and makes one is alone: two tabs make one. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {}); // told to who waits for `done`
    return done;
  }
}
