// Limits of plans and keys under 200 requests at once: as many at once as they say, and as many in a minute, on one thread, over
// two, and over two gateways of one PostgreSQL.
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { CountingNode } from "../threads/counting-node.ts";

setDefaultTimeout(240_000);
const plan = (id: string, more: string) =>
  `[[plans]]\nid = "${id}"\ntokens_per_day = 900000000\nrequests_per_minute = 100000\n${more}\n`;
const plans = [
  plan("wide", ""),
  plan("narrow", "parallel = 5"),
  plan("silent", "").replace(/requests.*\n/, ""),
  plan("paced", "").replace("100000", "30"),
  plan("short", "tokens_per_minute = 1000"),
  plan("each", "end_user_parallel = 5\nend_user_requests_per_minute = 30"),
].join("");
const models = `[[models]]\nid = "free"\n[[models]]\nid = "paid"\nprice = { input = 1, output = 1 }
[[models]]\nid = "few"\nparallel = 5\n`;
const messages = [{ role: "user", content: "Hi" }];
const atOnce = 200;

describe.each([
  ["on one thread", 1],
  ["over two threads", 2],
  ["over two gateways", 0],
] as const)("%s", (_, threads) => {
  const isShared = threads === 0;
  describe.skipIf(isShared && noPostgres)("200 requests at once", () => {
    const folder = temporaryFolder();
    let node: CountingNode;
    let postgres: TestPostgres | null = null;
    let gateways: GatewayProcess[] = [];

    beforeAll(async () => {
      node = new CountingNode();
      const nodes = `[[nodes]]\nname = "n"\nurl = "${node.url}"\nslots = 300\n`;
      const config = `${nodes}models = { free = "m", paid = "m", few = "m" }\n${models}${plans}`;
      if (!isShared) return void (gateways = [await GatewayProcess.start({ config, threads })]);
      postgres = await TestPostgres.start();
      const env = { TOLLGATE_DATABASE_URL: await postgres.database("limits") };
      for (const index of [0, 1]) {
        const ledger = `[ledger]\ngateway = "g${index}"\n`;
        gateways.push(
          await GatewayProcess.start({ config: config + ledger, env, dataFolder: join(folder.path, `g${index}`) }),
        );
      }
    });
    afterAll(async () => {
      for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
      await postgres?.[Symbol.asyncDispose]();
      node.stop();
      folder[Symbol.dispose]();
    });
    afterEach(() => gateways[0]!.expectNothingReserved());

    const keyOf = async (plan: string, ...limits: string[]): Promise<Account> => {
      const account = await gateways[0]!.account(0, plan);
      if (limits.length === 0) return account;
      const made = await gateways[0]!.cli<Account>("keys", "create", account.email, "--name", "k", ...limits);
      return { ...account, api_key: made.api_key };
    };
    const post = (key: string, index = 0, body: object = {}, path = "chat/completions", signal?: AbortSignal) =>
      fetch(`${gateways[index % gateways.length]!.url}/v1/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, connection: "close" },
        body: JSON.stringify({ model: "paid", max_tokens: 90, messages, ...body }),
        ...(signal && { signal }),
      });
    const postAll = (key: string, body: object = {}) =>
      Promise.all(Array.from({ length: atOnce }, (_, index) => post(key, index, body)));

    test.each([
      ["a plan's parallel requests", "narrow", [], ["paid", "free"]],
      ["a key's parallel requests", "wide", ["--parallel", "5"], ["paid", "free"]],
      ["a model's parallel requests", "wide", [], ["few"]],
    ])("%s: the others wait, and all are answered", async (_, plan, limits, models) => {
      const { api_key } = await keyOf(plan, ...limits);
      for (const model of models) {
        node.answer = "when told";
        [node.mostAtOnce, node.served] = [0, 0];
        let answered = 0;
        const replies = Promise.all(
          Array.from({ length: atOnce }, async (_, index) => {
            const reply = await post(api_key, index, { model });
            await reply.text();
            answered += 1;
            return reply.status;
          }),
        );
        while (answered < atOnce) {
          await eventually("some run", async () => node.running > 0 || answered === atOnce);
          node.finish();
          await Bun.sleep(0);
        }
        expect(new Set(await replies)).toEqual(new Set([200]));
        expect([model, node.mostAtOnce, node.served]).toEqual([model, 5, atOnce]);
      }
    });

    test.each([
      ["a key's", "wide", ["--end-user-parallel", "5"]],
      ["a plan's", "each", []],
    ])("%s parallel requests of each end user: the others of that end user wait", async (_, plan, limits) => {
      const { api_key } = await keyOf(plan, "--forwards-users", ...limits);
      node.answer = "when told";
      node.served = 0;
      const replies = Array.from({ length: 60 }, (_, index) => {
        return post(api_key, index >> 1, {
          user: index % 2 === 0 ? "ada" : "bob",
          model: index < 30 ? "paid" : "free",
        });
      });
      const statuses = Promise.all(replies.map(async (reply) => (await (await reply).text(), (await reply).status)));
      await eventually("five of each run", async () => node.running === 10);
      // Another one does not wait for them.
      const other = post(api_key, 1, { user: "eve" });
      await eventually("another's runs", async () => node.running === 11);
      [node.mostAtOnce] = [0];
      while (node.served < 61) {
        await eventually("some run", async () => node.running > 0);
        node.finish();
        await Bun.sleep(0);
      }
      node.finish();
      expect([new Set(await statuses), (await other).status]).toEqual([new Set([200]), 200]);
      expect([node.mostAtOnce, node.served]).toEqual([10, 61]);
      await (await other).text();
    });

    test.each([
      ["a key's", "wide", ["--end-user-requests-per-minute", "30"]],
      ["a plan's", "each", []],
    ])("%s requests of a minute of each end user, whoever else asks", async (_, plan, limits) => {
      const { api_key, email } = await keyOf(plan, "--forwards-users", ...limits);
      node.answer = "at once";
      const ask = (index: number, user: string) => post(api_key, index, { user });
      const replies = await Promise.all(Array.from({ length: atOnce }, (_, index) => ask(index >> 1, `${index % 2}`)));
      const good = replies.filter(({ ok }) => ok);
      expect([good.length, new Set(replies.map(({ status }) => status))]).toEqual([60, new Set([200, 429])]);
      const remaining = good.map(({ headers }) => Number(headers.get("x-ratelimit-remaining-requests")));
      expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index >> 1));
      await Promise.all(replies.map((reply) => reply.text()));
      expect((await gateways[0]!.usage(email)).length).toBe(60);
      const [refused, other] = [await ask(0, "1"), await ask(1, "2")];
      expect([refused.status, other.status]).toEqual([429, 200]);
      expect(Number(refused.headers.get("retry-after"))).toBeWithin(1, 61);
      await Promise.all([refused.text(), other.text()]);
    });

    test("the minute goes on after kill -9 with what was charged in it", async () => {
      const flags = ["--requests-per-minute", "30", "--end-user-requests-per-minute", "2"];
      const { api_key } = await keyOf("wide", "--forwards-users", ...flags);
      node.answer = "at once";
      const left = async (user: string) => {
        const { status, headers } = await post(api_key, 0, { user });
        return status === 429 ? "refused" : Number(headers.get("x-ratelimit-remaining-requests"));
      };
      expect([await left("ada"), await left("bob"), await left("bob")]).toEqual([1, 1, 0]);
      await eventually("all are charged", async () => node.running === 0);
      await gateways[0]!.kill("SIGKILL");
      await gateways[0]!.restart();
      expect([await left("bob"), await left("ada"), await left("eve")]).toEqual(["refused", 0, 1]);
    });

    test("a plan's requests of a minute: headers in the forms of both APIs say what is left", async () => {
      const { api_key } = await keyOf("paced");
      node.answer = "at once";
      const first = await post(api_key, 0, {}, "messages");
      const left = (headers: Headers, name: string) => headers.get(`anthropic-ratelimit-requests-${name}`);
      expect([left(first.headers, "limit"), left(first.headers, "remaining")]).toEqual(["30", "29"]);
      expect(Date.parse(left(first.headers, "reset")!) - Date.now()).toBeWithin(50_000, 61_000);
      expect([await first.text(), first.headers.get("x-ratelimit-reset-requests")]).toEqual([
        expect.any(String),
        "60s",
      ]);
      const replies = await postAll(api_key);
      const good = replies.filter(({ ok }) => ok);
      const remaining = good.map(({ headers }) => Number(headers.get("x-ratelimit-remaining-requests")));
      expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 29 }, (_, left) => left));
      for (const { headers } of replies.filter(({ ok }) => !ok)) {
        const said = ["limit", "remaining", "reset"].map((what) => headers.get(`x-ratelimit-${what}-requests`));
        expect(said).toEqual(["30", "0", `${headers.get("retry-after")}s`]);
      }
      await Promise.all(replies.map((reply) => reply.text()));
    });

    test("a key's tokens of a minute of each end user: at the end what was used", async () => {
      const { api_key } = await keyOf("wide", "--forwards-users", "--end-user-tokens-per-minute", "250");
      node.answer = "at once";
      node.inputTokens = 10;
      const statuses: number[] = [];
      for (const user of ["ada", "ada", "bob"]) {
        const reply = await post(api_key, statuses.length, { user });
        statuses.push(reply.status, Number(reply.headers.get("x-ratelimit-remaining-tokens")));
        await reply.text();
      }
      const [, first, , second, , other] = statuses;
      expect([first! - second!, first! - other!]).toEqual([15, 0]);
      const [full] = [await post(api_key, 1, { user: "ada", max_tokens: 250 })];
      expect([full.status, (await post(api_key, 1, { user: "eve", max_tokens: 250 })).status]).toEqual([429, 200]);
      await full.text();
    });

    test("a stream that waits for its key's others says where it is", async () => {
      const { api_key } = await keyOf("wide", "--parallel", "1");
      node.answer = "when told";
      node.served = 0;
      const first = post(api_key);
      await eventually("it runs", async () => node.running === 1);
      const leaving = new AbortController();
      const wait = async () => {
        const reply = await post(api_key, 0, { stream: true }, "chat/completions", leaving.signal);
        return reply.body!.pipeThrough(new TextDecoderStream()).getReader();
      };
      const second = wait();
      await Bun.sleep(100); // it stands in line before the third
      const readers = await Promise.all([second, wait()]);
      const said = async (of: number) => (await readers[of]!.read()).value;
      expect(await said(0)).toBe(": waiting\n\n: number 1 in line\n\n");
      expect(await said(1)).toBe(": waiting\n\n: number 2 in line\n\n");
      node.finish();
      await (await first).text();
      leaving.abort();
      await eventually("both are gone", async () => (node.finish(), node.running === 0));
    });

    test("one that waits and leaves gives up its place, and the next begins", async () => {
      const { api_key, email } = await keyOf("wide", "--parallel", "1");
      node.answer = "when told";
      node.served = 0;
      const first = post(api_key);
      await eventually("it runs", async () => node.running === 1);
      const { reserved } = await gateways[0]!.show(email);
      const leaving = new AbortController();
      const left = post(api_key, 0, {}, "chat/completions", leaving.signal).catch(() => "left");
      await eventually("another waits", async () => (await gateways[0]!.show(email)).reserved === 2 * reserved);
      leaving.abort();
      expect(await left).toBe("left");
      const last = post(api_key);
      node.finish();
      expect((await first).status).toBe(200);
      await eventually("the next runs", async () => node.served === 2);
      node.finish();
      expect((await last).status).toBe(200);
      await (await first).text();
      await (await last).text();
    });

    test("a key's requests of a minute: the others are refused with the time, and cost nothing", async () => {
      const { api_key, email } = await keyOf("wide", "--requests-per-minute", "30");
      node.answer = "at once";
      node.served = 0;
      const replies = await postAll(api_key);
      const [good, refused] = [replies.filter(({ ok }) => ok), replies.filter(({ ok }) => !ok)];
      expect([good.length, refused.length]).toEqual([30, atOnce - 30]);
      const remaining = good.map(({ headers }) => Number(headers.get("x-ratelimit-remaining-requests")));
      expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, left) => left));
      for (const { status, headers } of refused) {
        expect([status, headers.get("x-ratelimit-limit-requests")]).toEqual([429, "30"]);
        expect(headers.get("x-ratelimit-remaining-requests")).toBe("0");
        expect(Number(headers.get("retry-after"))).toBeWithin(1, 61);
      }
      const { error } = (await refused[0]!.json()) as { error: object };
      expect(error).toMatchObject({ type: "rate_limit_error", code: "rate_limit_exceeded" });
      await Promise.all(replies.slice(0).map((reply) => (reply.bodyUsed ? "" : reply.text())));
      expect([node.served, (await gateways[0]!.usage(email)).length]).toEqual([30, 30]);
    });

    test.each([
      ["a plan's tokens of a minute", "short", []],
      ["a key's tokens of a minute", "wide", ["--tokens-per-minute", "1000"]],
    ])("%s: what is reserved counts, and at the end what was used", async (_, plan, limits) => {
      const { api_key } = await keyOf(plan, ...limits);
      node.answer = "when told";
      node.inputTokens = 10;
      node.served = 0;
      let refused = 0;
      const replies = Array.from({ length: atOnce }, async (_, index) => {
        const reply = await post(api_key, index);
        if (reply.status === 429) refused += 1;
        await reply.text();
        return reply;
      });
      // Each counts 90 tokens of output and what it is expected to read.
      await eventually("all are decided", async () => refused + node.running === atOnce);
      expect(node.running).toBeWithin(5, 12);
      const admitted = node.running;
      node.finish();
      const good = (await Promise.all(replies)).filter(({ ok }) => ok);
      expect(good).toHaveLength(admitted);
      node.answer = "at once";
      const next = await post(api_key, 1, {}, "messages");
      expect([next.status, await next.text()]).toEqual([200, expect.any(String)]);
      const left = (name: string) => Number(next.headers.get(name));
      // The node reported 15 tokens for each.
      const free = 1000 - 15 * admitted - 90;
      expect(left("x-ratelimit-remaining-tokens")).toBeWithin(free - 110, free + 1);
      expect(left("anthropic-ratelimit-tokens-remaining")).toBe(left("x-ratelimit-remaining-tokens"));
      expect(Date.parse(next.headers.get("anthropic-ratelimit-tokens-reset")!)).toBeGreaterThan(0);
      expect(next.headers.get("x-ratelimit-limit-requests")).toBe("100000");
    });

    test("nothing is said of limits where there are none", async () => {
      const { api_key } = await keyOf("silent");
      node.answer = "at once";
      const { headers } = await post(api_key);
      expect([...headers.keys()].filter((name) => name.includes("ratelimit"))).toEqual([]);
    });
  });
});
