// What was taken away in the console comes back for a minute, exactly as it was: keys, limits, sessions, invitations.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { undoHeader } from "../../src/console/api/console-header.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

setDefaultTimeout(60_000);

const password = "correct horse battery";
let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: "" });
  await gateway.cli("accounts", "create", "head@example.com", "--password", password, "--operator");
  await gateway.cli("accounts", "create", "ann@example.com", "--password", password);
  await gateway.cli("accounts", "create", "bob@example.com", "--password", password);
  await gateway.cli("teams", "create", "research", "--plan", "pro");
  await gateway.cli("teams", "members", "add", "research", "ann@example.com", "--role", "admin");
  await gateway.cli("teams", "members", "add", "research", "bob@example.com", "--limit-day", "5000");
});
afterAll(() => gateway[Symbol.asyncDispose]());

type Reply = Readonly<{ status: number; body: any; cookie: string }>;

/** A browser of somebody. */
class Person {
  constructor(readonly cookie: string) {}

  static async enter(email: string): Promise<Person> {
    const { cookie } = await new Person("").post("/sign-in", { email, password });
    return new Person(cookie);
  }

  async send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Reply> {
    const reply = await fetch(`${gateway.url}/console/api${path}`, {
      method,
      headers: { cookie: this.cookie, origin: gateway.url, "content-type": "application/json", ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const cookie = reply.headers
      .getSetCookie()
      .map((each) => each.split(";", 1)[0])
      .join("; ");
    return { status: reply.status, body: await reply.json(), cookie };
  }

  get = (path: string): Promise<Reply> => this.send("GET", path);
  post = (path: string, body?: object, undo?: string): Promise<Reply> =>
    this.send("POST", path, body, undo === undefined ? {} : { [undoHeader]: undo });
}

const statusOf = async (key: string): Promise<number> =>
  (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
const idOf = async (email: string): Promise<number> =>
  (await gateway.cli<{ id: number }>("accounts", "show", email)).id;
const name = (): string => crypto.randomUUID();

test("a member who was removed is back with the same keys and limits, by the one who did it, once", async () => {
  const [head, ann, bob] = await Promise.all(["head", "ann", "bob"].map((each) => Person.enter(`${each}@example.com`)));
  const team = (await ann!.get("/teams")).body.teams[0].id as number;
  const made = await bob!.post(`/teams/${team}/keys`, {
    name: "night",
    service: false,
    limit_day: 300,
  });
  const key = made.body.api_key as string;
  expect(await statusOf(key)).toBe(200);
  const before = (await ann!.get(`/teams/${team}`)).body.managed.members;
  const keysBefore = (await bob!.get(`/teams/${team}`)).body.own.keys;

  const undo = name();
  expect((await ann!.post(`/teams/${team}/remove`, { account: await idOf("bob@example.com") }, undo)).status).toBe(200);
  expect([await statusOf(key), (await bob!.get(`/teams/${team}`)).status]).toEqual([401, 404]);
  for (const other of [bob!, head!]) expect((await other.post("/undo", { name: undo })).status).toBe(404);
  expect((await ann!.post("/undo", { name: undo })).status).toBe(200);
  expect(await statusOf(key)).toBe(200);
  expect((await ann!.get(`/teams/${team}`)).body.managed.members).toEqual(before);
  expect((await bob!.get(`/teams/${team}`)).body.own.keys).toEqual(keysBefore);
  expect((await ann!.post("/undo", { name: undo })).status).toBe(404);

  // Who lost the right to it meanwhile cannot.
  const late = name();
  await ann!.post(`/teams/${team}/remove`, { account: await idOf("bob@example.com") }, late);
  await gateway.cli("teams", "members", "update", "research", "ann@example.com", "--role", "member");
  expect([(await ann!.post("/undo", { name: late })).status, await statusOf(key)]).toEqual([404, 401]);
  await gateway.cli("teams", "members", "update", "research", "ann@example.com", "--role", "admin");
});

test("a disabled account is enabled again, with its sessions, its keys and those in its teams", async () => {
  const head = await Person.enter("head@example.com");
  const ann = await Person.enter("ann@example.com");
  const team = (await ann.get("/teams")).body.teams[0].id as number;
  const made = await ann.post(`/teams/${team}/keys`, {
    name: "day",
    service: false,
  });
  const own = await gateway.cli<{ api_key: string }>("keys", "create", "ann@example.com", "--name", "own");
  const keys = [made.body.api_key as string, own.api_key];
  const undo = name();
  expect(
    (await head.post(`/operator/accounts/${await idOf("ann@example.com")}/state`, { disabled: true }, undo)).status,
  ).toBe(200);
  expect([...(await Promise.all(keys.map(statusOf))), (await ann.get("/overview")).status]).toEqual([401, 401, 401]);
  expect((await head.post("/undo", { name: undo })).status).toBe(200);
  expect([...(await Promise.all(keys.map(statusOf))), (await ann.get("/overview")).status]).toEqual([200, 200, 200]);
  await gateway.kill("SIGKILL");
  await gateway.restart();
  expect(await Promise.all(keys.map(statusOf))).toEqual([200, 200]);
  const audited = (await head.get("/operator/audit?action=undo")).body.entries as { detail: string }[];
  expect(audited[0]!.detail).toMatch(/^enabled again, key "day", sessions: \d+$/);
});

test("browsers that were signed out are signed in again, but not after a new password", async () => {
  const [one, other] = [await Person.enter("bob@example.com"), await Person.enter("bob@example.com")];
  const undo = name();
  await one.post("/sessions/end-others", undefined, undo);
  expect((await other.get("/overview")).status).toBe(401);
  expect((await one.post("/undo", { name: undo })).status).toBe(200);
  expect((await other.get("/overview")).status).toBe(200);

  const late = name();
  await one.post("/sessions/end-others", undefined, late);
  await one.post("/password", { old_password: password, new_password: `${password} 2` });
  expect([(await one.post("/undo", { name: late })).status, (await other.get("/overview")).status]).toEqual([400, 401]);
});

test("an invitation that was withdrawn works again", async () => {
  const head = await Person.enter("head@example.com");
  const { link } = await gateway.cli<{ link: string }>("accounts", "invite", "--plan", "pro");
  const token = new URL(link).hash.slice(1);
  const look = async (): Promise<number> => (await head.post("/link", { token })).status;
  const found = await look();
  const open = (await head.get("/operator/invitations")).body.invitations as { id: number }[];
  const undo = name();
  await head.post(`/operator/invitations/${open[0]!.id}/withdraw`, undefined, undo);
  expect(await look()).not.toBe(found);
  expect((await head.post("/undo", { name: undo })).status).toBe(200);
  expect(await look()).toBe(found);
});
