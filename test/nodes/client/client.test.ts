// The pooled client against raw sockets: what is reused, what is replayed, and what must never reach anybody.
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { endOfTurn } from "../../../src/core/end-of-turn.ts";
import { NodeClient } from "../../../src/nodes/client/client.ts";
import { originOf } from "../../../src/nodes/client/dial.ts";
import { get } from "../../../src/nodes/client/get.ts";
import type { ClientOptions } from "../../../src/nodes/client/client.ts";
import type { NodeSocket, SocketListener } from "../../../src/nodes/client/dial.ts";
import type { Exchange, ExchangeFault, RequestPart } from "../../../src/nodes/client/exchange.ts";
import { runToEnd } from "../../fixtures/children.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { RawNode, turns, wholeReply } from "../../fixtures/raw-node.ts";
import type { RawReply, RawRequest } from "../../fixtures/raw-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

function nodeOf(answer: (request: RawRequest, reply: RawReply) => void | Promise<void>): RawNode {
  const node = new RawNode(answer);
  open.push(node);
  return node;
}

function clientOf(url: string, options: Partial<ClientOptions> = {}): NodeClient {
  const client = new NodeClient(originOf(new URL(url)), { clock: systemClock, ...options });
  open.push({ stop: () => client.close() });
  return client;
}

type Answer = { status: number; body: string; fault: ExchangeFault | null };

function send(client: NodeClient, body = "", watch: (exchange: Exchange) => void = () => {}): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const answer: Answer = { status: 0, body: "", fault: null };
  const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  watch(
    client.send([head, body], {
      head(status) {
        answer.status = status;
      },
      body(bytes, start, end) {
        answer.body += bytes.toString("latin1", start, end);
      },
      readEnd() {},
      end: () => resolve(answer),
      fault: (fault) => resolve({ ...answer, fault }),
    }),
  );
  return promise;
}

const ok = wholeReply("200 OK", "ok");

describe("reuse", () => {
  test("one connection for one request after another, one each for those at once", async () => {
    const node = nodeOf((_, reply) => reply.write(ok));
    const client = clientOf(node.url);
    for (let round = 0; round < 5; round++) expect(await send(client)).toMatchObject({ body: "ok", fault: null });
    expect(node.connections).toBe(1);
    expect(client.connections).toEqual({ busy: 0, idle: 1 });
    await Promise.all(Array.from({ length: 4 }, () => send(client)));
    expect(node.connections).toBe(4);
    expect(client.connections).toEqual({ busy: 0, idle: 4 });
  });

  const closing: [string, string][] = [
    ["connection: close", wholeReply("200 OK", "ok", "Connection: close\r\n")],
    ["surplus bytes", `${ok}x`],
    ["a body without length", "HTTP/1.0 200 OK\r\n\r\nok"],
    ["Keep-Alive: max=1", wholeReply("200 OK", "ok", "Keep-Alive: max=1\r\n")],
    ["Keep-Alive: timeout=0", wholeReply("200 OK", "ok", "Keep-Alive: timeout=0\r\n")],
  ];
  for (const [name, bytes] of closing)
    test(`none after ${name}`, async () => {
      const node = nodeOf((_, reply) => {
        reply.write(bytes);
        if (bytes.includes("HTTP/1.0")) reply.end();
      });
      const client = clientOf(node.url);
      for (let round = 0; round < 3; round++) expect(await send(client)).toMatchObject({ body: "ok" });
      expect(node.connections).toBe(3);
    });

  test("as often as Keep-Alive: max says", async () => {
    const node = nodeOf((_, reply) => reply.write(wholeReply("200 OK", "ok", "Keep-Alive: timeout=5, max=3\r\n")));
    const client = clientOf(node.url);
    for (let round = 0; round < 6; round++) await send(client);
    expect(node.requests.map(({ connection }) => connection)).toEqual([0, 0, 0, 1, 1, 1]);
  });

  describe.skipIf(process.platform !== "linux")("after the idle time", () => {
    let now = 0;
    const clock = { wall: () => now, monotonic: () => now };
    /** The timer that the system has for the connection to `port`: 02 is that of probes. */
    const timerTo = async (port: number): Promise<string | undefined> => {
      const lines = (await Bun.file("/proc/net/tcp").text()).split("\n").map((line) => line.trim().split(/ +/));
      const hexadecimal = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
      return lines.find(([, , remote, state]) => remote?.endsWith(hexadecimal) === true && state === "01")?.[5];
    };
    /** Some of the milliseconds that the system counts. */
    const aWhile = (): Promise<void> => Bun.sleep(30);
    const isProbed = async (port: number): Promise<boolean> => (await timerTo(port))?.startsWith("02") === true;

    test("where the node's system answered lately, and is probed meanwhile, but not while it works", async () => {
      let reply: RawReply | null = null;
      const node = nodeOf((_, of) => void (reply = of));
      const port = Number(new URL(node.url).port);
      const client = clientOf(node.url, { clock, idleSocketMs: 20, heardMs: 60_000 });
      for (let round = 0; round < 2; round++) {
        const answer = send(client);
        await eventually("it is asked", async () => reply !== null);
        expect(await isProbed(port)).toBe(false);
        reply!.write(ok);
        reply = null;
        expect(await answer).toMatchObject({ body: "ok", fault: null });
        await eventually("it is probed", () => isProbed(port));
        now += 21;
      }
      expect(node.connections).toBe(1);
    });

    test("not where it did not: the connection may be half open", async () => {
      const node = nodeOf((_, reply) => reply.write(ok));
      const client = clientOf(node.url, { clock, idleSocketMs: 1_000, heardMs: 5 });
      await send(client);
      await aWhile();
      await send(client);
      expect(node.connections).toBe(1);
      now += 1_001;
      await aWhile();
      await send(client);
      expect(node.connections).toBe(2);
    });

    test("where the node says how long it keeps one: no longer; it is closed without another request", async () => {
      const closed = Promise.withResolvers<void>();
      const node = nodeOf((_, reply) => {
        void reply.closed.then(closed.resolve);
        reply.write(wholeReply("200 OK", "ok", "Keep-Alive: timeout=5\r\n"));
      });
      const client = clientOf(node.url, { clock, idleSocketMs: 30, heardMs: 60_000 });
      await send(client);
      now += 31;
      await aWhile();
      await send(client);
      expect(node.connections).toBe(2);
      now += 31;
      await closed.promise;
    });

    test("for a minute at most", async () => {
      const node = nodeOf((_, reply) => reply.write(ok));
      const client = clientOf(node.url, { clock, heardMs: 60_000 });
      await send(client);
      now += 59_999;
      await aWhile();
      await send(client);
      expect(node.connections).toBe(1);
      now += 60_001;
      await aWhile();
      await send(client);
      expect(node.connections).toBe(2);
    });
  });

  test("not before the whole request was taken", async () => {
    const node = nodeOf(() => {});
    // the node answers on the head alone: the body is still under way
    const early = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void (socket.write(ok), socket.pause()) },
    });
    open.push({ stop: () => early.stop(true) });
    const client = clientOf(`http://127.0.0.1:${early.port}`);
    expect(await send(client, "x".repeat(20_000_000))).toMatchObject({ status: 200 });
    expect(client.connections).toEqual({ busy: 0, idle: 0 });
    expect(node.connections).toBe(0);
  });
});

const nobody = { head() {}, body() {}, readEnd() {}, end() {}, fault() {} };

describe("what came in a turn", () => {
  /** A socket that counts what is asked of it, for each request. */
  function dialed() {
    const sockets: { listener: SocketListener; told: string[] }[] = [];
    const dial = (_: unknown, listener: SocketListener): void => {
      const told: string[] = [];
      const tell = (what: string) => () => void told.push(what);
      const write = (_bytes: Buffer, _from: number, length: number): number => length;
      const socket = { fd: -1, write, pause: tell("pause"), resume: tell("resume"), terminate: tell("terminate") };
      listener.opened(socket as unknown as NodeSocket);
      sockets.push({ listener, told });
    };
    return { client: clientOf("http://node.example/", { dial }), sockets };
  }

  const head = Buffer.from("HTTP/1.1 200 OK\r\n\r\n");
  const large = Buffer.alloc(512 * 1024, "x");

  test("is all that comes, once it is large; more only when it was read and nobody paused", async () => {
    const { client, sockets } = dialed();
    const slow: Exchange = client.send(["slow"], { ...nobody, body: () => slow.pause() });
    client.send(["quick"], nobody);
    await endOfTurn();
    for (const { listener } of sockets) {
      listener.received(head);
      listener.received(large);
    }
    expect(sockets.map(({ told }) => told)).toEqual([["pause"], ["pause"]]);
    await endOfTurn();
    expect(sockets.map(({ told }) => told)).toEqual([
      ["pause", "resume", "pause"],
      ["pause", "resume"],
    ]);
    slow.resume();
    sockets[1]!.listener.received(head); // small
    expect(sockets.map(({ told }) => told.at(-1))).toEqual(["resume", "resume"]);
  });

  test("that one cannot take is the failure of that one alone", async () => {
    const { client, sockets } = dialed();
    const failed = Promise.withResolvers<ExchangeFault>();
    const body = (): never => {
      throw new RangeError("of one request");
    };
    client.send(["fails"], { ...nobody, body, fault: failed.resolve });
    const other = send(client);
    await endOfTurn();
    sockets[0]!.listener.received(Buffer.from(ok));
    sockets[1]!.listener.received(Buffer.from(ok));
    expect(await failed.promise).toEqual({ kind: "broken", cause: "RangeError" });
    expect(await other).toMatchObject({ status: 200, body: "ok" });
    expect(client.connections).toEqual({ busy: 0, idle: 1 });
  });

  test("counts before a limit that ended in the same turn, after a pause of the whole process", async () => {
    const node = nodeOf((_, reply) => {
      setImmediate(() => {
        reply.write(ok);
        Bun.sleepSync(60);
      });
    });
    expect(await get(clientOf(node.url), "/", null, 40)).toMatchObject({ status: 200, body: "ok" });
  });
});

describe("a request", () => {
  /** Sends each request on a socket of its own that takes so many bytes at a time; what the sockets got. */
  async function sent(requests: readonly (readonly RequestPart[])[], takesBytes: number): Promise<Buffer[]> {
    const listeners: SocketListener[] = [];
    const client = clientOf("http://node.example/", { dial: (_origin, listener) => void listeners.push(listener) });
    for (const request of requests) client.send(request, nobody);
    await endOfTurn();
    const got = listeners.map(() => [] as Buffer[]);
    for (const [at, listener] of listeners.entries()) {
      const write = (bytes: Buffer, from: number, length: number): number => {
        const taken = Math.min(length, takesBytes);
        got[at]!.push(Buffer.from(bytes.subarray(from, from + taken)));
        return taken;
      };
      listener.opened({ fd: -1, write, pause() {}, resume() {}, terminate() {} } as unknown as NodeSocket);
    }
    for (const [at, listener] of listeners.entries()) {
      for (let before = -1; before !== got[at]!.length;) {
        before = got[at]!.length;
        listener.drained();
      }
    }
    return got.map((parts) => Buffer.concat(parts));
  }

  test("arrives as it is, whatever its size and however little the socket takes at a time", async () => {
    const head = "POST / HTTP/1.1\r\n\r\n";
    for (const text of ["", "x", "😀é".repeat(9), "ü".repeat(43_690), "x".repeat(131_073), "é".repeat(200_000)]) {
      const bytes = Buffer.from(text);
      for (const takesBytes of [1_000, 70_000, 1_000_000]) {
        const [whole, inParts] = await sent(
          [
            [head, text],
            [head, bytes, "more"],
          ],
          takesBytes,
        );
        expect(whole!.equals(Buffer.from(head + text))).toBe(true);
        expect(inParts!.equals(Buffer.from(`${head}${text}more`))).toBe(true);
      }
    }
  });

  test("that is given up in the turn in which it was made reaches no node", async () => {
    const dialed: SocketListener[] = [];
    const client = clientOf("http://node.example/", { dial: (_origin, listener) => void dialed.push(listener) });
    client.send(["given up"], nobody).abort();
    client.send(["released"], nobody).release(1_000);
    client.send(["sent"], nobody);
    await endOfTurn();
    expect(dialed.length).toBe(1);
  });

  test("that cannot be sent fails alone", async () => {
    let dials = 0;
    const dial = (): void => {
      if (dials++ === 0) throw new TypeError("no such socket");
    };
    const client = clientOf("http://node.example/", { dial });
    const first = send(client);
    client.send(["sent"], nobody);
    expect((await first).fault).toEqual({ kind: "unreachable", cause: "TypeError" });
    expect([dials, client.connections.busy]).toEqual([2, 1]);
  });

  test("that waits for its socket is not overwritten by a later one", async () => {
    const got = await sent([["first request"], ["other question"]], 5);
    expect(got.map(String)).toEqual(["first request", "other question"]);
  });
});

describe("faults", () => {
  test("refused", async () => {
    const node = new RawNode(() => {});
    const { url } = node;
    node.stop();
    expect((await send(clientOf(url))).fault).toMatchObject({ kind: "unreachable", cause: "ECONNREFUSED" });
  });
  test("a name that is none", async () => {
    expect((await send(clientOf("http://node.invalid/"))).fault).toMatchObject({ kind: "unreachable" });
  });
  test("not connected in time", async () => {
    expect((await send(clientOf("http://192.0.2.1/", { dial: () => {}, connectTimeoutMs: 20 }))).fault).toMatchObject({
      kind: "unreachable",
    });
  });
  test("a connection that opens after its time is closed", async () => {
    const node = nodeOf((_, reply) => reply.write(ok));
    let late = 0;
    const client = clientOf(node.url, {
      connectTimeoutMs: 10,
      dial: (_, listener) =>
        void setTimeout(
          () => listener.opened({ write: () => 0, pause() {}, resume() {}, terminate: () => void late++ } as never),
          30,
        ),
    });
    expect((await send(client)).fault).toMatchObject({ kind: "unreachable" });
    await eventually("it is closed", async () => late > 0);
    expect(late).toBe(1);
  });
  const rows: [string, (reply: RawReply) => void, ExchangeFault["kind"]][] = [
    ["RST before the reply", (reply) => reply.reset(), "no-reply"],
    ["FIN before the reply", (reply) => reply.end(), "no-reply"],
    [
      "FIN within the head",
      (reply) => {
        reply.write("HTTP/1.1 2");
        reply.end();
      },
      "malformed",
    ],
    [
      "FIN within the body",
      (reply) => {
        reply.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        reply.end();
      },
      "malformed",
    ],
    ["bytes that are no HTTP", (reply) => reply.write("hello\r\n\r\n"), "malformed"],
  ];
  for (const [name, answer, kind] of rows)
    test(`${name}: told once, asked once`, async () => {
      const node = nodeOf((_, reply) => answer(reply));
      expect((await send(clientOf(node.url))).fault).toMatchObject({ kind });
      expect(node.requests.length).toBe(1);
    });
  test("RST within a body that lasts until the close is no end", async () => {
    const node = nodeOf(async (_, reply) => {
      reply.write("HTTP/1.1 200 OK\r\n\r\nhalf");
      await turns();
      reply.reset();
    });
    expect(await send(clientOf(node.url))).toMatchObject({ body: "half", fault: { kind: "broken" } });
  });
});

describe("replay (fault 22)", () => {
  // The node answers the first request of a connection and does something else to the second.
  const second = (then: (reply: RawReply) => void): RawNode =>
    nodeOf((request, reply) =>
      request.onConnection === 0 && request.connection !== 1 ? reply.write(ok) : then(reply),
    );

  test("once, on a new connection, when a reused one closed without a byte", async () => {
    for (const close of [(reply: RawReply) => reply.reset(), (reply: RawReply) => reply.end()]) {
      const node = nodeOf((request, reply) => (request.onConnection === 0 ? reply.write(ok) : close(reply)));
      const client = clientOf(node.url);
      await send(client, "first");
      expect(await send(client, "second")).toMatchObject({ body: "ok", fault: null });
      expect(node.requests.map(({ body, connection }) => [body, connection])).toEqual([
        ["first", 0],
        ["second", 0],
        ["second", 1],
      ]);
    }
  });
  test("not twice", async () => {
    const node = second((reply) => reply.reset());
    const client = clientOf(node.url);
    await send(client);
    expect((await send(client)).fault).toMatchObject({ kind: "no-reply" });
    expect(node.requests.length).toBe(3);
  });
  test("not after a byte of the reply", async () => {
    const node = nodeOf(async (request, reply) => {
      if (request.onConnection === 0) return reply.write(ok);
      reply.write("H");
      await turns();
      return reply.reset();
    });
    const client = clientOf(node.url);
    await send(client);
    expect((await send(client)).fault).toMatchObject({ kind: "broken" });
    expect(node.requests.length).toBe(2);
  });
  test("not when the caller has left", async () => {
    let left: Exchange | null = null;
    const node = nodeOf((request, reply) => (request.onConnection === 0 ? reply.write(ok) : left?.abort()));
    const client = clientOf(node.url);
    await send(client);
    void send(client, "", (exchange) => (left = exchange));
    await eventually("its connection is closed", async () => node.requests.length === 2 && node.openConnections === 0);
    await turns();
    expect([node.requests.length, node.openConnections]).toEqual([2, 0]);
  });
  test("the keep-alive race: the node closes idle connections at the moment of the next request, 200 rounds", async () => {
    const node = nodeOf((_, reply) => {
      reply.write(ok);
      setTimeout(() => reply.end(), 2);
    });
    const client = clientOf(node.url);
    for (let round = 0; round < 200; round++) {
      expect(await send(client, `${round}`)).toMatchObject({ body: "ok", fault: null });
      await Bun.sleep(round % 4);
    }
    expect(new Set(node.requests.map(({ body }) => body)).size).toBe(200);
  });
});

test("a quick node in a process of its own is asked once for each request", async () => {
  const node = Bun.spawn([process.execPath, "-e", countingNode], { stdout: "pipe" });
  open.push({ stop: () => node.kill() });
  const { value } = await node.stdout.getReader().read();
  const client = clientOf(`http://127.0.0.1:${new TextDecoder().decode(value).trim()}`);
  for (let round = 1; round <= 300; round++)
    expect(await send(client)).toMatchObject({ body: `${round}`, fault: null });
});
const countingNode = `
  let count = 0;
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data(socket) {
    const body = String(++count);
    socket.write("HTTP/1.1 200 OK\\r\\ncontent-length: " + body.length + "\\r\\n\\r\\n" + body);
  } } });
  console.log(listener.port);`;

describe("unasked-for bytes (fault 24)", () => {
  test("sent on an idle connection, they are delivered to nobody: 1,000 rounds with a canary", async () => {
    const canary = wholeReply("200 OK", "canary");
    const replies: RawReply[] = [];
    const node = nodeOf((_, reply) => {
      replies.push(reply);
      reply.write(ok);
    });
    const client = clientOf(node.url);
    await send(client);
    // How much the event loop sees of the canary before the next request: nothing, a part of a turn, turns, all.
    const waits = [
      () => {},
      () => Promise.resolve(),
      () => new Promise((resolve) => setImmediate(resolve)),
      () => Bun.sleep(0),
      () => Bun.sleep(1),
    ];
    for (let round = 0; round < 1_000; round++) {
      replies.at(-1)!.write(round % 3 === 0 ? canary.slice(0, 1 + (round % 40)) : canary);
      await waits[round % waits.length]!();
      expect(await send(client)).toMatchObject({ body: "ok", fault: null });
    }
    expect(node.connections).toBe(1_001);
  });
  test("a 408 for an idle connection is not the next request's answer", async () => {
    const node = nodeOf((request, reply) =>
      reply.write(request.onConnection === 0 ? ok : wholeReply("408 Request Timeout", "")),
    );
    const client = clientOf(node.url);
    await send(client);
    expect(await send(client)).toMatchObject({ status: 200, body: "ok" });
  });
});

describe("large bodies", () => {
  test("32 MB go out in pieces as the node takes them", async () => {
    const node = nodeOf((request, reply) =>
      reply.write(wholeReply("200 OK", `${request.body.length} ${Bun.hash(request.body)}`)),
    );
    const body = "0123456789abcdef".repeat(2_000_000);
    expect((await send(clientOf(node.url), body)).body).toBe(`${body.length} ${Bun.hash(body)}`);
  });
});

describe("TLS", () => {
  const file = (name: string) => Bun.file(join(import.meta.dir, "../../fixtures/tls", name));
  const serve = () => {
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: file("localhost.key.pem"), cert: file("localhost.cert.pem") },
      socket: { data: (socket) => void socket.write(ok), error() {} },
    });
    open.push({ stop: () => server.stop(true) });
    return server.port;
  };
  test("a certificate that nobody vouches for is refused, and no byte of the request goes out", async () => {
    expect((await send(clientOf(`https://localhost:${serve()}`))).fault).toMatchObject({
      kind: "unreachable",
      cause: expect.stringMatching(/^TLS failed: .*CERT/),
    });
  });
  test("a trusted certificate is taken for its own name only", async () => {
    const script = join(import.meta.dir, "../../fixtures/tls/ask.ts");
    const ask = async (host: string): Promise<string> => {
      const env = {
        ...process.env,
        NODE_EXTRA_CA_CERTS: join(import.meta.dir, "../../fixtures/tls/localhost.cert.pem"),
      };
      const { stdout } = await runToEnd([process.execPath, script, `https://${host}:${serve()}`], { env });
      return stdout.trim();
    };
    expect(await ask("localhost")).toBe("ok");
    expect(await ask("127.0.0.1")).toContain("TLS failed: ERR_TLS_CERT_ALTNAME_INVALID");
  });
  const silent = () => {
    const node = { reached: 0, connections: 0 };
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: () => void (node.reached++, node.connections++),
        data() {},
        close: () => void node.connections--,
        error() {},
      },
    });
    open.push({ stop: () => server.stop(true) });
    return { node, url: `https://127.0.0.1:${server.port}` };
  };
  test("a node that takes the connection and never agrees on TLS loses it when its time is up", async () => {
    const { node, url } = silent();
    const { fault } = await send(clientOf(url, { connectTimeoutMs: 100 }));
    expect(fault).toEqual({ kind: "unreachable", cause: "not connected in time" });
    await eventually("it was reached", async () => node.reached === 1);
    await eventually("its connection is closed", async () => node.connections === 0);
  });
  test("and when who asked has left", async () => {
    const { node, url } = silent();
    let exchange: Exchange | null = null;
    void send(clientOf(url), "", (sent) => (exchange = sent));
    await eventually("it was reached", async () => node.reached === 1);
    exchange!.abort();
    await eventually("its connection is closed", async () => node.connections === 0);
  });
});
