// Conversations as both stores keep them: answers are added once and in one order, within the limits of stored responses.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Database as Memory } from "bun:sqlite";
import type { ConversationAct, Item } from "../../../src/dialects/stored-responses.ts";
import { dayMs } from "../../../src/core/units.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { ResponseTables } from "../../../src/store/postgres/response-tables.ts";
import { converse, type NotAdded } from "../../../src/store/responses/conversations.ts";
import type { KeptResponse } from "../../../src/store/responses/kept-text.ts";
import { openStoredResponses } from "../../../src/store/responses/stored-responses-file.ts";
import { StoredResponseTable } from "../../../src/store/responses/stored-responses-table.ts";
import { startDatabases } from "../../fixtures/postgres.ts";

const timeLimit = 60_000;
const limits = { keepMs: 30 * dayMs, accountBytesMax: 4_000, accountCountMax: 3, conversationBytesMax: 2_000 };
const now = Date.UTC(2026, 2, 28, 12);

describe.each(["SQLite", "PostgreSQL"])("a conversation in %s", (where) => {
  let tables: StoredResponseTable | ResponseTables;
  let usedBytes: () => Promise<readonly number[]>;
  const opened = new AsyncDisposableStack();
  let close = (): void => {};
  let openTables: () => void = () => {
    const memory: Memory = openStoredResponses(":memory:");
    close = () => memory.close();
    tables = new StoredResponseTable(memory, limits);
    usedBytes = async () => {
      const [used, sum] = ["bytes FROM responses_use", "sum(bytes) AS bytes FROM responses"].map(
        (of) => (memory.query(`SELECT ${of}`).get() as { bytes: number }).bytes,
      );
      return [used!, sum!];
    };
  };
  let account = 1;
  beforeAll(async () => {
    if (where === "SQLite") return;
    const postgres = opened.use(await startDatabases());
    const url = await postgres.database("conversations");
    const server = new PostgresServer(url);
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    const database = new Database(server);
    const client = new Bun.SQL({ url, max: 1 });
    opened.defer(() => database.close());
    opened.defer(() => client.close());
    openTables = () => {
      account += 1;
      tables = new ResponseTables(database, limits);
      usedBytes = async () => {
        const [row] = await client.unsafe(`SELECT bytes::int AS used, (SELECT sum(bytes)::int FROM stored_responses
          WHERE account_id = ${account}) AS sum FROM stored_responses_use WHERE account_id = ${account}`);
        return [row.used, row.sum];
      };
    };
  }, timeLimit);
  afterAll(() => opened.disposeAsync());
  beforeEach(() => openTables());
  afterEach(() => close());

  const idOf = (name: string): string => `conv_${name}${account}`;
  const done = async (name: string, act: ConversationAct, at = now): Promise<unknown> => {
    const told = await converse({ account, id: idOf(name), act }, tables, at);
    return isRefusal(told) ? messageOf(told) : JSON.parse(told);
  };
  const create = (name: string, at = now): Promise<unknown> =>
    done(name, { act: "create", body: "{}", stem: `begun${name}` }, at);
  const add = (name: string, content: string, at = now): Promise<unknown> =>
    done(name, { act: "add", body: JSON.stringify({ items: [{ role: "user", content }] }), stem: `add${at}` }, at);
  const answer = (stem: string, name: string, only: boolean, text = "hi"): KeptResponse => ({
    account,
    id: `resp_${stem}${account}`,
    previousId: null,
    conversation: { id: idOf(name), only },
    input: JSON.stringify([{ role: "user", content: text }]),
    output: JSON.stringify([{ id: `msg_${stem}_0`, type: "message", role: "assistant", content: [] }]),
    settings: "{}",
  });
  const keep = async (...answers: readonly KeptResponse[]): Promise<readonly NotAdded[]> =>
    tables.keepAll(answers, now);
  const idsOf = async (name: string, at = now): Promise<unknown> => {
    const found = await tables.find(account, idOf(name), [], at);
    if (found === "too_large" || found.conversation === null) return null;
    return (JSON.parse(found.conversation) as Item[]).map(({ id }) => id);
  };
  const notFound = (name: string): string => `Conversation with id '${idOf(name)}' not found.`;

  test("takes an answer once, however often it comes, and keeps the response only where it is stored", async () => {
    await create("a");
    expect(await keep(answer("x", "a", true), answer("y", "a", false))).toEqual([]);
    const ids = [`msg_x${account}_in0`, "msg_x_0", `msg_y${account}_in0`, "msg_y_0"];
    expect(await idsOf("a")).toEqual(ids);
    expect(await keep(answer("x", "a", true))).toEqual([]);
    expect(await idsOf("a")).toEqual(ids);
    expect(await tables.response(account, `resp_x${account}`, now)).toBeNull();
    expect(await tables.response(account, `resp_y${account}`, now)).not.toBeNull();
    const [used, sum] = await usedBytes();
    expect(used).toBe(sum!);
  });

  test("that is not there takes nothing, and the others of the same moment are kept", async () => {
    await create("a");
    expect(await keep(answer("x", "none", false), answer("y", "a", true))).toEqual([
      { response: `resp_x${account}`, conversation: idOf("none"), reason: notFound("none") },
    ]);
    expect(await idsOf("a")).toHaveLength(2);
    expect(await tables.response(account, `resp_x${account}`, now)).not.toBeNull();
  });

  test("is forgotten so long after it was last added to", async () => {
    await create("a");
    await add("a", "one", now + 29 * dayMs);
    expect(await idsOf("a", now + 58 * dayMs)).toHaveLength(1);
    expect(await done("a", { act: "show" }, now + 60 * dayMs)).toBe(notFound("a"));
    while (await tables.expire(now + 60 * dayMs, 1_000_000));
    expect(await done("a", { act: "show" }, now)).toBe(notFound("a"));
  });

  test("stays where others go that were added to before, and takes no more when it is full", async () => {
    for (const [at, name] of ["a", "b", "c"].entries()) await create(name, now + at);
    await add("a", "one", now + 5);
    await create("d", now + 6);
    expect(await done("b", { act: "show" })).toBe(notFound("b"));
    expect(await idsOf("a")).toHaveLength(1);
    await add("a", "x".repeat(2_000), now + 7);
    expect(await add("a", "y", now + 8)).toBe("The conversation is too large to take more");
    expect(await keep(answer("x", "a", true))).toMatchObject([
      { reason: "The conversation is too large to take more" },
    ]);
    expect(await add("c", "x".repeat(5_000), now + 9)).toBe("The conversation is too large to take more");
    const [used, sum] = await usedBytes();
    expect(used).toBe(sum!);
  });

  test("loses nothing of what many add at once", async () => {
    await create("a");
    await Promise.all([
      ...Array.from({ length: 5 }, (_, i) => add("a", `${i}`, now + i)),
      ...Array.from({ length: 5 }, (_, i) => keep(answer(`p${i}`, "a", i % 2 === 0, `${i}`))),
    ]);
    const ids = (await idsOf("a")) as string[];
    expect(new Set(ids).size).toBe(15);
    for (const [at, id] of ids.entries()) if (/^msg_p\d_0$/.test(id)) expect(ids[at - 1]).toContain(id.slice(0, 6));
  });
});
