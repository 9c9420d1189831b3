// Tags and cost centers from a client's request to reports and statements, and a month that stays as it was: through folds, other
// prices and cost centers, and the deletion of its account.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { dayMs } from "../../src/core/units.ts";
import type { Row } from "../../src/office/verbs/report.ts";
import type { Statement } from "../../src/office/verbs/statement.ts";
import type { RequestRow } from "../../src/account/request-row.ts";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { type Databases, startDatabases } from "../fixtures/postgres.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

setDefaultTimeout(120_000);

describe.each([["1 thread"], ["2 threads"], ["PostgreSQL"]])("on %s", (arrangement) => {
  const folder = temporaryFolder();
  const node = new TellingNode();
  const onPostgres = arrangement === "PostgreSQL";
  let databases: Databases | null = null;
  let url = "";
  let gateway: GatewayProcess;
  let account: Account;
  const config = (price: number, more = "") =>
    `${arrangement === "2 threads" ? "[server]\nthreads = 2\n" : ""}
[[nodes]]\nname = "a"\nurl = "${node.url}"\nmodels = { one = "teller", two = "teller" }
[[models]]\nid = "one"\nprice = ${price}\n[[models]]\nid = "two"\nprice = 5\n${more}`;

  beforeAll(async () => {
    if (onPostgres) {
      databases = await startDatabases();
      url = await databases.database("accounting");
    }
    gateway = await GatewayProcess.start({
      config: config(5),
      // of its own, so that suites on another database leave it be
      dataFolder: join(folder.path, "data"),
      ...(onPostgres ? { env: { TOLLGATE_DATABASE_URL: url } } : {}),
    });
    account = await gateway.account(0);
    await gateway.cli("accounts", "credit", account.email, "1000000");
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await databases?.[Symbol.asyncDispose]();
    node[Symbol.dispose]();
    folder[Symbol.dispose]();
  });

  async function run(sql: string): Promise<readonly any[]> {
    if (!onPostgres) {
      using database = new Database(join(gateway.dataFolder, "tollgate.db"));
      database.run("PRAGMA busy_timeout = 5000");
      return database.query(sql).all();
    }
    const client = new Bun.SQL({ url, max: 1 });
    try {
      return await client.unsafe(sql);
    } finally {
      await client.close();
    }
  }

  const ask = async (path: string, body: object, tags: string | null = null, key = account.api_key) => {
    const headers = { authorization: `Bearer ${key}`, ...(tags === null ? {} : { "x-tags": tags }) };
    const reply = await fetch(`${gateway.url}/v1/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "one", ...body }),
    });
    expect([body, await reply.text(), reply.status].slice(2)).toEqual([200]);
  };
  const messages = [{ role: "user", content: "Hi there" }];
  const chat = { messages, max_tokens: 9 };
  const report = (...words: string[]) => gateway.cli<Row[]>("report", ...words);
  const sumsOf = (rows: readonly Row[]) =>
    rows.reduce(
      (sum, { requests, input, output, billed }) => [
        ...[sum[0]! + requests, sum[1]! + input, sum[2]! + output, sum[3]! + billed],
      ],
      [0, 0, 0, 0],
    );

  test("tags come from the header and the body, in every dialect and size, and each request counts once", async () => {
    await eventually("the node is well", async () => {
      const reply = await fetch(`${gateway.url}/v1/models`, {
        headers: { authorization: `Bearer ${account.api_key}` },
      });
      return (await reply.text()).includes('"one"');
    });
    await ask("chat/completions", chat, "b, a,, a ");
    await ask("chat/completions", { ...chat, metadata: { tags: ["b"] } }, "a");
    await ask("messages", { ...chat, metadata: { user_id: "eve", tags: ["a", "b"] } });
    await ask("responses", { input: "Hi there", max_output_tokens: 16, metadata: { tags: "b,a" } });
    await ask("completions", { prompt: "Hi", max_tokens: 9, metadata: { tags: "a" } }, "b");
    const padding = "x".repeat(largeBodyMinBytes);
    await ask("chat/completions", { ...chat, padding, metadata: { tags: ["b"] } }, "a");
    // Neither an error nor a tag.
    for (const tags of [7, [7, null, {}, [], ""], {}, " , ", null, true]) {
      await ask("chat/completions", { ...chat, metadata: { tags } });
    }
    await ask("chat/completions", { ...chat, metadata: { tags: Array.from({ length: 5_000 }, (_, at) => `t${at}`) } });
    await ask("chat/completions", { ...chat, metadata: { tags: [`${"l".repeat(100_000)}\u202e`] } }, "\u00e9");
    const rows = await report("--by", "tag", "--account", account.email);
    const counts = new Map(rows.map(({ tag, requests }) => [tag, requests]));
    expect(counts.get("a,b")).toBe(6);
    expect(counts.get(null)).toBe(6);
    expect(counts.get("t0,t1,t2,t3,t4,t5,t6,t7,t8,t9")).toBe(1);
    const [long, ...others] = [...counts.keys()].filter((tag) => tag?.includes("lll"));
    expect(others).toEqual([]);
    expect(long!.length).toBeLessThanOrEqual(64 + 3);
    expect(sumsOf(rows)).toEqual(sumsOf(await report("--account", account.email)));
    const [tagged] = await report("--by", "model", "--tag", "b");
    expect(tagged).toMatchObject({ model: "one", requests: 6 });
    const log = await gateway.cli<RequestRow[]>("requests", "--account", account.email);
    expect(log.filter(({ tags }) => tags === "a,b")).toHaveLength(6);
  });

  test("a refused request has its tags in the log, too", async () => {
    const key = await gateway.makeKey(account.email, { name: "poor", limit_day: 1 });
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.api_key}`, "x-tags": "too, much" },
      body: JSON.stringify({ model: "one", messages, max_tokens: 9, metadata: { tags: "big" } }),
    });
    await reply.text();
    expect(reply.status).toBe(429);
    await eventually("it is written", async () => {
      const [row] = await gateway.cli<RequestRow[]>("requests", "--reason", "failed");
      return row?.tags === "big,much,too";
    });
  });

  test("usage is booked to the cost center of its time, and a key's own comes first", async () => {
    const before = await report("--by", "cost-center,account", "--account", account.email);
    expect(before).toHaveLength(1);
    expect(before[0]).toMatchObject({ cost_center: null });
    await gateway.cli("accounts", "update", account.email, "--cost-center", " R&D ");
    const key = await gateway.makeKey(account.email, { name: "bot", limit_day: 1_000_000 });
    await gateway.cli("accounts", "update", account.email, "--cost-center", "Sales", "--key", String(key.id));
    await ask("chat/completions", chat, "late");
    await ask("chat/completions", { ...chat, model: "two" });
    await ask("chat/completions", chat, null, key.api_key);
    await gateway.cli("accounts", "update", account.email, "--cost-center", "none", "--key", String(key.id));
    await ask("chat/completions", chat, null, key.api_key);
    const rows = await report("--by", "cost-center,key", "--account", account.email);
    expect(rows.map(({ cost_center, key, requests }) => [cost_center, key, requests]).sort()).toEqual([
      [null, "default", before[0]!.requests],
      ["R&D", "bot", 1],
      ["R&D", "default", 2],
      ["Sales", "bot", 1],
    ]);
    expect(sumsOf(await report("--cost-center", "R&D", "--by", "model"))[0]).toBe(3);
  });

  test("a month that is over stays as it is", async () => {
    await gateway.kill("SIGTERM");
    const before = 70 * dayMs;
    await run(`UPDATE journal SET at = at - ${before}, period = period - 70`);
    for (const table of ["quota_use", "key_use"]) {
      const column = table === "quota_use" ? "period" : "day";
      await run(`UPDATE ${table} SET ${column} = ${column} - 70`);
    }
    if (onPostgres) {
      await run("UPDATE accounts SET allowance_day = allowance_day - 70");
      await run("UPDATE served_days SET day = day - 70");
    } else await rm(join(gateway.dataFolder, "usage.db"), { force: true }); // it is made anew of the journal
    const month = new Date(Date.now() - before).toISOString().slice(0, 7);
    const statement = () => gateway.cli<Statement>("statement", account.email, "--month", month);
    const byEach = ["--month", month, "--by", "account,model,endpoint,key,cost-center"];
    const first = await statement();
    const [rows, total] = [await report(...byEach), await report("--month", month, "--by", "model")];
    expect(first).toMatchObject({ closed: true, cost_centers: ["R&D", "Sales"] });
    expect(first.lines.map(({ cost_center, model }) => [cost_center, model]).sort()).toEqual([
      [null, "one"],
      ["R&D", "one"],
      ["R&D", "two"],
      ["Sales", "one"],
    ]);
    expect(first.credits).toMatchObject([{ tokens: 1_000_000, usd: 5 }]);
    expect(first.total.billed).toBe(first.lines.reduce((sum, { billed }) => sum + billed, 0));
    const [journal] = await run("SELECT sum(billed_tokens) AS sum FROM journal");
    expect(sumsOf(total)[3]).toBe(Number(journal.sum));

    await writeFile(join(gateway.folder, "tollgate.toml"), config(50, "[retention]\nusage_days = 1\n"));
    await gateway.restart();
    await ask("chat/completions", chat); // the newest line is never folded
    await eventually(
      "the lines are folded",
      async () => {
        const [left] = await run(
          `SELECT count(*) AS lines FROM journal WHERE kind <> 'credit' AND at < ${Date.now() - 2 * dayMs}`,
        );
        return Number(left.lines) === 0;
      },
      90_000,
    );
    await gateway.cli("accounts", "update", account.email, "--cost-center", "Elsewhere");
    expect(await statement()).toEqual(first);
    expect(await report(...byEach)).toEqual(rows);

    const { email } = account;
    await gateway.cli("accounts", "delete", email, "--yes");
    const erased = await gateway.cli<Statement>("statement", `deleted-${account.id}@invalid`, "--month", month);
    expect(erased).toEqual({ ...first, account: `deleted-${account.id}@invalid` });
    const [left] = await run("SELECT count(*) AS tagged FROM journal WHERE tags IS NOT NULL");
    expect(Number(left.tagged)).toBe(0);
  });
});
