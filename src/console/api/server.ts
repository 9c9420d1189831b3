// The server as operators see it: totals, configuration, backups, webhooks and the audit log.
import { type Static, Type } from "@sinclair/typebox";
import { closed, count, nullable, oneOf, time, wholeText } from "./shapes.ts";

/** All accounts together. `today` counts replies that are on disk. */
export const OperatorTotals = Type.Object({
  accounts: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  today: Type.Object({
    requests: count(),
    input: count(),
    output: count(),
    billed_tokens: count(),
    billed_usd: Type.Number(),
  }),
  pending_purchase_requests: count(),
  models: Type.Array(
    Type.Object({ model: Type.String(), requests: count(), billed_tokens: count(), served: Type.Boolean() }),
  ),
});
export type OperatorTotals = Static<typeof OperatorTotals>;

/** What a reload did: names of parts of the configuration. */
export const ReloadResult = Type.Object({
  time: time(),
  /** What is wrong with the configuration; then nothing has changed. */
  refused: nullable(Type.String()),
  /** Changed, and in force now. */
  applied: Type.Array(Type.String()),
  /** Other than what the server was started with, and not in force. */
  needs_restart: Type.Array(Type.String()),
});
export type ReloadResult = Static<typeof ReloadResult>;

export const BackupResult = Type.Object({
  state: oneOf(["running", "done", "failed"]),
  started_at: time(),
  file: Type.String(),
  /** 0 until it is done. */
  bytes: count(),
  duration_ms: count(),
  /** Why it failed, else empty. A backup that is done was checked: every page of it is sound. */
  message: Type.String(),
});
export type BackupResult = Static<typeof BackupResult>;

/** Files of the folder of backups, made by the console or by the schedule. */
export const BackupFile = Type.Object({ file: Type.String(), bytes: count(), made_at: time() });
export type BackupFile = Static<typeof BackupFile>;

/** Never with its address or its secret. */
export const ConsoleWebhook = Type.Object({
  name: Type.String(),
  host: Type.String(),
  format: Type.String(),
  signed: Type.Boolean(),
  events: Type.Array(Type.String()),
  /** Since the server started; `failed` are tries, `dropped` were given up. */
  sent: count(),
  failed: count(),
  dropped: count(),
  /** On their way. */
  waiting: count(),
  last_sent_at: nullable(time()),
  /** Why the last try failed; null where it did not. */
  problem: nullable(Type.String()),
});
export type ConsoleWebhook = Static<typeof ConsoleWebhook>;

export const NamedWebhook = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a webhook" }) },
  closed,
);

/** `problem`: null where it was taken. */
export const WebhookTest = Type.Object({ name: Type.String(), problem: nullable(Type.String()) });
export type WebhookTest = Static<typeof WebhookTest>;

export const OperatorServer = Type.Object({
  /** Of several gateways the one that answers; null: it is the only one. */
  gateway: nullable(Type.String()),
  /** Null: there is none; flags and environment are all. */
  config_file: nullable(Type.String()),
  /** When the configuration in force was read. */
  config_loaded_at: time(),
  /** The last one that was asked for in the console since the server started. */
  reload: nullable(ReloadResult),
  /** Null: the ledger is in PostgreSQL, and nobody makes backups here. */
  backup_folder: nullable(Type.String()),
  /** On the disk of the ledger; null: it is in PostgreSQL, or the system does not say. */
  disk_free_bytes: nullable(count()),
  backup: nullable(BackupResult),
  /** Null: the server makes none by itself. */
  backup_schedule: nullable(Type.Object({ every_ms: count(), keep: count() })),
  /** The newest first, of more than 100 those. */
  backups: Type.Array(BackupFile),
  webhooks: Type.Array(ConsoleWebhook),
});
export type OperatorServer = Static<typeof OperatorServer>;

export const AuditQuery = Type.Object({ after: Type.Optional(wholeText()), limit: Type.Optional(wholeText()) }, closed);

/** Newest first. `action` is a fixed word such as "account.plan"; `detail` is a sentence without secrets. */
export const AuditPage = Type.Object({
  entries: Type.Array(
    Type.Object({
      id: count(),
      time: time(),
      /** Empty where it was a command or the server itself; then `address` says which, and whose command it was. */
      operator: Type.String(),
      address: Type.String(),
      action: Type.String(),
      /** E-mail of the account that was acted on; empty where it was the server itself. */
      subject: Type.String(),
      detail: Type.String(),
    }),
  ),
  next: nullable(Type.String()),
});
export type AuditPage = Static<typeof AuditPage>;
