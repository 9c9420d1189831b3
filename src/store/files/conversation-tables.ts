// Conversations of the playground beside the rows of files, in SQLite and PostgreSQL alike. A share is an account's choice to keep
// them here, and their sums; a write locks it first, so that nothing is kept for who chose otherwise or was erased.
import type {
  ConversationBounds,
  ConversationHead,
  ConversationRows,
  ConversationShare,
  ConversationWrite,
  ConversationWritten,
} from "../../core/conversations.ts";
import type { AccountId } from "../../core/types.ts";
import { type Question, type Questions, rowsIn, rowsText, type Send, statement } from "../questions.ts";

/** About what a record takes beside its texts. */
const recordBytes = 128;

type Sums = Readonly<{ records: number; bytes: number }>;

export class ConversationTables implements ConversationRows {
  protected readonly tables: Questions;

  constructor(tables: Questions) {
    this.tables = tables;
  }

  conversationShare(account: AccountId): Promise<readonly ConversationShare[]> {
    return this.tables.ask(share, account);
  }

  conversationHeads(account: AccountId): Promise<readonly ConversationHead[]> {
    return this.tables.ask(heads, account);
  }

  conversationRecords(
    account: AccountId,
    id: string,
    after: string,
    bytesMax: number,
  ): Promise<readonly Readonly<{ id: string; content: string }>[]> {
    return this.tables.ask(records, account, id, after, bytesMax);
  }

  async conversationsWith(account: AccountId, words: string): Promise<readonly string[]> {
    return (await this.tables.ask<Readonly<{ id: string }>>(found, account, words)).map(({ id }) => id);
  }

  keepConversations(account: AccountId, on: boolean, version: number): Promise<boolean> {
    return this.tables.change(async (send) => {
      if (on) await send(choose, account);
      else {
        const [mine] = await send<ConversationShare>(touch, account);
        if (mine !== undefined && mine.version !== version + 1) return false;
        await eraseConversations(send, account);
      }
      return true;
    });
  }

  writeConversation(
    account: AccountId,
    { id, known, records: given }: ConversationWrite,
    { conversationsMax, accountBytesMax, totalBytesMax }: ConversationBounds,
  ): Promise<ConversationWritten> {
    const last = new Map(given.map((record) => [record.id, record])); // of two with one id, as if one came after the other
    const rows = [...last.values()].map(({ id: record, words, content, once = false }) => {
      const bytes = Buffer.byteLength(content) + Buffer.byteLength(words) + recordBytes;
      return { record, words: wellFormed(words), content: wellFormed(content), once, bytes };
    });
    return this.tables.change(async (send) => {
      const [mine] = await send<ConversationShare>(touch, account);
      if (mine === undefined) return { state: "off", version: 0 };
      const { version } = mine;
      const [all] = await send<Sums>(sums, account, id);
      if (known && all!.records === 0) return { state: "gone", version };
      const before = await send<Readonly<{ id: string; bytes: number }>>(
        sizes,
        account,
        id,
        rowsText(rows.map(({ record }) => [record])),
      );
      const sizeOf = new Map(before.map((row) => [row.id, row.bytes]));
      const written = rows.filter(({ record, once }) => !once || !sizeOf.has(record));
      const added = written.reduce((sum, { record, bytes }) => sum + bytes - (sizeOf.get(record) ?? 0), 0);
      const [taken] = await send<Readonly<{ bytes: number }>>(total);
      const isFull =
        mine.conversations + (all!.records === 0 ? 1 : 0) > conversationsMax ||
        mine.bytes + added > accountBytesMax ||
        taken!.bytes + added > totalBytesMax;
      if (isFull && added > 0) return { state: "full", version };
      for (const { record, words, content, bytes } of written) {
        await send(put, account, id, record, bytes, words, content);
      }
      await send(grow, account, added, all!.records === 0 ? 1 : 0);
      return { state: "kept", version };
    });
  }

  async removeConversations(account: AccountId, ids: readonly string[]): Promise<void> {
    await this.tables.change(async (send) => {
      await send(touch, account);
      for (const id of ids) {
        const [all] = await send<Sums>(sums, account, id);
        if (all!.records === 0) continue;
        await send(remove, account, id);
        await send(grow, account, -all!.bytes, -1);
      }
    });
  }
}

export async function eraseConversations(send: Send, account: AccountId): Promise<void> {
  await send(eraseShare, account);
  await send(eraseRecords, account);
}

/** PostgreSQL's texts hold neither NUL nor half a character. */
const wellFormed = (text: string): string => text.toWellFormed().replaceAll("\0", "\ufffd");

const question = (name: string, text: string): Question => statement(`conversations: ${name}`, text);
const ofAccount = "account_id = $1::text::bigint";
const ofConversation = `${ofAccount} AND conversation = $2::text`;
const shown = "version::float8 AS version, conversations::float8 AS conversations, bytes::float8 AS bytes";

const share = question("share", `SELECT ${shown} FROM conversation_shares WHERE ${ofAccount}`);
const choose = question(
  "choose",
  `INSERT INTO conversation_shares (account_id, version, conversations, bytes) VALUES ($1::text::bigint, 1, 0, 0)
   ON CONFLICT (account_id) DO NOTHING`,
);
const touch = question(
  "touch",
  `UPDATE conversation_shares SET version = version + 1 WHERE ${ofAccount} RETURNING ${shown}`,
);
const grow = question(
  "grow",
  `UPDATE conversation_shares SET bytes = bytes + $2::text::bigint, conversations = conversations + $3::text::bigint
   WHERE ${ofAccount}`,
);
const total = question("total", "SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM conversation_shares");
const heads = question(
  "heads",
  `SELECT conversation, id, content FROM conversation_records WHERE ${ofAccount} AND id IN ('', '~')
   ORDER BY conversation, id`,
);
const sums = question(
  "sums",
  `SELECT count(*)::float8 AS records, coalesce(sum(bytes), 0)::float8 AS bytes
   FROM conversation_records WHERE ${ofConversation}`,
);
const sizes = question(
  "sizes",
  `SELECT id, bytes::float8 AS bytes FROM conversation_records WHERE ${ofConversation} AND id IN (${rowsIn(3, "text")})`,
);
const records = question(
  "records",
  `SELECT id, content FROM (
     SELECT id, content, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM conversation_records
     WHERE ${ofConversation} AND id > $3::text) AS later
   WHERE before < $4::text::bigint ORDER BY id`,
);
const found = question(
  "found",
  `SELECT DISTINCT conversation AS id FROM conversation_records
   WHERE ${ofAccount} AND strpos(words, $2::text) > 0`,
);
const put = question(
  "put",
  `INSERT INTO conversation_records (account_id, conversation, id, bytes, words, content)
   VALUES ($1::text::bigint, $2::text, $3::text, $4::text::bigint, $5::text, $6::text)
   ON CONFLICT (account_id, conversation, id) DO UPDATE SET
     bytes = excluded.bytes, words = excluded.words, content = excluded.content`,
);
const remove = question("remove", `DELETE FROM conversation_records WHERE ${ofConversation}`);
const eraseShare = question("erase share", `DELETE FROM conversation_shares WHERE ${ofAccount}`);
const eraseRecords = question("erase records", `DELETE FROM conversation_records WHERE ${ofAccount}`);
