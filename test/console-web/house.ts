// A house with many people for the console's scripts: nodes, models, accounts and weeks of use, well or on a bad day.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { dayMs } from "../../src/core/units.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

export const password = "correct horse battery";
export const operator = "operator@example.com";
export const colleague = "mara.lindqvist@example.com";
/** Has used nearly all of its day's allowance. */
export const spender = "theo.okafor@example.com";

const given = ["ana", "bela", "chen", "dara", "emil", "fatima", "goran", "hana", "ines", "jonas"];
const family = ["abel", "brandt", "costa", "diaz", "eriksen", "farkas", "gupta", "huang", "ito", "jansen"];
const models = ["core-3", "core-3-pro", "open-05-3BIT-REAP", "core-2-pro", "core-3.1"];
/** No request to it is answered on a bad day. */
export const failing = "core-3.1";

/** What an engine answers; `failing`: it fails. */
function engine(failing: readonly string[]): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models")
        return Response.json({
          object: "list",
          data: models.map((id) => ({ id, object: "model", created: 1, owned_by: "house" })),
        });
      if (pathname !== "/v1/chat/completions") return new Response(null, { status: 404 });
      const { model, stream } = (await request.json()) as { model: string; stream?: boolean };
      if (failing.includes(model)) return Response.json({ error: { message: "CUDA out of memory" } }, { status: 500 });
      const usage = { prompt_tokens: 412, completion_tokens: 9, total_tokens: 421 };
      const content = "Hello. The first answer came from this house's own machine.";
      const shared = { id: "c", created: 1, model };
      if (stream !== true) {
        const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
        return Response.json({ ...shared, object: "chat.completion", choices, usage });
      }
      const chunk = (choices: readonly object[], more: object = {}): string =>
        `data: ${JSON.stringify({ ...shared, object: "chat.completion.chunk", choices, ...more })}\n\n`;
      const texts = content.split(/(?<= )/).map((text) => chunk([{ index: 0, delta: { content: text } }]));
      const end = chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) + chunk([], { usage });
      return new Response(`${texts.join("")}${end}data: [DONE]\n\n`, {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
}

type Wanted = Readonly<{ crowd?: number; rows?: number; badDay?: boolean; signUp?: boolean }>;

export class House implements AsyncDisposable {
  readonly gateway: GatewayProcess;
  /** A link that makes an account. */
  readonly invitation: string;
  readonly #engines: readonly Bun.Server<undefined>[];

  private constructor(gateway: GatewayProcess, invitation: string, engines: readonly Bun.Server<undefined>[]) {
    [this.gateway, this.invitation, this.#engines] = [gateway, invitation, engines];
  }

  static async open({ crowd = 60, rows = 4_000, badDay = false, signUp = true }: Wanted = {}): Promise<House> {
    const engines = [engine([]), engine(badDay ? [failing] : [])];
    const served = [[], [], []].map((_, at) => (at === 1 ? models : models.filter((id) => id !== failing)));
    const urls = [engines[0]!.url, engines[1]!.url, badDay ? "http://127.0.0.1:9/" : engines[0]!.url];
    const nodes = urls.map((url, at) => {
      const offered = served[at]!.map((id) => `"${id}" = "${id}"`).join(", ");
      return `[[nodes]]\nname = "gpu-${"abc"[at]}"\nurl = "${String(url)}v1"\nslots = 16\nmodels = { ${offered} }\n`;
    });
    const config = `${nodes.join("\n")}\n[console]\nsign_up = ${signUp}\n`;
    const gateway = await GatewayProcess.start({ config });
    const account = (email: string, ...more: string[]) =>
      gateway.cli("accounts", "create", email, "--password", password, ...more);
    await account(operator, "--operator");
    await account(colleague, "--plan", "pro", "--credit", "2500000");
    await account(spender, "--plan", "plus");
    await gateway.cli("teams", "create", "research", "--plan", "pro", "--credit", "5000000");
    await gateway.cli("teams", "members", "add", "research", colleague, "--role", "admin", "--limit-day", "200000");
    await gateway.cli("teams", "members", "add", "research", spender);
    const { api_key } = await gateway.cli<{ api_key: string }>("keys", "create", colleague, "--name", "laptop");
    await gateway.cli("keys", "create", "research", "--name", "nightly");
    const { link } = await gateway.cli<{ link: string }>("accounts", "invite", "--plan", "pro", "--credit", "1000000");
    await gateway.kill("SIGTERM");
    fill(join(gateway.dataFolder, "tollgate.db"), crowd, rows, badDay);
    await gateway.restart(badDay ? onSmallDisk(gateway.dataFolder) : []);
    const house = new House(gateway, new URL(link).hash, engines);
    for (let at = 0; at < 12; at++) await house.ask(api_key, models[at % models.length]!);
    return house;
  }

  async ask(key: string, model: string): Promise<number> {
    const reply = await fetch(`${this.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
    });
    await reply.text();
    return reply.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await Promise.all(this.#engines.map((each) => each.stop(true)));
  }
}

/** A program that gives the server a disk of its own with less free than an operator is warned at; it needs root. */
const onSmallDisk = (folder: string): readonly string[] => {
  const steps = `cp -a "${folder}" "${folder}.kept" && mount -t tmpfs -o size=700m disk "${folder}" && cp -a "${folder}.kept/." "${folder}"`;
  return ["unshare", "-m", "sh", "-c", `${steps} && exec "$@"`, "sh"];
};

/** Weeks of use, by SQL alone: requests would take minutes. The books add up. */
function fill(file: string, crowd: number, rows: number, badDay: boolean): void {
  const database = new Database(file);
  const today = Math.floor(Date.now() / dayMs);
  const now = Date.now();
  const insert = (table: string, columns: string, ...values: (string | number | null | Uint8Array)[]): void =>
    void database.query(`INSERT INTO ${table} (${columns}) VALUES (${values.map(() => "?").join()})`).run(...values);
  const idOf = (email: string): number =>
    database.query<{ id: number }, [string]>("SELECT id FROM accounts WHERE email = ?").get(email)!.id;
  const charge = (
    at: number,
    id: number,
    time: number,
    model: string,
    tokens: readonly [number, number, number],
  ): void => {
    const billed = Math.floor((2 * 390 * (tokens[0] + tokens[1] + tokens[2]) + 500) / 1_000);
    const columns = `billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh, input_cached,
      output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated, key_id, node, wait_ms,
      sent_ms, first_token_ms, duration_ms`;
    const key = `filled-${String(at).padStart(17, "0")}`;
    const money = ["charge", id, time, Math.floor(time / dayMs), billed, 0, "/v1/chat/completions", model] as const;
    const course = [`gpu-${"abc"[at % 3]}`, at % 400, at % 400, 90 + (at % 600), 700 + ((at * 131) % 9_000)] as const;
    insert("journal", columns, key, ...money, ...tokens, 0, 390, 390, 390, billed, 0, 1, ...course);
  };
  database.transaction(() => {
    for (let at = 0; at < crowd; at++) {
      const name = `${given[at % 10]}.${family[Math.floor(at / 10) % 10]}${at < 100 ? "" : Math.floor(at / 100) + 1}`;
      const [plan, created] = [["free", "plus", "standard", "pro"][at % 4]!, now - (400 - (at % 400)) * dayMs];
      const columns = "email, plan, credit, operator, key_hash, created_at, key_created_at, disabled_at";
      const hash = crypto.getRandomValues(new Uint8Array(32));
      const disabled = at % 29 === 7 ? now - dayMs : null;
      insert("accounts", columns, `${name}@example.com`, plan, 0, 0, hash, created, created, disabled);
    }
    const people = database
      .query<{ id: number }, [string]>("SELECT id FROM accounts WHERE team IS NULL AND operator = 0 AND email <> ?")
      .all(spender);
    for (let at = 0; at < rows; at++) {
      const day = today - Math.floor(((at * 7919) % 4_500) / 100);
      if ((day + 4) % 7 > 4 && at % 5 > 0) continue; // a weekend
      const id = at % 9 === 0 ? idOf(colleague) : people[(at * at + 3 * at) % people.length]!.id;
      const time = Math.min(now - 60_000, day * dayMs + (7 + (at % 11)) * 3_600_000 + ((at * 97) % 3_600) * 1_000);
      const tokens = [600 + ((at * 37) % 4_000), (at * 53) % 2_000, 40 + ((at * 29) % 700)] as const;
      charge(at, id, time, models[(at * at) % models.length]!, tokens);
    }
    if (badDay) charge(rows, idOf(spender), now - 90_000, "core-3", [100_000, 0, 0]);
    database.run("DELETE FROM quota_use WHERE quota = 'allowance'");
    database.run(`INSERT INTO quota_use (account_id, quota, period, used)
      SELECT account_id, 'allowance', period, sum(used) FROM journal WHERE kind = 'charge' GROUP BY account_id, period`);
  })();
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}
