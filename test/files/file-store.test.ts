// Files as gateways keep them: one suite for rows in SQLite and in PostgreSQL. What is on disk and what is counted always agree.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles } from "../../src/books/open-files.ts";
import { systemClock } from "../../src/core/clock.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Refusal } from "../../src/core/types.ts";
import { type FileLimits, FileStore } from "../../src/files/file-store.ts";
import type { FileRows, StoredFile } from "../../src/files/files.ts";
import { fileRowsIn } from "../../src/store/files/files-file.ts";
import { PostgresServer } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { FileTables } from "../../src/store/files/file-tables.ts";
import { migrate } from "../../src/store/postgres/migrations.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";

const limits: FileLimits = { fileBytesMax: 1_000, accountBytesMax: 2_500, totalBytesMax: 4_000, keepMs: 1_000 };
const meta = { filename: "a.jsonl", purpose: "batch", expiresAt: null };

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

function stored(made: StoredFile | Refusal): StoredFile {
  if (isRefusal(made)) throw new Error(JSON.stringify(made));
  return made;
}

function suite(rowsIn: (folder: string) => FileRows): void {
  const folders: string[] = [];
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

  const make = async (more: Partial<{ folder: string; freeBytes: number; isShared: boolean }> = {}) => {
    const folder = more.folder ?? mkdtempSync(join(tmpdir(), "tollgate-files-"));
    folders.push(folder);
    const { freeBytes = Infinity, isShared = false } = more;
    const options = { folder: join(folder, "files"), isShared, limits, rows: rowsIn(folder) };
    const log = (_: string, event: string, more: unknown) => {
      throw new Error(`${event}: ${JSON.stringify(more)}`);
    };
    const store = await FileStore.open({ ...options, freeBytes: () => freeBytes, clock: systemClock, log });
    const onDisk = () =>
      readdirSync(join(folder, "files"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
        .sort();
    return { folder, store, onDisk, [Symbol.asyncDispose]: () => store.close() };
  };
  const account = () => Math.floor(Math.random() * 1e9);

  test("what is uploaded is read again by its owner, and by nobody else", async () => {
    await using site = await make();
    const [ada, bob] = [account(), account()];
    const { store } = site;
    const file = stored(await store.create(ada, meta, pieces("one ", "two")));
    expect(file.id).toMatch(/^file-\w{24}$/);
    expect(file).toMatchObject({ bytes: 7, accountId: ada, ...meta });
    expect(await store.read(file).text()).toBe("one two");
    expect(statSync(join(site.folder, "files", file.id.slice(-2), file.id)).mode & 0o777).toBe(0o600);
    expect(await store.get(ada, file.id)).toEqual(file);
    expect(await store.get(bob, file.id)).toBeNull();
    expect(await store.remove(bob, file.id)).toBe(false);
    expect(await store.remove(ada, file.id)).toBe(true);
    expect(await store.remove(ada, file.id)).toBe(false);
    expect(site.onDisk()).toEqual([]);
  });

  test("lists go both ways, page by page, by purpose", async () => {
    await using site = await make();
    const ada = account();
    const made: string[] = [];
    for (const purpose of ["batch", "vision", "batch", "batch"]) {
      made.push(stored(await site.store.create(ada, { ...meta, purpose }, pieces("x"))).id);
    }
    const ids = async (page: Parameters<FileStore["list"]>[1]) =>
      (await site.store.list(ada, page)).map(({ id }) => id);
    const sorted = made.toSorted();
    expect(await ids({ limit: 10, order: "asc" })).toEqual(sorted);
    expect(await ids({ limit: 2, order: "desc" })).toEqual(sorted.toReversed().slice(0, 2));
    expect(await ids({ limit: 2, order: "desc", after: sorted[2]! })).toEqual(sorted.toReversed().slice(2));
    expect(await ids({ limit: 10, order: "asc", after: sorted[2]! })).toEqual([sorted[3]!]);
    expect(await ids({ limit: 10, order: "asc", purpose: "vision" })).toEqual([made[1]!]);
    await site.store.eraseAccount(ada);
    expect(await ids({ limit: 10, order: "asc" })).toEqual([]);
    expect(site.onDisk()).toEqual([]);
  });

  test("a file, an account's files and all of them have bounds, also while several come at once", async () => {
    await using site = await make();
    const { store } = site;
    const [ada, bob] = [account(), account()];
    const whole = "x".repeat(1_000);
    expect(await store.create(ada, meta, pieces(whole, "y"))).toMatchObject({ refusal: "file_too_large" });
    const at = await Promise.all(
      [1, 2, 3, 4].map(() => store.create(ada, meta, pieces("x".repeat(600), "x".repeat(400)))),
    );
    expect(at.filter((made) => !isRefusal(made)).length).toBeLessThanOrEqual(2);
    await store.eraseAccount(ada);
    // As gateways do that know nothing of each other's uploads.
    const rows = rowsIn(site.folder);
    const bounds = { ...limits, accountFilesMax: 10 };
    const row = { ...meta, accountId: ada, bytes: 1_000, createdAt: 1 };
    const added = await Promise.all([1, 2, 3, 4].map((each) => rows.add({ ...row, id: `file-${each}` }, true, bounds)));
    expect(added.filter((isAdded) => isAdded)).toHaveLength(2);
    await rows.close();
    await store.eraseAccount(ada);
    for (const _ of [1, 2]) stored(await store.create(ada, meta, pieces(whole)));
    expect(await store.create(ada, meta, pieces(whole))).toMatchObject({ refusal: "file_too_large" });
    stored(await store.create(bob, meta, pieces(whole)));
    stored(await store.create(bob, meta, pieces("x".repeat(900))));
    expect(await store.create(account(), meta, pieces("x".repeat(101)))).toEqual({ refusal: "storage_full" });
    expect(site.onDisk()).toHaveLength(4);
    for (const each of [ada, bob]) await store.eraseAccount(each);
  });

  test("an upload that breaks off, and one for which the disk has no room, leave nothing", async () => {
    await using site = await make();
    const broken = (async function* () {
      yield Buffer.from("one");
      throw new Error("the client left");
    })();
    await expect(site.store.create(account(), meta, broken)).rejects.toThrow("the client left");
    expect(site.onDisk()).toEqual([]);
    await using full = await make({ freeBytes: 1_000 });
    expect(await full.store.create(account(), meta, pieces("x"))).toEqual({ refusal: "storage_full" });
    expect(full.onDisk()).toEqual([]);
  });

  test("one that expired is found by nobody, and removed", async () => {
    await using site = await make();
    const ada = account();
    const file = stored(await site.store.create(ada, { ...meta, expiresAt: systemClock.wall() - 1 }, pieces("x")));
    expect(await site.store.get(ada, file.id)).toBeNull();
    expect(await site.store.list(ada, { limit: 9, order: "asc" })).toEqual([]);
    await site.store.removeExpired(systemClock.wall());
    expect(site.onDisk()).toEqual([]);
  });

  test("a file that is written over days is taken up where it was flushed, and nobody sees it before its end", async () => {
    const ada = account();
    const { folder, id } = await (async () => {
      await using site = await make();
      const writer = await site.store.writer(ada, meta);
      await Promise.all([writer.append(Buffer.from("one\n")), writer.append(Buffer.from("two\n"))]);
      await writer.flush();
      await writer.append(Buffer.from("torn, and longer than what comes next"));
      expect(await site.store.get(ada, writer.file.id)).toBeNull();
      await writer.close(); // as a kill does
      return { folder: site.folder, id: writer.file.id };
    })();
    await using site = await make({ folder });
    expect(await site.store.resumeWriter(account(), id, 8)).toBeNull();
    const writer = (await site.store.resumeWriter(ada, id, 8))!;
    await writer.append(Buffer.from("three\n"));
    const file = await writer.finish();
    expect(file.bytes).toBe(14);
    expect(await site.store.get(ada, id)).toEqual(file);
    expect(await site.store.read(file).text()).toBe("one\ntwo\nthree\n");
    expect(await site.store.resumeWriter(ada, id, 8)).toBeNull();
    await site.store.eraseAccount(ada);
  });

  test("a start removes what a kill left, and where gateways share the folder only what is old", async () => {
    const ada = account();
    const { folder, file } = await (async () => {
      await using site = await make();
      const file = stored(await site.store.create(ada, meta, pieces("kept")));
      for (const ending of ["", ".new"]) {
        writeFileSync(join(site.folder, "files", file.id.slice(-2), `file-left${file.id.slice(-2)}${ending}`), "left");
      }
      return { folder: site.folder, file };
    })();
    {
      await using shared = await make({ folder, isShared: true });
      expect(shared.onDisk()).toHaveLength(3);
      const hours = new Date(systemClock.wall() - 2 * 3_600_000);
      for (const name of shared.onDisk()) utimesSync(join(folder, "files", file.id.slice(-2), name), hours, hours);
    }
    await using site = await make({ folder, isShared: true });
    expect(site.onDisk()).toEqual([file.id]);
    expect(await site.store.read(file).text()).toBe("kept");
    await site.store.eraseAccount(ada);
  });
}

describe("in SQLite", () => suite(fileRowsIn));

describe.skipIf(noPostgres)("in PostgreSQL", () => {
  let postgres: TestPostgres;
  let database: Database;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
    const server = new PostgresServer(await postgres.database("files"));
    const connection = await server.connect();
    await migrate(connection);
    connection.close();
    database = new Database(server);
  }, 60_000);
  afterAll(async () => {
    await database.close();
    await postgres[Symbol.asyncDispose]();
  });
  suite(() => new FileTables(database));
});

test("a folder that cannot be made is told in one line, by the option that names it", () => {
  const config = { dataFolder: tmpdir(), databaseUrl: null, files: { ...limits, folder: "/dev/null/files" } };
  const opened = openFiles(config, {} as FileRows, systemClock, () => {});
  return expect(opened).rejects.toMatchObject({
    name: "DataFolderUnusable",
    message: expect.stringContaining("(files.folder)"),
  });
});
