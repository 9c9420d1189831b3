// What operators do, and that each action is in the audit log.
import { beforeEach, describe, expect, test } from "bun:test";
import type { LogFilter, RequestLogQueries } from "../../src/core/request-log.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { StoreUnavailable } from "../../src/core/types.ts";
import { ask, coderAsk } from "../account/office.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type ConsoleBrowser, ConsoleSite } from "./console-site.ts";

let site: ConsoleSite;
let operator: ConsoleBrowser;
let customer: ConsoleBrowser;
let path: string;
beforeEach(async () => {
  site = new ConsoleSite();
  operator = await site.signedIn("operator@x", { operator: true });
  customer = await site.signedIn("customer@x");
  path = `/operator/accounts/${customer.account.id}`;
});

const audit = async () =>
  (await operator.get("/operator/audit")).body.entries.map(({ action, subject, detail }: any) => [
    action,
    subject,
    detail,
  ]);

test("an account is made, with what it needs to sign in", async () => {
  const given = { email: "new@x", plan: "plus", password: "battery staple", credit: 7 };
  const { body } = await operator.post("/operator/accounts", given);
  expect(site.office.keys.principal(body.api_key)?.account ?? null).toBe(body.id);
  expect((await site.browser().post("/sign-in", { email: "new@x", password: "battery staple" })).status).toBe(200);
  expect((await operator.get(`/operator/accounts/${body.id}`)).body).toMatchObject({
    email: "new@x",
    plan: "plus",
    credit: 7,
    has_password: true,
    numbers: { spendable: 80_007 },
  });
  expect(await audit()).toEqual([["account.create", "new@x", "plan plus, credit 7"]]);
  expect((await operator.post("/operator/accounts", { email: "NEW@x" })).status).toBe(409);
  expect(await audit()).toHaveLength(1);
});

test("accounts come in pages, with how many there are", async () => {
  for (const email of ["a@x", "b@x", "c@y"]) await site.office.accounts.create({ email });
  const all: string[] = [];
  for (let page = 1; page <= 3; page += 1) {
    const { body }: { body: any } = await operator.get(`/operator/accounts?limit=2&page=${page}`);
    expect([body.total, body.page]).toEqual([5, page]);
    all.push(...body.accounts.map(({ email }: any) => email));
  }
  expect(all).toEqual(["operator@x", "customer@x", "a@x", "b@x", "c@y"]);
  const csv = await (await operator.get("/operator/accounts.csv?search=%40x")).response.text();
  expect(csv.split("\r\n").map((line: string) => line.split(",")[1])).toEqual([
    "email",
    "operator@x",
    "customer@x",
    "a@x",
    "b@x",
    undefined,
  ]);
  for (const [query, field] of [
    ["sort=password_hash", "sort"],
    ["sort=--month", "sort"],
    ["page=-1", "page"],
    ["page=1e3", "page"],
    ["state=gone", "state"],
    ["used=80%25", "used"],
    ["after=3", "after"],
  ]) {
    const { status, body } = await operator.get(`/operator/accounts?${query}`);
    expect([query, status, body.error.message]).toEqual([query, 400, expect.stringContaining(field!)]);
  }
});

test("a plan, credit with a reason, and a password are given", async () => {
  await operator.post(`${path}/plan`, { plan: "pro" });
  const grant = { tokens: 1_000, reason: "sorry for the outage", reference: "outage-1" };
  for (let time = 0; time < 3; time++) await operator.post(`${path}/credit`, grant);
  await operator.post(`${path}/password`, { password: "battery staple" });
  expect((await operator.get(path)).body).toMatchObject({ plan: "pro", credit: 1_000 });
  expect((await customer.get("/overview")).status).toBe(401);
  expect((await customer.post("/sign-in", { email: "customer@x", password: "battery staple" })).status).toBe(200);
  expect(await audit()).toEqual([
    ["account.password", "customer@x", ""],
    ["account.credit", "customer@x", "1000 balance tokens: sorry for the outage"],
    ["account.plan", "customer@x", "from free to pro"],
  ]);
  expect(JSON.stringify(await audit())).not.toContain("battery staple");
});

test("the same reference for another account is another grant", async () => {
  const grant = { tokens: 1_000, reason: "a gift", reference: "gift" };
  await operator.post(`${path}/credit`, grant);
  await operator.post(`/operator/accounts/${operator.account.id}/credit`, grant);
  expect((await operator.get(path)).body.credit).toBe(1_000);
  expect((await operator.get(`/operator/accounts/${operator.account.id}`)).body.credit).toBe(1_000);
});

test("a disabled account's key and sessions are refused at once, until it is enabled", async () => {
  const { api_key, id } = customer.account;
  expect(site.office.keys.principal(api_key)?.account ?? null).toBe(id);
  expect((await operator.post(`${path}/state`, { disabled: true })).body.disabled).toBe(true);
  expect(site.office.keys.principal(api_key)?.account ?? null).toBeNull();
  expect((await customer.get("/overview")).status).toBe(401);
  const signIn = () => customer.post("/sign-in", { email: "customer@x", password: "correct horse" });
  expect((await signIn()).body.error.code).toBe("wrong_credentials");
  await operator.post(`${path}/state`, { disabled: false });
  expect(site.office.keys.principal(api_key)?.account ?? null).toBe(id);
  expect((await customer.get("/overview")).status).toBe(401);
  expect((await signIn()).status).toBe(200);
  expect((await audit()).map(([action]: string[]) => action)).toEqual(["account.enable", "account.disable"]);
});

test("what operators do to their own accounts is written down, what others do to theirs is not", async () => {
  for (const browser of [operator, customer]) {
    await browser.post("/key/regenerate", { confirm: true });
    await browser.post("/password", { old_password: "correct horse", new_password: "battery staple" });
  }
  expect(await audit()).toEqual([
    ["account.password", "operator@x", ""],
    ["key.rotate", "operator@x", ""],
  ]);
});

test("an operator does not lock himself out", async () => {
  const own = `/operator/accounts/${operator.account.id}/state`;
  expect((await operator.post(own, { disabled: true })).status).toBe(409);
  expect((await operator.get("/overview")).status).toBe(200);
});

describe("requests", () => {
  test("are approved once, whoever clicks how often", async () => {
    const { body: request } = await customer.post("/plan/requests", { kind: "credit", tokens: 2_000_000 });
    const { body: page } = await operator.get("/operator/requests?state=pending");
    expect(page.requests).toMatchObject([{ id: request.id, account: { email: "customer@x" }, tokens: 2_000_000 }]);
    const approve = () => operator.post(`/operator/requests/${request.id}/approve`, { note: "invoice 7" });
    const all = await Promise.all(Array.from({ length: 20 }, approve));
    expect(all.every(({ status, body }) => status === 200 && body.state === "approved")).toBe(true);
    expect((await operator.post(`/operator/requests/${request.id}/decline`, {})).status).toBe(409);
    expect((await customer.post(`/plan/requests/${request.id}/withdraw`)).status).toBe(409);
    expect((await customer.get("/plan")).body).toMatchObject({
      credit: 2_000_000,
      requests: [{ state: "approved", decision_note: "invoice 7" }],
    });
    expect(await audit()).toEqual([
      ["request.approve", "customer@x", `request ${request.id}: 2000000 balance tokens: invoice 7`],
    ]);
    expect((await operator.get("/operator/requests?state=pending")).body.requests).toEqual([]);
  });

  test("are declined without a grant", async () => {
    const { body: request } = await customer.post("/plan/requests", { kind: "plan", plan: "pro" });
    const { body } = await operator.post(`/operator/requests/${request.id}/decline`, {});
    expect(body.state).toBe("declined");
    expect((await customer.get("/plan")).body.plan).toBe("free");
    expect((await audit())[0]).toEqual(["request.decline", "customer@x", `request ${request.id}: plan pro`]);
  });
});

test("an action and its entry in the log are in one commit: what the disk did not take is in neither", async () => {
  const { office } = site;
  office.storage.immediate = false;
  const granted = operator.post(`${path}/credit`, { tokens: 1_000, reason: "a gift" });
  await office.underWay();
  office.storage.giveUp();
  expect((await granted).status).toBe(503);
  office.storage.immediate = true;
  expect(await audit()).toEqual([]);
  expect((await operator.get(path)).body.credit).toBe(0);
});

test("the log says who, when, from where, and goes on over pages", async () => {
  for (let time = 0; time < 5; time++) {
    site.office.now += 1_000;
    await operator.post(`${path}/plan`, { plan: time % 2 === 0 ? "plus" : "pro" });
  }
  const first = (await operator.get("/operator/audit?limit=2")).body;
  expect(first.entries[0]).toEqual({
    id: 5,
    time: new Date(site.office.now).toISOString(),
    operator: "operator@x",
    address: "192.0.2.1",
    action: "account.plan",
    subject: "customer@x",
    detail: "from pro to plus",
  });
  const ids: number[] = first.entries.map(({ id }: any) => id);
  for (let page = 2; page <= 3; page += 1) {
    const { body } = await operator.get(`/operator/audit?limit=2&page=${page}`);
    expect([body.total, body.page]).toEqual([5, page]);
    ids.push(...body.entries.map(({ id }: any) => id));
  }
  expect(ids).toEqual([5, 4, 3, 2, 1]);
  expect((await operator.get("/operator/audit?limit=2&page=99999")).body.page).toBe(3);
  const found = async (query: string) =>
    (await operator.get(`/operator/audit?${query}`)).body.entries.map(({ id }: any) => id);
  expect(await found("sort=time&operator=operator%40x&account=customer%40x&action=account.plan")).toEqual([
    1, 2, 3, 4, 5,
  ]);
  expect(await found("operator=server")).toEqual([]);
  expect(await found(`from=${first.entries[0].time}`)).toEqual([5]);
  expect(await found(`to=${first.entries[1].time}`)).toEqual([3, 2, 1]);
  for (const [query, status] of [
    ["operator=nobody%40x", 404],
    ["from=yesterday", 400],
    ["action='%20OR%201=1", 400],
    ["page=-1", 400],
  ] as const)
    expect([query, (await operator.get(`/operator/audit?${query}`)).status]).toEqual([query, status]);
});

test("a disk that cannot be read is told as such", async () => {
  const failing = new ConsoleSite({
    usage: {
      page: () => Promise.reject(new StoreUnavailable("no disk")),
      summary: () => Promise.reject(new StoreUnavailable("no disk")),
      overTime: () => Promise.reject(new StoreUnavailable("no disk")),
      report: () => Promise.reject(new StoreUnavailable("no disk")),
      accounts: () => Promise.reject(new StoreUnavailable("no disk")),
    },
  });
  const browser = await failing.signedIn("a@x", { operator: true });
  for (const each of ["/overview", "/usage", "/usage/summary", "/over-time?range=1h&by=model", "/operator/accounts"]) {
    const { status, body } = await browser.get(each);
    expect([each, status, body.error.code]).toEqual([each, 503, "unavailable"]);
  }
});

test("an account's data is downloaded, by itself and by an operator, whose export is written down first", async () => {
  const own = await customer.post("/export");
  expect(own.body).toEqual({ account: { email: "customer@x" } });
  expect(own.response.headers.get("content-disposition")).toMatch(
    /^attachment; filename="tollgate-account-2-2026-03-28\.json"$/,
  );
  expect(await audit()).toEqual([]);
  expect((await operator.post(`${path}/export`)).body).toEqual({ account: { email: "customer@x" } });
  expect(await audit()).toEqual([["account.export", "customer@x", ""]]);
  expect((await operator.post("/operator/accounts/99/export")).status).toBe(404);
});

test.each([
  ["is being exported already", "busy", 503, "busy"],
  ["was exported often", "too_many", 429, "too_many_attempts"],
] as const)("data that %s is refused with a time to come back, and no entry", async (_, noExport, status, code) => {
  const refuse = { export: async () => ({ noExport, retrySeconds: 10 }), erase: () => Promise.reject() };
  site = new ConsoleSite({ accountData: refuse });
  operator = await site.signedIn("operator@x", { operator: true });
  const reply = await operator.post(`/operator/accounts/1/export`);
  expect([reply.status, reply.body.error.code, reply.response.headers.get("retry-after")]).toEqual([
    status,
    code,
    "10",
  ]);
  expect(await audit()).toEqual([]);
});

test("an account is deleted when its e-mail was typed and nothing of it is open; the log has no e-mail then", async () => {
  const confirm = "customer@x";
  const wrong = await operator.post(`${path}/delete`, { confirm: "costumer@x" });
  expect([wrong.status, wrong.body.error.message]).toEqual([400, "Type customer@x to delete this account."]);
  expect((await operator.post("/operator/accounts/99/delete", { confirm })).status).toBe(404);
  const own = await operator.post(`/operator/accounts/${operator.account.id}/delete`, { confirm: "operator@x" });
  expect(own.status).toBe(409);

  const hold = site.office.admit(customer.account.id, ask());
  if (isRefusal(hold)) throw new Error(hold.refusal);
  const open = await operator.post(`${path}/delete`, { confirm });
  expect([open.status, open.body.error.message]).toEqual([
    409,
    "customer@x has a request that is open. Disable it, and delete it when they have ended.",
  ]);
  expect((await operator.get(path)).body).toMatchObject({ email: "customer@x", disabled: false });
  expect(await audit()).toEqual([]);

  hold[Symbol.dispose]();
  const name = `deleted-${customer.account.id}@invalid`;
  expect((await operator.post(`${path}/delete`, { confirm })).body).toMatchObject({ email: name, disabled: true });
  expect(await audit()).toEqual([["account.delete", name, "its e-mail and stored responses were erased"]]);
  expect((await customer.get("/overview")).status).toBe(401);
  const credited = await operator.post(`${path}/credit`, { tokens: 5, reason: "sorry" });
  expect([credited.status, credited.body.error.message]).toEqual([
    400,
    expect.stringContaining("is a deleted account"),
  ]);
  expect(JSON.stringify((await operator.get("/operator/audit")).body)).not.toContain("customer@x");
});

test("an account whose coder call is open is not deleted", async () => {
  using _call = site.office.hold(customer.account.id, coderAsk());
  const { status, body } = await operator.post(`${path}/delete`, { confirm: "customer@x" });
  expect([status, body.error.message]).toEqual([
    409,
    "customer@x has a request that is open. Disable it, and delete it when they have ended.",
  ]);
  expect((await operator.get(path)).body).toMatchObject({ email: "customer@x", disabled: false });
});

test("a reload tells what changed and what needs a restart, or why it was refused; both are written down", async () => {
  expect((await operator.get("/operator/server")).body).toEqual({
    gateway: null,
    started_at: "1970-01-01T00:00:00.000Z",
    config_file: "tollgate.toml",
    config_loaded_at: "2026-03-28T12:00:00.000Z",
    reload: null,
    backup_folder: "backups",
    disk_free_bytes: 2_000_000_000,
    backup: null,
    backup_schedule: { every_ms: 86_400_000, keep: 7 },
    backups: [{ file: "scheduled.db", bytes: 100, made_at: "2026-03-28T12:00:00.000Z" }],
    webhooks: [],
  });
  site.reloaded = { applied: ["nodes", "queue"], needsRestart: ["server.port"] };
  const time = "2026-03-28T12:00:00.000Z";
  const done = { time, refused: null, applied: ["nodes", "queue"], needs_restart: ["server.port"] };
  expect((await operator.post("/operator/server/reload")).body.reload).toEqual(done);
  site.reloaded = { refused: `tollgate.toml:3: ${"x".repeat(600)}` };
  expect((await operator.post("/operator/server/reload")).body.reload.refused).toBe(site.reloaded.refused);
  expect((await operator.get("/operator/server")).body.reload.refused).toBe(site.reloaded.refused);
  const entries = await audit();
  expect(entries[0][2]).toHaveLength(500);
  expect(entries).toMatchObject([
    ["server.reload", "", expect.stringMatching(/^refused: tollgate\.toml:3: x+$/)],
    ["server.reload", "", "applied: nodes, queue; needs a restart: server.port"],
  ]);
});

test.each([
  ["is made", { bytes: 4096 }, { state: "done", bytes: 4096, message: "" }, ": 4096 bytes, checked"],
  [
    "fails",
    { failed: "the disk is full" },
    { state: "failed", message: "the disk is full" },
    "failed: the disk is full",
  ],
])("a backup %s once at a time, and is written down when it ended", async (_, outcome, shown, detail) => {
  const file = "tollgate-2026-03-28T12-00-00.db";
  expect((await operator.post("/operator/server/backup")).body.backup).toMatchObject({ state: "running", file });
  expect((await operator.post("/operator/server/backup")).status).toBe(409);
  expect(await audit()).toEqual([]);
  site.backedUp.resolve(outcome);
  await eventually("it is in the log", async () => (await audit()).length === 1);
  expect((await operator.get("/operator/server")).body.backup).toMatchObject({ file, ...shown });
  expect((await audit())[0]).toEqual(["server.backup", "", expect.stringContaining(detail)]);
});

describe("the request log", () => {
  const row = {
    requestId: "req_1",
    at: Date.UTC(2026, 2, 28),
    account: 2,
    key: 1,
    keyName: null,
    endpoint: "/v1/messages",
    model: "core-3",
    askedModel: null,
    tags: null,
    costCenter: null,
    address: "192.0.2.7",
    priority: null,
    status: 429,
    reason: "quota_exceeded",
    input: 1,
    cachedInput: 0,
    output: 2,
    reasoning: 0,
    inputCents: null,
    cachedInputCents: null,
    outputCents: null,
    inputParts: null,
    cachedInputParts: null,
    outputParts: null,
    billedTokens: 0,
    more: 3,
    cause: "status 503: it is full",
    node: "gpu",
    waitMs: 1,
    sentMs: 2,
    firstTokenMs: null,
    durationMs: 4,
  };
  let asked: LogFilter[];
  const withLog = async (rows = [row]): Promise<[ConsoleSite, ConsoleBrowser, ConsoleBrowser]> => {
    asked = [];
    const requestLog: RequestLogQueries = {
      async page(filter) {
        asked.push(filter);
        return { rows, next: { served: 7, failed: 3 }, searchedTo: null, gone: 5 };
      },
      credits: () => Promise.reject(new Error("the page asks for no credit")),
      nearLimit: () => Promise.resolve([]),
      lastAddresses: () => Promise.resolve(new Map()),
    };
    const site = new ConsoleSite({ requestLog });
    return [site, await site.signedIn("operator@x", { operator: true }), await site.signedIn("customer@x")];
  };

  test("is shown with addresses and names of keys, and filtered by them", async () => {
    const [, operator, customer] = await withLog();
    const { id } = customer.account;
    const { body } = await operator.get("/operator/log?account=CUSTOMER%40x&key=default&status=4xx&wait_min_ms=10");
    expect(asked[0]).toMatchObject({ account: id, key: 1, status: [400, 499], waitMinMs: 10, reason: null });
    expect(body).toMatchObject({ next: "7-3", gone: 5, nodes: ["one"] });
    expect(body.models).toContain("core-3");
    expect(body.reasons).toContain("quota_exceeded");
    expect(body.rows[0]).toMatchObject({
      request_id: "req_1",
      time: "2026-03-28T00:00:00.000Z",
      account: "customer@x",
      key: "default",
      more: 3,
      why: expect.stringContaining("balance"),
      cause: "status 503: it is full",
    });
    await operator.get("/operator/log?account=nobody&after=7-3");
    expect(asked[1]).toMatchObject({ account: 0, key: null });
  });

  test.each([
    ["status=40", 400],
    ["from=yesterday", 400],
    ["wait_min_ms=-1", 400],
    ["account=nobody@there", 404],
    ["account=customer@x&key=none", 404],
    ["key=laptop", 400],
    ["after=1", 400],
    ["model=a&other=b", 400],
  ])("with %s answers %i and looks for nothing", async (query, status) => {
    const [, operator] = await withLog();
    expect((await operator.get(`/operator/log?${query}`)).status).toBe(status);
    expect(asked).toEqual([]);
  });

  test("is the operators', and accounts are told of their own refused requests alone, in plain words", async () => {
    const [, , customer] = await withLog();
    expect((await customer.get("/operator/log")).status).toBe(403);
    expect(asked).toEqual([]);
    const { body } = await customer.get("/refusals?limit=5");
    expect(asked).toMatchObject([{ account: customer.account.id, reason: "failed" }]);
    expect(body.rows).toEqual([
      {
        time: "2026-03-28T00:00:00.000Z",
        request_id: "req_1",
        endpoint: "/v1/messages",
        model: "core-3",
        key: "default",
        status: 429,
        reason: "quota_exceeded",
        more: 3,
        why: expect.stringContaining("allowance renews at 00:00 UTC"),
      },
    ]);
    expect(JSON.stringify(body)).not.toContain("gpu"); // what nodes are called is the operators'
  });
});
