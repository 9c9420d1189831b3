// Plain completions with the official client: its types, its stream, its errors.
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { systemClock } from "../../src/core/clock.ts";
import { type DemoNode, startDemoNode } from "../../src/nodes/demo/demo.ts";
import { type Caller, FaultGateway } from "../faults/gateway.ts";

let node: DemoNode;
let gateway: FaultGateway;
let caller: Caller;
let client: OpenAI;
beforeAll(async () => {
  node = startDemoNode({ models: [], clock: systemClock, tokensPerSecond: Number.POSITIVE_INFINITY });
  gateway = await FaultGateway.start([node.url]);
  caller = await gateway.caller();
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: caller.key });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await node.stop();
});

const asked = { model: "core-3", prompt: "def add(a, b):", suffix: "print(add(1, 2))", max_tokens: 6 } as const;

test("a reply and a stream say the same", async () => {
  const whole = await client.completions.create(asked);
  expect([whole.object, whole.choices[0]!.finish_reason, whole.usage!.completion_tokens]).toEqual([
    "text_completion",
    "length",
    6,
  ]);
  let text = "";
  const usages: OpenAI.CompletionUsage[] = [];
  const stream = await client.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } });
  for await (const event of stream) {
    text += event.choices[0]?.text ?? "";
    if (event.usage) usages.push(event.usage);
  }
  expect(text).toBe(whole.choices[0]!.text);
  expect(usages).toEqual([whole.usage!]);
  const rows = await gateway.usage(caller);
  expect(rows.map(({ endpoint, output }) => [endpoint, output])).toEqual([
    ["/v1/completions", 6],
    ["/v1/completions", 6],
  ]);
});

test("a refusal is the client's own error", async () => {
  const error: unknown = await client.completions.create({ ...asked, prompt: ["a", "b"] }).catch((reason) => reason);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect((error as Error).message).toBe("400 prompt must be one prompt: send a request for each of several");
});
