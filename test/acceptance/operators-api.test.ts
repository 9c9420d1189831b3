// The API for operators: the commands' verbs for programs, with tokens that have a scope, and a file that says what accounts
// there are.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

setDefaultTimeout(120_000);
const main = join(import.meta.dir, "../../src/main.ts");

describe.each([[1], [2]])("with %i threads", (threads) => {
  let gateway: GatewayProcess;
  /** The output of a command; rejects with what it says is wrong. */
  const command = async (words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runToEnd([process.execPath, main, ...words, "--data", gateway.dataFolder]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const folder = mkdtempSync(join(tmpdir(), "tollgate-apply-"));
  const tokens: Record<string, string> = {};

  beforeAll(async () => {
    gateway = await GatewayProcess.start({ config: `[server]\nthreads = ${threads}\n` });
    for (const scope of ["read", "people", "all"]) {
      const made = await command(["tokens", "create", "--name", `the ${scope} one`, "--scope", scope, "--json"]);
      const { id, token } = JSON.parse(made) as { id: number; token: string };
      expect(id).toBeGreaterThan(0);
      tokens[scope] = token;
    }
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await gateway[Symbol.asyncDispose]();
  });

  const ask = async (scope: string, path: string, input?: object, token = tokens[scope]) => {
    const reply = await fetch(`${gateway.url}/api/v1/${path}`, {
      method: input === undefined ? "GET" : "POST",
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(input === undefined ? {} : { body: JSON.stringify(input) }),
    });
    return { status: reply.status, body: (await reply.json()) as any };
  };

  test("a verb takes its input as JSON and gives its result; what only reads takes a query, too", async () => {
    const { email } = await gateway.account();
    const disabled = await ask("people", "accounts/disable", { email });
    expect(disabled).toMatchObject({ status: 200, body: { email, disabled: true } });
    expect(await ask("people", "accounts/enable", { email })).toMatchObject({ body: { disabled: false } });
    const { body } = await ask("read", "accounts/list?limit=1");
    expect(body).toHaveLength(1);
    expect(await ask("read", "accounts/list", { limit: 1 })).toEqual({ status: 200, body });
    expect((await ask("all", "nodes")).body[0]).toMatchObject({ name: "demo" });
  });

  test.each([
    ["read", "accounts/disable", 403, "permission_error"],
    ["people", "nodes/drain", 403, "permission_error"],
    ["people", "tokens/create", 403, "permission_error"],
    ["all", "accounts/nothing", 404, "not_found_error"],
    ["all", "accounts/export", 404, "not_found_error"],
    ["all", "backup", 404, "not_found_error"],
  ])("%s: %s is a %i", async (scope, path, status, type) => {
    expect(await ask(scope, path, { email: "x@y", name: "z", scope: "all" })).toMatchObject({
      status,
      body: { error: { type } },
    });
  });

  test("a token of the scope people cannot make an operator, nor change the account of one", async () => {
    const operator = await ask("all", "accounts/create", { email: `op-${threads}@x.example`, operator: true });
    expect(operator.status).toBe(200);
    const { email } = operator.body;
    for (const [path, input] of [
      ["accounts/create", { email: "evil@x.example", operator: true }],
      ["accounts/password", { email, password: "a password of mine" }],
      ["accounts/password-link", { email }],
      ["accounts/disable", { email }],
      ["keys/create", { email, name: "evil" }],
      ["keys/rotate", { email }],
      ["apply", { accounts: [{ email, operator: false }] }],
      ["apply", { accounts: [{ email: "evil@x.example", operator: true }] }],
    ] as const) {
      expect([path, (await ask("people", path, input)).status]).toEqual([path, 403]);
    }
    expect((await ask("people", `accounts/show?email=${email}`)).status).toBe(200);
  });

  test("no token, a wrong one, an expired and a revoked one are a 401", async () => {
    for (const token of [undefined, "tgo-nothing", `tgo-${"A".repeat(43)}`, "\u00e4"]) {
      const reply = await fetch(`${gateway.url}/api/v1/accounts/list`, {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      });
      expect([token, reply.status]).toEqual([token, 401]);
    }
    const { body } = await ask("all", "tokens/create", { name: "short", scope: "all" });
    expect((await ask("all", "accounts/list", undefined, body.token)).status).toBe(200);
    await ask("all", "tokens/revoke", { id: body.id });
    expect((await ask("all", "accounts/list", undefined, body.token)).status).toBe(401);
    const past = await ask("all", "tokens/create", { name: "late", scope: "all", expires: "2020-01-01T00:00:00Z" });
    expect(past).toMatchObject({ status: 400, body: { error: { field: "expires" } } });
  });

  test("bad input names its field, and nothing is done", async () => {
    const wrong = await ask("people", "accounts/create", { email: "new@x.example", credit: -1 });
    expect(wrong).toMatchObject({ status: 400, body: { error: { field: "credit" } } });
    expect(await ask("people", "accounts/create", { e_mail: "new@x.example" })).toMatchObject({ status: 400 });
    const raw = await fetch(`${gateway.url}/api/v1/accounts/create`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens["people"]}` },
      body: "[".repeat(100_000),
    });
    expect(raw.status).toBe(400);
    expect(await ask("read", "accounts/show?email=new@x.example")).toMatchObject({ status: 400 });
    const twice = await gateway.account();
    expect(await ask("people", "accounts/create", { email: twice.email })).toMatchObject({ status: 409 });
  });

  test.each([
    ["accounts/list", { limit: 1e19 }, "limit", "limit must be a whole number of at least 1, is 10000000000000000000"],
    ["accounts/list", { after: "x" }, "after", 'after must be a whole number of at least 0, is "x"'],
    ["purchases/list", { state: "gone" }, "state", 'state must be "pending" or "approved" or "declined"'],
    ["purchases/approve", { id: 1e300 }, "id", "id must be a whole number of at least 1, is 1e+300"],
    ["accounts/show", { email: "x".repeat(100_000) }, "email", "email must be a line of at most 500 characters, is"],
    ["accounts/plan", { email: "a@x", plan: "a\nb" }, "plan", "plan must be a line of at most 500 characters, is"],
    ["keys/create", { email: "a@x", name: "k", weight: null }, "weight", "weight must be a whole number from 1 to"],
    ["tokens/create", { name: "a\nb", scope: "all" }, "name", "name must be 1 to 60 letters, digits, spaces and"],
    ["accounts/password", { email: "a@x", password: "short" }, "password", "password must be text of 8 to"],
    ["accounts/list", { ["x".repeat(100_000)]: 1 }, "x".repeat(200), `${"x".repeat(200)} is unknown`],
    ["accounts/disable", {}, "email", "email is missing: must be a line of at most 500 characters"],
  ])("%s refuses %j by its field, its rule and its value, in a line", async (path, input, field, message) => {
    const { status, body } = await ask("all", path, input);
    expect([status, body.error.field]).toEqual([400, field]);
    expect(body.error.message).toStartWith(message);
    expect(body.error.message.length).toBeLessThan(300);
    expect(body.error.message).not.toContain("short");
  });

  test("the audit log names the token, and lists show no secret", async () => {
    const { email } = await gateway.account();
    await ask("people", "accounts/plan", { email, plan: "pro" });
    const shown = await command(["tokens", "list", "--json"]);
    for (const token of Object.values(tokens)) expect(shown).not.toContain(token);
    using ledger = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
    const last = ledger.query("SELECT action, address FROM audit_log ORDER BY id DESC LIMIT 1").get();
    expect(last).toEqual({ action: "account.plan", address: "token the people one (127.0.0.1)" });
  });

  test("the description lists each verb, with its schema", async () => {
    const { body } = await ask("none", "openapi.json", undefined, undefined);
    expect(body.paths["/api/v1/accounts/disable"].post.requestBody.content["application/json"].schema).toMatchObject({
      required: ["email"],
    });
    expect(body.paths["/api/v1/accounts/list"].get.parameters.map(({ name }: any) => name)).toEqual(["after", "limit"]);
    const page = await fetch(`${gateway.url}/docs/operators`);
    expect([page.status, (await page.text()).includes("/api/v1/accounts/disable")]).toEqual([200, true]);
  });

  describe("apply", () => {
    const apply = (text: string, more: readonly string[] = [], name = "shop.toml") => {
      const file = join(folder, name);
      writeFileSync(file, text);
      return command(["apply", "-f", file, ...more]);
    };

    test("shows the difference, makes it once, and says so the second time", async () => {
      const { email } = await gateway.account();
      await command(["keys", "create", email, "--name", "bot"]);
      const shop = `
        [[accounts]]
        email = "made-${threads}@x.example"
        plan = "plus"
        credit = 700
        [[accounts]]
        email = "${email}"
        plan = "standard"
        disabled = true
        keys = [{ name = "bot", limit_day = 5000 }]
        [[invitations]]
        email = "later-${threads}@x.example"
      `;
      const difference = await apply(shop, ["--dry-run"]);
      expect(difference).toContain(`+ made-${threads}@x.example: plan plus, credit 700`);
      expect(difference).toContain(`~ ${email}: plan from free to standard`);
      expect(difference).toContain("5 changes, none applied");
      expect((await gateway.show(email)).plan).toBe("free");
      expect(await apply(shop)).toContain("5 changes");
      expect(await gateway.show(email)).toMatchObject({ plan: "standard", disabled: true });
      expect((await gateway.show(`made-${threads}@x.example`)).credit).toBe(700);
      expect(await apply(shop)).toBe("no changes\n");
      const json = JSON.stringify({ accounts: [{ email, plan: "standard" }] });
      expect(await apply(json, ["--json"], "shop.json")).toContain('"changes":[]');
    });

    test.each([
      ['[[accounts]]\nemail = "a@x.example"\nplann = "pro"', "accounts[0].plann is unknown"],
      ['[[accounts]]\nemail = "half@x.example"\n[[accounts]]\nemail = "b@x.example"\nplan = "gold"', "accounts[1]: "],
      ['[[accounts]]\nemail = "a@x.example"\n[[accounts]]\nemail = "A@x.example"', "stands in accounts[0], too"],
      ["accounts = 3", "accounts "],
      ["[[accounts", "is not TOML"],
    ])("refuses %j, names the place, and does nothing", async (text, reason) => {
      await expect(apply(text)).rejects.toThrow(reason);
      await expect(gateway.show("half@x.example")).rejects.toThrow();
    });
  });
});

test("without a server, a command refuses the same input", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-stopped-"));
  const command = (...words: string[]) => runToEnd([process.execPath, main, ...words, "--data", folder]);
  try {
    expect((await command("accounts", "create", "a@x.example")).code).toBe(0);
    for (const [words, problem] of [
      [["tokens", "create", "--name", "ci", "--scope", "everything"], '--scope must be "read" or "people" or "all"'],
      [["tokens", "create", "--name", "a/b\nc", "--scope", "all"], "--name must be 1 to 60 letters"],
      [["purchases", "list", "--state", "gone"], '--state must be "pending" or'],
      [["keys", "create", "a@x.example", "--name", "k", "--priority", "none"], "--priority must be"],
    ] as const) {
      const { code, stderr } = await command(...words);
      expect(code).not.toBe(0);
      expect(stderr).toContain(problem);
    }
    expect((await command("tokens", "list", "--json")).stdout).toBe("[]\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
