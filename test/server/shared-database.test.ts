// The running program on a PostgreSQL that several gateways share: what it tells of itself there, and what it says while the
// database is away or newer than the program.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { gatewayConnectionsMax, responsesConnectionsMax, sideConnectionsMax } from "../../src/store/postgres/limits.ts";
import { temporaryFolder } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { noPostgres, somePort, TestPostgres } from "../fixtures/postgres.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 120_000;

/** What a reply says, whatever it is. */
const asked = async (url: string, init?: RequestInit) => {
  const reply = await fetch(url, init);
  return { status: reply.status, text: await reply.text() };
};
const metric = async ({ url }: GatewayProcess, name: string): Promise<number | null> => {
  const found = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec((await asked(`${url}/metrics`)).text);
  return found === null ? null : Number(found[1]);
};
const dialects = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }] },
  "/v1/messages": { messages: [{ role: "user", content: "Hello" }], max_tokens: 50 },
  "/v1/responses": { input: "Hello" },
};
const ask = (gateway: GatewayProcess, key: string, path: keyof typeof dialects, more: object = {}) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "core-3", ...dialects[path], ...more }),
  });

describe.skipIf(noPostgres)("a gateway on PostgreSQL", () => {
  const folder = temporaryFolder();
  let postgres: TestPostgres;
  let node: ScriptedNode;
  let gateways = 0;
  beforeAll(async () => {
    [postgres, node] = await Promise.all([TestPostgres.start(), ScriptedNode.start()]);
  }, timeLimit);
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  const start = (url: string, config = "", threads = 1) => {
    gateways += 1;
    return GatewayProcess.start({
      config: `${nodeTable(node, 8)}\n[ledger]\ngateway = "gateway-${gateways}"\n${config}`,
      env: { TOLLGATE_DATABASE_URL: url },
      dataFolder: join(folder.path, String(gateways)),
      threads,
    });
  };
  const tollgate = (url: string, ...words: string[]) =>
    runToEnd(
      [process.execPath, join(import.meta.dir, "../../src/main.ts"), ...words, "--data", join(folder.path, "none")],
      {
        cwd: folder.path,
        env: { ...process.env, NO_COLOR: "1", TOLLGATE_DATABASE_URL: url },
      },
    );

  test(
    "tells of its lane and its shares in metrics, and one with a data folder does not",
    async () => {
      const url = await postgres.database("told");
      await using gateway = await start(url);
      const account = await gateway.account();
      expect((await ask(gateway, account.api_key, "/v1/chat/completions")).status).toBe(200);
      const { text: told } = await asked(`${gateway.url}/metrics`);
      const names = [...told.matchAll(/^# TYPE (tollgate_(?:lane|node_share)_\w+)/gm)].map(([, name]) => name!);
      expect(names).toEqual([
        ...["batches", "operations", "conflicts", "unknown", "read_back", "gone"].map(laneMetric),
        ...["lost_commits", "void", "cut", "orphans", "lanes_given_up", "holds_given_back"].map(laneMetric),
        ...["tollgate_node_share_granted", "tollgate_node_share_target"],
      ]);
      const dashboard = await Bun.file(join(import.meta.dir, "../../data/grafana-dashboard.json")).text();
      const shown = new Set([...dashboard.matchAll(/tollgate_(?:lane|node_share)_[a-z_]+/g)].map(([name]) => name));
      expect([...shown].sort()).toEqual(names.toSorted());
      expect(await metric(gateway, "tollgate_lane_operations_total")).toBeGreaterThanOrEqual(2);
      expect(await metric(gateway, "tollgate_lane_batches_total")).toBeGreaterThanOrEqual(2);
      expect(await metric(gateway, "tollgate_journal_commit_duration_seconds_count")).toBeGreaterThanOrEqual(2);
      expect(told).toContain('tollgate_node_share_granted{node="scripted"} 8');
      expect(told).toContain('tollgate_node_share_target{node="scripted"} 8');
      await using client = new Bun.SQL({ url, max: 1 });
      const worked = async (): Promise<readonly { work: string }[]> => client.unsafe("SELECT work FROM served_work");
      const whose = new RegExp(`"account":${account.id},[^}]*"work":\\d+`);
      await eventually("other gateways can read for whom it worked", async () =>
        (await worked()).some(({ work }) => whose.test(work)),
      );
      const [seen] = await gateway.cli<{ gateway?: string }[]>("nodes");
      expect(seen!.gateway).toMatch(/^gateway-\d+$/);
      // Its folder is said to be what it is, and nobody times its disk.
      expect(gateway.output).toMatch(
        /listening on \S+, data in the database "told" on 127\.0\.0\.1:\d+ as tollgate, what is of this/,
      );
      expect(readdirSync(gateway.dataFolder).filter((name) => name.includes("flush"))).toEqual([]);

      await using alone = await GatewayProcess.start({
        config: nodeTable(node, 8),
        dataFolder: join(folder.path, "alone"),
      });
      const { text: toldAlone } = await asked(`${alone.url}/metrics`);
      expect(toldAlone).not.toMatch(/tollgate_lane_|tollgate_node_share_/);
    },
    timeLimit,
  );

  test(
    "opens as many connections as doctor counts and the guide says",
    async () => {
      const guide = await Bun.file(join(import.meta.dir, "../../src/docs/guide/cluster.md")).text();
      expect(guide).toContain(`A gateway opens at most ${gatewayConnectionsMax} connections`);
      const url = await postgres.database("connections");
      await using gateway = await start(url);
      const { api_key } = await gateway.account();
      const client = new Bun.SQL({ url, max: 2 });
      const operator = await client.reserve();
      const count = async () => {
        const rows = await client.unsafe(
          `SELECT count(*)::int AS open FROM pg_stat_activity
           WHERE datname = 'connections' AND backend_type = 'client backend'`,
        );
        return (rows[0].open as number) - 2; // this one and the operator's
      };
      await operator.unsafe("BEGIN");
      await operator.unsafe("LOCK TABLE audit_log, stored_responses IN ACCESS EXCLUSIVE MODE");
      // More of each kind than there are connections for it.
      const created = Array.from({ length: sideConnectionsMax + 1 }, () => gateway.account());
      const looked = Array.from({ length: responsesConnectionsMax + 1 }, (_, index) =>
        ask(gateway, api_key, "/v1/responses", { previous_response_id: `resp_${index}` }),
      );
      const ended = Promise.allSettled([...created, ...looked]);
      let most = 0;
      await eventually("all are open", async () => (most = await count()) >= gatewayConnectionsMax);
      expect(most).toBe(gatewayConnectionsMax);
      await operator.unsafe("ROLLBACK");
      await ended;
      expect(await count()).toBe(gatewayConnectionsMax); // those that are open stay
      void operator.release();
      await client.close();
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "refuses in each dialect's form while the database is away, and lets streams go on",
    async () => {
      await using own = await TestPostgres.start();
      await using gateway = await start(own.url());
      const account = await gateway.account();
      await node.define("long", once({ repeat: text("tick "), times: 40, everyMs: 50 }, finish("stop")));
      const stream = await ask(gateway, account.api_key, "/v1/chat/completions", {
        stream: true,
        messages: [{ role: "user", content: "[[long]]" }],
      });
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
      let streamed = (await reader.read()).value ?? "";
      await own.kill();
      await eventually("it is known", async () => (await asked(`${gateway.url}/readyz`)).status === 503);
      const before = streamed.length;
      const refused = await Promise.all(
        (Object.keys(dialects) as (keyof typeof dialects)[]).map(async (path) => {
          const reply = await ask(gateway, account.api_key, path);
          const body = (await reply.json()) as { error: object };
          return [path, reply.status, body.error];
        }),
      );
      const message = "Could not verify your quota right now. Please retry.";
      expect(refused).toEqual([
        ["/v1/chat/completions", 503, { message, type: "api_error", param: null, code: null }],
        ["/v1/messages", 503, { type: "api_error", message }],
        ["/v1/responses", 500, { message, type: "api_error", param: null, code: null }], // of a first-party model
      ]);
      // Nobody else is known, and nobody reads what is stored.
      expect((await ask(gateway, `sk-tg-${"a".repeat(43)}`, "/v1/responses")).status).toBe(503);
      const headers = { authorization: `Bearer ${account.api_key}` };
      expect((await asked(`${gateway.url}/v1/responses/resp_x`, { headers })).status).toBe(503);
      // Nobody waits for the database to be told so, or what is wrong with a request.
      const referring = await ask(gateway, account.api_key, "/v1/responses", { previous_response_id: "resp_x" });
      expect([referring.status, await referring.text()]).toEqual([503, expect.stringContaining(message)]);
      const malformed = await ask(gateway, account.api_key, "/v1/chat/completions", { messages: 1 });
      expect(malformed.status).toBe(400);
      expect(await asked(`${gateway.url}/healthz`)).toEqual({ status: 200, text: "ok\n" });
      expect((await asked(`${gateway.url}/sign-in`)).status).toBe(200);
      expect((await asked(`${gateway.url}/metrics`)).status).toBe(200);
      while ((streamed.match(/tick /g) ?? []).length < 40) streamed += (await reader.read()).value;
      expect(streamed.length).toBeGreaterThan(before);
      expect(streamed).not.toContain("[DONE]");
      await own.goOn();
      for (let read = await reader.read(); !read.done; read = await reader.read()) streamed += read.value;
      expect(streamed).toContain("[DONE]");
      expect((await gateway.usage(account.email)).length).toBe(1);
      await eventually("it takes requests", async () => (await asked(`${gateway.url}/readyz`)).status === 200);
    },
    timeLimit,
  );

  test(
    "serves all others while somebody keeps an account locked, and names who",
    async () => {
      const url = await postgres.database("locked");
      await using gateway = await start(url);
      const [victim, other] = [await gateway.account(), await gateway.account()];
      const client = new Bun.SQL({ url, max: 1 });
      const operator = await client.reserve();
      await operator.unsafe("BEGIN");
      await operator.unsafe("SET LOCAL application_name = 'psql'");
      await operator.unsafe(`SELECT 1 FROM accounts WHERE id = ${victim.id} FOR UPDATE`);
      const waiting = ask(gateway, victim.api_key, "/v1/messages");
      const who = new RegExp(
        `^\\{"ready":true,"waits":\\["account ${victim.id} has been locked in the database for \\d+ s by psql \\(process \\d+, in`,
      );
      await eventually("it is named", async () => who.test((await asked(`${gateway.url}/readyz`)).text));
      expect((await asked(`${gateway.url}/readyz`)).status).toBe(200);
      const metrics = (await asked(`${gateway.url}/metrics`)).text;
      expect(metrics).toMatch(
        new RegExp(`^tollgate_lane_locked_seconds\\{account="${victim.id}",process="\\d+",application="psql"\\} `, "m"),
      );
      for (const path of Object.keys(dialects) as (keyof typeof dialects)[]) {
        expect((await ask(gateway, other.api_key, path)).status).toBe(200);
      }
      await operator.unsafe("ROLLBACK");
      expect((await waiting).status).toBe(200);
      await eventually(
        "nothing is named",
        async () => (await asked(`${gateway.url}/readyz`)).text === '{"ready":true}',
      );
      void operator.release();
      await client.close();
    },
    timeLimit,
  );

  test(
    "is not ready before its start is over, which goes on when the database answers again",
    async () => {
      const url = await postgres.database("hiccup");
      await (await start(url))[Symbol.asyncDispose](); // the tables are there
      const client = new Bun.SQL({ url, max: 2 });
      const operator = await client.reserve();
      await operator.unsafe("BEGIN");
      await operator.unsafe("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE");
      const starting = start(url);
      const socket = join(folder.path, String(gateways), "tollgate.sock");
      const health = () =>
        fetch("http://tollgate/state", { unix: socket, method: "POST", body: "{}" }).then(
          (reply) => reply.text(),
          () => "",
        );
      const tries = new Set<string>();
      await eventually("its start asks again", async () => {
        const rows = await client.unsafe(
          `SELECT pid || ' ' || query_start AS try FROM pg_stat_activity
           WHERE datname = 'hiccup' AND wait_event_type = 'Lock'`,
        );
        for (const row of rows) tries.add(row.try);
        return tries.size > 3; // each of its transactions waits twice at most
      });
      expect(await health()).toContain('"unready":"starting"');
      await operator.unsafe("ROLLBACK");
      void operator.release();
      await using gateway = await starting;
      expect(gateway.output).toContain("the start waits for the database");
      expect(await asked(`${gateway.url}/readyz`)).toEqual({ status: 200, text: '{"ready":true}' });
      await client.close();
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "is not ready when nothing was committed for 5 s, whatever is in the way",
    async () => {
      const url = await postgres.database("still");
      await using gateway = await start(url);
      for (let look = 0; look < 14; look += 1) {
        expect(await asked(`${gateway.url}/readyz`)).toEqual({ status: 200, text: '{"ready":true}' }); // it has nothing to do
        await Bun.sleep(500);
      }
      const client = new Bun.SQL({ url, max: 1 });
      const other = await client.reserve();
      await other.unsafe("BEGIN");
      await other.unsafe("LOCK TABLE lanes IN ACCESS EXCLUSIVE MODE");
      const { text: reason } = await eventually("it is told", async () => {
        const reply = await asked(`${gateway.url}/readyz`);
        return reply.text.includes("no batch was committed for") ? reply : null;
      });
      expect(reason).toMatch(/^\{"ready":false,"reason":"no batch was committed for [5-9] s/);
      await other.unsafe("ROLLBACK");
      void other.release();
      await client.close();
      await eventually("it is ready again", async () => (await asked(`${gateway.url}/readyz`)).status === 200);
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "is not ready, and takes no new requests, when a newer program has changed the tables",
    async () => {
      const url = await postgres.database("newer");
      await using gateway = await start(url);
      const account = await gateway.account();
      const client = new Bun.SQL({ url, max: 1 });
      await client.unsafe("UPDATE ledger_meta SET schema = 99, oldest_program = 98");
      const { text: reason } = await eventually("it is told", async () => {
        const reply = await asked(`${gateway.url}/readyz`);
        return reply.status === 503 ? reply : null;
      });
      expect(JSON.parse(reason)).toEqual({
        ready: false,
        reason:
          "a newer Tollgate has made the tables of this database (version 99), and programs before version 98 of them may not write: update this one",
      });
      expect((await ask(gateway, account.api_key, "/v1/chat/completions")).status).toBe(503);
      const made = await gateway.account().catch((thrown: unknown) => thrown);
      expect(String(made)).toContain("may not write: update this one");
      const doctor = await tollgate(url, "doctor", "--json");
      expect(doctor.stdout).toContain("(version 99), and programs before version 98");
      await client.unsafe("UPDATE ledger_meta SET schema = 1, oldest_program = 1");
      await client.close();
      await eventually("it is ready again", async () => (await asked(`${gateway.url}/readyz`)).status === 200);
      expect((await ask(gateway, account.api_key, "/v1/chat/completions")).status).toBe(200);
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "shows operators the sums of all gateways, and reads once for all open pages",
    async () => {
      const url = await postgres.database("summed");
      await using first = await start(url);
      await using second = await start(url);
      const account = await first.account();
      const email = "boss@x";
      await first.cli("accounts", "create", email, "--operator", "--password", "long enough 1");
      const headers = { origin: second.url, "content-type": "application/json" };
      const entered = await fetch(`${second.url}/console/api/sign-in`, {
        method: "POST",
        headers,
        body: JSON.stringify({ email, password: "long enough 1" }),
      });
      expect(entered.status).toBe(200);
      const cookie = entered.headers
        .getSetCookie()
        .map((each) => each.split(";")[0])
        .join("; ");
      const totals = async () =>
        (await (await fetch(`${second.url}/console/api/operator/totals`, { headers: { cookie } })).json()) as object;
      expect(await totals()).toMatchObject({ requests_in_flight: 0, reserved_tokens: 0 });
      await node.define("held", once({ repeat: text("tick "), times: 60, everyMs: 50 }, finish("stop")));
      const body = { stream: true, max_tokens: 500, messages: [{ role: "user", content: "[[held]]" }] };
      const stream = await ask(first, account.api_key, "/v1/chat/completions", body);
      await eventually("the other gateway shows it", async () => {
        const { requests_in_flight, reserved_tokens } = (await totals()) as Record<string, number>;
        return requests_in_flight === 1 && reserved_tokens! > 0;
      });
      const events = await fetch(`${second.url}/console/api/events`, { headers: { cookie } });
      const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
      let told = "";
      const until = async (what: RegExp) => {
        while (!what.test(told)) told += (await reader.read()).value;
      };
      await until(/event: operator\ndata: .*"requests_in_flight":1,.*"gateways":2/);
      await stream.text();
      await until(/event: operator\ndata: .*"requests_in_flight":0,"reserved_tokens":0,"gateways":2/);
      // What is granted by another gateway is on the page at once.
      await first.cli("accounts", "credit", email, "777");
      await until(/event: account\ndata: .*"credit":777/);
      await reader.cancel();
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "tells once in all that a balance is low, whichever gateway charged it",
    async () => {
      const told: { type: string; data: { email: string } }[] = [];
      using hook = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: async (request) => {
          told.push((await request.json()) as (typeof told)[number]);
          return new Response("");
        },
      });
      const webhook = `[[webhooks]]\nname = "ops"\nurl = "http://127.0.0.1:${hook.port}"\n[notices]\nlow_balance_tokens = 99000000\n`;
      const url = await postgres.database("low");
      await using first = await start(url, webhook);
      await using second = await start(url, webhook);
      const usage = { prompt_tokens: 60_000, completion_tokens: 10, total_tokens: 60_010 }; // more than a day's allowance
      await node.define("dear", once(text("much"), finish("stop", usage)));
      const dear = { messages: [{ role: "user", content: "[[dear]]" }] };
      const account = await first.account(99_000_001, "free");
      const charge = async (by: GatewayProcess) =>
        expect((await ask(by, account.api_key, "/v1/chat/completions", dear)).status).toBe(200);
      const isBelow = async () => (await first.show(account.email)).credit < 99_000_000;
      for (let turn = 0; !(await isBelow()); turn += 1) await charge(turn % 2 === 0 ? first : second);
      await eventually("it is told", async () => told.length > 0);
      for (const by of [first, second, first, second]) await charge(by);
      expect(told.map(({ type, data }) => [type, data.email])).toEqual([["balance.low", account.email]]);
    },
    timeLimit,
  );

  for (const threads of [1, 2])
    test.skipIf(!longForm)(
      `ends no reply before its response is stored, with ${threads} threads`,
      async () => {
        const url = await postgres.database(`stored_${threads}`);
        await using first = await start(url, "", threads);
        await using second = await start(url);
        const account = await first.account();
        const client = new Bun.SQL({ url, max: 1 });
        const other = await client.reserve();
        await other.unsafe("BEGIN");
        await other.unsafe("LOCK TABLE stored_responses IN EXCLUSIVE MODE");
        let isOver = false;
        const asking = ask(first, account.api_key, "/v1/responses").then(async (reply) => {
          const body = (await reply.json()) as { id: string };
          isOver = true;
          return body;
        });
        const waits =
          "SELECT count(*)::int AS waits FROM pg_locks WHERE NOT granted AND relation = 'stored_responses'::regclass";
        await eventually(
          "it is to be stored",
          async () => (await postgres.ask(waits, `stored_${threads}`))[0]!["waits"] === 1,
        );
        await eventually("it is charged", async () => (await second.usage(account.email)).length === 1);
        for (let look = 0; look < 20; look += 1) await asked(`${first.url}/healthz`); // longer than it takes to its client
        expect(isOver).toBe(false);
        await other.unsafe("ROLLBACK");
        const { id } = await asking;
        const next = await ask(second, account.api_key, "/v1/responses", { previous_response_id: id });
        expect(next.status).toBe(200);
        void other.release();
        await client.close();
      },
      timeLimit,
    );

  test.skipIf(!longForm)(
    "leaves a folder that serves no books of its own, and takes none that has some",
    async () => {
      const url = (await postgres.database("marked")).replace("tollgate@", "tollgate:pass-word@");
      const gateway = await start(url);
      const { dataFolder } = gateway;
      expect(gateway.output).toMatch(/, data in the database "marked" on 127\.0\.0\.1:\d+ as tollgate, /);
      expect(gateway.output).not.toContain("pass-word");
      await gateway.kill("SIGTERM");
      const { TOLLGATE_DATABASE_URL: _, ...without } = process.env;
      const main = join(import.meta.dir, "../../src/main.ts");
      const run = (variables: object, ...words: string[]) =>
        runToEnd([process.execPath, main, ...words, "--data", dataFolder], {
          cwd: folder.path,
          env: { ...without, NO_COLOR: "1", ...variables },
        });
      const files = readdirSync(dataFolder);
      for (const words of [["serve", "--port", "0"], ["accounts", "create", "a@x"], ["doctor"]]) {
        const { code, stdout, stderr } = await run({}, ...words);
        expect([words, code]).toEqual([words, 1]);
        expect(stdout + stderr).toMatch(
          /served from the database "marked" on \S+, which has the accounts and keys: name it in \[ledger\] url or TOLLGATE_DATABASE_URL/,
        );
      }
      expect(readdirSync(dataFolder)).toEqual(files);
      // The advice for who wants none of them anymore, and from then on the folder's own books are in the way.
      const { stderr } = await run({}, "serve", "--port", "0");
      await Bun.$`sh -c ${/and `(cd [^`]+)`/.exec(stderr)![1]!}`;
      expect((await run({}, "accounts", "create", "a@x")).code).toBe(0);
      const refused = await run({ TOLLGATE_DATABASE_URL: url }, "serve", "--port", "0");
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringMatching(
          /has books of its own, which the database "marked" on .* does not have: move them there with/,
        ),
      ]);
      const moved = await run({ TOLLGATE_DATABASE_URL: await postgres.database("marked_too") }, "move", "--to", "env");
      expect([moved.code, moved.stdout]).toEqual([0, expect.stringContaining("1 account, ")]);
      expect((await run({}, "move", "--to", "env")).stderr).toContain("TOLLGATE_DATABASE_URL is not set");
      const checked = await run({ TOLLGATE_DATABASE_URL: url }, "check");
      expect(checked.stdout).toMatch(/^ledger +in the database "marked" on \S+ as tollgate$/m);
      await using again = await GatewayProcess.start({
        config: nodeTable(node, 8),
        env: { TOLLGATE_DATABASE_URL: postgres.url("marked_too") },
        dataFolder,
      });
      expect((await again.show("a@x")).credit).toBe(0);
    },
    timeLimit,
  );

  test.skipIf(!longForm)(
    "tells once in all that a key's budget is used up, whichever gateway charged or refused it",
    async () => {
      const told: { type: string; text: string; data: { key_name: string; period: string; used_tokens: number } }[] =
        [];
      using hook = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: async (request) => {
          told.push((await request.json()) as (typeof told)[number]);
          return new Response("");
        },
      });
      const webhook = `[[webhooks]]\nname = "ops"\nurl = "http://127.0.0.1:${hook.port}"\nevents = ["key.budget_used"]\n`;
      const url = await postgres.database("budgets");
      await using first = await start(url, webhook);
      await using second = await start(url, webhook);
      const usage = { prompt_tokens: 60_000, completion_tokens: 10, total_tokens: 60_010 };
      await node.define("dear", once(text("much"), finish("stop", usage)));
      const { email } = await first.account();
      const keys = await Promise.all(
        ["some", "other"].map((name) =>
          first.makeKey(email, { name, limit_day: 100_000 }).then(({ api_key }) => api_key),
        ),
      );
      const dear = { messages: [{ role: "user", content: "[[dear]]" }] };
      const charge = async (by: GatewayProcess, key: string) =>
        (await ask(by, key, "/v1/chat/completions", dear)).status;
      // At once on both: each finds it used up.
      for (const key of keys) {
        while ((await charge(first, key)) === 200);
        await Promise.all([first, second, first, second].map((by) => charge(by, key)));
      }
      await eventually("both are told", async () => told.length >= 2);
      await first.kill("SIGTERM");
      await first.restart();
      for (const key of keys) {
        for (const by of [first, second]) expect(await charge(by, key)).toBe(429);
      }
      await second.kill("SIGTERM"); // what it would tell is on its way by then
      expect(told.map(({ type, data }) => [type, data.key_name, data.period])).toEqual([
        ["key.budget_used", "some", "day"],
        ["key.budget_used", "other", "day"],
      ]);
      expect(told[0]!.text).toMatch(/^Tollgate at \S+: The key "some" of .* has used up its budget of the day: /);
    },
    timeLimit,
  );

  test(
    "is looked at by doctor and gateways without making tables",
    async () => {
      const url = await postgres.database("looked_at");
      const client = new Bun.SQL({ url, max: 1 });
      const tables = async () =>
        (await client.unsafe("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")).length;
      const [doctor, gatewaysTold, asJson] = await Promise.all([
        tollgate(url, "doctor"),
        tollgate(url, "gateways"),
        tollgate(url, "gateways", "--json"),
      ]);
      expect(doctor.stdout).toMatch(/ok +database +it is empty: the first gateway makes the tables/);
      expect([gatewaysTold.code, gatewaysTold.stdout]).toEqual([
        0,
        "The database is empty: no gateway has made its tables yet.\n",
      ]);
      expect([asJson.code, asJson.stdout]).toEqual([0, "[]\n"]);
      expect(await tables()).toBe(0);
      await client.unsafe("CREATE TABLE accounts (id int)");
      const foreign = await tollgate(url, "doctor");
      expect(foreign.stdout).toMatch(/PROBLEM +database +it has a table "accounts" of another program/);
      expect([foreign.code, await tables()]).toEqual([1, 1]);
      await client.close();
    },
    timeLimit,
  );

  test(
    "is told in a sentence that nobody answers",
    async () => {
      const { code, stdout } = await tollgate(`postgres://tollgate@127.0.0.1:${somePort()}/none`, "doctor");
      expect([code, stdout]).toEqual([
        1,
        expect.stringMatching(/PROBLEM +database +the database "none" on .* cannot be reached/),
      ]);
    },
    timeLimit,
  );
});

const laneMetric = (name: string): string => `tollgate_lane_${name}_total`;
