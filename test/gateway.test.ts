// The spine alone, with scripted parts: the order of the checks, what each exit leaves behind, and who is told what.
import { by } from "./fixtures/principals.ts";
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { chatCompletions } from "../src/dialects/chat/chat-completions.ts";
import type { AnswerEnd } from "../src/dialects/dialect.ts";
import { responsesDialect } from "../src/dialects/responses/responses.ts";
import type { References } from "../src/dialects/stored-responses.ts";
import { admit, type Incoming, isRefused, type Outlet, type GatewayParts, readAsk, serve } from "../src/gateway.ts";
import { largeBodyMinBytes, sealingKeyBytes } from "../src/core/limits.ts";
import { isRefusal, refuse } from "../src/core/refusals.ts";
import {
  type Ask,
  type Ending,
  type Hold,
  type Piece,
  type Refusal,
  type Slot,
  OutcomeUnknown,
  StoreUnavailable,
  type Usage,
} from "../src/core/types.ts";
import { headOf, readBody } from "./fixtures/reading.ts";
import { ModelHabits } from "../src/tools/model-habits.ts";

const catalog = embeddedCatalog();
const usage: Usage = { inputFresh: 10, inputCached: 0, output: 5, reasoning: 0 };
const goodBody = { model: "core-3", messages: [{ role: "user", content: "x" }] };
const ended: Ending = { kind: "end", reason: "stop", stopSequence: null, usage, estimated: false };
const failed = (refusal: Refusal["refusal"], elsewhere = false): Ending => ({
  kind: "failed",
  refusal: refuse(refusal),
  elsewhere,
});

/** A world in which every part writes down what it was asked, in one list. */
class World {
  readonly events: string[] = [];
  readonly nodes: { name: string; endings: Ending[] }[] = [{ name: "a", endings: [ended] }];
  readonly cancelSignal = new AbortController();
  /** A byte of the reply was written. */
  opened = false;
  /** So was something of the answer. */
  delivered = false;
  holdReady: Promise<Refusal | null> | null = null;
  settled: () => Promise<void> = async () => {};
  countedInput: number | null = null;
  charged: Usage | null = null;
  /** What is charged in its place. */
  believed: Usage | null = null;
  answered: Usage | null = null;
  asked: Ask | null = null;
  admission: Hold | Refusal | null = null;
  generate: (() => Promise<Ending>) | null = null;
  /** The good key is void from now on. */
  voided = false;

  readonly parts: GatewayParts = {
    catalog,
    habits: new ModelHabits(),
    countInput: async ({ tools }) => {
      this.events.push(tools.length === 0 ? "count input" : "count input and tools");
      return this.countedInput;
    },
    storedResponses: null,
    media: {
      ready: async (ask, _account, cancelSignal) => {
        this.events.push(cancelSignal.aborted ? "media, gone" : "media");
        const turns: Ask["turns"] = [{ role: "user", content: "what came of it" }];
        return { ask: { ...ask, turns }, refusal: null, [Symbol.dispose]: () => this.events.push("media let go") };
      },
    },
    clock: { wall: () => 1000, monotonic: () => 0 },
    log: (level, event) => this.events.push(`log ${level} ${event}`),
    keys: {
      principal: (key) => {
        this.events.push("key");
        if (key === "unreadable") throw new StoreUnavailable("disk");
        return key === "good" && !this.voided ? by(7) : null;
      },
    },
    admission: {
      refuseFlooded: () => null,
      refuseModel: () => null,
      countRequest: () => {
        this.events.push("count");
        return null;
      },
      admit: () => {
        this.events.push("admit");
        return this.admission ?? this.hold();
      },
    },
    pool: {
      enter: (_ask, _account, _gone, excluded) => {
        const node = this.nodes.find(({ name }) => excluded?.has(name) !== true);
        if (node === undefined) return refuse("busy", { seconds: 1 });
        this.events.push(`enter ${node.name}`);
        return this.slot(node);
      },
    },
  };

  hold(): Hold {
    let open = true;
    let disposed = false;
    return {
      ready: this.holdReady,
      settle: (charged, estimated) => {
        this.charged = charged;
        this.events.push(estimated ? "settle estimated" : "settle");
        open = false;
        return this.settled().then(() => this.believed ?? charged);
      },
      [Symbol.dispose]: () => {
        if (!disposed) this.events.push(open ? "hold given back" : "hold closed");
        disposed = true;
      },
    };
  }

  slot(node: { name: string; endings: Ending[] }): Slot {
    return {
      nodeName: node.name,
      alike: () => new Set([node.name]),
      run: async (ask, _account, _gone, sink) => {
        this.asked = ask;
        sink.piece({ kind: "text", literal: '"x"', logprobs: null });
        return this.generate === null ? node.endings.shift()! : this.generate();
      },
      [Symbol.dispose]: () => this.events.push(`leave ${node.name}`),
    };
  }

  outlet(): Outlet {
    return {
      cancelSignal: this.cancelSignal.signal,
      opened: this.opened,
      delivered: this.delivered,
      piece: (piece: Piece) => this.events.push(`piece ${piece.kind}`),
      flush: () => null,
      end: (end: AnswerEnd) => {
        this.answered = end.usage;
        this.events.push(`end ${end.reason}`);
      },
      fail: (refusal: Refusal) => this.events.push(`fail ${refusal.refusal}`),
      breakOff: () => void this.events.push("broken off"),
    };
  }

  incoming(key: string | null, json: unknown): Incoming {
    return {
      requestId: "req_1",
      head: headOf(chatCompletions),
      key,
      body: async () => {
        this.events.push("body");
        return isRefusal(json) ? json : { json, bytes: 50 };
      },
    };
  }

  async serve(body: object = goodBody): Promise<string[]> {
    const ask = readBody(chatCompletions, body, 50, catalog) as Ask;
    await serve({ principal: by(7), ask, hold: this.hold() }, this.outlet(), this.parts);
    return this.events;
  }
}

test("what a model reads of the operator's tools is expected beside the request", async () => {
  const world = new World();
  const expected: number[] = [];
  const admission: GatewayParts["admission"] = {
    ...world.parts.admission,
    admit: ({ expected: expects }) => {
      expected.push(expects!.input);
      return { ...world.hold(), expect: (_spent, inputTokens) => expected.push(inputTokens) > 0 };
    },
  };
  const toolLoop: GatewayParts["toolLoop"] = {
    answer: (ask, _context, sink, round) => round(ask, sink),
    offeredBytes: () => 90_000,
    offers: () => false,
  };
  const image = { type: "image_url", image_url: { url: "https://a.example/x.png" } };
  const body = { ...goodBody, model: "core-3", messages: [{ role: "user", content: [image] }] };
  for (const parts of [
    { ...world.parts, admission, habits: new ModelHabits() },
    { ...world.parts, admission, habits: new ModelHabits(), toolLoop },
  ]) {
    const admitted = await admit(world.incoming("good", body), chatCompletions, parts);
    if (admitted === "for others" || isRefused(admitted)) throw new Error("it is served");
    await serve(admitted, world.outlet(), parts);
  }
  const [admittedAlone, readAlone, admittedWithTools, readWithTools] = expected;
  expect(admittedWithTools).toBe(admittedAlone! + 90_000);
  expect(readWithTools).toBe(readAlone! + 90_000); // when its media were read
});

describe("the order of the checks", () => {
  const row = async (key: string | null, json: unknown, admission: Refusal | null = null) => {
    const world = new World();
    world.admission = admission;
    const result = await admit(world.incoming(key, json), chatCompletions, world.parts);
    if (result === "for others") return result;
    return [...world.events, isRefused(result) ? result.refused.refusal : "admitted"].join(" > ");
  };

  test.each([
    ["no key", null, goodBody, null, "invalid_api_key"],
    ["a wrong key, before the body is read", "bad", goodBody, null, "key > invalid_api_key"],
    ["a key that cannot be looked up", "unreadable", goodBody, null, "key > quota_unverified"],
    ["a body too large", "good", refuse("body_too_large"), null, "key > body > body_too_large"],
    ["unreadable JSON, not counted", "good", refuse("unreadable", { reason: "" }), null, "key > body > unreadable"],
    ["an unknown model, not counted", "good", { ...goodBody, model: "x" }, null, "key > body > key > unknown_model"],
    ["malformed parameters, counted", "good", { ...goodBody, n: 3 }, null, "key > body > key > count > malformed"],
    [
      "a flood",
      "good",
      goodBody,
      refuse("too_many_requests", { seconds: 5 }),
      "key > body > key > admit > too_many_requests",
    ],
    ["an empty balance", "good", goodBody, refuse("quota_exceeded"), "key > body > key > admit > quota_exceeded"],
    ["a good request", "good", goodBody, null, "key > body > key > admit > admitted"],
  ] as const)("%s", async (_name, key, json, admission, expected) => {
    expect(await row(key, json, admission)).toBe(expected);
  });

  const malformed = { ...goodBody, n: 3 };
  test.each([
    ["key", "good", goodBody],
    ["key with a body that would be refused", "good", malformed],
    ["session", null, goodBody],
  ] as const)("a %s that became void while the body came, not counted", async (_name, key, json) => {
    const world = new World();
    const incoming = world.incoming(key, json);
    const signedIn = () => (world.voided ? null : by(7));
    const body = async () => {
      world.voided = true;
      return incoming.body(7);
    };
    const result = await admit({ ...incoming, signedIn, body }, chatCompletions, world.parts);
    expect(result).toMatchObject({ refused: { refusal: "invalid_api_key" } });
    expect(world.events.filter((event) => event !== "key")).toEqual(["body"]);
  });

  test("a key that another thread knows is asked about again, and waited for", async () => {
    const world = new World();
    const answers = [by(7), null];
    const keys = { principal: async () => answers.shift() ?? null };
    const result = await admit(world.incoming("good", goodBody), chatCompletions, { ...world.parts, keys });
    expect(result).toMatchObject({ refused: { refusal: "invalid_api_key" } });
    expect(world.events).toEqual(["body"]);
  });
});

describe("every exit settles or gives back, and frees the node before it waits for the disk", () => {
  test("a whole answer ends after its charge is on disk", async () => {
    const world = new World();
    world.settled = async () => {
      await Bun.sleep(1);
      world.events.push("on disk");
    };
    expect(await world.serve()).toEqual([
      "enter a",
      "piece text",
      "leave a",
      "settle",
      "on disk",
      "end stop",
      "hold closed",
    ]);
  });

  test("a coder call is on disk before a node is asked", async () => {
    const world = new World();
    world.holdReady = Bun.sleep(1).then(() => {
      world.events.push("counted on disk");
      return null;
    });
    expect((await world.serve()).slice(0, 2)).toEqual(["counted on disk", "enter a"]);
  });

  test("a request that waited in vain is refused, and no node is asked", async () => {
    const world = new World();
    world.holdReady = Promise.resolve(refuse("quota_exceeded", { site_url: "http://site" }));
    expect(await world.serve()).toEqual(["hold given back", "fail quota_exceeded"]);
  });

  test("a client that leaves while it waits gives its place up at once, and no node is asked", async () => {
    const world = new World();
    const begins = Promise.withResolvers<null>();
    world.holdReady = begins.promise;
    const served = world.serve();
    await Bun.sleep(1);
    world.cancelSignal.abort();
    expect(world.events).toEqual(["hold given back"]);
    begins.resolve(null); // it was on its way already
    expect(await served).toEqual(["hold given back", "fail busy"]);
  });

  test.each([
    ["that it did not hear", { kind: "cancelled", usage, estimated: true }],
    ["that was just complete", ended],
  ] as const)("a client that left before the first byte pays nothing for an answer %s", async (_what, ending) => {
    const world = new World();
    world.nodes[0]!.endings = [ending];
    world.cancelSignal.abort();
    expect(await world.serve()).toEqual(["enter a", "piece text", "leave a", "hold given back"]);
  });

  test("a client that left after it is charged and hears nothing", async () => {
    const world = new World();
    world.opened = true;
    world.cancelSignal.abort();
    world.nodes[0]!.endings = [{ kind: "cancelled", usage, estimated: true }];
    expect(await world.serve()).toEqual([
      "enter a",
      "piece text",
      "leave a",
      "count input",
      "settle estimated",
      "hold closed",
    ]);
  });

  test("what was delivered of an answer that is not what was asked for is on disk before its error goes out", async () => {
    const misfit = { ...failed("answer_misfit"), delivered: { usage, estimated: false } };
    const world = new World();
    world.delivered = true;
    world.settled = () => Bun.sleep(1).then(() => void world.events.push("on disk"));
    world.nodes[0]!.endings = [misfit];
    const charged = ["enter a", "piece text", "leave a", "settle", "on disk", "fail answer_misfit", "hold closed"];
    expect(await world.serve()).toEqual(charged);
    expect(world.charged).toEqual(usage);
    const unseen = new World();
    unseen.nodes[0]!.endings = [misfit];
    expect(await unseen.serve()).toEqual(["enter a", "piece text", "leave a", "hold given back", "fail answer_misfit"]);
  });

  test("an input that no node reported is counted before it is charged, within the model's context", async () => {
    for (const [counted, charged] of [
      [42, 42],
      [1e9, catalog.models.get("core-3")!.contextTokens],
      [null, usage.inputFresh],
    ] as const) {
      const world = new World();
      world.nodes[0]!.endings = [{ ...ended, estimated: true }];
      world.countedInput = counted;
      expect(await world.serve()).toContain("count input");
      expect(world.charged).toEqual({ ...usage, inputFresh: charged });
      expect(world.answered).toEqual(world.charged);
    }
  });

  test("a client is told what it was charged where that is less than the node said", async () => {
    const world = new World();
    world.believed = { ...usage, inputFresh: 1 };
    await world.serve();
    expect([world.charged, world.answered]).toEqual([usage, world.believed]);
  });

  test("an input is counted with its tools", async () => {
    const tools = [{ type: "function", function: { name: "a", parameters: { type: "object" } } }];
    const world = new World();
    world.nodes[0]!.endings = [{ ...ended, estimated: true }];
    expect(await world.serve({ ...goodBody, tools })).toContain("count input and tools");
  });

  test("an input that the node reported is not counted", async () => {
    const world = new World();
    world.countedInput = 42;
    expect(await world.serve()).not.toContain("count input");
    expect(world.charged).toEqual(usage);
  });

  test("a reply that the gateway ends itself costs nothing and says why", async () => {
    const world = new World();
    world.nodes[0]!.endings = [{ kind: "cancelled", usage, estimated: true }];
    world.cancelSignal.abort(refuse("stopping"));
    expect(await world.serve()).toEqual(["enter a", "piece text", "leave a", "hold given back", "fail stopping"]);
  });

  test("a failed node costs nothing", async () => {
    const world = new World();
    world.nodes[0]!.endings = [failed("node_failed")];
    expect(await world.serve()).toEqual(["enter a", "piece text", "leave a", "hold given back", "fail node_failed"]);
  });

  test("a charge that cannot be written fails the reply with the spec's 503", async () => {
    const world = new World();
    world.settled = () => Promise.reject(new StoreUnavailable("disk full"));
    expect((await world.serve()).slice(-3)).toEqual(["settle", "hold closed", "fail quota_unverified"]);
  });

  test("a charge of which nobody knows is told neither as made nor as failed", async () => {
    const world = new World();
    world.settled = () => Promise.reject(new OutcomeUnknown("the database is gone"));
    expect((await world.serve()).slice(-3)).toEqual(["settle", "broken off", "hold closed"]);
  });

  test("a fault of our own is logged, answered and costs nothing", async () => {
    const world = new World();
    world.generate = () => Promise.reject(new Error("bug"));
    expect(await world.serve()).toEqual([
      "enter a",
      "piece text",
      "leave a",
      "log error request failed",
      "hold given back",
      "fail internal",
    ]);
  });
});

describe("another node", () => {
  const run = (...nodes: Ending[][]) => {
    const world = new World();
    world.nodes.splice(0, 1, ...nodes.map((endings, index) => ({ name: "abc"[index]!, endings })));
    return world
      .serve()
      .then((events) => events.filter((event) => !event.startsWith("piece") && !event.startsWith("leave")));
  };

  test("is asked once when no byte of the reply came", async () => {
    expect(await run([failed("node_failed", true)], [ended])).toEqual([
      "enter a",
      "enter b",
      "settle",
      "end stop",
      "hold closed",
    ]);
    expect(await run([failed("busy", true)], [failed("node_failed", true)], [ended])).toEqual(
      ["enter a", "enter b", "hold given back", "fail node_failed"], // a third is not asked
    );
  });

  test("is not asked once bytes came", async () => {
    expect(await run([failed("node_failed", false)], [ended])).toEqual([
      "enter a",
      "hold given back",
      "fail node_failed",
    ]);
  });

  test("that does not exist leaves the first one's reason", async () => {
    expect(await run([failed("node_failed", true)])).toEqual(["enter a", "hold given back", "fail node_failed"]);
  });
});

describe("images and files", () => {
  const url = "http://pictures.com/a.png";
  const body = { ...goodBody, messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] };

  test("are fetched after the hold is ready and before a place is taken, and let go when the charge is on disk", async () => {
    const world = new World();
    world.holdReady = Bun.sleep(1).then(() => {
      world.events.push("counted on disk");
      return null;
    });
    expect(await world.serve(body)).toEqual([
      "counted on disk",
      "media",
      "enter a",
      "piece text",
      "leave a",
      "settle",
      "end stop",
      "media let go",
      "hold closed",
    ]);
    expect(world.asked!.turns).toEqual([{ role: "user", content: "what came of it" }]);
  });

  test("are no business of a request without any", async () => {
    const world = new World();
    expect(await world.serve()).not.toContain("media");
    expect(world.asked!.turns).toEqual([{ role: "user", content: "x" }]);
  });

  test("are never fetched for a request that is refused", async () => {
    for (const admission of [refuse("too_many_requests", { seconds: 5 }), refuse("quota_exceeded")]) {
      const world = new World();
      world.admission = admission;
      await admit(world.incoming("good", body), chatCompletions, world.parts);
      expect(world.events).toEqual(["key", "body", "key", "admit"]);
    }
    const world = new World();
    const textOnly = { ...body, model: "open-01-3BIT-REAP" };
    await admit(world.incoming("good", textOnly), chatCompletions, world.parts);
    expect(world.events).toEqual(["key", "body", "key", "count"]);
  });

  test("are let go when the node fails, too", async () => {
    const world = new World();
    world.generate = () => Promise.reject(new Error("bug"));
    expect((await world.serve(body)).slice(-4)).toEqual([
      "media let go",
      "log error request failed",
      "hold given back",
      "fail internal",
    ]);
  });
});

describe("what a request refers to", () => {
  test("is not looked for where the request nests too deep, which is a fault of the client's", async () => {
    const dialect = responsesDialect({
      sealingKey: new Uint8Array(sealingKeyBytes),
      clock: { wall: () => 0, monotonic: () => 0 },
      storesResponses: true,
    });
    const found: string[] = [];
    const parts = {
      catalog,
      storedResponses: {
        keep: () => {},
        find: async (_account: number, { previousResponseId }: References) => {
          found.push(String(previousResponseId));
          const conversation = JSON.stringify([{ role: "user", content: "x".repeat(largeBodyMinBytes) }]);
          return { conversation, items: "[]", itemsBytes: 0 };
        },
      },
      admission: { refuseModel: () => null },
      largeBodies: {
        readAsk: async () => refuse("busy", { seconds: 1 }),
        readTokenize: async () => refuse("internal"),
      },
    };
    const readDeep = (depth: number) => {
      const metadata: unknown = JSON.parse(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`);
      const json = { model: "core-3", input: "x", previous_response_id: "resp_1", metadata };
      return readAsk(headOf(dialect), { json, bytes: 2 * depth }, by(7), dialect, parts);
    };
    expect(await readDeep(20_000)).toEqual(refuse("malformed", { reason: "The request body nests too deep" }));
    expect(found).toEqual([]);
    expect(await readDeep(5)).toMatchObject({ refusal: "busy" });
    expect(found).toEqual(["resp_1"]);
  });
});
