// What a node with a small context is asked, and what it is asked again after it refused: with the recorded bytes of engines.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/refusals.ts";
import type { Ask, Ending, Slot } from "../../src/core/types.ts";
import { NodePool, type PoolOptions } from "../../src/nodes/queue/pool.ts";
import { askOf, firstPartyModel, hostedModel, toolOf } from "../fixtures/asks.ts";
import { chunk, doneEvent, finishEvent, lastChunk, streamHead, textEvent, usageEvent } from "../fixtures/raw-node.ts";
import { type RawNode, type RawRequest, wholeReply } from "../fixtures/raw-node.ts";
import { budgetOf, recorded, recordedAs, recordedNode } from "../fixtures/recorded-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});
const stays = new AbortController().signal;

const chat = "/v1/chat/completions";
const answer =
  streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(10, 1) + doneEvent).toString() + lastChunk;
const asks = (node: RawNode): RawRequest[] => node.requests.filter(({ path }) => path === chat);
const pathsOf = (node: RawNode): string[] => node.requests.map(({ path }) => path);

/** A pool that has found out what the node is. */
async function poolOn(node: RawNode, options: Partial<PoolOptions> = {}): Promise<NodePool> {
  open.push(node);
  const found = Promise.withResolvers<void>();
  const pool = new NodePool([{ name: "a", url: node.url, apiKey: null, slots: 8, models: { "*": "*" } }], {
    clock: systemClock,
    queueMaxWaitMs: 1_000,
    log: () => {},
    onFirstLook: () => found.resolve(),
    ...options,
  });
  open.push({ stop: () => void pool.close() });
  await found.promise;
  node.requests.splice(0);
  return pool;
}

async function generate(pool: NodePool, ask: Ask, cancelSignal: AbortSignal = stays): Promise<Ending> {
  using slot = (await pool.enter(ask, 1, cancelSignal)) as Slot;
  return await slot.run(ask, 1, cancelSignal, { piece: () => {}, flush: () => null });
}

const refusalIn = (ending: Ending): string => (ending.kind === "failed" ? messageOf(ending.refusal) : ending.kind);

/** Answers what fits, and refuses other budgets with these bytes. */
const refusing = (budgetMax: number, refusal: string) => (request: RawRequest, reply: { write(text: string): void }) =>
  reply.write((budgetOf(request) ?? 0) > budgetMax ? refusal : answer);

const longText = "word ".repeat(8_000);
const longAsk = (changes: Partial<Ask> = {}): Ask =>
  askOf({ turns: [{ role: "user", content: longText }], bodyBytes: longText.length, ...changes });

describe("the budget of an answer", () => {
  test("is what the context leaves beside the prompt, counted by the node", async () => {
    const node = recordedNode("vllm-router", {
      "/tokenize": recorded("vllm", "05b-tokenize-messages"),
      [chat]: refusing(2_048, recorded("vllm-router", "40d-sum-over")),
    });
    const pool = await poolOn(node);
    expect(await generate(pool, askOf())).toMatchObject({ kind: "end" });
    expect(pathsOf(node)).toEqual(["/tokenize", chat]);
    const counted = Number(/"count":(\d+)/.exec(recorded("vllm", "05b-tokenize-messages"))![1]);
    expect(budgetOf(asks(node)[0]!)).toBe(2_048 - counted);
  });
  test("is the client's where prompt and answer fit in any case: nobody counts", async () => {
    const node = recordedNode("vllm", { [chat]: answer });
    const pool = await poolOn(node);
    await generate(pool, askOf({ outputTokensMax: 1_000 }));
    expect(pathsOf(node)).toEqual([chat]);
    expect(budgetOf(asks(node)[0]!)).toBe(1_000);
  });
  test("is by our own estimate where the node counts nothing in time", async () => {
    const node = recordedNode("vllm", { "/tokenize": wholeReply("500 x", ""), [chat]: answer });
    const pool = await poolOn(node);
    await generate(pool, askOf({ outputTokensMax: 32_000, bodyBytes: 4_000 }));
    expect(budgetOf(asks(node)[0]!)).toBe(4_096 - 1_250);
  });
  test("is not sent where it does not limit the answer", async () => {
    const node = recordedNode("vllm", { "/tokenize": recorded("vllm", "05b-tokenize-messages"), [chat]: answer });
    const pool = await poolOn(node);
    await generate(pool, longAsk({ model: firstPartyModel }));
    expect(pathsOf(node)).toEqual([chat]);
    expect(budgetOf(asks(node)[0]!)).toBeUndefined();
  });
  test("of llama-server is at most the context: it ends answers there by itself", async () => {
    const node = recordedNode("llama-server", { [chat]: answer });
    const pool = await poolOn(node);
    await generate(pool, longAsk({ outputTokensMax: 65_536 }));
    expect(pathsOf(node)).toEqual([chat]);
    expect(budgetOf(asks(node)[0]!)).toBe(4_096);
  });
});

describe("a request that is refused for its length", () => {
  /** The context is not told, so that only the refusal says it. */
  const untold = (body: string): string => body.replace(/,"max_model_len":\d+|,"max_input_tokens":\d+/, "");

  test("is repeated once with what the refusal says: SGLang", async () => {
    const refusal = recorded("sglang", "40d-sum-over"); // 10 tokens of prompt, a context of 4096
    const node = recordedNode("sglang", {
      "/v1/models": recordedAs("sglang", "01-models", untold),
      [chat]: refusing(4_086, refusal),
    });
    const pool = await poolOn(node);
    expect(await generate(pool, askOf())).toMatchObject({ kind: "end" });
    expect(asks(node).map(budgetOf)).toEqual([4_096, 4_086]);
  });
  test("with our own estimate where it says no prompt: vLLM behind routers", async () => {
    for (const [engine, name] of [
      ["sglang-router", "40c-max-tokens-over"],
      ["litellm", "40d-sum-over"],
    ] as const) {
      const node = recordedNode(engine, {
        "/v1/models": recordedAs(engine, "01-models", untold),
        [chat]: refusing(2_000, recorded(engine, name)),
      });
      const pool = await poolOn(node);
      expect(await generate(pool, askOf({ bodyBytes: 400 }))).toMatchObject({ kind: "end" });
      expect(asks(node).map(budgetOf)).toEqual([4_096, 2_048 - 125]);
    }
  });
  test("is told with true numbers where no budget helps: vLLM counts what it does not take", async () => {
    const count = recordedAs("vllm", "05b-tokenize-messages", (body) => body.replace(/"count":\d+/, '"count":22509'));
    const node = recordedNode("vllm", { "/tokenize": count, [chat]: recorded("vllm", "40-overflow") });
    const pool = await poolOn(node);
    const ending = await generate(pool, longAsk());
    expect(refusalIn(ending)).toBe("prompt is too long: 22509 tokens > 4096 maximum");
    expect(ending).toMatchObject({ ofRequest: true, elsewhere: false });
    expect(asks(node)).toHaveLength(1);
  });
  test.each([
    ["llama-server", "31-too-long", "prompt is too long: 5009 tokens > 4096 maximum"],
    ["sglang", "40-overflow", "prompt is too long: 10808 tokens > 4096 maximum"],
    ["llama-cpp-python", "40-overflow", "prompt is too long: 8108 tokens > 4096 maximum"],
    // it counts nothing: our estimate of 40,000 bytes
    ["litellm", "40-overflow", "prompt is too long: 10000 tokens > 2048 maximum"],
  ] as const)("%s, %s: %s, and it is not asked again", async (engine, name, message) => {
    const node = recordedNode(engine, { [chat]: recorded(engine, name), "/tokenize": wholeReply("404 x", "") });
    const pool = await poolOn(node);
    expect(refusalIn(await generate(pool, longAsk()))).toBe(message);
    expect(asks(node)).toHaveLength(1);
  });
  test("llama-cpp-python, whose stream is empty then, is asked why", async () => {
    const node = recordedNode("llama-cpp-python", {
      [chat]: ({ body }, reply) =>
        reply.write(
          recorded("llama-cpp-python", body.includes('"stream":true') ? "40b-overflow-stream" : "40-overflow"),
        ),
    });
    const pool = await poolOn(node);
    expect(refusalIn(await generate(pool, longAsk()))).toBe("prompt is too long: 8108 tokens > 4096 maximum");
    expect(asks(node).map(budgetOf)).toEqual([4_096, 1]);
  });
  test("a prompt that fills the context to the token leaves no place for an answer", async () => {
    const refusal = recordedAs("sglang", "40-overflow", (body) => body.replace("10808", "4096"));
    const pool = await poolOn(recordedNode("sglang", { [chat]: refusal, "/tokenize": wholeReply("404 x", "") }));
    expect(refusalIn(await generate(pool, longAsk()))).toBe("prompt is too long: 4096 tokens > 4095 maximum");
  });
  test("a node that refuses everything, whatever it says of its context, is asked twice at most", async () => {
    for (const context of ["0", "1", "99999999", "999999999999999"]) {
      const refusal = recordedAs("sglang", "40d-sum-over", (body) =>
        body.replace("length of 4096", `length of ${context}`),
      );
      const node = recordedNode("sglang", { [chat]: refusal, "/tokenize": wholeReply("404 x", "") });
      const pool = await poolOn(node);
      const ending = await generate(pool, askOf());
      expect(ending).toMatchObject({ kind: "failed", refusal: { refusal: "context_length_exceeded" } });
      const { tokens, maximum } = (ending as Extract<Ending, { kind: "failed" }>).refusal.detail!;
      expect(Number(tokens)).toBeGreaterThan(Number(maximum));
      expect(asks(node).length).toBeLessThanOrEqual(2);
    }
  });
  test("a node that tells more than it has is asked again with what it has", async () => {
    const node = recordedNode("vllm", {
      "/v1/models": recordedAs("vllm", "01-models", (body) =>
        body.replace('"max_model_len":4096', '"max_model_len":131072'),
      ),
      "/tokenize": recorded("vllm", "05b-tokenize-messages"),
      [chat]: refusing(2_048, recorded("vllm-router", "40d-sum-over")),
    });
    const pool = await poolOn(node);
    expect(await generate(pool, askOf())).toMatchObject({ kind: "end" });
    expect(asks(node)).toHaveLength(2);
  });
  test("a node that tells less than it has still gets a long prompt", async () => {
    const count = recordedAs("vllm", "05b-tokenize-messages", (body) => body.replace(/"count":\d+/, '"count":22509'));
    const node = recordedNode("vllm", { "/tokenize": count, [chat]: answer });
    expect(await generate(await poolOn(node), longAsk())).toMatchObject({ kind: "end" });
  });
  test("a client that leaves is not counted for, nor is the node asked again", async () => {
    const leaving = new AbortController();
    const node = recordedNode("vllm", { "/tokenize": () => leaving.abort(), [chat]: answer });
    const pool = await poolOn(node);
    expect(await generate(pool, askOf(), leaving.signal)).toMatchObject({ kind: "cancelled" });
    expect(asks(node)).toHaveLength(0);
  });
});

describe("Ollama, which cuts off the beginning of a prompt that is too long", () => {
  const never = (): never => {
    throw new Error("it must not be asked");
  };
  test("is not asked for such a prompt", async () => {
    const node = recordedNode("ollama", { [chat]: never });
    const pool = await poolOn(node, { estimate: () => Promise.resolve(8_010) });
    const ending = await generate(pool, longAsk());
    expect(refusalIn(ending)).toBe("prompt is too long: 8010 tokens > 4096 maximum");
    expect(ending).toMatchObject({ ofRequest: true, elsewhere: "unlike" });
    expect(pathsOf(node)).toEqual([]);
    expect(pool.states()[0]).toMatchObject({ health: "well", lastError: null });
  });
  test("is asked for one that fits, with the budget for which there is room", async () => {
    const node = recordedNode("ollama", { [chat]: recorded("ollama", "11-stream-usage") });
    const pool = await poolOn(node, { estimate: () => Promise.resolve(3_000) });
    expect(await generate(pool, longAsk())).toMatchObject({ kind: "end" });
    expect(budgetOf(asks(node)[0]!)).toBe(4_096 - 3_000);
    await generate(pool, askOf());
    expect(budgetOf(asks(node)[1]!)).toBe(1_096); // as estimated
  });
  test("where our own count does not tell, is asked whether it fits, without cutting it off", async () => {
    // As Ollama 0.17 answers.
    const tooLong = wholeReply("400 Bad Request", '{"error":"the input length exceeds the context length"}');
    const fits = wholeReply("200 OK", '{"done":true,"done_reason":"length","prompt_eval_count":4000,"eval_count":1}');
    for (const [said, message] of [
      [tooLong, "prompt is too long: 4097 tokens > 4096 maximum"],
      [fits, "end"],
    ] as const) {
      const node = recordedNode("ollama", { "/api/chat": said, [chat]: recorded("ollama", "11-stream-usage") });
      const pool = await poolOn(node, { estimate: () => Promise.resolve(3_500) });
      expect(refusalIn(await generate(pool, longAsk({ tools: [toolOf("get_weather")], effort: "off" })))).toBe(message);
      const native = JSON.parse(node.requests[0]!.body) as Record<string, unknown>;
      expect(native).toMatchObject({ truncate: false, stream: false, think: false, options: { num_predict: 1 } });
      expect(native["messages"]).toEqual([{ role: "user", content: longText }]);
      expect(asks(node).map(budgetOf)).toEqual(said === fits ? [96] : []);
    }
  });
  test("an older one, which cuts it off there too, is not believed", async () => {
    const cut = wholeReply("200 OK", '{"done":true,"prompt_eval_count":1000}');
    const pool = await poolOn(recordedNode("ollama", { "/api/chat": cut, [chat]: never }), {
      estimate: () => Promise.resolve(4_000),
    });
    expect(refusalIn(await generate(pool, longAsk()))).toBe("prompt is too long: 4400 tokens > 4096 maximum");
  });
  test("without an estimate in time, by the length of the prompt", async () => {
    const pool = await poolOn(recordedNode("ollama", { [chat]: never }), { estimate: () => Promise.resolve(null) });
    expect(refusalIn(await generate(pool, longAsk()))).toBe("prompt is too long: 10000 tokens > 4096 maximum");
  });
  test("has a model loaded first whose context is decided then", async () => {
    let running = wholeReply("200 OK", '{"models":[]}');
    const node = recordedNode("ollama", {
      "/api/ps": (_, reply) => reply.write(running),
      "/api/generate": (_, reply) => {
        running = recorded("ollama", "80-api-ps");
        reply.write(wholeReply("200 OK", '{"done":true}'));
      },
      [chat]: never,
    });
    const pool = await poolOn(node, { estimate: () => Promise.resolve(8_010) });
    expect(pool.contextTokensOf(hostedModel.id)).toBeNull();
    expect(refusalIn(await generate(pool, longAsk()))).toBe("prompt is too long: 8010 tokens > 4096 maximum");
    expect(JSON.parse(node.requests.find(({ path }) => path === "/api/generate")!.body)).toEqual({
      model: "tiny-chat:latest",
      stream: false,
    });
    expect(pool.contextTokensOf(hostedModel.id)).toBe(4_096);
  });
  test("a short prompt does not wait for that, and a client that leaves neither", async () => {
    const empty = wholeReply("200 OK", '{"models":[]}');
    const leaving = new AbortController();
    const node = recordedNode("ollama", {
      "/api/ps": empty,
      "/api/generate": () => leaving.abort(),
      [chat]: recorded("ollama", "11-stream-usage"),
    });
    const pool = await poolOn(node);
    expect(await generate(pool, askOf())).toMatchObject({ kind: "end" });
    expect(pathsOf(node)).toEqual([chat]);
    expect(await generate(pool, longAsk(), leaving.signal)).toMatchObject({ kind: "cancelled" });
  });
});

describe("a node that was started again with another model", () => {
  const another = (engine: "vllm" | "ollama"): string =>
    recordedAs(engine, "01-models", (body) => body.replaceAll("tiny-chat", "other-chat"));

  test.each(["vllm", "ollama"] as const)("%s says so, is looked at again and asked for that", async (engine) => {
    let restarted = false;
    const told: string[] = [];
    const node = recordedNode(engine, {
      "/v1/models": (_, reply) => reply.write(restarted ? another(engine) : recorded(engine, "01-models")),
      [chat]: ({ body }, reply) =>
        reply.write(body.includes("tiny-chat") === restarted ? recorded(engine, "41-unknown-model") : answer),
    });
    const pool = await poolOn(node, { log: ({ message }) => told.push(message) });
    expect(await generate(pool, askOf())).toMatchObject({ kind: "end" });
    restarted = true;
    node.requests.splice(0);
    const endings = await Promise.all([1, 2, 3, 4].map(() => generate(pool, askOf())));
    expect(endings.map(({ kind }) => kind)).toEqual(["end", "end", "end", "end"]);
    expect(node.requests.filter(({ path }) => path === "/v1/models")).toHaveLength(1);
    expect(pool.states()[0]!.engine.chatModels[0]).toStartWith("other-chat");
    expect(told.filter((line) => line.includes("other-chat"))).toHaveLength(1);
  });
  test("where the model is named, another node is asked, else it is said in clear words", async () => {
    const node = recordedNode("vllm", { [chat]: recorded("vllm", "41-unknown-model") });
    const pool = await poolOn(node);
    const ending = await generate(pool, askOf());
    expect(ending).toMatchObject({ elsewhere: true });
    expect(refusalIn(ending)).toBe(
      `The model \`${hostedModel.id}\` is not loaded on its node right now. Please retry later.`,
    );
  });
});
