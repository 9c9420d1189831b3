// Passwords, disabled accounts and the audit log, as commands of an operator: on a running server, with one thread and
// with several, and on a stopped one.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { allVerbs } from "../../src/office/registry.ts";
import { unixUser } from "../../src/server/process/unix-user.ts";
import { databaseName } from "../../src/store/folder/data-folder.ts";
import { runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { longForm } from "../fixtures/optional.ts";
import { TextStream } from "../fixtures/text-stream.ts";
import { chat, run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

type Account = Readonly<{ id: number; email: string; api_key: string }>;

/** The audit log as it is on disk. */
function auditIn(dataFolder: string): { action: string; operator_id: number; address: string; detail: string }[] {
  using database = new Database(join(dataFolder, databaseName), { readonly: true });
  return database.query("SELECT action, operator_id, address, detail FROM audit_log ORDER BY id").all() as never;
}

const byCommand = `command line (${unixUser({})})`;

/** A node whose answers say a word and end; to "Hold on", when it is told to. */
function heldNode() {
  const goOn = Promise.withResolvers<void>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method !== "POST") return Response.json({ object: "list", data: [{ id: "core-3" }] });
      const isHeld = (await request.text()).includes("Hold on");
      const choice = (delta: object, finish_reason: string | null) => [{ index: 0, delta, finish_reason }];
      const event = (choices: object[]) => `data: ${JSON.stringify({ choices })}\n\n`;
      async function* answer() {
        yield event(choice({ content: "first" }, null));
        if (isHeld) await goOn.promise;
        yield `${event(choice({ content: "last" }, null))}${event(choice({}, "stop"))}data: [DONE]\n\n`;
      }
      return new Response(answer() as never, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, goOn: goOn.resolve, stop: () => server.stop(true) };
}

class Browser {
  cookies = "";
  constructor(readonly url: string) {}

  async signIn(email: string, password: string): Promise<{ status: number; text: string }> {
    const reply = await fetch(`${this.url}/console/api/sign-in`, {
      method: "POST",
      headers: { origin: this.url, "content-type": "application/json" },
      body: JSON.stringify({ email, password }),
    });
    this.cookies = reply.headers
      .getSetCookie()
      .map((cookie) => cookie.split(";")[0])
      .join("; ");
    return { status: reply.status, text: await reply.text() };
  }

  async overview(): Promise<number> {
    return (await fetch(`${this.url}/console/api/overview`, { headers: { cookie: this.cookies } })).status;
  }
}

describe.each(longForm ? ["1", "2"] : ["2"])("on a running server with %s threads", (threads) => {
  const folder = temporaryFolder();
  const node = heldNode();
  const data = join(folder.path, "data");
  let server: Server;
  beforeAll(async () => {
    server = await Server.start(["--port", "0", "--data", data, "--node", node.url, "--threads", threads]);
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    void node.stop();
    folder[Symbol.dispose]();
  });

  const json = async (...words: string[]) => {
    const { code, stdout, stderr } = await run([...words, "--data", data, "--json"]);
    expect([code, stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  };
  /** On connections of their own, so that every thread is asked. */
  const statuses = async (key: string): Promise<number[]> => {
    const asked = Array.from({ length: 16 }, () =>
      fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, connection: "close" },
        body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 }),
      }).then(async (reply) => {
        await reply.arrayBuffer();
        return reply.status;
      }),
    );
    return [...new Set(await Promise.all(asked))];
  };

  test("a disabled account's key is void on every thread and for open bodies, and what runs may end", async () => {
    const ada: Account = await json(
      "accounts",
      "create",
      "ada@x.org",
      "--credit",
      "5000000",
      "--password",
      "correct horse",
    );
    const browser = new Browser(server.url);
    expect((await browser.signIn("ada@x.org", "correct horse")).status).toBe(200);
    expect(await statuses(ada.api_key)).toEqual([200]);
    const before = await json("accounts", "show", "ada@x.org");
    expect(before.disabled).toBe(false);

    const held = { stream: true, max_tokens: 50, messages: [{ role: "user", content: "Hold on" }] };
    const stream = new TextStream(await chat(server.url, ada.api_key, held));
    await stream.until("first");
    // A body that is still on its way.
    const { hostname, port } = new URL(server.url);
    const open = connect(Number(port), hostname);
    let answered = "";
    open.setEncoding("latin1").on("data", (more) => (answered += more));
    const body = JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "Hello" }] });
    open.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ada.api_key}\r\n` +
        `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body.slice(0, 9)}`,
    );
    expect(await statuses(ada.api_key)).toEqual([200]); // by then the server has read that

    const disabled = await json("accounts", "disable", "ada@x.org");
    expect(disabled).toMatchObject({ email: "ada@x.org", disabled: true });
    expect(await statuses(ada.api_key)).toEqual([401]);
    open.write(body.slice(9));
    await eventually("the open body is answered", async () => answered.includes("\r\n\r\n"));
    expect(answered).toStartWith("HTTP/1.1 401");
    expect(await browser.overview()).toBe(401);
    const told = await new Browser(server.url).signIn("ada@x.org", "correct horse");
    expect(told).toEqual(await new Browser(server.url).signIn("nobody@x.org", "correct horse"));
    expect(told.status).toBe(401);
    node.goOn();
    const text = await stream.whole();
    expect(text).toContain("last");
    expect(text).toEndWith("data: [DONE]\n\n");
    const listed = (await json("accounts", "list")) as { email: string; disabled: boolean }[];
    expect(listed.map(({ email, disabled: is }) => [email, is])).toEqual([
      ["operator@localhost", false],
      ["ada@x.org", true],
    ]);

    const enabled = await json("accounts", "enable", "ada@x.org");
    expect(enabled).toMatchObject({ disabled: false, reserved: 0, plan: before.plan, credit: before.credit });
    expect(await statuses(ada.api_key)).toEqual([200]);
    expect(await browser.overview()).toBe(401); // its session has ended
    expect((await browser.signIn("ada@x.org", "correct horse")).status).toBe(200);
  });

  test("a new password ends every session, and known browsers are strangers again", async () => {
    const { email } = await json("accounts", "create", "bob@x.org", "--password", "correct horse");
    const browser = new Browser(server.url);
    await browser.signIn(email, "correct horse");
    expect(await browser.overview()).toBe(200);
    const set = await json("accounts", "password", email, "--password", "battery staple");
    expect(set).toEqual({ id: expect.any(Number), email, password: null });
    expect(await browser.overview()).toBe(401);
    expect((await new Browser(server.url).signIn(email, "correct horse")).status).toBe(401);
    expect((await browser.signIn(email, "battery staple")).status).toBe(200);
    const { password } = await json("accounts", "password", email); // nothing on standard input
    expect(password).toMatch(/^[\w-]{20}$/);
    expect(await browser.overview()).toBe(401);
    expect((await browser.signIn(email, password)).status).toBe(200);
  });
});

/** Every command that changes something, in an order in which it can. */
const changes: readonly (readonly [words: readonly string[], action: string, detail: string])[] = [
  [
    ["accounts", "create", "ann@x.org", "--plan", "plus", "--operator"],
    "account.create",
    "plan plus, credit 0, an operator",
  ],
  [["accounts", "plan", "ann@x.org", "pro"], "account.plan", "from plus to pro"],
  [
    ["accounts", "credit", "ann@x.org", "5", "--reference", "invoice-1"],
    "account.credit",
    "5 balance tokens: reference invoice-1",
  ],
  [["accounts", "update", "ann@x.org", "--cost-center", "R&D"], "account.cost_center", '"R&D"'],
  [["accounts", "address", "ann@x.org", "ann@mail.example"], "account.address", "another one"],
  [["accounts", "password", "ann@x.org", "--password", "battery staple"], "account.password", ""],
  [["accounts", "password", "ann@x.org", "--link"], "account.password_link", "link 1"],
  [
    ["accounts", "invite", "--email", "eve@x.org", "--plan", "plus", "--credit", "5", "--expires", "2h"],
    "invitation.create",
    "invitation 2: plan plus, credit 5, for one address",
  ],
  [["accounts", "password-link", "ann@x.org"], "account.password_link", "link 3"],
  [["accounts", "disable", "ann@x.org"], "account.disable", ""],
  [["accounts", "enable", "ann@x.org"], "account.enable", ""],
  [["keys", "rotate", "ann@x.org"], "key.rotate", ""],
  [["keys", "create", "ann@x.org", "--name", "bot"], "key.create", '"bot"'],
  [
    ["keys", "limits", "ann@x.org", "2", "--limit-day", "5", "--models", "core-3", "--expires", "none"],
    "key.limits",
    "key 2: limit_day 5, expires_at none, models core-3",
  ],
  [
    ["keys", "limits", "ann@x.org", "2", "--forwards-users", "--limit-end-user-day", "5"],
    "key.limits",
    "key 2: forwards_users true, limit_end_user_day 5",
  ],
  [["keys", "limits", "ann@x.org", "2", "--no-forwards-users"], "key.limits", "key 2: forwards_users false"],
  [["accounts", "update", "ann@x.org", "--cost-center", "none", "--key", "2"], "account.cost_center", "key 2: none"],
  [["keys", "rename", "ann@x.org", "2", "robot"], "key.rename", 'key 2 to "robot"'],
  [["keys", "revoke", "ann@x.org", "2"], "key.revoke", "key 2"],
  [["sessions", "end", "ann@x.org"], "account.sign_out", "all"],
  [["teams", "create", "research", "--credit", "7"], "team.create", "plan free, credit 7"],
  [["teams", "update", "research", "--name", "lab", "--plan", "plus"], "team.update", "another name, plan plus"],
  [
    ["teams", "members", "add", "lab", "ann@x.org", "--role", "admin", "--limit-day", "5"],
    "team.member",
    "account 2 was added, role admin, limit_day 5",
  ],
  [
    ["teams", "members", "update", "lab", "ann@x.org", "--limit-day", "none"],
    "team.member",
    "account 2, limit_day none",
  ],
  [["keys", "create", "ann@x.org", "--name", "mine", "--team", "lab"], "key.create", '"mine" in lab'],
  [["keys", "create", "lab", "--name", "service"], "key.create", '"service"'],
  [["teams", "invite", "lab", "--limit-month", "9"], "invitation.create", "invitation 4 into the team, limit_month 9"],
  [["teams", "withdraw", "lab", "4"], "invitation.withdraw", "invitation 4"],
  [["teams", "members", "remove", "lab", "ann@x.org"], "team.leave", "account 2"],
  [["accounts", "export", "ann@x.org"], "account.export", ""],
  [["backup", "copy.db"], "server.backup", "copy.db: "],
];

/** They take the same way to the ledger whether a server runs or not: the longer form tries all of them on both. */
const triedOn = (state: string): typeof changes =>
  longForm || state === "stopped"
    ? changes
    : changes.filter(([words, action]) => !words.includes("2") && !/link|invitation|able$/.test(action));

describe.each(["running", "stopped"])("on a %s server", (state) => {
  const folder = temporaryFolder();
  const data = join(folder.path, "data");
  const node = heldNode();
  const file = join(folder.path, "gate.toml");
  let server: Server | null = null;
  const call = (...words: string[]) => run([...words, "--data", data, "--config", file], { cwd: folder.path });

  beforeAll(async () => {
    writeFileSync(file, `[[nodes]]\nname = "one"\nurl = "${node.url}"\n`);
    server = await Server.start(["--port", "0", "--data", data, "--config", file]);
    if (state === "running") return;
    server.signal("SIGTERM");
    await server.ended();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    void node.stop();
    folder[Symbol.dispose]();
  });

  test("whatever commands change is in the audit log, with the user whose they were", async () => {
    const tried = triedOn(state);
    for (const [words] of tried) expect([words, (await call(...words)).code]).toEqual([words, 0]);
    await call("accounts", "credit", "ann@x.org", "5", "--reference", "invoice-1"); // adds nothing, says nothing
    const deleted = await call("accounts", "create", "gone@x.org");
    expect(deleted.code).toBe(0);
    expect(auditIn(data)).toEqual([
      { action: "account.create", operator_id: 0, address: "first start", detail: "plan pro, an operator" },
      ...tried.map(([, action, detail]) => ({
        action,
        operator_id: 0,
        address: byCommand,
        detail: action === "server.backup" ? expect.stringContaining(detail) : detail,
      })),
      { action: "account.create", operator_id: 0, address: byCommand, detail: "plan free, credit 0" },
    ]);
    expect((await call("accounts", "delete", "gone@x.org", "--yes")).code).toBe(0);
    expect(auditIn(data).at(-1)).toMatchObject({ action: "account.delete", address: byCommand });
  });

  test.skipIf(state === "running")("every verb either is among those, or only reads", async () => {
    const tried = changes.map(([words]) => words.join(" "));
    const elsewhere = [
      ...["accounts delete", "end-users erase", "end-users export"], // in account-data.test.ts
      ...["nodes drain", "nodes resume"], // in nodes.test.ts
      "teams delete", // as accounts delete
      "batches cancel", // in batches.test.ts
      ...["invitations withdraw", "invitations link", "purchases approve", "purchases decline"], // in office/verbs.test.ts
      "apply", // in acceptance/operators-api.test.ts
      ...["tokens create", "tokens revoke"], // in acceptance/operators-api.test.ts
      "reload", // below
      ...["config edit", "config undo"], // in acceptance/config.test.ts
      ...["webhooks test", "mail test"], // changes nothing, and has no audit line
    ];
    const verbs = (await allVerbs()).flatMap(([, of]) => of);
    const untried = verbs.filter(
      ({ name, scope }) => scope !== "read" && !tried.some((words) => `${words} `.startsWith(`${name} `)),
    );
    expect(untried.map(({ name }) => name).sort()).toEqual(elsewhere.sort());
  });

  // All of them take the same ways to the ledger: the long form tries both.
  if (state === "running" && !longForm) return;

  test("links are printed with their end, and wrong ones are refused", async () => {
    const made = JSON.parse((await call("accounts", "invite", "--expires", "2h", "--json")).stdout);
    expect(made).toMatchObject({ email: null, plan: "free", credit: 0 });
    expect(made.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/join#[\w-]{43}$/);
    const hours = (Date.parse(made.expires_at) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(1.9);
    expect(hours).toBeLessThan(2.01);
    const wrong: readonly (readonly [words: string[], code: number, says: string])[] = [
      [["accounts", "invite", "--expires", "yesterday"], 2, "--expires must be a time to come"],
      [["accounts", "invite", "--expires", "2020-01-01"], 2, "--expires must be a time to come"],
      [["accounts", "invite", "--expires", "91d"], 1, "within 90 days"],
      [["accounts", "invite", "--plan", "gold"], 1, "no plan is called gold"],
      [["accounts", "invite", "--email", "ann@x.org"], 1, "exists already"],
      [["accounts", "password", "ann@x.org", "--link", "--password", "correct horse"], 2, "choose either"],
      [["accounts", "password", "ann@x.org", "--expires", "1d"], 2, "--expires is for --link"],
      [["accounts", "password", "nobody@x.org", "--link"], 1, "no account has the e-mail"],
    ];
    for (const [words, code, says] of wrong) {
      const answered = await call(...words);
      expect([words, answered.code]).toEqual([words, code]);
      expect(answered.stderr).toContain(says);
    }
  });

  test("the only operator cannot be disabled, and nothing happens to accounts that there are not", async () => {
    await call("accounts", "disable", "ann@x.org");
    const refused = await call("accounts", "disable", "operator@localhost");
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr: "tollgate: operator@localhost is the only operator; make another one first",
    });
    for (const verb of ["password", "disable", "enable"]) {
      const missing = await call("accounts", verb, "nobody@x.org");
      expect(missing).toEqual({ code: 1, stdout: "", stderr: "tollgate: no account has the e-mail nobody@x.org" });
    }
    expect(JSON.parse((await call("accounts", "show", "operator@localhost", "--json")).stdout).disabled).toBe(false);
  });

  test("a password comes from standard input too, and one that is too short is refused", async () => {
    const from = async (stdin: string, ...words: string[]) => {
      const command = [...tollgate, "accounts", "password", "ann@x.org", "--data", data, ...words];
      const { code, stdout, stderr } = await runToEnd(command, { stdin });
      return { code, stdout: stdout.trim(), stderr: stderr.trim() };
    };
    const set = { code: 0, stdout: "The password of ann@x.org is set; all browsers are signed out.", stderr: "" };
    expect(await from("correct horse\nanother line\n")).toEqual(set);
    expect(await from("correct horse")).toEqual(set);
    expect((await from("short\n")).stderr).toBe("tollgate: the password must have 8 to 1024 characters, has 5");
    expect((await from("", "--password", "short")).code).toBe(2);
    const made = await from("\n");
    expect(made.stdout).toMatch(
      /^[\w-]{20}\nThe password is shown this once: only its hash is kept\.\nThe password of/,
    );
    if (state === "stopped") server = await Server.start(["--port", "0", "--data", data, "--config", file]);
    await call("accounts", "enable", "ann@x.org");
    const [password] = made.stdout.split("\n");
    expect((await new Browser(server!.url).signIn("ann@x.org", password!)).status).toBe(200);
    expect((await new Browser(server!.url).signIn("ann@x.org", "correct horse")).status).toBe(401);
  });
});

test("reloads are in the audit log, by a command and by a signal, and so is a restore", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  const file = join(folder.path, "gate.toml");
  const node = heldNode();
  const nodes = `[[nodes]]\nname = "one"\nurl = "${node.url}"\n`;
  writeFileSync(file, nodes);
  const server = await Server.start(["--port", "0", "--data", data, "--config", file]);
  await using _server = server;
  const call = (...words: string[]) => run([...words, "--data", data], { cwd: folder.path });
  expect((await call("backup", "copy.db")).code).toBe(0);
  writeFileSync(file, `${nodes}[queue]\nmax_wait_seconds = 9\n`);
  expect((await call("reload")).code).toBe(0);
  writeFileSync(file, "nonsense");
  expect((await call("reload")).code).toBe(1);
  writeFileSync(file, nodes);
  server.signal("SIGHUP");
  await eventually("the signal is in the log", async () => auditIn(data).some(({ address }) => address === "SIGHUP"));
  expect(auditIn(data).slice(2)).toEqual([
    { action: "server.reload", operator_id: 0, address: byCommand, detail: "applied: queue.max_wait_seconds" },
    { action: "server.reload", operator_id: 0, address: byCommand, detail: expect.stringContaining("refused: ") },
    { action: "server.reload", operator_id: 0, address: "SIGHUP", detail: "applied: queue.max_wait_seconds" },
  ]);
  server.signal("SIGTERM");
  await server.ended();
  expect((await call("restore", "copy.db")).code).toBe(0);
  expect(existsSync(join(data, databaseName))).toBe(true);
  expect(auditIn(data)).toEqual([
    expect.objectContaining({ action: "account.create" }),
    {
      action: "server.restore",
      operator_id: 0,
      address: byCommand,
      detail: `from ${join(folder.path, "copy.db")}`,
    },
  ]);
  void node.stop();
});
