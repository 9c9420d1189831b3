// What verbs work on: the books of a running server, or those that a command opened by itself, and what keeps beside them.
import type { Office } from "../account/office.ts";
import type { Passwords } from "../account/sign-in/passwords.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";
import type { ReloadOutcome } from "./reloaded.ts";

/** Says how far a long operation is, in one line of words. */
export type Progress = (line: string) => void;

export type BackupMade = Readonly<{ file: string; bytes: number; integrity: string }>;

export type Work = Readonly<{
  office: Office;
  passwords: Pick<Passwords, "hashNew">;
  /** Where browsers find the console, without a slash at the end. */
  consoleUrl: string;
  requestLog: RequestLogQueries & Readonly<{ erase(account: AccountId): Promise<void> }>;
  /** Removes the stored responses of an account, wherever they are; `forEver`: none of that account are kept anymore. */
  eraseResponses(account: AccountId, forEver: boolean): Promise<void>;
  /** What an erasure takes away from the ledger, in words. */
  erasedInWords: string;
  /** Copies the database to a new file while it is in use, and checks the copy. */
  backup(file: string, progress: Progress): Promise<BackupMade>;
  /** Null where no server runs. */
  fleet: Fleet | null;
}>;

/** How a node stands after it was drained or resumed. `busy`: requests that still run there. */
export type DrainReport = Readonly<{ name: string; drained: boolean; busy: number; gateway?: string }>;

/** The running server and its nodes. */
export type Fleet = Readonly<{
  nodes(): Soon<readonly object[]>;
  models(): Soon<object>;
  gateways(): Promise<readonly object[]>;
  /** Throws CommandError where there is no such node, as `resume`. */
  drain(name: string): DrainReport;
  resume(name: string): DrainReport;
  /** What is wrong with the configuration is `refused`, and then nothing has changed. */
  reload(): Promise<ReloadOutcome>;
  /** `unready`: why requests should go elsewhere; `nodes`: what is wrong with all nodes. In words, or null. */
  health(): Readonly<{ unready: string | null; nodes: string | null }>;
  /** Posts a notice to a webhook: null, or why it was not taken. */
  testWebhook(name: string): Promise<string | null>;
}>;
