// Nodes that fail in every way for which the gateway asks again, one after the other: the retries must not multiply. The
// spine with its real pool, tool loop, checks and sockets; the nodes, the search and the checker's verdict are scripted.
import { afterEach, describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { generationsPerAnswerMax } from "../../src/core/generation-budget.ts";
import { anySearch } from "../../src/dialects/request/search-request.ts";
import { type Outlet, type GatewayParts, serve } from "../../src/gateway.ts";
import { NodePool } from "../../src/nodes/queue/pool.ts";
import { RequestRecord } from "../../src/telemetry/request-record.ts";
import { ModelHabits } from "../../src/tools/model-habits.ts";
import { ToolLoop } from "../../src/tools/tool-loop.ts";
import type { Ask, Usage } from "../../src/core/types.ts";
import { askOf, toolOf } from "../fixtures/asks.ts";
import { by } from "../fixtures/principals.ts";
import { randomOf, seedOfRun } from "../fixtures/random.ts";
import {
  chunk,
  doneEvent,
  event,
  finishEvent,
  lastChunk,
  RawNode,
  type RawReply,
  type RawRequest,
  streamHead,
  textEvent,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";

const toRelease: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const each of toRelease.splice(0)) await each.stop();
});

const streamed = (events: string): Buffer =>
  Buffer.concat([Buffer.from(streamHead), chunk(events + usageEvent(10, 2) + doneEvent), Buffer.from(lastChunk)]);
const calls = (name: string): string =>
  event({
    delta: { tool_calls: [{ index: 0, id: "c", type: "function", function: { name, arguments: '{"query":"x"}' } }] },
  }) + finishEvent("tool_calls");
const error = (message: string): string => JSON.stringify({ error: { message } });

/** What a node does with a request, by what it makes the gateway ask again. */
const ways = {
  "another node": (reply: RawReply) => reply.write(wholeReply("503 Service Unavailable", error("queue is full"))),
  "without the schema": (reply: RawReply) => reply.write(wholeReply("400 Bad Request", error("json schema: no"))),
  "a smaller budget": (reply: RawReply) => {
    const words = "This model's maximum context length is 8192 tokens and your request has 8000 input tokens";
    reply.write(wholeReply("400 Bad Request", error(words)));
  },
  "in words": (reply: RawReply) => reply.write(streamed(textEvent("I would rather not.") + finishEvent())),
  "a further round": (reply: RawReply) => reply.write(streamed(calls("web_search"))),
  "the client's own tool": (reply: RawReply) => reply.write(streamed(calls("get"))),
} as const;
type Way = keyof typeof ways;

type Served = Readonly<{ generations: number; charged: Usage | null; last: string; record: RequestRecord }>;

/** Two nodes that go through the script together, over and over. `dropsIdle`: they close each connection that is used again. */
async function served(ask: Ask, script: readonly Way[], dropsIdle = true): Promise<Served> {
  let step = 0;
  let generations = 0;
  const answer = ({ method, onConnection }: RawRequest, reply: RawReply): void => {
    if (method !== "POST") return reply.write(wholeReply("404 Not Found", ""));
    generations += 1;
    if (dropsIdle && onConnection > 0) return reply.reset();
    ways[script[step++ % script.length]!](reply);
  };
  const nodes = [new RawNode(answer), new RawNode(answer)];
  const pool = new NodePool(
    nodes.map(({ url }, index) => ({ name: `node-${index}`, url, apiKey: null, slots: 1, models: { "*": "m" } })),
    { clock: systemClock, queueMaxWaitMs: 60_000, log: () => {}, looks: false, limits: { coolOffMs: 0 } },
  );
  toRelease.push(...nodes, { stop: () => pool.close() });
  let charged: Usage | null = null;
  let last = "nothing";
  const outlet: Outlet = {
    cancelSignal: new AbortController().signal,
    opened: false,
    delivered: false,
    piece: () => {},
    flush: () => null,
    end: ({ reason }) => void (last = reason),
    fail: ({ refusal }) => void (last = refusal),
    breakOff: () => void (last = "broken off"),
  };
  const search = { keep: () => {}, call: () => true, [Symbol.dispose]: () => {} };
  const parts: GatewayParts = {
    catalog: embeddedCatalog(),
    habits: new ModelHabits(),
    storedResponses: null,
    clock: systemClock,
    log: () => {},
    keys: { principal: () => by(7) },
    admission: {} as GatewayParts["admission"],
    pool,
    checker: {
      check: async ({ text }) => (text === null ? { verdict: "fits" } : { verdict: "misfit", reason: "it is no JSON" }),
    },
    toolLoop: new ToolLoop({
      provider: { search: async () => [], close: async () => {} },
      searches: { take: () => search },
      serverTools: () => [],
      clock: systemClock,
      log: () => {},
    }),
  };
  const hold = {
    ready: null,
    settle: async (usage: Usage) => (charged = usage),
    [Symbol.dispose]: () => {},
  };
  const record = new RequestRecord("", ask.endpoint, 0, 0);
  await serve({ principal: by(7), ask, hold }, outlet, parts, record);
  return { generations, charged, last, record };
}

const format = { kind: "json_schema", name: "a", schema: { type: "object" }, strict: true } as const;
const asks: Readonly<Record<string, Ask>> = {
  "tools, a search and a format": askOf({
    tools: [toolOf("get")],
    toolChoice: "required",
    webSearch: anySearch,
    format,
    stream: false,
    outputTokensMax: 100_000,
  }),
  "tools and a search": askOf({ tools: [toolOf("get")], toolChoice: "required", webSearch: anySearch }),
  "a format": askOf({ format, stream: false }),
  "a tool as a form": askOf({ tools: [toolOf("get")], toolChoice: { named: "get" }, stream: false }),
};

describe("a node that fails in every way costs no more than the request's budget of generations", () => {
  test("rounds, failovers, schemas in words and demands in words together", async () => {
    const script: Way[] = ["another node", "without the schema", "in words", "another node", "a further round"];
    const { generations, last, record } = await served(asks["tools, a search and a format"]!, script);
    expect(generations).toBe(generationsPerAnswerMax);
    expect(record.toolRounds).toBeGreaterThan(3);
    expect(record.repeats).toBeGreaterThan(3);
    expect(["length", "answer_misfit", "node_failed", "busy", "malformed", "not_called"]).toContain(last);
  });

  const seed = seedOfRun();
  test(`in any order (seed ${seed})`, async () => {
    const random = randomOf(seed);
    const names = Object.keys(ways) as Way[];
    for (const [what, ask] of Object.entries(asks)) {
      for (let run = 0; run < 15; run += 1) {
        const script = Array.from({ length: 7 }, () => names[Math.floor(random() * names.length)]!);
        const { generations } = await served(ask, script, random() < 0.5);
        expect({ what, script, isWithin: generations <= generationsPerAnswerMax, generations }).toMatchObject({
          isWithin: true,
        });
      }
    }
  }, 60_000);

  test("and ten rounds without a fault all run", async () => {
    const { last, record } = await served(asks["tools and a search"]!, ["a further round"], true);
    expect({ last, rounds: record.toolRounds }).toEqual({ last: "stop", rounds: 10 });
  });

  test("nor is what failed charged: the prompt once, and the answer that went out", async () => {
    const { charged, last, generations } = await served(
      asks["a tool as a form"]!,
      ["in words", "the client's own tool"],
      false,
    );
    expect({ generations, last }).toEqual({ generations: 6, last: "answer_misfit" });
    expect(charged).toBeNull();
  });
});
