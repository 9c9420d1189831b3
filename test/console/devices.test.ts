// Machines that sign in with a code that a person approves in the console, as a stranger would try to abuse it.
import { describe, expect, test } from "bun:test";
import { machineIdleMaxMs } from "../../src/account/people/account-keys.ts";
import { deviceCodeMs, renewedAgainMs } from "../../src/account/sign-in/devices.ts";
import { baseUrl, ConsoleSite, type Reply } from "./console-site.ts";

const grant = "urn:ietf:params:oauth:grant-type:device_code";
const lifeMs = 86_400_000; // of ConsoleSite

type Asked = Readonly<{ status: number; body: any }>;
type Codes = Readonly<{ device_code: string; user_code: string }>;

/** A program on a machine. */
function machineOf(site: ConsoleSite) {
  const post = async (path: string, form: Record<string, string>, headers: Record<string, string> = {}) => {
    const reply = await site.send(path, { method: "POST", body: new URLSearchParams(form), headers });
    return { status: reply.status, body: await reply.json() } as Asked;
  };
  return {
    post,
    begin: async (form: Record<string, string> = {}, address = "192.0.2.9"): Promise<Codes> =>
      (await post("/oauth/device_authorization", form, { "x-test-address": address })).body,
    poll: async ({ device_code }: Codes): Promise<Asked> => {
      site.office.now += 5_000;
      return post("/oauth/token", { grant_type: grant, device_code });
    },
    refresh: (refresh_token: string) => post("/oauth/token", { grant_type: "refresh_token", refresh_token }),
  };
}
const told = ({ status, body }: Asked | Reply) => [status, body.error?.code ?? body.error ?? null];
const pending = [400, "authorization_pending"];

/** A machine of a new account that is signed in. */
async function signedIn(site = new ConsoleSite(), email = "ada@example.com") {
  const [machine, browser] = [machineOf(site), await site.signedIn(email)];
  const codes = await machine.begin();
  await browser.post("/device/approve", { user_code: codes.user_code, name: "laptop" });
  const { body } = await machine.poll(codes);
  return { site, machine, browser, codes, access: body.access_token as string, refresh: body.refresh_token as string };
}
const principal = (site: ConsoleSite, key: string) => site.office.keys.principal(key);

describe("a code", () => {
  test("shows who asks, gives one token after its person's yes, and names the machine on the key page", async () => {
    const site = new ConsoleSite();
    const [machine, browser] = [machineOf(site), await site.signedIn("ada@example.com")];
    const codes = await machine.begin({ client_name: "tollgate login", machine: "box\u001b[31m" });
    expect(codes.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(told(await machine.poll(codes))).toEqual(pending);
    const typed = ` ${codes.user_code.toLowerCase().replace("-", " ")}`;
    expect((await browser.post("/device", { user_code: typed })).body).toMatchObject({
      program: "tollgate login",
      machine: "box[31m",
      address: "192.0.2.9",
      name: "tollgate login on box[31m",
    });
    expect(told(await machine.poll(codes))).toEqual(pending); // whoever looked approved nothing
    expect((await browser.post("/device/approve", { user_code: typed, name: "default" })).body.name).toBe("default 2");
    const { status, body } = await machine.poll(codes);
    expect([status, body]).toEqual([
      200,
      {
        access_token: expect.stringMatching(/^sk-tg-/),
        refresh_token: expect.stringMatching(/^tgr-/),
        token_type: "Bearer",
        expires_in: lifeMs / 1000,
        email: "ada@example.com",
      },
    ]);
    expect(principal(site, body.access_token)).toMatchObject({ account: browser.account.id, key: 2 });
    expect((await browser.get("/keys")).body.keys[1]).toMatchObject({ name: "default 2", machine: true });
    expect(told(await machine.poll(codes))).toEqual([400, "expired_token"]); // it works once
    await browser.post("/keys/2/revoke");
    expect(principal(site, body.access_token)).toBeNull();
    expect(told(await machine.refresh(body.refresh_token))).toEqual([401, "invalid_grant"]);
  });

  test("is for the machine's next poll alone where polls come too fast", async () => {
    const site = new ConsoleSite();
    const machine = machineOf(site);
    const codes = await machine.begin();
    await machine.poll(codes);
    const form = { grant_type: grant, device_code: codes.device_code };
    expect(told(await machine.post("/oauth/token", form))).toEqual([429, "slow_down"]);
    expect(told(await machine.poll(codes))).toEqual(pending);
  });

  test("that somebody denied, decided or let expire gives nothing, to nobody", async () => {
    const site = new ConsoleSite();
    const [machine, ada, eve] = [
      machineOf(site),
      await site.signedIn("ada@example.com"),
      await site.signedIn("eve@example.com"),
    ];
    const denied = await machine.begin();
    expect((await ada.post("/device/deny", { user_code: denied.user_code })).status).toBe(200);
    expect(told(await eve.post("/device/approve", { user_code: denied.user_code, name: "x" }))).toEqual([
      404,
      "not_found",
    ]);
    expect(told(await machine.poll(denied))).toEqual([400, "access_denied"]);
    const taken = await machine.begin();
    const both = [ada, eve].map((one) => one.post("/device/approve", { user_code: taken.user_code, name: "x" }));
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 404]);
    const late = await machine.begin();
    site.office.now += deviceCodeMs;
    expect(told(await ada.post("/device", { user_code: late.user_code }))).toEqual([404, "not_found"]);
    expect(told(await machine.poll(late))).toEqual([400, "expired_token"]);
    // Approved in time, and fetched too late.
    expect(told(await machine.poll(taken))).toEqual([400, "expired_token"]);
    expect(told(await machine.poll({ ...late, device_code: "x" }))).toEqual([400, "expired_token"]);
  });

  test("is kept as hashes alone, as its tokens are", async () => {
    const { site, machine, codes, access, refresh } = await signedIn();
    const open = await machine.begin();
    const disk = Buffer.from(site.office.database.serialize()).toString("latin1");
    for (const secret of [codes, open].flatMap(({ device_code, user_code }) => [device_code, user_code])) {
      expect(disk).not.toContain(secret);
      expect(disk).not.toContain(secret.replace("-", ""));
    }
    for (const token of [access, refresh]) expect(disk).not.toContain(token.slice(6));
  });
});

describe("a stranger", () => {
  test("who guesses codes is stopped after 20, whatever the next one is", async () => {
    const site = new ConsoleSite();
    const [machine, eve] = [machineOf(site), await site.signedIn("eve@example.com")];
    const codes = await machine.begin();
    for (let guess = 0; guess < 20; guess += 1) {
      expect(told(await eve.post("/device", { user_code: `BBBB-BBB${"CDFGHJKLMNPQRSTVWXZC"[guess]}` }))).toEqual([
        404,
        "not_found",
      ]);
    }
    for (const path of ["/device", "/device/deny"] as const) {
      expect(told(await eve.post(path, { user_code: codes.user_code }))).toEqual([429, "too_many_attempts"]);
    }
    const approval = { user_code: codes.user_code, name: "x" };
    expect(told(await eve.post("/device/approve", approval))).toEqual([429, "too_many_attempts"]);
    expect(told(await machine.poll(codes))).toEqual(pending);
  });

  test("who asks for codes without end is told to wait, others are not", async () => {
    const machine = machineOf(new ConsoleSite());
    for (let asked = 0; asked < 100; asked += 1) await machine.begin();
    const ask = (address: string) => machine.post("/oauth/device_authorization", {}, { "x-test-address": address });
    expect(told(await ask("192.0.2.9"))).toEqual([429, "slow_down"]);
    expect((await ask("192.0.2.200")).status).toBe(200);
  });

  test("whose page sends an approval from another site, without a session, or as a form, approves nothing", async () => {
    const site = new ConsoleSite();
    const [machine, ada] = [machineOf(site), await site.signedIn("ada@example.com")];
    const codes = await machine.begin();
    const body = JSON.stringify({ user_code: codes.user_code, name: "x" });
    const send = async (headers: Record<string, string>) =>
      (await site.send("/console/api/device/approve", { method: "POST", body, headers })).status;
    const json = { "content-type": "application/json" };
    expect(await send({ ...json, origin: "https://evil.example", cookie: ada.cookie })).toBe(403);
    expect(await send({ ...json, cookie: ada.cookie })).toBe(403);
    expect(await send({ "content-type": "text/plain", origin: baseUrl, cookie: ada.cookie })).toBe(403);
    expect(await send({ ...json, origin: baseUrl })).toBe(401);
    expect(told(await machine.poll(codes))).toEqual(pending);
  });

  test("who sends anything else learns what is wrong, in the form of OAuth", async () => {
    const site = new ConsoleSite();
    const { post } = machineOf(site);
    const ask = (form: Record<string, string>) => post("/oauth/token", form).then(told);
    expect(await ask({})).toEqual([400, "invalid_request"]);
    expect(await ask({ grant_type: "password" })).toEqual([400, "unsupported_grant_type"]);
    expect(await ask({ grant_type: grant })).toEqual([400, "invalid_request"]);
    expect(await ask({ grant_type: "refresh_token" })).toEqual([400, "invalid_request"]);
    expect(await ask({ grant_type: "refresh_token", refresh_token: "x".repeat(90) })).toEqual([401, "invalid_grant"]);
    expect(await ask({ grant_type: grant, device_code: "x".repeat(20_000) })).toEqual([413, "invalid_request"]);
    expect((await post("/oauth/revoke", { token: "nobody's" })).status).toBe(200);
    // A key that no machine has is nobody's to end by knowing it.
    const ada = await site.signedIn("ada@example.com");
    const named = (await ada.post("/keys", { name: "robot" })).body.api_key as string;
    for (const token of [ada.account.api_key, named]) {
      await post("/oauth/revoke", { token });
      expect(principal(site, token)).not.toBeNull();
    }
  });
});

describe("a token", () => {
  test("is renewed by one that works once; later a second time ends the machine, and the audit log says it", async () => {
    const { site, machine, browser, access, refresh } = await signedIn();
    expect(principal(site, access)?.key).toBe(2); // it is known in memory
    const { body: next } = await machine.refresh(refresh);
    expect([principal(site, access), principal(site, next.access_token)?.key]).toEqual([null, 2]);
    expect((await browser.get("/keys")).body.keys).toHaveLength(2); // the same key
    site.office.now += 2 * renewedAgainMs;
    expect(told(await machine.refresh(refresh))).toEqual([401, "invalid_grant"]);
    expect(principal(site, next.access_token)).toBeNull();
    expect(told(await machine.refresh(next.refresh_token))).toEqual([401, "invalid_grant"]);
    expect((await site.office.auditLog.list(1))[0]).toMatchObject({
      action: "key.revoke",
      subject: browser.account.id,
      detail: "key 2: its machine's token was renewed twice by the same one",
    });
  });

  test("that two programs renew at once is the same for both, and a stranger's token of before helps nobody later", async () => {
    const { site, machine, refresh } = await signedIn();
    const [one, other] = await Promise.all([machine.refresh(refresh), machine.refresh(refresh)]);
    expect([one.status, other]).toEqual([200, one]);
    site.office.now += renewedAgainMs - 1_000; // the answer got lost
    expect(await machine.refresh(refresh)).toEqual(one);
    expect(principal(site, one.body.access_token)?.key).toBe(2);
    // What comes after it is another, whoever asks: the one before is known as used, however soon.
    const { body: next } = await machine.refresh(one.body.refresh_token);
    expect(next.refresh_token).not.toBe(one.body.refresh_token);
    expect(told(await machine.refresh(refresh))).toEqual([401, "invalid_grant"]);
    expect(principal(site, next.access_token)).toBeNull();
  });

  test("that is asked for again gives a disabled account and a signed-out machine nothing", async () => {
    const { site, machine, browser, refresh } = await signedIn();
    const { body } = await machine.refresh(refresh);
    await site.office.units.change(({ accounts }) => accounts.setDisabled(browser.account.id, true));
    expect(told(await machine.refresh(refresh))).toEqual([401, "invalid_grant"]);
    await site.office.units.change(({ accounts }) => accounts.setDisabled(browser.account.id, false));
    expect((await machine.refresh(refresh)).body).toEqual(body);
    await machine.post("/oauth/revoke", { token: body.access_token });
    expect(told(await machine.refresh(refresh))).toEqual([401, "invalid_grant"]);
  });

  test("is void with its expiry, is renewed for a while, and then its machine must be approved again", async () => {
    const { site, machine, browser, access, refresh } = await signedIn();
    site.office.now += lifeMs + 1_000;
    expect(principal(site, access)?.limits?.expiresAt).toBeLessThan(site.office.now);
    const { body: next } = await machine.refresh(refresh);
    expect(principal(site, next.access_token)?.limits?.expiresAt).toBe(site.office.now + lifeMs);
    expect(told(await browser.post("/keys/2/limits", { expires_at: null }))).toEqual([409, "conflict"]);
    expect((await browser.post("/keys/2/limits", { limit_day: 5 })).body.limit_day).toBe(5);
    const { body: last } = await machine.refresh(next.refresh_token);
    expect(principal(site, last.access_token)?.limits?.tokensPerDay).toBe(5);
    site.office.now += lifeMs + machineIdleMaxMs;
    expect(told(await machine.refresh(last.refresh_token))).toEqual([401, "invalid_grant"]);
    // The next machine takes its name and its place.
    const again = await site.browser();
    await again.post("/sign-in", { email: browser.account.email, password: "correct horse" });
    const codes = await machine.begin();
    expect((await again.post("/device/approve", { user_code: codes.user_code, name: "laptop" })).body.name).toBe(
      "laptop",
    );
    expect((await again.get("/keys")).body.keys.map(({ id }: { id: number }) => id)).toEqual([1, 3]);
  });

  test("of an account that is disabled is void at once and is not renewed", async () => {
    const { site, machine, browser, access, refresh } = await signedIn();
    const waiting = await machine.begin();
    await browser.post("/device/approve", { user_code: waiting.user_code, name: "other" });
    await site.office.units.change(({ accounts }) => accounts.setDisabled(browser.account.id, true));
    expect(principal(site, access)).toBeNull();
    expect(told(await machine.refresh(refresh))).toEqual([401, "invalid_grant"]);
    expect(told(await machine.poll(waiting))).toEqual([400, "expired_token"]);
  });

  test.each(["access", "refresh"] as const)("ends with a sign-out by its %s token", async (which) => {
    const { site, machine, ...tokens } = await signedIn();
    expect((await machine.post("/oauth/revoke", { token: tokens[which] })).status).toBe(200);
    expect(principal(site, tokens.access)).toBeNull();
    expect(told(await machine.refresh(tokens.refresh))).toEqual([401, "invalid_grant"]);
  });
});
