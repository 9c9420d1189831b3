// Files that clients upload and batches write: what is known of each is a row, and its content a file in a folder. The rows are in
// a database, so that an account's files can be counted; the folder is the data folder's own, or one that several gateways share.
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import type { ConversationRows } from "../core/conversations.ts";

export type StoredFile = Readonly<{
  /** `file-` and a stem; later ones sort later. */
  id: string;
  accountId: AccountId;
  filename: string;
  purpose: string;
  bytes: number;
  createdAt: Ms;
  /** Null: it stays until somebody deletes it. */
  expiresAt: Ms | null;
}>;

export type FileMeta = Pick<StoredFile, "filename" | "purpose" | "expiresAt">;

/** `after`: behind the file of that id, in the order asked for. */
export type FilePage = Readonly<{ purpose?: string; after?: string; limit: number; order: "asc" | "desc" }>;

/** A file that grows over days. It is in no list before `finish`, but its bytes count; it is never refused for its size. */
export interface FileWriter {
  readonly file: StoredFile;
  /** Written so far. */
  readonly bytes: number;
  /** One after the other, in the order of the calls. Rejects where the disk is full or fails. */
  append(content: Uint8Array): Promise<void>;
  /** Everything so far is on disk. */
  flush(): Promise<void>;
  /** The file is the account's from here on. */
  finish(): Promise<StoredFile>;
  /** Lets go of it unfinished: `resumeWriter` takes it up again. */
  close(): Promise<void>;
}

/** The content of a file on its way in. What is not kept leaves nothing. */
export interface Upload extends AsyncDisposable {
  write(content: Uint8Array): Promise<Refusal | null>;
  /** Of what was written. */
  read(at: number, bytes: number): Promise<Buffer>;
  keep(meta: FileMeta): Promise<StoredFile | Refusal>;
}

type Content = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** An account never finds another's. What the database or disk fails at rejects, but for a full disk, which is a refusal. */
export interface Files {
  /** How many bytes a file may have. */
  readonly fileBytesMax: number;
  readonly accountBytesMax: number;
  /** Whether the disk may take more; the rest of it is the ledger's. */
  hasRoom(): boolean;
  /** When a file of now expires that says nothing of it. */
  usualExpiry(): Ms;
  upload(account: AccountId): Promise<Upload | Refusal>;
  create(account: AccountId, meta: FileMeta, content: Content): Promise<StoredFile | Refusal>;
  writer(account: AccountId, meta: FileMeta): Promise<FileWriter>;
  /** An unfinished one, with the first `bytes` of what was flushed; null where there is none. */
  resumeWriter(account: AccountId, id: string, bytes: number): Promise<FileWriter | null>;
  get(account: AccountId, id: string): Promise<StoredFile | null>;
  list(account: AccountId, page: FilePage): Promise<readonly StoredFile[]>;
  /** For streaming; it may be gone where the folder is not the one that all gateways share. */
  read(file: StoredFile): Bun.BunFile;
  /** Also one that is not finished. False where the account has none with that id. */
  remove(account: AccountId, id: string): Promise<boolean>;
  removeExpired(now: Ms): Promise<void>;
  eraseAccount(account: AccountId): Promise<void>;
}

/** What files take: of one account, and of all. */
export type FileUse = Readonly<{ files: number; bytes: number; allBytes: number }>;

/** What an account and all together may have; a file more than that is not added. */
export type FileBounds = Readonly<{ accountFilesMax: number; accountBytesMax: number; totalBytesMax: number }>;

/** The rows, in whichever database. */
export interface FileRows extends ConversationRows {
  /** False where it would go beyond the bounds; null: there are none. */
  add(file: StoredFile, isFinished: boolean, bounds: FileBounds | null): Promise<boolean>;
  use(account: AccountId): Promise<FileUse>;
  find(account: AccountId, id: string, isFinished: boolean): Promise<StoredFile | null>;
  list(account: AccountId, page: FilePage, now: Ms): Promise<readonly StoredFile[]>;
  grow(id: string, bytes: number, isFinished: boolean): Promise<void>;
  remove(account: AccountId, id: string): Promise<boolean>;
  /** Gives the ids of what it removed. */
  removeExpired(now: Ms): Promise<readonly string[]>;
  removeAll(account: AccountId): Promise<readonly string[]>;
  /** Those of the ids that have a row. */
  known(ids: readonly string[]): Promise<readonly string[]>;
  close(): Promise<void>;
}
