// Are the tests awake? Plants bugs that gateways are known for into copies of this tree, one at a time, expects the named
// test to fail, and prints which command catches what: npm run test:planted, or npm run test:planted -- M4 M6
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLonger } from "./run.ts";

type Edit = readonly [file: string, from: string, to: string];
type Bug = Readonly<{ id: string; what: string; edits: readonly Edit[]; file: string; name?: string }>;

const spine = "test/sim/spine.test.ts";
const lanes = "test/sim/postgres/lane.test.ts";
const ledger = "test/sim/ledger.test.ts";

export const bugs: readonly Bug[] = [
  {
    id: "P1",
    what: "PostgreSQL: answers are told before their COMMIT",
    edits: [
      [
        "src/store/postgres/lane.ts",
        "    const outcomes = await this.#send(calls);\n    const error",
        "    for (const [index, each] of asked.entries()) each.resolve(this.#sent.answers[index] as Answer);\n    const outcomes = await this.#send(calls);\n    const error",
      ],
    ],
    file: lanes,
  },
  {
    id: "P2",
    what: "PostgreSQL: an end that nobody knows of is told as failed",
    edits: [["src/store/postgres/lane.ts", "      asked.reject(isUnknown ? new", "      asked.reject(false ? new"]],
    file: lanes,
    name: "waits too long",
  },
  {
    id: "P3",
    what: "PostgreSQL: an end whose hold was given back is charged, whether it fits or not",
    edits: [
      [
        "src/account/money/admission.ts",
        "      if (!fitsWithout(0, this.#ledger, loaded, spendLimits, now)) return false;\n      if (this.#ledger.reserve(loaded, spendLimits, budget, now) !== null) return false;\n",
        "      loaded.held += budget;\n      loaded.holds += 1;\n      for (const limit of spendLimits) limit.held += budget;\n",
      ],
    ],
    file: "test/account/late-settlement.test.ts",
  },
  {
    id: "P4",
    what: "PostgreSQL: a batch is tried again under another number",
    edits: [
      [
        "src/store/postgres/lane.ts",
        "          this.#fail();\n",
        "          this.#fail();\n          this.#id = null;\n",
      ],
    ],
    file: lanes,
  },
  {
    id: "P5",
    what: "PostgreSQL: lanes are gone after an outage, because looks that came late count",
    edits: [
      ["src/store/postgres/gone-lanes.ts", "if (startedAt - this.#lookedAt > lanesLookLateMs) this.#seen.clear();", ""],
    ],
    file: lanes,
    name: "outage",
  },
  {
    id: "P6",
    what: "PostgreSQL: what was read back is told without a commit of its own",
    edits: [
      [
        "src/store/postgres/lane.ts",
        "[call(sql.touchLane, lane), call(sql.commit)]",
        "[call(sql.readLane, lane), call(sql.commit)]",
      ],
    ],
    file: lanes,
    name: "read back",
  },
  {
    id: "P8",
    what: "PostgreSQL: a hold that its line refused is given back again when its client leaves",
    edits: [["src/store/postgres/lane.ts", "!this.#open.has(operation.hold.requestId)", "false"]],
    file: "test/sim/postgres/leaving.test.ts",
  },
  {
    id: "P7",
    what: "PostgreSQL: what is given up before it is sent is charged",
    edits: [["src/store/postgres/lane.ts", "return givenUp ? givenBack(operation) : operation;", "return operation;"]],
    file: lanes,
  },
  {
    id: "P9",
    what: "PostgreSQL: a program that a newer one shuts out keeps its lane",
    edits: [["src/store/postgres/migrations.ts", "WHERE gone_at IS NULL RETURNING id", "WHERE false RETURNING id"]],
    file: "test/store/postgres/lane.test.ts",
    name: "shuts out",
  },
  {
    id: "P10",
    what: "PostgreSQL: stored responses of all wait for an account that others have locked",
    edits: [["src/store/postgres/response-tables.ts", "call(lockUseAtOnce, ", "call(lockUse, "]],
    file: "test/store/postgres/beside.test.ts",
    name: "keeps locked wait alone",
  },
  {
    id: "P11",
    what: "PostgreSQL: of several hosts one that lets clients in and answers nothing is waited for",
    edits: [
      ["src/store/postgres/connection.ts", "() => connection.close(), connectTimeoutMs", "() => {}, connectTimeoutMs"],
    ],
    file: "test/store/postgres/addresses.test.ts",
    name: "lets clients in",
  },
  {
    id: "M1",
    what: "a charge is acknowledged before its commit",
    edits: [["src/store/ledger/journal.ts", "return this.#gathering.wait(sequence);", "return Promise.resolve();"]],
    file: spine,
  },
  {
    id: "M2",
    what: "commits without a flush (synchronous=NORMAL)",
    edits: [
      ["src/store/open.ts", '"PRAGMA synchronous = FULL"', '"PRAGMA synchronous = NORMAL"'],
      ["src/store/open.ts", 'pragma(database, "synchronous") === 2', 'pragma(database, "synchronous") === 1'],
    ],
    file: "test/crash/power-cut.test.ts",
    name: "every charge",
  },
  {
    id: "M3",
    what: "a batch leaves memory before it is written",
    edits: [
      ["src/store/ledger/journal.ts", "    this.#underWay = batch;\n", '    this.#resolved(batch, "committed");\n'],
    ],
    file: spine,
  },
  {
    id: "M4",
    what: "no unique billing key, so that a batch tried twice charges twice",
    edits: [
      ["src/store/ledger/writer.ts", "\n  ON CONFLICT (billing_key) DO NOTHING`", "`"],
      ["src/store/ledger/schema.ts", '    unique: { journal_by_billing_key: "billing_key" },\n', ""],
    ],
    file: "test/sim/ledger.test.ts",
  },
  {
    id: "M5",
    what: "an asynchronous transaction, which commits before its work is done",
    edits: [
      [
        "src/store/ledger/writer.ts",
        "      work();\n      commit.run();",
        "      setTimeout(work);\n      commit.run();",
      ],
    ],
    file: spine,
  },
  {
    id: "M6",
    what: "a hold is settled and released",
    edits: [
      [
        "src/account/money/admission.ts",
        "    if (isResolved(this.state)) return;\n    const waited",
        "    const waited",
      ],
    ],
    file: spine,
  },
  {
    id: "M7",
    what: "a hold is leaked when its node fails",
    edits: [
      ["src/gateway.ts", "  using hold = admitted;\n", "  const hold = admitted;\n"],
      [
        "src/gateway.ts",
        "    record.answered(ending);\n",
        "    hold[Symbol.dispose]();\n    record.answered(ending);\n",
      ],
      ["src/gateway.ts", "  hold[Symbol.dispose]();\n  outlet.fail", "  outlet.fail"],
    ],
    file: "test/faults/upstream.test.ts",
    name: "3 RST before headers",
  },
  {
    id: "M8",
    what: "the allowance renews by local time",
    edits: [
      [
        "src/account/money/quota.ts",
        "=> Math.floor(now / dayMs)",
        "=> Math.floor((now - new Date(now).getTimezoneOffset() * 60_000) / dayMs)",
      ],
    ],
    file: "test/account/money/admission.test.ts",
    name: "time zone",
  },
  {
    id: "M9",
    what: "the allowance renews again after the clock stepped back",
    edits: [["src/account/money/ledger.ts", "used: this.#records.used(account.id, quota, period)", "used: 0"]],
    file: "test/account/money/admission.test.ts",
    name: "grants no day twice",
  },
  {
    id: "M10",
    what: "a price in floats",
    edits: [
      [
        "src/account/money/price.ts",
        "  const numerator = 2 * sum",
        "  if (sum > 0) return Math.round((sum / 100_000_000) * 200_000);\n  const numerator = 2 * sum",
      ],
    ],
    file: "test/account/money/price.test.ts",
  },
  {
    id: "M11",
    what: "rounding for each kind of token",
    edits: [
      [
        "src/account/money/price.ts",
        "  const numerator = 2 * sum",
        "  const part = (cents: number): number => Math.floor((2 * cents + 500) / 1000);\n  if (sum > 0) return part(inputFresh * rates.inputCents) + part(inputCached * rates.cachedInputCents) + part(output * rates.outputCents);\n  const numerator = 2 * sum",
      ],
    ],
    file: "test/account/money/price.test.ts",
  },
  {
    id: "M12",
    what: "a client chooses the billing key",
    edits: [
      [
        "src/http/metrics/request-watch.ts",
        "      mintRequestId(now),\n",
        '      headers.get("x-request-id") ?? mintRequestId(now),\n',
      ],
    ],
    file: "test/faults/client.test.ts",
    name: "two requests, two charges",
  },
  {
    id: "M13",
    what: "a private address is known by its text",
    edits: [
      [
        "src/tools/fetch/public-destination.ts",
        "  if (!found.every(isReachable)) return null;",
        "  if (/^(?:127|10|192\\.168)\\./.test(hostname)) return null;",
      ],
    ],
    file: "test/tools/fetch/public-fetch-client.test.ts",
  },
  {
    id: "M14",
    what: "a name is looked up again when it is dialed",
    edits: [
      [
        "src/tools/fetch/public-destination.ts",
        "  const addresses = found.sort(",
        "  const again = literal === null ? (await resolve(hostname, cancelSignal)).map(parseAddress) : found;\n  const addresses = (again as AddressBytes[]).sort(",
      ],
    ],
    file: "test/tools/fetch/public-fetch-client.test.ts",
  },
  {
    id: "M15",
    what: "a terminator after an error event",
    edits: [
      [
        "src/dialects/reply/choices.ts",
        "    return `data: ${errorBody(refusal)}\\n\\n`;",
        "    return `data: ${errorBody(refusal)}\\n\\ndata: [DONE]\\n\\n`;",
      ],
    ],
    file: "test/faults/upstream.test.ts",
    name: "after the first word",
  },
  {
    id: "M16",
    what: "a place that was granted to a client that had left is kept",
    edits: [
      [
        "src/threads/relay-session.ts",
        "    if (place.grant === null) this.#parts.pool.leave(place);\n    this.#giveBack(number, place);",
        "    if (place.grant !== null) return;\n    this.#parts.pool.leave(place);\n    this.#giveBack(number, place);",
      ],
    ],
    file: "test/threads/relays.test.ts",
    name: "random events",
  },
  {
    id: "M17",
    what: "a thread goes on taking a key that was rotated away on another",
    edits: [
      [
        "src/threads/main-thread-client.ts",
        "    this.#principals.clear();\n    this.#cachedVersion = version;",
        "    this.#cachedVersion = version;",
      ],
    ],
    file: "test/threads/relays.test.ts",
    name: "random events",
  },
  {
    id: "M18",
    what: "a client that left before the first byte is charged",
    edits: [["src/gateway.ts", "if (isUnheard(outlet)) return record.left();", ""]],
    file: spine,
  },
  {
    id: "M19",
    what: "what a stream delivered before its answer turned out not to fit is not charged",
    edits: [["src/gateway.ts", 'const owes = ending.kind === "failed" && outlet.delivered', "const owes = false"]],
    file: spine,
  },
  {
    id: "M20",
    what: "an end user's requests are not held against its limit",
    edits: [["src/account/money/end-users.ts", "this.spendLimits = [...ofKey, limit];", "this.spendLimits = ofKey;"]],
    file: ledger,
  },
  {
    id: "M21",
    what: "what an end user used is forgotten with the process",
    edits: [
      [
        "src/store/ledger/writer.ts",
        "for (const { endUser, day, used } of sum.endUserUses ?? [])",
        "for (const { endUser, day, used } of [] as NonNullable<typeof sum.endUserUses>)",
      ],
    ],
    file: ledger,
  },
  {
    id: "M22",
    what: "any key may say for whom it asks",
    edits: [
      [
        "src/account/money/admission.ts",
        "name === null || key?.limits?.forwardsUsers !== true",
        "name === null || key === null",
      ],
    ],
    file: "test/account/money/end-users.test.ts",
  },
  {
    id: "M23",
    what: "what a key's open requests hold is not counted against its limit",
    edits: [
      ["src/account/money/ledger.ts", "if (tokens > limit.left(now) - limit.held)", "if (tokens > limit.left(now))"],
    ],
    file: ledger,
  },
  {
    id: "M24",
    what: "a charge that the disk never took is given back to another key",
    edits: [
      [
        "src/account/money/ledger.ts",
        "account.keys?.get(entry.key)?.spendLimits",
        "[...account.keys!.values()][0]?.spendLimits",
      ],
    ],
    file: "test/account/people/account-keys.test.ts",
    name: "a lost charge",
  },
  {
    id: "M25",
    what: "a key's month does not end",
    edits: [
      [
        "src/account/money/spend-limit.ts",
        "if (day >= month.first && day < month.next) return month;",
        "if (day >= month.first) return month;",
      ],
    ],
    file: ledger,
  },
  {
    id: "M26",
    what: "what a key was charged before it had a limit does not count when it gets one",
    edits: [
      [
        "src/account/money/ledger.ts",
        "      limit.add(dayOf(now), billed);",
        "      if (limit.perDay !== null || limit.perMonth !== null) limit.add(dayOf(now), billed);",
      ],
    ],
    file: ledger,
  },
  {
    id: "M27",
    what: "a request that waits begins though its key was revoked meanwhile",
    edits: [
      ["src/account/money/balance-line.ts", "account.disabled || waiter.isVoidAt(this.#wall)", "account.disabled"],
    ],
    file: ledger,
  },
  {
    id: "M28",
    what: "an answer that is kept again is added to its conversation twice",
    edits: [["src/store/responses/conversations.ts", "item.id === step.lastId", "item.id === null"]],
    file: "test/store/responses/conversations.test.ts",
  },
  {
    id: "M29",
    what: "an open budget grows, and its hold does not",
    edits: [
      [
        "src/account/money/admission.ts",
        "    this.books.ledger.reserveMore(this.account, this.spendLimits, tokens - this.budget);",
        "    if (this.budget === 0) this.books.ledger.reserveMore(this.account, this.spendLimits, tokens - this.budget);",
      ],
    ],
    file: ledger,
  },
  {
    id: "M30",
    what: "PostgreSQL: an open budget grows into what others are expected to cost",
    edits: [
      [
        "src/account/money/admission.ts",
        "return begun === own ? free : Math.min(free, left - (expected - own * this.cost) - input);",
        "return free;",
      ],
    ],
    file: lanes,
  },
  {
    id: "M31",
    what: "an answer ends while more is asked for, and the rest of it is lost",
    edits: [
      ["src/nodes/generation.ts", "    if (this.#events.stopped) return this.#endLater(() => this.end());\n", ""],
    ],
    file: "test/nodes/growing-answer.test.ts",
  },
  {
    id: "M32",
    what: "on an unlimited plan whatever nodes report is charged to keys with a limit",
    edits: [
      [
        "src/account/money/admission.ts",
        "    if (billedTokens(rates, usage) <= this.cost) return usage;",
        "    if (this.#unlimited || billedTokens(rates, usage) <= this.cost) return usage;",
      ],
    ],
    file: "test/account/plans.test.ts",
  },
  {
    id: "M33",
    what: "long prompts are no more work than short ones",
    edits: [["src/nodes/queue/share.ts", "this.tag += work / this.weight;", "this.tag += 1 / this.weight;"]],
    file: "test/nodes/queue/fairness.test.ts",
  },
  {
    id: "M34",
    what: "who has more unread on a node than its share is sent at once",
    edits: [["src/nodes/queue/slot-queue.ts", "const unreadMaxMs = 60;", "const unreadMaxMs = 5_000_000;"]],
    file: "test/nodes/queue/fairness.test.ts",
  },
  {
    id: "M35",
    what: "bulk takes all slots of a node",
    edits: [["src/nodes/queue/slot-queue.ts", "const bulkFreePart = 0.25;", "const bulkFreePart = 0;"]],
    file: "test/nodes/queue/fairness.test.ts",
  },
  {
    id: "M36",
    what: "a request written again on a new connection is not counted as a generation",
    edits: [["src/nodes/node-exchange.ts", "return this.#parts.ask.generations?.take() !== false;", "return true;"]],
    file: "test/faults/every-way-at-once.test.ts",
  },
  {
    id: "M37",
    what: "an erasure leaves a table out",
    edits: [
      [
        "src/store/changes/erasure.ts",
        'writes: ({ account }) => [remove("sessions", { account })],',
        "writes: () => [],",
      ],
    ],
    file: "test/store/both-stores.test.ts",
  },
  {
    id: "M38",
    what: "SQLite: units of the office do not wait for each other",
    edits: [["src/account/queued-office.ts", "    await before;", "    void before;"]],
    file: "test/account/concurrent-units.test.ts",
  },
  {
    id: "M39",
    what: "What a unit that was lost took away stays away",
    edits: [["src/account/office-memory.ts", "    else for (const undo of takeBack) undo();\n", ""]],
    file: "test/account/concurrent-units.test.ts",
  },
  {
    id: "M40",
    what: "PostgreSQL: two operators are the last ones for each other",
    edits: [
      [
        "src/account/people/accounts.ts",
        "const record = other === id ? null : await this.record(other);\n      if (record?.operator === true && record.disabledAt === null) return;",
        "if (other !== id) return;",
      ],
    ],
    file: "test/account/two-gateways.test.ts",
    name: "the last two operators",
  },
  {
    id: "M41",
    what: "a WebSocket writes on while its client does not read",
    edits: [
      [
        "src/http/sockets/client-socket.ts",
        "if (socket.getBufferedAmount() === 0) return frames.length;",
        "if (socket.getBufferedAmount() >= 0) return frames.length;",
      ],
    ],
    file: "test/acceptance/response-sockets.test.ts",
    name: "does not read",
  },
];

const root = join(import.meta.dir, "..");

/** A copy of what the tests need, in which bugs can be planted. */
function copyOfTree(): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-planted-"));
  for (const name of ["src", "test", "data/catalog.json", "package.json", "bunfig.toml", "tsconfig.json"]) {
    const filter = (path: string): boolean => !path.includes("node_modules") && !path.includes(".venv");
    cpSync(join(root, name), join(folder, name), { recursive: true, filter });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return folder;
}

async function passes({ file, name }: Bug, folder: string): Promise<boolean> {
  const only = name === undefined ? [] : ["-t", name];
  const run = Bun.spawn([process.execPath, "test", "--timeout=180000", `./${file}`, ...only], {
    cwd: folder,
    env: { ...process.env, TOLLGATE_SEED: "7", TOLLGATE_TESTS: "all" },
    stdout: "ignore",
    stderr: "ignore",
    timeout: 300_000,
  });
  return (await run.exited) === 0;
}

/** Returns the edit that the sources have no place for any more, or null when all are made. */
function plant({ edits }: Bug, folder: string): Edit | null {
  for (const edit of edits) {
    const [file, from, to] = edit;
    const path = join(folder, file);
    const source = readFileSync(path, "utf8");
    if (!source.includes(from)) return edit;
    const planted = source.replace(from, () => to);
    writeFileSync(path, planted);
  }
  return null;
}

const soundTests = new Map<string, Promise<boolean>>();

/** Whether the bug's test fails in a copy of the tree that has the bug, and passes in one that has not. */
async function resultOf(bug: Bug): Promise<"caught" | string> {
  const folder = copyOfTree();
  try {
    const test = `${bug.file} ${bug.name ?? ""}`;
    if (!soundTests.has(test)) soundTests.set(test, passes(bug, folder));
    if (!(await soundTests.get(test))) return "its test fails without it";
    const unplaced = plant(bug, folder);
    if (unplaced !== null) return `cannot be planted any more: ${unplaced[0]} has no ${JSON.stringify(unplaced[1])}`;
    return (await passes(bug, folder)) ? "NOT CAUGHT" : "caught";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of the table in test/README.md. */
export function rowOf({ id, what, file, name }: Bug, result: string): string {
  const by = `\`${file.slice("test/".length)}\`${name === undefined ? "" : `: "${name}"`}`;
  return `| ${id} ${what} | ${result} | ${by} | \`npm ${isLonger(file) ? "run test:all" : "test"}\` |`;
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const chosen = bugs.filter(({ id }) => wanted.length === 0 || wanted.includes(id));
  const results = new Map<Bug, string>();
  const left = chosen.values();
  const work = async (): Promise<void> => {
    for (const bug of left) results.set(bug, await resultOf(bug));
  };
  await Promise.all([work(), work()]); // much of it is waiting
  console.log("| Planted bug | Result | By | In |\n| --- | --- | --- | --- |");
  for (const bug of chosen) console.log(rowOf(bug, results.get(bug)!));
  process.exit([...results.values()].every((result) => result === "caught") ? 0 : 1);
}
