// Sign-in as a browser meets it: the cookie, the limits, and what ends a session.
import { describe, expect, test } from "bun:test";
import { type Hasher, Passwords } from "../../src/account/passwords.ts";
import { passwordHashesMax, signInAddressTriesMax, signInTriesMax, signInWindowMs } from "../../src/limits.ts";
import { cheapHasher } from "../account/office.ts";
import { eventually } from "../fixtures/eventually.ts";
import { ConsoleSite } from "./console-site.ts";

describe("the session's cookie", () => {
  const cookieOf = async (baseUrl?: string) => {
    const site = new ConsoleSite(baseUrl === undefined ? {} : { baseUrl });
    await site.office.accounts.create({ email: "a@x", password: "correct horse" });
    const origin = baseUrl ?? site.parts.baseUrl;
    const response = await site.send("/console/api/sign-in", {
      method: "POST",
      headers: { origin, "content-type": "application/json" },
      body: JSON.stringify({ email: "a@x", password: "correct horse" }),
    });
    return response.headers.get("set-cookie")!;
  };

  test("is HttpOnly, SameSite=Lax and for the whole host", async () => {
    expect(await cookieOf()).toMatch(
      /^tollgate_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/,
    );
  });

  test("is for https alone, and for this very host, where the site has https", async () => {
    expect(await cookieOf("https://console.test")).toMatch(
      /^__Host-tollgate_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test("is new at each sign-in, and the one before is void", async () => {
    const site = new ConsoleSite();
    const browser = await site.signedIn("a@x");
    const before = browser.cookie;
    await browser.post("/sign-in", { email: "a@x", password: "correct horse" });
    expect(browser.cookie).not.toBe(before);
    expect((await browser.get("/overview")).status).toBe(200);
    browser.cookie = before;
    expect((await browser.get("/overview")).status).toBe(401);
  });

  test("that a stranger put into the browser is never signed in", async () => {
    const site = new ConsoleSite();
    await site.office.accounts.create({ email: "a@x", password: "correct horse" });
    const browser = site.browser();
    const planted = `tollgate_session=${"A".repeat(43)}`;
    browser.cookie = planted;
    await browser.post("/sign-in", { email: "a@x", password: "correct horse" });
    expect(browser.cookie).not.toBe(planted);
    browser.cookie = planted;
    expect((await browser.get("/overview")).status).toBe(401);
  });
});

test("signing out ends the session on the server, not only in the browser", async () => {
  const browser = await new ConsoleSite().signedIn("a@x");
  const before = browser.cookie;
  const { body } = await browser.post("/sign-out");
  expect(body.account).toBeNull();
  expect(browser.cookie).toBe("tollgate_session=");
  browser.cookie = before;
  expect((await browser.get("/overview")).status).toBe(401);
});

describe("too many tries", () => {
  test("are refused before any work, for known and unknown names alike, and for the right password too", async () => {
    let verified = 0;
    const counting: Hasher = {
      hash: cheapHasher.hash,
      verify: (password, hash) => {
        verified += 1;
        return cheapHasher.verify(password, hash);
      },
    };
    const site = new ConsoleSite({ passwords: new Passwords(counting) });
    await site.office.accounts.create({ email: "known@x", password: "correct horse" });
    const answers: unknown[][] = [];
    for (const email of ["known@x", "unknown@x"]) {
      verified = 0;
      const said: unknown[] = [];
      for (let index = 0; index < 15; index++) {
        const password = index < 12 ? "wrong" : "correct horse";
        const { status, body } = await site.browser(`192.0.2.${index}`).post("/sign-in", { email, password });
        said.push([status, body.error.code, body.error.message, body.error.retry_seconds]);
      }
      expect(verified).toBe(signInTriesMax);
      answers.push(said);
    }
    expect(answers[0]!).toEqual(answers[1]!);
    const outcomes: unknown[] = answers[0]!.map((said) => (said as unknown[]).slice(0, 2));
    expect(outcomes).toEqual([
      ...Array<unknown>(signInTriesMax).fill([401, "wrong_credentials"]),
      ...Array<unknown>(5).fill([429, "too_many_attempts"]),
    ]);
  });

  test("say when to try again, and then work", async () => {
    const site = new ConsoleSite();
    await site.office.accounts.create({ email: "a@x", password: "correct horse" });
    const right = () => site.browser().post("/sign-in", { email: "a@x", password: "correct horse" });
    for (let index = 0; index < signInTriesMax; index++) {
      await site.browser().post("/sign-in", { email: "A@X", password: "wrong" });
    }
    const { status, response } = await right();
    expect([status, response.headers.get("retry-after")]).toEqual([429, String(signInWindowMs / 1000)]);
    site.office.now += signInWindowMs;
    expect((await right()).status).toBe(200);
  });

  test.each([
    ["a port", (index: number) => `198.51.100.9:${index}`],
    ["brackets and a port", (index: number) => `[2001:db8::1]:${index}`],
    ["brackets", (index: number) => `[2001:db8::${index.toString(16)}]`],
    ["others before it", (index: number) => `203.0.113.${index % 200}, 198.51.100.9`],
    ["no address at all", (index: number) => `unknown-${index}`],
    ["what only looks like one", (index: number) => `198.51.100.${255 + index}:1`],
    ["what only looks like another", (index: number) => `2001:db8:${index}`],
  ])("from one address are counted together where a proxy names it with %s", async (_, named) => {
    const site = new ConsoleSite({ passwords: new Passwords({ hash: async () => "x", verify: async () => false }) });
    const statuses: number[] = [];
    for (let index = 1; index <= signInAddressTriesMax + 2; index++) {
      const body = { email: `${index}@x`, password: "wrong" };
      statuses.push((await site.browser(named(index)).post("/sign-in", body)).status);
    }
    expect(statuses).toEqual([...Array<number>(signInAddressTriesMax).fill(401), 429, 429]);
  });

  test("at the old password of a change are refused as well", async () => {
    const browser = await new ConsoleSite().signedIn("a@x");
    const statuses: number[] = [];
    for (let index = 0; index < 12; index++) {
      const body = { old_password: `wrong ${index}`, new_password: "battery staple" };
      statuses.push((await browser.post("/password", body)).status);
    }
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
  });
});

test("100 sign-ins at once hash two at a time, and more than may wait are told to come again", async () => {
  let running = 0;
  let most = 0;
  const counting: Hasher = {
    hash: cheapHasher.hash,
    async verify(password, hash) {
      most = Math.max(most, (running += 1));
      const matches = await cheapHasher.verify(password, hash);
      running -= 1;
      return matches;
    },
  };
  const site = new ConsoleSite({ passwords: new Passwords(counting) });
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      site.browser(`192.0.2.${index}`).post("/sign-in", { email: `${index}@x`, password: "wrong" }),
    ),
  );
  expect(most).toBe(passwordHashesMax);
  const busy = all.filter(({ status }) => status === 503);
  expect(busy.length).toBeGreaterThan(0);
  expect(busy[0]!.body.error).toMatchObject({ code: "busy", retry_seconds: expect.any(Number) });
  expect(all.filter(({ status }) => status === 401).length).toBe(100 - busy.length);
});

describe("a new password", () => {
  test("needs the old one, and ends every other session but the one that changed it", async () => {
    const site = new ConsoleSite();
    const here = await site.signedIn("a@x");
    const there = site.browser();
    await there.post("/sign-in", { email: "a@x", password: "correct horse" });
    const change = (old_password: string) => here.post("/password", { old_password, new_password: "battery staple" });
    expect((await change("wrong")).body.error.code).toBe("wrong_credentials");
    expect((await there.get("/overview")).status).toBe(200);
    expect((await change("correct horse")).body).toEqual({ done: true });
    expect((await there.get("/overview")).status).toBe(401);
    expect((await here.get("/overview")).status).toBe(200);
    const again = (password: string) => site.browser().post("/sign-in", { email: "a@x", password });
    expect((await again("correct horse")).status).toBe(401);
    expect((await again("battery staple")).status).toBe(200);
  });
});

describe("sessions end in one commit with", () => {
  test.each([
    ["a new password", "/password", { old_password: "correct horse", new_password: "battery staple" }, 1],
    ["a password from the operator", "/operator/accounts/1/password", { password: "battery staple" }, 0],
    ["being disabled", "/operator/accounts/1/state", { disabled: true }, 0],
  ])("%s, so that a crash leaves neither alone", async (_, path, body, left) => {
    const site = new ConsoleSite();
    const account = await site.signedIn("a@x");
    await site.browser().post("/sign-in", { email: "a@x", password: "correct horse" });
    const operator = await site.signedIn("operator@x", { operator: true });
    const { database, storage, journal } = site.office;
    const onDisk = () =>
      database
        .query(
          `SELECT password_hash, disabled_at, (SELECT count(*) FROM sessions WHERE account_id = 1) AS sessions
           FROM accounts WHERE id = 1`,
        )
        .get() as { password_hash: string; disabled_at: number | null; sessions: number };
    const before = onDisk();
    expect(before.sessions).toBe(2);
    storage.immediate = false;
    void (path.startsWith("/operator") ? operator : account).post(path, body);
    await eventually("the change is on its way", async () => {
      journal.flush();
      return storage.waiting;
    });
    storage.write();
    const { sessions, ...changed } = onDisk();
    expect(changed).not.toEqual({ password_hash: before.password_hash, disabled_at: before.disabled_at });
    expect(sessions).toBe(left);
  });
});

test("a session that was opened with the old password while the new one went to disk ends as well", async () => {
  const site = new ConsoleSite();
  const here = await site.signedIn("a@x");
  const { storage, journal } = site.office;
  storage.immediate = false;
  const changed = here.post("/password", { old_password: "correct horse", new_password: "battery staple" });
  await eventually("the change is on its way", async () => {
    journal.flush();
    return storage.waiting;
  });
  const there = site.browser();
  const signedIn = there.post("/sign-in", { email: "a@x", password: "correct horse" });
  const { sessions } = site.office;
  await eventually("the session is on its way", async () => sessions.list(1, site.office.now).length === 2);
  storage.immediate = true;
  storage.succeed();
  expect([(await changed).status, (await signedIn).status]).toEqual([200, 200]);
  expect((await there.get("/overview")).status).toBe(401);
  expect((await here.get("/overview")).status).toBe(200);
});

describe("sessions", () => {
  test("are listed with what tells them apart, and ended one by one or all but this", async () => {
    const site = new ConsoleSite();
    const here = await site.signedIn("a@x");
    const [there, elsewhere] = [site.browser("198.51.100.7"), site.browser("203.0.113.5")];
    for (const browser of [there, elsewhere]) {
      site.office.now += 1;
      await browser.post("/sign-in", { email: "a@x", password: "correct horse" });
    }
    const { sessions } = (await here.get("/sessions")).body;
    expect(sessions.map(({ address, current }: any) => [address, current])).toEqual([
      ["203.0.113.5", false],
      ["198.51.100.7", false],
      ["192.0.2.1", true],
    ]);
    await here.post(`/sessions/${sessions[1].id}/end`);
    expect((await there.get("/overview")).status).toBe(401);
    expect((await elsewhere.get("/overview")).status).toBe(200);
    await here.post("/sessions/end-others");
    expect((await elsewhere.get("/overview")).status).toBe(401);
    expect((await here.get("/sessions")).body.sessions).toHaveLength(1);
  });
});

describe("sign-up", () => {
  const body = { email: "new@x", password: "correct horse" };

  test("is off unless the operator allows it", async () => {
    const { status } = await new ConsoleSite().browser().post("/sign-up", body);
    expect(status).toBe(403);
  });

  test("makes an account of the plan free that is no operator, signs in and shows its key once", async () => {
    const site = new ConsoleSite({ signUp: true });
    const browser = site.browser();
    const { body: created } = await browser.post("/sign-up", body);
    expect(site.office.keys.account(created.api_key)).toBe(created.id);
    expect((await browser.get("/session")).body.account).toEqual({
      id: created.id,
      email: "new@x",
      plan: "free",
      operator: false,
    });
    expect(JSON.stringify((await browser.get("/key")).body)).not.toContain(created.api_key);
    expect((await site.browser().post("/sign-up", { ...body, email: "NEW@x" })).status).toBe(409);
    expect((await site.browser().post("/sign-up", { ...body, operator: true })).status).toBe(400);
  });
});

test("no password, token or key is in the log", async () => {
  const site = new ConsoleSite({ signUp: true });
  const browser = site.browser();
  const { body } = await browser.post("/sign-up", { email: "new@x", password: "a secret horse" });
  await browser.post("/sign-in", { email: "new@x", password: "a wrong horse" });
  const token = browser.cookie.split("=")[1]!;
  for (const secret of ["a secret horse", "a wrong horse", token, body.api_key]) {
    expect(site.logged.join("\n")).not.toContain(secret);
  }
});
