// Old lines of the journal become sums; balances, checks and the usage page stay the same.
import type { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import type { Entry, EntryKind } from "../../../src/account/money/entry.ts";
import { billedTokens } from "../billing.ts";
import type { UsageFilter } from "../../../src/account/usage-queries.ts";
import { dayMs } from "../../../src/core/units.ts";
import { rowOf } from "../../../src/store/ledger/batch.ts";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { openForWriting } from "../../../src/store/open.ts";
import { foldedBefore, Retention } from "../../../src/store/ledger/retention.ts";
import { UsageIndex } from "../../../src/store/usage/usage-index.ts";
import { DiskVerifier } from "../../../src/store/verify/verify-disk.ts";
import { Writer } from "../../../src/store/ledger/writer.ts";
import { eventually } from "../../fixtures/eventually.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0).toReversed()) close();
});

const bounds = { allowance: 1e12, coder_calls: 1e12, searches: 1e12 };
const everything: UsageFilter = { model: null, endpoint: null, key: null, from: null, to: null, text: "" };
const models = ["core-3", "core-coder-1"];
let nextKey = 0;

class World {
  readonly folder = mkdtempSync(join(tmpdir(), "tollgate-retention-"));
  readonly file = join(this.folder, "tollgate.db");
  readonly epoch = migrate(this.file);
  readonly database: Database = openForWriting(this.file);
  readonly writer = new Writer(this.database, this.epoch);

  constructor(accounts = 3) {
    this.database.run("PRAGMA synchronous = OFF"); // no power cut is played here
    closing.push(() => {
      this.database.close();
      rmSync(this.folder, { recursive: true });
    });
    const created = Array.from({ length: accounts }, (_, index) => ({
      change: "create" as const,
      account: index + 1,
      email: `${index}@x`,
      plan: "free" as const,
      keyHash: Buffer.alloc(32, index).toString("base64"),
      keyEnding: "abcd",
      passwordHash: null,
      operator: false,
      at: 0,
    }));
    this.writer.commit({ changes: [created], rows: [] });
  }

  write(...entries: readonly Entry[]): this {
    this.writer.commit({ changes: [], rows: entries.map(rowOf) });
    return this;
  }

  foldAll(before: number, linesMax = 250): void {
    while (this.writer.fold(before, linesMax));
  }

  get violations() {
    return new DiskVerifier(this.database, bounds).violationsOf(0, Number.MAX_SAFE_INTEGER);
  }

  rows<Row = Record<string, unknown>>(sql: string): Row[] {
    return this.database.query(sql).all() as Row[];
  }

  index(name = "usage.db"): UsageIndex {
    const index = UsageIndex.open(join(this.folder, name), this.file);
    closing.push(() => index.close());
    while (index.catchUp());
    return index;
  }
}

function entry(kind: EntryKind, at: number, tokens = 100, account = 1, model = models[0]!): Entry {
  const key = `${kind === "credit" ? "credit:" : "req_"}${String(nextKey++).padStart(9, "0")}`;
  const isReply = kind === "charge" || kind === "coder_usage";
  const cents = kind === "charge" ? 50 : 0;
  const billed = isReply ? billedTokens(tokens, cents) : 0;
  const fromAllowance = kind === "charge" ? Math.min(billed, 3) : 0;
  return {
    billingKey: key,
    kind,
    account,
    key: 1,
    at,
    period:
      kind === "charge" || kind === "search"
        ? Math.floor(at / dayMs)
        : kind === "coder_call"
          ? Math.floor(at / 14_400_000)
          : 0,
    used: kind === "charge" ? fromAllowance : kind === "coder_call" || kind === "search" ? 1 : 0,
    creditDelta: kind === "credit" ? tokens : kind === "charge" ? fromAllowance - billed : 0,
    reply: isReply
      ? {
          endpoint: "/v1/messages",
          model,
          inputFresh: tokens,
          inputCached: 0,
          output: 0,
          reasoning: 0,
          inputCents: cents,
          cachedInputCents: cents,
          outputCents: cents,
          billedTokens: billed,
          estimated: false,
        }
      : null,
  };
}

/** In an order of its own: that of the models within a day is the index's business. */
function summaryOf(index: UsageIndex, account: number) {
  const { days, ...rest } = index.summary(account, 0);
  return { ...rest, days: days.toSorted((one, other) => one.day - other.day || one.model.localeCompare(other.model)) };
}

describe("folding", () => {
  test("keeps every sum, whatever lines there are and however they are sliced", () => {
    const kinds: EntryKind[] = ["charge", "coder_call", "coder_usage", "search", "credit"];
    const line = fc.record({
      kind: fc.constantFrom(...kinds),
      at: fc.integer({ min: 0, max: 5 * dayMs }),
      tokens: fc.integer({ min: 1, max: 100_000 }),
      account: fc.integer({ min: 1, max: 3 }),
      model: fc.constantFrom(...models),
    });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 60 }), fc.integer({ min: 1, max: 20 }), (lines, linesMax) => {
        const world = new World();
        const sorted = lines.toSorted((one, other) => one.at - other.at);
        world.write(...sorted.map(({ kind, at, tokens, account, model }) => entry(kind, at, tokens, account, model)));
        const before = world.index("before.db");
        const summaries = [1, 2, 3].map((account) => summaryOf(before, account));
        const credits = world.rows("SELECT id, credit FROM accounts");
        world.foldAll(3 * dayMs, linesMax);
        expect(world.violations).toEqual([]);
        expect(world.rows("SELECT id, credit FROM accounts")).toEqual(credits);
        const kept = sorted.filter(
          ({ kind, at }, index) => kind === "credit" || at >= 3 * dayMs || index === sorted.length - 1,
        );
        expect(world.rows("SELECT kind, at FROM journal ORDER BY sequence")).toEqual(
          kept.map(({ kind, at }) => ({ kind, at })),
        );
        while (before.catchUp() || before.prune());
        const after = world.index("after.db"); // made from sums and lines
        for (const index of [before, after]) {
          expect([1, 2, 3].map((account) => summaryOf(index, account))).toEqual(summaries);
          const replies = kept.filter(
            ({ kind, account }) => account === 1 && (kind === "charge" || kind === "coder_usage"),
          );
          expect(index.page(1, everything, null, 100).rows).toHaveLength(replies.length);
        }
        for (const close of closing.splice(0).toReversed()) close();
      }),
      { numRuns: 40 },
    );
  }, 120_000);

  test("leaves the newest line, so that no number comes twice", () => {
    const world = new World().write(entry("charge", 1), entry("charge", 2));
    world.foldAll(dayMs);
    world.write(entry("charge", 3));
    expect(world.rows("SELECT sequence FROM journal ORDER BY sequence")).toEqual([{ sequence: 2 }, { sequence: 3 }]);
    world.foldAll(dayMs);
    expect(world.rows("SELECT lines FROM journal_folds")).toEqual([{ lines: 2 }]);
  });

  test("stops at the first line that is young, even where older ones follow: the clock stepped back", () => {
    const world = new World().write(
      entry("charge", 1),
      entry("charge", 9 * dayMs),
      entry("charge", 2),
      entry("charge", 3),
    );
    world.foldAll(dayMs);
    expect(world.rows("SELECT at FROM journal ORDER BY sequence")).toEqual([{ at: 9 * dayMs }, { at: 2 }, { at: 3 }]);
  });

  test("keeps purchases, so that a reference that comes again is known", () => {
    const bought = entry("credit", 1);
    const world = new World().write(bought, entry("charge", 2), entry("charge", 3));
    world.foldAll(dayMs);
    world.write(bought);
    expect(world.rows("SELECT credit FROM accounts WHERE id = 1")).toEqual([
      { credit: 100 - 2 * (billedTokens(100, 50) - 3) },
    ]);
    expect(world.violations).toEqual([]);
  });

  test.each([
    ["a sum that was changed", "UPDATE journal_folds SET used = used - 1, billed_tokens = billed_tokens - 1"],
    ["a sum that was lost", "DELETE FROM journal_folds"],
    [
      "credit that was changed in a sum",
      "UPDATE journal_folds SET credit_delta = credit_delta - 1, billed_tokens = billed_tokens + 1",
    ],
  ])("%s is found by the ledger's check", (_, sql) => {
    const world = new World().write(entry("charge", 1), entry("charge", 2), entry("charge", 3));
    world.foldAll(dayMs);
    expect(world.violations).toEqual([]);
    world.database.run(sql);
    expect(world.violations.map(({ invariant }) => invariant)).toContain("I1");
  });
});

describe("the usage index", () => {
  test("that missed lines before they were folded begins again with the sums", () => {
    const world = new World().write(entry("charge", 1), entry("charge", dayMs));
    const index = world.index();
    world.write(entry("charge", dayMs + 1), entry("charge", dayMs + 2), entry("charge", 9 * dayMs));
    world.foldAll(5 * dayMs);
    while (index.catchUp());
    expect(index.summary(1, 0).total.requests).toBe(5);
    expect(index.page(1, everything, null, 10).rows).toHaveLength(1);
  });

  test("whose last line was folded is opened again as it was", () => {
    const world = new World().write(entry("charge", 1), entry("charge", 2));
    const index = UsageIndex.open(join(world.folder, "usage.db"), world.file);
    while (index.catchUp());
    index.close();
    world.write(entry("charge", 3));
    world.foldAll(dayMs);
    expect(world.index().summary(1, 0).total.requests).toBe(3);
  });

  test("shows no reply that was folded after it took it in, also before it is pruned", () => {
    const world = new World().write(entry("charge", 1), entry("charge", 2), entry("charge", 9 * dayMs));
    const index = world.index();
    world.foldAll(5 * dayMs);
    expect(index.page(1, everything, null, 10)).toMatchObject({
      rows: [{ time: new Date(9 * dayMs).toISOString() }],
      next: null,
    });
    while (index.prune());
    expect(world.rows("SELECT 1")).toHaveLength(1);
    expect(index.page(1, everything, null, 10).rows).toHaveLength(1);
  });
});

test("only whole days that are old enough are folded", () => {
  expect(foldedBefore(10 * dayMs + 5, 1)).toBe(9 * dayMs);
  expect(foldedBefore(10 * dayMs, 3)).toBe(7 * dayMs);
});

test("nothing is folded while a commit is under way, and the rest follows", async () => {
  const folds: number[] = [];
  let busy = true;
  const retention = new Retention({
    writer: { fold: (_before, lines) => folds.push(lines) < 3, checkpoint() {} },
    clock: { wall: () => 0, monotonic: () => 0 },
    keepDays: 1,
    busy: () => busy,
    onFatal: (thrown) => expect(thrown).toBeNull(),
    firstMs: 0,
  });
  closing.push(() => retention.close());
  await Bun.sleep(60);
  expect(folds).toEqual([]);
  busy = false;
  await eventually("three slices were folded", async () => folds.length === 3);
  await Bun.sleep(60);
  expect(folds).toHaveLength(3);
});
