// The files of data/ops/cluster: a primary and a standby made by their scripts, nginx with its configuration.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOML, YAML } from "bun";
import { longForm } from "../fixtures/optional.ts";
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

test.skipIf(Bun.which("nginx") === null)("nginx takes its configuration", async () => {
  const place = mkdtempSync(join(tmpdir(), "tollgate-nginx-"));
  const file = join(place, "nginx.conf");
  const text = read("nginx.conf")
    .replaceAll(/gateway-\d:8400/g, "127.0.0.1:8400")
    .replace("listen 80;", `listen ${somePort()};`);
  writeFileSync(file, `pid ${place}/pid;\n${text}`);
  const nginx = Bun.spawn(["nginx", "-t", "-c", file, "-e", "stderr", "-p", place], { stderr: "pipe" });
  const told = await new Response(nginx.stderr).text();
  expect([await nginx.exited, told]).toEqual([0, expect.stringContaining("test is successful")]);
  rmSync(place, { recursive: true });
});

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
