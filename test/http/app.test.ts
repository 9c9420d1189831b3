// The HTTP side over a real socket, with scripted parts: stopping, and what each address answers.
import { by } from "../fixtures/principals.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { refuse } from "../../src/core/refusals.ts";
import { unreadBodies } from "../../src/http/arriving-bodies.ts";
import { type RunningServer, type ServerOptions, type ServerParts, startServer } from "../../src/http/app.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import type { Ending, Hold, Slot, Usage } from "../../src/core/types.ts";
import { eventually } from "../fixtures/eventually.ts";
import { ModelHabits } from "../../src/tools/model-habits.ts";

const usage: Usage = { inputFresh: 1, inputCached: 0, output: 1, reasoning: 0 };

let running: RunningServer | null = null;
afterEach(async () => {
  await running?.stop(0);
  running = null;
});

/** A server whose node says a word and then waits until it is stopped. */
function start(
  options: Partial<ServerOptions> = {},
  refuseModel: ServerParts["admission"]["refuseModel"] = () => null,
  principal: ServerParts["keys"]["principal"] = (key) => (key === "good" ? by(1) : null),
  run: Slot["run"] = (_ask, _account, cancelSignal, sink) => {
    sink.piece({ kind: "text", literal: '"word"', logprobs: null });
    void sink.flush();
    return new Promise<Ending>((resolve) =>
      cancelSignal.addEventListener("abort", () => resolve({ kind: "cancelled", usage, estimated: true })),
    );
  },
): { url: string; events: string[] } {
  const events: string[] = [];
  const holdOf = (): Hold => {
    let open = true;
    return {
      ready: null,
      settle: async (usage) => {
        events.push("charged");
        return usage;
      },
      [Symbol.dispose]() {
        if (open) events.push("given back");
        open = false;
      },
    };
  };
  const slot: Slot = {
    nodeName: "scripted",
    alike: () => new Set(["scripted"]),
    run,
    [Symbol.dispose]() {},
  };
  const parts: ServerParts = {
    keys: { principal },
    catalog: embeddedCatalog(),
    admission: { countRequest: () => null, refuseFlooded: () => null, admit: () => holdOf(), refuseModel },
    pool: { enter: () => slot },
    habits: new ModelHabits(),
    storedResponses: null,
    clock: systemClock,
    log: () => {},
  };
  const counts = new TokenCounts(new TokenCounter({ log: () => {} }), null, systemClock);
  running = startServer(parts, { host: "127.0.0.1", port: 0, sealingKey: new Uint8Array(32), counts, ...options });
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

test("a stop waits for who is looked up, and goes on in the moment in which it is known", async () => {
  const known = Promise.withResolvers<null>();
  let isAsked = false;
  const { url } = start({}, undefined, () => {
    isAsked = true;
    return known.promise;
  });
  const asked = ask(url, false);
  await eventually("it has arrived", async () => isAsked);
  let isStopped = false;
  const stopped = running!.stop(60_000).then(() => (isStopped = true));
  await Bun.sleep(30);
  expect(isStopped).toBe(false);
  const from = performance.now();
  known.resolve(null);
  expect((await asked).status).toBe(401);
  await stopped;
  expect(performance.now() - from).toBeLessThan(4_000); // where it is not told, it waits for 5 s
});

test.each(["stream", "whole"])("a stop waits for a slow client of a reply that is charged, %s", async (way) => {
  const { url, events } = start({}, undefined, undefined, async (_ask, _account, _cancelSignal, sink) => {
    // More than the system takes for a client that does not read.
    sink.piece({ kind: "text", literal: JSON.stringify("x".repeat(16 * 1024 * 1024)), logprobs: null });
    void sink.flush();
    return { kind: "end", reason: "stop", stopSequence: null, usage, estimated: false };
  });
  const body = JSON.stringify({
    model: "core-3",
    stream: way === "stream",
    messages: [{ role: "user", content: "x" }],
  });
  const client = connect(Number(new URL(url).port), "127.0.0.1");
  client.pause();
  client.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: good\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await eventually("it is charged", async () => events.includes("charged"));
  const stopped = running!.stop(60_000);
  await Bun.sleep(100);
  const parts: Buffer[] = [];
  client.on("data", (bytes: Buffer) => void parts.push(bytes)).resume();
  await Promise.all([once(client, "close"), stopped]);
  const reply = Buffer.concat(parts).toString("latin1");
  expect(reply.length).toBeGreaterThan(16 * 1024 * 1024);
  expect(reply.slice(-100)).toContain(way === "stream" ? "data: [DONE]" : '"usage":');
});

test("a stop waits for no reply to a body that does not come", async () => {
  const { url } = start();
  const client = connect(Number(new URL(url).port), "127.0.0.1");
  client.write(
    "POST /v1/messages/count_tokens HTTP/1.1\r\nhost: x\r\nx-api-key: good\r\ncontent-length: 1000\r\n\r\n{",
  );
  await eventually("its key was read", async () => unreadBodies.count === 1);
  await Promise.all([once(client, "close"), running!.stop(600_000)]); // where it waited, the time of the test would be over
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

const endpoints = [
  ["POST", "/chat/completions"],
  ["POST", "/messages"],
  ["POST", "/messages/count_tokens"],
  ["POST", "/responses"],
  ["POST", "/responses/compact"],
  ["POST", "/responses/input_tokens"],
  ["GET", "/responses/resp_1"],
  ["DELETE", "/responses/resp_1"],
  ["POST", "/responses/resp_1/cancel"],
  ["GET", "/responses/resp_1/input_items"],
  ["POST", "/tokenize"],
  ["GET", "/models"],
  ["HEAD", "/models"],
  ["GET", "/models/core-3"],
  ["GET", "/models/someone/core-3"],
] as const;

test.each(endpoints)(
  "%s {base}%s is there under every base address that clients make of ours",
  async (method, path) => {
    const { url } = start();
    // With a key that is wrong, or every address would have to be asked rightly.
    for (const base of ["/v1", "", "/v1/v1", "/openai/v1", "//v1", "/v1/", "/", "/v1//v1", "/openai/v1/"]) {
      for (const end of ["", "/", "?beta=true"]) {
        const reply = await fetch(url + base + path + end, { method, headers: { authorization: "Bearer bad" } });
        await reply.text();
        expect([base + path + end, reply.status]).toEqual([base + path + end, 401]);
      }
    }
  },
);

test("models that a key may not use are neither listed nor shown, and the reason is told", async () => {
  const { url } = start({}, (_asker, model) =>
    model.id === "core-3" ? null : refuse("model_not_in_plan", { model: model.id }),
  );
  const get = async (path: string) => {
    const reply = await fetch(url + path, { headers: { authorization: "Bearer good" } });
    return { status: reply.status, ...((await reply.json()) as object) };
  };
  expect(await get("/v1/models")).toMatchObject({ data: [{ id: "core-3" }], has_more: false, last_id: "core-3" });
  expect(await get("/v1/models/core-3")).toMatchObject({ status: 200, id: "core-3" });
  const refused = { status: 403, error: { code: "model_not_allowed" } };
  expect(await get("/v1/models/core-2-pro")).toMatchObject(refused);
});

test("a list of models is refused, not empty, while no plan can be read", async () => {
  const { url } = start({}, () => refuse("quota_unverified"));
  const reply = await fetch(`${url}/v1/models`, { headers: { authorization: "Bearer good" } });
  expect(reply.status).toBe(503);
});

test("a model whose id has a slash is found, encoded or not", async () => {
  const { url } = start();
  const message = async (path: string) => {
    const reply = await fetch(url + path, { headers: { authorization: "Bearer good" } });
    return ((await reply.json()) as { error: { message: string } }).error.message;
  };
  for (const path of ["/v1/models/someone/model", "/v1/models/someone%2Fmodel", "/models/someone/model/"]) {
    expect(await message(path)).toBe("The model `someone/model` does not exist");
  }
});

test.each([
  ["/v1/nothing", { "anthropic-version": "2023-06-01" }, true],
  ["/v1/nothing", { "x-api-key": "good" }, true],
  ["/v1/nothing", { "x-api-key": "good", authorization: "Bearer good" }, false],
  ["/v1/nothing", {}, false],
  ["/v1/messages/batches", {}, true],
  ["/v1/threads/thread_1/messages", {}, false],
  ["/v1/chat/nothing", { authorization: "Bearer good" }, false],
  ["/v1/chat/completions/nothing", { "anthropic-version": "2023-06-01" }, false],
  ["/v1/models/nothing", { "x-api-key": "good" }, true],
] as const)("what is not at %s is told a client with %j in its own shape", async (path, headers, isMessages) => {
  const { url } = start();
  const reply = await fetch(url + path, { headers });
  const body = (await reply.json()) as { type?: string };
  expect([reply.status, body.type === "error"]).toEqual([404, isMessages]);
});

describe("pages of other sites", () => {
  const origin = "https://page.example";
  const preflight = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST", ...headers } });
  const isOpen = ({ headers }: Response): boolean => headers.has("access-control-allow-origin");

  test("may do nothing where the operator names none", async () => {
    const { url } = start();
    expect((await preflight(`${url}/v1/messages`)).status).toBe(404);
    const reply = await fetch(`${url}/v1/models`, { headers: { origin } });
    expect([isOpen(reply), reply.headers.has("vary")]).toEqual([false, false]);
  });

  test.each([
    ["all", ["*"], "*"],
    ["theirs", ["http://other", origin], origin],
  ])("may ask and read where the operator names %s", async (_which, corsOrigins, allowed) => {
    const { url } = start({ corsOrigins });
    const wanted = "authorization,anthropic-dangerous-direct-browser-access, x-stainless-lang,x-tollgate-console";
    for (const path of ["/v1/chat/completions", "/messages", "/openai/v1/models", "/v1/nothing", "/v1/responses/a/b"]) {
      const asked = await preflight(url + path, { "access-control-request-headers": wanted });
      expect([path, asked.status, Object.fromEntries(asked.headers)]).toMatchObject([
        path,
        204,
        {
          "access-control-allow-origin": allowed,
          "access-control-allow-methods": "GET, POST, DELETE",
          "access-control-allow-headers": "authorization, anthropic-dangerous-direct-browser-access, x-stainless-lang",
          "access-control-max-age": "7200",
          vary: expect.stringContaining("origin"),
        },
      ]);
      expect(asked.headers.has("access-control-allow-private-network")).toBe(false);
      expect(asked.headers.has("access-control-allow-credentials")).toBe(false);
    }
    const inTheHouse = await preflight(`${url}/v1/models`, { "access-control-request-private-network": "true" });
    expect(inTheHouse.headers.get("access-control-allow-private-network")).toBe("true");

    const stream = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { origin, "x-api-key": "good" },
      body: JSON.stringify({ model: "core-3", stream: true, messages: [{ role: "user", content: "x" }] }),
    });
    const replies: [string, number, Response][] = [
      ["a list", 200, await fetch(`${url}/v1/models`, { headers: { origin, "x-api-key": "good" } })],
      ["no key", 401, await fetch(`${url}/v1/models`, { headers: { origin } })],
      ["no key", 401, await fetch(`${url}/v1/messages`, { method: "POST", headers: { origin } })],
      ["nothing", 404, await fetch(`${url}/v1/nothing`, { headers: { origin } })],
      ["no JSON", 400, await fetch(`${url}/v1/tokenize`, { method: "POST", headers: { origin, "x-api-key": "good" } })],
      ["a stream", 200, stream],
    ];
    for (const [what, status, reply] of replies) {
      expect([what, reply.status, Object.fromEntries(reply.headers)]).toMatchObject([
        what,
        status,
        {
          "access-control-allow-origin": allowed,
          "access-control-expose-headers":
            "x-request-id, request-id, retry-after, x-should-retry, x-priority, x-fallback-from, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens",
          vary: "origin",
        },
      ]);
      expect(reply.headers.has("access-control-allow-credentials")).toBe(false);
    }
    await stream.body?.cancel();
  });

  test("that the operator does not name, and requests with a cookie, are told nothing", async () => {
    const { url } = start({ corsOrigins: ["https://other.example"] });
    expect((await preflight(`${url}/v1/messages`)).status).toBe(404);
    const reply = await fetch(`${url}/v1/models`, { headers: { origin, "x-api-key": "good" } });
    expect([reply.status, isOpen(reply), reply.headers.get("vary")]).toEqual([200, false, "origin"]);
    await running!.stop(0);
    const all = start({ corsOrigins: ["*"] });
    const signedIn = await fetch(`${all.url}/v1/models`, { headers: { origin, cookie: "tollgate_session=x" } });
    expect([signedIn.status, isOpen(signedIn)]).toEqual([401, false]);
  });

  test("may read no page and no probe of the server", async () => {
    const { url } = start({ corsOrigins: ["*"] });
    for (const path of ["/healthz", "/readyz", "/metrics", "/docs", "/plan", "/console/api/session"]) {
      expect([path, isOpen(await fetch(url + path, { headers: { origin } }))]).toEqual([path, false]);
      expect([path, isOpen(await preflight(url + path))]).toEqual([path, false]);
    }
  });
});

test("the model list refuses in the shape of the client that asks", async () => {
  const { url } = start();
  const reply = await fetch(`${url}/v1/models`, { headers: { "anthropic-version": "2023-06-01" } });
  expect([reply.status, await reply.json()]).toMatchObject([
    401,
    { type: "error", error: { type: "authentication_error" } },
  ]);
});

test("probes are answered without a key", async () => {
  const { url } = start();
  for (const path of ["/", "/api/hello"]) expect((await fetch(url + path, { method: "HEAD" })).status).toBe(200);
  for (const path of ["/healthz", "/readyz", "/metrics"]) expect((await fetch(url + path)).status).toBe(200);
});
