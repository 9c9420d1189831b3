// Everything that is kept about an account: exported completely, and erased, on a running server and on a stopped one.
import { Database } from "bun:sqlite";
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { erase } from "../../src/office/verbs/accounts.ts";
import { ConsoleSite } from "../console/console-site.ts";
import { unixUser } from "../../src/server/process/unix-user.ts";
import { Office } from "../account/office.ts";
import { type GatewayProcess, type Account } from "../fixtures/gateway-process.ts";
import { eventually } from "../fixtures/eventually.ts";
import { useStack } from "../fixtures/stack.ts";

setDefaultTimeout(120_000);

const stack = useStack();
let gateway: GatewayProcess;
beforeAll(() => {
  gateway = stack.gateway;
});

const respond = (key: string, body: object): Promise<Response> =>
  fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "core-3", ...body }),
  });

/** An account that has used, stored, bought and signed in. */
async function usedAccount(input = "hello"): Promise<Account> {
  const account = await gateway.account();
  expect((await respond(account.api_key, { input, store: true })).status).toBe(200);
  await gateway.cli("accounts", "credit", account.email, "1000000", "--reference", `paid-${account.id}`);
  return account;
}

type Export = Record<string, unknown[]> & { account: Record<string, unknown> };

type Stored = Readonly<{
  id: string;
  previous_id: string | null;
  kept_at: string;
  input: object[];
  response: { id: string };
}>;

const storedOf = async ({ email }: Account): Promise<Stored[]> =>
  (await gateway.cli<Export>("accounts", "export", email))["stored_responses"] as Stored[];

/** How a text that was asked is kept. */
const item = (text: string): object =>
  expect.objectContaining({ role: "user", content: [{ type: "input_text", text }] });

const violations = async (): Promise<string | undefined> =>
  /^tollgate_ledger_violations (.*)$/m.exec(await (await fetch(`${gateway.url}/metrics`)).text())?.[1];

const onDisk = (text: string): string[] =>
  readdirSync(gateway.dataFolder)
    .filter((name) => name.startsWith("responses.db") || name.startsWith("tollgate.db"))
    .filter((name) => readFileSync(join(gateway.dataFolder, name)).includes(text));

test("an export has the account and every list, and no hash", async () => {
  const account = await usedAccount();
  const given = await gateway.cli<Export>("accounts", "export", account.email);
  expect(given.account).toMatchObject({ id: account.id, email: account.email, plan: "free", has_password: 0 });
  expect(given["usage"]).toEqual([
    expect.objectContaining({ kind: "credit" }),
    expect.objectContaining({ kind: "charge", endpoint: "/v1/responses", model: "core-3" }),
    expect.objectContaining({ kind: "credit", credit_delta: 1_000_000 }),
  ]);
  expect(Object.keys(given).sort()).toEqual(
    [
      "account",
      "audit",
      "conversations",
      "cost_center_sums",
      "end_user_use",
      "end_users",
      "files",
      "identities",
      "key_use",
      "keys",
      "links",
      "mails",
      "payments",
      "purchase_requests",
      "quota_use",
      "refused_requests",
      "request_addresses",
      "search_calls",
      "sessions",
      "stored_responses",
      "team_keys",
      "team_usage",
      "teams",
      "usage",
      "usage_sums",
    ].sort(),
  );
  expect(JSON.stringify(given)).not.toMatch(/hash/);
});

test("those for whom its programs asked are exported with it, and erased with it", async () => {
  const account = await gateway.account();
  const key = ["keys", "create", account.email, "--name", "bot", "--forwards-users"];
  const { api_key } = await gateway.cli<Account>(...key);
  const asking = `grace.hopper.${account.id}@navy.example`;
  expect((await respond(api_key, { input: "hello", store: false, user: asking })).status).toBe(200);
  const given = await gateway.cli<Export>("accounts", "export", account.email);
  expect(given["end_users"]).toEqual([expect.objectContaining({ id: 1, key_id: 2, name: asking })]);
  expect(given["usage"]!.at(-1)).toMatchObject({ kind: "charge", end_user_id: 1 });
  const { billed_tokens } = given["usage"]!.at(-1) as { billed_tokens: number };
  expect(given["end_user_use"]).toEqual([expect.objectContaining({ end_user_id: 1, used: billed_tokens })]);
  const { name } = await gateway.cli<{ name: string }>("accounts", "delete", account.email, "--yes");
  const left = await gateway.cli<Export>("accounts", "export", name);
  expect(left["end_users"]).toEqual([expect.objectContaining({ id: 1, name: null })]);
  await gateway.kill("SIGTERM");
  const database = new Database(join(gateway.dataFolder, "tollgate.db"));
  database.run("PRAGMA wal_checkpoint(TRUNCATE)"); // what a stop left in the log because somebody was reading
  database.close();
  expect(onDisk(asking)).toEqual([]);
  await gateway.restart();
});

test("an export has the account's stored responses as its client got them, and nobody else's", async () => {
  const account = await usedAccount("what was asked");
  await usedAccount("what another asked");
  const before = (await gateway.cli<Export>("accounts", "export", account.email))["stored_responses"] as Stored[];
  const ask = { input: "and then", store: true, previous_response_id: before[0]!.id };
  const answered = (await (await respond(account.api_key, ask)).json()) as Stored["response"];
  await eventually("it is on disk", async () => (await storedOf(account)).length === 2);
  expect(await storedOf(account)).toEqual([
    {
      id: before[0]!.id,
      previous_id: null,
      kept_at: expect.any(String),
      input: [item("what was asked")],
      response: before[0]!.response,
    },
    {
      id: answered.id,
      previous_id: before[0]!.id,
      kept_at: expect.any(String),
      input: [item("and then")],
      response: answered,
    },
  ]);
  await gateway.cli("accounts", "delete", account.email, "--yes");
  expect(await storedOf({ ...account, email: `deleted-${account.id}@invalid` })).toEqual([]);
});

test("an export and a deletion are in the audit log, without the e-mail, on a running server and on a stopped one", async () => {
  const [account, other] = [await usedAccount(), await usedAccount()];
  const actions = ({ id }: Account): unknown[] => {
    using database = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
    return database
      .query("SELECT action, operator_id, address, detail FROM audit_log WHERE subject_id = ? ORDER BY id")
      .all(id);
  };
  const byCommand = { operator_id: 0, address: `command line (${unixUser({})})` };
  const entries = [
    // What was said of it before is erased with it.
    { action: "account.create", operator_id: 0, address: "command line (unknown)", detail: "" },
    { action: "account.credit", ...byCommand, detail: "" },
    { action: "account.export", ...byCommand, detail: "" },
    {
      action: "account.delete",
      ...byCommand,
      detail:
        "its e-mail and mail address, key, password, names of keys, teams, end users, links, identities, sessions, notes, addresses, mails, tags of requests and stored responses were erased",
    },
  ];
  const given = await gateway.cli<Export>("accounts", "export", account.email);
  expect(given["audit"]!.at(-1)).toMatchObject({ action: "account.export", address: null, by_account: 0 });
  await gateway.cli("accounts", "delete", account.email, "--yes");
  expect(actions(account)).toEqual(entries);
  await gateway.kill("SIGTERM");
  await gateway.cli("accounts", "export", other.email);
  await gateway.cli("accounts", "delete", other.email, "--yes");
  expect(actions(other)).toEqual(entries);
  await gateway.restart();
});

test("a deletion needs --yes and an account that there is", async () => {
  const { email } = await gateway.account();
  await expect(gateway.cli("accounts", "delete", email)).rejects.toThrow("say --yes");
  await expect(gateway.cli("accounts", "delete", "nobody@x", "--yes")).rejects.toThrow("no account has the e-mail");
  await expect(gateway.cli("accounts", "export", "nobody@x")).rejects.toThrow("no account has the e-mail");
  expect((await gateway.show(email)).email).toBe(email);
});

test("a deleted account's key is refused and its stored responses are gone, and the books are whole", async () => {
  const account = await usedAccount();
  const stored = (await (await respond(account.api_key, { input: "again", store: true })).json()) as { id: string };
  const before = await gateway.cli<Export>("accounts", "export", account.email);
  const deleted = await gateway.cli<{ id: number; name: string }>("accounts", "delete", account.email, "--yes");
  expect(deleted).toEqual({ id: account.id, name: `deleted-${account.id}@invalid` });
  expect((await respond(account.api_key, { input: "x" })).status).toBe(401);
  await expect(gateway.cli("accounts", "show", account.email)).rejects.toThrow("no account has the e-mail");
  const after = await gateway.cli<Export>("accounts", "export", deleted.name);
  expect(after["usage"]).toEqual(before["usage"]!);
  expect(after.account).toMatchObject({ credit: before.account["credit"], operator: 0 });
  expect(after.account["disabled_at"]).not.toBeNull();
  const responses = new Database(join(gateway.dataFolder, "responses.db"), { readonly: true });
  expect(responses.query("SELECT count(*) AS left FROM responses WHERE account_id = ?").get(account.id)).toEqual({
    left: 0,
  });
  responses.close();
  expect(stored.id).toStartWith("resp_");
  expect(await violations()).toBe("0");
  // the e-mail is free again, for somebody else
  const again = await gateway.cli<Account>("accounts", "create", account.email);
  expect(again.id).not.toBe(account.id);
});

test("what was refused is exported and erased with its account, also from the bytes of its file", async () => {
  const [account, other] = [await gateway.account(), await gateway.account()];
  for (const { api_key } of [account, other]) {
    expect((await respond(api_key, { model: "no-such-model", input: "x" })).status).toBe(400);
  }
  const refusedOf = async (name: string) => (await gateway.cli<Export>("accounts", "export", name))["refused_requests"];
  await eventually("both are written", async () => (await refusedOf(other.email))!.length === 1);
  const [row, ...more] = (await refusedOf(account.email)) as { id: string }[];
  expect([row, more]).toEqual([
    expect.objectContaining({ reason: "unknown_model", status: 400, endpoint: "/v1/responses", more: 0 }),
    [],
  ]);
  const requestFiles = () =>
    readdirSync(gateway.dataFolder)
      .filter((name) => name.startsWith("requests.db"))
      .filter((name) => readFileSync(join(gateway.dataFolder, name)).includes(row!.id));
  expect(requestFiles()).not.toEqual([]);
  const { name } = await gateway.cli<{ name: string }>("accounts", "delete", account.email, "--yes");
  expect(await refusedOf(name)).toEqual([]);
  expect(requestFiles()).toEqual([]);
  expect(await refusedOf(other.email)).toHaveLength(1);
});

test("a response that is stored while its account is being deleted is gone as well", async () => {
  const office = new Office();
  await office.accounts.create({ email: "a@x" });
  const stored = ["before"];
  const eraseResponses = async (): Promise<void> => {
    stored.length = 0;
    if (office.records.byEmail("a@x") !== null) stored.push("meanwhile");
  };
  const { work } = new ConsoleSite().parts;
  await erase.run(
    { ...work, office: office.units, eraseResponses },
    { actor: { kind: "shell", user: "ada" }, input: { email: "a@x" }, progress: () => {} },
  );
  expect(stored).toEqual([]);
});

test("a stopped server's accounts are deleted too, and their files hold nothing of them", async () => {
  const account = await usedAccount(`canary-of-the-stopped ${"x".repeat(20_000)}`);
  for (let others = 0; others < 60; others += 1) await gateway.account(); // so that it stands among others in its page
  await gateway.kill("SIGTERM");
  expect(onDisk("canary-of-the-stopped")).toEqual(["responses.db"]);
  expect(onDisk(account.email)).not.toEqual([]); // in the file, or in its log
  const deleted = await gateway.cli<{ name: string }>("accounts", "delete", account.email, "--yes");
  expect(onDisk("canary-of-the-stopped")).toEqual([]);
  expect(onDisk(account.email)).toEqual([]);
  expect(await gateway.cli<Export>("accounts", "export", deleted.name)).toMatchObject({ sessions: [] });
  await gateway.restart();
  expect((await respond(account.api_key, { input: "x" })).status).toBe(401);
  await expect(gateway.cli("accounts", "show", account.email)).rejects.toThrow("no account has the e-mail");
});
