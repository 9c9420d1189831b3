// Responses over a WebSocket: the same spine for every message, and what the socket remembers between them.
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { eventually } from "../fixtures/eventually.ts";
import { ResponseSocket, type SocketEvent } from "../fixtures/response-socket.ts";
import { finish, once, reasoning, stream, text } from "../fixtures/scripts.ts";
import { Stack, useStack } from "../fixtures/stack.ts";

const delta = "response.output_text.delta";

describe.each([1, 2])("with %d threads", (threads) => {
  const stack = useStack({ threads });
  const open = async (credit?: number, headers?: object) => {
    const account = await stack.gateway.account(credit);
    return { account, socket: await ResponseSocket.open(stack.gateway, account.api_key, headers) };
  };
  const prompt = (script: string) => {
    const marker = stack.node.marker(script);
    return { marker, input: `hello [[${marker}]]` };
  };
  const messages = async (marker: string): Promise<string[]> => {
    const last = (await stack.node.requests(marker)).at(-1)!;
    return (last.body!["messages"] as { role: string; content: string }[]).map(
      ({ role, content }) => `${role}: ${content}`,
    );
  };

  describe("the cases of the Open Responses suite", () => {
    test("websocket-response and -sequential-responses: the events of the stream, each a frame, to the last", async () => {
      const { account, socket } = await open();
      for (const script of ["text", "reasoning-text"]) {
        const from = socket.events.length;
        const end = await socket.turn({ input: [{ type: "message", role: "user", content: prompt(script).input }] });
        expect(end).toMatchObject({ type: "response.completed", response: { output_text: "Hi there!" } });
        const events = socket.events.slice(from);
        expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"]);
        expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()]);
      }
      expect(await stack.gateway.usage(account.email)).toHaveLength(2);
      socket[Symbol.dispose]();
    });

    test("websocket-continuation: what is stored nowhere is remembered by the socket, and by no other", async () => {
      const { account, socket } = await open();
      const { input, marker } = prompt("text");
      const first = await socket.turn({ input, store: false, instructions: "be brief" });
      const second = await socket.turn({ input: "and?", store: false, previous_response_id: first.response!.id });
      expect(second.response).toMatchObject({ previous_response_id: first.response!.id, store: false });
      const third = await socket.turn({
        input: [{ role: "user", content: "again" }],
        store: false,
        previous_response_id: second.response!.id,
      });
      expect(third.type).toBe("response.completed");
      const said = ["assistant: Hi there!", "user: and?", "assistant: Hi there!", "user: again"];
      expect(await messages(marker)).toEqual([`user: ${input}`, ...said]);
      // -reconnect-store-false-recovery, -previous-response-not-found
      const other = await ResponseSocket.open(stack.gateway, account.api_key);
      const lost = await other.turn({ input: "go on", store: false, previous_response_id: third.response!.id });
      const { id } = third.response!;
      expect(lost).toMatchObject({
        type: "error",
        status: 400,
        error: {
          type: "invalid_request_error",
          code: "previous_response_not_found",
          message: `Previous response with id '${id}' not found.`,
          param: "previous_response_id",
        },
      });
      expect((await other.turn({ input: prompt("text").input })).type).toBe("response.completed");
      for (const each of [socket, other]) each[Symbol.dispose]();
    });

    test("websocket-failed-continuation-evicts-cache: a failed continuation forgets what it continued", async () => {
      const { socket } = await open();
      const first = await socket.turn({ input: prompt("text").input, store: false });
      const previous_response_id = first.response!.id;
      const result = { type: "function_call_output", call_id: "call_missing", output: "nothing" };
      const failed = await socket.turn({ input: [result], store: false, previous_response_id });
      expect(failed.error!.message).toContain("No tool call found for function call output with call_id call_missing");
      const again = await socket.turn({ input: "stale", store: false, previous_response_id });
      expect(again.error!.code).toBe("previous_response_not_found");
      socket[Symbol.dispose]();
    });

    test("websocket-compact-new-chain: a compacted window begins a conversation", async () => {
      const { account, socket } = await open();
      const reply = await fetch(`${stack.gateway.url}/v1/responses/compact`, {
        method: "POST",
        headers: { authorization: `Bearer ${account.api_key}` },
        body: JSON.stringify({ model: "core-3", input: prompt("text").input }),
      });
      const { output } = (await reply.json()) as { output: object[] };
      const input = [...output, { type: "message", role: "user", content: "go on" }];
      expect((await socket.turn({ input, store: false, tools: [] })).type).toBe("response.completed");
      socket[Symbol.dispose]();
    });
  });

  test("a stored response is continued from any socket, and what follows it from its own, stored or not", async () => {
    const { account, socket } = await open();
    const { input, marker } = prompt("text");
    const stored = await socket.turn({ input });
    expect(stored.response!.store).toBe(true);
    socket[Symbol.dispose]();
    using other = await ResponseSocket.open(stack.gateway, account.api_key);
    const kept = await other.turn({ input: "two", store: false, previous_response_id: stored.response!.id });
    const again = await other.turn({ input: "three", previous_response_id: kept.response!.id });
    expect(again.response).toMatchObject({ store: true, previous_response_id: kept.response!.id });
    const all = [`user: ${input}`, "assistant: Hi there!", "user: two", "assistant: Hi there!", "user: three"];
    expect(await messages(marker)).toEqual(all);
    using last = await ResponseSocket.open(stack.gateway, account.api_key);
    await last.turn({ input: "four", previous_response_id: again.response!.id });
    expect(await messages(marker)).toEqual([...all, "assistant: Hi there!", "user: four"]);
  });

  test("a large conversation goes on like a small one", async () => {
    const { socket } = await open();
    const { input, marker } = prompt("text");
    const long = "é ".repeat(400_000); // 1.2 MB
    const first = await socket.turn({ input: `${input} ${long}`, store: false });
    expect(first.type).toBe("response.completed");
    const second = await socket.turn({ input: "short", store: false, previous_response_id: first.response!.id });
    expect(second.response).toMatchObject({ status: "completed", previous_response_id: first.response!.id });
    const seen = await messages(marker);
    expect(seen.slice(1)).toEqual(["assistant: Hi there!", "user: short"]);
    expect(seen[0]).toHaveLength(`user: ${input} ${long}`.length);
    socket[Symbol.dispose]();
  });

  test("a warm-up costs nothing, asks no node, and its items begin the conversation", async () => {
    const { account, socket } = await open();
    const { input, marker } = prompt("text");
    for (const store of [false, true]) {
      const warm = await socket.turn({ input, store, generate: false, instructions: "be brief" });
      expect(warm).toMatchObject({ type: "response.completed", response: { output: [], usage: { total_tokens: 0 } } });
      await stack.gateway.expectUncharged(account);
      expect(await stack.node.requests(marker)).toEqual([]);
      if (!store) continue;
      const next = { input: [{ role: "user", content: "more" }], previous_response_id: warm.response!.id };
      expect((await socket.turn(next)).response!.output_text).toBe("Hi there!");
      expect(await messages(marker)).toEqual([`user: ${input}`, "user: more"]);
    }
    socket[Symbol.dispose]();
  });

  test("streams run at once and each in order; a fork leaves the conversation that it came from", async () => {
    const { socket } = await open();
    const [slow, quick] = [prompt("slow"), prompt("text")];
    socket.create({ stream_id: "slow", input: slow.input, store: false });
    socket.create({ stream_id: "slow", input: quick.input, store: false });
    socket.create({ stream_id: "quick.1", input: quick.input, store: false });
    const ends: SocketEvent[] = [];
    while (ends.length < 3) ends.push(await socket.end());
    expect(ends.map(({ stream_id }) => stream_id)).toEqual(["quick.1", "slow", "slow"]);
    const parent = ends[0]!.response!.id;
    const fork = await socket.turn({ stream_id: "fork", input: "a", store: false, previous_response_id: parent });
    expect(fork).toMatchObject({ type: "response.completed", stream_id: "fork" });
    const failing = { input: [{ type: "function_call_output", call_id: "x", output: "" }], store: false };
    await socket.turn({ stream_id: "fork.2", ...failing, previous_response_id: parent });
    const on = await socket.turn({ stream_id: "quick.1", input: "b", store: false, previous_response_id: parent });
    expect(on).toMatchObject({ type: "response.completed", stream_id: "quick.1" });
    expect((await messages(quick.marker)).at(-1)).toBe("user: b");
    for (const stream_id of ["", "a b", 7, null, "x".repeat(257)]) {
      const refused = await socket.turn({ stream_id, input: "x" });
      expect(refused).toMatchObject({ status: 400, error: { code: "invalid_stream_id", param: "stream_id" } });
    }
    for (let index = 0; index < 28; index++) socket.create({ stream_id: `s${index}` }); // four are there
    for (let index = 0; index < 28; index++) expect((await socket.end()).error!.code).toBeNull();
    const beyond = await socket.turn({ stream_id: "one-too-many", input: "x" });
    expect(beyond).toMatchObject({
      stream_id: "one-too-many",
      error: { code: "websocket_stream_limit_reached" },
    });
    socket[Symbol.dispose]();
  });

  test("steering waits for the response, then begins another that continues it", async () => {
    const { account, socket } = await open();
    const { input, marker } = prompt("slow");
    socket.create({ stream_id: "main", input, store: false });
    const { response } = await socket.of("response.created");
    const previous_response_id = response!.id;
    socket.send({ type: "response.steer", previous_response_id, input: "shorter" });
    const accepted = await socket.of("response.steer.accepted");
    expect(accepted).toMatchObject({ stream_id: "main", steer: { previous_response_id } });
    const end = await socket.end();
    const numbers = socket.events.map(({ sequence_number }) => sequence_number);
    expect(numbers).toEqual([...numbers.keys()]);
    expect(end).toMatchObject({ type: "response.completed", response: { id: previous_response_id } });
    const successor = await socket.end();
    expect(successor).toMatchObject({ stream_id: "main", response: { status: "completed", previous_response_id } });
    expect((await messages(marker)).at(-1)).toBe("user: shorter");
    socket.send({ type: "response.steer", previous_response_id, input: "late" });
    expect(await socket.of("response.steer.failed")).toMatchObject({
      steer: { previous_response_id, input: "late" },
      error: { code: "response_not_found" },
    });
    expect(await stack.gateway.usage(account.email)).toHaveLength(2);
    socket[Symbol.dispose]();
  });

  test("steering of a response that calls the client's tools waits for their results", async () => {
    const { socket } = await open();
    await stack.node.define("waits-and-calls", {
      advance: "rounds",
      replies: [
        stream(
          reasoning("Hm."),
          { waitMs: 300 },
          {
            chunk: {
              delta: {
                tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
              },
            },
          },
          finish("tool_calls"),
        ),
        stream(text("Done."), finish("stop")),
      ],
    });
    const { input, marker } = prompt("waits-and-calls");
    const tools = [{ type: "function", name: "f", parameters: { type: "object" } }];
    socket.create({ input, store: false, tools });
    const { response } = await socket.of("response.created");
    const previous_response_id = response!.id;
    socket.send({ type: "response.steer", previous_response_id, input: [{ role: "user", content: "faster" }] });
    await socket.of("response.completed");
    expect(await socket.next()).toMatchObject({
      type: "response.steer.pending",
      reason: "waiting_for_required_input",
      required_input: [{ type: "function_call_output", call_id: "call_1" }],
    });
    const result = { type: "function_call_output", call_id: "call_1", output: "42" };
    const last = await socket.turn({ input: [result], store: false, tools, previous_response_id });
    expect(last.response!.output_text).toBe("Done.");
    expect((await messages(marker)).slice(-2)).toEqual(["user: faster", "tool: 42"]);
    for (const input of [undefined, [], 5, [{ role: "assistant", content: "x" }]]) {
      socket.send({ type: "response.steer", previous_response_id: last.response!.id, input });
      expect((await socket.of("response.steer.failed")).error!.code).toBe("invalid_input");
    }
    socket[Symbol.dispose]();
  });

  test("errors are events with their status and headers, and the socket goes on", async () => {
    const { account, socket } = await open();
    const cases: [object | string, object][] = [
      ["no JSON", { status: 400 }],
      ["[1]", { status: 400 }],
      [{ type: "response.dance" }, { status: 400 }],
      [{ type: "response.create" }, { status: 400 }],
      ['{"type":"response.create","model":"core-3","input":[}', { status: 400 }],
      [
        { type: "response.create", model: "nobody", input: "x" },
        { status: 400, error: { code: "model_not_found" } },
      ],
      [{ type: "response.create", model: "core-3", input: 5 }, { status: 400 }],
      [{ type: "response.create", model: "core-3", input: "x", previous_response_id: 5 }, { status: 400 }],
      [{ type: "response.create", model: "core-3", input: "x", background: true }, { status: 400 }],
    ];
    for (const [event, expected] of cases) {
      socket.send(event);
      expect(await socket.end()).toMatchObject({
        type: "error",
        error: { type: "invalid_request_error" },
        ...expected,
      });
    }
    const failed = await socket.turn({ input: prompt("status-429").input });
    expect(failed).toMatchObject({ type: "error", status: 429, error: { type: "rate_limit_error" } });
    expect(failed).toHaveProperty("headers.retry-after");
    const broken = await socket.turn({ input: prompt("error-mid-stream").input });
    expect(broken).toMatchObject({ type: "response.failed", response: { status: "failed" } });
    await stack.gateway.expectUncharged(account);
    expect((await socket.turn({ input: prompt("text").input })).type).toBe("response.completed");
    const poor = await open(0);
    await poor.socket.turn({ input: prompt("text").input });
    const refused = await poor.socket.turn({ input: "x", max_output_tokens: 65_536 });
    expect(refused).toMatchObject({ status: 429, error: { code: "insufficient_quota" } });
    for (const each of [socket, poor.socket]) each[Symbol.dispose]();
  });

  test("a client that leaves before the first event pays nothing, and later for what came, once", async () => {
    const quiet = await open();
    const silent = prompt("silent-60s");
    quiet.socket.create({ input: silent.input });
    await eventually("the node has it", async () => (await stack.node.requests(silent.marker)).length === 1);
    if (threads === 1) await Bun.sleep(12_000); // signs of life are due, which over a WebSocket are no events
    expect(quiet.socket.events).toEqual([]);
    quiet.socket[Symbol.dispose]();
    await stack.node.closedAt(silent.marker);
    await stack.gateway.expectNothingReserved();
    await stack.gateway.expectUncharged(quiet.account);

    const { account, socket } = await open();
    const endless = [prompt("endless"), prompt("endless")];
    for (const [index, { input }] of endless.entries()) socket.create({ stream_id: `s${index}`, input });
    for (const id of ["s0", "s1"]) await socket.next(({ type, stream_id }) => type === delta && stream_id === id);
    socket.create({ stream_id: "s0", input: "never runs" });
    socket[Symbol.dispose]();
    for (const { marker } of endless) await stack.node.closedAt(marker);
    const rows = await eventually("both are charged", async () => {
      const rows = await stack.gateway.usage(account.email);
      return rows.length === 2 ? rows : null;
    });
    expect(rows.every(({ estimated, output }) => estimated && output > 0)).toBe(true);
  });

  test("a revoked key ends its sockets: the next message is refused, and an idle one closes", async () => {
    const account = await stack.gateway.account();
    const { id, api_key } = await stack.gateway.makeKey(account.email, { name: "laptop" });
    const [asking, idle] = await Promise.all([1, 2].map(() => ResponseSocket.open(stack.gateway, api_key)));
    const { input, marker } = prompt("slow");
    asking!.create({ input });
    await asking!.of(delta);
    await stack.gateway.revokeKey(account.email, id);
    expect((await asking!.end()).type).toBe("response.completed"); // as over HTTP
    asking!.create({ input: "more" });
    expect(await asking!.end()).toMatchObject({ type: "error", status: 401, error: { code: "invalid_api_key" } });
    for (const socket of [asking!, idle!]) expect(await socket.closed).toMatchObject({ code: 1008 });
    expect(await stack.node.requests(marker)).toHaveLength(1);
    expect(await stack.gateway.usage(account.email)).toHaveLength(1);
  });

  test("what is no WebSocket, or has no key, is answered over HTTP", async () => {
    const { api_key } = await stack.gateway.account();
    const ask = async (headers: Record<string, string>) =>
      (await fetch(`${stack.gateway.url}/v1/responses`, { headers })).status;
    const authorization = `Bearer ${api_key}`;
    expect(await ask({ authorization })).toBe(404);
    expect(await ask({ authorization, upgrade: "h2c" })).toBe(426);
    expect(await ask({ authorization, upgrade: "websocket" })).toBe(426); // without the rest of the handshake
    expect(await ask({ upgrade: "websocket" })).toBe(401);
    expect(await ask({ authorization: "Bearer wrong", upgrade: "websocket" })).toBe(401);
  });

  test("an account has 64 sockets on a thread, and the next is a 429", async () => {
    const account = await stack.gateway.account();
    const sockets: ResponseSocket[] = [];
    const isFull = async (): Promise<boolean> => {
      try {
        sockets.push(await ResponseSocket.open(stack.gateway, account.api_key));
        return false;
      } catch {
        return true;
      }
    };
    while (!(await isFull())) expect(sockets.length).toBeLessThanOrEqual(64 * threads);
    expect(sockets.length).toBeGreaterThanOrEqual(64);
    sockets.pop()![Symbol.dispose]();
    for (const socket of sockets) socket[Symbol.dispose]();
    await eventually("there is room again", async () => !(await isFull()));
    sockets.at(-1)![Symbol.dispose]();
  });

  test("a client that does not read stops the node instead of filling memory", async () => {
    const account = await stack.gateway.account();
    await stack.node.define("flood", {
      advance: "rounds",
      replies: [stream({ repeat: text("x".repeat(4_000)), times: 6_000, everyMs: 0 }, finish("stop"))],
    });
    const { input, marker } = prompt("flood");
    const { hostname, port } = new URL(stack.gateway.url);
    const socket = connect(Number(port), hostname);
    const handshake = `GET /v1/responses HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nAuthorization: Bearer ${account.api_key}\r\n`;
    socket.write(`${handshake}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    // What a relay passes on to the main thread stops, too.
    using earlier = await ResponseSocket.open(stack.gateway, account.api_key);
    const previous_response_id = (await earlier.turn({ input: prompt("text").input })).response!.id;
    const body = threads === 1 ? { input } : { input, previous_response_id };
    socket.write(textFrame(JSON.stringify({ type: "response.create", model: "core-3", store: false, ...body })));
    await eventually("the node has it", async () => (await stack.node.requests(marker)).length === 1);
    await Bun.sleep(4_000); // all 24 MB would have come
    expect(await stack.node.open()).toBe(1);
    socket.destroy();
    await stack.node.closedAt(marker);
  });
});

test("a stop ends idle sockets at once, lets responses end, and refuses new ones", async () => {
  await using stack = await Stack.start();
  const account = await stack.gateway.account();
  const [busy, idle] = await Promise.all([1, 2].map(() => ResponseSocket.open(stack.gateway, account.api_key)));
  await stack.node.define("held", once(text("tick "), { defined: "let go" }, text("tock"), finish("stop")));
  busy!.create({ input: `[[${stack.node.marker("held")}]]` });
  await busy!.of(delta);
  const stopped = stack.gateway.kill("SIGTERM");
  expect(await idle!.closed).toMatchObject({ code: 1001 });
  // Its thread may hear of the stop a moment after that of the idle one.
  let served = 1;
  let late = await busy!.turn({ stream_id: "late", input: "x" });
  for (; late.type !== "error"; served += 1) late = await busy!.turn({ stream_id: "late", input: "x" });
  expect(late).toMatchObject({ stream_id: "late", status: 503 });
  await stack.node.define("let go", once(finish("stop")));
  expect((await busy!.end()).type).toBe("response.completed");
  expect(await busy!.closed).toMatchObject({ code: 1001 });
  expect(await stopped).toBe(0);
  await stack.gateway.restart();
  expect(await stack.gateway.usage(account.email)).toHaveLength(served);
});

function textFrame(message: string): Buffer {
  const payload = Buffer.from(message);
  const head = Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0]); // the mask is 0
  return Buffer.concat([head, payload]);
}
