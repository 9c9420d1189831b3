// The server as operators see it: totals, configuration, backups, webhooks and the audit log.
import { type Static, Type } from "@sinclair/typebox";
import { auditActions } from "../../core/audit-actions.ts";
import { emailMaxLength } from "../../core/limits.ts";
import { closed, count, nullable, oneOf, time, wholeText } from "./shapes.ts";

export { ConfigEdit, ConfigEdited, ConfigShown, type ConfigTable, ConfigUndo } from "../../office/config-editing.ts";

/** Something that an operator should look at, and the page of the console that shows more. */
export const OperatorAlert = Type.Object({
  /** Its sentence stands in the catalogs. */
  kind: oneOf([
    "ledger",
    "node",
    "model",
    "disk",
    "backup",
    "old_backup",
    "certificate",
    "node_certificate",
    "account",
    "mail",
  ]),
  /** What it is about, of its kind: the same as long as it lasts. */
  about: Type.String(),
  /** Of its sentence. `day` is such as 2026-11-28. */
  values: Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()])),
  path: Type.String(),
});
export type OperatorAlert = Static<typeof OperatorAlert>;

/** All accounts as they are now. */
export const OperatorTotals = Type.Object({
  accounts: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  pending_purchase_requests: count(),
  alerts: Type.Array(OperatorAlert),
});
export type OperatorTotals = Static<typeof OperatorTotals>;

/** The outcome of a reload, by the names of configuration settings. */
export const ReloadResult = Type.Object({
  time: time(),
  /** What is wrong with the configuration; nothing has changed in that case. */
  refused: nullable(Type.String()),
  /** Changed, and in force now. */
  applied: Type.Array(Type.String()),
  /** Changed since the server started, but not in force. */
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
  /** Why it failed, else empty. Every page of a finished backup was checked. */
  message: Type.String(),
});
export type BackupResult = Static<typeof BackupResult>;

/** A file of the backup folder, made by the console or on schedule. */
export const BackupFile = Type.Object({ file: Type.String(), bytes: count(), made_at: time() });
export type BackupFile = Static<typeof BackupFile>;

/** Without its address and its secret. */
export const ConsoleWebhook = Type.Object({
  name: Type.String(),
  host: Type.String(),
  format: Type.String(),
  signed: Type.Boolean(),
  events: Type.Array(Type.String()),
  /** Since the server started. `failed` counts attempts, `dropped` notices that were given up. */
  sent: count(),
  failed: count(),
  dropped: count(),
  waiting: count(),
  last_sent_at: nullable(time()),
  /** Why the last attempt failed; null: it did not. */
  problem: nullable(Type.String()),
});
export type ConsoleWebhook = Static<typeof ConsoleWebhook>;

export const NamedWebhook = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a webhook" }) },
  closed,
);

/** `problem`: null if the webhook accepted it. */
export const WebhookTest = Type.Object({ name: Type.String(), problem: nullable(Type.String()) });
export type WebhookTest = Static<typeof WebhookTest>;

export const OperatorServer = Type.Object({
  /** The gateway that answers, where several share a database; null: it is the only one. */
  gateway: nullable(Type.String()),
  started_at: time(),
  /** Null: flags and environment variables are the whole configuration. */
  config_file: nullable(Type.String()),
  /** When the configuration in force was read. */
  config_loaded_at: time(),
  /** The last reload that the console requested since the server started. */
  reload: nullable(ReloadResult),
  /** Null: the ledger is in PostgreSQL, which is backed up by its own means. */
  backup_folder: nullable(Type.String()),
  /** On the disk of the ledger; null: it is in PostgreSQL, or unknown. */
  disk_free_bytes: nullable(count()),
  backup: nullable(BackupResult),
  /** Null: there are no automatic backups. */
  backup_schedule: nullable(Type.Object({ every_ms: count(), keep: count() })),
  /** Newest first, at most 100. */
  backups: Type.Array(BackupFile),
  webhooks: Type.Array(ConsoleWebhook),
});
export type OperatorServer = Static<typeof OperatorServer>;

/** E-mail addresses; "server" stands for commands and for what is no account's. Times as in the usage page's filter. */
export const AuditQuery = Type.Object(
  {
    operator: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    account: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    action: Type.Optional(oneOf(auditActions)),
    from: Type.Optional(Type.String({ maxLength: 40 })),
    to: Type.Optional(Type.String({ maxLength: 40 })),
    sort: Type.Optional(oneOf(["time", "-time"])),
    /** From 1 on. One behind the last shows the last. */
    page: Type.Optional(wholeText()),
    limit: Type.Optional(wholeText()),
  },
  closed,
);

export type AuditQuery = Static<typeof AuditQuery>;

/** `action` is a fixed word such as "account.plan"; `detail` is a sentence without secrets. */
export const AuditPage = Type.Object({
  entries: Type.Array(
    Type.Object({
      id: count(),
      time: time(),
      /** Empty: a command or the server itself did it; `address` then says which, and who ran the command. */
      operator: Type.String(),
      address: Type.String(),
      action: Type.String(),
      /** E-mail address of the affected account; empty: the server as a whole. */
      subject: Type.String(),
      detail: Type.String(),
    }),
  ),
  total: count(),
  page: count(),
});
export type AuditPage = Static<typeof AuditPage>;
