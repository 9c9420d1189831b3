// Teams under attack: 60 requests at once at each of three levels (the team's balance, a member's cap over two keys, a key's
// own limit), on one thread, on two and over two gateways on PostgreSQL; and somebody who is removed in the middle of a
// stream and of a WebSocket.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

setDefaultTimeout(180_000);

const pool = 30_000;
const plans = `[[plans]]
id = "free"
tokens_per_day = 1000
[[plans]]
id = "pool"
tokens_per_day = ${pool}
requests_per_minute = 100000
`;
const model = "core-3";
const usage = (input: number, output: number) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
/** What an answer of "hundred" costs. */
const cost = 67;
/** What a request holds: as long an answer as it may be. */
const held = 1_000;
/** What is used in the end, where requests come until none is admitted: they cost less than they hold. */
const usedOf = (limit: number): number => cost * Math.ceil((limit - held + 1) / cost);

type Team = Readonly<{ id: number; name: string }>;
type Member = Readonly<{ email: string; used_day: number; used_month: number; limit_day: number | null }>;
type Key = Readonly<{ id: number; api_key: string }>;
type World = { node: ScriptedNode; gateways: readonly GatewayProcess[]; end(): Promise<void> };

const worlds: readonly (readonly [name: string, skips: boolean, open: () => Promise<World>])[] = [
  ["on one thread", false, () => inFolder(1)],
  ["on two threads", false, () => inFolder(2)],
  ["over two gateways", noPostgres, onPostgres],
];

async function inFolder(threads: number): Promise<World> {
  const node = await ScriptedNode.start();
  const gateway = await GatewayProcess.start({ config: `${nodeTable(node, 64)}\n${plans}`, threads });
  return {
    node,
    gateways: [gateway],
    async end() {
      await gateway[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}

async function onPostgres(): Promise<World> {
  const folder = temporaryFolder();
  const [postgres, node] = await Promise.all([TestPostgres.start(), ScriptedNode.start()]);
  const url = await postgres.database("teams");
  const gateways: GatewayProcess[] = [];
  for (const name of ["g0", "g1"]) {
    const config = `${nodeTable(node, 64)}\n${plans}\n[ledger]\ngateway = "${name}"\n`;
    const env = { TOLLGATE_DATABASE_URL: url };
    gateways.push(await GatewayProcess.start({ config, env, dataFolder: join(folder.path, name) }));
  }
  return {
    node,
    gateways,
    async end() {
      for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

for (const [name, skips, open] of worlds) {
  describe.skipIf(skips)(`a team ${name}`, () => {
    let world: World;
    let turn = 0;
    let people = 0;
    /** Through the socket on which the server answers commands: a process for each takes 0.3 s. */
    async function command<Result>(verb: string, input: object): Promise<Result> {
      const unix = join(world.gateways[0]!.dataFolder, "tollgate.sock");
      const options = { unix, method: "POST", body: JSON.stringify(input) };
      const reply = await fetch(`http://tollgate/${encodeURIComponent(verb)}`, options);
      const { result, error } = JSON.parse(await reply.text()) as { result: Result; error?: string };
      expect(error).toBeUndefined();
      return result;
    }
    const team = () => command<Team>("teams create", { name: `team ${++people}`, plan: "pool" });
    async function memberOf({ name: of }: Team, terms: object = {}): Promise<string> {
      const email = `member-${++people}@example.com`;
      await command("accounts create", { email });
      await command("teams members add", { team: of, email, ...terms });
      return email;
    }
    const keyOf = (email: string, of: object = {}) =>
      command<Key>("keys create", { email, name: `key ${++people}`, ...of });

    /** Requests go to the gateways by turns. */
    const send = (key: string, marker = "hundred", more: object = {}) =>
      fetch(`${world.gateways[turn++ % world.gateways.length]!.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({
          model,
          max_tokens: held,
          messages: [{ role: "user", content: `[[${marker}]]` }],
          ...more,
        }),
      });
    /** 60 at once, again and again until none is admitted; how many were, and the last error. */
    async function spend(...keys: readonly string[]): Promise<Readonly<{ admitted: number; error: string }>> {
      let admitted = 0;
      for (;;) {
        const replies = await Promise.all(Array.from({ length: 60 }, (_, at) => send(keys[at % keys.length]!)));
        const bodies = await Promise.all(replies.map((reply) => reply.json()));
        const done = replies.filter(({ status }) => status === 200).length;
        expect(replies.every(({ status }) => status === 200 || status === 429)).toBe(true);
        admitted += done;
        const refused = bodies.find((body) => "error" in (body as object)) as
          { error: { message: string } } | undefined;
        if (done === 0) return { admitted, error: refused!.error.message };
      }
    }
    const membersOf = ({ name: of }: Team) => command<readonly Member[]>("teams members list", { team: of });
    const leftOf = async ({ name: of }: Team) =>
      (await command<{ allowance: { left: number } }>("teams show", { team: of })).allowance.left;

    beforeAll(async () => {
      world = await open();
      await world.node.define("hundred", once(text("Hi"), finish("stop", usage(50, 50))));
      await world.node.define(
        "slow",
        once({ repeat: text("tick "), times: 40, everyMs: 25 }, finish("stop", usage(50, 50))),
      );
    });
    afterAll(() => world.end());

    test("spends no more than it has, by keys of members and of its own", async () => {
      const made = await team();
      const inTeam = { team: made.name };
      const [one, other] = [await memberOf(made), await memberOf(made)];
      const keys = [await keyOf(one, inTeam), await keyOf(other, inTeam), await keyOf(made.name)];
      const { admitted, error } = await spend(...keys.map(({ api_key }) => api_key));
      expect(error).toContain("Quota exceeded. Upgrade your plan");
      expect(admitted * cost).toBe(usedOf(pool));
      type Row = Readonly<{ account: string; team: string | null; member: string | null; billed: number }>;
      const rows = await command<readonly Row[]>("report", { by: ["team", "member", "account"] });
      const ofTeam = rows.filter(({ account }) => account === made.name);
      expect(ofTeam.map(({ team: of, member }) => [of, member]).sort()).toEqual(
        [one, other, null].map((member) => [made.name, member]).sort(),
      );
      expect(ofTeam.reduce((sum, { billed }) => sum + billed, 0)).toBe(usedOf(pool));
      const usage = await command<readonly { key: string }[]>("usage", { email: made.name, limit: 1_000 });
      const names = new Set(usage.map(({ key }) => key.split(": ")[0]));
      expect([one, other].every((member) => names.has(member))).toBe(true);
      const all = await command<readonly { name: string; members: number }[]>("teams list", {});
      expect(all.find((each) => each.name === made.name)).toMatchObject({ members: 2, disabled: false });
      expect(await leftOf(made)).toBe(pool - usedOf(pool));
      const members = await membersOf(made);
      expect(members.reduce((sum, { used_day }) => sum + used_day, 0)).toBeLessThan(usedOf(pool)); // the rest is nobody's
    });

    test("lets a member spend no more than the cap, by all keys together, and others go on", async () => {
      const made = await team();
      const inTeam = { team: made.name };
      const [capped, free] = [await memberOf(made, { limit_day: 2_000 }), await memberOf(made)];
      const keys = [await keyOf(capped, inTeam), await keyOf(capped, inTeam)];
      const { admitted, error } = await spend(...keys.map(({ api_key }) => api_key));
      expect(error).toContain("this member of the team");
      expect(admitted * cost).toBe(usedOf(2_000));
      expect((await membersOf(made))[0]).toMatchObject({ used_day: usedOf(2_000), used_month: usedOf(2_000) });
      const another = await keyOf(free, inTeam);
      expect((await send(another.api_key)).status).toBe(200);
      // A key that is made later has no cap of its own, nor has who comes again.
      await command("teams members remove", { ...inTeam, email: capped });
      await command("teams members add", { ...inTeam, email: capped, limit_day: 2_000 });
      expect((await send((await keyOf(capped, inTeam)).api_key)).status).toBe(429);
      await command("teams members update", { ...inTeam, email: capped, limit_day: 4_000 });
      const raised = await spend((await keyOf(capped, inTeam)).api_key);
      expect((admitted + raised.admitted) * cost).toBe(usedOf(4_000));
    });

    test("holds a key's own limit within them", async () => {
      const made = await team();
      const inTeam = { team: made.name };
      const email = await memberOf(made, { limit_month: 5_000 });
      const key = await keyOf(email, { ...inTeam, limit_day: 2_000 });
      const { admitted, error } = await spend(key.api_key);
      expect(error).toContain("the API key");
      expect(admitted * cost).toBe(usedOf(2_000));
      const rest = await spend((await keyOf(email, inTeam)).api_key);
      expect(rest.error).toContain("a month");
      expect((admitted + rest.admitted) * cost).toBe(usedOf(5_000));
    });

    test("forgets nothing of what a member used when a gateway is killed", async () => {
      const made = await team();
      const email = await memberOf(made, { limit_day: 3_000 });
      const key = await keyOf(email, { team: made.name });
      const cutOff = Array.from({ length: 20 }, () => send(key.api_key).catch(() => null));
      await Promise.race(cutOff);
      for (const gateway of world.gateways) await gateway.kill("SIGKILL");
      await Promise.all(cutOff);
      for (const gateway of world.gateways) await gateway.restart();
      await eventually(
        "what the killed gateway held is given back",
        async () => {
          await spend(key.api_key);
          return (await membersOf(made))[0]!.used_day === usedOf(3_000);
        },
        60_000,
      );
    });

    test("takes keys, streams and sockets from who is removed, after the answer that runs", async () => {
      const made = await team();
      const inTeam = { team: made.name };
      const email = await memberOf(made);
      const key = await keyOf(email, inTeam);
      const stream = await send(key.api_key, "slow", { stream: true });
      const { url } = world.gateways.at(-1)!;
      const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, {
        headers: { authorization: `Bearer ${key.api_key}` },
      } as unknown as string[]);
      const events: string[] = [];
      const closed = new Promise<number>((resolve) => socket.addEventListener("close", ({ code }) => resolve(code)));
      socket.addEventListener("message", ({ data }) => events.push(String(data)));
      await new Promise((resolve) => socket.addEventListener("open", resolve));
      const ask = { type: "response.create", model, input: "[[slow]]", max_output_tokens: held };
      socket.send(JSON.stringify(ask));
      await eventually("it speaks", async () => events.some((event) => event.includes("tick")));
      await command("teams members remove", { ...inTeam, email });
      for (let at = 0; at < 6; at++) expect((await send(key.api_key)).status).toBe(401);
      socket.send(JSON.stringify(ask));
      expect(await stream.text()).toContain("[DONE]");
      expect(await closed).toBe(1008);
      expect(events.filter((event) => event.includes('"type":"response.completed"'))).toHaveLength(1);
      expect(await leftOf(made)).toBe(pool - 2 * cost);
    });
  });
}
