// How soon do clients get their first token from two unequal nodes, with slots that follow the engines' load and with fixed
// ones? The nodes have limits of their own, as engines have: see engine-like-node.ts.
//
//   bun bench/auto-slots.ts [--clients 200 --seconds 40] [--quick]
//   bun bench/auto-slots.ts --engine http://127.0.0.1:8080 --clients 12 --tokens 40      a real engine in their place
import { floodRequestsMax } from "../src/core/limits.ts";
import { clientDialects, benchModel } from "./dialect.ts";
import { startEngineLikeNode, usualEngine } from "./engine-like-node.ts";
import { readFlags } from "./flags.ts";
import { startGateway } from "./gateway.ts";
import { keepResult } from "./result.ts";
import { percentile } from "./statistics.ts";

const flags = readFlags(
  {
    clients: 200,
    seconds: 40,
    warmUpSeconds: 8,
    thinkMs: 6_000,
    accounts: 100,
    tokens: usualEngine.tokens,
    engine: "",
  },
  { clients: 20, seconds: 2, warmUpSeconds: 1, thinkMs: 200, accounts: 10 },
);

type Slots = number | "auto";
type Measured = Readonly<{ firstMs: readonly number[]; perSecond: number; failures: number }>;

/** Clients that ask, read the reply, think for a while and ask again. */
async function measure(port: number, keys: readonly string[], thinkMs: number): Promise<Measured> {
  const firstMs: number[] = [];
  let [ended, failures] = [0, 0];
  const beganAt = performance.now();
  const countedFrom = beganAt + flags.warmUpSeconds * 1_000;
  const endsAt = countedFrom + flags.seconds * 1_000;

  const ask = async (client: number, turn: number): Promise<void> => {
    const askedAt = performance.now();
    const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys[client % keys.length]}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: benchModel,
        stream: true,
        max_tokens: flags.tokens,
        messages: [{ role: "user", content: `Client ${client} asks for the ${turn}th time.` }],
      }),
    });
    let isFirst = true;
    let text = "";
    for await (const bytes of reply.body!) {
      text = (text + Buffer.from(bytes).toString()).slice(-200);
      if (isFirst && /"(?:content|reasoning_content)":"[^"]/.test(text)) {
        isFirst = false;
        // Nobody is cut off at the end: those who wait longest would not count.
        if (askedAt >= countedFrom) firstMs.push(performance.now() - askedAt);
      }
    }
    if (!text.includes("[DONE]")) failures += 1;
    else if (performance.now() >= countedFrom && performance.now() < endsAt) ended += 1;
  };
  const client = async (number: number): Promise<void> => {
    // They do not begin all at once.
    await Bun.sleep((number / flags.clients) * Math.max(thinkMs, 1_000));
    for (let turn = 1; performance.now() < endsAt; turn++) {
      await ask(number, turn);
      // Spread, and the same at each run.
      await Bun.sleep(Math.min(endsAt - performance.now(), thinkMs * (0.5 + ((number * 7 + turn * 13) % 100) / 100)));
    }
  };
  await Promise.all(Array.from({ length: flags.clients }, (_none, number) => client(number)));
  return { firstMs, perSecond: ended / flags.seconds, failures };
}

async function fleets() {
  if (flags.engine !== "") {
    const port = Number(new URL(flags.engine).port);
    return { ports: [port], choices: [[64], [4], ["auto"]] as Slots[][], stop: async () => {} };
  }
  const large = await startEngineLikeNode({ ...usualEngine, tokens: flags.tokens });
  const small = await startEngineLikeNode({ ...usualEngine, tokens: flags.tokens, runs: 8, stepMs: 30 });
  return {
    ports: [large.port, small.port],
    choices: [
      [64, 64],
      [16, 16],
      [48, 8],
      ["auto", "auto"],
    ] as Slots[][],
    stop: async () => void (await Promise.all([large.stop(), small.stop()])),
  };
}

const { ports, choices, stop } = await fleets();
const rows: string[][] = [];
let failures = 0;
for (const [load, thinkMs] of [
  ["all ask again at once", 0],
  [`they think ${flags.thinkMs / 1_000} s`, flags.thinkMs],
] as const) {
  for (const slots of choices) {
    const fleet = ports.map((port, index) => ({ port, slots: slots[index]! }));
    const requests = flags.accounts * floodRequestsMax;
    const gateway = await startGateway({ nodePort: 0, dialect: clientDialects.chat, requests, fleet });
    const measured = await measure(gateway.port, gateway.keys, thinkMs);
    await gateway.stop();
    failures += measured.failures;
    const ms = (share: number): string => percentile(measured.firstMs, share).toFixed(0);
    rows.push([load, slots.join(" and "), ms(0.5), ms(0.9), ms(0.99), measured.perSecond.toFixed(1)]);
    console.log(rows.at(-1)!.join("  "));
  }
}
await stop();
await keepResult({
  bench: "auto-slots",
  variant: flags.engine === "" ? "" : "engine",
  question:
    flags.engine === ""
      ? `${flags.clients} clients on two unequal nodes: how soon is the first token there?`
      : `${flags.clients} clients on a real engine: how soon is the first token there?`,
  columns: ["clients", "slots", "p50 ms", "p90 ms", "p99 ms", "replies/s"],
  rows,
  chart: null,
  failures,
  notes:
    flags.engine === ""
      ? [
          "One node runs 48 requests at once, the other 8 with steps of twice the time; what they get beyond that waits in",
          `them. ${flags.accounts} accounts; the first ${flags.warmUpSeconds} s are not counted.`,
        ]
      : [],
});
