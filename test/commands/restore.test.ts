// Restoring a backup: everything is as it was at its moment, what was there before is kept, and a file that cannot be
// trusted changes nothing.
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { schemaVersion } from "../../src/store/ledger/schema-version.ts";
import type { Finished } from "../fixtures/children.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { longForm, missing } from "../fixtures/optional.ts";
import { nodeTable } from "../fixtures/stack.ts";
import { canTrace, traced } from "../fixtures/strace.ts";
import { chat, run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000);

const cannotTrace = missing("strace", canTrace(), "apt-get install strace, and permission to trace", false);
/** What gives names, takes them and flushes; strace counts each call by itself. */
const steps = ["link,linkat", "rename,renameat,renameat2", "unlink,unlinkat", "fsync,fdatasync"];

type Restored = Readonly<{
  accounts: number;
  violations: number;
  last_charge: string | null;
  kept: string | null;
  kept_responses: string | null;
}>;

/** Sends requests one after the other until it is told to stop; counts those that were answered. */
function load(gateway: GatewayProcess, account: Account) {
  let going = true;
  let answered = 0;
  const url = gateway.url;
  const ended = (async () => {
    while (going) {
      const reply = await chat(url, account.api_key, { stream: true, max_tokens: 20 });
      if (reply.ok && (await reply.text()).includes("[DONE]")) answered += 1;
    }
  })();
  return {
    async until(count: number): Promise<void> {
      while (answered < count) await Bun.sleep(5);
    },
    stop: () => {
      going = false;
      return ended;
    },
  };
}

/** What an account's charges and grants are, as the database in a file says. */
function booksIn(file: string, { id }: Account): object {
  using database = new Database(file, { readonly: true });
  return database
    .query(
      `SELECT credit, (SELECT sum(used) FROM quota_use WHERE account_id = ?1) AS used,
         (SELECT count(*) FROM journal WHERE account_id = ?1) AS lines FROM accounts WHERE id = ?1`,
    )
    .get(id) as object;
}

/** The usage page's own answer. */
async function usagePage(gateway: GatewayProcess, email: string, password: string): Promise<number> {
  const api = `${gateway.url}/console/api`;
  const headers = { origin: gateway.url, "content-type": "application/json" };
  const signedIn = await fetch(`${api}/sign-in`, {
    method: "POST",
    headers,
    body: JSON.stringify({ email, password }),
  });
  const cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
  const page = (await (await fetch(`${api}/usage?limit=200`, { headers: { cookie } })).json()) as { rows: unknown[] };
  return page.rows.length;
}

const store = (gateway: GatewayProcess, { api_key }: Account): Promise<Response> =>
  fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${api_key}` },
    body: JSON.stringify({ model: "core-3", input: "hello", store: true }),
  });

function storedBy({ dataFolder }: GatewayProcess): Record<string, number> {
  using database = new Database(join(dataFolder, "responses.db"), { readonly: true });
  const rows = database.query("SELECT account_id, count(*) AS kept FROM responses GROUP BY account_id").all();
  return Object.fromEntries((rows as { account_id: number; kept: number }[]).map((row) => [row.account_id, row.kept]));
}

test("a backup that was made under load is put back after a kill: books, keys, usage and stored responses fit it", async () => {
  await using node = await ScriptedNode.start();
  await using gateway = await GatewayProcess.start({ config: nodeTable(node, 64) });
  const password = "correct horse battery";
  const ada = await gateway.cli<Account>(
    "accounts",
    "create",
    "ada@x.org",
    "--credit",
    "90000000",
    "--password",
    password,
  );
  expect((await store(gateway, ada)).status).toBe(200);
  const file = join(gateway.folder, "copy.db");

  const requests = load(gateway, ada);
  await requests.until(5);
  await gateway.cli("backup", file);
  const books = booksIn(file, ada);
  await requests.until(15);
  await requests.stop();
  const late = await gateway.account();
  expect((await store(gateway, late)).status).toBe(200);
  const usedLater = await usagePage(gateway, ada.email, password); // its index is made, and knows of more than the backup
  await gateway.cli("keys", "rotate", ada.email);
  await gateway.kill("SIGKILL");

  const restored = await gateway.cli<Restored>("restore", file);
  expect(restored).toMatchObject({ accounts: 2, violations: 0, kept_responses: null });
  expect(existsSync(join(gateway.dataFolder, "usage.db"))).toBe(false);
  expect(booksIn(join(gateway.dataFolder, "tollgate.db"), ada)).toEqual(books);
  await gateway.restart();
  const { credit, reserved } = await gateway.show(ada.email);
  expect({ credit, reserved }).toEqual({ credit: (books as { credit: number }).credit, reserved: 0 });
  const usage = await gateway.usage(ada.email);
  expect(usage[0]!.time).toBe(restored.last_charge!);
  const shown = await usagePage(gateway, ada.email, password);
  expect(shown).toBe(usage.length);
  expect(shown).toBeLessThan(usedLater);
  expect((await chat(gateway.url, ada.api_key, { max_tokens: 20 })).status).toBe(200);
  expect((await chat(gateway.url, late.api_key, {})).status).toBe(401);
  expect(storedBy(gateway)).toEqual({ [ada.id]: 1 }); // the next account gets the number of the late one

  // and back again: what was kept is a ledger as whole as the one in use
  await gateway.kill("SIGTERM");
  const undone = await gateway.cli<Restored>("restore", restored.kept!);
  expect(undone.accounts).toBe(3);
  await gateway.restart();
  expect((await gateway.show(late.email)).email).toBe(late.email);
  expect((await chat(gateway.url, ada.api_key, {})).status).toBe(401); // it was rotated in that one
});

describe.concurrent("a restore", () => {
  /** A data folder with an account, no server, and its backup. */
  async function stopped(): Promise<
    AsyncDisposable & { data: string; file: string; restore(...words: string[]): Promise<Finished> }
  > {
    const folder = temporaryFolder();
    const data = join(folder.path, "data");
    const file = join(folder.path, "copy.db");
    await run(["accounts", "create", "ada@x.org", "--credit", "5000", "--data", data]);
    expect((await run(["backup", file, "--data", data])).code).toBe(0);
    return {
      data,
      file,
      restore: (...words) => run(["restore", file, "--data", data, ...words]),
      async [Symbol.asyncDispose]() {
        folder[Symbol.dispose]();
      },
    };
  }

  /** Names and bytes of the folder's files. The lock's own file is SQLite's. */
  const contents = (folder: string): Record<string, string> =>
    Object.fromEntries(
      readdirSync(folder)
        .filter((name) => !name.startsWith("tollgate.lock"))
        .sort()
        .map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString()]),
    );

  const refusedFiles: readonly (readonly [what: string, spoil: (file: string) => void, reason: RegExp])[] = [
    ["cut off", (file) => truncateSync(file, 60_000), /copy\.db.* (is damaged|malformed)/],
    ["empty", (file) => truncateSync(file, 0), /copy\.db is no ledger of tollgate/],
    ["of another kind", (file) => writeFileSync(file, "PK".repeat(5_000)), /copy\.db: file is not a database/],
    [
      "with a page overwritten",
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0xa5, 8_192, 12_288);
        writeFileSync(file, bytes);
      },
      /copy\.db.* (is damaged|malformed)/,
    ],
    [
      "of another program",
      (file) => {
        writeFileSync(file, "");
        using database = new Database(file);
        database.run("CREATE TABLE accounts (id INTEGER)");
      },
      /copy\.db is no ledger of tollgate/,
    ],
    [
      "of a newer version",
      (file) => {
        using database = new Database(file);
        database.run(`PRAGMA user_version = ${schemaVersion + 1}`);
      },
      new RegExp(`copy\\.db has version ${schemaVersion + 1}, but this tollgate knows versions up to ${schemaVersion}`),
    ],
    [
      "with a balance that its journal does not have",
      (file) => {
        using database = new Database(file);
        database.run("UPDATE accounts SET credit = credit + 1");
      },
      /copy\.db contradicts itself: account 1: credit is 5001, the journal says 5000$/m,
    ],
  ];
  test.each(refusedFiles)("of a file %s is refused and changes nothing", async (_, spoil, reason) => {
    await using site = await stopped();
    const before = contents(site.data);
    spoil(site.file);
    const { code, stdout, stderr } = await site.restore();
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/tollgate: nothing was restored: /);
    expect(stderr).toMatch(reason);
    expect(contents(site.data)).toEqual(before);
  });

  test("of books that contradict themselves is done where it is asked for", async () => {
    await using site = await stopped();
    using database = new Database(site.file);
    database.run("UPDATE accounts SET credit = credit + 1");
    const { code, stdout } = await site.restore("--accept-violations");
    expect(code).toBe(0);
    expect(stdout).toContain("the books contradict themselves in 1 place,");
  });

  test("into a data folder beside a ledger in PostgreSQL is refused, and no command goes there for a broken file", async () => {
    await using folder = await stopped();
    const before = contents(folder.data);
    const config = join(folder.data, "../gate.toml");
    writeFileSync(config, '[ledger]\nurl = "postgres://t:hidden@127.0.0.1:1/t"\n');
    expect(await folder.restore("--config", config)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "tollgate: the ledger is in PostgreSQL: restore it there with pg_restore (see More than one machine)",
    });
    writeFileSync(config, '[ledger]\nurl = "postgres://t:hidden@127.0.0.1:1/t"\ngatherms = 1\n');
    const listed = await run(["accounts", "list", "--data", folder.data, "--config", config]);
    expect([listed.code, listed.stdout]).toEqual([1, ""]);
    expect(listed.stderr).toContain("ledger.gatherms is unknown");
    expect(contents(folder.data)).toEqual(before);
  });

  test("while a server runs is refused", async () => {
    await using site = await stopped();
    await using server = await Server.start(["--port", "0", "--data", site.data]);
    expect(await site.restore()).toEqual({
      code: 1,
      stdout: "",
      stderr: `tollgate: a server runs on the data folder ${site.data}: stop it first, then restore`,
    });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  test("while another program reads the ledger is refused", async () => {
    await using site = await stopped();
    const live = join(site.data, "tollgate.db");
    // What a server that was killed leaves: a log that is not in the file yet.
    using writer = new Database(live);
    writer.run("PRAGMA wal_autocheckpoint = 0");
    using reader = new Database(live, { readonly: true });
    writer.run("UPDATE instance SET epoch = epoch + 1");
    reader.run("BEGIN");
    reader.query("SELECT epoch FROM instance").get();
    const { code, stderr } = await site.restore();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`tollgate: nothing was restored: another program has ${live} open; stop it first`),
    ]);
  });

  test("replaces a ledger that is damaged, and keeps it and its log as they are", async () => {
    await using site = await stopped();
    writeFileSync(join(site.data, "tollgate.db"), "not a database any more");
    writeFileSync(join(site.data, "tollgate.db-wal"), "nor a log");
    writeFileSync(join(site.data, "responses.db"), "nor are these responses");
    const { code, stdout } = await site.restore("--json");
    expect(code).toBe(0);
    const { kept, kept_responses } = JSON.parse(stdout) as Restored;
    expect(basename(kept!)).toMatch(/^replaced-\d{8}T\d{9}Z-tollgate\.db$/);
    expect(readFileSync(kept!, "utf8")).toBe("not a database any more");
    expect(readFileSync(`${kept}-wal`, "utf8")).toBe("nor a log");
    expect(readFileSync(kept_responses!, "utf8")).toBe("nor are these responses");
    expect((await run(["accounts", "show", "ada@x.org", "--data", site.data])).code).toBe(0);
  });

  test("makes a data folder where there is none, and says in words what it did", async () => {
    await using site = await stopped();
    const other = join(site.data, "../other");
    const { code, stdout } = await run(["restore", site.file, "--data", other]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^restored  .*copy\.db, [\d,]+ bytes: 1 account, no charge\nchecked   every page/);
    expect(stdout).not.toContain("kept ");
    expect(readdirSync(other).sort()).toEqual(["tollgate.db", "tollgate.lock"]);
    expect((await run(["accounts", "show", "ada@x.org", "--data", other])).code).toBe(0);
  });

  test("takes the log of a copied folder along", async () => {
    await using site = await stopped();
    const live = join(site.data, "tollgate.db");
    using writer = new Database(live);
    writer.run("PRAGMA wal_autocheckpoint = 0");
    writer.run("UPDATE accounts SET email = 'in-the-log@x.org'");
    const other = join(site.data, "../other");
    for (const suffix of ["", "-wal"]) copyFileSync(live + suffix, `${site.file}.raw${suffix}`);
    expect((await run(["restore", `${site.file}.raw`, "--data", other])).code).toBe(0);
    expect((await run(["accounts", "show", "in-the-log@x.org", "--data", other])).code).toBe(0);
  });

  test.skipIf(cannotTrace || !longForm)(
    "that is killed at any of its steps leaves the old ledger or the new one, whole",
    async () => {
      await using site = await stopped();
      const live = join(site.data, "tollgate.db");
      using writer = new Database(live);
      writer.run("PRAGMA wal_autocheckpoint = 0");
      writer.run("UPDATE accounts SET email = 'old@x.org'"); // in the log alone: without it the file says ada@x.org
      using backup = new Database(site.file);
      backup.run("UPDATE accounts SET email = 'new@x.org'");
      backup.run("UPDATE instance SET epoch = 1000"); // on another page: the old log on the new file would be half of each
      const states = new Set<string>();
      /** Kills the restore of a copy of the folder at its nth such call; false: it ended before. */
      const killedAt = async (calls: string, nth: number): Promise<boolean> => {
        const data = `${site.data}-${calls}-${nth}`;
        mkdirSync(data);
        for (const suffix of ["", "-wal"]) copyFileSync(live + suffix, join(data, `tollgate.db${suffix}`));
        const inject = `inject=${calls}:signal=SIGKILL:when=${nth}`;
        const program = [...traced("-o", "/dev/null", "-e", `trace=${calls}`, "-e", inject), ...tollgate];
        const { code } = await run(["restore", site.file, "--data", data], { program });
        using database = new Database(join(data, "tollgate.db"));
        expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
        const state = database.query(
          "SELECT email || iif(epoch > 1000, ' is new', ' is old') AS state FROM accounts, instance",
        );
        states.add((state.get() as { state: string }).state);
        return code !== 0;
      };
      const killsAt = async (calls: string): Promise<number> => {
        let kills = 0;
        while (await killedAt(calls, kills + 1)) kills += 1;
        return kills;
      };
      expect(Math.min(...(await Promise.all(steps.map(killsAt))))).toBeGreaterThan(0);
      expect([...states].sort()).toEqual(["new@x.org is new", "old@x.org is old"]);
    },
  );

  test.skipIf(process.geteuid?.() !== 0)("by root gives the ledger to the user whose it was", async () => {
    await using site = await stopped();
    const nobody = 65_534;
    const owners = () => ["tollgate.db", "tollgate.lock"].map((name) => statSync(join(site.data, name)).uid);
    chownSync(join(site.data, "tollgate.db"), nobody, nobody);
    rmSync(join(site.data, "tollgate.lock"));
    expect((await site.restore()).code).toBe(0);
    expect(owners()).toEqual([nobody, nobody]);
    for (const name of ["tollgate.db", "tollgate.lock"]) rmSync(join(site.data, name)); // all that is left is the folder
    chownSync(site.data, nobody, nobody);
    expect((await site.restore()).code).toBe(0);
    expect(owners()).toEqual([nobody, nobody]);
  });

  test("of the file that it would write its own copy to is refused and leaves it", async () => {
    await using site = await stopped();
    const own = join(site.data, "tollgate.db.restoring");
    copyFileSync(site.file, own);
    const { code, stderr } = await run(["restore", own, "--data", site.data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${own} is where a restore puts its copy`)]);
    expect(readFileSync(own)).toEqual(readFileSync(site.file));
  });

  test("of the ledger in use, or of no file, is refused in one line", async () => {
    await using site = await stopped();
    const live = join(site.data, "tollgate.db");
    const link = join(site.data, "link.db");
    symlinkSync(live, link);
    expect((await run(["restore", link, "--data", site.data])).stderr).toBe(
      `tollgate: ${link} is the ledger in use itself`,
    );
    expect((await run(["restore", live, "--data", site.data])).stderr).toBe(
      `tollgate: ${live} is the ledger in use itself`,
    );
    expect((await run(["restore", "/nowhere.db", "--data", site.data])).stderr).toBe(
      "tollgate: there is no file /nowhere.db",
    );
  });
});
