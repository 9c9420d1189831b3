// A node that is not what it was, or not what it says: it dies and comes back with another model, or slower; it cuts
// prompts off; it has less context than it tells, or more. In three dialects, streamed and not, with recorded bytes of
// engines. Required of each: the answer, or the dialect's own error with true numbers, and a charge for what was answered.
import { afterEach, describe, expect, test } from "bun:test";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { billedTokens, endpoints } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { chunk, doneEvent, finishEvent, lastChunk, streamHead, textEvent, usageEvent } from "../fixtures/raw-node.ts";
import { RawNode, type RawReply, type RawRequest } from "../fixtures/raw-node.ts";
import { longForm } from "../fixtures/optional.ts";
import { budgetOf, recorded, recordedAs, recordedNode } from "../fixtures/recorded-node.ts";
import { type Caller, FaultGateway } from "./gateway.ts";

const timeLimit = 60_000;
const ways = endpoints.flatMap((endpoint) => [true, false].map((stream) => ({ endpoint, stream })));
type Way = (typeof ways)[number];
const chat = "/v1/chat/completions";
/** Its budget is sent to nodes. */
const model = "core-1.6-pro";
const limits = {
  firstPieceMs: 15_000,
  stallMs: 15_000,
  afterFinishMs: 80,
  connectTimeoutMs: 500,
  probeTimeoutMs: 1_000,
  coolOffMs: 50,
  idleLookIntervalMs: 60_000,
};

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});
const opened = (node: RawNode): RawNode => {
  open.push(node);
  return node;
};

const answered = (finish = "stop"): Buffer =>
  Buffer.concat([
    Buffer.from(streamHead),
    chunk([textEvent("whole "), textEvent("answer"), finishEvent(finish), usageEvent(11, 3), doneEvent].join("")),
    Buffer.from(lastChunk),
  ]);
const answer = (_: RawRequest, reply: RawReply): void => reply.write(answered());

async function gatewayOn(node: RawNode): Promise<FaultGateway> {
  const gateway = await FaultGateway.start([{ url: node.url, models: { "*": "*" } }], limits, { looks: true });
  await eventually("the node was looked at", async () => gateway.pool.states()[0]!.engine.models.length > 0);
  return gateway;
}

const endedFor: Readonly<Record<Endpoint, Readonly<Record<"stop" | "length", string>>>> = {
  "/v1/chat/completions": { stop: "stop", length: "length" },
  "/v1/messages": { stop: "end_turn", length: "max_tokens" },
  "/v1/responses": { stop: "completed", length: "incomplete" },
};

/** Asks in every way; each is answered and charged once, for what it was given. */
async function expectAnswers(
  gateway: FaultGateway,
  caller: Caller,
  ended: "stop" | "length" = "stop",
  asked: readonly Way[] = ways,
): Promise<void> {
  for (const { endpoint, stream } of asked) {
    const { status, view } = await gateway.ask(caller, endpoint, stream, { model });
    const finish = endedFor[endpoint][ended];
    expect([endpoint, stream, status, view.text, view.finish]).toEqual([endpoint, stream, 200, "whole answer", finish]);
    expect(view.faults).toEqual([]);
  }
  await gateway.expectQuiet();
  const rows = await gateway.usage(caller);
  expect(rows.map(({ input, output, estimated }) => [input, output, estimated])).toEqual(
    asked.map(() => [11, 3, false]),
  );
  for (const row of rows) expect(row.billed_tokens).toBe(billedTokens(row));
}

describe("a node that dies and comes back", () => {
  test(
    "with another model is asked for that, also where nobody saw it die",
    async () => {
      for (const engine of ["vllm", "ollama"] as const) {
        let name = "tiny-chat";
        const node = opened(
          recordedNode(engine, {
            "/v1/models": (_, reply) =>
              reply.write(recordedAs(engine, "01-models", (body) => body.replaceAll("tiny-chat", name))),
            [chat]: ({ body }, reply) =>
              reply.write(body.includes(`"${name}`) ? answered() : recorded(engine, "41-unknown-model")),
          }),
        );
        await using gateway = await gatewayOn(node);
        await expectAnswers(gateway, await gateway.caller());
        name = "other-chat";
        await expectAnswers(gateway, await gateway.caller());
        expect(gateway.pool.states()[0]!.engine.chatModels[0]).toStartWith("other-chat");
      }
    },
    timeLimit,
  );
  test(
    "with another model than the one that is named is refused in clear words, and another node is asked",
    async () => {
      const gone = opened(recordedNode("vllm", { [chat]: recorded("vllm", "41-unknown-model") }));
      const there = opened(recordedNode("vllm", { [chat]: answer }));
      const nodes = [gone, there].map(({ url }) => ({ url, models: { "*": "named" } }));
      await using alone = await FaultGateway.start(nodes.slice(0, 1), limits, { looks: true });
      const caller = await alone.caller();
      for (const { endpoint, stream } of ways) {
        const { status, view, body } = await alone.ask(caller, endpoint, stream, { model });
        expect([endpoint, stream, status]).toEqual([endpoint, stream, status === 500 ? 500 : 503]);
        expect(view.error?.message).toContain(`The model \`${model}\` is not loaded`);
        expect(body).not.toMatch(/tiny-chat|named|127\.0\.0\.1/);
      }
      expect(await alone.usage(caller)).toEqual([]);
      await using both = await FaultGateway.start(nodes, limits, { looks: true });
      await expectAnswers(both, await both.caller());
    },
    timeLimit,
  );
  test(
    "slower is waited for",
    async () => {
      const first = recordedNode("vllm", { [chat]: answer });
      await using gateway = await gatewayOn(first);
      const caller = await gateway.caller();
      const { port } = first;
      first.stop();
      const refused = await gateway.ask(caller, chat, true, { model });
      expect([refused.status, gateway.pool.states()[0]!.health]).toEqual([429, "down"]);
      const late =
        (then: (request: RawRequest, reply: RawReply) => void) => async (request: RawRequest, reply: RawReply) => {
          await Bun.sleep(400);
          then(request, reply);
        };
      opened(
        recordedNode(
          "vllm",
          {
            "/v1/models": late((_, reply) => reply.write(recorded("vllm", "01-models"))),
            [chat]: late(answer),
          },
          port,
        ),
      );
      await eventually("it is well", async () => gateway.pool.states()[0]!.health === "well");
      await expectAnswers(gateway, caller);
    },
    timeLimit,
  );
});

describe("a node that cuts a prompt off", () => {
  test(
    "is not asked for one that does not fit",
    async () => {
      const node = opened(recordedNode("ollama", { [chat]: answer }));
      await using gateway = await gatewayOn(node);
      const caller = await gateway.caller();
      const prompt = "All of this is to be read. ".repeat(1_500);
      for (const { endpoint, stream } of ways) {
        const { status, view } = await gateway.ask(caller, endpoint, stream, { model, prompt });
        expect([endpoint, stream, status]).toEqual([endpoint, stream, 400]);
        const [, tokens, maximum] = /^prompt is too long: (\d+) tokens > (\d+) maximum$/.exec(view.error!.message)!;
        expect(Number(tokens)).toBeWithin(10_000, 12_100);
        expect(Number(maximum)).toBe(4_096);
      }
      expect(node.requests.some(({ path }) => path === chat)).toBe(false);
      expect(await gateway.usage(caller)).toEqual([]);
      await expectAnswers(gateway, caller);
    },
    timeLimit,
  );
});

describe("a node that tells a context", () => {
  const telling = (context: number) => recordedAs("vllm", "01-models", (body) => body.replace("4096", `${context}`));
  const refusing = (request: RawRequest, reply: RawReply): void =>
    reply.write((budgetOf(request) ?? 0) > 2_048 ? recorded("vllm-router", "40d-sum-over") : answered());

  test(
    "that is larger than it has is asked again, and charged once",
    async () => {
      const node = opened(recordedNode("vllm", { "/v1/models": telling(1_000_000), [chat]: refusing }));
      await using gateway = await gatewayOn(node);
      await expectAnswers(gateway, await gateway.caller());
      expect(node.requests.filter(({ path }) => path === chat)).toHaveLength(2 * ways.length);
    },
    timeLimit,
  );
  test(
    "that is small ends answers there, as at their budget",
    async () => {
      const budgets: (number | undefined)[] = [];
      const node = opened(
        recordedNode("vllm", {
          "/tokenize": recorded("vllm", "05b-tokenize-messages"),
          [chat]: (request, reply) => {
            budgets.push(budgetOf(request));
            reply.write(answered("length"));
          },
        }),
      );
      await using gateway = await gatewayOn(node);
      await expectAnswers(gateway, await gateway.caller(), "length");
      for (const budget of budgets) expect(budget).toBeWithin(4_000, 4_096);
    },
    timeLimit,
  );
  test(
    "that is none is believed in nothing",
    async () => {
      for (const [index, lie] of ["0", "-1", "1e300", '"4096"'].entries()) {
        const list = recordedAs("vllm", "01-models", (body) => body.replace("4096", lie));
        const node = opened(recordedNode("vllm", { "/v1/models": list, [chat]: answer }));
        await using gateway = await gatewayOn(node);
        // Each lie in another way, and in the long form each in all.
        await expectAnswers(gateway, await gateway.caller(), "stop", longForm ? ways : [ways[index]!]);
        expect(node.requests.every(({ path }) => path !== "/tokenize")).toBe(true);
      }
    },
    timeLimit,
  );
});
