// What a node can do wrong (rows U1 to U30), through the whole gateway: three dialects, streamed and not, over real
// sockets. Required of each: the status and the dialect's own form of error, no word of the node's own, no terminator
// after an error, nothing charged, nothing left open, and a node that is used again when it is well.
import { desksOf } from "../account/desks.ts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { billedTokens, budgetField, endpoints } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { longForm } from "../fixtures/optional.ts";
import { type Answer, begun, faultsAtStart, faultsWithin, isSilence, oddAnswers } from "../fixtures/node-faults.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  textEvent,
  turns,
  usageEvent,
} from "../fixtures/raw-node.ts";
import { type Caller, FaultGateway, impatient, type Reply } from "./gateway.ts";

const timeLimit = 120_000;
const ways = endpoints.flatMap((endpoint) => [true, false].map((stream) => ({ endpoint, stream })));
type Way = (typeof ways)[number];

/** Status and words of a refusal, from the specification's table. First-party models answer 503 as 500 on /v1/responses. */
const refusals: Readonly<Record<string, Readonly<{ status: number; message: RegExp }>>> = {
  busy: { status: 429, message: /^Routes are temporarily busy\. Please retry\.$/ },
  node_failed: { status: 500, message: /^The model stopped answering\. Please retry\.$/ },
  context_length_exceeded: { status: 400, message: /tokens/ },
  context_budget_exceeded: { status: 400, message: /(?:4000 \+ 100|4100 tokens) > 4096/ },
  malformed: { status: 400, message: /./ },
};

const whole: Answer = (_, reply) => {
  const events = [textEvent("whole "), textEvent("answer"), finishEvent(), usageEvent(11, 3), doneEvent].join("");
  reply.write(Buffer.concat([Buffer.from(streamHead), chunk(events), Buffer.from(lastChunk)]));
};

/** What the node does to requests whose prompt is `fault`; all others are answered. */
let fault: Answer = whole;
const answer: Answer = (request, reply) =>
  request.body.includes('"fault"') ? fault(request, reply) : whole(request, reply);

let node: RawNode;
let patient: FaultGateway;
let hasty: FaultGateway;
beforeAll(async () => {
  node = new RawNode(answer);
  [patient, hasty] = await Promise.all([FaultGateway.start([node.url]), FaultGateway.start([node.url], impatient)]);
}, timeLimit);
afterAll(async () => {
  await Promise.all([patient[Symbol.asyncDispose](), hasty[Symbol.asyncDispose]()]);
  node.stop();
}, timeLimit);
afterEach(async () => {
  await patient.expectQuiet();
  await hasty.expectQuiet();
}, timeLimit);

const inEveryWay = (gateway: FaultGateway, caller: Caller, prompt = "fault"): Promise<(Way & Reply)[]> =>
  Promise.all(
    ways.map(async (way) => ({ ...way, ...(await gateway.ask(caller, way.endpoint, way.stream, { prompt })) })),
  );

/** The error document of a dialect, and that it says nothing of the node. */
function expectRefused(reply: Way & Reply, refusal: string): void {
  const { status, message } = refusals[refusal]!;
  const { endpoint, stream } = reply;
  expect({ endpoint, stream, status: reply.status }).toEqual({ endpoint, stream, status });
  expect(reply.view.complete).toBe(false);
  expect(reply.view.error?.message).toMatch(message);
  expect(reply.view.faults).toEqual([]);
  expect(reply.headers.get("content-type")).toStartWith("application/json");
  expect(reply.headers.get("request-id")).toBe(reply.id);
  if (refusal === "busy") expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(reply.body).not.toMatch(/secret|10\.0\.0\.7|127\.0\.0\.1|node-1|Traceback/);
}

/** Not a token: neither a row of usage nor a movement of the balance. */
async function expectFree(gateway: FaultGateway, caller: Caller): Promise<void> {
  expect(await gateway.usage(caller)).toEqual([]);
  expect((await desksOf(gateway.accounting).accounts.show(caller.email)).credit).toBe(100_000_000);
}

/** After a fault the node is used again, and nothing of the fault is in the next answer. */
async function expectWell(gateway: FaultGateway): Promise<void> {
  const caller = await gateway.caller();
  await eventually("the node is used again", async () => {
    const { status, view } = await gateway.ask(caller, "/v1/chat/completions", true, { prompt: "well" });
    return status === 200 && view.complete && view.text === "whole answer";
  });
}

describe("before a byte of the answer", () => {
  test.each(faultsAtStart.map(([name, does, ending]) => ({ name, does, ending })))(
    "$name",
    async ({ name, does, ending }) => {
      const gateway = isSilence(name) ? hasty : patient;
      const { refusal } = (ending as { refusal: { refusal: string } }).refusal;
      const caller = await gateway.caller();
      fault = does;
      for (const reply of await inEveryWay(gateway, caller)) expectRefused(reply, refusal);
      await expectFree(gateway, caller);
      await expectWell(gateway);
    },
    timeLimit,
  );

  const moves = faultsAtStart.filter(([, , ending]) => (ending as { elsewhere?: boolean }).elsewhere === true);
  // The long form tries each fault in every way, the short one each in another.
  const waysOf = (index: number): Way[] => (longForm ? ways : [ways[index % ways.length]!]);
  test.each(moves.map(([name, does], index) => ({ name, does, tried: waysOf(index) })))(
    "$name: another node is asked once, and one charge is made",
    async ({ does, tried }) => {
      const asked: string[] = [];
      const bad = new RawNode((request, reply) => {
        asked.push("bad");
        return does(request, reply);
      });
      const good = new RawNode((request, reply) => {
        asked.push("good");
        return whole(request, reply);
      });
      try {
        const inOneWay = async (way: Way): Promise<void> => {
          await using gateway = await FaultGateway.start([bad.url, good.url]);
          const caller = await gateway.caller();
          // Both nodes are free, so that either may be asked first: two at once meet both.
          const replies = await Promise.all([1, 2].map(() => gateway.ask(caller, way.endpoint, way.stream)));
          for (const { status, view } of replies) {
            expect([way, status, view.complete, view.text]).toEqual([way, 200, true, "whole answer"]);
          }
          await gateway.expectQuiet();
          expect(await gateway.usage(caller)).toHaveLength(2);
        };
        await Promise.all(tried.map(inOneWay));
        expect(asked.filter((name) => name === "good")).toHaveLength(2 * tried.length);
        expect(asked.filter((name) => name === "bad").length).toBeGreaterThan(0);
        expect(asked.filter((name) => name === "bad").length).toBeLessThanOrEqual(2 * tried.length);
      } finally {
        bad.stop();
        good.stop();
      }
    },
    timeLimit,
  );

  test.each(["1 refuses", "2 is a black hole"])(
    "%s: busy, within seconds",
    async (name) => {
      const gone = new RawNode(() => {});
      const closed = gone.url;
      gone.stop();
      // TEST-NET-1 is routed nowhere: the dial ends by its time limit, or at once where the system has no route at all.
      const url = name.startsWith("1") ? closed : "http://192.0.2.1:9/v1";
      const dialedFor = async (asked: readonly Way[]): Promise<void> => {
        await using gateway = await FaultGateway.start([url], impatient);
        const caller = await gateway.caller();
        const ask = async (way: Way) => ({ ...way, ...(await gateway.ask(caller, way.endpoint, way.stream)) });
        for (const reply of await Promise.all(asked.map(ask))) expectRefused(reply, "busy");
        await expectFree(gateway, caller);
        await gateway.expectQuiet();
      };
      // A node that could not be dialed is not dialed for the next: in the long form each way has a gateway of its own.
      await Promise.all((longForm ? ways.map((way) => [way]) : [ways]).map(dialedFor));
    },
    timeLimit,
  );
});

describe("after the first word", () => {
  test.each(faultsWithin.map(([name, does]) => ({ name, does })))(
    "$name",
    async ({ name, does }) => {
      const gateway = isSilence(name) ? hasty : patient;
      const caller = await gateway.caller();
      fault = async (_, reply) => {
        reply.write(begun);
        await turns(); // the word leaves on the streams
        does(reply);
      };
      for (const reply of await inEveryWay(gateway, caller)) {
        if (!reply.stream) {
          expectRefused(reply, name.startsWith("28") ? "busy" : "node_failed"); // the node said 503
          continue;
        }
        const { endpoint, status, view } = reply;
        expect({ endpoint, status, text: view.text }).toEqual({ endpoint, status: 200, text: "a" });
        expect(view.error?.message).toMatch(/stopped answering|temporarily busy/);
        // no terminator, and nothing else, after an error
        expect([view.complete, view.faults]).toEqual([false, []]);
        expect(reply.body).not.toMatch(/secret|\[DONE\]|message_stop|response\.completed/);
      }
      await expectFree(gateway, caller);
      await expectWell(gateway);
    },
    timeLimit,
  );
});

const endedFor: Readonly<Record<Endpoint, Readonly<Record<"stop" | "length", string>>>> = {
  "/v1/chat/completions": { stop: "stop", length: "length" },
  "/v1/messages": { stop: "end_turn", length: "max_tokens" },
  "/v1/responses": { stop: "completed", length: "incomplete" },
};

describe("an answer that is one, however oddly it comes", () => {
  test.each([...oddAnswers])(
    "$name",
    async ({ answer: does, text, usage, estimated, reason }) => {
      const caller = await patient.caller();
      fault = does;
      const replies = await inEveryWay(patient, caller);
      await patient.expectQuiet();
      const rows = new Map((await patient.usage(caller)).map((row) => [row.request_id, row]));
      expect(rows.size).toBe(ways.length);
      for (const { endpoint, stream, status, view, id } of replies) {
        const found = { endpoint, stream, status, text: view.text, finish: view.finish, faults: view.faults };
        const finish = endedFor[endpoint][reason];
        expect(found).toEqual({ endpoint, stream, status: 200, text, finish, faults: [] });
        const row = rows.get(id)!;
        expect([row.input, row.output]).toEqual([view.usage!.input, view.usage!.output]);
        expect([row.estimated, row.billed_tokens]).toEqual([estimated, billedTokens(row)]);
        if (!estimated) expect([row.input, row.output]).toEqual([...usage]);
        else expect(row.input).toBeLessThan(200); // never what the node claimed
      }
      await expectWell(patient);
    },
    timeLimit,
  );

  test(
    "25 a node that never stops is cut at the budget, closed and charged for what was given",
    async () => {
      const caller = await patient.caller();
      let closed = 0;
      fault = async (_, reply) => {
        let open = true;
        void reply.closed.then(() => {
          open = false;
          closed += 1;
        });
        reply.write(streamHead);
        while (open) {
          reply.write(chunk(textEvent("a")));
          await Bun.sleep(1);
        }
      };
      for (const { endpoint, stream } of ways) {
        const more = { [budgetField[endpoint]]: 20 };
        // where the budget limits the answer
        const options = { prompt: "fault", model: "core-1.6-pro", more };
        const { status, view } = await patient.ask(caller, endpoint, stream, options);
        expect([endpoint, stream, status, view.text]).toEqual([endpoint, stream, 200, "a".repeat(20)]);
        expect(view.finish).toBe(endedFor[endpoint].length);
        expect(view.usage?.output).toBe(20);
      }
      await eventually("all of the node's sockets are closed", async () => closed === ways.length);
      expect((await patient.usage(caller)).map(({ output }) => output)).toEqual(Array<number>(ways.length).fill(20));
    },
    timeLimit,
  );

  test(
    "19 a line of 64 MiB ends the request, not the gateway, whose other streams go on",
    async () => {
      const caller = await patient.caller();
      const before = process.memoryUsage.rss();
      fault = async (_, reply) => {
        reply.write(begun);
        reply.write("4000000\r\ndata: ");
        for (let part = 0; part < 64; part += 1) reply.write(Buffer.alloc(1024 * 1024, 97));
      };
      const [reply, other] = await Promise.all([
        patient.ask(caller, "/v1/messages", true, { prompt: "fault" }),
        patient.ask(caller, "/v1/chat/completions", true, { prompt: "well" }),
      ]);
      expect([reply.view.text, reply.view.complete, reply.view.error === null]).toEqual(["a", false, false]);
      expect(other.view.text).toBe("whole answer");
      expect(process.memoryUsage.rss() - before).toBeLessThan(256 * 1024 * 1024); // the fault itself is 64 MiB of it
    },
    timeLimit,
  );

  test(
    "19 tens of thousands of tiny events in one answer reach the client, and another stream meanwhile",
    async () => {
      const caller = await patient.caller();
      const events = longForm ? 200_000 : 80_000;
      const flood = Buffer.from(textEvent("x").repeat(events));
      fault = (_, reply) => {
        reply.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
        reply.write(flood);
        reply.write(finishEvent() + usageEvent(10, 65_536) + doneEvent);
        reply.end();
      };
      const more = { max_tokens: 65_536 };
      const [reply, other] = await Promise.all([
        patient.ask(caller, "/v1/chat/completions", true, { prompt: "fault", more }),
        patient.ask(caller, "/v1/messages", true, { prompt: "well" }),
      ]);
      expect(reply.view.text.length).toBeGreaterThanOrEqual(65_536);
      expect([reply.view.complete, other.view.text]).toEqual([true, "whole answer"]);
    },
    timeLimit,
  );

  test(
    "18 a body that says that it is compressed is not inflated",
    async () => {
      const bomb = Bun.gzipSync(Buffer.alloc(64 * 1024 * 1024, 97));
      const caller = await patient.caller();
      const before = process.memoryUsage.rss();
      fault = (_, reply) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
        reply.write(head);
        reply.write(bomb);
      };
      for (const reply of await inEveryWay(patient, caller)) expectRefused(reply, "node_failed");
      await expectFree(patient, caller);
      expect(process.memoryUsage.rss() - before).toBeLessThan(16 * 1024 * 1024);
    },
    timeLimit,
  );
});
