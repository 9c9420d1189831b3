// Links that operators make, as who opens them meets them: each works once, for what it was made, until it expires.
import { describe, expect, test } from "bun:test";
import { invitationMs } from "../../src/office/verbs/accounts.ts";
import { passwordLinkMs, signInAddressTriesMax } from "../../src/core/limits.ts";
import { linkKeptMs } from "../../src/account/sign-in/access-links.ts";
import { Passwords } from "../../src/account/sign-in/passwords.ts";
import { cheapHasher, Office } from "../account/office.ts";
import { type ConsoleBrowser, ConsoleSite, type Reply } from "./console-site.ts";

const password = "a new password";
const told = ({ status, body }: Reply) => [status, body.error?.code];
const tokenOf = ({ body }: Reply): string => body.path.split("#")[1];

async function siteWithOperator(site = new ConsoleSite()): Promise<[ConsoleSite, ConsoleBrowser]> {
  return [site, await site.signedIn("head@x", { operator: true })];
}
const audited = async ({ office }: ConsoleSite) =>
  (await office.auditLog.list(100)).map(({ action, operator, subject, detail }) => [action, operator, subject, detail]);

describe("an invitation", () => {
  test("makes an account with its plan and credit, once, and signs it in", async () => {
    const [site, head] = await siteWithOperator();
    const made = await head.post("/operator/invitations", { plan: "plus", credit: 500 });
    expect(made.body.path).toMatch(/^\/join#[\w-]{43}$/);
    const token = tokenOf(made);
    const browser = site.browser();
    expect((await browser.post("/link", { token })).body).toEqual({
      kind: "invitation",
      email: null,
      plan: "plus",
      credit: 500,
      expires_at: new Date(site.office.now + invitationMs).toISOString(),
      team: null,
    });
    const { status, body } = await browser.post("/link/use", { token, email: "new@x", password });
    expect([status, body.session.account.plan]).toEqual([200, "plus"]);
    expect(body.api_key).toStartWith("sk-tg-");
    expect((await browser.get("/overview")).status).toBe(200);
    expect((await site.office.accounts.record(2))!.credit).toBe(500);
    expect((await site.browser().post("/sign-in", { email: "new@x", password })).status).toBe(200);
    for (const path of ["/link", "/link/use"]) {
      const again = await site.browser().post(path, { token, ...(path === "/link" ? {} : { email: "b@x", password }) });
      expect(told(again)).toEqual([400, "invalid_request"]);
    }
    expect(await audited(site)).toEqual([
      ["account.create", 2, 2, "by invitation 1: plan plus, credit 500"],
      ["invitation.create", 1, 0, "invitation 1: plan plus, credit 500"],
    ]);
  });

  test("of two who use it at once lets one in, also where the first has not hashed its password yet", async () => {
    const [site, head] = await siteWithOperator();
    const token = tokenOf(await head.post("/operator/invitations", { credit: 7 }));
    const names = ["a@x", "b@x", "c@x"];
    const replies = await Promise.all(
      names.map((email) => site.browser().post("/link/use", { token, email, password })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
    expect(await site.office.accounts.count()).toBe(2);
  });

  test("stays where the address is taken, and for an address works for that alone", async () => {
    const [site, head] = await siteWithOperator();
    const open = tokenOf(await head.post("/operator/invitations", {}));
    expect(told(await site.browser().post("/link/use", { token: open, email: "head@x", password }))).toEqual([
      409,
      "conflict",
    ]);
    expect(told(await site.browser().post("/link/use", { token: open, password }))).toEqual([400, "invalid_request"]);
    expect((await site.browser().post("/link/use", { token: open, email: "a@x", password })).status).toBe(200);
    const named = tokenOf(await head.post("/operator/invitations", { email: "b@x" }));
    const { body } = await site.browser().post("/link/use", { token: named, email: "other@x", password });
    expect(body.session.account.email).toBe("b@x");
    expect((await audited(site)).flat().join()).not.toContain("b@x");
    expect(told(await head.post("/operator/invitations", { email: "B@x" }))).toEqual([409, "conflict"]);
  });

  test("expires, can be withdrawn, and is listed until then", async () => {
    const [site, head] = await siteWithOperator();
    const token = tokenOf(await head.post("/operator/invitations", { expires_in_hours: 1 }));
    const other = await head.post("/operator/invitations", { email: "b@x" });
    const list = async () => (await head.get("/operator/invitations")).body.invitations.map(({ id }: any) => id);
    expect(await list()).toEqual([2, 1]);
    site.office.now += 3_600_000;
    expect(told(await site.browser().post("/link", { token }))).toEqual([400, "invalid_request"]);
    expect(await list()).toEqual([2]);
    expect((await head.post("/operator/invitations/2/withdraw")).body.invitations).toEqual([]);
    expect(told(await site.browser().post("/link", { token: tokenOf(other) }))).toEqual([400, "invalid_request"]);
    expect((await head.post("/operator/invitations/2/withdraw")).status).toBe(400);
    for (const wrong of [{ expires_in_hours: 0 }, { expires_in_hours: 9_999 }, { plan: "none" }, { email: "a b@x" }]) {
      expect((await head.post("/operator/invitations", wrong)).status).toBe(400);
    }
  });

  test("works after a restart, and only its hash is on disk", async () => {
    const office = new Office();
    const { token } = await office.links.invite({ email: null, credit: 3, expiresAt: office.now + 1_000 });
    const next = office.restart();
    expect(await next.links.find(token)).toMatchObject({ id: 1, credit: 3 });
    const row = office.database.query("SELECT * FROM access_links").get() as Record<string, unknown>;
    expect(Object.values(row).map(String).join()).not.toContain(token);
    expect(row["token_hash"]).toEqual(new Uint8Array(new Bun.CryptoHasher("sha256").update(token).digest()));
  });

  test("that is over is forgotten after 90 days", async () => {
    const [site, head] = await siteWithOperator();
    await head.post("/operator/invitations", { expires_in_hours: 1 });
    site.office.now += linkKeptMs + 2 * 3_600_000;
    const again = await site.browser().post("/sign-in", { email: "head@x", password: "correct horse" });
    head.cookie = again.response.headers.getSetCookie()[0]!.split(";")[0]!;
    await head.post("/operator/invitations", {});
    expect(site.office.database.query("SELECT id FROM access_links").values()).toEqual([[2]]);
  });
});

describe("a password link", () => {
  test("sets the password once, and signs all browsers out but this one", async () => {
    const [site, head] = await siteWithOperator();
    const owner = await site.signedIn("owner@x");
    const token = tokenOf(await head.post("/operator/accounts/2/password-link"));
    const browser = site.browser();
    expect((await browser.post("/link", { token })).body).toMatchObject({ kind: "password", email: "owner@x" });
    const { status, body } = await browser.post("/link/use", { token, password });
    expect([status, body.api_key]).toEqual([200, null]);
    expect((await owner.get("/overview")).status).toBe(401);
    expect((await browser.get("/overview")).status).toBe(200);
    expect((await site.browser().post("/sign-in", { email: "owner@x", password })).status).toBe(200);
    expect(told(await site.browser().post("/link/use", { token, password }))).toEqual([400, "invalid_request"]);
    expect(await audited(site)).toEqual([
      ["account.password", 2, 2, "by link 1"],
      ["account.password_link", 1, 2, "link 1"],
    ]);
  });

  test("is void after another one, after a new password, after a day, and while the account is disabled", async () => {
    const [site, head] = await siteWithOperator();
    await site.signedIn("owner@x");
    const make = async () => tokenOf(await head.post("/operator/accounts/2/password-link"));
    const works = async (token: string) => (await site.browser().post("/link", { token })).status === 200;
    const first = await make();
    const second = await make();
    expect([await works(first), await works(second)]).toEqual([false, true]);
    await head.post("/operator/accounts/2/password", { password: "set by the operator" });
    expect(await works(second)).toBe(false);
    const third = await make();
    site.office.now += passwordLinkMs;
    expect(await works(third)).toBe(false);
    const fourth = await make();
    await head.post("/operator/accounts/2/state", { disabled: true });
    expect(told(await site.browser().post("/link", { token: fourth }))).toEqual([403, "forbidden"]);
    expect(told(await site.browser().post("/link/use", { token: fourth, password }))).toEqual([403, "forbidden"]);
    await head.post("/operator/accounts/2/state", { disabled: false });
    expect(await works(fourth)).toBe(true);
  });

  test("that fails because too many sign in stays", async () => {
    let fails = false;
    const hasher = {
      ...cheapHasher,
      hash: (text: string) => (fails ? Promise.reject(new Error("no memory")) : cheapHasher.hash(text)),
    };
    const [site, head] = await siteWithOperator(new ConsoleSite({ passwords: new Passwords(hasher) }));
    await site.signedIn("owner@x");
    const token = tokenOf(await head.post("/operator/accounts/2/password-link"));
    fails = true;
    expect((await site.browser().post("/link/use", { token, password })).status).toBe(500);
    fails = false;
    expect((await site.browser().post("/link/use", { token, password })).status).toBe(200);
  });

  test("is gone with a deleted account, like invitations to its address, and its identities", async () => {
    const [site, head] = await siteWithOperator();
    await site.signedIn("owner@x");
    await head.post("/operator/accounts/2/password-link");
    await site.office.identities.connect("https://a", "1", 2);
    await head.post("/operator/accounts/2/delete", { confirm: "owner@x" });
    expect(site.office.database.query("SELECT * FROM access_links").values()).toEqual([]);
    expect(await site.office.identities.of(2)).toEqual([]);
    expect((await head.post("/operator/accounts/2/password-link")).status).toBe(400);
  });
});

describe("whoever tries tokens", () => {
  test("learns nothing of wrong ones, whatever they are", async () => {
    const site = new ConsoleSite();
    for (const token of ["", "A".repeat(43), "A".repeat(44), "' OR 1=1", "\u0000"]) {
      expect(told(await site.browser().post("/link", { token }))).toEqual([400, "invalid_request"]);
      expect(told(await site.browser().post("/link/use", { token, password }))).toEqual([400, "invalid_request"]);
    }
  });

  test("is refused after a hundred of one address, and nobody else", async () => {
    const site = new ConsoleSite();
    for (let time = 0; time < signInAddressTriesMax; time++) await site.browser().post("/link", { token: "x" });
    expect(told(await site.browser().post("/link", { token: "x" }))).toEqual([429, "too_many_attempts"]);
    expect(told(await site.browser().post("/link/use", { token: "x", password }))).toEqual([429, "too_many_attempts"]);
    expect((await site.browser("198.51.100.1").post("/link", { token: "x" })).status).toBe(400);
  });

  test("makes no links without being an operator", async () => {
    const site = new ConsoleSite();
    const browser = await site.signedIn("a@x");
    for (const path of ["/operator/invitations", "/operator/accounts/1/password-link"]) {
      expect((await browser.post(path, path.endsWith("link") ? undefined : {})).status).toBe(403);
    }
  });
});
