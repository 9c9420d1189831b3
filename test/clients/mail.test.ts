// Mail as people get it, by a real mail server (aiosmtpd): invitations, forgotten passwords, limits, statements and what ends
// them; a mail server that refuses, hangs up or takes a mail without a word before a kill; and two gateways at once.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess, onPostgres } from "../fixtures/gateway-process.ts";
import { linesOf } from "../fixtures/lines.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { missing } from "../fixtures/optional.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

setDefaultTimeout(120_000);

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const hasServer = existsSync(python) && Bun.spawnSync([python, "-c", "import aiosmtpd"]).exitCode === 0;
const absent = missing("aiosmtpd", hasServer, "make test/clients/.venv with requirements.txt");
const tls = join(import.meta.dir, "../fixtures/tls");

type Got = Readonly<{
  to: readonly string[];
  from: string;
  headers: readonly (readonly [string, string])[];
  text: string;
  html: string;
  files: readonly (readonly [name: string, content: string])[];
}>;
const header = ({ headers }: Got, name: string): string | undefined =>
  headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];

class MailServer implements AsyncDisposable {
  readonly got: Got[] = [];
  readonly #folder = temporaryFolder();
  readonly #process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  port = 0;

  private constructor(isSecure: boolean) {
    this.answers("ok");
    const certificate = isSecure ? [join(tls, "localhost.cert.pem"), join(tls, "localhost.key.pem")] : [];
    const words = [python, join(import.meta.dir, "smtp_server.py"), join(this.#folder.path, "mode"), ...certificate];
    this.#process = Bun.spawn(words, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    void this.#read();
  }

  static async start(isSecure = false): Promise<MailServer> {
    const server = new MailServer(isSecure);
    await eventually("the mail server listens", async () => server.port > 0, 30_000);
    return server;
  }

  answers(mode: string): void {
    writeFileSync(join(this.#folder.path, "mode"), mode);
  }

  /** Those to an address, of that subject, once there are so many. */
  async mails(to: string, subject: RegExp, count = 1): Promise<readonly Got[]> {
    const fits = (mail: Got) => mail.to.includes(to) && subject.test(header(mail, "subject") ?? "");
    await eventually(`${count} mails ${subject} to ${to}`, async () => this.got.filter(fits).length >= count, 60_000);
    return this.got.filter(fits);
  }

  async #read(): Promise<void> {
    for await (const line of linesOf(this.#process.stdout)) {
      const said = JSON.parse(line) as Got & { port?: number };
      if (said.port !== undefined) this.port = said.port;
      else this.got.push(said);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
    this.#folder[Symbol.dispose]();
  }
}

/** A browser at a gateway. */
class Browser {
  #cookie = "";

  constructor(readonly gateway: GatewayProcess) {}

  async post(path: string, body: object): Promise<Readonly<{ status: number; json: any }>> {
    const { url } = this.gateway;
    const headers = { "content-type": "application/json", origin: url, cookie: this.#cookie };
    const reply = await fetch(`${url}/console/api${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const cookies = reply.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]!);
    if (cookies.length > 0) this.#cookie = cookies.join("; ");
    return { status: reply.status, json: await reply.json() };
  }

  async state(): Promise<any> {
    return (await fetch(`${this.gateway.url}/console/api/session`, { headers: { cookie: this.#cookie } })).json();
  }
}

const linkIn = ({ text: body }: Got): URL => new URL(/https?:\/\/\S+#\S+/.exec(body)![0]);
const tokenIn = (mail: Got): string => linkIn(mail).hash.slice(1);

const hundred = once(text("x"), finish("stop", { prompt_tokens: 50, completion_tokens: 50, total_tokens: 100 }));
const plans = `[[plans]]
id = "free"
tokens_per_day = 1000000
requests_per_minute = 100000
`;
const mailTable = (port: number, more = "tls = false") => `[mail]
smtp = "smtp://localhost:${port}"
from = "Tollgate <gate@example.com>"
${more}
`;

describe.skipIf(absent || onPostgres)("mail of one gateway", () => {
  let server: MailServer;
  let node: ScriptedNode;
  let gateway: GatewayProcess;
  const password = "long enough 1";

  beforeAll(async () => {
    [server, node] = await Promise.all([MailServer.start(true), ScriptedNode.start()]);
    const folder = temporaryFolder();
    mkdirSync(join(folder.path, "templates"));
    writeFileSync(join(folder.path, "templates/limits.en.html"), "<p>{{what}}: {{nobody}}</p>"); // it is not used
    writeFileSync(join(folder.path, "templates/password.en.txt"), "Subject: Key of {{account}}\n\nGo to {{link}}");
    const secure = `ca = "${join(tls, "localhost.cert.pem")}"\nuser = "tollgate"\npassword = "s3cret"\ntemplates = "${folder.path}/templates"`;
    const config = `${nodeTable(node, 64)}\n${plans}\n[console]\nsign_up = true\n${mailTable(server.port, secure)}`;
    gateway = await GatewayProcess.start({ config, threads: 1 });
    await node.define("hundred", hundred);
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await node?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const account = async (email: string, more: readonly string[] = []) => {
    await gateway.cli("accounts", "create", email, "--password", password, ...more);
    await gateway.cli("accounts", "address", email, email);
  };

  test("an invited person joins by the link of the mail, and is written to from then on", async () => {
    const made = await gateway.cli<{ mailed: boolean; link: string }>(
      "accounts",
      "invite",
      "--email",
      "Bob@Example.org",
    );
    expect(made.mailed).toBe(true);
    const [mail] = await server.mails("Bob@example.org", /invited/);
    expect([mail!.from, header(mail!, "from"), header(mail!, "list-unsubscribe")]).toEqual([
      "gate@example.com",
      "Tollgate <gate@example.com>",
      undefined,
    ]);
    expect(made.link).toContain(linkIn(mail!).hash);
    expect(mail!.html).not.toMatch(/<img|<script|https?:\/\/(?!127\.0\.0\.1)/);
    const bob = new Browser(gateway);
    expect((await bob.post("/link/use", { token: tokenIn(mail!), password })).status).toBe(200);
    expect((await bob.post("/mail/address", { address: null, password: "wrong password" })).status).toBe(401);
    await bob.post("/forgotten", { email: "bob@example.org" });
    await server.mails("Bob@example.org", /Key of/);
  });

  test("a forgotten password: one mail, one use, no word about who is there", async () => {
    await account("ann@example.org");
    const ann = new Browser(gateway);
    expect((await ann.post("/sign-in", { email: "ann@example.org", password })).status).toBe(200);
    const stranger = new Browser(gateway);
    const known = await stranger.post("/forgotten", { email: "ann@example.org" });
    expect(await stranger.post("/forgotten", { email: "nobody@example.org" })).toEqual(known);
    const asked = await Promise.all(
      Array.from({ length: 30 }, () => stranger.post("/forgotten", { email: "ann@example.org" })),
    );
    expect(asked.filter(({ status }) => status === 429).length).toBeGreaterThan(20);
    const mails = await server.mails("ann@example.org", /^Key of ann@example.org$/);
    expect(mails).toHaveLength(1);
    const token = tokenIn(mails[0]!);
    const rows = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
    expect(JSON.stringify(rows.query("SELECT * FROM mails").all())).not.toContain(token);
    rows.close();
    expect((await stranger.post("/link/use", { token, password: "another one 2" })).status).toBe(200);
    expect((await stranger.post("/link/use", { token, password: "another one 3" })).status).toBe(400);
    expect((await ann.state()).account).toBeNull(); // other sessions ended
  });

  test("an owner's address is confirmed by that owner alone, while nothing else was", async () => {
    await account("eve@example.org");
    const [eve, other] = [new Browser(gateway), new Browser(gateway)];
    await eve.post("/sign-in", { email: "eve@example.org", password });
    expect((await eve.post("/mail/address", { address: "a@b.c\r\nBcc: x@y.z", password })).status).toBe(400);
    expect((await eve.post("/mail/address", { address: '"x@evil.example y"@b.c', password })).status).toBe(400);
    expect((await eve.post("/mail/address", { address: "eve@new.example", password })).status).toBe(200);
    const [mail] = await server.mails("eve@new.example", /your e-mail address/);
    const token = tokenIn(mail!);
    await other.post("/sign-up", { email: "mallory@example.org", password });
    expect((await other.post("/mail/confirm", { token })).status).toBe(400);
    expect((await eve.post("/mail/confirm", { token: `${token.slice(0, -1)}_` })).status).toBe(400);
    expect((await eve.post("/mail/confirm", { token })).json).toEqual({ address: "eve@new.example" });
    await gateway.cli("accounts", "address", "eve@example.org", "eve@third.example");
    expect((await eve.post("/mail/confirm", { token })).status).toBe(400); // replayed, it takes nothing back
  });

  test("95 % of a budget is told once, in the person's language, and ends by one click", async () => {
    await account("rich@example.org");
    const rich = new Browser(gateway);
    await rich.post("/sign-in", { email: "rich@example.org", password });
    await rich.post("/language", { language: "de" });
    const { api_key } = await gateway.cli<{ api_key: string }>(
      ...["keys", "create", "rich@example.org", "--name", "<b>ci</b>", "--limit-day", "3000"],
    );
    const ask = () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${api_key}` },
        body: JSON.stringify({
          model: "core-3",
          max_tokens: 100,
          messages: [{ role: "user", content: "[[hundred]]" }],
        }),
      }).then((reply) => reply.text());
    for (let n = 0; n < 50; n += 1) await ask();
    const [mail] = await server.mails("rich@example.org", /^95 % verbraucht: Das Budget des Schlüssels <b>ci<\/b>/);
    expect(mail!.html).toContain("&lt;b&gt;ci&lt;/b&gt;");
    expect(header(mail!, "list-unsubscribe-post")).toBe("List-Unsubscribe=One-Click");
    const address = header(mail!, "list-unsubscribe")!.trim().slice(1, -1);
    const click = (url: string) => fetch(url, { method: "POST", body: "List-Unsubscribe=One-Click" });
    expect((await click(address.replace(/of=(\d+)/, (_, id: string) => `of=${Number(id) - 1}`))).status).toBe(404);
    expect((await fetch(address, { redirect: "manual" })).status).toBe(303); // who only looks changes nothing
    expect((await click(address)).status).toBe(200);
  });

  test("what the mail server says decides: given up, tried again, or sent once more after a kill", async () => {
    const rows = <Row>(sql: string): Row[] => {
      const database = new Database(join(gateway.dataFolder, "tollgate.db"));
      database.run("PRAGMA busy_timeout = 5000");
      try {
        return database.query(sql).all() as Row[];
      } finally {
        database.close();
      }
    };
    type State = { due_at: number | null; tries: number; problem: string | null };
    const state = (like: string) =>
      rows<State>(`SELECT due_at, tries, problem FROM mails WHERE once LIKE '${like}%'`)[0];
    server.answers("550 5.1.1 no such user");
    await gateway.cli("accounts", "invite", "--email", "typo@example.org");
    await eventually("it is given up", async () => state("invitation typo")?.due_at === null);
    expect(state("invitation typo")).toMatchObject({ tries: 1, problem: "550 5.1.1 no such user" });
    server.answers("drop");
    await gateway.cli("accounts", "invite", "--email", "later@example.org");
    await eventually("it waits", async () => (state("invitation later")?.tries ?? 0) > 0);
    server.answers("ok");
    await server.mails("later@example.org", /invited/);
    server.answers("drip");
    await gateway.cli("accounts", "invite", "--email", "slow@example.org");
    await server.mails("slow@example.org", /invited/);
    const stopsAt = performance.now();
    await gateway.kill("SIGTERM");
    expect(performance.now() - stopsAt).toBeLessThan(30_000);
    const known = ["--config", join(gateway.folder, "tollgate.toml")];
    for (const who of ["grey", "other"])
      await gateway.cli("accounts", "invite", "--email", `${who}@example.org`, ...known);
    server.answers("450 4.2.0 greylisted for grey@example.org");
    await gateway.restart();
    await server.mails("other@example.org", /invited/);
    const grey = state("invitation grey")!;
    expect(grey).toMatchObject({ tries: 1, problem: "450 4.2.0 greylisted" });
    expect(Date.now()).toBeLessThan(grey.due_at!); // one that is not taken now holds up no other
    server.answers("ok");
    await server.mails("grey@example.org", /invited/);
    server.answers("keep");
    await gateway.cli("accounts", "invite", "--email", "sue@example.org");
    const [first] = await server.mails("sue@example.org", /invited/);
    await gateway.kill("SIGKILL");
    server.answers("ok");
    rows("UPDATE mails SET due_at = 0 WHERE due_at IS NOT NULL RETURNING 1"); // the lease is over
    await gateway.restart();
    const [, second] = await server.mails("sue@example.org", /invited/, 2);
    expect(header(second!, "message-id")).toBe(header(first!, "message-id"));
    expect(tokenIn(second!)).toBe(tokenIn(first!));
    expect((await new Browser(gateway).post("/link", { token: tokenIn(second!) })).status).toBe(200);
  });
});

describe.skipIf(absent || noPostgres)("mail of two gateways on PostgreSQL", () => {
  test("60 requests that cross 95 % at once are told in one mail", async () => {
    await using server = await MailServer.start();
    await using node = await ScriptedNode.start();
    await using postgres = await TestPostgres.start();
    await node.define("hundred", hundred);
    using folder = temporaryFolder();
    const url = await postgres.database("mail");
    const start = (name: string) =>
      GatewayProcess.start({
        config: `${nodeTable(node, 64)}\n[ledger]\ngateway = "${name}"\n${plans}${mailTable(server.port)}`,
        env: { TOLLGATE_DATABASE_URL: url },
        dataFolder: join(folder.path, name),
      });
    await using one = await start("g1");
    await using two = await start("g2");
    const { api_key } = await one.cli<{ api_key: string }>("accounts", "create", "ann@example.org");
    await one.cli("accounts", "address", "ann@example.org", "ann@example.org");
    const { api_key: key } = await one.cli<{ api_key: string }>(
      ...["keys", "create", "ann@example.org", "--name", "ci", "--limit-day", "4100"],
    );
    expect(api_key).not.toBe(key);
    const ask = (gateway: GatewayProcess) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({
          model: "core-3",
          max_tokens: 50,
          messages: [{ role: "user", content: "[[hundred]]" }],
        }),
      }).then((reply) => reply.text());
    await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n % 2 === 0 ? one : two)));
    await server.mails("ann@example.org", /^95% used: The budget of the key ci/);
    const client = new Bun.SQL({ url, max: 1 });
    await eventually(
      "nothing waits",
      async () => (await client`SELECT 1 FROM mails WHERE due_at IS NOT NULL`).length === 0,
    );
    // Who looks while they run may tell of 80 % first, once.
    const told = server.got.map((mail) => header(mail, "subject")!.slice(0, "95% used".length));
    expect([["95% used"], ["80% used", "95% used"]]).toContainEqual(told);
    await client.close();
  });
});
