// A batch that one of two gateways on PostgreSQL runs goes on at the other when the first is killed, or stops for longer than its lease.
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { startCountingNode } from "./counting-node.ts";
import { contradictions } from "./killed.ts";

setDefaultTimeout(300_000);

const taken = test.skipIf(noPostgres || !longForm).each(["SIGKILL", "SIGSTOP"] as const);
taken("another gateway takes a batch over after %s, and each line is charged once", async (signal) => {
  using folder = temporaryFolder();
  await using postgres = await TestPostgres.start();
  using node = startCountingNode({ model: "m", delayMs: 50 });
  const url = await postgres.database("batches");
  const start = (name: string): Promise<GatewayProcess> =>
    GatewayProcess.start({
      dataFolder: join(folder.path, name),
      env: { TOLLGATE_DATABASE_URL: url },
      config: `
[[models]]
id = "m"
price = { input = 1, output = 2 }
[[nodes]]
name = "n"
url = "${node.url}"
slots = 16
[ledger]
gateway = "${name}"
[files]
folder = "${join(folder.path, "shared")}"
`,
    });
  await using first = await start("first");
  await using second = await start("second");
  const account = await first.account();
  const prompts = Array.from({ length: 1_500 }, (_, at) => `prompt ${at}`);
  const requests = prompts.map((content, line) => ({
    custom_id: `line-${line}`,
    params: { model: "m", max_tokens: 20, messages: [{ role: "user", content }] },
  }));
  const ask = (gateway: GatewayProcess, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, { ...init, headers: { "x-api-key": account.api_key } });
  const made = await ask(first, "/v1/messages/batches", { method: "POST", body: JSON.stringify({ requests }) });
  const { id } = (await made.json()) as { id: string };
  /** A busy database may answer 503, without counts. */
  type Shown = { processing_status?: string; request_counts?: { succeeded: number } };
  const shown = async (): Promise<Shown> => (await ask(second, `/v1/messages/batches/${id}`)).json() as Promise<Shown>;
  const succeeded = async (): Promise<number> => (await shown()).request_counts?.succeeded ?? 0;
  await eventually("some lines are done", async () => (await succeeded()) > 20, 30_000);
  const { pid } = first;
  process.kill(pid, signal);
  await eventually("it is in progress", async () => (await shown()).processing_status === "in_progress");
  if (signal === "SIGSTOP") {
    const before = await succeeded();
    await eventually("the other goes on", async () => (await succeeded()) > before + 20, 60_000);
    process.kill(pid, "SIGCONT");
  }
  await eventually("the other ends it", async () => (await shown()).processing_status === "ended", 120_000);
  const results = (await (await ask(second, `/v1/messages/batches/${id}/results`)).text()).trimEnd().split("\n");
  const rows = await second.usage(account.email);
  expect(
    contradictions(
      prompts,
      results.map((line) => JSON.parse(line)),
      rows,
    ),
  ).toEqual([]);
  await eventually("nothing is held", async () => (await second.show(account.email)).reserved === 0);
});
