// Tollgate under a benchmark's load does all of its work: one usage row for each request, with the node's token counts.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { tokenBytesMin } from "../../bench/answer.ts";
import { clientDialects } from "../../bench/dialect.ts";
import { startGateway } from "../../bench/gateway.ts";
import { startPacedNode } from "../../bench/paced-node.ts";
import { runClosedLoop } from "../../bench/request-client.ts";
import { runStreams } from "../../bench/stream-client.ts";
import { runToEnd } from "../fixtures/children.ts";

const main = join(import.meta.dir, "../../src/main.ts");

test("every request of a benchmark is in the usage of its account", async () => {
  const answer = { tokens: 6, tokenBytes: tokenBytesMin };
  const node = await startPacedNode({ ...answer, intervalMs: 3 });
  // 180 requests are more than one account may send in a minute: they come from two.
  const gateway = await startGateway({ nodePort: node.port, dialect: clientDialects.chat, requests: 180 });
  try {
    expect(gateway.keys).toHaveLength(2);
    const streams = await runStreams(gateway, { streams: 20, repeats: 3, spreadMs: 6, answer });
    expect(streams).toMatchObject({ complete: 60, tokens: 360, failures: [] });
    const replies = await runClosedLoop(gateway, { requests: 120, answer, promptBytes: 10 }, 10);
    expect(replies).toMatchObject({ complete: 120, failures: [] });

    const rows = [...(await usageRows("bench-0@example.com")), ...(await usageRows("bench-1@example.com"))];
    expect(rows).toHaveLength(180);
    for (const row of rows) expect(row).toMatchObject({ input: 16, output: 6, estimated: false });
    expect(new Set(rows.map((row) => row.request_id)).size).toBe(180);
  } finally {
    await gateway.stop();
    await node.stop();
  }

  async function usageRows(email: string): Promise<{ request_id: string }[]> {
    const command = [process.execPath, main, "usage", email, "--limit", "1000", "--data", gateway.dataFolder, "--json"];
    const { code, stdout, stderr } = await runToEnd(command);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  }
});
