// Which account a person of an identity provider has: found by the provider's issuer and the person's number there, which
// never change, and not by an address, which may be given to somebody else. In a unit of the office.
import type { AccountId, Ms } from "../../core/types.ts";
import type { Draft } from "../draft.ts";
import type { Identity, OfficeRecords } from "../records.ts";

export class Identities {
  readonly #records: OfficeRecords;
  readonly #draft: Draft;
  readonly #now: Ms;

  constructor({ records, draft, now }: Readonly<{ records: OfficeRecords; draft: Draft; now: Ms }>) {
    this.#records = records;
    this.#draft = draft;
    this.#now = now;
  }

  /** Null: no account has it. */
  async accountOf(issuer: string, subject: string): Promise<AccountId | null> {
    return this.#records.accountOfIdentity(issuer, subject);
  }

  async of(account: AccountId): Promise<readonly Identity[]> {
    return this.#records.identitiesOf(account);
  }

  /** Replaces the account's identity at the same issuer; the new one must belong to no account here. */
  connect(issuer: string, subject: string, account: AccountId): void {
    const identity: Identity = { issuer, subject, account, connectedAt: this.#now };
    this.#draft.changes.push({ change: "identity", identity });
  }
}
