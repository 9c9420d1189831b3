// What a disk can do wrong while the gateway lives (rows S), with the real process: a full disk is a small tmpfs, slow and
// failing flushes are put in by strace, a busy database is another program's lock. Required of each: nothing lost, nothing
// charged for a reply that failed, no end of a reply before its charge is on disk.
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { bodyOf, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { fullLength, longForm, missing } from "../fixtures/optional.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  textEvent,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";
import { nodeTable } from "../fixtures/stack.ts";
import { canTrace } from "../fixtures/strace.ts";
import { run } from "../commands/program.ts";

const timeLimit = 120_000;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
}, timeLimit);

function folderOf(): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-disk-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A disk of so many bytes. */
function mount(options: string): string {
  const folder = folderOf();
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]).exitCode).toBe(0);
  cleanups.push(() => Bun.spawnSync(["umount", "-l", folder]));
  return folder;
}

const cannotMount = missing(
  "a file system of its own",
  process.getuid?.() === 0 &&
    Bun.spawnSync(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", tmpdir()]).exitCode === 0,
  "run as root with permission to mount",
  false,
);
const cannotTrace = missing("strace", canTrace(), "apt-get install strace, and permission to trace", false);

type Started = { gateway: GatewayProcess; account: Account; letEnd: () => void };

/** Answers with a word; the answer to "held" ends only when the test lets it, after it did something to the disk. */
async function start(dataFolder?: string): Promise<Started> {
  const ends = Promise.withResolvers<void>();
  const node = new RawNode(async ({ method, body }, reply) => {
    if (method === "GET") return reply.write(wholeReply("200 OK", '{"object":"list","data":[{"id":"m"}]}'));
    reply.write(Buffer.concat([Buffer.from(streamHead), chunk(textEvent("word"))]));
    if (body.includes("held")) await ends.promise;
    return reply.write(Buffer.concat([chunk(finishEvent() + usageEvent() + doneEvent), Buffer.from(lastChunk)]));
  });
  cleanups.push(() => node.stop());
  const config = nodeTable(node, 100);
  const gateway = await GatewayProcess.start(dataFolder === undefined ? { config } : { config, dataFolder });
  cleanups.push(() => gateway[Symbol.asyncDispose]());
  return { gateway, account: await gateway.account(), letEnd: ends.resolve };
}

type Open = { endpoint: Endpoint; id: string; received: string; closed: boolean; done: Promise<void> };

/** A stream of each dialect, read as it comes, whose first word has arrived. */
async function openStreams({ url }: GatewayProcess, { api_key }: Account): Promise<Open[]> {
  const open = await Promise.all(
    endpoints.map(async (endpoint) => {
      const reply = await send(url, api_key, endpoint, "held", true);
      expect([endpoint, reply.status]).toEqual([endpoint, 200]);
      const stream: Open = {
        endpoint,
        id: reply.headers.get("x-request-id")!,
        received: "",
        closed: false,
        done: Promise.resolve(),
      };
      stream.done = (async () => {
        const decoder = new TextDecoder();
        try {
          for await (const bytes of reply.body!) stream.received += decoder.decode(bytes, { stream: true });
        } catch {
          // the process ended
        }
        stream.closed = true;
      })();
      return stream;
    }),
  );
  await eventually("the first words", async () => open.every(({ received }) => received.includes("word")));
  return open;
}

const send = (url: string, key: string, endpoint: Endpoint, prompt: string, stream: boolean, model = "core-3") =>
  fetch(url + endpoint, {
    method: "POST",
    headers: { "x-api-key": key },
    body: JSON.stringify(bodyOf(endpoint, model, prompt, { stream })),
  });

const viewsOf = (open: readonly Open[]) => open.map(({ endpoint, received }) => viewOf(endpoint, true, received));

/**
 * While the disk takes no writes, nobody is admitted; /v1/responses says 500 for the first-party tier. The gateway learns
 * of it by its first failed commit, which the ends of the open replies bring, and says so.
 */
async function expectRefusing(gateway: GatewayProcess, { api_key }: Account): Promise<void> {
  await eventually("the gateway knows of it", async () => gateway.output.includes("the ledger cannot be written"));
  for (const [endpoint, model, expected] of [
    ["/v1/chat/completions", "core-3", 503],
    ["/v1/messages", "core-3", 503],
    ["/v1/responses", "core-3", 500],
    ["/v1/responses", "open-05-3BIT-REAP", 503],
  ] as const) {
    const reply = await send(gateway.url, api_key, endpoint, "say it", false, model);
    expect([endpoint, reply.status]).toEqual([endpoint, expected]);
    expect(viewOf(endpoint, false, await reply.text()).error?.message).toContain("Could not verify your quota");
  }
}

async function expectServing({ url }: GatewayProcess, { api_key }: Account): Promise<void> {
  await eventually("requests are served again", async () => {
    const reply = await send(url, api_key, "/v1/chat/completions", "say it", false);
    await reply.text();
    return reply.status === 200;
  });
}

/** Takes every byte that is left, and keeps the database from using again what it has; returns what undoes both. */
function fill(disk: string): () => void {
  // A log without room of its own, which cannot begin anew while a reader holds an old state: every commit needs more of
  // the disk. (Without the first, a log that was moved into the database when the gateway was idle would be written over.)
  const reader = new Database(join(disk, "data/tollgate.db"));
  reader.run("PRAGMA busy_timeout = 60000");
  reader.run("PRAGMA wal_checkpoint(TRUNCATE)");
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM accounts").get();
  const file = join(disk, "filler");
  const descriptor = openSync(file, "w");
  for (const size of [65_536, 4_096, 1]) {
    const block = new Uint8Array(size);
    try {
      while (writeSync(descriptor, block) === size);
    } catch (thrown) {
      expect((thrown as { code: string }).code).toBe("ENOSPC");
    }
  }
  closeSync(descriptor);
  const free = () => {
    rmSync(file, { force: true });
    reader.close();
  };
  cleanups.push(free);
  return free;
}

describe.skipIf(cannotMount)("a full disk", () => {
  test(
    "holds the ends and admits nobody; when it has room again the ends go out, and nothing is lost",
    async () => {
      const disk = mount("size=2m");
      const { gateway, account, letEnd } = await start(join(disk, "data"));
      const open = await openStreams(gateway, account);
      const free = fill(disk);
      letEnd();
      await expectRefusing(gateway, account);
      expect(gateway.output).toContain(`the disk is full: 0 bytes are free in ${gateway.dataFolder}`);
      const ready = await fetch(`${gateway.url}/readyz`);
      expect(await ready.text()).toContain(
        "the ledger cannot be written (the disk is full: 0 bytes are free), see the log",
      );
      expect(viewsOf(open).map(({ complete, error }) => [complete, error])).toEqual(Array(3).fill([false, null]));
      free();
      await Promise.all(open.map(({ done }) => done));
      expect(viewsOf(open).map(({ complete, faults }) => [complete, faults])).toEqual(Array(3).fill([true, []]));
      await expectServing(gateway, account);
      const rows = (await gateway.usage(account.email)).map(({ request_id }) => request_id);
      for (const { id } of open) expect(rows.filter((row) => row === id)).toEqual([id]);
      await gateway.expectNothingReserved();
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "that stays full ends the held replies with an error after 10 s and charges nothing for them; a restart is clean",
    async () => {
      const disk = mount("size=2m");
      const { gateway, account, letEnd } = await start(join(disk, "data"));
      const open = await openStreams(gateway, account);
      const free = fill(disk);
      letEnd();
      await eventually("the replies end", async () => open.every(({ closed }) => closed), 60_000);
      for (const { complete, error, faults } of viewsOf(open)) {
        expect([complete, faults]).toEqual([false, []]);
        expect(error?.message).toContain("Could not verify your quota");
      }
      expect(await gateway.usage(account.email)).toEqual([]);
      await gateway.expectNothingReserved();
      expect(await gateway.kill("SIGTERM")).toBe(0); // a stop comes to its end all the same
      free();
      await gateway.restart();
      expect(await gateway.usage(account.email)).toEqual([]);
      await expectServing(gateway, account);
    },
    timeLimit,
  );

  test(
    "leaves its last 512 MiB to the ledger: no batch and no background response begins, and each says why",
    async () => {
      const { gateway, account } = await start(join(mount("size=20m"), "data"));
      const post = async (path: string, body: object): Promise<[number, string]> => {
        const headers = { authorization: `Bearer ${account.api_key}` };
        const reply = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
        return [reply.status, await reply.text()];
      };
      const request = { model: "core-3", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
      for (const [path, body] of [
        ["/v1/messages/batches", { requests: [{ custom_id: "a", params: request }] }],
        // Some are answered before it is known that they are refused.
        ...Array.from(
          { length: 20 },
          () => ["/v1/responses", { model: "core-3", input: "Hi", background: true }] as const,
        ),
      ] as const) {
        const [status, text] = await post(path, body);
        expect([path, status]).toEqual([path, 507]);
        expect(text).toContain("There is no room for this on the server's disk");
      }
      await eventually("nothing is held", async () => (await gateway.show(account.email)).reserved === 0);
      expect(await gateway.usage(account.email)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "without room, or without a file left, is told at the start",
    async () => {
      for (const options of ["size=16k", "size=1m,nr_inodes=2"]) {
        const { code, stderr } = await run(["serve", "--port", "0", "--data", join(mount(options), "data")]);
        expect(code).toBe(1);
        expect(stderr).toMatch(/^tollgate: .*(?:full|disk|space|write|unable)/i);
      }
    },
    timeLimit,
  );
});

describe("a database that another program has locked", () => {
  test(
    "for a moment only delays the ends",
    async () => {
      const { gateway, account, letEnd } = await start();
      const open = await openStreams(gateway, account);
      const other = new Database(join(gateway.dataFolder, "tollgate.db"));
      other.run("PRAGMA busy_timeout = 60000");
      other.run("BEGIN IMMEDIATE");
      letEnd();
      await expectRefusing(gateway, account);
      expect(viewsOf(open).some(({ complete, error }) => complete || error !== null)).toBe(false);
      other.run("ROLLBACK");
      other.close();
      await Promise.all(open.map(({ done }) => done));
      expect(viewsOf(open).map(({ complete }) => complete)).toEqual([true, true, true]);
      expect((await gateway.usage(account.email)).length).toBeGreaterThanOrEqual(3);
      await expectServing(gateway, account);
    },
    timeLimit,
  );

  test.skipIf(!fullLength)(
    "for 30 s is as a full disk",
    async () => {
      const { gateway, account, letEnd } = await start();
      const open = await openStreams(gateway, account);
      const other = new Database(join(gateway.dataFolder, "tollgate.db"));
      other.run("PRAGMA busy_timeout = 60000");
      other.run("BEGIN IMMEDIATE");
      letEnd();
      await eventually("the replies end", async () => open.every(({ closed }) => closed), 60_000);
      other.run("ROLLBACK");
      other.close();
      expect(viewsOf(open).map(({ complete, error }) => [complete, error === null])).toEqual(
        Array(3).fill([false, false]),
      );
      expect(await gateway.usage(account.email)).toEqual([]);
      await expectServing(gateway, account);
    },
    timeLimit,
  );
});

describe.skipIf(cannotTrace)("flushes", () => {
  /** From now on, in a process that runs; resolves when it is in force in all of its threads. */
  async function inject(pid: number, what: string): Promise<void> {
    const options = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", `inject=fsync:${what}`];
    const tracer = Bun.spawn(["strace", ...options, "-p", String(pid)], { stdout: "ignore", stderr: "ignore" });
    cleanups.push(() => {
      tracer.kill("SIGKILL");
      return tracer.exited; // a signal that the traced process gets while its tracer dies may be lost with it
    });
    const tasks = `/proc/${pid}/task`;
    const isTraced = (task: string) => !/^TracerPid:\t0$/m.test(readFileSync(join(tasks, task, "status"), "utf8"));
    await eventually("every thread is traced", async () => readdirSync(tasks).every(isTraced));
  }

  test(
    "one that takes 6 s holds the ends, not the first words of others",
    async () => {
      const { gateway, account, letEnd } = await start();
      const first = await openStreams(gateway, account);
      await inject(gateway.pid, "delay_exit=6000000:when=1");
      const from = performance.now();
      letEnd();
      // while the first three wait for their flush, three others get their first words
      const second = await openStreams(gateway, account);
      expect(viewsOf(first).map(({ complete, text: said }) => [complete, said])).toEqual(
        Array(3).fill([false, "word"]),
      );
      await Promise.all([...first, ...second].map(({ done }) => done));
      expect(performance.now() - from).toBeGreaterThan(6_000);
      expect(viewsOf([...first, ...second]).every(({ complete }) => complete)).toBe(true);
      expect(await gateway.usage(account.email)).toHaveLength(6);
    },
    timeLimit,
  );

  test(
    "that fail end the process at once, and no end of a reply goes out; the next start is consistent",
    async () => {
      const { gateway, account, letEnd } = await start();
      const open = await openStreams(gateway, account);
      await inject(gateway.pid, "error=EIO");
      letEnd();
      expect(await gateway.end()).toBe(1);
      await Promise.all(open.map(({ done }) => done));
      for (const { complete, error } of viewsOf(open)) expect([complete, error]).toEqual([false, null]);
      expect(gateway.output).toMatch(/tollgate: .*disk I\/O error/s);
      await gateway.restart();
      // Written and not acknowledged: at most once each, and the balance fits.
      const rows = await gateway.usage(account.email);
      expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(rows.length);
      expect((await gateway.show(account.email)).reserved).toBe(0);
      await expectServing(gateway, account);
    },
    timeLimit,
  );
});
