// Two gateways on one PostgreSQL, as people meet them: what is done at one holds at the other in the same moment, and official
// clients see nothing of restarts.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { beginAt, Person, pollAt, refreshAt, type Tokens } from "../fixtures/machine.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { installed, longForm } from "../fixtures/optional.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

// the packages' own types are not there in a plain checkout
type Json = Record<string, any>;
const clientsFolder = join(import.meta.dir, "../clients");
const openai = await installed<Json>("openai", clientsFolder);
const anthropic = await installed<Json>("@anthropic-ai/sdk", clientsFolder);

const timeLimit = 300_000;
const password = "long enough 1";

describe.skipIf(noPostgres || !longForm || openai === null || anthropic === null)("two gateways", () => {
  const folder = temporaryFolder();
  let postgres: TestPostgres;
  let node: ScriptedNode;
  let gateways: [GatewayProcess, GatewayProcess];
  const config = (index: number, more = "") => `${nodeTable(node, 32)}\n[ledger]\ngateway = "g${index}"\n${more}`;

  beforeAll(async () => {
    [postgres, node] = await Promise.all([TestPostgres.start(), ScriptedNode.start()]);
    const url = await postgres.database("two");
    const start = (index: number, more = "") =>
      GatewayProcess.start({
        config: config(index, more),
        env: { TOLLGATE_DATABASE_URL: url },
        dataFolder: join(folder.path, `g${index}`),
      });
    gateways = [await start(0), await start(1)];
    await node.define("slow", once({ repeat: text("tick "), times: 30, everyMs: 25 }, finish("stop")));
  }, timeLimit);
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway[Symbol.asyncDispose]();
    await postgres[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  /** The three clients, at an address that is asked for with each of their tries. */
  const clients = (key: string, urlOf: () => string, maxRetries = 0) => {
    const at = ((input: string, init: RequestInit) => {
      const { pathname, search } = new URL(input);
      return fetch(`${urlOf()}${pathname}${search}`, { ...init, keepalive: false });
    }) as typeof fetch;
    const options = { apiKey: key, fetch: at, maxRetries };
    const ofOpenai = new openai!["OpenAI"]({ ...options, baseURL: "http://gateways/v1" });
    const ofAnthropic = new anthropic!["Anthropic"]({ ...options, baseURL: "http://gateways" });
    const messages = (marker: string) => [{ role: "user", content: `[[${marker}]]` }];
    return {
      chat: async (marker: string): Promise<string> => {
        let said = "";
        const stream = await ofOpenai.chat.completions.create({
          model: "core-3",
          max_tokens: 500,
          stream: true,
          messages: messages(marker),
        });
        for await (const { choices } of stream) said += choices[0]?.delta.content ?? "";
        return said;
      },
      responses: async (marker: string): Promise<string> =>
        (await ofOpenai.responses.create({ model: "core-3", max_output_tokens: 500, input: `[[${marker}]]` }))
          .output_text,
      messages: async (marker: string): Promise<string> =>
        (
          await ofAnthropic.messages
            .stream({ model: "core-3", max_tokens: 500, messages: messages(marker) })
            .finalMessage()
        ).content[0].text,
    };
  };
  const all = ["chat", "responses", "messages"] as const;
  const statusOf = (asking: Promise<unknown>): Promise<number> =>
    asking.then(
      () => 200,
      (error: { status?: number }) => error.status ?? 0,
    );

  /** A browser that is signed in at one gateway and goes to either. */
  async function browser(at: GatewayProcess, email: string, withPassword = password) {
    let cookie = "";
    const call = async (gateway: GatewayProcess, path: string, body?: object): Promise<Json & { status: number }> => {
      const reply = await fetch(`${gateway.url}/console/api${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { origin: gateway.url, "content-type": "application/json", cookie },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const set = reply.headers.getSetCookie().map((each) => each.split(";")[0]);
      if (set.length > 0) cookie = set.join("; ");
      return { ...((await reply.json()) as Json), status: reply.status };
    };
    const { status } = await call(at, "/sign-in", { email, password: withPassword });
    return { call, status };
  }

  async function person(name: string, ...flags: string[]): Promise<Account> {
    const email = `${name}@example.com`;
    return gateways[0].cli<Account>(
      "accounts",
      "create",
      email,
      "--password",
      password,
      "--credit",
      "9000000",
      ...flags,
    );
  }

  test("an account that is disabled at one is refused at the other at once, and enabled again", async () => {
    const boss = await person("boss-of-state", "--operator");
    const { id, api_key } = await person("disabled");
    const operator = await browser(gateways[0], boss.email);
    const [here, there] = gateways.map(({ url }) => clients(api_key, () => url));
    for (const kind of all) expect(await statusOf(there![kind]("text"))).toBe(200); // its key is known there
    const mine = await browser(gateways[1], "disabled@example.com");
    expect((await mine.call(gateways[0], "/overview")).status).toBe(200);
    expect((await operator.call(gateways[0], `/operator/accounts/${id}/state`, { disabled: true })).status).toBe(200);
    for (const kind of all) {
      expect([kind, await statusOf(there![kind]("text"))]).toEqual([kind, 401]);
      expect([kind, await statusOf(here![kind]("text"))]).toEqual([kind, 401]);
    }
    expect((await mine.call(gateways[1], "/overview")).status).toBe(401);
    await operator.call(gateways[1], `/operator/accounts/${id}/state`, { disabled: false });
    for (const kind of all) expect(await statusOf(here![kind]("text"))).toBe(200);
  }, 60_000);

  test("a key that is revoked at one while the other streams ends no stream, which is paid, and is void", async () => {
    const { email } = await person("revoked");
    const named = await gateways[0].makeKey(email, { name: "named" });
    await node.define("held", once({ repeat: text("tick "), times: 40, everyMs: 50 }, finish("stop")));
    const there = clients(named.api_key, () => gateways[1].url);
    const stored = async (gateway: GatewayProcess) =>
      fetch(`${gateway.url}/v1/responses/${response.id}`, { headers: { authorization: `Bearer ${named.api_key}` } });
    const made = await fetch(`${gateways[0].url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${named.api_key}` },
      body: JSON.stringify({ model: "core-3", input: "[[text]]" }),
    });
    const response = (await made.json()) as { id: string };
    for (const gateway of gateways) expect((await stored(gateway)).status).toBe(200);
    const streams = all.map((kind) => there[kind]("held"));
    await eventually("all stream", async () => (await gateways[0].show(email)).reserved > 0);
    await eventually("all run", async () => (await node.requests("held")).length === 3);
    await gateways[0].revokeKey(email, named.id);
    for (const gateway of gateways) expect((await stored(gateway)).status).toBe(401);
    for (const kind of all) expect([kind, await statusOf(there[kind]("text"))]).toEqual([kind, 401]);
    for (const said of await Promise.all(streams)) expect(said.trim().split(" ").length).toBe(40);
    const rows = await gateways[0].usage(email);
    expect(rows.map(({ key }) => key)).toEqual(["named", "named", "named", "named"]);
    expect((await gateways[1].show(email)).reserved).toBe(0);
  }, 60_000);

  test("a machine asks at one, is approved at the other, and its token is renewed and ended at either", async () => {
    const { email } = await person("machines");
    const [here, there] = gateways.map(({ url }) => url) as [string, string];
    const ada = await Person.signedIn(here, email, password);
    const codes = await beginAt(here);
    // A code of which both decide at once is decided once.
    const raced = await beginAt(there);
    const decided = await Promise.all(
      [here, there].map((at) => ada.post(at, "/device/approve", { user_code: raced.user_code, name: "raced" })),
    );
    expect(decided.map(({ status }) => status).sort()).toEqual([200, 404]);
    await ada.approve(there, codes, "laptop");
    const polled = await Promise.all([here, there].map((at) => pollAt(at, codes)));
    expect(polled.map(({ status }) => status).sort()).toEqual([200, 400]);
    const { access_token, refresh_token } = polled.find(({ status }) => status === 200)!.body as Tokens;
    const asked = async (at: string, token: string): Promise<number> =>
      statusOf(clients(token, () => at).messages("text"));
    for (const at of [here, there]) expect(await asked(at, access_token)).toBe(200);
    expect((await gateways[1].usage(email)).map(({ key }) => key)).toEqual(["laptop", "laptop"]);
    const renewed = (await refreshAt(there, refresh_token)).body as Tokens;
    for (const at of [here, there]) {
      expect([await asked(at, access_token), await asked(at, renewed.access_token)]).toEqual([401, 200]);
    }
    // A terminal that renews in the same moment gets the same at the other gateway.
    const { access_token: same } = (await refreshAt(here, refresh_token)).body as Tokens;
    expect(same).toBe(renewed.access_token);
    // After the next renewal, the one that was used ends the machine, where nobody remembers it.
    const again = (await refreshAt(here, renewed.refresh_token)).body as Tokens;
    expect((await refreshAt(there, refresh_token)).body).toEqual({ error: "invalid_grant" });
    for (const at of [here, there]) expect(await asked(at, again.access_token)).toBe(401);
    const late = (await pollAt(here, raced)).body as Tokens;
    expect(await asked(there, late.access_token)).toBe(200);
    await gateways[0].cli("accounts", "disable", email);
    for (const at of [here, there]) expect(await asked(at, late.access_token)).toBe(401);
    expect((await refreshAt(there, late.refresh_token)).status).toBe(401);
  }, 60_000);

  test("an invitation of one is used at the other, once", async () => {
    const boss = await person("boss-of-links", "--operator");
    const operator = await browser(gateways[0], boss.email);
    const made = await operator.call(gateways[0], "/operator/invitations", { email: "guest@example.com" });
    expect(made).toMatchObject({ status: 200 });
    const { path } = made;
    const token = new URL(path as string, "http://x").hash.slice(1) || (path as string).split(/[/#=]/).at(-1)!;
    const guest = await browser(gateways[1], "nobody@example.com");
    expect((await guest.call(gateways[1], "/link", { token })).status).toBe(200);
    const used = await Promise.all(gateways.map((gateway) => guest.call(gateway, "/link/use", { token, password })));
    expect(used.map(({ status }) => status).sort()).toEqual([200, 400]);
    const { api_key } = used.find(({ status }) => status === 200)!;
    for (const gateway of gateways) {
      expect((await browser(gateway, "guest@example.com")).status).toBe(200);
      for (const kind of all)
        expect(await statusOf(clients(api_key as string, () => gateway.url)[kind]("text"))).toBe(200);
    }
    expect((await operator.call(gateways[1], "/operator/invitations"))["invitations"]).toEqual([]);
  }, 60_000);

  test("a password that is reset at one ends sessions at the other and opens it there", async () => {
    const boss = await person("boss-of-passwords", "--operator");
    const { id, email } = await person("forgot");
    const operator = await browser(gateways[0], boss.email);
    const old = await browser(gateways[1], email);
    expect((await old.call(gateways[1], "/overview")).status).toBe(200);
    const { path } = await operator.call(gateways[0], `/operator/accounts/${id}/password-link`, {});
    const token = (path as string).split(/[/#=]/).at(-1)!;
    const anew = await browser(gateways[1], "nobody@example.com");
    const next = "another long one 2";
    expect((await anew.call(gateways[1], "/link/use", { token, password: next })).status).toBe(200);
    for (const gateway of gateways) {
      expect((await old.call(gateway, "/overview")).status).toBe(401);
      expect((await browser(gateway, email)).status).toBe(401);
      expect((await browser(gateway, email, next)).status).toBe(200);
    }
    await operator.call(gateways[1], `/operator/accounts/${id}/password`, { password });
    expect((await browser(gateways[0], email, next)).status).toBe(401);
    expect((await browser(gateways[0], email)).status).toBe(200);
  }, 60_000);

  test("a day's limit of end users and of keys holds over both", async () => {
    const { email } = await person("people");
    const usage = { prompt_tokens: 20, completion_tokens: 280, total_tokens: 300 };
    await node.define("exact", once(text("much"), finish("stop", usage)));
    const people = await gateways[1].makeKey(email, {
      name: "people",
      forwards_users: true,
      limit_end_user_day: 2_000,
    });
    const ask = async (gateway: GatewayProcess, user: string) => {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${people.api_key}` },
        body: JSON.stringify({
          model: "core-3",
          max_tokens: 300,
          user,
          messages: [{ role: "user", content: "[[exact]]" }],
        }),
      });
      await reply.text();
      return reply.status;
    };
    const statuses = await Promise.all(
      Array.from({ length: 40 }, (_, index) => ask(gateways[index % 2]!, index % 4 < 2 ? "ann" : "bob")),
    );
    const rows = (await gateways[0].usage(email)).filter(({ key }) => key === "people");
    expect(rows.length).toBe(statuses.filter((status) => status === 200).length);
    for (const user of ["ann", "bob"]) {
      const used = rows.filter(({ end_user: of }) => of === user).reduce((sum, { billed_tokens: of }) => sum + of, 0);
      expect(used).toBeGreaterThan(1_000);
      expect(used).toBeLessThanOrEqual(2_000);
      for (const gateway of gateways) if (used === 2_000) expect(await ask(gateway, user)).toBe(429);
    }
    expect((await gateways[1].show(email)).reserved).toBe(0);
  }, 60_000);

  test("a reload of one is that one's, which gateways and doctor say, until the other reloads", async () => {
    const digests = async () =>
      new Set(
        (await gateways[0].cli<{ alive: boolean; config_digest: string }[]>("gateways"))
          .filter(({ alive }) => alive)
          .map(({ config_digest: digest }) => digest),
      ).size;
    expect(await digests()).toBe(1);
    const plan =
      '[[plans]]\nid = "free"\nname = "Free"\ntokens_per_day = 77000\ncoder_calls = 1\nsearches_per_day = 1\n';
    await gateways[0].configure(config(0, plan));
    await gateways[0].reload();
    await eventually("it is told", async () => (await digests()) === 2);
    await gateways[1].configure(config(1, plan));
    await gateways[1].reload();
    await eventually("both are alike", async () => (await digests()) === 1);
    for (const [index, gateway] of gateways.entries()) {
      await gateway.configure(config(index));
      await gateway.reload();
    }
    expect(await digests()).toBe(1);
  }, 60_000);

  test("a WebSocket whose gateway is killed in a turn goes on at the other by the stored response, charged once", async () => {
    const python = process.env["TOLLGATE_PYTHON"] ?? join(clientsFolder, ".venv/bin/python");
    const { email, api_key } = await person("lost-gateway");
    const { spendable } = await gateways[0].show(email);
    const urls = gateways.map(({ url }) => `${url}/v1`);
    const client = Bun.spawn([python, join(clientsFolder, "sockets/reconnect.py"), ...urls], {
      env: { ...process.env, KEY: api_key },
      stdout: "pipe",
      stderr: "inherit",
    });
    let said = "";
    for await (const bytes of client.stdout) {
      said += Buffer.from(bytes).toString();
      if (said === "running\n") await gateways[0].kill("SIGKILL");
    }
    expect(await client.exited).toBe(0);
    expect(JSON.parse(said.replace("running\n", ""))).toEqual({
      lost: "ConnectionClosedError",
      said: ["Hi there!", "Hi there!", "Hi there!"],
      follows: true,
    });
    const last = (await node.requests("text#lost-gateway")).at(-1)!.body!["messages"] as Json[];
    expect(last.map(({ content }) => content).slice(1)).toEqual(["Hi there!", "and?", "Hi there!", "once more"]);
    await eventually("the node was left", async () => (await node.open()) === 0);
    await eventually("the lost turn holds nothing", async () => (await gateways[1].show(email)).reserved === 0);
    await gateways[0].restart();
    const [here, there] = await Promise.all(gateways.map((gateway) => gateway.usage(email)));
    expect(here).toEqual(there!);
    expect(here!).toHaveLength(3);
    expect(new Set(here!.map(({ request_id: id }) => id)).size).toBe(3);
    const billed = here!.reduce((sum, { billed_tokens: of }) => sum + of, 0);
    for (const gateway of gateways) expect((await gateway.show(email)).spendable).toBe(spendable - billed);
  }, 120_000);

  test(
    "ten rounds of restarts under load lose nothing, charge nothing twice, and end no browser's session",
    async () => {
      const people = await Promise.all(Array.from({ length: 9 }, (_, index) => person(`rolling-${index}`)));
      const [{ email }] = people as [Account];
      const boss = await person("boss-of-rolling", "--operator");
      const mine = await browser(gateways[0], email);
      const operator = await browser(gateways[1], boss.email);
      let isOver = false;
      const outcomes: string[] = [];
      const load = people.map(async ({ api_key }, worker) => {
        // As behind a balancer: the next try goes elsewhere.
        let turn = worker;
        const client = clients(api_key, () => gateways[(turn += 1) % 2]!.url, 6);
        while (!isOver) {
          const kind = all[worker % 3]!;
          const said = await client[kind]("slow").then(
            (words) => (words.trim().split(" ").length === 30 ? "whole" : `cut: ${words}`),
            (error: Error) => `${error} ${String(error.cause)}`,
          );
          outcomes.push(said);
        }
      });
      const sessions: number[] = [];
      for (let round = 0; round < 10; round += 1) {
        const index = round % 2;
        const other = gateways[1 - index]!;
        const ended = gateways[index]!.kill("SIGTERM");
        sessions.push(
          (await mine.call(other, "/overview")).status,
          (await operator.call(other, "/operator/totals")).status,
        );
        expect(await ended).toBe(0);
        await gateways[index]!.restart();
        sessions.push((await mine.call(gateways[index]!, "/overview")).status);
        await Bun.sleep(300);
      }
      isOver = true;
      await Promise.all(load);
      console.log(`${outcomes.length} requests`, Map.groupBy(outcomes, (said) => said.slice(0, 60)).keys());
      expect(outcomes.filter((said) => said !== "whole")).toEqual([]);
      expect(sessions.filter((status) => status !== 200)).toEqual([]);
      const [here, there] = await Promise.all(
        gateways.map(async (gateway) => (await Promise.all(people.map((each) => gateway.usage(each.email)))).flat()),
      );
      expect(here).toEqual(there!);
      expect(here!.length).toBe(outcomes.length);
      expect(new Set(here!.map(({ request_id: id }) => id)).size).toBe(outcomes.length);
      for (const each of people) expect((await gateways[0].show(each.email)).reserved).toBe(0);
      const pages = await Promise.all(gateways.map((gateway) => mine.call(gateway, "/usage/summary")));
      expect(pages[0]).toEqual(pages[1]!);
      const lists = await Promise.all(gateways.map((gateway) => mine.call(gateway, "/usage?limit=100")));
      expect(lists[0]).toEqual(lists[1]!);
      const client = new Bun.SQL({ url: postgres.url("two"), max: 1 });
      expect(await client.unsafe("SELECT * FROM holds")).toHaveLength(0);
      await client.close();
    },
    timeLimit,
  );
});
