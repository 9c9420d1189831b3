// The books move into a database and back: what is exported of each account is the same before and after, on both, and neither
// is written to by two. Killed at any step, the same command again goes on, and nothing is lost or doubled.
import { desksOf } from "../../account/desks.ts";
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { hostname } from "node:os";
import { join } from "node:path";
import { openAccounting } from "../../../src/books/accounting.ts";
import { spanOf } from "../../../src/core/activity.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { dayMs } from "../../../src/core/units.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import type { Hold } from "../../../src/core/types.ts";
import { exportOfFile } from "../../../src/store/backup/account-export.ts";
import { drainedName, takeFolderBeside } from "../../../src/store/folder/data-folder.ts";
import { booksOf, servedMark, servedName, setServedMark } from "../../../src/store/folder/served-folder.ts";
import { sealingKeyOf } from "../../../src/store/folder/sealing-key.ts";
import { movedMark } from "../../../src/store/folder/moved-folder.ts";
import { exportOfDatabase } from "../../../src/store/postgres/account-export.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { moveIn } from "../../../src/store/postgres/move-in.ts";
import { moveOut } from "../../../src/store/postgres/move-out.ts";
import { PostgresUsage } from "../../../src/store/postgres/usage.ts";
import { upkeepSlice } from "../../../src/store/postgres/upkeep.ts";
import { verifyBooks } from "../../../src/store/postgres/verify.ts";
import { StoredResponsesFile } from "../../../src/store/responses/stored-responses.ts";
import { openRequestLog } from "../../../src/store/requests/open-request-log.ts";
import { openActivity } from "../../../src/store/activity/open-activity.ts";
import { UsageIndex } from "../../../src/store/usage/usage-index.ts";
import { Writer } from "../../../src/store/ledger/writer.ts";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { openForWriting } from "../../../src/store/open.ts";
import { ask, output, plans } from "../../account/office.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { by } from "../../fixtures/principals.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";

const progress = () => {};
const now = Date.now();
const opening = { catalog: { plans }, siteUrl: "http://site", clock: systemClock, onFatal: () => {} };
const bounds = { allowance: 1e12, coder_calls: 1e12, searches: 1e12 };
const emails = ["Ada@x", "b@x", "c@x"];

/** A folder with a little of everything: accounts, keys, people, replies, folded lines, responses, failures, charts. */
async function fillFolder(dataFolder: string): Promise<void> {
  const open = () =>
    openAccounting({ dataFolder, catalog: { plans }, siteUrl: "http://site", clock: systemClock, onFatal: () => {} });
  const books = await open();
  for (const [index, email] of emails.entries()) {
    const { id } = await desksOf(books).accounts.create({
      email,
      plan: index === 0 ? "plus" : "free",
      password: "long enough 1",
    });
    await desksOf(books).accounts.addCredit(email, 5_000 + index, 'ref "quoted" \\ {1,2} \'' + index);
    const key = await desksOf(books).accountKeys.create(id, {
      name: 'bot, "the" {one}',
      forwards_users: true,
      models: ["core-3"],
    });
    for (let i = 0; i < 12; i += 1) {
      const moment = { wall: now, monotonic: i * 60_000 };
      const requestId = `req_${index}${String(i).padStart(6, "0")}`;
      const [of, endUser] = i % 2 === 0 ? [by(id), null] : [by(id, key.id), `user ${i % 3}`];
      const hold = await books.admission.admit({ ...of, ask: ask(100), inputTokens: 10, requestId, endUser }, moment);
      if (isRefusal(hold)) throw new Error(hold.refusal);
      await (hold as Hold).settle({ ...output(40 + i), inputFresh: 9 }, false, now);
    }
    await desksOf(books).auditLog.note({
      at: now,
      operator: 0,
      address: "",
      action: "account.export",
      subject: id,
      detail: "é\u0001",
    });
  }
  await books.close();
  const file = join(dataFolder, "tollgate.db");
  const writer = openForWriting(file);
  // Older than they are kept.
  writer.run("UPDATE journal SET at = at - ?, period = period WHERE billing_key LIKE 'req_1%' AND key_id = 1", [
    20 * dayMs,
  ]);
  while (new Writer(writer, migrate(file)).fold(now - 10 * dayMs, 250));
  writer.close();
  const responses = await StoredResponsesFile.open({
    dataFolder,
    keepMs: 90 * dayMs,
    accountBytesMax: 1e9,
    log: progress,
  });
  for (let i = 0; i < 5; i += 1) {
    const texts = {
      input: [{ role: "user", content: `q${i} \u0000 \\ "` }],
      output: `[{"id":"msg_${i}","text":"€ ${"x".repeat(i * 900)}"}]`,
    };
    void responses.keep(1 + (i % 3), {
      id: `resp_${i}`,
      previousResponseId: i < 3 ? null : `resp_${i - 3}`,
      ...texts,
      settings: `{"id":"resp_${i}"}`,
    });
  }
  const body = '{"items":[{"role":"user","content":"kept"}],"metadata":{"a":"b"}}';
  await responses.converse(1, "conv_moved", { act: "create", body, stem: "moved" });
  await responses.close();
  const failed = openRequestLog(join(dataFolder, "requests.db"), file, dayMs);
  const row = {
    at: now,
    key: 1,
    endpoint: "/v1/messages",
    model: "core-3",
    status: 429,
    reason: "busy" as const,
    cause: "status 503: full",
    input: 0,
    output: 0,
    more: 3,
  };
  const course = { node: null, waitMs: null, sentMs: 2, firstTokenMs: null, durationMs: 5 };
  await failed.add(
    {
      rows: [
        { ...row, requestId: "req_failed1", account: 1, course },
        { ...row, requestId: "req_failed2", account: 2, course },
      ],
      more: [],
      lost: 4,
    },
    now,
  );
  failed.close();
  const activity = openActivity(join(dataFolder, "activity.db"));
  await activity.add(
    [{ at: now, kind: "all", name: "", counts: [3, 1, 1, 0, 1, 9, 8, 7], wait: [3, 1], firstToken: [] }],
    now,
  );
  activity.close();
  sealingKeyOf(dataFolder, 32);
}

const exportsOf = (dataFolder: string): Promise<unknown[]> =>
  Promise.all(
    emails.map(async (email) => {
      const pieces = await exportOfFile(join(dataFolder, "tollgate.db")).account(email);
      return normal(JSON.parse((await Array.fromAsync(pieces!)).join("")));
    }),
  );
/** Lines of one moment have no order of their own in a database. */
const normal = (given: unknown): unknown => {
  const exported = given as Record<string, Record<string, unknown>[]>;
  return {
    ...exported,
    usage: exported["usage"]!.toSorted((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1)),
    stored_responses: exported["stored_responses"]!.toSorted((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1)),
  };
};

describe.skipIf(noPostgres)("the books", () => {
  const root = mkdtempSync(join(tmpdir(), "tollgate-move-"));
  const filled = join(root, "filled");
  let postgres: TestPostgres;
  let number = 0;
  const next = async () => {
    const name = `move${(number += 1)}`;
    const dataFolder = join(root, name);
    cpSync(filled, dataFolder, { recursive: true });
    return { dataFolder, url: await postgres.database(name), back: join(root, `${name}-back`) };
  };
  beforeAll(async () => {
    [postgres] = await Promise.all([TestPostgres.start(), fillFolder(filled)]);
  }, 60_000);
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });
  const errorOf = async (work: Promise<unknown>): Promise<string> =>
    String(await work.catch((thrown: unknown) => thrown));
  const summariesOf = async (usage: PostgresUsage | UsageIndex) => {
    const some = [];
    for (const account of [0, 1, 2]) {
      const { days, total, models } = await usage.summary(account, 0);
      some.push({ total, models, days: days.toSorted((a, b) => a.day - b.day) });
    }
    return some;
  };

  test("arrive whole, leave a closed folder, and come back the same", async () => {
    const { dataFolder, url, back } = await next();
    const before = await exportsOf(dataFolder);
    expect(JSON.stringify(before)).toContain("usage_sums");
    const index = UsageIndex.open(join(root, "usage.db"), join(dataFolder, "tollgate.db"));
    while (index.catchUp());
    const usageBefore = await summariesOf(index);
    index.close();
    expect(await moveIn({ dataFolder, url, now, progress })).toMatchObject({ accounts: 3, responses: 6 });
    const database = new Database(new PostgresServer(url));
    const exported = async (email: string) => {
      let text = "";
      for await (const piece of (await exportOfDatabase(database).account(email))!) text += piece;
      return normal(JSON.parse(text));
    };
    expect(await Promise.all(emails.map(exported))).toEqual(before);
    expect(await exportOfDatabase(database).account("nobody@x")).toBeNull();
    expect((await verifyBooks(database, bounds)).violations).toEqual([]);
    expect(await summariesOf(new PostgresUsage(database))).toEqual(usageBefore);
    while (await upkeepSlice(database, 15));
    const folded = await Promise.all(emails.map(exported));
    expect(await summariesOf(new PostgresUsage(database))).toEqual(usageBefore);
    await database.close();
    // A gateway of the folder knows other books, if it is started on any.
    expect(servedMark(dataFolder)?.books).toBe(booksOf(sealingKeyOf(dataFolder, 32)));
    // The folder is closed, for good.
    expect(await errorOf(openAccounting({ dataFolder, ...opening }))).toContain("were moved to 127.0.0.1");
    expect(await errorOf(moveIn({ dataFolder, url, now, progress }))).toContain("were moved to");
    expect(await exportsOf(dataFolder)).toEqual(before);
    // And back, into a folder from which a gateway served.
    mkdirSync(back);
    const owner = process.geteuid?.() === 0 ? 65_534 : statSync(back).uid; // root may do it for a service
    if (owner === 65_534) chownSync(back, owner, owner);
    setServedMark(back, { books: booksOf(sealingKeyOf(dataFolder, 32)), from: "there", at: now });
    writeFileSync(join(back, drainedName), "[]");
    expect(await errorOf(openAccounting({ dataFolder: back, ...opening }))).toContain(
      "served from there, which has the accounts and keys",
    );
    expect(() => takeFolderBeside(filled, "there")).toThrow("has books of its own, which there does not have");
    for (const folder of [back, dataFolder]) takeFolderBeside(folder, "there").release();
    expect(await moveOut({ dataFolder: back, url, now, progress })).toMatchObject({ accounts: 3, responses: 6 });
    const files = ["tollgate.db", "responses.db", "requests.db", "activity.db", "sealing.key"];
    for (const { mode, uid } of files.map((name) => statSync(join(back, name)))) {
      expect([mode & 0o777, uid]).toEqual([0o600, owner]); // of the folder's owner, and readable by nobody else
    }
    expect(await exportsOf(back)).toEqual(folded);
    expect(readdirSync(back)).not.toContain(servedName);
    const again = UsageIndex.open(join(root, "usage-back.db"), join(back, "tollgate.db"));
    while (again.catchUp());
    expect(await summariesOf(again)).toEqual(usageBefore);
    again.close();
    const activity = openActivity(join(back, "activity.db"));
    expect((await activity.read(spanOf("7d", now), "model", null)).all.total).toMatchObject({
      requests: [3],
      left: [1],
      output: [7],
    });
    activity.close();
    expect(sealingKeyOf(back, 32)).toEqual(sealingKeyOf(dataFolder, 32));
    const books = await openAccounting({ dataFolder: back, ...opening });
    expect((await books.verify()).violations).toEqual([]);
    expect((await desksOf(books).accounts.addCredit("b@x", 7, 'ref "quoted" \\ {1,2} \'1')).credited).toBe(false);
    await books.close();
    // The database is closed, for good: not even a move to another folder that fails opens it.
    const twice = moveOut({ dataFolder: join(root, "twice"), url, now, progress });
    expect(await errorOf(twice)).toContain(`were moved to ${hostname()}:${back} already`);
    expect(await errorOf(moveIn({ dataFolder: back, url, now, progress }))).toContain("they are closed");
  }, 60_000);

  test("are refused in one sentence where they cannot go, and stay as they were", async () => {
    const { dataFolder, url } = await next();
    const empty = join(root, "empty");
    expect(await errorOf(moveIn({ dataFolder: empty, url, now, progress }))).toContain("there is no data folder");
    expect(await errorOf(moveIn({ dataFolder, url: "postgres://x@127.0.0.1:1/none", now, progress }))).toContain(
      "cannot be used",
    );
    const other = await next();
    await moveIn({ dataFolder: other.dataFolder, url: other.url, now, progress });
    expect(await errorOf(moveIn({ dataFolder, url: other.url, now, progress }))).toContain("has books already");
    const sqlite = new Sqlite(join(dataFolder, "tollgate.db"));
    sqlite.run("UPDATE accounts SET credit = credit + 1 WHERE id = 2");
    expect(await errorOf(moveIn({ dataFolder, url, now, progress }))).toContain(
      "the books contradict themselves (account 2",
    );
    sqlite.run("UPDATE accounts SET credit = credit - 1 WHERE id = 2");
    sqlite.close();
    expect(await moveIn({ dataFolder, url, now, progress })).toMatchObject({ accounts: 3 });
    expect(await errorOf(moveOut({ dataFolder: filled, url, now, progress }))).toContain("has books already");
    const strange = join(root, "strange");
    cpSync(join(filled, "activity.db"), join(strange, "photo.jpg"), { recursive: true });
    expect(await errorOf(moveOut({ dataFolder: strange, url, now, progress }))).toContain("is not empty");
  }, 60_000);

  test("are not closed by a move that waits for gateways", async () => {
    const { dataFolder, url, back } = await next();
    await moveIn({ dataFolder, url, now, progress });
    const client = new Bun.SQL({ url, max: 1 });
    await client.unsafe(`INSERT INTO lanes (id, gateway, batch, seen_at, version, config_digest)
      VALUES ('lives', 'gate-1', 0, clock_timestamp(), '0', '0')`);
    const waits = Promise.withResolvers<void>();
    const moved = moveOut({
      dataFolder: back,
      url,
      now,
      progress: (line) => line.includes("gate-1") && waits.resolve(),
    });
    await waits.promise;
    expect(await client.unsafe("SELECT closed FROM ledger_meta")).toEqual([{ closed: false }] as never);
    await client.unsafe("UPDATE lanes SET gone_at = clock_timestamp()");
    expect(await moved).toMatchObject({ accounts: 3 });
    expect(await client.unsafe("SELECT closed FROM ledger_meta")).toEqual([{ closed: true }] as never);
    await client.close();
  }, 60_000);

  test("whose folder lost its ledger's name are moved there again", async () => {
    const { dataFolder, url, back } = await next();
    await moveIn({ dataFolder, url, now, progress });
    await moveOut({ dataFolder: back, url, now, progress });
    const before = await exportsOf(back);
    // As a kill before the last of the names leaves it.
    for (const name of readdirSync(back)) if (/^tollgate\.db|-(?:wal|shm)$/.test(name)) rmSync(join(back, name));
    expect(await moveOut({ dataFolder: back, url, now, progress })).toMatchObject({ accounts: 3, responses: 6 });
    expect(await exportsOf(back)).toEqual(before);
  }, 60_000);

  /** Runs the command in a process of its own, which is killed so long after a file is there. Says whether it ended before. */
  async function killed(words: readonly string[], file: string, afterMs: number): Promise<boolean> {
    const main = join(import.meta.dir, "../../../src/main.ts");
    const child = Bun.spawn([process.execPath, main, "move", ...words], { stdout: "ignore", stderr: "ignore" });
    const ended = child.exited.then(() => true);
    const begun = eventually("it has begun", async () => existsSync(file) || child.exitCode !== null);
    const isOver = await Promise.race([ended, begun.then(() => Bun.sleep(afterMs)).then(() => false)]);
    child.kill("SIGKILL");
    await child.exited;
    return isOver;
  }

  test("killed at any step there and back, nothing is lost or doubled", async () => {
    const { dataFolder, url, back } = await next();
    const before = await exportsOf(dataFolder);
    const states = new Set<string>();
    // The mark stands from the first time on, so that later ones are killed while they start, and then further and further.
    const stepMs = (afterMs: number) => (afterMs < 600 ? 600 : 150);
    /** Later each time, until it has ended. */
    const mark = join(dataFolder, "moved.json");
    for (
      let afterMs = 0;
      !(await killed(["--to", url, "--data", dataFolder], mark, afterMs));
      afterMs += stepMs(afterMs)
    ) {
      const state = movedMark(dataFolder)!.state;
      states.add(state);
      expect(await errorOf(openAccounting({ dataFolder, ...opening }))).toContain(
        state === "moved" ? "were moved to" : "was cut off",
      );
    }
    expect(movedMark(dataFolder)?.state).toBe("moved");
    const database = new Database(new PostgresServer(url));
    expect((await verifyBooks(database, bounds)).violations).toEqual([]);
    await database.close();
    const part = join(back, "tollgate.db.moving");
    for (
      let afterMs = 0;
      !(await killed(["--from", url, "--to-data", back], part, afterMs));
      afterMs += stepMs(afterMs)
    ) {
      rmSync(part, { force: true }); // the next one says by it that it has begun
      states.add(existsSync(join(back, "tollgate.db")) ? "back" : "not back");
      if (existsSync(join(back, "tollgate.db"))) break; // only its last words were lost
    }
    expect(await exportsOf(back)).toEqual(before);
    expect(readdirSync(back).filter((name) => name.includes(".moving"))).toEqual([]);
    console.log(`killed in the states ${[...states].join(", ")}`);
    expect(String(await errorOf(moveIn({ dataFolder: back, url, now, progress })))).toContain("they are closed");
  }, 120_000);
});
