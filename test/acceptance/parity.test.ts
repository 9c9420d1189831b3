// The same content costs the same in every dialect, streamed or not: what the ledger books and what the client is told.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { Account } from "../fixtures/gateway-process.ts";
import { callArguments, callStart, finish, once, reasoning, text } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 120_000;
/** Each content is asked for six times; TOLLGATE_TESTS=all asks for the 500 contents of the long form. */
const contents = process.env["TOLLGATE_TESTS"] === "all" ? 500 : 40;
/** One account may send 120 requests a minute. */
const contentsPerAccount = 20;
const seed = Number(process.env["TOLLGATE_SEED"] ?? Date.now());

let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const tool = { type: "object", properties: { command: { type: "string" } } };
const dialects = {
  "/v1/chat/completions": (model: string, prompt: string) => ({
    model,
    messages: [{ role: "user", content: prompt }],
    tools: [{ type: "function", function: { name: "bash", parameters: tool } }],
  }),
  "/v1/messages": (model: string, prompt: string) => ({
    model,
    max_tokens: 4096,
    messages: [{ role: "user", content: prompt }],
    tools: [{ name: "bash", input_schema: tool }],
  }),
  "/v1/responses": (model: string, prompt: string) => ({
    model,
    store: false,
    input: prompt,
    tools: [{ type: "function", name: "bash", parameters: tool }],
  }),
} as const;

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
  for (const [path, body] of Object.entries(dialects)) {
    for (const stream of [false, true]) {
      const prompt = `hello [[${stack.node.marker(name)}]]`;
      const reply = await fetch(stack.gateway.url + path, {
        method: "POST",
        headers: { "x-api-key": account.api_key },
        body: JSON.stringify({ ...body(given.model, prompt), stream }),
      });
      expect([path, stream, reply.status]).toEqual([path, stream, 200]);
      await reply.text();
      ids.push(reply.headers.get("x-request-id")!);
    }
  }
  return ids;
}

test(
  `${contents} random contents cost the same in three dialects, streamed and not (TOLLGATE_SEED=${seed})`,
  async () => {
    const samples = fc.sample(content, { numRuns: contents, seed });
    let account: Account | null = null;
    for (const [index, given] of samples.entries()) {
      if (index % contentsPerAccount === 0) account = await stack.gateway.account(100_000_000);
      const ids = await askInEveryWay(account!, given, `parity-${index}`);
      const rows = (await stack.gateway.usage(account!.email, ids.length)).filter((row) =>
        ids.includes(row.request_id),
      );
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
  },
  timeLimit,
);
