// The rows of files, in SQLite and PostgreSQL alike: each thing is one statement, written once. `:n1` is a number,
// `:t1` a text, `:list1` a JSON array of texts.
import type { FileBounds, FilePage, FileRows, FileUse, StoredFile } from "../../files/files.ts";
import type { AccountId, Ms } from "../../core/types.ts";

export type FileValue = string | number | null;
/** Runs one of the statements below, by its name. */
export type RunFileStatement = <Row>(
  name: keyof typeof fileStatements,
  ...values: readonly FileValue[]
) => Promise<readonly Row[]>;

const columns = `id, CAST(account_id AS float8) AS account_id, filename, purpose, CAST(bytes AS float8) AS bytes,
  CAST(created_at AS float8) AS created_at, CAST(expires_at AS float8) AS expires_at`;
const finished = "account_id = :n1 AND finished = 1";
const listed = `SELECT ${columns} FROM stored_files WHERE ${finished}
  AND (expires_at IS NULL OR expires_at > :n2) AND (:t3 = '' OR purpose = :t3)`;

export const fileStatements = {
  add: `INSERT INTO stored_files (id, account_id, filename, purpose, bytes, created_at, expires_at, finished)
    SELECT :t1, :n2, :t3, :t4, :n5, :n6, :n7, :n8
    WHERE (SELECT count(*) FROM stored_files WHERE account_id = :n2) < :n9
      AND (SELECT coalesce(sum(bytes), 0) FROM stored_files WHERE account_id = :n2) + :n5 <= :n10
      AND (SELECT coalesce(sum(bytes), 0) FROM stored_files) + :n5 <= :n11
    RETURNING id`,
  use: `SELECT CAST(count(*) AS float8) AS files, CAST(coalesce(sum(bytes), 0) AS float8) AS bytes,
    (SELECT CAST(coalesce(sum(bytes), 0) AS float8) FROM stored_files) AS "allBytes"
    FROM stored_files WHERE account_id = :n1`,
  find: `SELECT ${columns} FROM stored_files WHERE account_id = :n1 AND id = :t2 AND finished = :n3`,
  oldest: `${listed} AND id > :t4 ORDER BY id LIMIT :n5`,
  newest: `${listed} AND (:t4 = '' OR id < :t4) ORDER BY id DESC LIMIT :n5`,
  grow: "UPDATE stored_files SET bytes = :n2, finished = :n3 WHERE id = :t1",
  remove: "DELETE FROM stored_files WHERE account_id = :n1 AND id = :t2 RETURNING id",
  expire: "DELETE FROM stored_files WHERE expires_at <= :n1 AND finished = 1 RETURNING id",
  erase: "DELETE FROM stored_files WHERE account_id = :n1 RETURNING id",
  known: "SELECT id FROM stored_files WHERE id IN (:list1)",
} as const;

type Row = Omit<StoredFile, "accountId" | "createdAt" | "expiresAt"> &
  Readonly<{ account_id: AccountId; created_at: Ms; expires_at: Ms | null }>;
type Id = Readonly<{ id: string }>;

const fileOf = ({ account_id, created_at, expires_at, ...row }: Row): StoredFile => ({
  ...row,
  accountId: account_id,
  createdAt: created_at,
  expiresAt: expires_at,
});

const unbounded: FileBounds = {
  accountFilesMax: Number.MAX_SAFE_INTEGER,
  accountBytesMax: Number.MAX_SAFE_INTEGER,
  totalBytesMax: Number.MAX_SAFE_INTEGER,
};

export class FileRowsIn implements FileRows {
  readonly #run: RunFileStatement;
  readonly close: () => Promise<void>;

  constructor(run: RunFileStatement, close: () => Promise<void>) {
    this.#run = run;
    this.close = close;
  }

  async add(file: StoredFile, isFinished: boolean, bounds: FileBounds | null): Promise<boolean> {
    const { id, accountId, filename, purpose, bytes, createdAt, expiresAt } = file;
    const { accountFilesMax, accountBytesMax, totalBytesMax } = bounds ?? unbounded;
    const values = [id, accountId, filename, purpose, bytes, createdAt, expiresAt, Number(isFinished)];
    return (await this.#run("add", ...values, accountFilesMax, accountBytesMax, totalBytesMax)).length > 0;
  }

  async use(account: AccountId): Promise<FileUse> {
    return (await this.#run<FileUse>("use", account))[0]!;
  }

  async find(account: AccountId, id: string, isFinished: boolean): Promise<StoredFile | null> {
    const [row] = await this.#run<Row>("find", account, id, Number(isFinished));
    return row === undefined ? null : fileOf(row);
  }

  async list(account: AccountId, page: FilePage, now: Ms): Promise<readonly StoredFile[]> {
    const { purpose = "", after = "", limit, order } = page;
    const rows = await this.#run<Row>(order === "asc" ? "oldest" : "newest", account, now, purpose, after, limit);
    return rows.map(fileOf);
  }

  async grow(id: string, bytes: number, isFinished: boolean): Promise<void> {
    await this.#run("grow", id, bytes, Number(isFinished));
  }

  async remove(account: AccountId, id: string): Promise<boolean> {
    return (await this.#run("remove", account, id)).length > 0;
  }

  async removeExpired(now: Ms): Promise<readonly string[]> {
    return (await this.#run<Id>("expire", now)).map(({ id }) => id);
  }

  async removeAll(account: AccountId): Promise<readonly string[]> {
    return (await this.#run<Id>("erase", account)).map(({ id }) => id);
  }

  async known(ids: readonly string[]): Promise<readonly string[]> {
    return (await this.#run<Id>("known", JSON.stringify(ids))).map(({ id }) => id);
  }
}
