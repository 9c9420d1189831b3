// What the running process tells of itself and how it stops: its look at its own ledger in /readyz and /metrics, a stop
// whose time is over.
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { bodyOf, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 90_000;
const disposing: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of disposing.splice(0).toReversed()) await each[Symbol.asyncDispose]();
}, timeLimit);

async function start(config = ""): Promise<{ node: ScriptedNode; gateway: GatewayProcess }> {
  const node = await ScriptedNode.start();
  disposing.push(node);
  const gateway = await GatewayProcess.start({ config: `${config}\n${nodeTable(node, 8)}` });
  disposing.push(gateway);
  return { node, gateway };
}

const text = async (url: string) => {
  const reply = await fetch(url);
  return { status: reply.status, text: await reply.text() };
};
const gauge = async ({ url }: GatewayProcess, name: string): Promise<number | null> => {
  const found = new RegExp(`^${name} (\\S+)$`, "m").exec((await text(`${url}/metrics`)).text);
  return found === null ? null : Number(found[1]);
};

test(
  "a sound ledger is checked soon after the start and said to be well",
  async () => {
    const { gateway } = await start();
    await gateway.account();
    await eventually("a check", async () => (await gauge(gateway, "tollgate_ledger_check_timestamp_seconds")) !== null);
    expect(await gauge(gateway, "tollgate_ledger_violations")).toBe(0);
    expect(await gauge(gateway, "tollgate_ledger_check_duration_seconds")).toBeGreaterThan(0);
    expect(await gauge(gateway, "tollgate_ledger_whole_pass_timestamp_seconds")).not.toBeNull();
    expect(await text(`${gateway.url}/readyz`)).toEqual({ status: 200, text: '{"ready":true}' });
  },
  timeLimit,
);

test(
  "a balance that the journal does not explain is logged, counted and makes /readyz 503; requests are served",
  async () => {
    const { gateway } = await start();
    const { id, api_key } = await gateway.account();
    await gateway.kill("SIGTERM");
    const database = new Database(join(gateway.dataFolder, "tollgate.db"));
    database.run("UPDATE accounts SET credit = credit + 1 WHERE id = ?", [id]);
    database.close();
    await gateway.restart();
    await eventually("it is found", async () => (await gauge(gateway, "tollgate_ledger_violations")) === 1, 30_000);
    const { status, text: reason } = await text(`${gateway.url}/readyz`);
    const ledgerIsWrong = { ready: false, reason: "the ledger breaks its invariants in 1 places, see the log" };
    expect([status, JSON.parse(reason)]).toEqual([503, ledgerIsWrong]);
    expect(gateway.output).toContain(`"event":"the ledger breaks an invariant","invariant":"I1","account":${id}`);
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": api_key },
      body: JSON.stringify(bodyOf("/v1/chat/completions", "core-3", "[[text]]")),
    });
    expect([reply.status, (await reply.text()) === ""]).toEqual([200, false]);
  },
  timeLimit,
);

test(
  "what is open when the time of a stop is over is cut with an error, without a terminator, and costs nothing",
  async () => {
    const { node, gateway } = await start("[server]\nstop_grace_seconds = 0.5");
    const { email, api_key } = await gateway.account();
    let begun = 0;
    const replies = endpoints.flatMap((endpoint) =>
      [true, false].map(async (stream) => {
        const reply = await fetch(gateway.url + endpoint, {
          method: "POST",
          headers: { "x-api-key": api_key },
          body: JSON.stringify(bodyOf(endpoint, "core-1.6-pro", "[[endless]]", { stream, max_tokens: 60_000 })),
        });
        begun += 1;
        return { endpoint, stream, status: reply.status, body: await reply.text() };
      }),
    );
    await eventually("all run", async () => (await node.open()) === replies.length);
    await eventually("words have been sent", async () => begun === endpoints.length); // on the streams
    expect(await gateway.kill("SIGTERM")).toBe(0);
    for (const { endpoint, stream, status, body } of await Promise.all(replies)) {
      const view = viewOf(endpoint, stream, body);
      expect({ endpoint, stream, complete: view.complete, faults: view.faults }).toEqual({
        endpoint,
        stream,
        complete: false,
        faults: [],
      });
      expect(view.error?.message).toBe("The server is stopping. Please retry.");
      expect(status).toBe(stream ? 200 : 503);
    }
    await gateway.restart();
    expect(await gateway.usage(email)).toEqual([]);
    expect((await gateway.show(email)).reserved).toBe(0);
  },
  timeLimit,
);
