// Retrying a batch: for how long, after which errors, and what is reported meanwhile.
import { expect, test } from "bun:test";
import { LedgerMisplaced } from "../../../src/store/ledger/ledger-place.ts";
import {
  journalProbeIntervalMs,
  journalRetryIntervalMs,
  Persistence,
  type CommitReport,
} from "../../../src/store/ledger/persistence.ts";

const batch = { changes: [], rows: [] };
const failure = (code: string) => Object.assign(new Error(code), { code });

/** A writer that fails until `wellAt` on a clock that sleeping moves. */
function setUp(wellAt: number, code = "SQLITE_BUSY") {
  let now = 0;
  const said: [number, CommitReport][] = [];
  const write = () => {
    if (now < wellAt) throw failure(code);
    return [];
  };
  const persistence = new Persistence(
    { commit: write, probe: write, checkPlace: write },
    { wall: () => now, monotonic: () => now },
    async (ms) => void (now += ms),
    (report) => said.push([now, report]),
  );
  return { persistence, said };
}

test("a commit that succeeds at once says so, and nothing else", async () => {
  const { persistence, said } = setUp(0);
  await persistence.commit(batch, 10_000);
  expect(said).toEqual([[0, "committed"]]);
});

test("a commit without the changes that were refused says which", async () => {
  const said: unknown[] = [];
  const refused = [{ index: 3, reason: "no" }];
  const writer = { commit: () => refused, probe: () => {}, checkPlace: () => {} };
  const clock = { wall: () => 0, monotonic: () => 0 };
  await new Persistence(writer, clock, Bun.sleep, (report) => said.push(report)).commit(batch, 0);
  expect(said).toEqual([{ refused }]);
});

test("files that are lost while nothing is written are told of, and so is their return", async () => {
  let now = 0;
  const said: unknown[] = [];
  const write = () => {
    if (now < 1_000) throw new LedgerMisplaced("ledger", false, false);
    return [];
  };
  const back = Promise.withResolvers<void>();
  const persistence = new Persistence(
    { commit: write, probe: write, checkPlace: write },
    { wall: () => now, monotonic: () => now },
    async (ms) => void (now += ms),
    (report) => {
      said.push(report);
      if (report === "writable") back.resolve();
    },
  );
  persistence.look();
  await back.promise;
  expect(said).toEqual([{ misplaced: expect.stringContaining("ledger was removed, moved or replaced") }, "writable"]);
});

test("a batch that went to files which do not come back is neither acknowledged nor given up: that ends the process", async () => {
  let now = 0;
  const said: unknown[] = [];
  const write = () => {
    throw new LedgerMisplaced("ledger", now === 0, false);
  };
  const persistence = new Persistence(
    { commit: write, probe: write, checkPlace: write },
    { wall: () => now, monotonic: () => now },
    async (ms) => void (now += ms),
    (report) => said.push(report),
  );
  expect(persistence.commit(batch, 10_000)).rejects.toThrow("during a commit");
  expect(said).toEqual([{ misplaced: expect.any(String) }]);
});

for (const code of ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED", "SQLITE_FULL"]) {
  test(`${code} for 3 s only delays the commit; meanwhile nothing may be admitted`, async () => {
    const { persistence, said } = setUp(3_000, code);
    await persistence.commit(batch, 10_000);
    expect(said).toEqual([
      [0, "stalled"],
      [3_000, "writable"],
      [3_000, "committed"],
    ]);
  });
}

test("after its time a batch is given up, and the disk is probed until it takes writes", async () => {
  const { persistence, said } = setUp(60_000);
  await persistence.commit(batch, 10_000);
  expect(said.slice(0, 2)).toEqual([
    [0, "stalled"],
    [10_000, "gave_up"],
  ]);
  expect(said.length).toBe(3);
  expect(said[2]?.[1]).toBe("writable");
  expect(said[2]![0] - 60_000).toBeLessThan(journalProbeIntervalMs + journalRetryIntervalMs);
});

test("a batch whose time is over when it comes is tried once", async () => {
  const { persistence, said } = setUp(0);
  await persistence.commit(batch, 0);
  expect(said).toEqual([[0, "committed"]]);
});

for (const code of [
  "SQLITE_IOERR_FSYNC",
  "SQLITE_IOERR_WRITE",
  "SQLITE_CORRUPT",
  "SQLITE_READONLY",
  "SQLITE_CONSTRAINT",
]) {
  test(`${code} is never tried again`, async () => {
    const { persistence, said } = setUp(1, code);
    await expect(persistence.commit(batch, 10_000)).rejects.toThrow(code);
    expect(said).toEqual([]);
  });
}
