// Gateways and a PostgreSQL as processes: gateways and the server are killed with -9, answers to COMMIT are lost on their way.
// Who heard of a charge has one, who heard of a failure has none, who was cut off has one at most, and nothing stays held.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { hashApiKey, mintApiKey } from "../../../src/account/people/keys.ts";
import type { LaneCounts } from "../../../src/store/postgres/lane.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { PostgresProxy } from "../../fixtures/postgres-proxy.ts";
import { noPostgres, TestPostgres } from "../../fixtures/postgres.ts";
import { randomOf, seedOfRun } from "../../fixtures/random.ts";

const seconds = Number(process.env["TOLLGATE_POSTGRES_SECONDS"] ?? 20);
const seed = seedOfRun();

test.skipIf(noPostgres)(
  `kills and lost answers for ${seconds} s (TOLLGATE_SEED=${seed})`,
  async () => {
    await using postgres = await TestPostgres.start();
    const random = randomOf(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const url = await postgres.database("books");
    const connection = await new PostgresServer(url).connect();
    await migrate(connection);
    connection.close();
    const keys = Array.from({ length: 4 }, () => mintApiKey());
    let client = new Bun.SQL({ url, max: 1 });
    for (const [index, key] of keys.entries()) {
      await client.unsafe(
        `INSERT INTO accounts (id, email, plan, credit, key_hash, operator, created_at, key_created_at)
         VALUES ($1::text::bigint, $2, 'pro', 0, decode($3::text, 'base64'), false, 0, 0)`,
        [String(index + 1), `a${index}@x`, hashApiKey(key)],
      );
    }
    await client.close();
    const proxy = new PostgresProxy(postgres.port);
    const ports = [0, 1].map(() => {
      const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
      const { port } = probe;
      probe.stop(true);
      return port;
    });
    const running: (Bun.Subprocess<"ignore", "pipe", "pipe"> | null)[] = [null, null];
    const start = async (index: number): Promise<void> => {
      const through = index === 0 ? postgres.url("books", proxy.port) : url;
      const program = [
        process.execPath,
        join(import.meta.dir, "gateway.ts"),
        through,
        `g${index}`,
        String(ports[index]),
      ];
      const child = Bun.spawn(program, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      running[index] = child;
      const { value } = await child.stdout.getReader().read();
      if (value === undefined) throw new Error(`gateway ${index} ended: ${await new Response(child.stderr).text()}`);
    };
    await Promise.all([start(0), start(1)]);

    const told = new Map<string, "settled" | "refused" | "cut">();
    const why = new Map<string, number>();
    let isOver = false;
    let number = 0;
    /** How often a gateway had found batches committed of which it had not heard. */
    let readBack = 0;
    const clientOf = async (): Promise<void> => {
      while (!isOver) {
        const requestId = `r${(number += 1)}`;
        const body = JSON.stringify({ key: keys[below(4)]!, requestId, tokens: 1 + below(20), runsMs: below(300) });
        try {
          const reply = await fetch(`http://127.0.0.1:${ports[below(2)]}/request`, { method: "POST", body });
          const text = await reply.text();
          told.set(requestId, reply.status === 200 ? "settled" : "refused");
          why.set(`${reply.status} ${text}`, (why.get(`${reply.status} ${text}`) ?? 0) + 1);
          if (reply.status !== 200) await Bun.sleep(50);
        } catch {
          told.set(requestId, "cut");
          await Bun.sleep(50);
        }
      }
    };
    const clients = Array.from({ length: 12 }, clientOf);

    const until = performance.now() + seconds * 1_000;
    const faults = ["lose answers", "kill a gateway", "kill the server", "lose answers"] as const;
    for (let turn = 0; performance.now() < until; turn += 1) {
      await Bun.sleep(1_000 + below(1_500));
      const fault = faults[turn % faults.length]!;
      if (fault === "lose answers") {
        await proxy.loseAnswers(50 + below(200));
        await Bun.sleep(1_000);
        readBack +=
          ((await (await fetch(`http://127.0.0.1:${ports[0]}/counts`)).json()) as LaneCounts).readBack > 0 ? 1 : 0;
      } else if (fault === "kill the server") {
        await postgres.kill();
        await postgres.goOn();
      } else {
        const index = below(2);
        running[index]!.kill("SIGKILL");
        await running[index]!.exited;
        await start(index);
      }
    }
    await Bun.sleep(1_000);
    isOver = true;
    await Promise.all(clients);
    // Other gateways find out that those that were killed are gone.
    client = new Bun.SQL({ url, max: 1 });
    for (let waited = 0; waited < 60_000; waited += 250) {
      const [{ holds }] = await client.unsafe("SELECT count(*)::int AS holds FROM holds");
      if (holds === 0) break;
      await Bun.sleep(250);
    }
    const counts = await Promise.all(
      ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/counts`)).json()),
    );
    for (const child of running) {
      child!.kill("SIGTERM");
      await child!.exited;
    }
    const lines = (await client.unsafe("SELECT billing_key FROM journal")) as readonly { billing_key: string }[];
    const paid = new Set(lines.map(({ billing_key }) => billing_key));
    const of = (outcome: string) => [...told].filter(([, is]) => is === outcome).map(([id]) => id);
    console.log(
      JSON.stringify({ settled: of("settled").length, refused: of("refused").length, cut: of("cut").length }),
    );
    console.log(JSON.stringify({ why: Object.fromEntries(why), counts }));
    expect(of("settled").length).toBeGreaterThan(20);
    expect(readBack).toBeGreaterThan(0);
    expect(of("settled").filter((id) => !paid.has(id))).toEqual([]);
    expect(of("refused").filter((id) => paid.has(id))).toEqual([]);
    expect(paid.size).toBe(lines.length);
    const sums = await client.unsafe(
      `SELECT sum(held)::int AS held, sum(holds)::int AS holds, sum(begun)::int AS begun, sum(expected)::int AS expected,
         (SELECT count(*)::int FROM holds) AS rows FROM accounts`,
    );
    expect(sums).toEqual([{ held: 0, holds: 0, begun: 0, expected: 0, rows: 0 }] as never);
    const wrong = await client.unsafe(
      `SELECT id FROM accounts WHERE allowance_used + coalesce(
           (SELECT sum(used) FROM quota_use WHERE account_id = id AND quota = 'allowance' AND period <> allowance_day), 0)
         <> coalesce((SELECT sum(used) FROM journal WHERE account_id = id), 0)
         OR credit <> coalesce((SELECT sum(credit_delta) FROM journal WHERE account_id = id), 0)`,
    );
    expect(wrong).toHaveLength(0);
    await client.close();
    proxy.close();
  },
  (seconds + 120) * 1_000,
);
