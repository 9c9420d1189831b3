// The rows of files, in SQLite and PostgreSQL alike.
import type { FileBounds, FilePage, FileRows, FileUse, StoredFile } from "../../files/files.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { rowsIn, rowsText, statement } from "../questions.ts";
import { ConversationTables, eraseConversations } from "./conversation-tables.ts";

export class FileTables extends ConversationTables implements FileRows {
  /** One after the other, so that each sees what the others take. */
  add(file: StoredFile, isFinished: boolean, bounds: FileBounds | null): Promise<boolean> {
    const { id, accountId, filename, purpose, bytes, createdAt, expiresAt } = file;
    return this.tables.change(
      async (send) => {
        if (bounds !== null) {
          const [taken] = await send<FileUse>(use, accountId);
          if (
            taken!.files >= bounds.accountFilesMax ||
            taken!.bytes + bytes > bounds.accountBytesMax ||
            taken!.allBytes + bytes > bounds.totalBytesMax
          ) {
            return false;
          }
        }
        await send(insert, id, accountId, filename, purpose, bytes, createdAt, expiresAt, Number(isFinished));
        return true;
      },
      { alone: "stored_files" },
    );
  }

  async use(account: AccountId): Promise<FileUse> {
    return (await this.tables.ask<FileUse>(use, account))[0]!;
  }

  async find(account: AccountId, id: string, isFinished: boolean): Promise<StoredFile | null> {
    return (await this.tables.ask<StoredFile>(find, account, id, Number(isFinished)))[0] ?? null;
  }

  list(account: AccountId, page: FilePage, now: Ms): Promise<readonly StoredFile[]> {
    const { purpose = "", after = "", limit, order } = page;
    return this.tables.ask(order === "asc" ? oldest : newest, account, now, purpose, after, limit);
  }

  async grow(id: string, bytes: number, isFinished: boolean): Promise<void> {
    await this.tables.change((send) => send(grow, id, bytes, Number(isFinished)));
  }

  async remove(account: AccountId, id: string): Promise<boolean> {
    return (await this.tables.change((send) => send(remove, account, id))).length > 0;
  }

  removeExpired(now: Ms): Promise<readonly string[]> {
    return this.tables.change(async (send) => (await send<Id>(expire, now)).map(({ id }) => id));
  }

  removeAll(account: AccountId): Promise<readonly string[]> {
    return this.tables.change(async (send) => {
      await eraseConversations(send, account);
      return (await send<Id>(erase, account)).map(({ id }) => id);
    });
  }

  async known(ids: readonly string[]): Promise<readonly string[]> {
    return (await this.tables.ask<Id>(known, rowsText(ids.map((id) => [id])))).map(({ id }) => id);
  }

  async close(): Promise<void> {}
}

type Id = Readonly<{ id: string }>;

const columns = `id, account_id::float8 AS "accountId", filename, purpose, bytes::float8 AS bytes,
  created_at::float8 AS "createdAt", expires_at::float8 AS "expiresAt"`;
const listed = `SELECT ${columns} FROM stored_files WHERE account_id = $1::text::bigint AND finished = 1
  AND (expires_at IS NULL OR expires_at > $2::text::bigint) AND ($3::text = '' OR purpose = $3::text)`;

const insert = statement(
  "insert file",
  `INSERT INTO stored_files (id, account_id, filename, purpose, bytes, created_at, expires_at, finished)
   VALUES ($1::text, $2::text::bigint, $3::text, $4::text, $5::text::bigint, $6::text::bigint, $7::text::bigint,
     $8::text::int)`,
);
const use = statement(
  "use of files",
  `SELECT count(*)::float8 AS files, coalesce(sum(bytes), 0)::float8 AS bytes,
     (SELECT coalesce(sum(bytes), 0)::float8 FROM stored_files) AS "allBytes"
   FROM stored_files WHERE account_id = $1::text::bigint`,
);
const find = statement(
  "find file",
  `SELECT ${columns} FROM stored_files
   WHERE account_id = $1::text::bigint AND id = $2::text AND finished = $3::text::int`,
);
const oldest = statement("oldest files", `${listed} AND id > $4::text ORDER BY id LIMIT $5::text::int`);
const newest = statement(
  "newest files",
  `${listed} AND ($4::text = '' OR id < $4::text) ORDER BY id DESC LIMIT $5::text::int`,
);
const grow = statement(
  "grow file",
  "UPDATE stored_files SET bytes = $2::text::bigint, finished = $3::text::int WHERE id = $1::text",
);
const remove = statement(
  "remove file",
  "DELETE FROM stored_files WHERE account_id = $1::text::bigint AND id = $2::text RETURNING id",
);
const expire = statement(
  "expire files",
  "DELETE FROM stored_files WHERE expires_at <= $1::text::bigint AND finished = 1 RETURNING id",
);
const erase = statement("erase files", "DELETE FROM stored_files WHERE account_id = $1::text::bigint RETURNING id");
const known = statement("known files", `SELECT id FROM stored_files WHERE id IN (${rowsIn(1, "text")})`);
