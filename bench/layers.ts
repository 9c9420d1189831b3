// Where does the CPU time of a short request go, layer by layer?
//
//   bun bench/layers.ts [--requests 2000] [--rounds 15] [--connections 64] [--dialect messages] [--quick]
//
// Each layer is a server of its own with the real classes up to it and a substitute behind it. All are measured in turn.
import { join } from "node:path";
import { Admission } from "../src/account/money/admission.ts";
import { Flood } from "../src/account/money/flood.ts";
import { Keys } from "../src/account/people/keys.ts";
import { Ledger } from "../src/account/money/ledger.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { systemClock } from "../src/core/clock.ts";
import { queueMaxWaitMs } from "../src/core/limits.ts";
import { refuse } from "../src/core/refusals.ts";
import { defaultKey, type Ending, type Hold, noUsage, type Principal, type Slot } from "../src/core/types.ts";
import { startServer, type ServerOptions, type ServerParts } from "../src/http/app.ts";
import { jsonReply } from "../src/http/reply.ts";
import type { Dial, SocketListener } from "../src/nodes/client/dial.ts";
import { NodePool } from "../src/nodes/queue/pool.ts";
import { BatchingJournal, type Storage } from "../src/store/ledger/journal.ts";
import { SqliteRecords } from "../src/store/ledger/sqlite-records.ts";
import { openForReading } from "../src/store/open.ts";
import { answerJson, answerText } from "./answer.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { clientDialects, dialectNamed } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { wholeAnswer, startPacedNode } from "./paced-node.ts";
import { placeClient } from "./placement.ts";
import { bun, startProcess } from "./process.ts";
import { runClosedLoop } from "./request-client.ts";
import { keepResult } from "./result.ts";
import { median } from "./statistics.ts";
import type { Subject } from "./subject.ts";

const answer = { tokens: 8, tokenBytes: 100 };

const layers = [
  "the runtime: a route and a fixed reply",
  "+ our routes: key read, refused (401)",
  "+ body, JSON, dialect: refused (busy)",
  "+ spine and reply: pieces that are there",
  "+ keys, flood windows, ledger; no disk",
  "+ line, node's request, its answer read; no socket",
  "+ the socket to the node",
  "+ the journal on disk: the gateway",
] as const;
const whole = layers.length - 1;

/** Serves one layer until it is ended. */
function serveLayer(layer: number, nodePort: number, databaseFile: string): number {
  const fixed = answerJson(answer);
  if (layer === 0) {
    const reply = () => jsonReply(fixed, "req_0");
    const routes = Object.fromEntries(Object.values(clientDialects).map(({ path }) => [path, { POST: reply }]));
    return Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, routes }).port!;
  }
  const clock = systemClock;
  const catalog = embeddedCatalog();
  const somebody: Principal = { account: 1, key: defaultKey, limits: null };
  const records = new SqliteRecords(openForReading(databaseFile));
  const ledger = new Ledger(records, catalog.plans);
  const admission = new Admission(ledger, new Flood(), new BatchingJournal(noDisk, ledger, clock), "http://127.0.0.1");
  const pool = new NodePool(
    [{ name: "bench", url: `http://127.0.0.1:${nodePort}/v1`, apiKey: null, slots: 20_000, models: { "*": "bench" } }],
    { clock, queueMaxWaitMs, log: () => {}, looks: false, ...(layer >= 6 ? {} : { dial: noSocket }) },
  );
  const parts = {
    keys: layer >= 4 ? new Keys(records, ledger) : { principal: () => (layer === 1 ? null : somebody) },
    admission:
      layer >= 4
        ? admission
        : { ...noAdmission, admit: () => (layer === 2 ? refuse("busy", { seconds: 1 }) : freeHold()) },
    pool: layer >= 5 ? pool : { enter: () => readySlot },
    catalog,
    clock,
    storedResponses: null,
    log: () => {},
  } as unknown as ServerParts;
  const options = { host: "127.0.0.1", port: 0, sealingKey: new Uint8Array(32), counts: {} };
  return Number(new URL(startServer(parts, options as unknown as ServerOptions).url).port);
}

const noAdmission = { countRequest: () => null, refuseFlooded: () => null, refuseModel: () => null };

const freeHold = (): Hold => ({ ready: null, settle: (usage) => Promise.resolve(usage), [Symbol.dispose]() {} });

const readySlot: Slot = {
  nodeName: "bench",
  alike: () => new Set(),
  async run(_ask, _account, _cancelSignal, sink, began): Promise<Ending> {
    began?.();
    sink.piece({ kind: "text", literal: readyText, logprobs: null });
    void sink.flush();
    const usage = { ...noUsage, inputFresh: 16, output: answer.tokens };
    return { kind: "end", reason: "stop", stopSequence: null, usage, estimated: false };
  },
  [Symbol.dispose]() {},
};
const readyText = JSON.stringify(answerText(answer));

/** Takes every batch at once. */
const noDisk: Storage = {
  writable: true,
  commit: (_batch, _patienceMs, resolved) => void setImmediate(() => resolved("committed")),
  close: () => Promise.resolve(),
};

/** Connections on which the answer is there as soon as the request is. */
const noSocket: Dial = (_origin, listener: SocketListener) => {
  const reply = wholeAnswer({ ...answer, intervalMs: 0 });
  const socket = {
    fd: -1,
    write(_bytes: unknown, _from: number, length: number) {
      setImmediate(() => listener.received(Buffer.from(reply)));
      return length;
    },
    pause() {},
    resume() {},
    terminate() {},
  };
  setImmediate(() => listener.opened(socket as never));
};

const defaults = { requests: 2_000, rounds: 15, connections: 64, dialect: "chat", serve: 0, node: 0, database: "" };

if (import.meta.main) {
  const flags = readFlags(defaults, { requests: 200, rounds: 1, connections: 8 });
  if (flags.database === "") await measure(flags);
  else console.log(`listening on ${serveLayer(flags.serve, flags.node, flags.database)}`);
}

async function measure({ requests, rounds, connections, dialect: name }: typeof defaults): Promise<void> {
  placeClient();
  const node = await startPacedNode({ ...answer, intervalMs: 0 });
  const dialect = clientDialects[dialectNamed(name)];
  const gateway: Gateway = await startGateway({ nodePort: node.port, dialect, requests: (rounds + 8) * requests });
  const subjects: Subject[] = [];
  for (let layer = 0; layer < whole; layer++) {
    const running = await startProcess({
      role: "proxy",
      command: [
        bun,
        import.meta.path,
        ...["--serve", `${layer}`, "--node", `${node.port}`],
        "--database",
        join(gateway.dataFolder, "tollgate.db"),
      ],
      ready: /listening on (\d+)/,
    });
    const { keys } = gateway;
    subjects.push({ ...gateway, port: Number(running.ready[1]), keys, pids: [running.pid], stop: running.stop });
  }
  subjects.push(gateway);
  const costs: number[][] = subjects.map(() => []);
  for (let round = -2; round < rounds; round++) {
    const order = subjects.map((_subject, layer) => layer);
    if (round % 2 !== 0) order.reverse();
    for (const layer of order) {
      const subject = subjects[layer]!;
      const timer = startCpuTimer(subject.pids);
      const { complete, failures } = await runClosedLoop(subject, { requests, answer, promptBytes: 900 }, connections);
      const us = timer.elapsedMicroseconds() / requests;
      const isRefused = layer === 1 || layer === 2;
      if ((isRefused ? failures.length : complete) !== requests) throw new Error(`${layers[layer]}: ${failures[0]}`);
      if (round >= 0) costs[layer]!.push(us);
    }
  }
  for (const subject of subjects) await subject.stop();
  await node.stop();
  const differences = costs.map((all, layer) => median(all.map((us, round) => us - (costs[layer - 1]?.[round] ?? 0))));
  await keepResult({
    bench: "layers",
    variant: name === "chat" ? "" : name,
    question: `CPU time of a short request by layer, ${name}`,
    columns: ["layer", "us/request, median", "more than the one before, median"],
    rows: layers.map((layer, at) => [layer, median(costs[at]!).toFixed(1), differences[at]!.toFixed(1)]),
    chart: null,
    failures: 0,
    notes: [
      `${connections} connections, ${rounds} rounds of ${requests} requests of each layer, in turn. All threads of the ` +
        "process count. Each layer has the real classes up to it; what is behind it answers at once.",
    ],
  });
}
