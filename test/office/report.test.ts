// What a report asks the store for: each period of a time zone once, without a gap, and names in the order asked for.
import { expect, test } from "bun:test";
import type { ReportAsked, ReportRow } from "../../src/core/report.ts";
import { problemWith } from "../../src/office/verb.ts";
import { report } from "../../src/office/verbs/report.ts";
import { ConsoleSite } from "../console/console-site.ts";

const row: ReportRow = {
  account: 1,
  team: null,
  member: null,
  key: "default",
  model: "core-3",
  endpoint: "/v1/messages",
  end_user: null,
  cost_center: null,
  tag: null,
  requests: 2,
  input: 10,
  cached: 4,
  output: 5,
  billed: 1_000,
};
const sums = { requests: 2, input: 10, cached: 4, output: 5, billed: 1_000, cost_usd: 0.005 };

async function asked(input: object, cutsFoldedDay = false) {
  const site = new ConsoleSite();
  await site.office.accounts.create({ email: "ada@x" });
  const asks: ReportAsked[] = [];
  const usage = {
    report: async (ask: ReportAsked) => (asks.push(ask), { rows: [row], cutsFoldedDay }),
  };
  const work = { ...site.parts.work, usage };
  expect(problemWith(report, input)).toBeNull();
  const rows = await report.run(work, { actor: { kind: "shell", user: "ada" }, input, progress: () => {} });
  return {
    rows,
    times: asks.map(({ from, until }) => [from, until].map((at) => new Date(at).toISOString().slice(0, 16))),
    asks,
  };
}

test("a month in a time zone is its days, over a change of the clock", async () => {
  const { rows, times } = await asked({ month: "2026-10", time_zone: "Europe/Berlin", by: ["day", "model"] });
  expect(times).toHaveLength(31);
  expect(times[0]).toEqual(["2026-09-30T22:00", "2026-10-01T22:00"]);
  expect(times[24]).toEqual(["2026-10-24T22:00", "2026-10-25T23:00"]);
  for (const [at, [from]] of times.entries()) if (at > 0) expect(from).toBe(times[at - 1]![1]!);
  expect(rows[30]).toEqual({ day: "2026-10-31", model: "core-3", ...sums });
});

test("months begin and end with the days asked for, and a key comes with its account", async () => {
  const { rows, times, asks } = await asked({
    from: "2026-01-15",
    to: "2026-03-02",
    by: ["month", "key"],
    account: "ADA@x",
  });
  expect(times.map(([from]) => from)).toEqual(["2026-01-15T00:00", "2026-02-01T00:00", "2026-03-01T00:00"]);
  expect(times.at(-1)![1]).toBe("2026-03-03T00:00");
  expect(asks[0]).toMatchObject({ account: 1, by: ["account", "key"] });
  expect(Object.entries(rows[1]!).slice(0, 3)).toEqual([
    ["month", "2026-02"],
    ["account", "ada@x"],
    ["key", "default"],
  ]);
});

test("a table has a total, and CSV has only lines", async () => {
  const { rows } = await asked({ from: "2026-01-01", to: "2026-02-01", by: ["month", "account"] });
  expect(
    report
      .print(rows, { by: ["month", "account"] })
      .split("\n")
      .at(-1),
  ).toMatch(/^total +4 +20 +8 +10 +2,000 +0\.01$/);
  expect(report.print(rows, { by: ["month", "account"], csv: true }).split("\n")).toEqual([
    "month,account,requests,input,cached,output,billed,cost_usd",
    "2026-01,ada@x,2,10,4,5,1000,0.005",
    "2026-02,ada@x,2,10,4,5,1000,0.005",
  ]);
});

test("a time that cuts a folded day is refused", async () => {
  const cut = asked({ month: "2026-01", time_zone: "Asia/Kolkata" }, true);
  await expect(cut).rejects.toThrow("of the days around 2026-01-01 only sums by UTC day are left");
});

test.each([
  [{ by: ["account", "salary"] }, "by", "must name month, day, account"],
  [{ month: "2026-13" }, "month", "must be a month"],
  [{ month: "2026-01", from: "2026-01-01" }, "month", "does not go with"],
  [{ from: "2026-02-30" }, "from", "must be a day"],
  [{ from: "2026-02-03", to: "2026-02-02" }, "from", "must not be after"],
  [{ to: "2026-02-02" }, "to", "needs from"],
  [{ from: "2020-01-01", to: "2026-01-01", by: ["day"] }, "from", "at most 1000 days before"],
  [{ from: "1900-01-01", to: "2026-01-01", by: ["month"] }, "from", "at most 1000 months"],
  [{ time_zone: "Mars/Olympus" }, "time_zone", "must be a time zone"],
  [{ time_zone: "2026-01-01T00:00[Europe/Berlin]" }, "time_zone", "must be a time zone"],
])("%j is refused at %s", (input, field, words) => {
  expect(problemWith(report, input)).toMatchObject({ path: [field], problem: expect.stringContaining(words) });
});
