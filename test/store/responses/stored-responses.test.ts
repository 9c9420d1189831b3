// Stored responses on a real file: what is found, by whom, for how long, and what happens when the Worker or the disk
// fails.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  earlierOf,
  type EarlierTexts,
  type Item,
  type ItemPage,
  bytesOf,
  responseIdOf,
  type StoredResponse,
} from "../../../src/dialects/stored-responses.ts";
import { storedResponsesLookupsWaitingMax, storedResponsesWaitingBytesMax } from "../../../src/core/limits.ts";
import type { Log } from "../../../src/core/log.ts";
import { refuse } from "../../../src/core/refusals.ts";
import { openStoredResponses } from "../../../src/store/responses/stored-responses-file.ts";
import { StoredResponseTable } from "../../../src/store/responses/stored-responses-table.ts";
import { StoredResponsesFile } from "../../../src/store/responses/stored-responses.ts";
import { eventually } from "../../fixtures/eventually.ts";

const day = 86_400_000;
const limits = { keepMs: 30 * day, accountBytesMax: 10_000, accountCountMax: 5, conversationBytesMax: 5_000 };

const user = (text: string): Item => ({ type: "message", role: "user", content: text });
const message = (stem: string, text: string, index = 0): Item => ({
  id: `msg_${stem}_${index}`,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});
/** A response `resp_<stem>` to a question, as the dialect hands it over. */
const response = (stem: string, question: string, answer: string, previous: string | null = null): StoredResponse => ({
  id: `resp_${stem}`,
  previousResponseId: previous === null ? null : `resp_${previous}`,
  input: [user(question)],
  output: JSON.stringify([message(stem, answer)]),
  settings: JSON.stringify({ id: `resp_${stem}`, object: "response", model: "core-3", usage: { output_tokens: 1 } }),
});
const objectOf = ({ output, settings }: StoredResponse, output_text: string): unknown => ({
  ...(JSON.parse(settings) as object),
  output: JSON.parse(output) as unknown,
  output_text,
});

const wholePage: ItemPage = { limit: 100, order: "asc", after: null };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-responses-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("the table", () => {
  let database: Database;
  let table: StoredResponseTable;
  beforeEach(() => {
    database = openStoredResponses(join(folder, "responses.db"));
    table = new StoredResponseTable(database, limits);
  });
  afterEach(() => database.close());

  const keep = ({ id, previousResponseId, input, ...texts }: StoredResponse, account = 1, now = 0): void =>
    void table.keepAll([{ account, id, previousId: previousResponseId, input: JSON.stringify(input), ...texts }], now);
  /** As they come from the gateway: many at once, of several accounts. */
  const keepAll = (...responses: (readonly [account: number, response: StoredResponse])[]): void =>
    void table.keepAll(
      responses.map(([account, { id, previousResponseId, input, ...texts }]) => {
        return { account, id, previousId: previousResponseId, input: JSON.stringify(input), ...texts };
      }),
      0,
    );
  const conversation = (id: string, account = 1, now = 0): unknown => {
    const found = table.find(account, id, [], now);
    return found === "too_large" || found.conversation === null ? found : JSON.parse(found.conversation);
  };
  const missing = (missingId: string): EarlierTexts => ({ conversation: null, missingId, items: "[]", itemsBytes: 0 });
  /** As it was kept. */
  const inputOf = (id: string): unknown => {
    const row = database.query("SELECT input FROM responses WHERE id = ?").get(id) as { input: string };
    return JSON.parse(row.input);
  };
  const kept = (): string[] =>
    (database.query("SELECT id FROM responses ORDER BY sequence").all() as { id: string }[]).map(({ id }) => id);
  /** The sums that the limits are measured by, beside the rows that they sum up. */
  const expectTrueSums = (): void => {
    const sums = database.query(
      "SELECT account_id, responses, bytes FROM responses_use WHERE responses > 0 ORDER BY 1",
    );
    const rows = database.query(
      "SELECT account_id, count(*) AS responses, sum(bytes) AS bytes FROM responses GROUP BY 1",
    );
    expect(sums.all()).toEqual(rows.all());
  };

  test("a response comes back as it was, its conversation oldest first", () => {
    keep(response("a", "one?", "1"));
    keep(response("b", "two?", "2", "a"));
    keep(response("c", "three?", "3", "b"));
    expect(JSON.parse(table.response(1, "resp_b", 0)!)).toEqual(objectOf(response("b", "two?", "2"), "2"));
    expect(inputOf("resp_b")).toEqual([user("two?")]);
    expect(conversation("resp_b")).toEqual([user("one?"), message("a", "1"), user("two?"), message("b", "2")]);
  });

  test("a response has the text of its answer once, also where an earlier version kept it with the settings", () => {
    const old = response("a", "one?", "1");
    const settings = JSON.stringify({ ...(JSON.parse(old.settings) as object), output_text: 'said "then"' });
    keep({ ...old, settings });
    const messages = [message("b", 'a "b" '), { type: "function_call", id: "fc_b_1" }, message("b", "\u00e9\ud83d", 2)];
    const several = { ...response("b", "two?", ""), output: JSON.stringify(messages) };
    keep(several);
    const texts = ["resp_a", "resp_b"].map((id) => table.response(1, id, 0)!);
    expect(texts.map((text) => text.split('"output_text":').length)).toEqual([2, 2]);
    expect(JSON.parse(texts[0]!)).toEqual(objectOf(old, 'said "then"'));
    expect(JSON.parse(texts[1]!)).toEqual(objectOf(several, 'a "b" \u00e9\ud83d'));
  });

  test("an empty input or output leaves no hole in the conversation", () => {
    keep({ ...response("a", "one?", "1"), input: [] });
    keep({ ...response("b", "two?", "2", "a"), output: "[]" });
    expect(conversation("resp_b")).toEqual([message("a", "1"), user("two?")]);
  });

  test("nobody finds, lists or deletes the response of another account", () => {
    keep(response("a", "one?", "1"));
    expect(table.response(2, "resp_a", 0)).toBeNull();
    expect(table.input(2, "resp_a", wholePage, 0)).toBeNull();
    expect(table.find(2, "resp_a", ["msg_a_0"], 0)).toEqual(missing("resp_a"));
    expect(table.delete(2, "resp_a", 0)).toBe(false);
    // nor through a chain of one's own that names it
    keep(response("b", "two?", "2", "a"), 2);
    expect(conversation("resp_b", 2)).toEqual(missing("resp_a"));
    expect(table.response(1, "resp_a", 0)).not.toBeNull();
  });

  test("a conversation that lost a response is not found, rather than continued without it", () => {
    keep(response("a", "one?", "1"));
    keep(response("b", "two?", "2", "a"));
    expect(table.delete(1, "resp_a", 0)).toBe(true);
    expect(table.delete(1, "resp_a", 0)).toBe(false);
    expect(conversation("resp_b")).toEqual(missing("resp_a"));
    expect(table.response(1, "resp_b", 0)).not.toBeNull();
    expectTrueSums();
  });

  test("items are found by id, and only those asked for", () => {
    const output = [message("a", "1"), message("a", "2", 1)];
    keep({ ...response("a", "one?", "1"), output: JSON.stringify(output) });
    keep(response("b", "two?", "2"));
    const found = table.find(1, null, ["msg_a_1", "msg_b_0", "msg_c_0", "nonsense"], 0);
    const items = JSON.stringify([output[1], message("b", "2")]);
    expect(found).toMatchObject({ conversation: null, items, itemsBytes: items.length - "[,]".length });
  });

  test("what is found counts in bytes: a character of some scripts has three, and as many tokens", () => {
    keep(response("a", "", "བོད་ཡིག"));
    const [conversation, items] = [table.find(1, "resp_a", [], 0), table.find(1, null, ["msg_a_0"], 0)];
    const bytes = (found: unknown): number => bytesOf(found as EarlierTexts);
    expect(bytes(conversation)).toBe(Buffer.byteLength((conversation as EarlierTexts).conversation!));
    expect(bytes(items)).toBe(Buffer.byteLength(JSON.stringify(message("a", "བོད་ཡིག"))));
  });

  test("an item of an input is found by the id under which it is listed", () => {
    keep({ ...response("a", "", "1"), input: [user("one?"), { type: "function_call", call_id: "c", name: "f" }] });
    const found = table.find(1, null, ["msg_a_in0", "fc_a_in1", "fc_a_in0", "msg_a_in2", "msg_a_0"], 0);
    const ids = (JSON.parse((found as EarlierTexts).items) as Item[]).map(({ id }) => id);
    expect(ids).toEqual(["msg_a_in0", "fc_a_in1", "msg_a_0"]);
    expect(table.find(2, null, ["msg_a_in0"], 0)).toMatchObject({ items: "[]" });
  });

  test("an item counts as often as it is referred to, and too many references are refused like a conversation", () => {
    keep(response("a", "one?", "x".repeat(1_000)));
    const length = JSON.stringify(message("a", "x".repeat(1_000))).length;
    const times = (count: number, previous: string | null = null) =>
      table.find(1, previous, Array<string>(count).fill("msg_a_0"), 0);
    expect(times(4)).toMatchObject({ itemsBytes: 4 * length });
    expect(bytesOf(times(4) as EarlierTexts)).toBe(4 * length);
    expect(times(5)).toBe("too_large");
    expect(times(3, "resp_a")).toMatchObject({ itemsBytes: 3 * length });
    expect(times(4, "resp_a")).toBe("too_large");
    // nor is a response kept that would hold them all
    const input = Array<Item>(5).fill({ type: "item_reference", id: "msg_a_0" });
    keep({ ...response("b", "", "2"), input });
    expect(kept()).toEqual(["resp_a"]);
    expectTrueSums();
  });

  test("items that an input refers to are kept with it, so that it outlives them", () => {
    keep(response("a", "one?", "1"));
    const input = [user("one?"), { type: "item_reference", id: "msg_a_0" }, { type: "item_reference", id: "rs_x_0" }];
    keep({ ...response("b", "", "2"), input });
    table.delete(1, "resp_a", 0);
    expect(inputOf("resp_b")).toEqual([user("one?"), message("a", "1"), input[2]!]);
  });

  describe("a page of an input", () => {
    type Page = { data: Item[]; first_id: unknown; last_id: unknown; has_more: boolean };
    const page = (page: Partial<ItemPage>): Page => {
      const found = table.input(1, "resp_a", { ...wholePage, ...page }, 0);
      if (found === null || found === "unknown_after") throw new Error(String(found));
      return JSON.parse(found.body) as Page;
    };
    const idsOf = ({ data }: Page) => data.map(({ id }) => id);

    test("gives every item an id, a type and parts, and leaves the rest as it came", () => {
      const text = 'a "quote"\\\n\u0000\ud800 \ud83d\ude00 ü';
      const input: Item[] = [
        { role: "user", content: text },
        { role: "assistant", content: text },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "x", number: 1e21, deep: [[{ a: text }]] },
        { type: "message", id: 5, role: "user", content: [{ type: "input_text", text }] },
        { type: "reasoning", id: "rs_mine", summary: [] },
      ];
      keep({ ...response("a", "", ""), input });
      const [first, second, ...others] = input;
      expect(page({}).data).toEqual([
        { ...first, id: "msg_a_in0", type: "message", content: [{ type: "input_text", text }] },
        { ...second, id: "msg_a_in1", type: "message", content: [{ type: "output_text", annotations: [], text }] },
        { ...others[0], id: "fc_a_in2" },
        { ...others[1], id: "item_a_in3" },
        { ...others[2], id: "msg_a_in4" },
        others[3]!,
      ]);
    });

    test("follows the one before it, in both orders, and says where it ends", () => {
      keep({ ...response("a", "", ""), input: ["0", "1", "2", "3", "4"].map(user) });
      const id = (place: number) => `msg_a_in${place}`;
      expect(page({ limit: 2 })).toMatchObject({ first_id: id(0), last_id: id(1), has_more: true });
      expect(idsOf(page({ limit: 2, after: id(1) }))).toEqual([id(2), id(3)]);
      expect(page({ limit: 2, after: id(3) })).toMatchObject({ first_id: id(4), last_id: id(4), has_more: false });
      expect(page({ limit: 2, order: "desc" })).toMatchObject({ first_id: id(4), last_id: id(3), has_more: true });
      expect(page({ limit: 5, order: "desc" })).toMatchObject({ first_id: id(4), last_id: id(0), has_more: false });
      expect(idsOf(page({ order: "desc", after: id(2) }))).toEqual([id(1), id(0)]);
      const end = { data: [], first_id: null, last_id: null, has_more: false };
      expect(page({ after: id(4) })).toEqual({ object: "list", ...end } as never);
      expect(page({ order: "desc", after: id(0) })).toMatchObject(end);
      for (const after of [id(5), "fc_a_in1", "msg_b_in1", "", "x_in-1"]) {
        expect(table.input(1, "resp_a", { ...wholePage, after }, 0)).toBe("unknown_after");
      }
    });

    test("goes on to the end where items have the same id", () => {
      keep({
        ...response("a", "", ""),
        input: ["0", "1", "2", "3", "4"].map((text) => ({ ...user(text), id: "same" })),
      });
      const ids = ["same", "msg_a_in1", "msg_a_in2", "msg_a_in3", "msg_a_in4"];
      expect(idsOf(page({}))).toEqual(ids);
      const walked: unknown[] = [];
      for (let after: string | null = null; ; after = walked.at(-1) as string) {
        const { data, has_more } = page({ limit: 2, after });
        walked.push(...data.map(({ id }) => id));
        if (!has_more || walked.length > 10) break;
      }
      expect(walked).toEqual(ids);
      expect(idsOf(page({ order: "desc", limit: 3 }))).toEqual(ids.slice(2).reverse());
    });
  });

  test("the oldest go when an account has too many, and nobody else's", () => {
    keep(response("x", "?", "!"), 2);
    for (const stem of ["a", "b", "c", "d", "e", "f", "g"]) keep(response(stem, "?", "!"));
    expect(kept()).toEqual(["resp_x", "resp_c", "resp_d", "resp_e", "resp_f", "resp_g"]);
    expectTrueSums();
  });

  test("the oldest go also where they came together with those that take their place", () => {
    const all = ["a", "b", "c", "d", "e", "f", "g", "h"].map((stem) => [1, response(stem, "?", "!")] as const);
    keepAll([2, response("x", "?", "!")], ...all, [2, response("y", "x".repeat(10_000), "!")]);
    expect(kept()).toEqual(["resp_x", "resp_d", "resp_e", "resp_f", "resp_g", "resp_h"]);
    expectTrueSums();
    keepAll([3, response("i", "x".repeat(6_000), "!")], [3, response("j", "x".repeat(6_000), "!")]);
    expect(kept().slice(-2)).toEqual(["resp_h", "resp_j"]);
    expectTrueSums();
  });

  test("what came together is found by what came with it", () => {
    const input = [{ type: "item_reference", id: "msg_a_0" }];
    keepAll([1, response("a", "one?", "1")], [1, { ...response("b", "", "2"), input }]);
    expect(inputOf("resp_b")).toEqual([message("a", "1")]);
  });

  test("the oldest go when an account's are too large; one that is larger than the share is not kept", () => {
    keep(response("a", "x".repeat(4_000), "!"));
    keep(response("b", "x".repeat(4_000), "!"));
    keep(response("c", "x".repeat(4_000), "!"));
    expect(kept()).toEqual(["resp_b", "resp_c"]);
    keep(response("d", "x".repeat(10_000), "!"));
    expect(kept()).toEqual(["resp_b", "resp_c"]);
    expectTrueSums();
  });

  test("what is erased is in none of its files any more, nor are others touched", async () => {
    keepAll([1, response("a", "a secret", "of mine")], [2, response("b", "two?", "2")]);
    const files = ["responses.db", "responses.db-wal"].map((name) => join(folder, name));
    const bytes = async () => (await Promise.all(files.map((file) => Bun.file(file).text()))).join("");
    expect(await bytes()).toContain("a secret");
    table.erase(1);
    expect(await bytes()).not.toContain("a secret");
    expect(kept()).toEqual(["resp_b"]);
    expectTrueSums();
  });

  test("what was deleted, made way or expired before its account is erased is in none of its files either", async () => {
    const secret = (name: string) => `a secret that ${name} `.repeat(50);
    for (const stem of ["a", "b", "c", "d", "e"]) keep(response(stem, secret(stem), "!"), 1, stem === "b" ? 0 : day);
    keep(response("f", secret("f"), "!"), 1, day); // the oldest, a, makes way
    expect(table.delete(1, "resp_c", day)).toBe(true);
    while (table.expire(30.5 * day, 10_000)); // b
    expect(kept()).toEqual(["resp_d", "resp_e", "resp_f"]);
    table.erase(1);
    const files = ["responses.db", "responses.db-wal"].map((name) => join(folder, name));
    expect((await Promise.all(files.map((file) => Bun.file(file).text()))).join("")).not.toContain("a secret that");
  });

  test("a conversation that is larger than a body may be is refused", () => {
    keep(response("a", "x".repeat(3_000), "!"));
    keep(response("b", "x".repeat(3_000), "!", "a"));
    expect(conversation("resp_a")).toHaveLength(2);
    expect(conversation("resp_b")).toBe("too_large");
  });

  test("what is too old is not found any more, and goes a slice at a time", () => {
    for (const [age, stem] of ["a", "b", "c", "d"].entries()) keep(response(stem, "?", "!"), 1, age * day);
    const now = 32 * day; // a and b are older than 30 days
    expect(table.response(1, "resp_b", now)).toBeNull();
    expect(conversation("resp_b", 1, now)).toEqual(missing("resp_b"));
    expect(table.delete(1, "resp_b", now)).toBe(false);
    expect(table.response(1, "resp_c", now)).not.toBeNull();
    expect(table.expire(now, 1)).toBe(true);
    expect(kept()).toEqual(["resp_b", "resp_c", "resp_d"]);
    while (table.expire(now, 10_000));
    expect(kept()).toEqual(["resp_c", "resp_d"]);
    expectTrueSums();
  });
});

describe("the file", () => {
  const lines: string[] = [];
  const log: Log = (level, event, fields) => lines.push(`${level} ${event} ${fields?.["reason"] ?? ""}`.trim());
  const open = (): Promise<StoredResponsesFile> =>
    StoredResponsesFile.open({ dataFolder: folder, keepMs: 30 * day, accountBytesMax: 100_000_000, log });
  afterEach(() => lines.splice(0));

  test("what was kept is found by the very next call, and after a restart", async () => {
    const first = await open();
    void first.keep(1, response("a", "one?", "1"));
    const references = { previousResponseId: "resp_a", itemIds: ["msg_a_0"] };
    const earlier = await first.find(1, references);
    const conversation = [user("one?"), message("a", "1")];
    const items = [message("a", "1")];
    const itemsBytes = JSON.stringify(items[0]).length;
    expect(earlier).toMatchObject({
      conversation: JSON.stringify(conversation),
      items: JSON.stringify(items),
      itemsBytes,
    });
    expect(earlierOf(earlier as EarlierTexts)).toEqual({
      conversation,
      missingId: null,
      items: new Map([["msg_a_0", items[0]!]]),
      bytes: JSON.stringify(conversation).length + itemsBytes,
    });
    void first.keep(1, response("b", "two?", "2", "a"));
    await first.close();
    const second = await open();
    expect(await second.find(1, references)).toEqual(earlier);
    const page = await second.input(1, "resp_b", wholePage);
    const content = [{ type: "input_text", text: "two?" }];
    expect(JSON.parse(page as string)).toMatchObject({ data: [{ ...user("two?"), id: "msg_b_in0", content }] });
    expect(await second.input(1, "resp_b", { ...wholePage, after: "x" })).toEqual(
      refuse("malformed", { reason: "after: 'x' is not in this list" }),
    );
    expect(await second.delete(1, "resp_b")).toBe(true);
    expect(await second.response(1, "resp_b")).toBeNull();
    await second.close();
    expect(lines).toEqual([]);
  });

  test("keeps what came together at once, and loses none for another that cannot be kept", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    void responses.keep(1, response("b", "two?", "2"));
    void responses.keep(1, response("a", "again?", "a key that is there already"));
    void responses.keep(1, response("c", "three?", "3"));
    const kept = await Promise.all(["a", "b", "c"].map((stem) => responses.response(1, `resp_${stem}`)));
    expect(kept.map((text) => typeof text)).toEqual(["string", "string", "string"]);
    expect(kept[0]).not.toContain("a key that is there already");
    await responses.close();
    expect(lines).toEqual(["error responses are not stored UNIQUE constraint failed: responses.id"]);
  });

  test("keeps nothing more of an account from its erasure on, and all of others", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    const erased = responses.erase(1, true);
    void responses.keep(1, response("b", "two?", "2")); // a relay says it late
    void responses.keep(2, response("c", "three?", "3"));
    await erased;
    void responses.keep(1, response("d", "four?", "4"));
    const kept = async (account: number, stem: string) => (await responses.response(account, `resp_${stem}`)) !== null;
    expect(await Promise.all(["a", "b", "d"].map((stem) => kept(1, stem)))).toEqual([false, false, false]);
    expect(await kept(2, "c")).toBe(true);
    await responses.close();
  });

  test.each([4096, 16384])("of pages of %i bytes has a log of 32 MiB", (pageBytes) => {
    const path = join(folder, "responses.db");
    const older = new Database(path, { create: true });
    older.run(`PRAGMA page_size = ${pageBytes}`);
    older.run("VACUUM");
    older.close();
    const database = openStoredResponses(path);
    const number = (sql: string): number => Object.values(database.query<Record<string, number>, []>(sql).get()!)[0]!;
    expect(number("PRAGMA page_size")).toBe(pageBytes);
    expect(number("PRAGMA wal_autocheckpoint") * pageBytes).toBe(32 * 1024 * 1024);
    database.close();
  });

  test("can be read by its owner alone", async () => {
    const responses = await open();
    expect((await stat(join(folder, "responses.db"))).mode & 0o777).toBe(0o600);
    await responses.close();
  });

  test("of a newer version, or no database at all, is told at the start", async () => {
    const database = openStoredResponses(join(folder, "responses.db"));
    database.run("PRAGMA user_version = 99");
    database.close();
    await expect(open()).rejects.toThrow(/responses\.db has version 99, .* use a newer tollgate/);
    await rm(join(folder, "responses.db"));
    await Bun.write(join(folder, "responses.db"), "x".repeat(8_192));
    await expect(open()).rejects.toThrow(/cannot use the stored responses .*file is not a database/);
  });

  test("that takes no writes loses what is kept meanwhile, says so once, and fails nothing", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    expect(await responses.response(1, "resp_a")).toBeString();
    const other = new Database(join(folder, "responses.db"));
    other.run("BEGIN IMMEDIATE");
    void responses.keep(1, response("b", "two?", "2"));
    expect(await responses.response(1, "resp_b")).toBeNull();
    expect(await responses.response(1, "resp_a")).toBeString();
    other.run("COMMIT");
    other.close();
    void responses.keep(1, response("c", "three?", "3"));
    expect(await responses.response(1, "resp_c")).toBeString();
    await responses.close();
    expect(lines).toEqual(["error responses are not stored database is locked", "info responses are stored again"]);
  }, 120_000);

  test("that cannot be read refuses as internal: nobody is told that a response is gone", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    expect(await responses.response(1, "resp_a")).toBeString();
    const other = new Database(join(folder, "responses.db"));
    other.run("DROP TABLE responses");
    other.close();
    expect(await responses.find(1, { previousResponseId: "resp_a", itemIds: [] })).toEqual(refuse("internal"));
    expect(await responses.response(1, "resp_a")).toEqual(refuse("internal"));
    await responses.close();
    expect(lines[0]).toContain("error stored responses failed no such table");
  });

  test("lets go of what is too old by itself, and of the room on the disk", async () => {
    const options = { dataFolder: folder, keepMs: 1, accountBytesMax: 100_000_000, log };
    const responses = await StoredResponsesFile.open(options);
    for (const stem of ["a", "b", "c"]) void responses.keep(1, response(stem, "x".repeat(100_000), "!"));
    await responses.response(1, "resp_c");
    const reader = new Database(join(folder, "responses.db"), { readonly: true });
    const number = (sql: string): number => Object.values(reader.query(sql).get() as Record<string, number>)[0]!;
    const bytes = (): number => number("PRAGMA page_count") * number("PRAGMA page_size");
    expect(bytes()).toBeGreaterThan(280_000);
    await eventually("nothing is left", async () => number("SELECT count(*) FROM responses") === 0);
    await eventually("the file is small", async () => bytes() < 130_000);
    reader.close();
    await responses.close();
    expect(lines).toEqual([]);
  }, 120_000);

  test("whose Worker dies refuses what waited, forgets what was not written, and goes on with another", async () => {
    let started = 0;
    const dying = () => new Worker(new URL("dying-worker.ts", import.meta.url).href);
    const living = () =>
      new Worker(new URL("../../../src/store/responses/stored-responses-worker.ts", import.meta.url).href);
    const options = { dataFolder: folder, keepMs: 30 * day, accountBytesMax: 100_000_000, log };
    const responses = await StoredResponsesFile.open({
      ...options,
      startWorker: () => (started++ === 0 ? dying() : living()),
    });
    void responses.keep(1, response("a", "one?", "1"));
    expect(await responses.response(1, "resp_a")).toEqual(refuse("internal"));
    expect(responses.waitingBytes).toBe(0);
    void responses.keep(1, response("b", "two?", "2"));
    expect(await responses.response(1, "resp_b")).toBeString();
    expect(await responses.response(1, "resp_a")).toBeNull();
    await responses.close();
    expect(started).toBe(2);
    expect(lines[0]).toContain("error responses are not stored");
    expect(lines.at(-1)).toBe("info responses are stored again");
  });

  test("goes on with an account whose erasure failed", async () => {
    let started = 0;
    const workers = ["dying-worker.ts", "../../../src/store/responses/stored-responses-worker.ts"];
    const responses = await StoredResponsesFile.open({
      dataFolder: folder,
      keepMs: 30 * day,
      accountBytesMax: 100_000_000,
      log,
      startWorker: () => new Worker(new URL(workers[started++]!, import.meta.url).href),
    });
    await expect(responses.erase(1, false)).rejects.toThrow("dies");
    void responses.keep(1, response("a", "one?", "1"));
    expect(await responses.response(1, "resp_a")).toBeString();
    await responses.close();
  });

  test("keeps what an account stores that was not deleted in the end", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    await responses.erase(1, false);
    expect(await responses.response(1, "resp_a")).toBeNull();
    void responses.keep(1, response("b", "two?", "2"));
    expect(await responses.response(1, "resp_b")).toBeString();
    await responses.close();
  });

  test("answers another account before all that one has asked for", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    void responses.keep(2, response("b", "two?", "2"));
    const answered: string[] = [];
    const ask = async (account: number, id: string) => {
      expect(await responses.find(account, { previousResponseId: id, itemIds: [] })).toMatchObject({ itemsBytes: 0 });
      answered.push(id);
    };
    await Promise.all([ask(1, "resp_a"), ask(1, "resp_a"), ask(1, "resp_a"), ask(2, "resp_b")]);
    expect(answered).toEqual(["resp_a", "resp_b", "resp_a", "resp_a"]);
    await responses.close();
  });

  test("refuses an account's look-ups beyond those that may wait", async () => {
    const responses = await open();
    const asked = Array.from({ length: storedResponsesLookupsWaitingMax + 2 }, () => responses.response(1, "resp_a"));
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer !== null)).toEqual([refuse("busy", { seconds: 1 })]);
    await responses.close();
  });

  test("refuses what waits for its turn when it is closed", async () => {
    const responses = await open();
    void responses.keep(1, response("a", "one?", "1"));
    const asked = [1, 2, 3].map(() => responses.response(1, "resp_a"));
    await responses.close();
    expect(await Promise.all(asked)).toEqual([expect.any(String), refuse("internal"), refuse("internal")]);
    expect(lines).toEqual([]);
  });

  test("more than may wait is not kept", async () => {
    const responses = await open();
    const large = "x".repeat(storedResponsesWaitingBytesMax / 4);
    for (const stem of ["a", "b", "c", "d", "e"]) void responses.keep(1, response(stem, large, "!"));
    expect(responses.waitingBytes).toBeLessThan(storedResponsesWaitingBytesMax);
    expect(await responses.response(1, "resp_c")).toBeString();
    expect(await responses.response(1, "resp_d")).toBeNull();
    expect(responses.waitingBytes).toBe(0);
    await responses.close();
    expect(lines[0]).toBe("error responses are not stored too much waits to be written");
  }, 120_000);
});

test.each([
  ["msg_0Ab9_0", "resp_0Ab9"],
  ["rs_0Ab9_12", "resp_0Ab9"],
  ["msg_0Ab9", null],
  ["msg_0Ab9_in0", "resp_0Ab9"],
  ["nonsense", null],
])("the item %s belongs to %p", (itemId, id) => expect(responseIdOf(itemId)).toBe(id));
