// tollgate simulate: a journal that real requests made, replayed while the server runs, on a stopped one's folder and in
// PostgreSQL; what is wrong with its options; its picture.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { FirstTokens, Simulation } from "../../src/core/simulation.ts";
import { temporaryFolder } from "../commands/program.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { startDatabases } from "../fixtures/postgres.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

const timeLimit = 120_000;
setDefaultTimeout(timeLimit);

const plans = `
[[plans]]
id = "usual"
tokens_per_day = 1000000
[[plans]]
id = "pro"
tokens_per_day = 1000000
priority_max = "interactive"
`;
const each = 6;
const requests = 3 * each;

describe.each(["a data folder", "PostgreSQL"])("simulate in %s", (where) => {
  const inDatabase = where === "PostgreSQL";
  const node = new TellingNode();
  const opened = new AsyncDisposableStack();
  const folder = temporaryFolder();
  let gateway: GatewayProcess;
  let usual: Account;
  let pro: Account;

  beforeAll(async () => {
    const nodes = `[[nodes]]\nname = "gpu"\nurl = "${node.url}"\nslots = 8\nmodels = { teller = "teller" }\n`;
    const config = `${nodes}[[models]]\nid = "teller"\n${plans}`;
    const url = inDatabase ? await opened.use(await startDatabases()).database("simulate") : null;
    gateway = opened.use(
      await GatewayProcess.start({
        config,
        dataFolder: join(folder.path, "data"),
        ...(url === null ? {} : { env: { TOLLGATE_DATABASE_URL: url } }),
      }),
    );
    [usual, pro] = [await gateway.account(0, "usual"), await gateway.account(0, "pro")];
    const ask = async ({ api_key: key }: Account, priority?: string): Promise<void> => {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, ...(priority === undefined ? {} : { "x-priority": priority }) },
        body: JSON.stringify({ model: "teller", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }),
      });
      expect([reply.status, await reply.text()]).toEqual([200, expect.any(String)]);
    };
    for (let n = 0; n < each; n++) await Promise.all([ask(usual), ask(usual, "bulk"), ask(pro, "interactive")]);
  }, timeLimit);
  afterAll(async () => {
    await opened.disposeAsync();
    folder[Symbol.dispose]();
  }, timeLimit);

  const simulate = (...words: string[]): Promise<Simulation> =>
    gateway.cli("simulate", "--config", join(gateway.folder, "tollgate.toml"), ...words);

  const check = async (): Promise<void> => {
    const found = await simulate("--since", "1h", "--nodes", "+1", "--set", "plans.pro.weight=3", "--slots", "gpu=4");
    expect(found).toMatchObject({ requests, accounts: 2, changes: ["nodes +1", "plans.pro.weight=3", "slots gpu=4"] });
    expect(found.runs.map(({ configuration }) => configuration)).toEqual(["today", "changed", "one more node"]);
    const [today, changed] = found.runs;
    expect(today!.all).toMatchObject({ requests, refused: 0, mean_ms: expect.any(Number), p99_ms: expect.any(Number) });
    const counted = (list: readonly (FirstTokens & { class: string })[]) =>
      list.map((one) => [one.class, one.requests]);
    const byClass = [
      ["interactive", each],
      ["standard", each],
      ["bulk", each],
    ] as const;
    expect(counted(today!.classes)).toEqual(byClass.map((one) => [...one]));
    const named = today!.accounts.map(({ account, plan, weight }) => [account, plan, weight]);
    expect(named.toSorted()).toEqual(
      [
        [usual.email, "usual", 1],
        [pro.email, "pro", 1],
      ].toSorted(),
    );
    expect(changed!.accounts.find(({ plan }) => plan === "pro")!.weight).toBe(3);
    expect(today!.nodes).toMatchObject([{ node: "gpu", slots: 8, requests }]);
    expect(changed!.nodes).toMatchObject([
      { node: "gpu", slots: 4 },
      { node: "gpu +1", slots: 4 },
    ]);
    expect(found.calibration).toMatchObject({ requests, error: { mean_ms: expect.any(Number) } });
    expect(found.verdict).toMatch(/^(Neither|Another (GPU|rule))/);
  };

  test("replays what came while the server runs", check);

  test("says what is wrong with its options", async () => {
    for (const [words, problem] of [
      [["--since", "soon"], '--since must be such as 90m, 24h or 7d, or a time that has passed, is "soon"'],
      [["--nodes", "two"], '--nodes must be +N or -N, up to 64, is "two"'],
      [["--set", "plans.gold.weight=3"], '--set plans.gold.weight=3: no [[plans]] has the id "gold"'],
      [
        ["--set", "plans.pro.wieght=3"],
        "only weight, priority, priority_max, parallel matter for the line; did you mean weight?",
      ],
      [["--set", "plans.pro.weight=0"], "plans[1].weight must be a whole number from 1 to 100, is 0"],
      [["--set", "search.key=x"], "--set search.key"],
      [["--slots", "gpu=none"], '--slots must be N or NODE=N, from 1 to 100000, is "gpu=none"'],
      [["--slots", "other=2"], "--slots other=2: no node has that name; there are gpu"],
    ] as const) {
      const message = await simulate(...words).then(String, (error: Error) => error.message);
      expect(message).toContain(problem);
    }
  });

  test("draws a picture, and prints words for people", async () => {
    const file = join(folder.path, "waits.svg");
    await simulate("--svg", file);
    expect(await Bun.file(file).text()).toMatch(/^<svg [^]*First tokens of 18 requests[^]*<\/svg>\n$/);
  });

  test("replays a stopped server's folder, too", async () => {
    if (inDatabase) return; // its commands never ask a server
    await gateway.kill("SIGTERM");
    await check();
    await gateway.restart();
  });
});
