// Do people notice a batch? The first tokens of clients who chat, alone and beside a batch, on an engine-like node; and how many of
// the slots that a batch may have it uses.
//
//   bun bench/batch.ts [--clients 12 --seconds 40] [--quick]
import { benchModel, clientDialects } from "./dialect.ts";
import { startEngineLikeNode, usualEngine } from "./engine-like-node.ts";
import { readFlags } from "./flags.ts";
import { startGateway } from "./gateway.ts";
import { keepResult } from "./result.ts";
import { percentile } from "./statistics.ts";

const flags = readFlags(
  { clients: 12, seconds: 40, warmUpSeconds: 5, thinkMs: 2_000, slots: 48, tokens: usualEngine.tokens },
  { seconds: 3, warmUpSeconds: 1 },
);
/** More than it can end. */
const lines = 20_000;

const node = await startEngineLikeNode({ ...usualEngine, runs: flags.slots, tokens: flags.tokens });
const gateway = await startGateway({
  nodePort: 0,
  dialect: clientDialects.chat,
  requests: 120 * (flags.clients + 1),
  fleet: [{ port: node.port, slots: flags.slots }],
});
const [batchKey, ...keys] = gateway.keys;
const at = `http://127.0.0.1:${gateway.port}`;
const messages = (content: string) => [{ role: "user", content }];

/** `chatting`: of those that run on the node, the chats. */
type Measured = Readonly<{ firstMs: readonly number[]; running: readonly number[]; chatting: readonly number[] }>;

async function measure(): Promise<Measured> {
  const firstMs: number[] = [];
  const running: number[] = [];
  const chatting: number[] = [];
  let open = 0;
  const countedFrom = performance.now() + flags.warmUpSeconds * 1_000;
  const endsAt = countedFrom + flags.seconds * 1_000;
  const ask = async (client: number, turn: number): Promise<void> => {
    const askedAt = performance.now();
    const reply = await fetch(`${at}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys[client % keys.length]}`, "x-priority": "interactive" },
      body: JSON.stringify({
        model: benchModel,
        stream: true,
        max_tokens: flags.tokens,
        messages: messages(`Client ${client} asks for the ${turn}th time.`),
      }),
    });
    let text = "";
    let isFirst = true;
    for await (const bytes of reply.body!) {
      text = (text + Buffer.from(bytes).toString()).slice(-200);
      if (!isFirst || !/"content":"[^"]/.test(text)) continue;
      isFirst = false;
      open += 1;
      if (askedAt >= countedFrom) firstMs.push(performance.now() - askedAt);
    }
    open -= 1;
    if (!text.includes("[DONE]")) throw new Error(`a reply broke off: ${text}`);
  };
  const client = async (number: number): Promise<void> => {
    await Bun.sleep((number / flags.clients) * flags.thinkMs);
    for (let turn = 1; performance.now() < endsAt; turn++) {
      await ask(number, turn);
      await Bun.sleep(flags.thinkMs * (0.5 + ((number * 7 + turn * 13) % 100) / 100));
    }
  };
  const look = async (): Promise<void> => {
    for (; performance.now() < endsAt; await Bun.sleep(100)) {
      const metrics = await (await fetch(`http://127.0.0.1:${node.port}/metrics`)).text();
      const now = Number(/num_requests_running\S* (\d+)/.exec(metrics)![1]);
      if (performance.now() < countedFrom) continue;
      running.push(now);
      chatting.push(open);
    }
  };
  await Promise.all([look(), ...Array.from({ length: flags.clients }, (_none, number) => client(number))]);
  return { firstMs, running, chatting };
}

async function beginBatch(): Promise<string> {
  const requests = Array.from({ length: lines }, (_none, line) => ({
    custom_id: `line-${line}`,
    params: { model: benchModel, max_tokens: flags.tokens, messages: messages(`line ${line}`) },
  }));
  const made = await fetch(`${at}/v1/messages/batches`, {
    method: "POST",
    headers: { "x-api-key": batchKey! },
    body: JSON.stringify({ requests }),
  });
  if (!made.ok) throw new Error(await made.text());
  return ((await made.json()) as { id: string }).id;
}

const rows: string[][] = [];
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const row = (name: string, { firstMs, running }: Measured): void => {
  const ms = (share: number): string => percentile(firstMs, share).toFixed(0);
  rows.push([name, `${firstMs.length}`, ms(0.5), ms(0.99), mean(running).toFixed(1)]);
  console.log(rows.at(-1)!.join("  "));
};
const alone = await measure();
row("alone", alone);
const id = await beginBatch();
const beside = await measure();
row("beside a batch", beside);
const batch = (await (
  await fetch(`${at}/v1/messages/batches/${id}`, { headers: { "x-api-key": batchKey! } })
).json()) as {
  request_counts: { succeeded: number };
};
await gateway.stop();
await node.stop();
/** What a batch may have, which leaves a quarter of the slots to others. */
const share = (mean(beside.running) - mean(beside.chatting)) / Math.floor(flags.slots * 0.75);
const times = (part: number): string => (percentile(beside.firstMs, part) / percentile(alone.firstMs, part)).toFixed(2);
console.log(
  `${batch.request_counts.succeeded} lines; ${(100 * share).toFixed(0)} % of the slots that a batch may have; first token ` +
    `${times(0.5)} (p50) and ${times(0.99)} (p99) times that of the same run without`,
);
await keepResult({
  bench: "batch",
  variant: "",
  question: `${flags.clients} people chat: when is the first token there, alone and beside a batch?`,
  columns: ["", "answers", "p50 ms", "p99 ms", "requests on the node"],
  rows,
  chart: null,
  failures: 0,
  notes: [
    `An engine-like node of ${flags.slots} slots. Batches leave a quarter of the slots to others, and use`,
    `${(100 * share).toFixed(0)} % of the rest; p99 beside the batch is ${times(0.99)} times that without.`,
  ],
});
