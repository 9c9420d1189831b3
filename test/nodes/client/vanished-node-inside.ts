// What becomes of requests whose node loses its power or its network: nothing is refused, closed or answered anymore. Run by
// vanished-node.test.ts, in a network whose only interface can be taken down.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/core/clock.ts";
import { NodeClient } from "../../../src/nodes/client/client.ts";
import { originOf } from "../../../src/nodes/client/dial.ts";
import type { ExchangeFault } from "../../../src/nodes/client/exchange.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { isInside } from "../../fixtures/network-namespace.ts";
import { chunk, RawNode, type RawReply, streamHead, wholeReply } from "../../fixtures/raw-node.ts";

if (!isInside) throw new Error("this file takes its network down: vanished-node.test.ts runs it in one of its own");

const network = (state: "up" | "down"): void => {
  const { success, stderr } = Bun.spawnSync(["ip", "link", "set", "lo", state]);
  if (!success) throw new Error(stderr.toString());
};

const goneMs = 1_500;
const open: { stop(): void }[] = [];
afterEach(() => {
  network("up");
  for (const one of open.splice(0)) one.stop();
});

function clientOf(port: number): NodeClient {
  const origin = originOf(new URL(`http://127.0.0.1:${port}`));
  const client = new NodeClient(origin, { clock: systemClock, connectTimeoutMs: 500, busyLookMs: 250, goneMs });
  open.push({ stop: () => client.close() });
  return client;
}

function nodeOf(answer: (reply: RawReply, request: number) => void): RawNode {
  let requests = 0;
  const node = new RawNode((_, reply) => answer(reply, requests++));
  open.push(node);
  return node;
}

/** A request that is never given up: its fault, or null once it ended. */
function send(client: NodeClient, body = "") {
  const { promise, resolve } = Promise.withResolvers<ExchangeFault | null>();
  const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  const state = { came: false, fault: promise };
  const exchange = client.send([head, body], {
    head() {},
    body: () => void (state.came = true),
    readEnd() {},
    end: () => resolve(null),
    fault: resolve,
  });
  open.push({ stop: () => exchange.abort() });
  return state;
}

test("one that waits for its answer, and one whose answer has begun", async () => {
  const node = nodeOf((reply, request) => {
    if (request === 1) reply.write(Buffer.concat([Buffer.from(streamHead), chunk("a")]));
  });
  const client = clientOf(node.port);
  const waiting = send(client);
  await eventually("it is asked", async () => node.requests.length === 1);
  const begun = send(client);
  await eventually("the answer has begun", async () => begun.came);
  network("down");
  const cause = "the node's system does not answer";
  expect(await Promise.all([waiting.fault, begun.fault])).toEqual([
    { kind: "no-reply", cause },
    { kind: "broken", cause },
  ]);
  expect(client.connections).toEqual({ busy: 0, idle: 0 });
});

test("one that is written to a connection that was well a moment ago", async () => {
  const client = clientOf(nodeOf((reply) => reply.write(wholeReply("200 OK", "ok"))).port);
  expect(await send(client).fault).toBeNull();
  network("down");
  // asked again on a new connection, as where a kept one is closed
  expect(await send(client).fault).toMatchObject({ kind: "unreachable" });
});

test("not one whose node says nothing while it works", async () => {
  const replies: RawReply[] = [];
  const client = clientOf(nodeOf((reply) => replies.push(reply)).port);
  const { fault } = send(client);
  await Bun.sleep(3 * goneMs);
  replies[0]!.write(wholeReply("200 OK", "ok"));
  expect(await fault).toBeNull();
});

test("nor one whose node leaves it unread", async () => {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: (socket) => void socket.pause(), data() {}, error() {} },
  });
  open.push({ stop: () => listener.stop(true) });
  const client = clientOf(listener.port);
  const { fault } = send(client, "x".repeat(16 * 1024 * 1024));
  expect(await Promise.race([fault, Bun.sleep(3 * goneMs).then(() => "waits")])).toBe("waits");
  expect(client.connections).toEqual({ busy: 1, idle: 0 });
});
