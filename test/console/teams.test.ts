// Teams in the console: an admin invites by a link, people join with the account that they have or a new one, each sees what
// is theirs, and nobody does what only admins may.
import { describe, expect, test } from "bun:test";
import { Teams } from "../../src/account/people/teams.ts";
import type { UsageQueries } from "../../src/account/usage-queries.ts";
import type { Reply } from "./console-site.ts";
import { type ConsoleBrowser, ConsoleSite } from "./console-site.ts";

const told = ({ status, body }: Reply) => [status, body.error?.code];
const tokenOf = ({ body }: Reply): string => body.path.split("#")[1];

async function open(options: ConstructorParameters<typeof ConsoleSite>[0] = {}) {
  const site = new ConsoleSite(options);
  const admin = await site.signedIn("admin@x");
  const other = await site.signedIn("other@x");
  const id = await site.office.units.change(async ({ accounts, teams }) => {
    const made = await accounts.create({ email: "lab", team: true });
    await new Teams(teams).add(made.id, admin.account.id, { role: "admin" });
    return made.id;
  });
  const of = (path: string) => `/teams/${id}${path}`;
  const principal = (key: string) => site.office.keys.principal(key);
  return { site, admin, other, id, of, principal };
}

describe("a team", () => {
  test("is joined by a link with the account that one has, or makes one, once", async () => {
    const { site, admin, other, id, of } = await open();
    const made = await admin.post(of("/invite"), { limit_day: 500 });
    expect(made.body.path).toMatch(/^\/join#[\w-]{43}$/);
    const token = tokenOf(made);
    expect((await site.browser().post("/link", { token })).body).toMatchObject({ kind: "invitation", team: "lab" });
    expect((await other.get("/session")).body.account.team).toBe(false);
    expect((await other.post("/teams/join", { token })).status).toBe(200);
    expect((await other.get("/session")).body.account.team).toBe(true);
    expect(told(await admin.post("/teams/join", { token }))).toEqual([400, "invalid_request"]);
    const shown = await other.get(of(""));
    expect(shown.body).toMatchObject({
      name: "lab",
      own: { member: { role: "member", limit_day: 500 } },
      managed: null,
    });
    const token2 = tokenOf(await admin.post(of("/invite"), { email: "new@x" }));
    expect(told(await other.post("/teams/join", { token: token2 }))).toEqual([403, "forbidden"]); // for another address
    const fresh = site.browser();
    const { status } = await fresh.post("/link/use", { token: token2, password: "long enough 1" });
    expect([status, (await fresh.get("/session")).body.account.team]).toEqual([200, true]);
    const members = (await admin.get(of(""))).body.managed.members;
    expect(
      members.map(({ email, limit_day }: { email: string; limit_day: number | null }) => [email, limit_day]),
    ).toEqual([
      ["admin@x", null],
      ["other@x", 500],
      ["new@x", null],
    ]);
    expect(told(await admin.post("/teams/join", { token: tokenOf(await admin.post(of("/invite"), {})) }))).toEqual([
      400,
      "invalid_request",
    ]); // in it already
    expect((await site.office.auditLog.list(100)).map(({ action, subject }) => [action, subject])).toContainEqual([
      "invitation.create",
      id,
    ]);
  });

  test("has reports, statements and charts for its admins, and nobody else's for them", async () => {
    const asked: (number | null)[] = [];
    const usage: UsageQueries = {
      ...new ConsoleSite().parts.usage,
      report: async ({ account }) => (asked.push(account), { rows: [], cutsFoldedDay: false }),
      overTime: async ({ account }) => (asked.push(account), { steps: [], onlyDays: false }),
    };
    const { admin, other, id, site } = await open({ usage });
    const head = await site.signedIn("head@x", { operator: true });
    await site.office.units.change(async ({ teams }) => new Teams(teams).add(id, other.account.id, { role: "member" }));
    const paths = [
      "/reports?by=model",
      "/reports.csv?by=model",
      "/statement?month=2026-10&form=csv",
      "/over-time?by=model",
    ];
    const ask = async (who: ConsoleBrowser, account: string) => {
      asked.length = 0;
      const replies: number[] = [];
      for (const path of paths) replies.push((await who.get(`${path}&account=${account}`)).status);
      return [new Set(replies), new Set(asked)];
    };
    const [done, refused] = [new Set([200]), new Set([400])];
    expect(await ask(admin, "lab")).toEqual([done, new Set([id])]);
    expect(await ask(admin, "LAB")).toEqual([done, new Set([id])]);
    expect(await ask(admin, "")).toEqual([done, new Set([admin.account.id])]);
    expect(await ask(head, "lab")).toEqual([done, new Set([id])]);
    for (const [who, account] of [
      [other, "lab"], // a member
      [admin, "other@x"], // the account of a member
      [admin, "nobody"],
      [other, "admin@x"],
      [admin, "*"],
    ] as const)
      expect([account, await ask(who, account)]).toEqual([account, [refused, new Set()]]);
    await site.office.units.change(async ({ teams }) =>
      new Teams(teams).update(id, admin.account.id, { role: "member" }),
    );
    expect(await ask(admin, "lab")).toEqual([refused, new Set()]);
  });

  test("shows its open invitations to its admins, who take them back", async () => {
    const { site, admin, other, of } = await open();
    const token = tokenOf(await admin.post(of("/invite"), { email: "new@x", limit_day: 5 }));
    await other.post("/teams/join", { token: tokenOf(await admin.post(of("/invite"), {})) });
    const [invitation, ...more] = (await admin.get(of(""))).body.managed.invitations;
    expect([invitation, more]).toMatchObject([{ email: "new@x", limit_day: 5, limit_month: null }, []]);
    const { id: elsewhere } = await site.office.units.change(async ({ accounts, links, now }) => {
      const plain = await accounts.invitation({ email: null, plan: "free", credit: 0, expiresAt: now + 60_000 });
      return (await links.make(plain)).link;
    });
    expect(told(await other.post(of("/withdraw"), { invitation: invitation.id }))).toEqual([409, "conflict"]);
    expect(told(await admin.post(of("/withdraw"), { invitation: elsewhere }))).toEqual([409, "conflict"]);
    expect((await admin.post(of("/withdraw"), { invitation: invitation.id })).status).toBe(200);
    expect((await admin.get(of(""))).body.managed.invitations).toEqual([]);
    expect((await site.browser().post("/link", { token })).status).toBe(400);
  });

  test("has keys of its members and of its own, which spend from it and end with who leaves", async () => {
    const { site, admin, other, id, of, principal } = await open();
    await other.post("/teams/join", { token: tokenOf(await admin.post(of("/invite"), {})) });
    const make = async (who: ConsoleBrowser, service: boolean, name = "bot") =>
      (await who.post(of("/keys"), { name, service })).body;
    const [service, own] = [await make(admin, true), await make(other, false)];
    for (const { api_key } of [service, own]) expect(principal(api_key)).toMatchObject({ account: id });
    expect((await admin.get(of(""))).body.managed.keys).toMatchObject([{ id: service.id, name: "bot" }]);
    expect((await other.get(of(""))).body.own.keys).toMatchObject([{ id: own.id, name: "bot", member: "other@x" }]);
    // A member sees, changes and revokes nothing of others.
    expect(told(await other.post(of("/keys"), { name: "mine", service: true }))).toEqual([409, "conflict"]);
    for (const wanted of [
      { key: service.id, service: true },
      { key: service.id, service: false },
    ])
      expect((await other.post(of("/revoke"), wanted)).status).toBeGreaterThanOrEqual(404);
    for (const [path, body] of [
      ["/invite", {}],
      ["/change", { account: admin.account.id, role: "member" }],
      ["/change", { account: other.account.id, role: "admin" }],
      ["/remove", { account: admin.account.id }],
    ] as const)
      expect(told(await other.post(of(path), body))).toEqual([409, "conflict"]);
    expect(principal(service.api_key)).not.toBeNull();
    // Who leaves by oneself, who is removed, and who is disabled.
    expect((await other.post(of("/remove"), { account: other.account.id })).status).toBe(200);
    expect(principal(own.api_key)).toBeNull();
    expect((await other.get(of(""))).status).toBe(404);
    await other.post("/teams/join", { token: tokenOf(await admin.post(of("/invite"), {})) });
    const again = await make(other, false);
    await site.office.units.change(({ accounts }) => accounts.setDisabled(other.account.id, true));
    expect(principal(again.api_key)).toBeNull();
    expect(principal(service.api_key)).not.toBeNull();
  });

  test("has no password, no sign-in and no operator", async () => {
    const { site, id } = await open();
    for (const work of [
      () => site.office.units.change(({ accounts }) => accounts.setPassword(id, "hash")),
      () => site.office.units.change(({ accounts }) => accounts.setOperator(id, true)),
      () => site.office.units.change(({ accounts }) => accounts.passwordLink(id, site.office.now + 1_000)),
    ])
      expect(work()).rejects.toThrow("lab is a team");
    for (const name of ["a@b", "", " lab", "x".repeat(65), "deleted-1@invalid", "a\u202eb"])
      expect(
        site.office.units.change(({ accounts }) => accounts.create({ email: name, team: true })),
      ).rejects.toThrow();
  });
});
