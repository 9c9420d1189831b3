// The files of data/ops/cluster: a primary and a standby made by their scripts, HAProxy with its configuration.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOML, YAML } from "bun";
import { eventually } from "../fixtures/eventually.ts";
import { longForm, missing } from "../fixtures/optional.ts";
import { noPostgres, somePort, TestPostgres } from "../fixtures/postgres.ts";

const folder = join(import.meta.dir, "../../data/ops/cluster");
const read = (name: string) => readFileSync(join(folder, name), "utf8");

test("the compose file and the manifest say the same of a gateway", () => {
  const { services } = YAML.parse(read("compose.yaml")) as { services: Record<string, Record<string, unknown>> };
  expect(Object.keys(services)).toEqual(["gateway-1", "gateway-2", "postgres", "standby", "balancer"]);
  const grace = services["gateway-1"]!["stop_grace_period"] as string;
  const pod = (YAML.parse(read("kubernetes.yaml")) as { spec: { template: { spec: Record<string, unknown> } } }).spec
    .template.spec;
  expect(`${pod["terminationGracePeriodSeconds"]}s`).toBe(grace);
  expect(Object.keys(TOML.parse(read("tollgate.toml")))).toEqual(["server", "console", "nodes"]);
});

const haproxy = Bun.which("haproxy", { PATH: `${process.env["PATH"]}:/usr/sbin` });
const noHaproxy = missing("HAProxy", haproxy !== null, "apt-get install haproxy");

test.skipIf(noHaproxy)(
  "HAProxy asks gateways that are ready alone, and where none is, each says itself why",
  async () => {
    const ready = [true, true];
    const gateways = ready.map((_, index) =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: ({ url }) => {
          const isReady = ready[index]!;
          const path = new URL(url).pathname;
          if (path === "/readyz") return Response.json({ ready: isReady }, { status: isReady ? 200 : 503 });
          return Response.json({ gateway: index, path }, { status: isReady ? 200 : 503 });
        },
      }),
    );
    const place = mkdtempSync(join(tmpdir(), "tollgate-haproxy-"));
    const file = join(place, "haproxy.cfg");
    const port = somePort();
    const text = read("haproxy.cfg")
      .replaceAll(/gateway-(\d):8400/g, (_, number: string) => `127.0.0.1:${gateways[Number(number) - 1]!.port}`)
      .replace("bind :8400", `bind 127.0.0.1:${port}`);
    writeFileSync(file, text);
    await using balancer = Bun.spawn([haproxy!, "-db", "-f", file], { stdout: "ignore", stderr: "pipe" });
    const asked = async (path = "/v1/models") => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { keepalive: false });
      return { status: reply.status, gateway: /"gateway":(\d)/.exec(await reply.text())?.[1] ?? null };
    };
    const answering = async (): Promise<string> => {
      const seen = new Set<string>();
      for (let turn = 0; turn < 20; turn += 1) {
        const { status, gateway } = await asked();
        seen.add(`${gateway} ${status}`);
      }
      return [...seen].sort().join(", ");
    };
    await eventually("it listens", () =>
      asked().then(
        () => true,
        () => false,
      ),
    );
    await eventually("both are asked", async () => (await answering()) === "0 200, 1 200");
    expect((await asked("/metrics")).status).toBe(404);
    ready[0] = false;
    await eventually("the other is asked alone", async () => (await answering()) === "1 200");
    ready[1] = false;
    await eventually("both say why", async () => (await answering()) === "0 503, 1 503");
    ready.fill(true);
    await eventually("both are asked again", async () => (await answering()) === "0 200, 1 200");
    balancer.kill();
    for (const gateway of gateways) await gateway.stop(true);
    rmSync(place, { recursive: true });
  },
  60_000,
);

test.skipIf(noPostgres || !longForm)(
  "what was committed on the primary is on the standby, which takes over",
  async () => {
    await using postgres = await TestPostgres.start();
    const environment = { PGHOST: "127.0.0.1", PGPORT: String(postgres.port), PGDATA: join(postgres.folder, "data") };
    const made = postgres.run("primary.sh", { ...environment, POSTGRES_USER: "tollgate", POSTGRES_DB: "postgres" });
    expect([await made.exited, await new Response(made.stderr).text()]).toEqual([0, ""]);
    await postgres.kill();
    await postgres.goOn(); // from here on a commit waits for the standby

    const port = somePort();
    const copy = join(postgres.folder, "copy");
    const standby = postgres.run("standby.sh", {
      PRIMARY: postgres.url("").slice(0, -1),
      PGDATA: copy,
      PGPORT: String(port),
    });
    const client = new Bun.SQL({ url: postgres.url(), max: 1 });
    await client.unsafe("CREATE TABLE kept (id int)"); // returns when the standby has it
    const [row] = await client.unsafe("SELECT application_name, sync_state FROM pg_stat_replication");
    expect(row).toEqual({ application_name: "standby", sync_state: "sync" });
    await client.unsafe("INSERT INTO kept VALUES (7)");
    await client.close();
    await postgres.kill();

    const other = new Bun.SQL({ url: postgres.url("postgres", port), max: 1 });
    expect((await other.unsafe("SELECT pg_is_in_recovery() AS waits"))[0]).toEqual({ waits: true });
    await other.unsafe("SELECT pg_promote()");
    await other.unsafe("INSERT INTO kept VALUES (8)"); // waits for nobody
    expect((await other.unsafe("SELECT array_agg(id ORDER BY id)::text AS ids FROM kept"))[0]).toEqual({
      ids: "{7,8}",
    });
    await other.close({ timeout: 0 });
    standby.kill("SIGQUIT");
    await standby.exited;
  },
  60_000,
);
