// What accounts need from a journal. How lines reach the disk is up to the store.
import type { AccountId, KeyId, KeyLimits, Ms, PlanId } from "../core/types.ts";
import type { Entry } from "./money/entry.ts";
import type {
  AccessLink,
  AuditEntry,
  DeviceCode,
  Identity,
  KeyRecord,
  Mail,
  OperatorToken,
  PurchaseRequest,
  SessionRecord,
  TeamMember,
} from "./records.ts";
import type { Period } from "./money/quota.ts";

export type AccountChange =
  | Readonly<{
      change: "create";
      account: AccountId;
      email: string;
      plan: PlanId;
      keyHash: string;
      keyEnding: string;
      passwordHash: string | null;
      operator: boolean;
      team?: boolean;
      at: Ms;
    }>
  /** Of a team. */
  | Readonly<{ change: "name"; account: AccountId; name: string }>
  /** Who joins the team, or is changed there. */
  | Readonly<{ change: "member"; account: AccountId; member: TeamMember }>
  | Readonly<{ change: "remove_member"; account: AccountId; member: AccountId }>
  | Readonly<{ change: "plan"; account: AccountId; plan: PlanId }>
  /** Takes away the links by which the account's password could be set: they went elsewhere. */
  | Readonly<{ change: "mail_address"; account: AccountId; address: string | null }>
  | Readonly<{ change: "mail_kinds"; account: AccountId; kinds: readonly string[] }>
  | Readonly<{ change: "language"; account: AccountId; language: string }>
  /** Credit was added: what it is since then. */
  | Readonly<{ change: "purchased"; account: AccountId; credit: number; at: Ms }>
  /** Of lines from then on. */
  | Readonly<{ change: "cost_center"; account: AccountId; costCenter: string | null }>
  | Readonly<{ change: "key"; account: AccountId; keyHash: string; keyEnding: string; at: Ms }>
  | Readonly<{ change: "new_key"; key: KeyRecord; account: AccountId }>
  | Readonly<{ change: "key_name"; account: AccountId; key: KeyId; name: string }>
  | Readonly<{ change: "key_limits"; account: AccountId; key: KeyId; limits: Partial<KeyLimits> }>
  /** A machine's key has another token, which is void from `expiresAt` on. */
  | Readonly<{
      change: "key_token";
      account: AccountId;
      key: KeyId;
      keyHash: string;
      keyEnding: string;
      refreshHash: string;
      expiresAt: Ms;
    }>
  | Readonly<{ change: "revoke_key"; account: AccountId; key: KeyId; at: Ms }>
  /** Takes the revocation back. */
  | Readonly<{ change: "restore_key"; account: AccountId; key: KeyRecord }>
  | Readonly<{ change: "key_used"; account: AccountId; key: KeyId; at: Ms }>
  /** Who it was is taken away, of all keys; its lines stay. */
  | Readonly<{ change: "erase_end_user"; account: AccountId; name: string }>
  /** Takes away the links by which it could be set. */
  | Readonly<{ change: "password"; account: AccountId; passwordHash: string | null }>
  | Readonly<{ change: "operator"; account: AccountId; operator: boolean }>
  /** `at` null: the account may be used again. */
  | Readonly<{ change: "disabled"; account: AccountId; at: Ms | null }>
  /** Who it was is taken away: its name, key, password, sessions and what people wrote. Its lines stay; its pending requests end: one for this is granted. */
  | Readonly<{ change: "erase"; account: AccountId; email: string; name: string; keyHash: string; at: Ms }>
  /** Calls of the search service that day, in all. */
  | Readonly<{ change: "search_calls"; account: AccountId; day: Period; calls: number }>
  | ConsoleChange;

/** What the console keeps beside the accounts. */
type ConsoleChange =
  | Readonly<{ change: "open_session"; session: SessionRecord }>
  | Readonly<{ change: "use_session"; id: number; at: Ms }>
  | Readonly<{ change: "end_session"; id: number }>
  /** All sessions of the account but one. */
  | Readonly<{ change: "end_sessions"; account: AccountId; except: number | null }>
  | Readonly<{ change: "purchase_request"; request: PurchaseRequest }>
  /** Has no effect on a request that is not pending. */
  | Readonly<{ change: "decision"; id: number; state: PurchaseRequest["state"]; at: Ms; note: string }>
  | Readonly<{ change: "payment"; id: string; account: AccountId; tokens: number; at: Ms }>
  /** Takes the place of the account's one of the same issuer; an account that does not exist gets none. */
  | Readonly<{ change: "identity"; identity: Identity }>
  /** Takes the place of the account's unused one; what is over since `forgetBefore` goes, which looks at all links. */
  | Readonly<{ change: "link"; link: AccessLink; forgetBefore: Ms | null }>
  /** Has no effect on one that was used. */
  | Readonly<{ change: "use_link"; id: number; account: AccountId; at: Ms }>
  | Readonly<{ change: "withdraw_link"; id: number }>
  /** Removes those that are over. */
  | Readonly<{ change: "device_code"; code: DeviceCode; now: Ms }>
  | Readonly<{ change: "deny_device_code"; deviceHash: string; at: Ms }>
  | Readonly<{ change: "end_device_code"; deviceHash: string }>
  | Readonly<{ change: "operator_token"; token: OperatorToken }>
  | Readonly<{ change: "revoke_operator_token"; id: number; at: Ms }>
  /** Has no effect where there is one of the same `once`. */
  | Readonly<{ change: "mail"; mail: Mail }>
  | Readonly<{ change: "mail_state"; mail: Omit<Mail, "kind" | "account" | "address" | "createdAt" | "keptUntil"> }>
  | Readonly<{ change: "forget_mail"; once: string }>
  | Readonly<{ change: "forget_mails"; before: Ms }>
  | Readonly<{ change: "audit"; entry: AuditEntry }>;

export interface Journal {
  /** False while the disk takes no writes (busy or full): nothing new may be admitted. */
  readonly writable: boolean;
  /** Queues a line for the next commit and returns its sequence number within this process. */
  append(entry: Entry): number;
  /** Queues a change for the next commit; in one commit with the lines appended in the same turn of the event loop. */
  change(change: AccountChange): number;
  /**
   * Resolves when the line or change is on disk; rejects with StoreUnavailable when it was given up, or a change refused,
   * and never will be. Who must know of a change waits for it and not for a line beside it.
   */
  durable(sequence: number): Promise<void>;
}

export interface UnitJournal extends Journal {
  /** Queues all changes of a unit, as `change` does one: all of them are written, or none. */
  changes(unit: readonly AccountChange[]): number;
}

/** Called with each line exactly once, before its waiters. */
export interface JournalListener {
  committed(entry: Entry): void;
  /** The line was given up, or the account that it is about could not be made: whatever was done in memory for it must be undone. */
  lost(entry: Entry): void;
}
