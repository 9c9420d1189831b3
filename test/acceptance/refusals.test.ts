// Every row of the error table, in each dialect's own form, through real HTTP: status, type, code, message, headers, and
// that nothing is charged.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  asking,
  type Dialect,
  type DialectName,
  dialects,
  eachDialect,
  hosted,
  toolsOf,
  weather,
} from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import { onPostgres } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { pixelBase64 } from "../fixtures/pictures.ts";
import { type Asking, exchange, post, refusalOf } from "../fixtures/requests.ts";
import { Stack, useStack } from "../fixtures/stack.ts";

const stack = useStack();

const quotaWords = /^Quota exceeded\. Upgrade your plan at http:\/\/\S+\/plan$/;
const callsWords = /^\S.* call quota reached\. Upgrade your plan at http:\/\/\S+\/plan$/;
const stopped = { type: "api_error", message: "The model stopped answering. Please retry." };
const busy = { type: "rate_limit_error", message: "Routes are temporarily busy. Please retry." };

/** Bodies, or fields of a body that is good but for them. */
const malformed: readonly (readonly [string, (dialect: Dialect) => object | string])[] = [
  ["a conversation of another type", ({ conversationField }) => ({ [conversationField]: 42 })],
  ["no conversation", ({ conversationField }) => ({ [conversationField]: undefined })],
  ["an empty conversation", ({ conversationField }) => ({ [conversationField]: [] })],
  ["a turn that is null", ({ conversationField }) => ({ [conversationField]: [null] })],
  ["a role that is not known", ({ conversation }) => conversation([{ by: "wizard" as "user", says: "hi" }])],
  ["a part of no known type", ({ conversation }) => conversation([{ by: "user", says: [{ file: "" } as never] }])],
  ["no model", () => ({ model: undefined })],
  ["a budget that is no number", ({ budgets }) => ({ [budgets[0]!]: "many" })],
  ["a stream flag that is no flag", () => ({ stream: "yes" })],
  ["a temperature out of range", () => ({ temperature: 9 })],
  ["tools that are no array", () => ({ tools: {} })],
  ["a tool without a name", (dialect) => toolsOf(dialect, { ...weather, name: undefined as never })],
  ["a tool that is not there", (dialect) => ({ ...toolsOf(dialect, weather), ...dialect.choice({ only: "x" }) })],
  ["a depth that is not known", ({ depth }) => depth("frantic")],
  ["a JSON schema that is no object", ({ schema }) => schema("x" as never)],
  [
    "a schema for a model without structured output",
    ({ schema }) => ({
      model: "open-08-W4A16-AUTOROUND-REAP",
      ...schema({ type: "object" }),
    }),
  ],
  [
    "an image for a model that reads text only",
    ({ conversation }) => ({
      model: "open-12-W8A16",
      ...conversation([{ by: "user", says: [{ image: pixelBase64 }] }]),
    }),
  ],
  ["an array", () => []],
  ["null", () => "null"],
  ["a number", () => "42"],
  ["cut-off JSON", ({ conversationField }) => `{"model":"core-3","${conversationField}":[`],
  ["no body", () => ""],
  [
    "a body that nests without end",
    ({ conversationField }) => `{"model":"core-3","${conversationField}":${"[".repeat(100_000)}`,
  ],
];
/** What only one dialect has. */
const malformedIn: Readonly<Record<DialectName, readonly (readonly [string, () => object])[]>> = {
  chat: [["a schema that is missing", () => ({ response_format: { type: "json_schema" } })]],
  messages: [
    ["a block without a type", () => ({ messages: [{ role: "user", content: [{ text: "hi" }] }] })],
    ["a system prompt that is no text", () => ({ system: 42 })],
    ["a conversation that the server is to keep", () => ({ thread: { type: "create" } })],
  ],
  responses: [["a background run that is not to be stored", () => ({ background: true, store: false })]],
};

describe.each(eachDialect)("%s", (name, dialect) => {
  const send = (body: object | string, account: Parameters<typeof post>[1]): Promise<Response> =>
    post(stack, account, body, { path: dialect.endpoint });
  const good = (): object => asking(dialect, `hello [[${stack.node.marker("text")}]]`);

  test.each([...malformed, ...malformedIn[name]])("400: %s", async (_, wrong) => {
    const account = await stack.gateway.account();
    const fields = wrong(dialect);
    const body = typeof fields === "string" || Array.isArray(fields) ? fields : { ...good(), ...fields };
    const refused = await refusalOf(dialect, await send(body, account));
    expect(refused).toMatchObject({ status: 400, ...dialect.error({ type: "invalid_request_error" }) });
    await stack.gateway.expectUncharged(account);
  });

  test("400: an unknown model, by its code where there are codes", async () => {
    const { account, reply } = await exchange(stack, dialect, "text", { model: "core-99" });
    expect(await refusalOf(dialect, reply)).toEqual({
      status: 400,
      ...dialect.error(
        { type: "invalid_request_error", message: expect.stringContaining("core-99") },
        "model_not_found",
      ),
    });
    await stack.gateway.expectUncharged(account);
  });

  test("an unknown model and a missing key do not count for flood protection, malformed parameters do", async () => {
    const account = await stack.gateway.account();
    const times = (count: number, body: object): Promise<number[]> =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const reply = await send(body, account);
          await reply.text();
          return reply.status;
        }),
      );
    const wrong = { ...good(), stream: "yes" };
    expect(new Set(await times(130, { ...good(), model: "core-99" }))).toEqual(new Set([400]));
    expect(new Set(await times(120, wrong))).toEqual(new Set([400]));
    expect(await times(1, wrong)).toEqual([429]);
  });

  test.each([false, true])(
    "400: a prompt beyond the node's context, in the words that agents compact on, streamed: %p",
    async (stream) => {
      const { account, reply } = await exchange(stack, dialect, "prompt-too-long", { stream });
      const message = "prompt is too long: 5000 tokens > 4096 maximum";
      expect(await refusalOf(dialect, reply)).toEqual({
        status: 400,
        ...dialect.error({ type: "invalid_request_error", message }, "context_length_exceeded"),
      });
      await stack.gateway.expectUncharged(account);
    },
  );

  test("429: the 121st request of a window waits for the window's end, in the message and in retry-after", async () => {
    const [account, other] = [await stack.gateway.account(), await stack.gateway.account()];
    const served = await Promise.all(Array.from({ length: 120 }, () => send(good(), account)));
    expect(new Set(served.map(({ status }) => status))).toEqual(new Set([200]));
    await Promise.all(served.map((reply) => reply.text()));
    const reply = await send(good(), account);
    const seconds = Number(reply.headers.get("retry-after"));
    expect(seconds).toBeWithin(1, 61);
    expect(reply.headers.get("x-should-retry")).toBeNull();
    const message = `Too many requests. Retry in ${seconds}s.`;
    expect(await refusalOf(dialect, reply)).toEqual({
      status: 429,
      ...dialect.error({ type: "rate_limit_error", message }),
    });
    expect(await stack.gateway.usage(account.email)).toHaveLength(120);
    // another account is not touched, and the window is not reset by a new key
    const others = await send(good(), other);
    expect(others.status, await others.text()).toBe(200);
    const rotated = await send(good(), { ...account, api_key: await stack.gateway.rotate(account.email) });
    expect((await refusalOf(dialect, rotated))["message"]).toStartWith("Too many requests.");
  });

  test("429: a reservation that does not fit, with the plan page, not to be tried again", async () => {
    const account = await stack.gateway.account(0); // the free plan's 30,000 of today
    const ask = async (budget: number): Promise<Response> =>
      (await exchange(stack, dialect, "text", { [dialect.budgets[0]!]: budget }, { account })).reply;
    const reply = await ask(60_000);
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(reply.headers.get("retry-after")).toBeNull();
    const facts = { spendable: 30_000, requested: 60_000, resets_at: expect.any(Number) };
    expect(await refusalOf(dialect, reply)).toEqual({
      status: 429,
      ...dialect.error(
        { type: "rate_limit_error", message: expect.stringMatching(quotaWords), ...facts },
        "insufficient_quota",
      ),
    });
    await stack.gateway.expectUncharged(account);
    const fits = await ask(20);
    expect(fits.status, await fits.text()).toBe(200);
  });

  test("429: open requests hold their budgets, so that together they cannot overdraw the balance", async () => {
    const account = await stack.gateway.account(0);
    const controller = new AbortController();
    // 7 x 4,096 = 28,672 of 30,000 tokens
    const endless = { account, signal: controller.signal };
    const open = await Promise.all(
      Array.from({ length: 7 }, () => exchange(stack, dialect, "endless", { stream: true }, endless)),
    );
    expect(open.map(({ reply }) => reply.status)).toEqual(Array(7).fill(200));
    expect((await stack.gateway.show(account.email)).reserved).toBe(28_672);
    const eighth = await refusalOf(dialect, (await exchange(stack, dialect, "text", {}, { account })).reply);
    expect(eighth).toMatchObject({
      status: 429,
      message: expect.stringMatching(quotaWords),
      spendable: 1_328,
      requested: 4_096,
    });
    controller.abort();
    await Promise.allSettled(open.map(({ reply }) => reply.text()));
  });

  const failing = ["status-500", "error-in-stream", "dies-before-head"];
  test.each([
    ...[...failing, "no-finish", "dies-rst", "dies-fin"].map((script) => [script, false] as const),
    ...failing.map((script) => [script, true] as const),
  ])("500: a node that fails before the client has a byte (%s, streamed: %p)", async (script, stream) => {
    const { account, reply } = await exchange(stack, dialect, script, { stream });
    expect(await refusalOf(dialect, reply)).toEqual({ status: 500, ...dialect.error(stopped) });
    await stack.gateway.expectUncharged(account);
  });

  test.each(["status-503", "status-429"])("429: %s of the node is a busy route, to be tried again", async (script) => {
    const { account, reply } = await exchange(stack, dialect, script);
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(reply.headers.get("x-should-retry")).toBeNull();
    expect(await refusalOf(dialect, reply)).toEqual({
      status: 429,
      ...dialect.error({ ...busy, reason: "nodes_full" }),
    });
    await stack.gateway.expectUncharged(account);
  });
});

// on responses they are paid in tokens
describe.each(eachDialect.filter(([name]) => name !== "responses"))("%s", (_, dialect) => {
  test("429: coder calls, of which a failed one is one, are refused by name when they are used up", async () => {
    const account = await stack.gateway.account(0);
    const coder = async (script: string): Promise<Response> => {
      // 65,536 tokens would not fit into the balance
      const more = { model: "core-coder-1", [dialect.budgets[0]!]: 65_536 };
      return (await exchange(stack, dialect, script, more, { account })).reply;
    };
    for (const [script, status] of [
      ["text", 200],
      ["text", 200],
      ["status-500", 500],
    ] as const) {
      const reply = await coder(script);
      expect(reply.status, await reply.text()).toBe(status);
    }
    const reply = await coder("text");
    expect(reply.headers.get("x-should-retry")).toBe("false");
    const facts = { used: 3, limit: 3, resets_at: expect.any(Number) };
    expect(await refusalOf(dialect, reply)).toEqual({
      status: 429,
      ...dialect.error(
        { type: "rate_limit_error", message: expect.stringMatching(callsWords), ...facts },
        "insufficient_quota",
      ),
    });
    const state = await stack.gateway.show(account.email);
    expect(state.coder_calls).toMatchObject({ used: 3, limit: 3 });
    expect(state.allowance.left).toBe(state.allowance.granted);
    const rows = await stack.gateway.usage(account.email);
    expect(rows.map(({ billed_tokens }) => billed_tokens)).toEqual([0, 0]);
  });
});

test("a node that is not there is a busy route; when it comes back it is used again", async () => {
  await using own = await Stack.start();
  const account = await own.gateway.account();
  await own.node.kill();
  for (const dialect of dialects) {
    const { reply } = await exchange(own, dialect, "text", {}, { account });
    const error = dialect.error({ ...busy, reason: "nodes_unreachable" });
    expect(await refusalOf(dialect, reply)).toEqual({ status: 429, ...error });
  }
  await using _again = await ScriptedNode.start(own.node.port);
  for (const dialect of dialects) {
    await eventually(
      "the node is used again",
      async () => {
        const { reply } = await exchange(own, dialect, "text", {}, { account });
        await reply.text();
        return reply.status === 200;
      },
      30_000,
    );
  }
  await own.gateway.expectNothingReserved();
});

// Where the ledger is in PostgreSQL, test/server/shared-database.test.ts takes that away.
if (onPostgres) console.log("skipped: an unreadable data folder, since the ledger is in PostgreSQL");
test.skipIf(onPostgres)(
  "503: an unreadable balance, on responses 500 for first-party tiers; nothing is charged, nothing is lost",
  async () => {
    await using own = await Stack.start();
    const account = await own.gateway.account();
    const ask = async (dialect: Dialect, model: string, more: Asking = {}): Promise<Response> =>
      (await exchange(own, dialect, "text", { model }, { account, ...more })).reply;
    const lock = new Database(join(own.gateway.dataFolder, "tollgate.db"));
    lock.run("BEGIN IMMEDIATE");
    // the writer notices at its first try; replies that came before wait for their charge
    const waiting = exchange(own, dialects[0], "text", {}, { account });
    await eventually("the disk is noticed", async () => {
      const reply = await ask(dialects[0], hosted, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
      await reply?.text().catch(() => "");
      return reply?.status === 503;
    });
    for (const dialect of dialects) {
      for (const model of ["core-3", hosted]) {
        const message = "Could not verify your quota right now. Please retry.";
        const status = dialect.name === "responses" && model === "core-3" ? 500 : 503;
        const refused = await refusalOf(dialect, await ask(dialect, model));
        expect(refused).toEqual({ status, ...dialect.error({ type: "api_error", message }) });
      }
    }
    lock.run("ROLLBACK");
    lock.close();
    const { reply } = await waiting;
    expect(reply.status, await reply.text()).toBe(200);
    for (const dialect of dialects) {
      await eventually("the disk is well again", async () => {
        const { reply } = await exchange(own, dialect, "text", {}, { account });
        return (await reply.text()).includes("Hi there!");
      });
    }
  },
);
