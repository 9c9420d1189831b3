// A batch that its account cannot pay for waits, and goes on when it can: with a purchase, and with the next day's allowance.
import { expect, setDefaultTimeout, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { startCountingNode } from "./counting-node.ts";
import { contradictions } from "./killed.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const dayMs = 86_400_000;
const lineCount = 60;

/** A database whose clock goes ahead, too. */
async function movedDatabase(postgres: TestPostgres) {
  const url = await postgres.database("moved");
  const client = new Bun.SQL({ url, max: 1 });
  for (const statement of [
    "CREATE SCHEMA moved",
    "CREATE TABLE moved.ahead (ms bigint)",
    "INSERT INTO moved.ahead VALUES (0)",
    `CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
     $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM moved.ahead) * interval '1 millisecond' $$`,
    "ALTER DATABASE moved SET search_path TO moved, pg_catalog, public",
  ]) {
    await client.unsafe(statement);
  }
  return {
    url,
    move: (ms: number) => client`UPDATE moved.ahead SET ms = ${ms}`,
    [Symbol.asyncDispose]: () => client.close(),
  };
}

test.each(noPostgres || !longForm ? [false] : [false, true])(
  "it waits for its account (PostgreSQL: %p)",
  async (isShared) => {
    using folder = temporaryFolder();
    await using stack = new AsyncDisposableStack();
    const postgres = isShared ? stack.use(await TestPostgres.start()) : null;
    const database = postgres === null ? null : stack.use(await movedDatabase(postgres));
    using node = startCountingNode({ model: "m" });
    const ahead = join(folder.path, "ahead");
    await writeFile(ahead, "0");
    const gateway = stack.use(
      await GatewayProcess.start({
        program: [
          process.execPath,
          "--preload",
          join(root, "test/fixtures/moved-clock-inside.ts"),
          join(root, "src/main.ts"),
        ],
        env: { TOLLGATE_TEST_AHEAD: ahead, ...(database === null ? {} : { TOLLGATE_DATABASE_URL: database.url }) },
        config: `
[[models]]
id = "m"
price = { input = 10, output = 10 }
[[plans]]
id = "free"
tokens_per_day = 1500
[[nodes]]
name = "n"
url = "${node.url}"
slots = 4
[files]
folder = "${join(folder.path, "files")}"
`,
      }),
    );
    const account = await gateway.account(0);
    const ask = async <T>(path: string, body?: object | FormData): Promise<T> => {
      const init =
        body === undefined ? {} : { method: "POST", body: body instanceof FormData ? body : JSON.stringify(body) };
      const reply = await fetch(gateway.url + path, {
        ...init,
        headers: { authorization: `Bearer ${account.api_key}` },
      });
      if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
      return (path.endsWith("/content") ? reply.text() : reply.json()) as Promise<T>;
    };
    const prompts = Array.from({ length: lineCount }, (_, line) => `prompt ${line}`);
    const endpoint = "/v1/chat/completions";
    const lines = prompts.map((content, line) => {
      const body = { model: "m", max_tokens: 20, messages: [{ role: "user", content }] };
      return JSON.stringify({ custom_id: `line-${line}`, method: "POST", url: endpoint, body });
    });
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([lines.join("\n")]), "in.jsonl");
    type Shown = {
      id: string;
      status: string;
      waits: string | null;
      output_file_id: string;
      request_counts: { completed: number };
    };
    const input_file_id = (await ask<Shown>("/v1/files", form)).id;
    const { id } = await ask<Shown>("/v1/batches", { input_file_id, endpoint, completion_window: "7d" });
    let shown: Shown;
    const look = async (): Promise<Shown> => (shown = await ask<Shown>(`/v1/batches/${id}`));
    const done = (): number => shown.request_counts.completed;
    const waits = () =>
      eventually("it waits", async () => {
        const before = (await look()).request_counts.completed;
        await Bun.sleep(300);
        return (await look()).waits !== null && done() === before && done() > 0;
      });
    const goesOn = async (): Promise<void> => {
      const before = done();
      await eventually("it goes on", async () => (await look()).request_counts.completed > before, 30_000);
    };

    await waits();
    expect(shown!).toMatchObject({
      status: "in_progress",
      waits: expect.stringMatching(/^Quota exceeded.*; it goes on by \S+T00:00:00.000Z, or/),
    });
    const asked = (): number => [...node.asked.values()].reduce((sum, times) => sum + times, 0);
    expect(asked()).toBe(done());
    await gateway.kill("SIGKILL");
    await gateway.restart();
    const before = done();
    await waits();
    expect([done(), asked()]).toEqual([before, before]); // a kill brings no tokens
    await gateway.cli("accounts", "credit", account.email, "400", "--reference", "order 1");
    await goesOn();
    await waits();
    expect(done()).toBeLessThan(lineCount);
    const paid = done();
    for (let day = 1; (await look()).status !== "completed"; day += 1) {
      expect(day).toBeLessThan(7);
      await database?.move(day * dayMs);
      await writeFile(ahead, String(day * dayMs));
      await goesOn();
      await eventually("it waits again, or is done", async () => {
        await look();
        return shown.waits !== null || shown.status === "completed";
      });
    }
    expect(done()).toBeGreaterThan(paid);
    type Line = { custom_id: string; response: { request_id: string; body: { usage: Record<string, number> } } };
    const results = (await ask<string>(`/v1/files/${shown!.output_file_id}/content`))
      .trimEnd()
      .split("\n")
      .map((each) => JSON.parse(each) as Line)
      .map(({ custom_id, response }) => {
        const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = response.body.usage;
        const message = {
          id: response.request_id.replace("req_", "msg_"),
          usage: { input_tokens: input_tokens!, output_tokens: output_tokens! },
        };
        return { custom_id, result: { type: "succeeded", message } };
      });
    const rows = await gateway.usage(account.email);
    expect(contradictions(prompts, results, rows)).toEqual([]);
    const byDay = Map.groupBy(rows, ({ time }) => time.slice(0, 10));
    expect(byDay.size).toBeGreaterThan(1);
    const billed = [...byDay.values()].map((day) => day.reduce((sum, row) => sum + row.billed_tokens, 0));
    for (const sum of billed) expect(sum).toBeLessThan(2_100); // the allowance, the purchase, and what the last lines had beyond their holds
    await eventually("nothing is held", async () => (await gateway.show(account.email)).reserved === 0);
    expect(gateway.output).not.toContain("invariant");
  },
);
