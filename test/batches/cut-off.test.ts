// What a kill leaves of a batch while it is made.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { startCountingNode } from "./counting-node.ts";

test("a batch whose mark a kill kept from disk runs after the next start, and a folder without a batch is removed", async () => {
  using node = startCountingNode({ model: "m", delayMs: 20, statusOf: () => 200 });
  await using gateway = await GatewayProcess.start({
    config: `
[[models]]
id = "m"
price = { input = 1, output = 2 }
[[nodes]]
name = "n"
url = "${node.url}"
slots = 1
`,
  });
  const { id: account, api_key } = await gateway.account();
  const ask = async (path: string, init: RequestInit = {}): Promise<{ id: string; processing_status: string }> =>
    (await fetch(gateway.url + path, { ...init, headers: { "x-api-key": api_key } })).json() as never;
  const requests = Array.from({ length: 100 }, (_, line) => ({
    custom_id: `line-${line}`,
    params: { model: "m", max_tokens: 20, messages: [{ role: "user", content: `prompt ${line}` }] },
  }));
  const { id } = await ask("/v1/messages/batches", { method: "POST", body: JSON.stringify({ requests }) });
  await gateway.kill("SIGKILL");
  const batches = join(gateway.dataFolder, "files/batches");
  await rm(join(batches, "open", id));
  const empty = join(batches, String(account), `${id.slice(0, -1)}_`);
  await mkdir(empty);
  await writeFile(join(empty, "input.jsonl"), "{}");
  const longAgo = Date.now() / 1_000 - 7_200;
  await utimes(empty, longAgo, longAgo);
  await gateway.restart();
  await eventually(
    "it ends",
    async () => (await ask(`/v1/messages/batches/${id}`)).processing_status === "ended",
    30_000,
  );
  expect(existsSync(empty)).toBeFalse();
}, 60_000);
