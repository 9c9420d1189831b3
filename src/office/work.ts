// What verbs work on: the books of a running server, or those that a command opened, and what is stored beside them.
import type { Office } from "../account/office.ts";
import type { Passwords } from "../account/sign-in/passwords.ts";
import type { UsageQueries } from "../account/usage-queries.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Simulation, SimulationAsked } from "../core/simulation.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";
import type { ConfigEditing } from "./config-editing.ts";
import type { ReloadOutcome } from "./reloaded.ts";

/** Reports the progress of a long operation in one line. */
export type Progress = (line: string) => void;

export type BackupMade = Readonly<{ file: string; bytes: number; integrity: string }>;

export type Work = Readonly<{
  office: Office;
  passwords: Pick<Passwords, "hashNew">;
  /** The console's address, without a trailing slash. */
  consoleUrl: string;
  usage: Pick<UsageQueries, "report">;
  requestLog: RequestLogQueries & Readonly<{ erase(account: AccountId): Promise<void> }>;
  /** Removes an account's stored responses everywhere; `forEver`: none are stored for it anymore. */
  eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  /** What an erasure removes from the ledger, in words. */
  erasedInWords: string;
  /** Copies the database while it is in use, and checks the copy. */
  backup(file: string, progress: Progress): Promise<BackupMade>;
  /** Replays the journal's requests. Rejects with CommandError for what cannot be simulated. */
  simulate(asked: SimulationAsked, progress: Progress): Promise<Simulation>;
  fleet: Fleet | null;
  /** Null: no mail is sent, or not from here. */
  mail: MailDesk | null;
}>;

export type MailDesk = Readonly<{
  /** Of links in mails. */
  secret: Uint8Array;
  /** Sends one at once: what the mail server said. */
  test(address: string): Promise<Readonly<{ answer: string; problem: string | null }>>;
}>;

/** `busy`: requests still running there. */
export type DrainReport = Readonly<{ name: string; drained: boolean; busy: number; gateway?: string }>;

/** A batch as operators see it. */
export type BatchRow = Readonly<{
  id: string;
  account: string | null;
  state: string;
  endpoint: string;
  model: string | null;
  lines: number;
  completed: number;
  failed: number;
  billed_tokens: number;
  created_at: string;
  expires_at: string;
  ended_at: string | null;
  /** Why it waits; null where it does not. */
  waits: string | null;
  /** Of the whole batch. */
  errors: readonly string[];
}>;

export type BatchesDesk = Readonly<{
  /** The newest, of an account or of all. */
  list(account: AccountId | null, limit: number): Promise<readonly BatchRow[]>;
  show(id: string): Promise<BatchRow | null>;
  cancel(id: string): Promise<BatchRow | null>;
}>;

export type Fleet = Readonly<{
  config: ConfigEditing;
  /** Null: no files are taken, and so no batches. */
  batches: BatchesDesk | null;
  nodes(): Soon<readonly object[]>;
  models(): Soon<object>;
  gateways(): Promise<readonly object[]>;
  /** Throws CommandError where there is no such node, as `resume`. */
  drain(name: string): DrainReport;
  resume(name: string): DrainReport;
  /** `refused`: what is wrong with the configuration; then nothing has changed. */
  reload(): Promise<ReloadOutcome>;
  /** `unready`: why requests should go elsewhere; `nodes`: what is wrong with all nodes. Both may be null. */
  health(): Readonly<{ unready: string | null; nodes: string | null }>;
  /** Posts a notice to a webhook: null, or why it was not accepted. */
  testWebhook(name: string): Promise<string | null>;
}>;
