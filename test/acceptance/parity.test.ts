// The same content costs the same in every dialect, streamed or not: in the ledger and in what the client is told.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { dialects, toolsOf, weather } from "../fixtures/dialects.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { exchange } from "../fixtures/requests.ts";
import { callArguments, callStart, finish, once, reasoning, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

/** Each content is asked for six times; the longer form has 500 contents. */
const contents = longForm ? 500 : 40;
/** One account may send 120 requests a minute. */
const contentsPerAccount = 20;
const seed = Number(process.env["TOLLGATE_SEED"] ?? Date.now());

const stack = useStack();

/** What a node may answer: its pieces and the usage that it reports. */
const content = fc.record({
  model: fc.constantFrom("core-3", "core-2-pro", "open-03-3BIT-REAP", "open-05-3BIT-REAP"),
  thought: fc.array(fc.string({ maxLength: 8 }), { maxLength: 3 }),
  /** None: the client is shown nothing, or a thought that it did not ask for. */
  words: fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 4 }),
  call: fc.boolean(),
  cut: fc.boolean(),
  prompt: fc.integer({ min: 20, max: 50_000 }),
  cachedShare: fc.integer({ min: 0, max: 20 }),
  output: fc.integer({ min: 10, max: 4_000 }),
  reasoning: fc.integer({ min: 0, max: 10 }),
});
type Content = typeof content extends fc.Arbitrary<infer Value> ? Value : never;

async function askInEveryWay(account: Account, given: Content, name: string): Promise<string[]> {
  const usage = {
    prompt_tokens: given.prompt,
    completion_tokens: given.output,
    total_tokens: given.prompt + given.output,
    prompt_tokens_details: { cached_tokens: given.cachedShare },
    completion_tokens_details: { reasoning_tokens: given.reasoning },
  };
  const call = given.call ? [callStart(0, "call_1", "bash"), ...callArguments(0, '{"command":', '"ls"}')] : [];
  const reason = given.cut ? "length" : given.call ? "tool_calls" : "stop";
  await stack.node.define(name, once(reasoning(...given.thought), text(...given.words), call, finish(reason, usage)));
  const ids: string[] = [];
  for (const dialect of dialects) {
    for (const stream of [false, true]) {
      const more = { model: given.model, stream, ...toolsOf(dialect, { ...weather, name: "bash" }) };
      const { reply } = await exchange(stack, dialect, name, more, { account });
      expect([dialect.name, stream, reply.status]).toEqual([dialect.name, stream, 200]);
      await reply.text();
      ids.push(reply.headers.get("x-request-id")!);
    }
  }
  return ids;
}

test(`${contents} random contents cost the same in three dialects, streamed and not (TOLLGATE_SEED=${seed})`, async () => {
  const samples = fc.sample(content, { numRuns: contents, seed });
  let account: Account | null = null;
  for (const [index, given] of samples.entries()) {
    if (index % contentsPerAccount === 0) account = await stack.gateway.account(100_000_000);
    const ids = await askInEveryWay(account!, given, `parity-${index}`);
    const rows = (await stack.gateway.usage(account!.email, ids.length)).filter((row) => ids.includes(row.request_id));
    expect(new Set(rows.map((row) => row.request_id)).size).toBe(6);
    const costs = new Set(
      rows.map(({ input, cached_input, output, reasoning, billed_tokens, estimated }) =>
        JSON.stringify({ input, cached_input, output, reasoning, billed_tokens, estimated }),
      ),
    );
    expect([...costs]).toHaveLength(1);
    expect(JSON.parse([...costs][0]!)).toMatchObject({
      input: given.prompt,
      cached_input: given.cachedShare,
      output: given.output,
      estimated: false,
    });
  }
});
