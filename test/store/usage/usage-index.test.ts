// The usage index compared with a plain scan of the journal, and what happens when the index does not fit the journal.
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import type { UsageFilter, UsagePlace } from "../../../src/account/usage-queries.ts";
import { dayMs } from "../../../src/core/units.ts";
import { mintRequestId } from "../../../src/core/request-id.ts";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { usageInFile } from "../../../src/store/usage/usage-file.ts";
import { UsageIndex, usageIndexSliceLines } from "../../../src/store/usage/usage-index.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-usage-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = Date.UTC(2026, 2, 1);
const models = ["core-3", "Core-3-pro", "100%_sure", "open-01"];
const endpoints = ["/v1/chat/completions", "/v1/messages", "/v1/responses"] as const;
const everything: UsageFilter = { model: null, endpoint: null, key: null, from: null, to: null, text: "" };

type Line = {
  sequence: number;
  id: string;
  kind: string;
  account: number;
  at: number;
  endpoint: string;
  model: string;
  billed: number;
  key: number;
};

let journals = 0;

class Journal {
  readonly file = join(folder, `journal-${journals++}.db`);
  readonly lines: Line[] = [];
  readonly #database: Database;

  constructor() {
    migrate(this.file);
    this.#database = new Database(this.file);
  }

  add(count: number, of: (index: number) => Partial<Line> = () => ({})): this {
    this.#database.transaction(() => {
      for (let index = 0; index < count; index++) this.#add(of(index));
    })();
    return this;
  }

  #add(given: Partial<Line>): void {
    const sequence = this.lines.length + 1;
    const at = given.at ?? start + sequence * 1_000;
    const line: Line = {
      sequence,
      id: mintRequestId(at),
      kind: sequence % 7 === 0 ? "coder_usage" : "charge",
      account: 1 + (sequence % 2),
      at,
      endpoint: endpoints[sequence % 3]!,
      model: models[(sequence * 5) % 4]!,
      billed: sequence,
      key: 1 + ((sequence * 3) % 5),
      ...given,
    };
    const reply = line.kind === "credit" ? null : line;
    this.#database.run(
      `INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh,
        input_cached, output, reasoning, billed_tokens, estimated, key_id)
       VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?, 10, 5, 3, 2, ?, 0, ?)`,
      [line.id, line.kind, line.account, line.at, reply?.endpoint ?? null, reply?.model ?? null, line.billed, line.key],
    );
    this.lines.push(line);
  }

  /** Every line looked at. */
  plain(account: number, { model, endpoint, key, from, to, text }: UsageFilter): string[] {
    return this.lines
      .filter((line) => line.account === account && line.kind !== "credit")
      .filter((line) => model === null || line.model === model)
      .filter((line) => endpoint === null || line.endpoint === endpoint)
      .filter((line) => key === null || line.key === key)
      .filter((line) => from === null || line.at >= from)
      .filter((line) => to === null || line.at < to)
      .filter((line) => line.model.toLowerCase().includes(text.toLowerCase()) || isNamed(line.id, text))
      .sort((one, other) => other.at - one.at || other.sequence - one.sequence)
      .map(({ id }) => id);
  }
}

const isNamed = (id: string, text: string): boolean =>
  text.length >= 10 && id.startsWith(text.replace(/^(?:chatcmpl-|msg_|resp_)/, "req_"));

function opened(journal: Journal): UsageIndex {
  const index = UsageIndex.open(`${journal.file}.usage`, journal.file);
  while (index.catchUp());
  return index;
}

/** All pages, put together. */
function idsOf(index: UsageIndex, account: number, filter: UsageFilter, limit: number): string[] {
  const ids: string[] = [];
  let place: UsagePlace | null = null;
  do {
    const page = index.page(account, filter, place, limit);
    ids.push(...page.rows.map(({ request_id }) => request_id));
    place = page.next;
  } while (place !== null);
  return ids;
}

test("random journals and filters give what a plain look gives, in pages of any size", () => {
  const mostlyNull = { freq: 1 };
  const filters = fc.record({
    model: fc.option(fc.constantFrom(...models, "unknown"), mostlyNull),
    endpoint: fc.option(fc.constantFrom(...endpoints), mostlyNull),
    key: fc.option(fc.constantFrom(1, 2, 3, 9), mostlyNull),
    from: fc.option(
      fc.integer({ min: -1_000, max: 8_000 }).map((ms) => start + ms),
      mostlyNull,
    ),
    to: fc.option(
      fc.integer({ min: -1_000, max: 8_000 }).map((ms) => start + ms),
      mostlyNull,
    ),
    text: fc.constantFrom("", "", "", "", "core", "CORE-3", "%", "_", "0%_S", "nothing", "\\", "'"),
  });
  // times that repeat and step back, as a clock that is set does
  const times = fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(times, filters, fc.integer({ min: 1, max: 7 }), (ats, filter, limit) => {
      const journal = new Journal().add(ats.length, (index) => ({
        at: start + ats[index]! * 1_000,
        kind: index % 5 === 0 ? "credit" : "charge",
      }));
      const index = opened(journal);
      for (const account of [1, 2, 3]) {
        expect(idsOf(index, account, filter, limit)).toEqual(journal.plain(account, filter));
      }
      index.close();
    }),
    { numRuns: 60 },
  );
}, 120_000);

describe("a text", () => {
  const journal = new Journal().add(500);
  const index = opened(journal);
  afterAll(() => index.close());
  const found = (text: string, account = 1) => idsOf(index, account, { ...everything, text }, 50);
  const own = journal.lines.filter(({ account }) => account === 1).at(-3)!;

  test.each(["%", "_", "100%", "0%_s", "core-3"])("%p stands for itself", (text) => {
    expect(found(text)).toEqual(journal.plain(1, { ...everything, text }));
  });

  test("finds a request by its id, by its beginning, and by the id of its reply", () => {
    expect(found(own.id)).toEqual([own.id]);
    for (const prefix of ["chatcmpl-", "msg_", "resp_", ""]) {
      expect(found(own.id.replace("req_", prefix))).toEqual([own.id]);
    }
    expect(found(own.id.slice(0, 14))).toEqual([own.id]);
  });

  test("finds no request of another account, and none by a letter or two", () => {
    expect(found(own.id, 2)).toEqual([]);
    expect(found("req_0")).toEqual([]);
    expect(found("%".repeat(20))).toEqual([]);
  });

  test("that names a request respects the other filters", () => {
    const { endpoint, at, id } = own;
    const other = endpoints.find((each) => each !== endpoint)!;
    expect(idsOf(index, 1, { ...everything, text: id, endpoint: other }, 5)).toEqual([]);
    expect(idsOf(index, 1, { ...everything, text: id, from: at + 1 }, 5)).toEqual([]);
    expect(idsOf(index, 1, { ...everything, text: id, from: at, to: at + 1 }, 5)).toEqual([id]);
  });
});

test("sums by day, model and account are those of the lines", () => {
  const journal = new Journal().add(3_000, (index) => ({ at: start + index * 200_000 }));
  const index = opened(journal);
  const from = Math.floor(start / dayMs) + 2;
  for (const account of [0, 1, 2]) {
    const own = journal.lines.filter((line) => account === 0 || line.account === account);
    const { days, total, models: named, endpoints: used } = index.summary(account, from);
    expect(total.requests).toBe(own.length);
    expect(total.billedTokens).toBe(own.reduce((sum, { billed }) => sum + billed, 0));
    expect(total).toMatchObject({ input: 15 * own.length, cachedInput: 5 * own.length, output: 3 * own.length });
    const expected = new Map<string, number>();
    for (const { at, model, billed } of own) {
      const day = Math.floor(at / dayMs);
      if (day >= from) expected.set(`${day} ${model}`, (expected.get(`${day} ${model}`) ?? 0) + billed);
    }
    expect(new Map(days.map(({ day, model, billedTokens }) => [`${day} ${model}`, billedTokens]))).toEqual(expected);
    expect(named).toEqual([...new Set(own.map(({ model }) => model))].sort());
    expect(used).toEqual([...new Set(own.map(({ endpoint }) => endpoint))].sort());
  }
  index.close();
});

test("lines of later commits are found, over more than a slice, and none is counted twice", () => {
  const journal = new Journal().add(usageIndexSliceLines + 10);
  const index = opened(journal);
  journal.add(5);
  while (index.catchUp());
  while (index.catchUp());
  expect(index.summary(1, 0).total.requests + index.summary(2, 0).total.requests).toBe(journal.lines.length);
  expect(index.page(1, everything, null, 1).rows[0]!.request_id).toBe(
    journal.lines.findLast(({ account }) => account === 1)!.id,
  );
  index.close();
}, 120_000);

describe("an index is made again", () => {
  const remade = (spoil: (file: string, journal: Journal) => void) => {
    const journal = new Journal().add(100);
    opened(journal).close();
    spoil(`${journal.file}.usage`, journal);
    const index = opened(journal);
    expect(idsOf(index, 1, everything, 50)).toEqual(journal.plain(1, everything));
    expect(index.summary(1, 0).total.requests).toBe(journal.plain(1, everything).length);
    index.close();
  };

  test("when its file is damaged", () => remade((file) => writeFileSync(file, "not a database at all")));

  test("when it is of another version", () =>
    remade((file) => {
      const database = new Database(file);
      database.run("PRAGMA user_version = 99");
      database.close();
    }));

  test("when the journal is another: a backup was put back", () =>
    remade((_, journal) => {
      const database = new Database(journal.file);
      database.run("UPDATE journal SET billing_key = 'other' WHERE sequence = 100");
      database.close();
      journal.lines[99]!.id = "other";
    }));

  test("when the journal is shorter than it knows", () =>
    remade((_, journal) => {
      const database = new Database(journal.file);
      database.run("DELETE FROM journal WHERE sequence > 50");
      database.close();
      journal.lines.length = 50;
    }));
});

test("the Worker answers with what was on disk when it was asked, and its file is its owner's alone", async () => {
  const data = mkdtempSync(join(folder, "data-"));
  const journal = new Journal().add(50);
  const log = () => {};
  const usage = usageInFile(data, journal.file, log);
  const first = await usage.page(1, everything, null, 1);
  journal.add(2);
  const second = await usage.page(1, everything, null, 1);
  expect(second.rows[0]!.request_id).not.toBe(first.rows[0]!.request_id);
  expect((await usage.summary(0, 0)).total.requests).toBe(52);
  expect(statSync(join(data, "usage.db")).mode & 0o777).toBe(0o600);
  await usage.close();
  const again = usageInFile(data, journal.file, log);
  expect((await again.page(1, everything, null, 1)).rows).toEqual(second.rows);
  await again.close();
});
