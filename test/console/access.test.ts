// Who may call what: every route of the console's API, taken from its table, called by strangers, by other accounts and
// from other sites.
import { Teams } from "../../src/account/people/teams.ts";
import { Value } from "@sinclair/typebox/value";
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { type ConsoleBrowser, ConsoleSite, baseUrl } from "./console-site.ts";

const { routes } = new ConsoleSite();
const changes = routes.filter(({ method }) => method === "POST");
const name = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

/** A body that the route takes, as far as a schema can tell. */
const bodies: Readonly<Record<string, object>> = {
  "/sign-in": { email: "victim@x", password: "correct horse" },
  "/sign-up": { email: "new@x", password: "correct horse" },
  "/password": { old_password: "correct horse", new_password: "battery staple" },
  "/keys": { name: "bot" },
  "/keys/:id/name": { name: "robot" },
  "/keys/:id/limits": { limit_day: 1 },
  "/teams/join": { token: "a" },
  "/teams/:id/invite": {},
  "/teams/:id/change": { account: 1, limit_day: 5 },
  "/teams/:id/remove": { account: 1 },
  "/teams/:id/withdraw": { invitation: 1 },
  "/teams/:id/keys": { name: "bot", service: true },
  "/teams/:id/revoke": { key: 2, service: true },
  "/device": { user_code: "BBBB-CCCC" },
  "/device/approve": { user_code: "BBBB-CCCC", name: "laptop" },
  "/device/deny": { user_code: "BBBB-CCCC" },
  "/key/regenerate": { confirm: true },
  "/provider/start": {},
  "/provider/finish": { query: "?state=a&code=b" },
  "/link": { token: "a" },
  "/link/use": { token: "a", email: "new@x", password: "correct horse" },
  "/forgotten": { email: "victim@x" },
  "/mail/address": { address: "victim@x.example" },
  "/mail/confirm": { token: "a" },
  "/mail/kinds": { kinds: ["limits"] },
  "/mail/unsubscribe": { token: "a" },
  "/language": { language: "de" },
  "/operator/accounts/:id/address": { address: "victim@x.example" },
  "/plan/requests": { kind: "credit", tokens: 1_000_000 },
  "/plan/checkout": { tokens: 1_000_000 },
  "/operator/accounts": { email: "made@x" },
  "/operator/invitations": {},
  "/operator/accounts/:id/plan": { plan: "pro" },
  "/conversations/choice": { on: false, version: 0 },
  "/conversations/write": { id: "a", known: false, records: [{ id: "a", words: "", content: "" }] },
  "/conversations/remove": { ids: ["a"] },
  "/operator/accounts/:id/keys": { name: "bot" },
  "/operator/accounts/:id/keys/name": { key: 2, name: "robot" },
  "/operator/accounts/:id/keys/limits": { key: 2, limit_day: 1 },
  "/operator/accounts/:id/keys/revoke": { key: 2 },
  "/operator/accounts/:id/cost-center": { cost_center: "lab" },
  "/operator/accounts/:id/sessions/end": {},
  "/operator/accounts/:id/credit": { tokens: 5, reason: "a gift" },
  "/operator/accounts/:id/state": { disabled: true },
  "/operator/accounts/:id/password": { password: "battery staple" },
  "/deletion": { confirm: "victim@x" },
  "/operator/accounts/:id/delete": { confirm: "victim@x" },
  "/operator/batches/cancel": { id: "batch_a" },
  "/operator/nodes/drain": { name: "one" },
  "/operator/nodes/resume": { name: "one" },
  "/operator/nodes/test": { name: "one" },
  "/operator/webhooks/test": { name: "ops" },
  "/operator/requests/:id/approve": {},
  "/operator/requests/:id/decline": {},
  "/operator/config": { set: ["nodes.gpu-1.slots=1"] },
  "/operator/config/undo": {},
  "/undo": { name: "of-no-change-here" },
};

test("every route that takes a body is tried with one that fits", () => {
  for (const { path, body } of routes) {
    if (body !== null) expect([path, Value.Check(body as TSchema, bodies[path])]).toEqual([path, true]);
  }
});

describe("a change that does not come from our own pages is refused and changes nothing", () => {
  const json = { "content-type": "application/json" };
  const forms = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"];
  const rows: readonly (readonly [string, Record<string, string>])[] = [
    ["without Origin", json],
    ["from another site", { ...json, origin: "http://evil.test" }],
    ["from a site whose name begins like ours", { ...json, origin: `${baseUrl}.evil.test` }],
    ["from another port", { ...json, origin: `${baseUrl}:81` }],
    ["from another scheme", { ...json, origin: "ftp://console.test" }],
    ["from nowhere (null)", { ...json, origin: "null" }],
    ["from nonsense", { ...json, origin: "console.test" }],
    ["with two origins", { ...json, origin: `${baseUrl}, http://evil.test` }],
    ...forms.map((type) => [`as a form of our own (${type})`, { "content-type": type, origin: baseUrl }] as const),
  ];

  let site: ConsoleSite;
  let operator: ConsoleBrowser;
  beforeAll(async () => {
    site = new ConsoleSite({ signUp: true });
    operator = await site.signedIn("operator@x", { operator: true });
    await operator.post("/plan/requests", { kind: "credit", tokens: 1_000_000 });
  });

  const everything = () =>
    JSON.stringify(
      ["accounts", "sessions", "purchase_requests", "payments", "audit_log", "journal"].map((table) =>
        site.office.database.query(`SELECT * FROM ${table}`).all(),
      ),
    );

  for (const route of changes) {
    test.each(rows)(`${name(route)} %s`, async (_, headers) => {
      const before = everything();
      const response = await site.send(`/console/api${route.path.replace(":id", "1")}`, {
        method: "POST",
        headers: { ...headers, cookie: operator.cookie },
        body: JSON.stringify(bodies[route.path] ?? {}),
      });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { code: "foreign_origin" } });
      expect(everything()).toBe(before);
      expect(response.headers.get("set-cookie")).toBeNull();
    });
  }
});

describe("without a session", () => {
  const site = new ConsoleSite();
  for (const route of routes.filter(({ access }) => access !== "public")) {
    test.each([
      ["no cookie", ""],
      ["an empty one", "tollgate_session="],
      ["an invented one", `tollgate_session=${"a".repeat(43)}`],
      ["the cookie of another name", `__Host-tollgate_session=${"a".repeat(43)}`],
    ])(`${name(route)} is 401 with %s`, async (_, cookie) => {
      const response = await site.send(`/console/api${route.path.replace(":id", "1")}`, {
        method: route.method,
        headers: { cookie, origin: baseUrl, "content-type": "application/json" },
        ...(route.method === "GET" ? {} : { body: JSON.stringify(bodies[route.path] ?? {}) }),
      });
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code: "not_signed_in" } });
    });
  }
});

describe("an account that is no operator", () => {
  let site: ConsoleSite;
  let victim: ConsoleBrowser;
  let other: ConsoleBrowser;
  let requestId: number;
  let sessionId: number;
  let keyId: number;
  let teamId: number;
  beforeAll(async () => {
    site = new ConsoleSite();
    victim = await site.signedIn("victim@x");
    other = await site.signedIn("other@x");
    requestId = (await victim.post("/plan/requests", { kind: "credit", tokens: 1_000_000 })).body.id;
    keyId = (await victim.post("/keys", { name: "bot" })).body.id;
    const added = site.office.units.change(async ({ accounts, teams }) => {
      const { id } = await accounts.create({ email: "victims", team: true });
      await new Teams(teams).add(id, victim.account.id, { role: "admin" });
      return id;
    });
    teamId = await added;
    sessionId = (await victim.get("/sessions")).body.sessions[0].id;
  });

  const operatorRoutes = routes.filter(({ access }) => access === "operator");

  test("there are operator routes, and routes with ids", () => {
    expect(operatorRoutes.length).toBeGreaterThan(10);
    expect(routes.filter(({ path }) => path.includes(":id")).length).toBeGreaterThan(9);
  });

  for (const route of operatorRoutes) {
    test(`gets 403 from ${name(route)}, whether what it names exists or not`, async () => {
      for (const id of [victim.account.id, requestId, 999_999]) {
        const path = route.path.replace(":id", String(id));
        const { status, body } =
          route.method === "GET" ? await other.get(path) : await other.post(path, bodies[route.path] ?? {});
        expect([status, body.error.code]).toEqual([403, "forbidden"]);
      }
    });
  }

  for (const route of routes.filter(({ access, path }) => access === "account" && path.includes(":id"))) {
    test(`gets 404 from ${name(route)} of another account, as for what does not exist`, async () => {
      const of = { sessions: sessionId, keys: keyId, teams: teamId }[route.path.split("/")[1]!];
      const own = of ?? requestId;
      const bodiesOf: unknown[] = [];
      for (const id of [own, 999_999]) {
        const path = route.path.replace(":id", String(id));
        const { status, body } =
          route.method === "GET" ? await other.get(path) : await other.post(path, bodies[route.path]);
        expect(status).toBe(404);
        bodiesOf.push(body);
      }
      expect(bodiesOf[0]).toEqual(bodiesOf[1]);
    });
  }

  test("has left the other account as it was", async () => {
    expect((await victim.get("/overview")).status).toBe(200);
    expect((await victim.get("/plan")).body).toMatchObject({ plan: "free", credit: 0 });
    expect((await victim.get("/plan")).body.requests).toMatchObject([{ id: requestId, state: "pending" }]);
    expect((await victim.get("/sessions")).body.sessions).toHaveLength(1);
    expect((await victim.get("/keys")).body.keys).toMatchObject([
      { name: "default" },
      { id: keyId, name: "bot", limit_day: null },
    ]);
  });

  test("sees only its own in every list", async () => {
    for (const { path } of routes.filter(({ method, access }) => method === "GET" && access === "account")) {
      const { body } = path === "/events" ? { body: null } : await other.get(path);
      expect([path, JSON.stringify(body)?.includes("victim@x")]).toEqual([path, false]);
    }
  });
});

describe("while a body is on its way", () => {
  let site: ConsoleSite;
  let operator: ConsoleBrowser;
  let sender: ConsoleBrowser;
  beforeEach(async () => {
    site = new ConsoleSite();
    operator = await site.signedIn("operator@x", { operator: true });
    sender = await site.signedIn("sender@x", { operator: true });
  });

  /** Sends a call whose body ends after `meanwhile`. */
  async function slowly(path: string, body: object, meanwhile: () => unknown): Promise<unknown[]> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const answered = site.send(`/console/api${path}`, {
      method: "POST",
      headers: { cookie: sender.cookie, origin: baseUrl, "content-type": "application/json" },
      body: readable,
    });
    const [head, tail] = [JSON.stringify(body).slice(0, 1), JSON.stringify(body).slice(1)];
    await writer.write(new TextEncoder().encode(head));
    await meanwhile();
    await writer.write(new TextEncoder().encode(tail));
    await writer.close();
    const { status } = await answered;
    return [
      status,
      site.office.keys.principal(sender.account.api_key)?.account ?? null,
      await site.office.accounts.count(),
    ];
  }

  test("a session that stays good goes on", async () => {
    const made = { email: "made@x" };
    expect(await slowly("/operator/accounts", made, () => {})).toEqual([200, sender.account.id, 3]);
  });

  test("whoever's sessions were ended gets no new key", async () => {
    const endAll = () => site.office.sessions.endAll(sender.account.id, null);
    expect(await slowly("/key/regenerate", { confirm: true }, endAll)).toEqual([401, sender.account.id, 2]);
  });

  test("a disabled account gets no new key", async () => {
    const disable = () => site.office.accounts.setDisabled(sender.account.id, true);
    expect(await slowly("/key/regenerate", { confirm: true }, disable)).toEqual([401, null, 2]);
  });

  test("a dismissed operator makes no account", async () => {
    const dismiss = () => site.office.database.run("UPDATE accounts SET operator = 0 WHERE email = 'sender@x'");
    expect(await slowly("/operator/accounts", { email: "made@x", operator: true }, dismiss)).toEqual([
      403,
      sender.account.id,
      2,
    ]);
    expect((await operator.get("/operator/accounts?search=made")).body.accounts).toEqual([]);
  });
});

describe("what does not fit its schema is 400 and says what was expected", () => {
  let operator: ConsoleBrowser;
  beforeAll(async () => {
    operator = await new ConsoleSite().signedIn("operator@x", { operator: true });
  });

  test.each([
    ["/key/regenerate", {}, "confirm"],
    ["/key/regenerate", { confirm: false }, "confirm"],
    ["/key/regenerate", { confirm: true, more: 1 }, "more is unknown"],
    ["/password", { old_password: "x", new_password: "short" }, "new_password must be a password of 8"],
    ["/plan/requests", { kind: "credit", tokens: 999_999 }, "tokens"],
    ["/plan/requests", { kind: "credit", tokens: 100_000_001 }, "tokens"],
    ["/plan/requests", { kind: "plan", plan: "gold" }, "P one of"],
    ["/plan/requests", { kind: "gift" }, "kind"],
    ["/operator/accounts", { email: "a", operator: true }, "email"],
    ["/operator/accounts/1/credit", { tokens: 0, reason: "x" }, "tokens"],
    ["/operator/accounts/1/credit", { tokens: 1.5, reason: "x" }, "tokens"],
    ["/operator/accounts/1/credit", { tokens: -5, reason: "x" }, "tokens"],
    ["/operator/accounts/1/credit", { tokens: 5 }, "reason"],
    ["/operator/accounts/1/credit", [], ""],
  ])("%s %j", async (path, body, words) => {
    const { status, body: said } = await operator.post(path, body);
    expect([status, said.error.code]).toEqual([400, "invalid_request"]);
    expect(said.error.message).toContain(words);
  });

  test("a password is never repeated in a message", async () => {
    const { body } = await operator.post("/password", { old_password: "x", new_password: "geheim" });
    expect(JSON.stringify(body)).not.toContain("geheim");
  });

  test.each(["{", "", "[1", '{"confirm": tru'])("%p is no JSON", async (body) => {
    const response = await operator.console.send("/console/api/key/regenerate", {
      method: "POST",
      headers: { cookie: operator.cookie, origin: baseUrl, "content-type": "application/json" },
      body,
    });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: "invalid_request" } }]);
  });

  test("a body of more than 64 KiB is not read", async () => {
    const { status } = await operator.post("/plan/requests", { note: "x".repeat(70_000) });
    expect(status).toBe(400);
  });

  test.each(["/operator/accounts/x", "/operator/accounts/1e3", "/operator/accounts/-1", "/nothing", "/"])(
    "GET %s is 404",
    async (path) => {
      expect((await operator.get(path)).status).toBe(404);
    },
  );
});

test("every reply says that nobody may keep it, guess its type, frame it or learn where it was", async () => {
  const site = new ConsoleSite();
  const operator = await site.signedIn("operator@x", { operator: true });
  for (const { path } of routes.filter(({ method }) => method === "GET")) {
    const { response } = await operator.get(path.replace(":id", "1"));
    const { headers } = response;
    expect([path, headers.get("cache-control")]).toEqual([path, "no-store"]);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-frame-options")).toBe("DENY");
    if (!response.bodyUsed) await response.body?.cancel();
  }
  site.site.close();
});
