// What does a turn of a conversation cost over a WebSocket, against a POST request for each? The same run measures all
// ways in turn, so that their ratio holds on a busy machine too.
//
//   bun bench/sockets.ts [--turns 20] [--conversations 12] [--bytes 2000]
import { tokenBytesMin } from "./answer.ts";
import { benchModel } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { keepResult } from "./result.ts";
import { median } from "./statistics.ts";
import { shuffled } from "./subject.ts";

const flags = readFlags({
  /** Turns of a conversation, and conversations each way. */
  turns: 20,
  conversations: 12,
  /** Of what the user says in each turn. */
  bytes: 2_000,
});
const ways = ["POST, whole conversation", "POST, stored", "WebSocket, not stored", "WebSocket, stored"] as const;
type Turn = (body: object) => Promise<{ id: string; output: readonly object[] }>;

const lineup = await startLineup({
  node: { tokens: 8, tokenBytes: tokenBytesMin, intervalMs: 0 },
  only: "tollgate",
  dialect: "responses",
  requests: flags.turns * flags.conversations * ways.length,
});
const { port, keys } = lineup.subjects[0]!;
const times = new Map<string, number[]>(ways.map((way) => [way, []]));
let begun = 0;
for (let round = 0; round < flags.conversations; round++) {
  for (const way of shuffled(ways)) times.get(way)!.push(...(await converse(way, keys[begun++ % keys.length]!)));
}
await lineup.stop();

const base = median(times.get(ways[0])!);
await keepResult({
  bench: "sockets",
  variant: "",
  question: "What does a turn cost over a WebSocket, against a POST request?",
  columns: ["way", "median of a turn, ms", "of a POST with the whole conversation"],
  rows: ways.map((way) => {
    const middle = median(times.get(way)!);
    return [way, middle.toFixed(2), `${((100 * middle) / base).toFixed(0)} %`];
  }),
  chart: null,
  failures: 0,
  notes: [
    `Conversations of ${flags.turns} turns, each with ${flags.bytes} bytes from the user and an answer of 8 tokens.`,
  ],
});

/** Milliseconds of each turn from its request to its last event. */
async function converse(way: (typeof ways)[number], key: string): Promise<number[]> {
  const taken: number[] = [];
  const items: object[] = [];
  let previousId: string | null = null;
  using connection = way.startsWith("POST") ? posts(key) : await socket(key);
  for (let turn = 0; turn < flags.turns; turn++) {
    const said = { role: "user", content: `${turn} `.padEnd(flags.bytes, "word ") };
    items.push(said);
    const continued = { input: [said], previous_response_id: previousId };
    const from = performance.now();
    const response = await connection.turn({
      model: benchModel,
      store: way.endsWith(", stored"),
      ...(way === ways[0] ? { input: items } : continued),
    });
    taken.push(performance.now() - from);
    items.push(...response.output);
    previousId = response.id;
  }
  return taken;
}

function posts(key: string): Disposable & { turn: Turn } {
  const turn: Turn = async (body) => {
    const reply = await fetch(`http://127.0.0.1:${port}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...body, stream: true }),
    });
    const events = (await reply.text()).split("\n").filter((line) => line.startsWith("data: {"));
    return endOf(events.map((line) => line.slice("data: ".length)));
  };
  return { turn, [Symbol.dispose]: () => {} };
}

async function socket(key: string): Promise<Disposable & { turn: Turn }> {
  const options = { headers: { authorization: `Bearer ${key}` } };
  const open = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, options as never);
  await new Promise((resolve) => (open.onopen = resolve));
  const turn: Turn = (body) =>
    new Promise((resolve) => {
      const events: string[] = [];
      open.onmessage = ({ data }) => {
        events.push(data as string);
        if (/^\{"type":"(?:response\.(?:completed|failed|incomplete)|error)"/.test(data as string))
          resolve(endOf(events));
      };
      open.send(JSON.stringify({ type: "response.create", ...body }));
    });
  return { turn, [Symbol.dispose]: () => open.close() };
}

/** Every event is parsed, as clients do. */
function endOf(events: readonly string[]): { id: string; output: readonly object[] } {
  const last = events.map((event) => JSON.parse(event) as { type: string; response: never }).at(-1)!;
  if (last.type !== "response.completed") throw new Error(`a turn ended with ${JSON.stringify(last)}`);
  return last.response;
}
