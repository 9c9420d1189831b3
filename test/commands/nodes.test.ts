// Nodes are drained and resumed by commands, on a real server with one thread and with two.
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { askRunningServer } from "../../src/server/control-socket.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { CountingNode } from "../threads/counting-node.ts";
import { run } from "./program.ts";

setDefaultTimeout(120_000);

type Listed = Readonly<{ name: string; busy: number; waiting: number; drained_since: string | null }>;

test.each([[1], [2]])("a drained node gets nothing new until it is resumed, with %i threads", async (threads) => {
  const node = new CountingNode();
  using _node = { [Symbol.dispose]: () => node.stop() };
  const config = `[[nodes]]\nname = "gpu"\nurl = "${node.url}"\nslots = 4\n`;
  const waitAtMost = async (seconds: number): Promise<void> => {
    await writeFile(join(gateway.folder, "tollgate.toml"), `${config}[queue]\nmax_wait_seconds = ${seconds}\n`);
    await told("reload");
  };
  await using gateway = await GatewayProcess.start({ config, threads });
  const ask = (more: object = {}): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.operatorKey}`, connection: "close" },
      body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "x" }], ...more }),
    });
  const told = async (operation: string): Promise<unknown> =>
    (await askRunningServer(gateway.dataFolder, operation, {}, () => {}))!.result;
  const tell = async <Answer>(...words: string[]): Promise<Answer> => {
    const { code, stdout, stderr } = await run([...words, "--data", gateway.dataFolder, "--json"]);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as Answer;
  };
  const listed = async (): Promise<Listed> => ((await told("nodes")) as Listed[])[0]!;
  const expectPaused = async (): Promise<void> => {
    // As many as there are threads, and more: which one answers is chance.
    const replies = await Promise.all([1, 2, 3, 4].map(() => ask()));
    expect(replies.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
    const { error } = (await replies[0]!.json()) as { error: { message: string } };
    expect(error.message).toBe("The model `core-3` is paused for maintenance. Please retry later.");
    expect(replies[0]!.headers.get("retry-after")).toBe("30");
  };

  node.answer = "when told";
  const running = [ask(), ask({ stream: true })];
  await eventually("both run", async () => node.running === 2);
  expect(await tell<object>("nodes", "drain", "gpu")).toEqual({ name: "gpu", drained: true, busy: 2 });
  const draining = tell<object>("nodes", "drain", "gpu", "--wait"); // a second time changes nothing
  const waiting = ask();
  await eventually("it waits", async () => (await listed()).waiting === 1);
  expect(await listed()).toMatchObject({ busy: 2, drained_since: expect.stringContaining("T") });
  await waitAtMost(1);
  expect((await waiting).status).toBe(503);
  node.finish();
  for (const reply of await Promise.all(running))
    expect([reply.status, (await reply.text()).length > 0]).toEqual([200, true]);
  expect(await draining).toEqual({ name: "gpu", drained: true, busy: 0 });
  expect(node.served).toBe(2);

  await expectPaused();
  await gateway.kill("SIGKILL");
  await gateway.restart();
  await expectPaused();
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
  expect(node.served).toBe(2);

  await waitAtMost(60);
  node.answer = "at once";
  const patient = ask();
  await eventually("it waits", async () => (await listed()).waiting === 1);
  expect(await tell<object>("nodes", "resume", "gpu")).toEqual({
    name: "gpu",
    drained: false,
    busy: expect.any(Number),
  });
  expect((await patient).status).toBe(200);
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  await expect(tell("nodes", "drain", "other")).rejects.toThrow(
    'there is no node "other"; those that are configured: gpu',
  );
  using ledger = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
  const noted = ledger.query("SELECT action, detail FROM audit_log WHERE action LIKE 'node.%'").values();
  expect(noted).toEqual([
    ["node.drain", "gpu"],
    ["node.drain", "gpu"],
    ["node.resume", "gpu"],
  ]);
});
