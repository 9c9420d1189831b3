// Sign-in as a browser meets it: the cookie, the limits, and what ends a session.
import { describe, expect, spyOn, test } from "bun:test";
import { type Hasher, passwordHashesMax, Passwords } from "../../src/account/sign-in/passwords.ts";
import { BrowserAddresses } from "../../src/console/browser-addresses.ts";
import { signInAddressTriesMax, signInTriesMax, signInWindowMs } from "../../src/core/limits.ts";
import { signUpAddressTriesMax } from "../../src/console/routes/session-routes.ts";
import { signInDelayMaxMs } from "../../src/account/sign-in/sign-in-tries.ts";
import { cheapHasher } from "../account/office.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type ConsoleBrowser, ConsoleSite } from "./console-site.ts";

describe("the cookies of a browser that signed in", () => {
  const cookiesOf = async (baseUrl?: string) => {
    const site = new ConsoleSite(baseUrl === undefined ? {} : { baseUrl });
    await site.office.accounts.create({ email: "a@x", password: "correct horse" });
    const origin = baseUrl ?? site.parts.baseUrl;
    const response = await site.send("/console/api/sign-in", {
      method: "POST",
      headers: { origin, "content-type": "application/json" },
      body: JSON.stringify({ email: "a@x", password: "correct horse" }),
    });
    return response.headers.getSetCookie();
  };

  test("are HttpOnly, SameSite=Lax and for the whole host", async () => {
    expect(await cookiesOf()).toEqual([
      expect.stringMatching(/^tollgate_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(/^tollgate_browser=1\.[\w.-]{60}; Path=\/; Max-Age=34560000; HttpOnly; SameSite=Lax$/),
    ]);
  });

  test("are for https alone, and for this very host, where the site has https", async () => {
    const [session, known] = await cookiesOf("https://console.test");
    expect(session).toMatch(
      /^__Host-tollgate_session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(known).toMatch(/^__Host-tollgate_browser=[\w.-]{62}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/);
  });

  test("are of a new session at each sign-in, and the one before is void", async () => {
    const site = new ConsoleSite();
    const browser = await site.signedIn("a@x");
    const before = browser.cookie;
    await browser.post("/sign-in", { email: "a@x", password: "correct horse" });
    expect(browser.cookie).not.toBe(before);
    expect((await browser.get("/overview")).status).toBe(200);
    browser.cookie = before;
    expect((await browser.get("/overview")).status).toBe(401);
  });

  test("that a stranger put into the browser are never signed in", async () => {
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

describe("a stranger who tries an operator's name", () => {
  /** Twelve wrong passwords from each of so many addresses. */
  const stranger = async (site: ConsoleSite, addresses: number, email = "operator@x"): Promise<void> => {
    for (let index = 0; index < addresses; index++) {
      const browser = site.browser(`203.0.${index}.9`);
      for (let times = 0; times < 12; times++) await browser.post("/sign-in", { email, password: `wrong ${times}` });
    }
  };
  const right = { email: "operator@x", password: "correct horse" };

  test("keeps neither a known browser out, at the very same address, nor one at another address", async () => {
    const delays: number[] = [];
    const passwords = new Passwords(cheapHasher, async (ms) => void delays.push(ms));
    const site = new ConsoleSite({ passwords });
    const known = await site.signedIn("operator@x", { operator: true });
    await known.post("/sign-out");
    await stranger(site, 20);
    expect((await site.browser("203.0.1.9").post("/sign-in", right)).status).toBe(429); // the stranger's own
    delays.length = 0;
    const beside = site.browser("203.0.1.9");
    beside.known = known.known;
    expect((await beside.post("/sign-in", right)).status).toBe(200);
    expect(delays).toEqual([]);
    expect((await site.browser("198.51.100.7").post("/sign-in", right)).status).toBe(200);
    expect(delays).toEqual([signInDelayMaxMs]);
  });

  test("is told the same of a name that nobody has, after the same waits", async () => {
    const seen: unknown[] = [];
    for (const email of ["operator@x", "nobody@x"]) {
      const delays: number[] = [];
      const site = new ConsoleSite({ passwords: new Passwords(cheapHasher, async (ms) => void delays.push(ms)) });
      await site.signedIn("operator@x", { operator: true });
      await stranger(site, 8, email);
      const browser = site.browser("203.0.113.1");
      const { status, body } = await browser.post("/sign-in", { email, password: "wrong" });
      seen.push([status, body, browser.cookie, browser.known, delays]);
    }
    expect(seen[0]).toEqual(seen[1]);
  });

  test("does not use up sign-ups, nor do sign-ups use up sign-ins", async () => {
    const site = new ConsoleSite({ signUp: true, passwords: new Passwords(cheapHasher, async () => {}) });
    await site.office.accounts.create({ email: "operator@x", password: "correct horse", operator: true });
    const browser = site.browser();
    for (let index = 0; index < signUpAddressTriesMax; index++) {
      await browser.post("/sign-up", { email: "operator@x", password: "correct horse" });
    }
    expect((await browser.post("/sign-up", { email: "new@x", password: "correct horse" })).status).toBe(429);
    expect((await browser.post("/sign-in", right)).status).toBe(200);
    await stranger(site, 10);
    const other = site.browser("203.0.1.9");
    expect((await other.post("/sign-up", { email: "new@x", password: "correct horse" })).status).toBe(200);
  });
});

describe("a browser is known", () => {
  const attempts = async (browser: ConsoleBrowser, times: number, password = "wrong"): Promise<number[]> => {
    const statuses: number[] = [];
    for (let index = 0; index < times; index++) {
      statuses.push((await browser.post("/sign-in", { email: "a@x", password })).status);
    }
    return statuses;
  };
  /** A stranger at the same address has used up what that address may do. */
  const usedUp = async (): Promise<{ site: ConsoleSite; known: ConsoleBrowser }> => {
    const site = new ConsoleSite();
    const known = await site.signedIn("a@x");
    await attempts(site.browser(), signInTriesMax);
    return { site, known };
  };

  test("until it tried ten times itself", async () => {
    const { known } = await usedUp();
    expect(await attempts(known, 11)).toEqual([...Array<number>(10).fill(401), 429]);
  });

  test("no more after a new password, but where that was said", async () => {
    const { site, known } = await usedUp();
    const there = site.browser();
    there.known = known.known;
    await known.post("/password", { old_password: "correct horse", new_password: "battery staple" });
    expect(await attempts(there, 1, "battery staple")).toEqual([429]);
    expect(await attempts(known, 1, "battery staple")).toEqual([200]);
  });

  test("no more where an operator set the password, or disabled the account", async () => {
    const { site, known } = await usedUp();
    const { office } = site;
    await office.accounts.setDisabled(known.account.id, true);
    expect(await attempts(known, 1, "correct horse")).toEqual([429]);
    await office.accounts.setDisabled(known.account.id, false);
    await office.accounts.changePassword(known.account.id, "battery staple");
    expect(await attempts(known, 1, "battery staple")).toEqual([429]);
  });

  test("for the account that it signed in to alone", async () => {
    const { site, known } = await usedUp();
    await site.office.accounts.create({ email: "b@x", password: "correct horse" });
    await attempts(site.browser(), 1);
    for (let index = 0; index < 10; index++) {
      await site.browser().post("/sign-in", { email: "b@x", password: "wrong" });
    }
    expect((await known.post("/sign-in", { email: "b@x", password: "correct horse" })).status).toBe(429);
  });
});

describe("behind a proxy whose header is not configured", () => {
  const behind = { requestIP: () => ({ address: "127.0.0.1" }), url: new URL("http://127.0.0.1:8400") } as never;
  const elsewhere = { requestIP: () => ({ address: "93.184.216.34" }), url: new URL("http://127.0.0.1:8400") } as never;
  const request = (headers: Record<string, string>): Request => new Request("http://x/", { headers });

  test("nobody is counted by the proxy's address, and the operator is told once", () => {
    const logged: string[] = [];
    const addresses = new BrowserAddresses(null, (level, event) => void logged.push(`${level} ${event}`));
    expect(addresses.of(request({}), behind)).toEqual({ address: "127.0.0.1", isShared: false });
    expect([addresses.notice, logged]).toEqual([null, []]);
    for (const name of ["cf-connecting-ip", "x-forwarded-for"]) {
      expect(addresses.of(request({ [name]: "198.51.100.1" }), behind)).toEqual({
        address: "127.0.0.1",
        isShared: true,
      });
    }
    expect(addresses.notice).toContain("it sends cf-connecting-ip");
    expect(logged).toEqual([`warn ${addresses.notice}`]);
  });

  test("a header of another name is told too", () => {
    const addresses = new BrowserAddresses("x-real-ip", () => {});
    expect(addresses.of(request({ "x-forwarded-for": "198.51.100.1" }), behind).isShared).toBe(true);
    expect(addresses.notice).toContain("it sends no x-real-ip");
    expect(addresses.of(request({ "x-real-ip": "198.51.100.1" }), behind)).toEqual({
      address: "198.51.100.1",
      isShared: false,
    });
  });

  test("who comes from elsewhere cannot have itself counted as a proxy", () => {
    const addresses = new BrowserAddresses(null, () => {});
    expect(addresses.of(request({ "x-forwarded-for": "198.51.100.1" }), elsewhere)).toEqual({
      address: "93.184.216.34",
      isShared: false,
    });
    expect(addresses.notice).toBeNull();
  });
});

describe("too many tries", () => {
  test("from one address are refused before any work, for known and unknown names alike", async () => {
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
        const { status, body } = await site.browser().post("/sign-in", { email, password });
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

  test("at the old password of a change are refused as well, to that session alone", async () => {
    const site = new ConsoleSite();
    const browser = await site.signedIn("a@x");
    const statuses: number[] = [];
    for (let index = 0; index < 12; index++) {
      const body = { old_password: `wrong ${index}`, new_password: "battery staple" };
      statuses.push((await browser.post("/password", body)).status);
    }
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
    const another = site.browser();
    await another.post("/sign-in", { email: "a@x", password: "correct horse" });
    const change = { old_password: "correct horse", new_password: "battery staple" };
    expect((await another.post("/password", change)).status).toBe(200);
  });
});

test("200 sign-ins at once hash a few at a time, and more than may wait are told to come again", async () => {
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
    Array.from({ length: 200 }, (_, index) =>
      site.browser(`192.0.2.${index}`).post("/sign-in", { email: `${index}@x`, password: "wrong" }),
    ),
  );
  expect(most).toBe(passwordHashesMax);
  const busy = all.filter(({ status }) => status === 503);
  expect(busy.length).toBeGreaterThan(0);
  expect(busy[0]!.body.error).toMatchObject({ code: "busy", retry_seconds: expect.any(Number) });
  expect(all.filter(({ status }) => status === 401).length).toBe(200 - busy.length);
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

test("new passwords are set a hundred times in fifteen minutes at most, since each costs as much as a sign-in", async () => {
  const free = new Passwords({ hash: async () => crypto.randomUUID(), verify: async () => true });
  const browser = await new ConsoleSite({ passwords: free }).signedIn("a@x");
  const change = { old_password: "correct horse", new_password: "battery staple" };
  const statuses: number[] = [];
  for (let index = 0; index <= signInAddressTriesMax; index++) {
    statuses.push((await browser.post("/password", change)).status);
  }
  expect(statuses).toEqual([...Array<number>(signInAddressTriesMax).fill(200), 429]);
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

test("nobody comes in with the old password while the new one goes to disk", async () => {
  const site = new ConsoleSite();
  const here = await site.signedIn("a@x");
  const { storage, passwords } = site.office;
  storage.immediate = false;
  const changed = here.post("/password", { old_password: "correct horse", new_password: "battery staple" });
  await site.office.underWay();
  const there = site.browser();
  const checked = spyOn(passwords, "owner");
  const signedIn = there.post("/sign-in", { email: "a@x", password: "correct horse" });
  await eventually("the old password was checked", async () => checked.mock.results.length > 0);
  expect(await checked.mock.results[0]!.value).not.toBeNull();
  storage.immediate = true;
  storage.succeed();
  expect([(await changed).status, (await signedIn).status]).toEqual([200, 401]);
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
    expect(site.office.keys.principal(created.api_key)?.account ?? null).toBe(created.id);
    expect((await browser.get("/session")).body.account).toEqual({
      id: created.id,
      email: "new@x",
      plan: "free",
      operator: false,
      password: true,
      connected: false,
      team: false,
      language: null,
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
