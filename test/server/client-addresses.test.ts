// From which address a request came, behind a proxy: over two gateways of two threads each on one PostgreSQL, served or refused,
// the log of either gateway knows the client's and no other.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { nodeTable } from "../fixtures/stack.ts";

type Row = Readonly<{ request_id: string; address: string | null; reason: string | null }>;

describe.skipIf(noPostgres)("clients behind a proxy", () => {
  const folder = temporaryFolder();
  let postgres: TestPostgres;
  let node: ScriptedNode;
  let gateways: readonly GatewayProcess[] = [];
  let account: Account;

  beforeAll(async () => {
    [postgres, node] = await Promise.all([TestPostgres.start(), ScriptedNode.start()]);
    const url = await postgres.database("addresses");
    const start = (index: number) =>
      GatewayProcess.start({
        config: `${nodeTable(node, 8)}\n[ledger]\ngateway = "g${index}"\n[console]\naddress_header = "x-forwarded-for"\n`,
        env: { TOLLGATE_DATABASE_URL: url },
        dataFolder: join(folder.path, `g${index}`),
        threads: 2,
      });
    gateways = [await start(0), await start(1)];
    account = await gateways[0]!.cli<Account>("accounts", "create", "ada@example.com", "--credit", "100000000");
  }, 120_000);
  afterAll(async () => {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
    await postgres?.[Symbol.asyncDispose]();
    await node?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const ask = async (at: number, forwarded: string | null, path: string, body: object): Promise<string> => {
    const reply = await fetch(`${gateways[at]!.url}/v1/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${account.api_key}`,
        "content-type": "application/json",
        ...(forwarded !== null && { "x-forwarded-for": forwarded }),
      },
      body: JSON.stringify(body),
      keepalive: false, // the next connection may be another thread's
    });
    await reply.text();
    return reply.headers.get("x-request-id")!;
  };
  const chat = { model: "core-3", max_tokens: 8, messages: [{ role: "user", content: "Hello" }] };

  test("the log of either gateway knows whence each came", async () => {
    const sent = new Map<string, string | null>();
    for (const at of [0, 1]) {
      for (let round = 0; round < 3; round++) {
        const own = `198.51.100.${10 * at + round}`;
        sent.set(await ask(at, own, "chat/completions", chat), own);
        // What a client wrote itself stands before what the proxy wrote.
        sent.set(await ask(at, `203.0.113.9, ${own}:4711`, "messages", chat), own);
        sent.set(
          await ask(at, `2001:db8::${at}${round}`, "responses", { model: "core-3", input: "Hi" }),
          `2001:db8::${at}${round}`,
        );
        sent.set(await ask(at, own, "chat/completions", { ...chat, model: "none" }), own);
      }
      sent.set(await ask(at, "unknown", "chat/completions", chat), null);
    }
    const rowsOf = (at: number, ...flags: string[]) =>
      gateways[at]!.cli<readonly Row[]>("requests", "--limit", "100", ...flags);
    for (const at of [0, 1]) {
      const found = await eventually("all are in the log", async () => {
        const rows = (await rowsOf(at)).filter(({ request_id }) => sent.has(request_id));
        const known = rows.filter(({ address }) => address !== null).length;
        return rows.length === sent.size && known >= sent.size - 2 && rows;
      });
      expect(new Map(found.map(({ request_id, address }) => [request_id, address]))).toEqual(
        new Map(found.map(({ request_id }) => [request_id, sent.get(request_id)!])),
      );
      const one = await rowsOf(at, "--address", "198.51.100.11");
      expect(one.map(({ reason }) => reason === null).sort()).toEqual([false, true, true]);
    }
  }, 120_000);

  test("a key that is bound to addresses goes by the proxy's word at both", async () => {
    const bound = await gateways[0]!.cli<{ api_key: string }>(
      "keys",
      "create",
      account.email,
      "--name",
      "bound",
      "--addresses",
      "198.51.100.0/24",
    );
    const status = async (at: number, forwarded: string | null): Promise<number> => {
      const headers = {
        authorization: `Bearer ${bound.api_key}`,
        "content-type": "application/json",
        ...(forwarded !== null && { "x-forwarded-for": forwarded }),
      };
      const asked = { method: "POST", headers, body: JSON.stringify(chat), keepalive: false };
      return (await fetch(`${gateways[at]!.url}/v1/chat/completions`, asked)).status;
    };
    for (const at of [0, 1]) {
      expect([
        await status(at, "198.51.100.5"),
        await status(at, "198.51.100.5, 203.0.113.1"),
        await status(at, null),
      ]).toEqual([200, 403, 403]);
    }
  }, 120_000);
});
