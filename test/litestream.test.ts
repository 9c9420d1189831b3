// The real Litestream beside a server under load, with the settings of data/ops/litestream.yml: both are killed, and
// the ledger restored from the replica is complete, is a beginning of the lost one, and can be served from.
import { Database } from "bun:sqlite";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chat } from "./commands/program.ts";
import { eventually } from "./fixtures/eventually.ts";
import { type Account, GatewayProcess } from "./fixtures/gateway-process.ts";
import { ScriptedNode } from "./fixtures/node-process.ts";
import { missing } from "./fixtures/optional.ts";
import { nodeTable } from "./fixtures/stack.ts";

setDefaultTimeout(180_000);

const program = process.env["LITESTREAM"] ?? Bun.which("litestream");
const remedy =
  "go install github.com/benbjohnson/litestream/cmd/litestream@v0.5.18 takes two minutes; or LITESTREAM=FILE";
const cannot = missing("litestream", program !== null && existsSync(program), remedy, false);

const accountsUnderLoad = 60;
const requestsOfEach = 100; // less than the flood protection takes in a minute
const pauseMs = 50; // so that the load lasts for some checkpoints
const firstReplies = 4_000;

let replicating: Bun.Subprocess | null = null;
afterEach(() => replicating?.kill("SIGKILL"));

/** The sample with a folder as the replica, and checkpoints as often as a busy day would have them. */
function settings(databaseFile: string, replica: string): string {
  const sample = readFileSync(join(import.meta.dir, "../data/ops/litestream.yml"), "utf8");
  const eager = "checkpoint-interval: 1s\n    min-checkpoint-page-count: 10\n    replica:";
  return sample
    .replace("path: /var/lib/tollgate/tollgate.db", `path: ${databaseFile}`)
    .replace(/url: s3:.*/, `path: ${replica}`)
    .replace("replica:", eager);
}

type Line = Readonly<{ sequence: number; billing_key: string; at: number }>;

function linesOf(file: string): Line[] {
  using database = new Database(file);
  return database.query("SELECT sequence, billing_key, at FROM journal ORDER BY sequence").all() as Line[];
}

test.skipIf(cannot)("a ledger lives on from its replica after both were killed under load", async () => {
  await using node = await ScriptedNode.start();
  await using gateway = await GatewayProcess.start({ config: nodeTable(node, 64) });
  const accounts = await Promise.all(Array.from({ length: accountsUnderLoad }, () => gateway.account()));
  const live = join(gateway.dataFolder, "tollgate.db");
  const config = join(gateway.folder, "litestream.yml");
  writeFileSync(config, settings(live, join(gateway.folder, "replica")));
  const output = Bun.file(join(gateway.folder, "litestream.log"));
  replicating = Bun.spawn([program!, "replicate", "-config", config], { stdout: output, stderr: output });

  /** Puts the ledger together from the replica as it is now; false while there is none. */
  const restored = async (file: string): Promise<boolean> => {
    rmSync(file, { force: true });
    const words = ["restore", "-config", config, "-o", file, live];
    return (await Bun.spawn([program!, ...words], { stdout: output, stderr: output }).exited) === 0;
  };

  const acknowledged: string[] = [];
  const refused: number[] = [];
  let killed = false;
  const load = accounts.map(async ({ api_key }: Account) => {
    for (let sent = 0; sent < requestsOfEach && !killed; sent += 1) {
      try {
        const reply = await chat(gateway.url, api_key, { max_tokens: 20 });
        await reply.text();
        if (reply.ok) acknowledged.push(reply.headers.get("x-request-id")!);
        else refused.push(reply.status);
        await Bun.sleep(pauseMs);
      } catch (error) {
        if (!killed) throw error;
      }
    }
  });
  await eventually("there is some load", async () => acknowledged.length >= firstReplies, 60_000);
  const first = acknowledged.slice(0, firstReplies);
  const probe = join(gateway.folder, "probe.db");
  const holdsFirst = (): boolean => {
    const keys = new Set(linesOf(probe).map(({ billing_key }) => billing_key));
    return first.every((id) => keys.has(id));
  };
  await eventually("the replica has what came first", async () => (await restored(probe)) && holdsFirst(), 60_000);
  killed = true;
  replicating.kill("SIGKILL");
  await gateway.kill("SIGKILL");
  await Promise.all([...load, replicating.exited]);
  expect(refused).toEqual([]); // Litestream's locks make nobody wait long enough to be refused

  const file = join(gateway.folder, "ledger.db");
  expect(await restored(file)).toBe(true);
  const kept = linesOf(file);
  const lost = linesOf(live).slice(kept.length);
  expect(linesOf(live).slice(0, kept.length)).toEqual(kept);
  const lostMs = lost.length === 0 ? 0 : lost.at(-1)!.at - lost[0]!.at;
  console.log(`litestream: of ${kept.length + lost.length} lines the last ${lost.length} were lost, of ${lostMs} ms`);

  const dataFolder = join(gateway.folder, "other-machine");
  await using other = await GatewayProcess.start({ config: nodeTable(node, 64), dataFolder });
  await other.kill("SIGTERM");
  expect(await other.cli("restore", file)).toMatchObject({ accounts: accountsUnderLoad + 1, violations: 0 });
  await other.restart();
  const { email, api_key } = accounts[0]!;
  expect((await other.show(email)).reserved).toBe(0);
  expect((await other.usage(email)).length).toBeGreaterThan(0);
  expect((await chat(other.url, api_key, { max_tokens: 20 })).status).toBe(200);

  // A log that Litestream reads must not be taken away below it.
  writeFileSync(config, settings(join(dataFolder, "tollgate.db"), join(gateway.folder, "other-replica")));
  replicating = Bun.spawn([program!, "replicate", "-config", config], { stdout: output, stderr: output });
  await eventually("it replicates", async () => existsSync(join(gateway.folder, "other-replica")), 60_000);
  await other.kill("SIGTERM");
  await expect(other.cli("restore", file)).rejects.toThrow(/another program has .* open; stop it first/);
});
