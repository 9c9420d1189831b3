// The ways over HTTP: Tollgate, other routers and nginx before the simulated engines, one after the other.
import { floodRequestsMax } from "../../src/core/limits.ts";
import { clientDialects } from "../dialect.ts";
import { startGateway } from "../gateway.ts";
import { nginxMissing, startNginx } from "../nginx.ts";
import { peerMissing, type PeerName, startPeer } from "../peers.ts";
import { bun, startProcess } from "../process.ts";
import type { Subject } from "../subject.ts";
import { type Replay, traceOf } from "./replay.ts";
import { usualModel } from "./traces.ts";
import type { Row } from "./world.ts";

type Way = Readonly<{
  missing(): string | null;
  start(nodePorts: readonly number[], accounts: number): Promise<Subject>;
}>;

const router = (name: PeerName, policy: string): Way => ({
  missing: () => peerMissing(name),
  start: (nodePorts) => {
    const addresses = nodePorts.map((port) => `http://127.0.0.1:${port}`);
    return startPeer(name, nodePorts[0]!, { addresses, policy });
  },
});

/** As people configure it who share a cache; requests a minute are a matter of plans, not of nodes. */
const configuration = (nodePorts: readonly number[]): string =>
  `[server]
share_prefix_cache = true

[[plans]]
id = "free"
unlimited = true
requests_per_minute = 1000000
priority_max = "interactive"
${nodePorts.map((port, at) => `\n[[nodes]]\nname = "node-${at}"\nurl = "http://127.0.0.1:${port}/v1"\n`).join("")}`;

/** By the names of the results. */
export const ways: Readonly<Record<string, Way>> = {
  tollgate: {
    missing: () => null,
    start: (nodePorts, accounts) => {
      const requests = accounts * floodRequestsMax;
      return startGateway({ nodePort: 0, dialect: clientDialects.chat, requests, config: configuration(nodePorts) });
    },
  },
  smg: router("smg", "cache_aware"),
  "vllm-router": router("vllm-router", "cache_aware"),
  "vllm-router by session": router("vllm-router", "consistent_hash"),
  nginx: { missing: nginxMissing, start: (nodePorts) => startNginx(...nodePorts) },
};

/** After the start, until a gateway has asked its nodes what they are. */
const settleMs = 3_000;

export type Run = Readonly<{
  rows: readonly Row[];
  /** How late the engines' steps ended on average. */ latenessMs: number;
}>;

/** Starts the engines and the way, replays the trace, and stops them. */
export async function runOver(way: Way, given: Omit<Replay, "port" | "model" | "keys" | "controlPort">): Promise<Run> {
  const nothing = { port: 0, model: usualModel, keys: {}, controlPort: 0 };
  const { nodes, sessions } = traceOf({ ...given, ...nothing });
  const speeds = nodes.map(({ speed }) => speed).join(",");
  const engines = await startProcess({
    role: "node",
    command: [bun, `${import.meta.dir}/nodes.ts`, "--speeds", speeds],
    ready: /listening on ([\d ]+)/,
  });
  try {
    const ports = engines.ready[1]!.trim().split(" ").map(Number);
    const controlPort = ports.pop()!;
    const accounts = [...new Set(sessions.map(({ account }) => account))];
    const subject = await way.start(ports, accounts.length);
    try {
      await Bun.sleep(settleMs);
      const keys = Object.fromEntries(accounts.map((name, at) => [name, subject.keys[at % subject.keys.length]!]));
      const replay: Replay = { ...given, ...nothing, controlPort, keys, port: subject.port };
      const client = Bun.spawn([bun, `${import.meta.dir}/replay.ts`, JSON.stringify(replay)], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "60000" },
      });
      const rows = JSON.parse(await new Response(client.stdout).text()) as Row[];
      const lateness = await fetch(`http://127.0.0.1:${controlPort}/lateness`);
      return { rows, latenessMs: (await lateness.json()) as number };
    } finally {
      await subject.stop();
    }
  } finally {
    await engines.stop();
  }
}
