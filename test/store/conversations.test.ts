// Conversations that accounts keep on the server, in SQLite and PostgreSQL alike: browsers that write at once, shares that are full,
// accounts that choose otherwise, and what exports have.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ConversationBounds, ConversationRecord } from "../../src/core/conversations.ts";
import { conversationsOf } from "../../src/store/backup/exported.ts";
import { FileTables } from "../../src/store/files/file-tables.ts";
import { openFilesDatabase } from "../../src/store/files/files-database.ts";
import { PostgresServer } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrations.ts";
import { type Questions, SqliteQuestions } from "../../src/store/questions.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";

const bounds: ConversationBounds = { conversationsMax: 3, accountBytesMax: 4_000, totalBytesMax: 6_000 };
const record = (id: string, content: object, words = ""): ConversationRecord => ({
  id,
  words,
  content: JSON.stringify(content),
});

function behaves(of: () => readonly Questions[]): void {
  let account = 0;
  const begin = async () => {
    const tables = of().map((questions) => new FileTables(questions));
    await tables[0]!.keepConversations(++account, true, 0);
    return { tables, table: tables[0]!, account };
  };
  const write = (table: FileTables, at: number, records: readonly ConversationRecord[], id = "c", known = false) =>
    table.writeConversation(at, { id, known, records }, bounds);

  test("two that write at once lose nothing, and each learns of the other's version", async () => {
    const { tables, account: of } = await begin();
    const written = await Promise.all(
      Array.from({ length: 10 }, (_, at) => write(tables[at % tables.length]!, of, [record(`s${at}`, { at })])),
    );
    expect(written.map(({ state }) => state)).toEqual(Array.from({ length: 10 }, () => "kept"));
    expect(new Set(written.map(({ version }) => version)).size).toBe(10);
    const read = await tables.at(-1)!.conversationRecords(of, "c", "", 1_000_000);
    expect(read.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, at) => `s${at}`));
    const [share] = await tables[0]!.conversationShare(of);
    expect(share).toMatchObject({ conversations: 1, version: 11 });
    // In slices, of at least one record.
    expect(await tables[0]!.conversationRecords(of, "c", "s3", 1)).toEqual([{ id: "s4", content: '{"at":4}' }]);
  });

  test("a name stays that another gave, and sums are those of the records", async () => {
    const { table, account: of } = await begin();
    await write(table, of, [record("", { leaf: "a" }), { ...record("~", { title: "first" }), once: true }]);
    await write(table, of, [record("", { leaf: "b" }), { ...record("~", { title: "second" }), once: true }]);
    const heads = await table.conversationHeads(of);
    expect(heads.map(({ content }) => JSON.parse(content))).toEqual([{ leaf: "b" }, { title: "first" }]);
    await write(table, of, [record("s", { text: "once" }), record("s", { text: "twice" })]);
    const [share] = await table.conversationShare(of);
    await table.removeConversations(of, ["c", "none"]);
    expect(share!.bytes).toBeGreaterThan(256);
    const [emptied] = await table.conversationShare(of);
    expect(emptied).toMatchObject({ conversations: 0, bytes: 0 });
    expect(await write(table, of, [record("s", {})], "c", true)).toMatchObject({ state: "gone" });
  });

  test("a share that is full takes no more, but lets what is there become smaller", async () => {
    const { table, account: of } = await begin();
    expect(await write(table, of, [record("s", { text: "x".repeat(3_000) })])).toMatchObject({ state: "kept" });
    expect(await write(table, of, [record("t", { text: "x".repeat(900) })])).toMatchObject({ state: "full" });
    expect(await write(table, of, [record("s", { text: "x" })])).toMatchObject({ state: "kept" });
    expect(await write(table, of, [record("s", {})], "d")).toMatchObject({ state: "kept" });
    expect(await write(table, of, [record("s", {})], "e")).toMatchObject({ state: "kept" });
    expect(await write(table, of, [record("s", {})], "f")).toMatchObject({ state: "full" });
    const [share] = await table.conversationShare(of);
    expect(await table.keepConversations(of, false, share!.version - 1)).toBe(false);
    const [later] = await table.conversationShare(of);
    expect(await table.keepConversations(of, false, later!.version)).toBe(true);
    expect(await table.conversationHeads(of)).toEqual([]);
  });

  test("who chose otherwise, or was erased, has nothing, and nothing more is kept", async () => {
    const { table, account: of } = await begin();
    await write(table, of, [record("s", { text: "Grüße\0\ud800" }, "grüße\0\ud800 100%")]);
    expect(await table.conversationsWith(of, "0%")).toEqual(["c"]);
    expect(await table.conversationsWith(of, "_")).toEqual([]);
    expect(await table.conversationsWith(of + 1_000, "0%")).toEqual([]);
    await table.removeAll(of);
    expect(await write(table, of, [record("s", {})])).toEqual({ state: "off", version: 0 });
    expect(await table.conversationRecords(of, "c", "", 1_000_000)).toEqual([]);
    expect(await table.conversationShare(of)).toEqual([]);
  });

  test("an export has each record once, as JSON", async () => {
    const { table, account: of } = await begin();
    await write(table, of, [record("", { leaf: "s" }), record("~", { title: "A" }), record("s", { text: "x" })]);
    await write(table, of, [{ id: "s/0", words: "", content: "no JSON" }]);
    const exported: unknown[] = [];
    for await (const item of conversationsOf(of_(), of)) exported.push(JSON.parse(item));
    expect(exported).toEqual([
      { conversation: "c", id: "", content: { leaf: "s" } },
      { conversation: "c", id: "s", content: { text: "x" } },
      { conversation: "c", id: "s/0", content: "no JSON" },
      { conversation: "c", id: "~", content: { title: "A" } },
    ]);
  });
  const of_ = (): Questions => of()[0]!;
}

describe("conversations in SQLite", () => {
  const database = openFilesDatabase(":memory:");
  const questions = new SqliteQuestions(database);
  behaves(() => [questions]);
  afterAll(() => database.close());
});

describe.skipIf(noPostgres)("conversations in PostgreSQL, of two gateways", () => {
  let postgres: TestPostgres;
  let databases: readonly Database[];
  beforeAll(async () => {
    postgres = await TestPostgres.start();
    const url = await postgres.database("conversations");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    connection.close();
    databases = [new Database(new PostgresServer(url)), new Database(new PostgresServer(url))];
  }, 60_000);
  afterAll(async () => {
    for (const database of databases) await database.close();
    await postgres[Symbol.asyncDispose]();
  });
  behaves(() => databases);
});
