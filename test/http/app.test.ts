// The HTTP side over a real socket, with parts that answer by script: stopping, and what each address answers.
import { afterEach, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/catalog.ts";
import { systemClock } from "../../src/clock.ts";
import { type RunningServer, type ServerParts, startServer } from "../../src/http/app.ts";
import { Counter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import type { Ending, Hold, Slot, Usage } from "../../src/types.ts";
import { eventually } from "../fixtures/eventually.ts";

const usage: Usage = { inputFresh: 1, inputCached: 0, output: 1, reasoning: 0 };

let running: RunningServer | null = null;
afterEach(async () => {
  await running?.stop(0);
  running = null;
});

/** A server whose node says a word and then waits until it is stopped. */
function start(): { url: string; events: string[] } {
  const events: string[] = [];
  const holdOf = (): Hold => {
    let open = true;
    return {
      ready: null,
      settle: async () => void events.push("charged"),
      [Symbol.dispose]() {
        if (open) events.push("given back");
        open = false;
      },
    };
  };
  const slot: Slot = {
    nodeName: "scripted",
    alike: () => new Set(["scripted"]),
    generate(_ask, _account, gone, sink) {
      sink.piece({ kind: "text", literal: '"word"', logprobs: null });
      void sink.flush();
      return new Promise<Ending>((resolve) =>
        gone.addEventListener("abort", () => resolve({ kind: "gone", usage, estimated: true })),
      );
    },
    [Symbol.dispose]() {},
  };
  const parts: ServerParts = {
    keys: { account: (key) => (key === "good" ? 1 : null) },
    catalog: embeddedCatalog(),
    admission: { countRequest: () => null, refuseFlooded: () => null, admit: () => holdOf() },
    pool: { enter: () => slot },
    storedResponses: null,
    clock: systemClock,
    log: () => {},
  };
  const counts = new TokenCounts(new Counter({ log: () => {} }), null, systemClock);
  running = startServer(parts, { host: "127.0.0.1", port: 0, sealingKey: new Uint8Array(32), counts });
  return { url: running.url, events };
}

const ask = (url: string, stream: boolean) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-api-key": "good" },
    body: JSON.stringify({ model: "core-3", stream, messages: [{ role: "user", content: "x" }] }),
  });

test("a stop lets no new request in, and cuts what is still open after the grace time without charging it", async () => {
  const { url, events } = start();
  const server = running!;
  const stream = await ask(url, true);
  const whole = ask(url, false);
  await eventually("both are open", async () => server.openRequests === 2);
  const stopped = server.stop(50);
  const text = await stream.text();
  expect(text).toContain('"content":"word"');
  expect(text).toContain("The server is stopping. Please retry.");
  expect(text).not.toContain("[DONE]");
  expect((await whole).status).toBe(503);
  await stopped;
  expect(events).toEqual(["given back", "given back"]);
  expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

test("a client that leaves a reply which is not streamed stops the node and pays nothing", async () => {
  const { url, events } = start();
  const client = new AbortController();
  const reply = fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-api-key": "good" },
    body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "x" }] }),
    signal: client.signal,
  }).catch(() => null);
  await eventually("it is open", async () => running!.openRequests === 1);
  client.abort();
  await reply;
  await eventually("it is over", async () => running!.openRequests === 0);
  expect(events).toEqual(["given back"]);
});

test.each([
  ["GET", "/v1/nothing", 404, { error: { type: "not_found_error" } }],
  ["PUT", "/v1/messages", 404, { type: "error", error: { type: "not_found_error" } }],
  ["GET", "/v1/responses", 404, { error: { type: "not_found_error" } }],
  ["POST", "/chat/completions", 401, { error: { code: "invalid_api_key" } }],
  ["POST", "/v1/v1/messages", 401, { type: "error", error: { type: "authentication_error" } }],
  ["GET", "/v1/models?limit=1", 401, { error: { code: "invalid_api_key" } }],
])("%s %s without a key is %d in the dialect's shape", async (method, path, status, body) => {
  const { url } = start();
  const reply = await fetch(url + path, { method });
  expect(reply.status).toBe(status);
  expect(await reply.json()).toMatchObject(body);
});

test("the model list refuses in the shape of the client that asks", async () => {
  const { url } = start();
  const reply = await fetch(`${url}/v1/models`, { headers: { "anthropic-version": "2023-06-01" } });
  expect([reply.status, await reply.json()]).toMatchObject([
    401,
    { type: "error", error: { type: "authentication_error" } },
  ]);
});

test("an upgrade to a WebSocket on /v1/responses is 426, on which Codex falls back to HTTP", async () => {
  const { url } = start();
  const reply = await fetch(`${url}/v1/responses`, { headers: { upgrade: "websocket" } });
  expect(reply.status).toBe(426);
});

test("probes are answered without a key", async () => {
  const { url } = start();
  for (const path of ["/", "/api/hello"]) expect((await fetch(url + path, { method: "HEAD" })).status).toBe(200);
  for (const path of ["/healthz", "/readyz", "/metrics"]) expect((await fetch(url + path)).status).toBe(200);
});
