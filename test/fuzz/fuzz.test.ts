// Requests that nobody thought of, and texts that break event streams. TOLLGATE_FUZZ_RUNS sets how many (1,000 by
// default), TOLLGATE_SEED repeats a run. (A generator that reads /openapi.json joins here when there is one.)
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { Dialect } from "../../src/dialects/dialect.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Ask, Piece } from "../../src/core/types.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { type Caller, FaultGateway } from "../faults/gateway.ts";
import { captures } from "../fixtures/captures.ts";
import { bodyOf, viewOf } from "../fixtures/client-view.ts";
import { messagesCaptures } from "../fixtures/messages-captures.ts";
import { longForm } from "../fixtures/optional.ts";
import { randomOf, seedOfRun } from "../fixtures/random.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  textEvent,
  usageEvent,
} from "../fixtures/raw-node.ts";
import { responsesCaptures } from "../fixtures/responses-captures.ts";
import { spoiled } from "./mutation.ts";
import { readBody, writerOf } from "../fixtures/reading.ts";
import { endpointOf } from "../fixtures/endpoints.ts";

const runs = Number(process.env["TOLLGATE_FUZZ_RUNS"] ?? (longForm ? 3_000 : 500));
const seed = seedOfRun();
const timeLimit = 60_000 + runs * 20;
/** One account may send 120 requests a minute. */
const requestsPerAccount = 110;
const atOnce = 20;

describe("spoiled requests", () => {
  let node: RawNode;
  let gateway: FaultGateway;
  beforeAll(async () => {
    node = new RawNode((_, reply) => {
      const events = textEvent("fine") + finishEvent() + usageEvent(10, 2) + doneEvent;
      reply.write(Buffer.concat([Buffer.from(streamHead), chunk(events), Buffer.from(lastChunk)]));
    });
    gateway = await FaultGateway.start([node.url]);
  }, timeLimit);
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    node.stop();
  }, timeLimit);

  const bodies: readonly (readonly [Endpoint, Record<string, unknown>])[] = [
    ...captures
      .filter(({ url }) => url.includes("chat/completions"))
      .map(({ body }) => ["/v1/chat/completions", body] as const),
    ...messagesCaptures.map(({ body }) => ["/v1/messages", body] as const),
    ...responsesCaptures.map(({ body }) => ["/v1/responses", body] as const),
  ];

  test(
    `${runs} of them: never a 5xx, never silence, always JSON or events, nothing left open (TOLLGATE_SEED=${seed})`,
    async () => {
      const random = randomOf(seed);
      const below = (limit: number) => Math.floor(random() * limit);
      const chance = { below, pick: <Item>(items: readonly Item[]): Item => items[below(items.length)]! };
      const statuses = new Map<number, number>();
      let caller: Caller = await gateway.caller(1_000_000_000_000);
      for (let sent = 0; sent < runs; sent += atOnce) {
        if (sent % requestsPerAccount < atOnce) caller = await gateway.caller(1_000_000_000_000);
        const batch = Array.from({ length: atOnce }, async () => {
          const [endpoint, body] = chance.pick(bodies);
          const given = { ...body, ...(below(4) > 0 ? { model: chance.pick(["core-3", "open-05-3BIT-REAP"]) } : {}) };
          const text = spoiled(given, chance);
          const reply = await fetch(gateway.url + endpoint, {
            method: "POST",
            headers: { "x-api-key": caller.key },
            body: text,
            signal: AbortSignal.timeout(60_000),
          });
          const said = await reply.text();
          statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
          const type = reply.headers.get("content-type") ?? "";
          const isStream = type.startsWith("text/event-stream");
          // This node calls no tool, not even one that it must call.
          if (reply.status >= 500 && !said.includes("without the tool call that tool_choice demands"))
            throw new Error(
              `${endpoint} answers ${reply.status} ${said} (${gateway.log.slice(-2).join("; ")}) to ${text.slice(0, 20_000)}`,
            );
          const view = viewOf(endpoint, isStream, said);
          if (view.faults.length > 0 || (reply.status === 200) !== view.complete) {
            throw new Error(`${endpoint} answers ${reply.status} ${said.slice(0, 2_000)} to ${text.slice(0, 20_000)}`);
          }
        });
        await Promise.all(batch);
      }
      if (process.env["TOLLGATE_FUZZ_RUNS"] !== undefined) console.log(Object.fromEntries(statuses));
      // Requests that are all refused, or none, would show nothing.
      expect(statuses.get(200)).toBeGreaterThan(runs / 20);
      expect(statuses.get(400)).toBeGreaterThan(runs / 20);
      await gateway.expectQuiet();
    },
    timeLimit,
  );
});

describe("event streams", () => {
  const catalog = embeddedCatalog();
  const dialects: readonly Dialect[] = [
    chatCompletions,
    messages,
    responsesDialect({
      sealingKey: new Uint8Array(32),
      clock: { wall: () => 0, monotonic: () => 0 },
      storesResponses: false,
    }) as unknown as Dialect,
  ];
  /** What ends a line, an event, a string or a stream somewhere, beside anything else. */
  const words = fc.oneof(
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.constantFrom(
      "\n\n",
      "\r\n",
      "\r",
      "data: ",
      "event: x\n",
      "[DONE]",
      "\u2028",
      "\u0000",
      '"',
      "\\",
      "\ufeff",
      "😀",
      ": ",
    ),
  );

  test.each(dialects.map((dialect) => [endpointOf(dialect), dialect] as const))(
    "%s: what is written is what is read, at any cut of the text into pieces",
    (endpoint, dialect) => {
      const ask = readBody(dialect, bodyOf(endpoint, "core-3", "x", { stream: true }), 10, catalog);
      if (isRefusal(ask)) throw new Error(ask.refusal);
      fc.assert(
        fc.property(fc.array(words, { maxLength: 12 }), (given) => {
          const texts = given.map((text) => text.toWellFormed());
          const encoder = writerOf(ask as Ask).encoder({ requestId: "req_1", createdSeconds: 0 }, "events");
          let stream = encoder.keepAlive();
          for (const text of texts) {
            const piece: Piece = { kind: "text", literal: JSON.stringify(text), logprobs: null };
            stream += encoder.piece(piece) + (text.length % 3 === 0 ? encoder.keepAlive() : "");
          }
          const usage = { inputFresh: 3, inputCached: 2, output: 7, reasoning: 0 };
          stream += encoder.end({ reason: "stop", stopSequence: null, usage });
          const view = viewOf(endpoint, true, stream);
          expect([view.text, view.complete, view.faults]).toEqual([texts.join(""), true, []]);
          expect([view.usage?.input, view.usage?.output]).toEqual([5, 7]);
        }),
        { seed, numRuns: Math.max(300, runs / 10) },
      );
    },
    timeLimit,
  );
});
