// Nodes that the gateway starts itself, with real processes: started, watched, started again and ended, whatever they do.
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import type { ManagedNodeConfig } from "../../../src/config/config.ts";
import { freePort } from "../../../src/http/free-port.ts";
import type { LogFields } from "../../../src/core/log.ts";
import { startGuarded } from "../../../src/nodes/managed/guarded-child.ts";
import { ManagedNode, type ManagedLimits } from "../../../src/nodes/managed/managed-node.ts";
import { ManagedNodes, type ManagedNodesParts } from "../../../src/nodes/managed/managed-nodes.ts";
import { eventually } from "../../fixtures/eventually.ts";

setDefaultTimeout(120_000);

const program = join(import.meta.dir, "../../fixtures/managed-program.ts");
const environment = { PATH: process.env["PATH"]!, HOME: tmpdir() };
const quick: ManagedLimits = {
  probeIntervalMs: 50,
  silenceMs: 120_000,
  stopGraceMs: 3_000,
  restartMinMs: 20,
  restartMaxMs: 80,
  settledMs: 60_000,
};

const folders: string[] = [];
const running: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((node) => node.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-managed-"));
  folders.push(folder);
  return folder;
}

type Told = Readonly<{ event: string; fields: LogFields }>;

/** A node of the fixture's program, what was logged of it, and the ids of its processes so far. */
function managed(fault = "", limits: Partial<ManagedLimits> = {}, startTimeoutMs = 30_000) {
  const folder = temporaryFolder();
  const port = freePort("127.0.0.1");
  const told: Told[] = [];
  const config: ManagedNodeConfig = {
    name: "own",
    url: `http://127.0.0.1:${port}/v1`,
    apiKey: null,
    slots: 1,
    models: { "*": "*" },
    managed: {
      command: [process.execPath, program, String(port), folder, fault],
      environment: { OWN: "yes" },
      folder,
      startTimeoutMs,
    },
  };
  const parts = {
    clock: systemClock,
    log: (_: string, event: string, fields: LogFields = {}) => told.push({ event, fields }),
    environment: () => ({ ...environment, BUN_JSC_notAnOption: "1", MIMALLOC_PURGE_DELAY: "1" }),
    limits: { ...quick, ...limits },
  };
  const node = new ManagedNode(config, parts);
  running.push(node);
  const pids = (): number[] =>
    existsSync(join(folder, "pids")) ? readFileSync(join(folder, "pids"), "utf8").trim().split("\n").map(Number) : [];
  const events = (name: string): Told[] => told.filter(({ event }) => event === name);
  const answers = () => eventually("the node answers", async () => events("a node answers").length > 0);
  return { node, config, folder, pids, events, answers, told };
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`) || process.platform !== "linux";

describe("a node of the gateway's own", () => {
  test("is started in its folder with its variables, is told of when it answers, and ends with the gateway", async () => {
    const { node, folder, pids, answers, config } = managed();
    await answers();
    expect((await fetch(`${config.url}/models`)).status).toBe(200);
    const seen = JSON.parse(readFileSync(join(folder, "environment.json"), "utf8")) as Record<string, string>;
    expect([seen["OWN"], seen["folder"], seen["HOME"]]).toEqual(["yes", folder, tmpdir()]);
    expect(Object.keys(seen).filter((name) => /^(?:BUN_JSC|MIMALLOC)_/.test(name))).toEqual([]); // they are ours
    await node.close();
    expect(pids()).toHaveLength(1);
    expect(pids().filter(isAlive)).toEqual([]);
  });

  test("is started again when it ends, after pauses that grow to their limit", async () => {
    const { pids, events } = managed("ends");
    const failed = "a managed node failed and is being restarted";
    await eventually("it failed five times", async () => events(failed).length >= 5);
    expect(
      events(failed)
        .slice(0, 5)
        .map(({ fields }) => fields["seconds"]),
    ).toEqual([0.02, 0.04, 0.08, 0.08, 0.08]);
    expect(events(failed)[0]!.fields["reason"]).toBe("exit code 3");
    expect(pids().length).toBeGreaterThanOrEqual(5);
  });

  test("that is killed is back", async () => {
    const { pids, answers, events } = managed();
    await answers();
    process.kill(pids()[0]!, "SIGKILL");
    await eventually("it answers again", async () => events("a node answers").length === 2);
    expect(events("a managed node failed and is being restarted")[0]!.fields["reason"]).toBe("signal SIGKILL");
    expect(pids()).toHaveLength(2);
  });

  test("that does not answer in time is started again", async () => {
    const { events, pids } = managed("never-answers", {}, 500);
    await eventually("it was started twice", async () => pids().length >= 2);
    const [failure] = events("a managed node failed and is being restarted");
    expect(failure!.fields["reason"]).toStartWith("it did not answer within 0.5 s; then ");
    expect(isAlive(pids()[0]!)).toBe(false);
  });

  test("that falls silent is started again", async () => {
    const { folder, answers, events, pids } = managed("", { silenceMs: 200 });
    await answers();
    writeFileSync(join(folder, "silent"), "");
    await eventually("it was started twice", async () => pids().length >= 2);
    const [failure] = events("a managed node failed and is being restarted");
    expect(failure!.fields["reason"]).toMatch(/^it has not answered for \d+ s; then /);
  });

  test("that does not end at SIGTERM is killed after the grace", async () => {
    const { node, answers, pids, events } = managed("ignores-SIGTERM");
    await answers();
    await node.close();
    expect(pids().filter(isAlive)).toEqual([]);
    expect(events("a node says").map(({ fields }) => fields["line"])).toContain("SIGTERM is ignored");
  });

  test("leaves no process of its own behind, not even one that ignores SIGTERM", async () => {
    const { node, answers, pids } = managed("has-workers");
    await answers();
    await node.close();
    expect(pids()).toHaveLength(3);
    await eventually("all of them are gone", async () => pids().filter(isAlive).length === 0);
  });

  test("has its lines cut and counted in the log", async () => {
    const { answers, events } = managed("many-lines");
    await answers();
    const lines = events("a node says").map(({ fields }) => String(fields["line"]));
    expect(lines).toContain("loading the model");
    expect(Math.max(...lines.map((line) => line.length))).toBe(1_000);
    expect(lines.length).toBeLessThanOrEqual(120); // 60 of each of its two streams
  });

  test("whose program is missing is told of, and tried again", async () => {
    const child = startGuarded({ command: ["/no/such/program"], environment, folder: null, graceMs: 1_000 });
    expect(await child.ended).toBe("exit code 127");
    const nowhere = startGuarded({ command: ["true"], environment, folder: "/no/such/folder", graceMs: 1_000 });
    expect(await nowhere.ended).toStartWith("it cannot be started: ");
  });
});

describe("the guard", () => {
  test.each(["", "has-workers"])("ends the program when its starter is killed, however hard %s", async (fault) => {
    const folder = temporaryFolder();
    const source = `
      import { startGuarded } from ${JSON.stringify(join(import.meta.dir, "../../../src/nodes/managed/guarded-child.ts"))};
      startGuarded({
        command: ${JSON.stringify([process.execPath, program, String(freePort("127.0.0.1")), folder, fault])},
        environment: ${JSON.stringify(environment)}, folder: null, graceMs: 1000,
      });
      setInterval(() => {}, 1000);`;
    const parent = Bun.spawn([process.execPath, "-e", source], { stdout: "ignore", stderr: "inherit" });
    const file = join(folder, "pids");
    const pids = () => readFileSync(file, "utf8").trim().split("\n").map(Number);
    const processes = fault === "" ? 1 : 3;
    await eventually("the program runs", async () => existsSync(file) && pids().filter(isAlive).length === processes);
    parent.kill("SIGKILL");
    await parent.exited;
    await eventually("it is gone with all that it started", async () => pids().filter(isAlive).length === 0);
  });

  test("hands arguments on as they are", async () => {
    const child = startGuarded({
      command: ["printf", "%s|", "a b", "$HOME", "'", "*", ""],
      environment,
      folder: null,
      graceMs: 1_000,
    });
    let text = "";
    child.output[0].on("data", (chunk: Buffer) => (text += chunk.toString()));
    expect(await child.ended).toBe("exit code 0");
    expect(text).toBe("a b|$HOME|'|*||");
  });
});

describe("a change of the configuration", () => {
  const other = { name: "other", url: "http://10.0.0.1/v1", apiKey: null, slots: 1, models: {} };
  const own = (folder: string, changes: Partial<ManagedNodeConfig> = {}): ManagedNodeConfig => ({
    name: "a",
    url: "http://127.0.0.1:{port}/v1",
    apiKey: null,
    slots: 1,
    models: { "*": "*" },
    managed: {
      command: [process.execPath, program, "{port}", folder],
      environment: {},
      folder: null,
      startTimeoutMs: 30_000,
    },
    ...changes,
  });
  const pidsIn = (folder: string): number[] =>
    existsSync(join(folder, "pids")) ? readFileSync(join(folder, "pids"), "utf8").trim().split("\n").map(Number) : [];

  function nodesWith(parts: Partial<ManagedNodesParts> = {}): ManagedNodes {
    const nodes = new ManagedNodes({
      clock: systemClock,
      log: () => {},
      environment: () => environment,
      limits: quick,
      ownPort: 7_000,
      freePort: () => freePort("127.0.0.1"),
      busyAt: () => 0,
      leaveGraceMs: () => 60_000,
      ...parts,
    });
    running.push(nodes);
    return nodes;
  }

  test("leaves nodes that stay the same alone, ends those that are gone, and gives each its port", async () => {
    const folder = temporaryFolder();
    const [one, two] = [freePort("127.0.0.1"), freePort("127.0.0.1")];
    const given = [two, one, one, 7_000]; // as the system may: one that is taken, and one twice
    const nodes = nodesWith({ freePort: () => given.pop()! });
    const { nodes: applied } = nodes.apply([own(folder), other, own(folder, { name: "b" })]);
    const [first, , second] = applied;
    expect([first!.url, second!.url]).toEqual([`http://127.0.0.1:${one}/v1`, `http://127.0.0.1:${two}/v1`]);
    await eventually("both run", async () => pidsIn(folder).length === 2);
    expect(nodes.apply([own(folder, { name: "b" }), other]).nodes).toEqual([second!, other]);
    await eventually("one is gone", async () => pidsIn(folder).filter(isAlive).length === 1);
    await nodes.close();
    expect(pidsIn(folder).filter(isAlive)).toEqual([]);
  });

  test("keeps the program where only something else of its node has changed", async () => {
    const folder = temporaryFolder();
    const nodes = nodesWith();
    const { nodes: applied, arrivals } = nodes.apply([own(folder)]);
    await arrivals.get("a");
    const changes = { name: "renamed", slots: 7, apiKey: "another", models: { "core-3": "m" }, thinkTagOpened: ["*"] };
    const after = nodes.apply([own(folder, changes)]);
    expect(after.nodes).toEqual([{ ...applied[0]!, ...changes }]);
    expect([...after.arrivals.keys()]).toEqual([]); // it answers as before
    const longer = own(folder, { ...changes, managed: { ...own(folder).managed, startTimeoutMs: 60_000 } });
    expect(nodes.apply([longer]).nodes[0]!.url).toBe(applied[0]!.url);
    await nodes.close();
    expect(pidsIn(folder)).toHaveLength(1);
  });

  test("starts another program only when the one before has lost its last request and is gone", async () => {
    const folder = temporaryFolder();
    const url = `http://127.0.0.1:${freePort("127.0.0.1")}/v1`;
    const withVariables = (environment: Record<string, string>): ManagedNodeConfig =>
      own(folder, {
        url,
        managed: {
          ...own(folder).managed,
          command: [process.execPath, program, new URL(url).port, folder],
          environment,
        },
      });
    let asked = 0;
    const nodes = nodesWith({
      busyAt(address) {
        expect(address).toBe(url);
        expect(pidsIn(folder).map(isAlive)).toEqual([true]);
        return ++asked < 5 ? 1 : 0;
      },
    });
    await nodes.apply([withVariables({})]).arrivals.get("a");
    await nodes.apply([withVariables({ OTHER: "yes" })]).arrivals.get("a");
    expect(asked).toBe(5);
    expect(pidsIn(folder).map(isAlive)).toEqual([false, true]);
  });

  test("has a node that somebody else starts from now on down until its own program there is gone", async () => {
    const folder = temporaryFolder();
    const url = `http://127.0.0.1:${freePort("127.0.0.1")}/v1`;
    const managed = { ...own(folder).managed, command: [process.execPath, program, new URL(url).port, folder] };
    const nodes = nodesWith();
    await nodes.apply([own(folder, { url, managed })]).arrivals.get("a");
    const { managed: _, ...others } = own(folder, { url });
    const { arrivals } = nodes.apply([others]);
    await arrivals.get("a");
    expect(pidsIn(folder).map(isAlive)).toEqual([false]);
    expect(nodes.apply([others]).arrivals.size).toBe(0);
  });

  test("ends a program whose requests do not end within their time", async () => {
    const folder = temporaryFolder();
    const nodes = nodesWith({ busyAt: () => 1, leaveGraceMs: () => 0 });
    await nodes.apply([own(folder)]).arrivals.get("a");
    nodes.apply([]);
    await eventually("it is gone", async () => pidsIn(folder).filter(isAlive).length === 0);
  });
});
