// A relay before a complete server, each over real sockets: what is passed on is answered as with one thread, whatever
// clients write or leave out, and a client that leaves, or a stop, ends it.
import type { Principal } from "../../src/core/types.ts";
import { by } from "../fixtures/principals.ts";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { startServer } from "../../src/http/app.ts";
import { freePort } from "../../src/http/free-port.ts";
import { Metrics } from "../../src/http/metrics/metrics.ts";
import { startRelayServer } from "../../src/threads/relay-app.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import { eventually } from "../fixtures/eventually.ts";
import { longForm } from "../fixtures/optional.ts";
import { ModelHabits } from "../../src/tools/model-habits.ts";

let folder: string;
let port: number;
let logged: string[];
/** Nothing is left over for `afterEach` where a test has stopped them. */
let stops: (() => Promise<void>)[];
/** Whose key it is, which a relay asks another thread for. */
let keyLookUp: () => Promise<Principal | null>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-app-"));
  port = freePort("127.0.0.1");
  logged = [];
  stops = [];
  keyLookUp = async () => by(1);
});
afterEach(async () => {
  for (const stop of stops) await stop();
  rmSync(folder, { recursive: true });
});

const unixSocket = (): string => join(folder, "complete.sock");

function everythingIsForOthers(): Parameters<typeof startServer>[0] {
  return {
    keys: { principal: (key) => (key === "good" ? by(1) : null) },
    catalog: embeddedCatalog(),
    habits: new ModelHabits(),
    admission: {
      countRequest: () => null,
      refuseFlooded: () => null,
      admit: () => Promise.reject(new Error("nothing is admitted here")),
      refuseModel: () => null,
    },
    pool: { enter: () => Promise.reject(new Error("nothing is generated here")) },
    isForOthers: () => true,
    storedResponses: null,
    clock: systemClock,
    log: (_level, event, fields) => void logged.push(`${event} ${JSON.stringify(fields)}`),
  };
}

const served = () => ({
  addressHeader: null,
  sealingKey: new Uint8Array(32),
  counts: new TokenCounts(new TokenCounter({ log: () => {} }), null, systemClock),
});

const longerThanAnyTestMs = 3_600_000;

/** A relay whose stop gives open requests so long. */
function startRelay(graceMs = 0): { stop: () => Promise<void> } {
  const relay = startRelayServer(
    { ...everythingIsForOthers(), keys: { principal: () => keyLookUp() } },
    {
      ...served(),
      host: "127.0.0.1",
      port,
      unix: unixSocket(),
      metrics: new Metrics(),
      tracing: { tracer: null },
      logsRequests: () => false,
      corsOrigins: () => [],
      decided: async () => {},
    },
  );
  let stopped: Promise<void> | null = null;
  const stop = () => (stopped ??= relay.stop(graceMs));
  stops.unshift(stop); // before the complete server
  return { stop };
}

function startComplete(): void {
  const complete = startServer(everythingIsForOthers(), { ...served(), host: "127.0.0.1", port, unix: unixSocket() });
  stops.push(() => complete.stop(0));
}

/** A complete server that answers by script. */
function startScripted(answer: (request: Request) => Response | Promise<Response>): void {
  const server = Bun.serve({ unix: unixSocket(), fetch: answer });
  stops.push(() => server.stop(true));
}

/** Whether it is a whole reply: its head, and as many bytes as that says. */
function isWhole(reply: string): boolean {
  const headEnd = reply.indexOf("\r\n\r\n");
  const length = /^content-length: *(\d+)/im.exec(reply.slice(0, Math.max(headEnd, 0)))?.[1];
  return length === undefined ? reply.endsWith("\r\n0\r\n\r\n") : reply.length >= headEnd + 4 + Number(length);
}

/** What comes back for these bytes: a whole reply, or what there was of it when the connection ended. */
function exchange(text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let reply = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(text, "latin1"));
  socket.on("data", (bytes) => {
    reply += bytes.toString("latin1");
    if (isWhole(reply)) socket.destroy();
  });
  socket.on("error", reject);
  socket.on("close", () => resolve(reply));
  return promise;
}

const image = JSON.stringify({
  model: "core-3",
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://127.0.0.1/a.png" } }] }],
});
const askForImage = (): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-api-key: sk\r\nContent-Length: ${image.length}\r\n\r\n${image}`;

test.each([
  ["without a host", "GET /healthz HTTP/1.0\r\n\r\n", 200],
  ["without a host, to an unknown address", "GET /nothing HTTP/1.0\r\n\r\n", 404],
  ["with half a host", "GET /healthz HTTP/1.1\r\nHost: [::\r\n\r\n", 200],
  ["with half a host, to an unknown address", "GET /nothing?a HTTP/1.1\r\nHost: [::\r\n\r\n", 404],
  ["with a port that is none", "GET /v1/models HTTP/1.1\r\nHost: a:99999\r\n\r\n", 401],
  ["with a host of two words", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 200],
  ["with two slashes, which are no host", "GET //[::/y HTTP/1.0\r\n\r\n", 404],
  ["with a header that no client may send", "GET /healthz HTTP/1.1\r\nHost: a\r\nx-odd: \x7f\r\n\r\n", 200],
  ["for a tunnel", "CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n", 404],
  ["for a tunnel to another host", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 404],
])(
  "a request %s is answered, and is not waited for at a stop",
  async (_what, bytes, status) => {
    startComplete();
    const { stop } = startRelay(longerThanAnyTestMs);
    expect(await exchange(bytes)).toStartWith(`HTTP/1.1 ${status} `);
    expect(logged).toEqual([]);
    await stop(); // or the test takes an hour
  },
  60_000,
);

test("a body that the complete server refuses unread gets that refusal, however long it is", async () => {
  startComplete();
  startRelay();
  for (const bytes of [200_000, 2_000_000, 40_000_000]) {
    const body = "a".repeat(bytes);
    const headers = `Host: a\r\nauthorization: Bearer x\r\nContent-Length: ${bytes}\r\n\r\n`;
    expect(await exchange(`POST /v1/tokenize HTTP/1.1\r\n${headers}${body}`)).toStartWith("HTTP/1.1 401 ");
    expect(await exchange(`POST /nothing HTTP/1.1\r\n${headers}${body}`)).toStartWith("HTTP/1.1 404 ");
    const chunks = `${bytes.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const chunked = `POST /nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
    expect(await exchange(chunked)).toStartWith("HTTP/1.1 404 ");
  }
  expect(logged).toEqual([]);
}, 120_000);

test("a client that left before its request was passed on has nothing answered, and nothing to pay", async () => {
  let asked = 0;
  startScripted(() => {
    asked += 1;
    return new Response("an answer");
  });
  const key = Promise.withResolvers<Principal>();
  let looksUp = false;
  keyLookUp = () => {
    looksUp = true;
    return key.promise;
  };
  const { stop } = startRelay(longerThanAnyTestMs);
  const client = connect(port, "127.0.0.1", () => client.write(askForImage()));
  await eventually("its key is looked up", async () => looksUp);
  client.destroy();
  keyLookUp = async () => by(1);
  await exchange(askForImage()); // the relay has heard of the other's end by then
  expect(asked).toBe(1);
  key.resolve(by(1));
  await exchange(askForImage());
  expect(asked).toBe(2);
  await stop();
}, 120_000);

test("what is passed on at a stop, also what was not yet when it began, has its reply", async () => {
  const replies: PromiseWithResolvers<Response>[] = [];
  startScripted(() => {
    const reply = Promise.withResolvers<Response>();
    replies.push(reply);
    return reply.promise;
  });
  const key = Promise.withResolvers<Principal>();
  const { stop } = startRelay(longerThanAnyTestMs);
  const first = exchange(askForImage());
  await eventually("one is passed on", async () => replies.length === 1);
  let looksUp = false;
  keyLookUp = () => {
    looksUp = true;
    return key.promise;
  };
  const second = exchange(askForImage());
  await eventually("the key of another is looked up", async () => looksUp);
  const stopped = stop();
  key.resolve(by(1));
  await eventually("the other is passed on too", async () => replies.length === 2);
  for (const one of [first, second]) {
    replies.shift()!.resolve(new Response("an answer"));
    expect(await one).toEndWith("an answer");
  }
  await stopped;
}, 120_000);

test("a reply keeps its length, and one without is passed on as it comes", async () => {
  const rest = Promise.withResolvers<void>();
  startScripted(({ url }) => {
    if (!url.endsWith("/stream")) return new Response("a".repeat(url.endsWith("/long") ? 5_000_000 : 10));
    const source = async function* () {
      yield "first ";
      await rest.promise;
      yield "last";
    };
    return new Response(source() as unknown as ReadableStream);
  });
  startRelay();
  expect(await exchange("GET /short HTTP/1.0\r\n\r\n")).toMatch(/content-length: 10\r\n/i);
  expect((await (await fetch(`http://127.0.0.1:${port}/long`)).text()).length).toBe(5_000_000);
  const stream = (await fetch(`http://127.0.0.1:${port}/stream`)).body!.pipeThrough(new TextDecoderStream());
  let text = "";
  for await (const piece of stream) {
    text += piece;
    rest.resolve(); // only now
  }
  expect(text).toBe("first last");
}, 120_000);

test.skipIf(!longForm)(
  "a client may pause its upload for as long as with one thread",
  async () => {
    startComplete();
    startRelay();
    const { promise, resolve } = Promise.withResolvers<string>();
    const half = "a".repeat(1_000);
    const client = connect(port, "127.0.0.1", () => {
      client.write(`POST /v1/tokenize HTTP/1.1\r\nHost: a\r\nx-api-key: good\r\nContent-Length: 2000\r\n\r\n${half}`);
      setTimeout(() => client.write(half), 45_000);
    });
    client.on("data", (bytes) => resolve(bytes.toString()));
    client.on("close", () => resolve("closed"));
    client.on("error", () => {});
    expect(await promise).toStartWith("HTTP/1.1 400 "); // it is not JSON
    client.destroy();
  },
  90_000,
);
