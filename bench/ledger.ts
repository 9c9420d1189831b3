// How many reservations and settlements does the accounting do in a second, and how soon are they on disk?
//
//   bun bench/ledger.ts [--pairs 1000000] [--settlements 50000] [--waiting 200] [--quick]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noSpendLimits } from "../src/account/money/spend-limit.ts";
import type { FolderAccounting } from "../src/books/accounting.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { isRefusal } from "../src/core/refusals.ts";
import { type AccountId, defaultKey, type Usage } from "../src/core/types.ts";
import { readFlags } from "./flags.ts";
import { openBenchAccounting } from "./gateway.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { percentile, spread } from "./statistics.ts";

export const ledgerDefaults = {
  accounts: 1_000,
  /** Reserve and settle in memory, one run. */
  pairs: 1_000_000,
  /** Admitted, settled and committed, one run. */
  settlements: 50_000,
  /** Settlements that wait for the disk at once. */
  waiting: 200,
  runs: 3,
};
export type LedgerFlags = typeof ledgerDefaults;

const creditTokens = 1_000_000_000_000;
const usage: Usage = { inputFresh: 900, inputCached: 0, output: 100, reasoning: 0 };
const outputTokensMax = 4_096;
const billedTokens = 670;

/** Runs both measurements `runs` times on one data folder and checks the books at the end. */
export async function measureLedger(flags: LedgerFlags) {
  const folder = mkdtempSync(join(tmpdir(), "bench-ledger-"));
  const accounting = await openBenchAccounting(join(folder, "data"));
  try {
    const ids = await accounting.office.change(async ({ accounts }) => {
      const all: AccountId[] = [];
      for (let index = 0; index < flags.accounts; index += 1) {
        all.push((await accounts.create({ email: `bench-${index}@example.com`, credit: creditTokens })).id);
      }
      return all;
    });
    const durable: DurableRun[] = [];
    for (let run = 0; run < flags.runs; run++) {
      durable.push(await settleDurably(accounting, ids, flags, run));
      console.log(`  run ${run + 1}/${flags.runs} ${durable.at(-1)!.perSecond.toFixed(0)} durable settlements/s`);
    }
    // Before the measurement in memory, which the disk knows nothing of.
    const verification = await accounting.verify();
    const rows = await accounting.office.read(({ accounts }) =>
      accounts.usage(ids[0]!, flags.settlements * flags.runs),
    );
    const pairsPerSecond: number[] = [];
    for (let run = 0; run < flags.runs; run++) {
      pairsPerSecond.push(reserveAndSettle(accounting, ids, flags.pairs));
      console.log(`  run ${run + 1}/${flags.runs} ${pairsPerSecond.at(-1)!.toFixed(0)} pairs/s in memory`);
    }
    const { holds, heldTokens } = accounting.ledger.totals();
    return { durable, pairsPerSecond, verification, rowsOfFirst: rows.length, holds, heldTokens };
  } finally {
    await accounting.close();
    rmSync(folder, { recursive: true });
  }
}

/** Pairs a second on one thread. */
function reserveAndSettle({ ledger }: FolderAccounting, ids: readonly AccountId[], pairs: number): number {
  const now = Date.now();
  const startedMs = performance.now();
  for (let pair = 0; pair < pairs; pair++) {
    const account = ledger.account(ids[pair % ids.length]!);
    if (ledger.reserve(account, noSpendLimits, outputTokensMax, now) !== null)
      throw new Error("the account has run out of balance");
    ledger.settle(account, noSpendLimits, outputTokensMax, billedTokens, now);
  }
  return (pairs * 1_000) / (performance.now() - startedMs);
}

export type DurableRun = Readonly<{ perSecond: number; latencyMs: readonly number[] }>;

/** Closed loop: `waiting` requests are admitted and settled, each again as soon as its charge is on disk. */
async function settleDurably(
  { admission }: FolderAccounting,
  ids: readonly AccountId[],
  flags: LedgerFlags,
  run: number,
): Promise<DurableRun> {
  const model = embeddedCatalog().models.get("core-3")!;
  const ask = { endpoint: "/v1/chat/completions", coderBilling: "calls", model, outputTokensMax } as const;
  const latencyMs: number[] = [];
  // A made-up time of 1 ms for each request keeps every account below the flood limit of 120 a minute.
  const firstMs = Date.now() + run * flags.settlements;
  let next = 0;
  const settleInTurn = async () => {
    while (next < flags.settlements) {
      const index = next++;
      const now = firstMs + index;
      const account = ids[index % ids.length]!;
      const hold = admission.admit(
        { account, key: defaultKey, ask, inputTokens: 0, requestId: `bench-${run}-${index}` },
        {
          wall: now,
          monotonic: now,
        },
      );
      if (isRefusal(hold)) throw new Error(`refused: ${hold.refusal}`);
      const settledMs = performance.now();
      await hold.settle(usage, false, now);
      latencyMs.push(performance.now() - settledMs);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: flags.waiting }, settleInTurn));
  return { perSecond: (flags.settlements * 1_000) / (performance.now() - startedMs), latencyMs };
}

function resultOf(flags: LedgerFlags, measured: Awaited<ReturnType<typeof measureLedger>>): Result {
  const latencyMs = measured.durable.flatMap((run) => run.latencyMs);
  return {
    bench: "ledger",
    variant: "",
    question: "Reservations and settlements",
    columns: ["what", "a second, min / median / max", "p50 ms", "p99 ms"],
    rows: [
      ["reserve + settle in memory, one thread", spread(measured.pairsPerSecond, 0), "-", "-"],
      [
        "admitted, settled and on disk",
        spread(
          measured.durable.map((run) => run.perSecond),
          0,
        ),
        percentile(latencyMs, 0.5).toFixed(2),
        percentile(latencyMs, 0.99).toFixed(2),
      ],
    ],
    chart: null,
    failures: measured.verification.violations.length + measured.holds,
    notes: [
      `${flags.accounts} accounts. In memory: ${flags.pairs} pairs a run. On disk: ${flags.settlements} settlements ` +
        `a run with ${flags.waiting} waiting at once, each counted by flood protection, reserved, charged and committed ` +
        `with synchronous=FULL; latency from settling to the acknowledged commit. ${flags.runs} runs; processes not pinned. ` +
        `Afterwards every balance was recomputed from the journal: ${measured.verification.violations.length} differences.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(ledgerDefaults, { accounts: 100, pairs: 10_000, settlements: 1_000, waiting: 20, runs: 1 });
  await keepResult(resultOf(flags, await measureLedger(flags)));
}
