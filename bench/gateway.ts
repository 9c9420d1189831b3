// Tollgate as a subject: the gateway that a self-hoster runs, on a data folder of its own with as many accounts as the
// load needs.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAccounting } from "../src/books/accounting.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { systemClock } from "../src/core/clock.ts";
import { floodRequestsMax } from "../src/core/limits.ts";
import type { ClientDialect } from "./dialect.ts";
import { bun, startProcess } from "./process.ts";
import type { TurnMeter } from "./turns.ts";
import type { Subject } from "./subject.ts";

export type GatewaySettings = Readonly<{
  nodePort: number;
  dialect: ClientDialect;
  /** Requests that it will get at most; no account gets more of them than flood protection lets pass in a minute. */
  requests: number;
  /** A data folder that is there already, and stays; left out, a new one is made and deleted. */
  dataFolder?: string;
  /** Threads that serve clients, each wherever the system lets it run; left out, one, on the core of the proxy. */
  threads?: number;
  /** So many configured nodes, which are all the one at `nodePort`; 1 when left out. */
  nodes?: number;
  /** Other nodes in the place of these, each with its slots. */
  fleet?: readonly Readonly<{ port: number; slots: number | "auto" }>[];
  /** The configuration, in place of one for these nodes. */
  config?: string;
  /** A model that is served by another node. */
  other?: Readonly<{ model: string; port: number }>;
  /** A program that `npm run build` made; left out or "", the sources are run. */
  program?: string;
  /** Measures the turns of its event loop, see turn-meter.ts. */
  turns?: TurnMeter;
}>;

export type Gateway = Subject &
  Readonly<{
    dataFolder: string;
    /** From the start of the process until it takes requests. */
    startMs: number;
  }>;

/** Enough for every request at the default output budget. */
const creditTokens = 1_000_000_000;
/** More than any benchmark opens, so that no request waits in line. */
const slotsOfAll = 20_000;

export async function startGateway(settings: GatewaySettings): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), "bench-gateway-"));
  const dataFolder = settings.dataFolder ?? join(folder, "data");
  const keys = await createAccounts(dataFolder, Math.ceil(settings.requests / floodRequestsMax));
  const configFile = join(folder, "tollgate.toml");
  writeFileSync(configFile, configText(settings));
  const startedMs = performance.now();
  const running = await startProcess({
    role: settings.threads === undefined ? "proxy" : "anywhere",
    command: [
      ...[...programOf(settings), "serve", "--config", configFile, "--data", dataFolder, "--port", "0"],
      ...(settings.threads === undefined ? [] : ["--threads", `${settings.threads}`]),
    ],
    env: { ...unitEnvironment(), ...settings.turns?.environment },
    ready: /listening on http:\/\/127\.0\.0\.1:(\d+)/,
  });
  return {
    name: "tollgate",
    port: Number(running.ready[1]),
    dialect: settings.dialect,
    keys,
    pids: [running.pid],
    dataFolder,
    startMs: performance.now() - startedMs,
    async stop() {
      await running.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

const programOf = ({ program = "", turns }: GatewaySettings): string[] =>
  program === ""
    ? [bun, ...profilerFlags(), ...(turns?.flags ?? []), join(import.meta.dir, "../src/main.ts")]
    : [program];

/** TOLLGATE_BENCH_PROFILE=FOLDER writes a CPU profile of the gateway there when it stops. */
function profilerFlags(): string[] {
  const folder = process.env["TOLLGATE_BENCH_PROFILE"];
  return folder === undefined ? [] : ["--cpu-prof", "--cpu-prof-md", "--cpu-prof-dir", folder];
}

export const benchEmail = (index: number): string => `bench-${index}@example.com`;

/** Makes the accounts while no server runs, and returns their keys. */
async function createAccounts(dataFolder: string, count: number): Promise<string[]> {
  if (count === 0) return [];
  const accounting = await openBenchAccounting(dataFolder);
  const keys = await accounting.office.change(async ({ accounts }) => {
    const all: string[] = [];
    for (let index = 0; index < count; index += 1) {
      all.push((await accounts.create({ email: benchEmail(index), credit: creditTokens })).api_key);
    }
    return all;
  });
  await accounting.close();
  return keys;
}

/** What the systemd unit tells the allocator and the engine, as the launcher and the image do; this environment goes first. */
function unitEnvironment(): Record<string, string> {
  const unit = readFileSync(join(import.meta.dir, "../data/ops/tollgate.service"), "utf8");
  const assignments = /^Environment=(MIMALLOC_.*)$/m.exec(unit)![1]!.split(" ");
  const named = assignments.map((assignment) => assignment.split("=") as [name: string, value: string]);
  return Object.fromEntries(named.filter(([name]) => process.env[name] === undefined));
}

/** The accounting on a data folder; a failing disk ends the benchmark. */
export function openBenchAccounting(dataFolder: string) {
  return openAccounting({
    dataFolder,
    catalog: embeddedCatalog(),
    siteUrl: "http://127.0.0.1",
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
}

function configText({ nodePort, nodes = 1, fleet, other, config }: GatewaySettings): string {
  if (config !== undefined) return config;
  const all = fleet ?? Array.from({ length: nodes }, () => ({ port: nodePort, slots: slotsOfAll }));
  const tables = all.map(({ port, slots }, index) => nodeTable(`bench-${index}`, port, "*", slots));
  if (other !== undefined) tables.push(nodeTable("other", other.port, other.model));
  return `${tables.join("")}
[search]
provider = "none"
`;
}

const nodeTable = (name: string, port: number, models: string, slots: number | "auto" = slotsOfAll): string => `
[[nodes]]
name = "${name}"
url = "http://127.0.0.1:${port}/v1"
slots = ${JSON.stringify(slots)}
[nodes.models]
"${models}" = "bench"
`;
