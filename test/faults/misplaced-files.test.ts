// The files of a data folder are removed, moved or replaced while the server runs, or are not there when it starts.
import { afterEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../commands/program.ts";
import { bodyOf, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 120_000;
const disposing: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of disposing.splice(0).toReversed()) await each[Symbol.asyncDispose]();
}, timeLimit);

async function start() {
  const node = await ScriptedNode.start();
  disposing.push(node);
  await node.define("held", once(text("word"), { waitMs: 4_000 }, finish("stop")));
  const gateway = await GatewayProcess.start({ config: nodeTable(node, 8) });
  disposing.push(gateway);
  const account = await gateway.account();
  const ledger = join(gateway.dataFolder, "tollgate.db");
  const ask = (endpoint: (typeof endpoints)[number], prompt: string, stream: boolean) =>
    fetch(gateway.url + endpoint, {
      method: "POST",
      headers: { "x-api-key": account.api_key },
      body: JSON.stringify(bodyOf(endpoint, "open-05-3BIT-REAP", prompt, { stream })),
    });
  const answers = async () => {
    const reply = await ask("/v1/chat/completions", "[[text]]", false);
    await reply.text();
    return reply.status;
  };
  const ready = async () => {
    const reply = await fetch(`${gateway.url}/readyz`);
    return { status: reply.status, ...((await reply.json()) as { ready: boolean; reason?: string }) };
  };
  const isRefused = async () => {
    await eventually("it is seen", async () => !(await ready()).ready);
    expect(await ready()).toEqual({ status: 503, ready: false, reason: "the ledger cannot be written, see the log" });
    expect(await answers()).toBe(503);
  };
  const here = ["--data", gateway.dataFolder];
  return { gateway, account, ledger, ask, answers, ready, isRefused, here };
}

test(
  "a ledger that is moved away: nobody is admitted, what is open fails and is free; back in its place it goes on",
  async () => {
    const { gateway, account, ledger, ask, answers, ready, isRefused, here } = await start();
    const open = await Promise.all(
      endpoints.map(async (endpoint) => ({ endpoint, reply: await ask(endpoint, "[[held]]", true) })),
    );
    renameSync(ledger, `${ledger}.away`);
    await isRefused();
    const { code, stderr } = await run(["health", ...here]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${ledger} was removed, moved or replaced`)]);
    const doctor = await run(["doctor", ...here]);
    expect([doctor.code, doctor.stdout]).toEqual([
      1,
      expect.stringContaining(`${ledger} was removed, moved or replaced`),
    ]);
    expect(gateway.output).toContain("the ledger cannot be written: requests are refused");
    for (const { endpoint, reply } of open) {
      const { complete, error } = viewOf(endpoint, true, await reply.text());
      expect([endpoint, complete, error?.message]).toEqual([
        endpoint,
        false,
        expect.stringContaining("Could not verify"),
      ]);
    }
    renameSync(`${ledger}.away`, ledger);
    await eventually("it goes on", async () => (await ready()).ready);
    expect(await gateway.usage(account.email)).toEqual([]);
    expect(await answers()).toBe(200);
    expect(await gateway.kill("SIGTERM")).toBe(0);
    await gateway.restart();
    expect(await gateway.usage(account.email)).toHaveLength(1);
    await gateway.expectNothingReserved();
  },
  timeLimit,
);

test(
  "a ledger that is replaced by another: what the server still has is saved by a backup and can be restored",
  async () => {
    const { gateway, account, ledger, answers, isRefused, here } = await start();
    expect(await answers()).toBe(200);
    copyFileSync(ledger, `${ledger}.other`);
    renameSync(`${ledger}.other`, ledger);
    await isRefused();
    const saved = join(gateway.dataFolder, "saved.db");
    expect(await run(["backup", saved, ...here])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("not in the audit log"),
    });
    await gateway.kill("SIGTERM");
    expect((await run(["restore", saved, ...here])).code).toBe(0);
    await gateway.restart();
    expect(await gateway.usage(account.email)).toHaveLength(1);
    expect(await answers()).toBe(200);
  },
  timeLimit,
);

test(
  "a log that is removed: a stop saves what is in it",
  async () => {
    const { gateway, account, ledger, answers, isRefused } = await start();
    expect(await answers()).toBe(200);
    rmSync(`${ledger}-wal`);
    await isRefused();
    await gateway.kill("SIGTERM");
    await gateway.restart();
    expect(await gateway.usage(account.email)).toHaveLength(1);
    expect(await answers()).toBe(200);
  },
  timeLimit,
);

test(
  "a start without the ledger, where other files of it are, makes no new one and says what to do",
  async () => {
    const { gateway, ledger, here } = await start();
    await gateway.kill("SIGKILL");
    rmSync(ledger);
    for (const words of [
      ["serve", "--port", "0"],
      ["accounts", "create", "a@b.example"],
    ]) {
      const { code, stdout, stderr } = await run([...words, ...here]);
      expect([code, stdout, existsSync(ledger)]).toEqual([1, "", false]);
      expect(stderr).toContain(
        `the ledger ${ledger} is gone, but responses.db, sealing.key, tollgate.db-wal of it are there`,
      );
    }
    const { code, stdout } = await run(["doctor", ...here]);
    expect([code, stdout]).toEqual([1, expect.stringContaining(`the ledger ${ledger} is gone`)]);
    const { stderr } = await run(["serve", ...here]);
    const [, remedy] = /`(cd .*)`/.exec(stderr)!;
    expect(Bun.spawnSync(["sh", "-c", remedy!]).exitCode).toBe(0);
    expect(readdirSync(join(gateway.dataFolder, "before")).toSorted()).toEqual([
      "responses.db",
      "sealing.key",
      "tollgate.db-wal",
    ]);
    await gateway.restart();
    expect(existsSync(ledger)).toBe(true);
  },
  timeLimit,
);

test(
  "a control socket that is removed is made again",
  async () => {
    const { gateway, here } = await start();
    const socket = join(gateway.dataFolder, "tollgate.sock");
    rmSync(socket);
    await eventually("it is there", async () => existsSync(socket));
    expect(await run(["health", ...here])).toMatchObject({ code: 0, stdout: "ready" });
  },
  timeLimit,
);
