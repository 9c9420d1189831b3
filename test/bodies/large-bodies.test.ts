// Large bodies, read by a Worker: the same requests, refusals and counts as where the main thread reads them, and what
// happens when there is no room, a client leaves or the Worker dies.
import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { BodyCall, Read } from "../../src/bodies/preparing-worker.ts";
import { LargeBodies, type LargeBodiesOptions, type LargeBody } from "../../src/bodies/large-bodies.ts";
import { largeEchoMaxLength, largeSettingsMaxLength, prepare } from "../../src/bodies/prepare.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { AnswerEnd, Dialect } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { Dialects } from "../../src/dialects/registry.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { earlierOf, type EarlierTexts } from "../../src/dialects/stored-responses.ts";
import type { LogFields } from "../../src/core/log.ts";
import { estimatedInput } from "../../src/nodes/usage.ts";
import { largeNodeRequest, nodeRequest } from "../../src/nodes/request.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { readTokenize } from "../../src/tokens/tokenize.ts";
import { renderAsk, renderTurns } from "../../src/tokens/render.ts";
import { needsMedia, unreadyParts, withParts } from "../../src/tools/media/media-parts.ts";
import { type Ask, noUsage, type Part, type Refusal } from "../../src/core/types.ts";
import { call, fragments, reasoning, text } from "../golden/pieces.ts";
import { longForm } from "../fixtures/optional.ts";
import { pdf } from "../fixtures/pdf.ts";
import { png } from "../fixtures/pictures.ts";
import { atRoute, headOf, readBody, wholeReply, writerOf } from "../fixtures/reading.ts";

const catalog = embeddedCatalog();
const sealingKey = new Uint8Array(32).fill(7);
const options = { sealingKey, clock: systemClock, storesResponses: true };
const responses = responsesDialect(options);
const compaction = atRoute(responses, "/v1/responses/compact");
const dialects = { "chat-completions": chatCompletions, messages, responses, compaction } as const;
type Name = keyof typeof dialects;
const opened = new Dialects(options);
const stays = new AbortController().signal;

const open: LargeBodies[] = [];
const logged: [event: string, fields: LogFields][] = [];

function makeBodies(changes: Partial<LargeBodiesOptions> = {}): LargeBodies {
  const log: LargeBodiesOptions["log"] = (_level, event, fields = {}) => logged.push([event, fields]);
  const bodies = new LargeBodies({ log, sealingKey, storesResponses: true, ...changes });
  open.push(bodies);
  return bodies;
}

afterEach(async () => {
  for (const bodies of open.splice(0)) {
    expect(bodies.heldBytes).toBe(0);
    await bodies.close();
    expect(bodies.isLoaded).toBe(false);
  }
  logged.length = 0;
});

const bytesOf = (json: unknown): Uint8Array =>
  new TextEncoder().encode(typeof json === "string" ? json : JSON.stringify(json));
const bodyOf = (json: unknown, cancelSignal: AbortSignal = stays) => {
  const body = bytesOf(json);
  return { body, bytes: body.length, cancelSignal };
};

/** Reads where the test runs, as the Worker does in another thread. */
class NearWorker extends EventTarget {
  onmessage: ((event: { data: unknown }) => void) | null = null;
  #number = 0;
  onerror: ((event: { message: string }) => void) | null = null;
  /** What it does with a body instead of reading it. */
  readonly #instead: ((worker: NearWorker, call: BodyCall) => boolean) | null;

  constructor(instead: ((worker: NearWorker, call: BodyCall) => boolean) | null = null) {
    super();
    this.#instead = instead;
  }

  postMessage({ number, ...call }: { number: number } & BodyCall, moved: ArrayBuffer[]): void {
    const there = structuredClone(call, { transfer: moved });
    queueMicrotask(() => {
      if (there.order !== "prepare") this.onmessage!({ data: { number, result: undefined } });
      if (there.order === "close") return this.end();
      if (there.order === "open") return;
      this.#number = number;
      if (this.#instead?.(this, there) === true) return;
      this.answer({ body: there.body, prepared: prepare(there, opened) });
    });
  }

  answer(result: Read): void {
    this.onmessage!({ data: structuredClone({ number: this.#number, result }) });
  }

  fail(failed: string): void {
    this.onmessage!({ data: { number: this.#number, failed, error: "Error" } });
  }

  die(message: string): void {
    this.onerror!({ message });
    this.end();
  }

  end(): void {
    this.dispatchEvent(new Event("close"));
  }

  unref(): void {}
}

const near = (instead: ConstructorParameters<typeof NearWorker>[0] = null) => ({
  startWorker: () => new NearWorker(instead) as unknown as Worker,
});

/** What the rest of the gateway makes of a request. */
function viewOf(ask: Ask) {
  const { prepared, turns: _, ...rest } = ask;
  const engines = ["vllm", "llama.cpp", "tgi", "ollama", "unknown"] as const;
  return {
    ...rest,
    bodies: engines.map((engine) =>
      prepared === undefined
        ? nodeRequest(ask, 1, "m", engine).body
        : Buffer.concat(largeNodeRequest({ ...ask, prepared }, 1, "m", engine).body as Buffer[]).toString(),
    ),
    estimatedInput: estimatedInput(ask),
    needsMedia: needsMedia(ask),
  };
}

const dataOf = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const identity = { requestId: "req_1", createdSeconds: 0 };
const said = [...reasoning("hm"), ...text("Hello."), call(0, "call_1", "a"), ...fragments(0, "{}")];
/** The nonce of what is sealed, and when a response ended. */
const ofTheMoment = /"encrypted_content":"[^"]+"|"completed_at":\d+/g;
const ended: AnswerEnd = { reason: "tool_calls", stopSequence: null, usage: noUsage };

async function expectSame(
  bodies: LargeBodies,
  name: Name,
  json: unknown,
  earlier: EarlierTexts | null = null,
): Promise<void> {
  const dialect = dialects[name];
  const text = typeof json === "string" ? json : JSON.stringify(json);
  const bytes = bytesOf(text).length;
  const find = () => Promise.resolve(earlier!);
  const expected = readBody(
    dialect,
    JSON.parse(text),
    bytes,
    catalog,
    earlier === null ? undefined : earlierOf(earlier),
  );
  const head = headOf(dialect);
  const there = await bodies.readAsk(head, bodyOf(text), 1, dialect, catalog, earlier === null ? null : find);
  if (isRefusal(there) || isRefusal(expected)) return expect(there).toEqual(expected as Refusal);
  const { ask: read, writer } = there;
  if (name !== "compaction") {
    const [replied, wanted] = [writer, writerOf(expected)].map((one) =>
      wholeReply(one.encoder(identity, "whole"), said, ended).replace(ofTheMoment, ""),
    );
    expect(replied!).toBe(wanted!);
  }
  using prepared = read.prepared!;
  expect(read.model).toBe(catalog.models.get(read.model.id)!);
  // What is fetched or read is put in the places of its parts.
  const found = new Map(
    [...unreadyParts(expected.turns).entries()].map(([key, { part }], index) => [key, foundFor(part.kind, index)]),
  );
  expect(prepared.unready).toEqual([...unreadyParts(expected.turns).values()]);
  const ready = prepared.unready.length === 0 ? null : await prepared.withMedia(found);
  const ask = ready === null ? read : { ...read, prepared: ready.turns, bodyBytes: ready.bodyBytes };
  const readyExpected = ready === null ? expected : withParts(expected, found);
  const { input, ...own } = viewOf(ask) as ReturnType<typeof viewOf> & { input?: string };
  const { input: inputExpected, ...ownExpected } = viewOf(readyExpected) as typeof own & { input?: unknown };
  expect(dataOf(own)).toEqual(dataOf(ownExpected));
  if (input !== undefined && (read as { store?: boolean }).store)
    expect(JSON.parse(input)).toEqual(
      typeof inputExpected === "string" ? JSON.parse(inputExpected) : dataOf(inputExpected),
    );
  // The tool loop and repeats go on with turns of ours behind it.
  const added = [
    { role: "assistant", content: "a", reasoning: null, calls: [] },
    { role: "user", content: "b" },
  ] as const;
  expect(viewOf({ ...ask, turns: added }).bodies).toEqual(
    viewOf({ ...readyExpected, turns: [...readyExpected.turns, ...added] }).bodies,
  );
  const rendering = await ask.prepared!.render();
  if (isRefusal(rendering)) throw new Error("no rendering");
  const near = renderTurns(readyExpected.turns);
  expect(rendering.extraTokens).toBe(near.extraTokens);
  expect(rendering.texts.ends.length).toBe(near.texts.length);
  expect(new TextDecoder().decode(rendering.texts.bytes)).toBe(near.texts.join("").toWellFormed());
  expect(renderAsk(ask).extraTokens + rendering.extraTokens).toBe(renderAsk(readyExpected).extraTokens);
}

const foundFor = (kind: string, index: number): Part =>
  kind === "image" && index % 2 === 0
    ? { kind: "image", url: `data:image/png;base64,${png(1, 1).toBase64()}`, detail: null }
    : { kind: "text", text: `what was found ${index}` };

// ---------------------------------------------------------------------------------------------------------------
// Any request
// ---------------------------------------------------------------------------------------------------------------

const textArbitrary = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "<system>", "x-anthropic-billing-header: 1\nrest"),
);
const imageUrl = fc.constantFrom(
  `data:image/png;base64,${png(2, 2).toBase64()}`,
  `data:image/jpeg;base64,${png(2, 2).toBase64()}`,
  "https://a.test/1.png",
  "file:///x",
  "data:image/png;base64,AAAA",
);
const fileData = fc.constantFrom(
  `data:text/plain;base64,${Buffer.from("some text").toString("base64")}`,
  `data:application/pdf;base64,${Buffer.from("%PDF-1.4 nothing").toString("base64")}`,
  "https://a.test/1.pdf",
);
const model = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(...catalog.models.keys()) },
  { weight: 1, arbitrary: fc.constant("no-such-model") },
);
const schema = fc.constantFrom(
  { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  { $ref: "#/nowhere" },
);
const toolDefinition = fc.record({
  name: fc.constantFrom("a", "b", "web_search", ""),
  parameters: fc.constantFrom(
    { type: "object" },
    { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
  ),
});

const chatBody = fc.record(
  {
    model,
    messages: fc.array(
      fc.record(
        {
          role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
          content: fc.oneof(
            textArbitrary,
            fc.constant(null),
            fc.array(
              fc.oneof(
                textArbitrary.map((text) => ({ type: "text", text })),
                imageUrl.map((url) => ({ type: "image_url", image_url: { url } })),
                fileData.map((file_data) => ({ type: "file", file: { file_data, filename: "f" } })),
              ),
              { maxLength: 4 },
            ),
          ),
          tool_call_id: fc.constantFrom("c1", "c2"),
          tool_calls: fc.array(
            fc.record({
              id: fc.constant("c1"),
              function: fc.record({ name: fc.constant("a"), arguments: fc.constantFrom("{}", "[", '{"a":1}') }),
            }),
            { maxLength: 2 },
          ),
        },
        { requiredKeys: ["role", "content", "tool_call_id"] },
      ),
      { maxLength: 6 },
    ),
    stream: fc.boolean(),
    tools: fc.array(
      toolDefinition.map((definition) => ({ type: "function", function: definition })),
      { maxLength: 3 },
    ),
    tool_choice: fc.constantFrom("auto", "none", "required"),
    response_format: fc.oneof(
      fc.constant({ type: "json_object" }),
      schema.map((one) => ({ type: "json_schema", json_schema: { name: "n", schema: one } })),
    ),
    temperature: fc.constantFrom(0, 1, 3),
    logit_bias: fc.constant({ "5": 1 }),
    stop: fc.constantFrom("a", ["a", "b"]),
    web_search: fc.boolean(),
  },
  { requiredKeys: ["model", "messages"] },
);

const messagesBody = fc.record(
  {
    model,
    max_tokens: fc.constantFrom(1, 100),
    system: fc.oneof(
      textArbitrary,
      fc.array(
        textArbitrary.map((text) => ({ type: "text", text })),
        { maxLength: 2 },
      ),
    ),
    messages: fc.array(
      fc.record({
        role: fc.constantFrom("user", "assistant", "system"),
        content: fc.oneof(
          textArbitrary,
          fc.array(
            fc.oneof(
              textArbitrary.map((text) => ({ type: "text", text })),
              textArbitrary.map((thinking) => ({ type: "thinking", thinking, signature: "" })),
              fc.constant({ type: "tool_use", id: "t1", name: "a", input: { a: [1] } }),
              textArbitrary.map((content) => ({ type: "tool_result", tool_use_id: "t1", content })),
              imageUrl.map((url) => ({ type: "image", source: { type: "url", url } })),
              fc.constant({
                type: "image",
                source: { type: "base64", media_type: "image/png", data: png(2, 2).toBase64() },
              }),
            ),
            { maxLength: 4 },
          ),
        ),
      }),
      { maxLength: 5 },
    ),
    stream: fc.boolean(),
    tools: fc.array(
      toolDefinition.map(({ name, parameters }) => ({ name, input_schema: parameters })),
      { maxLength: 3 },
    ),
    thinking: fc.constantFrom({ type: "disabled" }, { type: "enabled", budget_tokens: 2000 }),
  },
  { requiredKeys: ["model", "max_tokens", "messages"] },
);

const responsesBody = fc.record(
  {
    model,
    instructions: textArbitrary,
    input: fc.oneof(
      textArbitrary,
      fc.array(
        fc.oneof(
          fc.record({ role: fc.constantFrom("user", "assistant", "system", "developer"), content: textArbitrary }),
          fc.constant({ type: "function_call", call_id: "c1", name: "a", arguments: "{}" }),
          textArbitrary.map((output) => ({ type: "function_call_output", call_id: "c1", output })),
          fc.constant({ type: "reasoning", summary: [{ type: "summary_text", text: "why" }] }),
          fc.constant({ type: "additional_tools", tools: [{ type: "function", name: "more" }] }),
          fc.constant({ type: "compaction_trigger" }),
          fileData.map((file_data) => ({ role: "user", content: [{ type: "input_file", file_data, filename: "f" }] })),
          fc.constant({ type: "item_reference", id: "msg_a_0" }),
        ),
        { maxLength: 5 },
      ),
    ),
    stream: fc.boolean(),
    store: fc.boolean(),
    tools: fc.array(
      fc.oneof(
        toolDefinition.map((definition) => ({ type: "function", ...definition })),
        fc.constant({ type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "x" } }),
        fc.constant({ type: "namespace", name: "n", tools: [{ type: "function", name: "a" }] }),
        fc.constant({ type: "web_search" }),
      ),
      { maxLength: 4 },
    ),
    tool_choice: fc.constantFrom("auto", "required", { type: "function", name: "a" }),
    previous_response_id: fc.constant("resp_a"),
    metadata: fc.constant({ a: "b" }),
  },
  { requiredKeys: ["model", "input"] },
);

const found: EarlierTexts = {
  conversation: JSON.stringify([
    { role: "user", content: "before" },
    { role: "assistant", content: "answer" },
  ]),
  items: JSON.stringify([
    { type: "message", id: "msg_a_0", role: "assistant", content: [{ type: "output_text", text: "referred" }] },
  ]),
  itemsBytes: 200,
};

const refers = (json: { previous_response_id?: string; input: unknown }) =>
  responses.references!(json) === null
    ? null
    : { ...found, conversation: json.previous_response_id === undefined ? null : found.conversation };

describe("any request is the same as where the main thread reads it", () => {
  const runs = Number(process.env["TOLLGATE_FUZZ_RUNS"] ?? (longForm ? 300 : 40));

  test("of chat-completions", async () => {
    const bodies = makeBodies(near());
    await fc.assert(
      fc.asyncProperty(chatBody, (json) => expectSame(bodies, "chat-completions", json)),
      { numRuns: runs },
    );
  });

  test("of messages", async () => {
    const bodies = makeBodies(near());
    await fc.assert(
      fc.asyncProperty(messagesBody, (json) => expectSame(bodies, "messages", json)),
      { numRuns: runs },
    );
  });

  test("of responses, with what it refers to", async () => {
    const bodies = makeBodies(near());
    const same = (json: Parameters<typeof refers>[0]) => expectSame(bodies, "responses", json, refers(json));
    await fc.assert(fc.asyncProperty(responsesBody, same), { numRuns: runs });
  });

  test("of a compaction", async () => {
    const bodies = makeBodies(near());
    const same = (json: Parameters<typeof refers>[0]) => expectSame(bodies, "compaction", json, refers(json));
    await fc.assert(fc.asyncProperty(responsesBody, same), { numRuns: runs });
  });

  test("of tokenize", async () => {
    const bodies = makeBodies(near());
    const body = fc.record(
      {
        text: textArbitrary,
        messages: fc.constant([{ role: "user", content: "hi" }]),
        model,
        return_tokens: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(body, async (json) => {
        const text = JSON.stringify(json);
        const there = await bodies.readTokenize(headOf(chatCompletions), bodyOf(text), 1, chatCompletions, catalog);
        const here = readTokenize(JSON.parse(text), catalog, (one) => {
          const ask = readBody(chatCompletions, one, text.length, catalog);
          return isRefusal(ask) ? ask : { ask };
        });
        if (isRefusal(there) || isRefusal(here) || there.kind === "text" || here.kind === "text") {
          return expect(there).toEqual(here);
        }
        using _ = there.ask.prepared;
        expect(there.model).toBe(here.model);
        expect(viewOf(there.ask).bodies).toEqual(viewOf(here.ask).bodies);
      }),
      { numRuns: runs },
    );
  });

  test("of bodies that are no JSON, or no request", async () => {
    const bodies = makeBodies(near());
    for (const text of ["", "{", "[]", "null", '"a"', "[".repeat(100_000)]) {
      const read = (await readAsk(bodies, bodyOf(text))) as Refusal;
      expect(isRefusal(read)).toBe(true);
      expect(["unreadable", "malformed"]).toContain(read.refusal);
    }
  });
});

// ---------------------------------------------------------------------------------------------------------------
// The Worker
// ---------------------------------------------------------------------------------------------------------------

const chat = (content: string, more: object = {}) => ({
  model: "core-3",
  messages: [{ role: "user", content }],
  ...more,
});
const ofChat = (bodies: LargeBodies, json: unknown, account = 1, cancelSignal = stays) =>
  readAsk(bodies, bodyOf(json, cancelSignal), account);
async function readAsk(
  bodies: LargeBodies,
  body: LargeBody,
  account = 1,
  dialect: Dialect = chatCompletions,
): Promise<Ask | Refusal> {
  const read = await bodies.readAsk(headOf(dialect), body, account, dialect, catalog, null);
  return isRefusal(read) ? read : read.ask;
}

describe("the Worker", () => {
  test("reads bodies of 2 MB in all dialects, and gives the bytes back for what is read again", async () => {
    const bodies = makeBodies();
    const text = "ä long text. ".repeat(150_000);
    await expectSame(bodies, "chat-completions", chat(text));
    await expectSame(bodies, "messages", { ...chat(text), max_tokens: 10, stream: true });
    await expectSame(bodies, "responses", { model: "core-3", input: text, tools: [{ type: "custom", name: "patch" }] });
  }, 120_000);

  test("reads sealed reasoning with the key that it was given", async () => {
    const bodies = makeBodies();
    const input = [
      { role: "user", content: "a" },
      { type: "reasoning", encrypted_content: "tg1.xxxx", summary: [] },
    ];
    await expectSame(bodies, "responses", { model: "core-3", input });
  });

  test("reads one body after the other whose files are yet to be read", async () => {
    const bodies = makeBodies();
    const file_data = `data:application/pdf;base64,${pdf("Hello").toString("base64")}`;
    const content = [{ type: "file", file: { filename: "a.pdf", file_data } }];
    const json = { model: "core-3", messages: [{ role: "user", content }] };
    for (let body = 0; body < 3; body++) await expectSame(bodies, "chat-completions", json);
    expect(logged).toEqual([]);
  });

  test("ends when it is told to, and not by a fault", async () => {
    const worker = new Worker(new URL("../../src/bodies/preparing-worker.ts", import.meta.url).href);
    const errors: string[] = [];
    worker.onerror = ({ message }) => void errors.push(message);
    const ended = new Promise((resolve) => worker.addEventListener("close", resolve));
    const read = new Promise((resolve) => (worker.onmessage = resolve));
    const { headers: _, ...address } = headOf(messages);
    const reading = { dialect: "messages", ...address, headers: [], tokenizes: false };
    const order = { reading, wanted: "request", body: bytesOf("{}"), bodyBytes: 2, models: [] } as const;
    const calls = [
      { order: "open", sealingKey, storesResponses: true },
      { order: "prepare", ...order, finds: false, earlier: null, found: null },
      { order: "close" },
    ] satisfies BodyCall[];
    for (const [number, call] of calls.entries()) worker.postMessage({ ...call, number });
    await Promise.all([read, ended]);
    expect(errors).toEqual([]);
  });

  test("that is told to end while it reads answers nobody", async () => {
    const reading: (() => void)[] = [];
    const bodies = makeBodies(
      near((worker, order) => {
        if (order.order !== "prepare") return false;
        reading.push(() => worker.answer({ body: order.body, prepared: prepare(order, opened) }));
        return true;
      }),
    );
    const read = ofChat(bodies, chat("a"));
    while (reading.length === 0) await Bun.sleep(0);
    const closed = bodies.close();
    expect(await read).toEqual({ refusal: "internal" });
    reading[0]!(); // a thread's message may come until it has ended
    await closed;
  });

  test("ends when nothing was read for a while, and is started again", async () => {
    const bodies = makeBodies({ idleMs: 1 });
    await expectSame(bodies, "chat-completions", chat("a"));
    while (bodies.isLoaded) await Bun.sleep(1);
    await expectSame(bodies, "chat-completions", chat("b"));
  });

  test("that dies is an error of the request that it had, and another reads the next", async () => {
    let deaths = 0;
    const bodies = makeBodies(
      near((worker) => {
        if (deaths > 0) return false;
        deaths += 1;
        worker.die("out of memory");
        return true;
      }),
    );
    const [first, second] = await Promise.all([ofChat(bodies, chat("a")), ofChat(bodies, chat("b"), 2)]);
    expect(first).toEqual({ refusal: "internal" });
    expect(isRefusal(second)).toBe(false);
    (second as Ask).prepared![Symbol.dispose]();
    expect(logged).toEqual([["the reader of large bodies died", { reason: "out of memory" }]]);
  });

  test("that dies over what is read again fails that, and the room is given back", async () => {
    let orders = 0;
    const bodies = makeBodies(near((worker) => (++orders === 2 ? (worker.die("cancelled"), true) : false)));
    const ask = (await ofChat(bodies, chat("a"))) as Ask;
    expect(await ask.prepared!.render()).toEqual({ refusal: "internal" });
    expect(await ask.prepared!.render()).toEqual({ refusal: "internal" });
    expect(ask.prepared!.withMedia(new Map())).rejects.toThrow("could not be read again");
    ask.prepared![Symbol.dispose]();
  });

  test("that throws is an error of that request alone", async () => {
    const bodies = makeBodies(
      near((worker, order) => {
        if (order.order !== "prepare" || !new TextDecoder().decode(order.body).includes("throw")) return false;
        worker.fail("RangeError");
        return true;
      }),
    );
    expect(await ofChat(bodies, chat("throw"))).toEqual({ refusal: "internal" });
    expect(logged).toEqual([["a large body could not be read", { reason: "RangeError" }]]);
    await expectSame(bodies, "chat-completions", chat("b"));
  });
});

describe("room", () => {
  test("accounts take turns, a body at a time", async () => {
    const read: string[] = [];
    const bodies = makeBodies(
      near((_worker, order) => {
        if (order.order === "prepare") read.push(/"content":"(\w+)"/.exec(new TextDecoder().decode(order.body))![1]!);
        return false;
      }),
    );
    const asks = await Promise.all([
      ...["a1", "a2", "a3"].map((name) => ofChat(bodies, chat(name), 1)),
      ...["b1", "b2"].map((name) => ofChat(bodies, chat(name), 2)),
    ]);
    for (const ask of asks) (ask as Ask).prepared![Symbol.dispose]();
    // The first account was alone when its first body was taken.
    expect(read).toEqual(["a1", "a2", "b1", "a3", "b2"]);
  });

  test("is kept until the request has ended, and without any a request is refused as busy", async () => {
    const json = chat("x".repeat(900));
    const room = { places: 10, bytes: 4_000, accountPlaces: 5, accountBytes: 2_000 };
    const bodies = makeBodies({ ...near(), room });
    const first = (await ofChat(bodies, json)) as Ask;
    const second = (await ofChat(bodies, json)) as Ask;
    expect(await ofChat(bodies, json)).toEqual({ refusal: "busy", detail: { seconds: 5 } });
    const other = (await ofChat(bodies, json, 2)) as Ask;
    first.prepared![Symbol.dispose]();
    first.prepared![Symbol.dispose]();
    const third = (await ofChat(bodies, json)) as Ask;
    for (const ask of [second, other, third]) ask.prepared![Symbol.dispose]();
  });

  test("is given back by a client that leaves, in line or while its body is read", async () => {
    const waiting: (() => void)[] = [];
    const bodies = makeBodies(
      near((worker, order) => {
        if (order.order !== "prepare") return false;
        waiting.push(() => worker.answer({ body: order.body, prepared: prepare(order, opened) }));
        return true;
      }),
    );
    const leaving = [new AbortController(), new AbortController()];
    const reads = leaving.map(({ signal }) => ofChat(bodies, chat("a"), 1, signal));
    const stayed = ofChat(bodies, chat("b"), 1);
    await Bun.sleep(0);
    for (const client of leaving) client.abort();
    for (const read of await Promise.all(reads))
      expect(read).toEqual({ refusal: "unreadable", detail: { reason: "The client left" } });
    while (waiting.length > 0) {
      waiting.shift()!();
      await Bun.sleep(0);
    }
    ((await stayed) as Ask).prepared![Symbol.dispose]();
  });
});

describe("tools and other settings, which the main thread takes as objects,", () => {
  const description = "d".repeat(1_000);
  /** Functions that are `length` characters of JSON together, and a little less. */
  const functions = (length: number) => {
    const one = (index: number) => ({ name: `t${index}`, description, parameters: { type: "object" } });
    return Array.from({ length: Math.floor(length / 1_100) }, (_none, index) => one(index));
  };
  const fits = largeSettingsMaxLength;
  const tooMany = largeSettingsMaxLength + 200_000;
  const ofResponses = (bodies: LargeBodies, more: object) =>
    readAsk(bodies, bodyOf({ model: "core-3", input: "a", ...more }), 1, responses);
  const wrapped = (tools: ReturnType<typeof functions>) =>
    tools.map((definition) => ({ type: "function", function: definition }));
  const named = (tools: ReturnType<typeof functions>) =>
    tools.map((definition) => ({ type: "function", ...definition }));

  async function expectRead(read: Promise<Ask | Refusal>): Promise<void> {
    const ask = await read;
    expect(isRefusal(ask) ? ask : null).toBeNull();
    (ask as Ask).prepared![Symbol.dispose]();
  }

  const refused = (what: string, most: string) => ({
    refusal: "malformed",
    detail: { reason: expect.stringMatching(new RegExp(`${what}.* ${most} MiB`)) },
  });

  test("are read up to their limit, and refused beyond it, in each dialect", async () => {
    const bodies = makeBodies(near());
    await expectRead(ofChat(bodies, chat("a", { tools: wrapped(functions(fits)) })));
    expect(await ofChat(bodies, chat("a", { tools: wrapped(functions(tooMany)) }))).toMatchObject(
      refused("tools", "2"),
    );
    await expectRead(ofResponses(bodies, { tools: named(functions(fits)) }));
    expect(await ofResponses(bodies, { tools: named(functions(tooMany)) })).toMatchObject(refused("tools", "2"));
  });

  test("are measured with the tools that tool_choice keeps from the model, and with those of the input", async () => {
    const bodies = makeBodies(near());
    const tools = named(functions(tooMany));
    const tool_choice = { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "t0" }] };
    expect(await ofResponses(bodies, { tools, tool_choice })).toMatchObject(refused("tools", "2"));
    const input = [
      { role: "user", content: "a" },
      { type: "additional_tools", tools },
    ];
    expect(await ofResponses(bodies, { input })).toMatchObject(refused("tools", "2"));
  });

  test("are not the instructions, nor what else a response repeats, which have a limit of their own", async () => {
    const bodies = makeBodies(near());
    await expectRead(ofResponses(bodies, { instructions: '"'.repeat(600_000), tools: named(functions(fits)) }));
    const instructions = "a".repeat(largeEchoMaxLength);
    expect(await ofResponses(bodies, { instructions })).toMatchObject(refused("instructions", "4"));
    expect(await ofResponses(bodies, { metadata: { instructions } })).toMatchObject(refused("metadata", "4"));
  });
});
