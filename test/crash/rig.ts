// Kills the gateway with SIGKILL at random moments under load, starts it again on the same folder, and compares what
// is on disk with what the clients saw. The expected charges are computed here from the usage that a client was given
// and the specification's prices; nothing of the gateway's own arithmetic is used.
import type { AccountState, UsageRow } from "../fixtures/gateway-process.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

export type CrashOptions = Readonly<{ rounds: number; seed: number; clients: number; accounts: number }>;

export type CrashReport = Readonly<{
  rounds: number;
  seed: number;
  killsWhileStarting: number;
  requests: number;
  /** Replies that a client received to their end. */
  complete: number;
  /** Requests that had a reply's head and were cut. */
  cut: number;
  rows: number;
  /** Charges of requests whose client did not see the end: on disk before the crash, as they may be. */
  chargedUnseen: number;
  /** Every contradiction, in words; empty when all is well. */
  wrong: readonly string[];
}>;

/** Cents per million tokens: flat, or [input, cached input, output]. A cached token costs a tenth, rounded up. */
const prices: Readonly<Record<string, number | readonly [number, number, number]>> = {
  "core-3": 335,
  "core-1.6-pro": 780,
  "core-2-pro": 585,
  "open-01-3BIT-REAP": [195, 20, 390],
  "open-03-3BIT-REAP": [383, 39, 1912],
  "open-05-3BIT-REAP": [50, 5, 200],
  "open-09-W4A16-AUTOROUND-REAP": [142, 15, 607],
};
const models = Object.keys(prices);
const creditTokens = 100_000_000;

type Seen = Readonly<{ model: string; complete: boolean; usage: SeenUsage | null }>;
type SeenUsage = {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
};

/** Everything that the clients of one account know. */
type Oracle = {
  email: string;
  key: string;
  /** By request id. */
  seen: Map<string, Seen>;
  /** Requests that were cut before their id came. */
  anonymous: number;
};

export async function crash({ rounds, seed, clients, accounts }: CrashOptions): Promise<CrashReport> {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const wrong: string[] = [];
  let requests = 0;
  let killsWhileStarting = 0;

  await using node = await ScriptedNode.start();
  const scriptCount = 8;
  for (let i = 0; i < scriptCount; i++) {
    const prompt = 1 + below(3_000);
    const output = 1 + below(500);
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: prompt + output,
      prompt_tokens_details: { cached_tokens: below(prompt + 1) },
    };
    const steps = [...text("a "), { waitMs: below(40) }, ...text("b ", "c "), { waitMs: below(40) }];
    await node.define(`crash-${i}`, once(steps, finish("stop", usage)));
  }
  await using gateway = await GatewayProcess.start({ config: nodeTable(node, 1_000) });
  const oracles: Oracle[] = [];
  for (let i = 0; i < accounts; i++) {
    const { email, api_key } = await gateway.account(creditTokens);
    oracles.push({ email, key: api_key, seen: new Map(), anonymous: 0 });
  }

  for (let round = 1; round <= rounds; round++) {
    const running = new AbortController();
    const load = Array.from({ length: clients }, (_, i) => client(oracles[i % accounts]!, running.signal));
    await Bun.sleep(200 + below(1_200));
    await gateway.kill("SIGKILL");
    running.abort();
    await Promise.all(load);
    if (random() < 0.25) {
      killsWhileStarting++;
      await gateway.crashWhileStarting(below(250));
    }
    await gateway.restart();
    const everything = round % 10 === 0 || round === rounds;
    for (const oracle of everything ? oracles : [oracles[below(accounts)]!]) await verify(oracle, round);
  }

  const rows = await rowsOfAll();
  const seen = oracles.flatMap((oracle) => [...oracle.seen.values()]);
  return {
    rounds,
    seed,
    killsWhileStarting,
    requests,
    complete: seen.filter(({ complete }) => complete).length,
    cut: seen.filter(({ complete }) => !complete).length,
    rows,
    chargedUnseen: rows - seen.filter(({ complete }) => complete).length,
    wrong,
  };

  async function rowsOfAll(): Promise<number> {
    let count = 0;
    for (const { email } of oracles) count += (await gateway.usage(email, 1_000_000)).length;
    return count;
  }

  /** One client: asks again and again until the gateway is gone, and logs what it saw. */
  async function client(oracle: Oracle, gone: AbortSignal): Promise<void> {
    while (!gone.aborted) {
      const model = models[below(models.length)]!;
      const stream = random() < 0.5;
      requests++;
      let reply: Response;
      try {
        reply = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${oracle.key}` },
          body: JSON.stringify({
            model,
            stream,
            max_tokens: 1_000,
            messages: [{ role: "user", content: `[[crash-${below(scriptCount)}]]` }],
          }),
        });
      } catch {
        oracle.anonymous++;
        return; // the gateway was killed
      }
      const id = reply.headers.get("x-request-id") ?? "";
      const body = await readUntilCut(reply);
      if (reply.status === 429) return; // the account's window is used up; the others go on
      if (reply.status !== 200) {
        wrong.push(`a request was answered ${reply.status}: ${body.slice(0, 200)}`);
        return;
      }
      const usage = usageOf(body, stream);
      if (oracle.seen.has(id)) wrong.push(`two replies carry the id ${id}`);
      oracle.seen.set(id, { model, complete: usage !== null, usage });
      if (usage === null) return;
    }
  }

  async function verify(oracle: Oracle, round: number): Promise<void> {
    const rows = await gateway.usage(oracle.email, 1_000_000);
    const state = await gateway.show(oracle.email);
    for (const sentence of contradictions(oracle, rows, state))
      wrong.push(`round ${round}, ${oracle.email}: ${sentence}`);
  }
}

/** What does not fit between an account's clients, its usage rows and its balance. */
export function contradictions(oracle: Oracle, rows: readonly UsageRow[], state: AccountState): string[] {
  const wrong: string[] = [];
  const byId = Map.groupBy(rows, ({ request_id }) => request_id);
  for (const [id, { length }] of byId) if (length > 1) wrong.push(`${id} was charged ${length} times`);
  for (const [id, { complete, usage }] of oracle.seen) {
    const row = byId.get(id)?.[0];
    if (complete && row === undefined) wrong.push(`${id} was seen complete and has no charge`);
    if (row !== undefined && usage !== null) {
      const cached = usage.prompt_tokens_details?.cached_tokens;
      const told = [usage.prompt_tokens, usage.completion_tokens, cached ?? row.cached_input];
      const written = [row.input, row.output, row.cached_input];
      if (told.join() !== written.join()) wrong.push(`${id}: the client was told ${told}, on disk is ${written}`);
    }
  }
  const unknown = rows.filter(({ request_id }) => !oracle.seen.has(request_id)).length;
  if (unknown > oracle.anonymous) wrong.push(`${unknown} charges, but only ${oracle.anonymous} requests without an id`);

  let total = 0;
  for (const row of rows) {
    const expected = billedTokens(row);
    if (row.billed_tokens !== expected)
      wrong.push(`${row.request_id}: billed ${row.billed_tokens}, expected ${expected}`);
    total += expected;
  }
  if (state.reserved !== 0) wrong.push(`${state.reserved} tokens are reserved`);
  const { granted, left } = state.allowance;
  // the allowance is spent first; a run over midnight (UTC) has had two
  const overMidnight = rows.some((row) => row.time.slice(0, 10) !== state.allowance.day);
  const fromAllowance = overMidnight ? null : Math.min(total, granted);
  if (fromAllowance !== null && granted - left !== fromAllowance) {
    wrong.push(`${granted - left} of the allowance are spent, expected ${fromAllowance}`);
  }
  if (fromAllowance !== null && creditTokens - state.credit !== total - fromAllowance) {
    wrong.push(`${creditTokens - state.credit} of the credit are spent, expected ${total - fromAllowance}`);
  }
  return wrong;
}

/** Whole balance tokens, half up, once a reply; $5.00 are 1,000,000 tokens. */
function billedTokens({ model, input, cached_input, output }: UsageRow): number {
  const price = prices[model];
  if (price === undefined) throw new Error(`no price for ${model}`);
  const tokenCents =
    typeof price === "number"
      ? (input + output) * price
      : (input - cached_input) * price[0] + cached_input * price[1] + output * price[2];
  return Number((2n * BigInt(tokenCents) + 500n) / 1_000n);
}

/** What arrived before the connection broke, if it did. */
async function readUntilCut(reply: Response): Promise<string> {
  const decoder = new TextDecoder();
  let body = "";
  try {
    for await (const bytes of reply.body ?? []) body += decoder.decode(bytes, { stream: true });
  } catch {
    // cut: the gateway was killed in the middle of this reply
  }
  return body;
}

/** The usage of a reply that is complete to its last byte, else null. */
function usageOf(body: string, stream: boolean): SeenUsage | null {
  if (stream) {
    if (!body.endsWith("data: [DONE]\n\n")) return null;
    const last = body.trimEnd().split("\n\n").at(-2) ?? "";
    return (JSON.parse(last.slice("data: ".length)) as { usage: SeenUsage }).usage;
  }
  try {
    return (JSON.parse(body) as { usage: SeenUsage }).usage;
  } catch {
    return null; // half a JSON document
  }
}

/** Mulberry32: small, seeded, good enough to choose moments. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
