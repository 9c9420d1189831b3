// A server whose configuration keeps replies for a day: old lines become sums while it serves, even if it is killed in
// the middle, and its own check of the ledger finds nothing wrong.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Entry } from "../../src/account/money/entry.ts";
import { systemClock } from "../../src/core/clock.ts";
import { foldSliceLines } from "../../src/store/limits.ts";
import { dayMs } from "../../src/core/units.ts";
import { rowOf } from "../../src/store/ledger/batch.ts";
import { migrate } from "../../src/store/ledger/migrate.ts";
import { openForWriting } from "../../src/store/open.ts";
import { Writer } from "../../src/store/ledger/writer.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { nodeTable } from "../fixtures/stack.ts";

/** Enough for some slices, so that a kill comes between them. */
const oldLines = 20 * foldSliceLines;
const operator = 1;

/** A reply of one token for one balance token, paid from the credit. */
function oldReply(number: number, at: number): Entry {
  return {
    billingKey: `req_old${String(number).padStart(21, "0")}`,
    kind: "charge",
    account: operator,
    key: 1,
    at,
    period: Math.floor(at / dayMs),
    used: 0,
    creditDelta: -1,
    reply: {
      endpoint: "/v1/messages",
      model: "core-3",
      inputFresh: 1,
      inputCached: 0,
      output: 0,
      reasoning: 0,
      inputCents: 500,
      cachedInputCents: 500,
      outputCents: 500,
      billedTokens: 1,
      estimated: false,
    },
  };
}

function writeOldLines(dataFolder: string): void {
  const file = join(dataFolder, "tollgate.db");
  const epoch = migrate(file);
  const writer = new Writer(openForWriting(file), epoch);
  const from = systemClock.wall() - 40 * dayMs;
  writer.commit({
    changes: [],
    rows: Array.from({ length: oldLines }, (_, index) => rowOf(oldReply(index, from + index))),
  });
  writer.close();
}

test("old lines become sums beside requests and through a kill, to the token", async () => {
  await using node = await ScriptedNode.start();
  await using gateway = await GatewayProcess.start({ config: `${nodeTable(node, 8)}\n[retention]\nusage_days = 1\n` });
  await gateway.kill("SIGTERM");
  writeOldLines(gateway.dataFolder);
  const counted = () => {
    using database = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
    const sum = (table: string, of: string) =>
      (
        database.query(`SELECT coalesce(sum(${of}), 0) AS sum FROM ${table} WHERE account_id = ${operator}`).get() as {
          sum: number;
        }
      ).sum;
    return {
      lines: sum("journal", "1"),
      folded: sum("journal_folds", "lines"),
      delta: sum("journal", "credit_delta") + sum("journal_folds", "credit_delta"),
    };
  };
  await gateway.restart();
  await eventually("some lines are folded", async () => counted().folded > 0, 30_000);
  await gateway.kill("SIGKILL");
  const between = counted();
  expect(between.lines + between.folded).toBe(oldLines);
  await gateway.restart();
  const ask = () =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.operatorKey}` },
      body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "x" }] }),
    });
  let requests = 0;
  await eventually(
    "all but the newest old line are folded",
    async () => {
      if (requests < 50) {
        expect((await ask()).status).toBe(200);
        requests += 1;
      }
      return counted().folded >= oldLines - 1;
    },
    60_000,
  );
  const after = counted();
  expect(after.lines + after.folded).toBe(oldLines + requests);
  expect(after.delta).toBe(-oldLines); // the requests were paid from the allowance
  expect((await gateway.show("operator@localhost")).credit).toBe(-oldLines);
  await eventually(
    "the ledger was checked whole",
    async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return (
        /^tollgate_ledger_whole_pass_timestamp_seconds/m.test(metrics) &&
        /^tollgate_ledger_violations 0$/m.test(metrics)
      );
    },
    60_000,
  );
}, 180_000);
