// The audit log: what operators did, in the console or by commands. An entry is committed together with the change that
// it describes.
import type { Soon } from "../core/soon.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { Draft } from "./draft.ts";

export type AuditAction =
  | "account.create"
  | "account.plan"
  | "account.credit"
  | "account.disable"
  | "account.enable"
  | "account.password"
  | "account.password_link"
  | "account.operator"
  | "account.connect"
  | "account.export"
  | "account.delete"
  | "invitation.create"
  | "invitation.withdraw"
  | "node.drain"
  | "node.resume"
  | "key.create"
  | "key.rename"
  | "key.limits"
  | "key.revoke"
  | "key.rotate"
  | "end_user.erase"
  | "end_user.export"
  | "request.approve"
  | "request.decline"
  | "server.reload"
  | "server.backup"
  | "server.restore";

/** As the subject of an entry: the server itself; as its operator: a command. Accounts are numbered from 1. */
export const theServer: AccountId = 0;

/** As long as other details, which people write. */
const detailMaxLength = 500;

/** Of what nobody did in the console: `by` says how it came, in the place of a browser's address. */
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
  detail: detail.slice(0, detailMaxLength),
});

/** For `by` of an entry: a command, and the system user who ran it. */
export const byCommandOf = (user: string): string => `command line (${user})`;

export type AuditEntry = Readonly<{
  id: number;
  at: Ms;
  operator: AccountId;
  /** From which the operator's browser came; of a command, whose it was. */
  address: string;
  action: AuditAction;
  /** The account that was acted on, or `theServer`. */
  subject: AccountId;
  /** A sentence without secrets. */
  detail: string;
}>;

export interface AuditRecords {
  /** 0 where the entries are numbered when they are written. */
  nextAuditId(): number;
  /** Newest first, those with an id below `before`. */
  audit(before: number, limit: number): Soon<readonly AuditEntry[]>;
}

export class AuditLog {
  readonly #records: AuditRecords;
  readonly #draft: Draft;

  constructor({ records, draft }: Readonly<{ records: AuditRecords; draft: Draft }>) {
    this.#records = records;
    this.#draft = draft;
  }

  /** In one commit with what it tells of. */
  append(entry: Omit<AuditEntry, "id">): void {
    this.#draft.changes.push({ change: "audit", entry: { ...entry, id: this.#records.nextAuditId() } });
  }

  /** Newest first, those with an id below `before`. */
  async list(before: number, limit: number): Promise<readonly AuditEntry[]> {
    return this.#records.audit(before, limit);
  }
}
