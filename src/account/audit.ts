// The audit log: what operators did, in the console or by commands. An entry is committed together with the change that
// it describes.
import type { AuditAction } from "../core/audit-actions.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { Draft } from "./draft.ts";
import type { AuditEntry, AuditFilter, OfficeRecords } from "./records.ts";

/** As the subject of an entry: the server itself; as its operator: a command. Accounts are numbered from 1. */
export const theServer: AccountId = 0;

/** As long as other details, which people write. */
export const auditDetailMaxLength = 500;

/** For changes from outside the console: `by` says how, in place of a browser's address. */
export const serverEntry = (
  at: Ms,
  by: string,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): Omit<AuditEntry, "id"> => ({
  at,
  operator: theServer,
  address: by,
  action,
  subject,
  detail: detail.slice(0, auditDetailMaxLength),
});

/** For `by` of an entry: a command, and the system user who ran it. */
export const byCommandOf = (user: string): string => `command line (${user})`;

export class AuditLog {
  readonly #records: OfficeRecords;
  readonly #draft: Draft;

  constructor({ records, draft }: Readonly<{ records: OfficeRecords; draft: Draft }>) {
    this.#records = records;
    this.#draft = draft;
  }

  append(entry: Omit<AuditEntry, "id">): void {
    this.#draft.changes.push({ change: "audit", entry: { ...entry, id: this.#records.nextAuditId() } });
  }

  /** Newest first, unless the filter says otherwise. */
  async list(limit: number, filter: AuditFilter = {}, offset = 0): Promise<readonly AuditEntry[]> {
    return this.#records.audit(filter, limit, offset);
  }

  async count(filter: AuditFilter): Promise<number> {
    return this.#records.auditCount(filter);
  }
}
