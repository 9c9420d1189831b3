// Replies and streams of every dialect: what they say, that the two say the same, how they end, what they cost, and what
// is left of a client that leaves.
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import {
  asking,
  type Dialect,
  dialects,
  eachDialect,
  failedIn,
  firstParty,
  hosted,
  toldIn,
} from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { answered, type Asking, exchange } from "../fixtures/requests.ts";
import { type Stack, useStack } from "../fixtures/stack.ts";

const stack = useStack();

const bash = (command: string) => ({ name: "bash", given: { command } });
const inCity = (city: string) => ({ name: "get_weather", given: { city } });
const greeting = { text: "Hi there!" };
const thinking = { ...greeting, thought: "Let me think." };
/** What the node's scripts say, and how they end. */
const scripts = [
  ["text", "stop", greeting],
  ["reasoning-text", "stop", thinking],
  ["reasoning-vllm", "stop", thinking],
  ["one-tool", "calls", { calls: [inCity("Paris")] }],
  ["two-bash-calls", "calls", { thought: "Two calls.", calls: [bash("echo a"), bash("echo b")] }],
  ["parallel-tools", "calls", { calls: [inCity("London"), inCity("Tokyo")] }],
  ["forced-tool", "calls", { calls: [inCity("Paris")] }],
  ["length", "length", greeting],
  ["stop-sequence", "sequence", greeting],
  ["json", "stop", { text: '{"title":"Dune","year":1965}' }],
] as const;
const nothing = { text: "", thought: "", calls: [], cited: [] };

/** Balance tokens of model tokens times cents, computed apart from the gateway's own arithmetic. */
const billed = (tokenCents: number): number => Number((2n * BigInt(tokenCents) + 500n) / 1_000n);

/** Nothing was charged but the account's next request: charges are written in their order, those of aborts too. */
async function expectOnlyNext(on: Stack, dialect: Dialect, account: Account): Promise<void> {
  await eventually("nothing is reserved", async () => (await on.gateway.show(account.email)).reserved === 0);
  await answered(on, dialect, "text", {}, { account });
  expect(await on.gateway.usage(account.email)).toMatchObject([{ estimated: false, output: 20 }]);
}

describe.each(eachDialect)("%s", (name, dialect) => {
  const ask = (script: string, more: object = {}, asked: Asking = {}) => answered(stack, dialect, script, more, asked);
  const streaming = (script: string, more: object = {}, asked: Asking = {}) =>
    ask(script, { stream: true, ...more }, asked);

  test.each(scripts.flatMap((row) => dialect.showing.map((showing) => [...row, showing] as const)))(
    "%s: the stream is in order, ends once (%s), and says %j as the reply does that is not streamed; request with %j",
    async (script, ending, said, showing) => {
      const more = { model: hosted, ...dialect.stop?.(["END"]), ...showing };
      const stream = await streaming(script, more);
      const { account } = stream;
      const reply = await ask(script, more, { account });
      expect(stream.told).toEqual(reply.told);
      const thought = dialect.showsThoughts(showing) ? {} : { thought: "" };
      expect(reply.told).toMatchObject({
        ...nothing,
        ...said,
        ...thought,
        ending: dialect.endings[ending],
        usage: { input: 120, cached: 20, output: 20 },
      });
      const rows = await stack.gateway.usage(account.email);
      expect(rows.map(({ endpoint }) => endpoint)).toEqual([dialect.endpoint, dialect.endpoint]);
      expect(rows[0]!.billed_tokens).toBe(rows[1]!.billed_tokens);
    },
  );

  test.each([hosted, firstParty])("the usage of %s is told in the dialect's words, streamed and not", async (model) => {
    const reply = await ask("text", { model });
    const { usage } = JSON.parse(reply.written);
    expect(usage).toEqual(dialect.usage[model === hosted ? "hosted" : "firstParty"]);
    expect((await streaming("text", { model })).written).toContain(`"usage":${JSON.stringify(usage)}`);
  });

  test("a first-party tier pays the total at its flat rate, a hosted one its three rates apart", async () => {
    const account = await stack.gateway.account();
    for (const model of [firstParty, hosted]) await streaming("text", { model }, { account });
    const [second, first] = await stack.gateway.usage(account.email);
    // $3.35 flat on 140 tokens; $0.50 on 100 fresh, a tenth of it on 20 cached, $2.00 on 20 output; $5 per million
    const [flat, apart] = [billed(140 * 335), billed(100 * 50 + 20 * 5 + 20 * 200)];
    const counts = { input: 120, cached_input: 20, output: 20, reasoning: 5, estimated: false };
    expect([first, second]).toMatchObject([
      { ...counts, billed_tokens: flat },
      { ...counts, billed_tokens: apart },
    ]);
    const { allowance } = await stack.gateway.show(account.email);
    expect(allowance.left).toBe(allowance.granted - flat - apart);
  });

  test.each(["usage-missing", "usage-negative", "usage-absurd"])(
    "%s: the gateway counts by itself and says so; nonsense is never passed on",
    async (script) => {
      const { told, account } = await streaming(script);
      const { input, output } = told.usage!;
      for (const tokens of [input, output]) {
        expect(Number.isSafeInteger(tokens)).toBe(true);
        expect(tokens).toBeWithin(1, 1_000);
      }
      expect(await stack.gateway.usage(account.email)).toMatchObject([{ estimated: true, input, output }]);
    },
  );

  test.each(["dies-rst", "dies-fin", "no-finish", "error-mid-stream"])(
    "%s: text, then the error in place of an end, without a terminator and without a charge",
    async (script) => {
      const { reply, account } = await exchange(stack, dialect, script, { stream: true });
      expect(reply.status).toBe(200);
      const written = await reply.text();
      expect(written).not.toContain("10.1.2.3");
      const { text, last } = failedIn(dialect, written);
      expect(text).toBe("Hi there");
      expect(last).toEqual(dialect.failed("The model stopped answering. Please retry."));
      await stack.gateway.expectUncharged(account);
    },
  );

  test("tokens are passed on as they come, every event whole in one chunk of the transfer", async () => {
    const { api_key } = await stack.gateway.account();
    const body = JSON.stringify(asking(dialect, `hello [[${stack.node.marker("slow")}]]`, { stream: true }));
    const { hostname, port } = new URL(stack.gateway.url);
    const reads: string[] = [];
    await new Promise<void>((resolve, reject) => {
      const head = `POST ${dialect.endpoint} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${api_key}\r\ncontent-length: ${body.length}`;
      const socket = connect(Number(port), hostname, () => socket.write(`${head}\r\n\r\n${body}`));
      socket.on("error", reject);
      socket.on("data", (bytes) => reads.push(String(bytes)));
      socket.on("end", resolve);
    });
    expect(reads.length).toBeGreaterThan(10); // of 20; the system may join some
    const [head = "", ...rest] = reads.join("").split("\r\n\r\n");
    expect(head).toStartWith("HTTP/1.1 200");
    const chunks = [...rest.join("\r\n\r\n").matchAll(/(?:^|\r\n)[0-9a-f]+\r\n([^\r]*)/gi)]
      .map(([, chunk = ""]) => chunk)
      .filter((chunk) => chunk !== "");
    expect(chunks.length).toBeGreaterThan(10);
    for (const chunk of chunks) expect(chunk).toEndWith("\n\n");
    const events = chunks.join("").split("\n\n").slice(0, -1);
    expect(events.pop()).toMatch(dialect.lastEvent);
    for (const event of events) expect(event).toMatch(dialect.event);
  });

  test.each([true, false])(
    "an abort stops the node and is charged once if anything was received, streamed: %p",
    async (stream) => {
      const account = await stack.gateway.account();
      const controller = new AbortController();
      const marker = stack.node.marker("endless");
      const reading = exchange(stack, dialect, marker, { stream }, { account, signal: controller.signal })
        .then(({ reply }) => reply.text())
        .catch(() => "aborted");
      await eventually(
        "the node is generating",
        async () => ((await stack.node.requests(marker))[0]?.sent.length ?? 0) > 10,
      );
      const abortedAt = Date.now();
      controller.abort();
      expect(await reading).toBe("aborted");
      // milliseconds, where nothing else runs
      expect((await stack.node.closedAt(marker)) - abortedAt).toBeLessThan(5_000);
      if (!stream) {
        return expectOnlyNext(stack, dialect, account);
      }
      // the reservation goes back at once, the charge is on disk a moment later
      const rows = await eventually("the abort is charged", async () => {
        const rows = await stack.gateway.usage(account.email);
        return rows.length > 0 && rows;
      });
      expect(rows).toMatchObject([{ endpoint: dialect.endpoint, estimated: true }]);
      expect(rows[0]!.output).toBeGreaterThan(5);
      expect((await stack.gateway.show(account.email)).reserved).toBe(0);
    },
  );
});

describe("one place on the node", () => {
  const narrow = useStack({ slots: 1 });

  /** Something that takes the place until it is left. */
  async function taken(dialect: Dialect): Promise<{ leave(): Promise<unknown> }> {
    const controller = new AbortController();
    const { reply } = await exchange(narrow, dialect, "endless", { stream: true }, { signal: controller.signal });
    const reading = reply.text().catch(() => "aborted");
    return { leave: () => (controller.abort(), reading) };
  }

  test.each(eachDialect)("%s: a stream that waits for it opens and shows life", async (_, dialect) => {
    const running = await taken(dialect);
    const { reply, marker } = await exchange(narrow, dialect, "text", { stream: true });
    expect(reply.status).toBe(200);
    expect(await narrow.node.requests(marker)).toEqual([]); // it waits in the gateway, not in the node
    await running.leave();
    // Where it waited long enough, its place in line comes first.
    const written = (await reply.text()).replace(/^: number \d+ in line[^\n]*\n\n/, "");
    expect(written).toStartWith(dialect.signOfLife);
    expect(toldIn(dialect, written, true).text).toBe("Hi there!");
  });

  test.each(eachDialect)(
    "%s: a client that leaves while it waits in line never reaches the node and pays nothing",
    async (_, dialect) => {
      const running = await taken(dialect);
      const account = await narrow.gateway.account();
      const waiting = new AbortController();
      const marker = narrow.node.marker("text");
      const second = exchange(narrow, dialect, marker, {}, { account, signal: waiting.signal }).catch(() => "aborted");
      const reserved = async (): Promise<number> => (await narrow.gateway.show(account.email)).reserved;
      await eventually("the second request is admitted", async () => (await reserved()) > 0);
      waiting.abort();
      expect(await second).toBe("aborted");
      await eventually("its reservation is back", async () => (await reserved()) === 0);
      await running.leave();
      await expectOnlyNext(narrow, dialect, account);
      expect(await narrow.node.requests(marker)).toEqual([]);
    },
  );
});

test.each([["silent-12s", 1], ...(longForm ? ([["silent-60s", 4]] as const) : [])] as const)(
  "a stream whose node is silent shows life at least every 15 s, and then the text: %s",
  async (script, signsMin) => {
    const waits = dialects.map(async (dialect) => {
      const { reply } = await exchange(stack, dialect, script, { stream: true });
      let last = performance.now();
      let longest = 0;
      let written = "";
      const decoder = new TextDecoder();
      for await (const bytes of reply.body!) {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
        written += decoder.decode(bytes, { stream: true });
      }
      expect(longest).toBeLessThan(15_000);
      expect(written).toStartWith(dialect.signOfLife);
      expect(written.split(dialect.signOfLife).length - 1).toBeGreaterThanOrEqual(signsMin);
      expect(toldIn(dialect, written, true).text).toBe("late");
    });
    await Promise.all(waits);
  },
  120_000,
);
