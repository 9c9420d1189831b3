// Other gateways as subjects of the benchmarks, with their accounting off. Optional: `bun bench --peers` installs what
// can be had into bench/peers and measures it beside nginx and Tollgate; nothing of it is in the default run.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import portkeyPackage from "./peers/package.json" with { type: "json" };
import { Connection } from "./connection.ts";
import { processFamily } from "./cpu-time.ts";
import { benchModel, clientDialects } from "./dialect.ts";
import { freePort } from "./free-port.ts";
import { bun, startProcess } from "./process.ts";
import type { Subject } from "./subject.ts";

export const peerNames = ["vllm-router", "smg", "sglang-router", "portkey", "litellm", "gomodel", "bifrost"] as const;
export type PeerName = (typeof peerNames)[number];

export const peersFolder = join(import.meta.dir, "peers");
/** LiteLLM imports for half a minute where the disk is cold. */
const readyTimeoutMs = 120_000;

/** What it takes to run one; `folder` is new and empty, and its working directory. */
type Peer = Readonly<{
  /** The file without which it is not installed. */
  program: string;
  /** "Portkey 1.15.2", for the results. */
  version(): string;
  ready: RegExp;
  command(run: Run): readonly string[];
  env?(run: Run): Readonly<Record<string, string>>;
  /** Files of `folder`, by name. */
  files?(run: Run): Readonly<Record<string, string>>;
  model: string;
  key: string;
  /** Lines of every request's head. */
  headers?(run: Run): readonly string[];
}>;
type Run = Readonly<{ folder: string; port: number; metricsPort: number; nodeAddress: string }>;

const venv = join(peersFolder, ".venv/bin");
const routers = join(peersFolder, ".routers/bin");
const programs = join(peersFolder, "bin");
const key = "sk-bench-0123456789abcdef0123456789abcdef";

const peers: Readonly<Record<PeerName, Peer>> = {
  "vllm-router": router("vllm-router", "vllm-router", []),
  smg: router("SMG", "smg", ["launch"]),
  "sglang-router": router("sglang-router", "sglang-router", ["launch"]),
  portkey: {
    program: join(peersFolder, "node_modules/@portkey-ai/gateway/build/start-server.js"),
    version: () => `Portkey ${portkeyPackage.dependencies["@portkey-ai/gateway"]}, on Bun`,
    ready: /Ready for connections/,
    // By the run time that runs Tollgate: on Node 20 Portkey 1.15.2 answers every stream with 500.
    command: ({ port }) => [bun, peers.portkey.program, `--port=${port}`, "--headless"],
    model: benchModel,
    key,
    headers: ({ nodeAddress }) => ["x-portkey-provider: openai", `x-portkey-custom-host: ${nodeAddress}/v1`],
  },
  litellm: {
    program: join(venv, "litellm"),
    version: () => `LiteLLM ${readFileSync(join(peersFolder, "requirements.txt"), "utf8").split("==")[1]!.trim()}`,
    // Without its log of every request it does not say when it listens, which is soon after this.
    ready: /Set models/,
    command: ({ port }) => [
      ...[peers.litellm.program, "--config", "config.yaml", "--host", "127.0.0.1", "--port", `${port}`],
      // One worker, as it has one core.
      ...["--num_workers", "1", "--telemetry", "False"],
    ],
    // It does not start without a key. Prices come from its package instead of the network.
    env: () => ({ LITELLM_MASTER_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" }),
    files: ({ nodeAddress }) => ({
      "config.yaml": JSON.stringify({
        model_list: [
          {
            model_name: benchModel,
            litellm_params: { model: "hosted_vllm/bench", api_base: `${nodeAddress}/v1`, api_key: "unused" },
          },
        ],
        litellm_settings: { num_retries: 0 },
      }),
    }),
    model: benchModel,
    key,
  },
  gomodel: {
    program: join(programs, "gomodel"),
    version: () => `GoModel ${goVersion(peers.gomodel.program)}`,
    ready: /server started/,
    command: () => [peers.gomodel.program],
    env: ({ folder, port, nodeAddress }) => ({
      PORT: `${port}`,
      GOMODEL_MASTER_KEY: key,
      OPENAI_API_KEY: "unused",
      OPENAI_BASE_URL: `${nodeAddress}/v1`,
      STORAGE_TYPE: "sqlite",
      SQLITE_PATH: join(folder, "gomodel.db"),
      RETRY_MAX_RETRIES: "0",
      CIRCUIT_BREAKER_FAILURE_THRESHOLD: "1000000000",
      USAGE_ENABLED: "false",
      LOGGING_ENABLED: "false",
      METRICS_ENABLED: "false",
      ADMIN_UI_ENABLED: "false",
    }),
    model: "bench", // it asks the node for its models and takes no others
    key,
  },
  bifrost: {
    program: join(programs, "bifrost-http"),
    version: () => `Bifrost ${goVersion(peers.bifrost.program)}`,
    ready: /successfully started bifrost/i,
    command: ({ folder, port }) => [
      ...[peers.bifrost.program, "-app-dir", folder, "-host", "127.0.0.1", "-port", `${port}`],
    ],
    files: ({ nodeAddress }) => ({
      "config.json": JSON.stringify({
        client: { enable_logging: false, drop_excess_requests: false },
        providers: {
          openai: {
            keys: [{ name: "bench", value: "unused", models: ["*"], weight: 1 }],
            network_config: { base_url: nodeAddress, allow_private_network: true, max_retries: 0 },
            concurrency_and_buffer_size: { concurrency: 1_000, buffer_size: 5_000 },
          },
        },
        config_store: { enabled: false },
      }),
    }),
    model: "openai/bench",
    key,
  },
};

/** Routers that people with engines of their own put before them, in Rust: neither keys of accounts nor books. */
function router(name: string, program: string, words: readonly string[]): Peer {
  return {
    program: join(routers, program),
    version() {
      const pins = readFileSync(join(peersFolder, "routers.txt"), "utf8");
      return `${name} ${new RegExp(`^${program}==(.+)$`, "m").exec(pins)![1]}`;
    },
    ready: /Starting (?:server|router|HTTP server)|listening|Router ready|Started/i,
    command: ({ port, metricsPort, nodeAddress }) => [
      ...[join(routers, program), ...words, "--worker-urls", nodeAddress, "--host", "127.0.0.1", "--port", `${port}`],
      ...["--prometheus-port", `${metricsPort}`, "--policy", "round_robin", "--disable-retries", "--log-level", "info"],
    ],
    model: benchModel,
    key,
  };
}

export function isPeer(name: string): name is PeerName {
  return (peerNames as readonly string[]).includes(name);
}

/** Why the peer cannot be measured on this machine, or null when it can. */
export function peerMissing(name: PeerName): string | null {
  return existsSync(peers[name].program) ? null : `not installed (bun bench/peers/install.ts ${name})`;
}

/** What a Go program was built from; one that was not fetched as a module has no version. */
function goVersion(program: string): string {
  const { stdout } = Bun.spawnSync(["go", "version", "-m", program]);
  return /^\s*mod\s+\S+\s+(\S+)/m.exec(stdout.toString())?.[1] ?? "of unknown version";
}

/** Lines for the results in which `names` were measured. */
export function peerNotes(names: readonly string[]): string[] {
  const measured = names.filter(isPeer);
  if (measured.length === 0) return [];
  return [
    `${measured.map((name) => peers[name].version()).join(", ")}: one process on the core that is Tollgate's in its turn, ` +
      "keys not counted, usage not recorded, retries off. Tollgate does all of its accounting.",
  ];
}

/** Starts the peer in front of the node, in a folder of its own. Throws when it does not get ready. */
export async function startPeer(name: PeerName, nodePort: number): Promise<Subject> {
  const peer = peers[name];
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`));
  const run: Run = { folder, port: freePort(), metricsPort: freePort(), nodeAddress: `http://127.0.0.1:${nodePort}` };
  for (const [file, text] of Object.entries(peer.files?.(run) ?? {})) writeFileSync(join(folder, file), text);
  const running = await startProcess({
    role: "proxy",
    command: peer.command(run),
    ready: peer.ready,
    env: peer.env?.(run),
    cwd: folder,
    readyTimeoutMs,
  });
  await listening(run.port);
  return {
    name,
    port: run.port,
    dialect: clientDialects.chat,
    model: peer.model,
    headers: peer.headers?.(run),
    keys: [peer.key],
    pids: processFamily(running.pid),
    async stop() {
      await running.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

const listeningPollMs = 50;

/** Returns when something listens on the port; throws after 30 s. */
async function listening(port: number): Promise<void> {
  for (const untilMs = performance.now() + 30_000; ;) {
    try {
      (await Connection.open(port)).close();
      return;
    } catch (thrown) {
      if (performance.now() > untilMs) throw thrown;
      await Bun.sleep(listeningPollMs);
    }
  }
}
