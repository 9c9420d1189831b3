// The event stream: what it sends, when, and when it ends. Looks are made by the test, not by the timer.
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import type { Visitor } from "../../src/console/routes/route.ts";
import { Live, liveIntervalMs, liveStreamsPerAccountMax } from "../../src/console/live.ts";
import { keepAliveIntervalMs } from "../../src/core/limits.ts";
import { ask } from "../account/office.ts";
import { ConsoleSite } from "./console-site.ts";

let live: Live | null = null;
afterEach(() => live?.close());

/** `marks`: of a ledger that several gateways share. */
async function setUp({ operator = false, marks = null as (() => ReadonlyMap<number, string>) | null } = {}) {
  const site = new ConsoleSite();
  const { office } = site;
  const { id } = await office.accounts.create({ email: "a@x", credit: 500, operator });
  const { session } = await office.sessions.open(id, { address: "", browser: "" });
  const visitor: Visitor = { session, account: (await office.accounts.record(id))! };
  let inFlight = 0;
  const requests = {
    openRequests: 7,
    openRequestsOf: () => inFlight,
  };
  const isOpen = spyOn(office.knownSessions, "isOpen");
  const everywhere =
    marks === null
      ? null
      : { marks: async () => marks(), numbers: async () => ({ heldTokens: 5, openRequests: 2, gateways: 3 }) };
  live = new Live({ ...site.parts, everywhere }, requests);
  return {
    isOpen,
    site,
    office,
    id,
    visitor,
    live,
    open: () => reading(live!.open(visitor) as Response),
    fly: (count: number) => {
      inFlight = count;
    },
  };
}

/** Reads what is there, without waiting for more. */
function reading(response: Response) {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let pending: ReturnType<typeof reader.read> | null = null;
  let ended = false;
  return {
    response,
    async text(): Promise<string> {
      let text = "";
      for (let turn = 0; turn < 20; turn++) {
        pending ??= reader.read();
        const read = await Promise.race([pending, new Promise<null>((resolve) => setImmediate(() => resolve(null)))]);
        if (read === null) continue;
        pending = null;
        ended ||= read.done;
        if (read.done) break;
        text += decoder.decode(read.value);
      }
      return text;
    },
    get ended() {
      return ended;
    },
    cancel: () => reader.cancel(),
  };
}

const events = (text: string) =>
  text
    .split("\n\n")
    .filter((block) => block.startsWith("event: "))
    .map((block) => {
      const [event = "", data = ""] = block.split("\n");
      return [event.slice(7), JSON.parse(data.slice(6))] as const;
    });

test("sends the numbers at once, then only what changed, once for each look", async () => {
  const { office, id, open, live, fly } = await setUp();
  const stream = open();
  expect(stream.response.headers.get("content-type")).toStartWith("text/event-stream");
  const [[name, first]] = events(await stream.text()) as [readonly [string, any]];
  expect(name).toBe("account");
  expect(first).toEqual({
    spendable: 30_500,
    allowance: { granted: 30_000, left: 30_000, renews_at: "2026-03-29T00:00:00.000Z" },
    credit: 500,
    reserved: { tokens: 0, requests: 0 },
    requests_in_flight: 0,
    coder_calls: { left: 3, limit: 3, renews_at: "2026-03-28T16:00:00.000Z" },
    searches: { left: 3, limit: 3, renews_at: "2026-03-29T00:00:00.000Z" },
  });
  await live.look();
  await live.look();
  expect(await stream.text()).toBe("");
  const holds = [1, 2, 3].map(() => office.hold(id, ask(1_000)));
  fly(3);
  await live.look();
  expect(events(await stream.text())).toMatchObject([
    ["account", { spendable: 27_500, reserved: { tokens: 3_000, requests: 3 }, requests_in_flight: 3 }],
  ]);
  for (const hold of holds) hold[Symbol.dispose]();
  fly(0);
  await live.look();
  expect(events(await stream.text())).toEqual([["account", first]]);
});

test("tells operators, and nobody else, how the nodes are", async () => {
  const { site, open, live } = await setUp({ operator: true });
  const stream = open();
  expect(events(await stream.text()).at(-1)).toMatchObject(["operator", { requests_in_flight: 7, waiting: 0 }]);
  site.node.busy = 3;
  await live.look();
  expect(events(await stream.text())).toMatchObject([["operator", { nodes: [{ name: "one", busy: 3 }] }]]);
});

test("reads once for all streams where gateways share the ledger, and looks closer at what changed", async () => {
  let mark = "1 a";
  let reads = 0;
  const { office, open, live, isOpen } = await setUp({
    operator: true,
    marks: () => {
      reads += 1;
      return new Map([[1, mark]]);
    },
  });
  const streams = [open(), open(), open()];
  for (const stream of streams) {
    expect(events(await stream.text()).at(-1)).toMatchObject([
      "operator",
      { requests_in_flight: 2, reserved_tokens: 5, gateways: 3 },
    ]);
  }
  await live.look();
  isOpen.mockClear();
  reads = 0;
  for (let look = 0; look < 5; look++) await live.look();
  expect([reads, isOpen.mock.calls.length]).toEqual([5, 0]);
  await office.accounts.addCredit("a@x", 70);
  mark = "1 b";
  await live.look();
  expect(isOpen.mock.calls.length).toBe(3);
  for (const stream of streams) expect(events(await stream.text())).toMatchObject([["account", { credit: 570 }]]);
});

test("shows life while nothing changes", async () => {
  const { open, live } = await setUp();
  const stream = open();
  await stream.text();
  for (let look = 0; look <= keepAliveIntervalMs / liveIntervalMs; look++) await live.look();
  expect(await stream.text()).toBe(": alive\n\n");
});

describe("ends with its session", () => {
  test("when it is ended elsewhere", async () => {
    const { office, id, visitor, open, live } = await setUp();
    const stream = open();
    await stream.text();
    await office.sessions.end(id, visitor.session.id);
    await live.look();
    expect(events(await stream.text())).toEqual([["ended", {}]]);
    expect(stream.ended).toBe(true);
  });

  test("when its account is disabled", async () => {
    const { office, id, open, live } = await setUp();
    const stream = open();
    await stream.text();
    await office.accounts.setDisabled(id, true);
    await live.look();
    expect(events(await stream.text())).toEqual([["ended", {}]]);
  });
});

test("a browser that reads nothing gets the latest later, not everything it missed", async () => {
  const { office, id, open, live } = await setUp();
  const stream = open();
  const holds = [];
  for (let held = 0; held < 50; held++) {
    holds.push(office.hold(id, ask(1)));
    await live.look();
  }
  const first = events(await stream.text());
  await live.look();
  const all = [...first, ...events(await stream.text())];
  expect(all.length).toBeLessThan(5);
  expect(all.at(-1)).toMatchObject(["account", { reserved: { requests: 50 } }]);
  for (const hold of holds) hold[Symbol.dispose]();
});

test("an account has few streams, and one that was left makes room", async () => {
  const { open, live, visitor } = await setUp();
  const streams = Array.from({ length: liveStreamsPerAccountMax }, open);
  expect(live.open(visitor)).toMatchObject({ failure: "busy" });
  await streams[0]!.cancel();
  expect(live.open(visitor)).toBeInstanceOf(Response);
});
