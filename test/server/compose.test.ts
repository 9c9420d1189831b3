// Putting a server together: whichever phase fails, what was opened until then is closed again, and the process that tried
// has nothing left that would keep it alive.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockDataFolder } from "../../src/store/folder/data-folder.ts";
import { longForm } from "../fixtures/optional.ts";
import { runToEnd } from "../fixtures/children.ts";
import { temporaryFolder } from "../commands/program.ts";

setDefaultTimeout(180_000);
/** Above what the program itself waits for, so that it says what is lacking. */
const childTimeLimitMs = 150_000;

const program = join(import.meta.dir, "../fixtures/managed-program.ts");

type Told = Readonly<{
  failed: string;
  whileOpen: readonly string[];
  left: readonly string[];
  threads: readonly string[];
}>;

class FailingStart implements Disposable {
  readonly #folder = temporaryFolder();
  readonly data = join(this.#folder.path, "data");
  readonly programs = this.#folder.path;
  readonly #config = join(this.#folder.path, "tollgate.toml");

  /** With everything that has a thread, a child or a socket of its own. */
  constructor(search = this.#folder.path) {
    writeFileSync(
      this.#config,
      `[[nodes]]
      name = "own"
      command = ["${process.execPath}", "${program}", "{port}", "${this.programs}"]
      [search]
      provider = "local"
      folder = "${search}"
      [log]
      level = "error"`,
    );
  }

  /** Runs it to its end, which comes by itself; `phase` is the one that fails when all of `opened` is open. */
  async run(phase: string, flags: object = {}, opened: readonly string[] = []): Promise<Told> {
    const given = { config: this.#config, data: this.data, port: "0", threads: "2", ...flags };
    const { code, stdout, stderr } = await runToEnd(
      [process.execPath, join(import.meta.dir, "failing-start.ts"), phase, JSON.stringify(given), ...opened],
      { timeLimitMs: childTimeLimitMs },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout) as Told;
  }

  /** The process has ended: what it leaves on the machine. */
  expectNothingLeft({ left, threads }: Told): void {
    // SQLite keeps the files of a closed connection until its last statement is collected; the lock is another file.
    expect(left.filter((file) => !/\/tollgate\.db(?:-wal|-shm)?$/.test(file))).toEqual([]);
    expect(threads).toEqual([]);
    const pids = join(this.programs, "pids");
    // A program that was killed before it wrote its number has left nothing.
    const text = existsSync(pids) ? readFileSync(pids, "utf8").trim() : "";
    const children = text === "" ? [] : text.split("\n");
    expect(children.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    expect(["tollgate.sock", "relays.sock"].filter((name) => existsSync(join(this.data, name)))).toEqual([]);
    lockDataFolder(this.data).release();
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

describe("a start that fails leaves nothing open", () => {
  // the phase that fails, and what of it must have been open
  const phases: [string, string[]][] = [
    ["settings", ["socket:"]],
    ["books", ["tollgate.lock", "tollgate.db", "responses.db", "journal"]],
    ["gateway", ["journal", "Worker"]],
    ["work", ["journal", "Worker", "search.db"]],
    ["doors", ["journal", "Worker", "relay 1", "relay 2", "socket:"]],
  ];
  // Each start from the sources takes more than a second of a processor; the last phases have opened what the others had.
  test.each(longForm ? phases : phases.slice(-2))("when the phase %s fails", async (phase, opened) => {
    using start = new FailingStart();
    const told = await start.run(phase, {}, opened);
    expect(told.failed).toBe(`${phase} failed`);
    for (const what of opened) expect(told.whileOpen.filter((each) => each.includes(what))).not.toEqual([]);
    start.expectNothingLeft(told);
  });

  test.skipIf(!longForm)("when there is no room for the stored responses", async () => {
    using start = new FailingStart();
    mkdirSync(join(start.data, "responses.db"), { recursive: true });
    const told = await start.run("");
    expect(told.failed).toContain("responses.db");
    start.expectNothingLeft(told);
  });

  test("when the folder to be searched is not there, after a node's program was started", async () => {
    using start = new FailingStart("/nowhere");
    const told = await start.run("");
    expect(told.failed).toContain("/nowhere");
    start.expectNothingLeft(told);
  });

  test.each(longForm ? [["1"], ["2"]] : [["2"]])("when the port is taken, with %s threads", async (threads) => {
    using start = new FailingStart();
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") });
    const told = await start.run("", { port: String(other.port), threads });
    expect(told.failed).toBe(
      `port ${other.port} on 127.0.0.1 is taken by another program; choose another with --port N`,
    );
    start.expectNothingLeft(told);
    await other.stop();
  });
});
