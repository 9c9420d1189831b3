// The playground's calls to /v1: what a signed-in browser may send without a key, and that nobody else can do it for
// it. The real gateway, a scripted node, real requests.
import { beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
let cookie = "";
let accountId = 0;
beforeAll(async () => {
  await stack.gateway.cli("accounts", "create", "a@x", "--password", "correct horse", "--plan", "pro");
  await stack.gateway.cli("accounts", "create", "other@x", "--password", "correct horse", "--plan", "pro");
  ({ cookie, accountId } = await signIn("a@x"));
}, 120_000);

const origin = () => stack.gateway.url;

async function signIn(email: string): Promise<{ cookie: string; accountId: number }> {
  const response = await fetch(`${origin()}/console/api/sign-in`, {
    method: "POST",
    headers: { origin: origin(), "content-type": "application/json" },
    body: JSON.stringify({ email, password: "correct horse" }),
  });
  const { account } = (await response.json()) as { account: { id: number } };
  return { cookie: response.headers.get("set-cookie")!.split(";")[0]!, accountId: account.id };
}

const bodies = {
  "/v1/chat/completions": { model: "core-3", max_tokens: 50, messages: [{ role: "user", content: "hi" }] },
  "/v1/messages": { model: "core-3", max_tokens: 50, messages: [{ role: "user", content: "hi" }] },
  "/v1/responses": { model: "core-3", max_output_tokens: 50, input: "hi" },
  "/v1/tokenize": { text: "hi" },
  "/v1/messages/count_tokens": { model: "core-3", messages: [{ role: "user", content: "hi" }] },
  "/v1/responses/input_tokens": { model: "core-3", input: "hi" },
} as const;
type Path = keyof typeof bodies;
const paths = Object.keys(bodies) as Path[];

const post = (path: Path, headers: Record<string, string>, more: object = {}): Promise<Response> =>
  fetch(origin() + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ ...bodies[path], ...more }),
  });

/** What the playground sends. */
const ours = () => ({ cookie, origin: origin(), "x-tollgate-console": "1" });

type State = { id: number; spendable: number; reserved: number };
const stateOf = (email: string) => stack.gateway.cli<State>("accounts", "show", email);

describe("a signed-in browser", () => {
  test.each(paths)("may call %s of its own site", async (path) => {
    const response = await post(path, ours());
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  });

  test("pays from its own account, streamed or not, and finds it on the usage page", async () => {
    const before = (await stateOf("a@x")).spendable;
    const others = (await stateOf("other@x")).spendable;
    await (await post("/v1/chat/completions", ours())).text();
    const events = await (await post("/v1/chat/completions", ours(), { stream: true })).text();
    expect(events).toContain("data: [DONE]");
    const after = await stateOf("a@x");
    expect(after).toMatchObject({ id: accountId, reserved: 0 });
    expect(after.spendable).toBeLessThan(before);
    expect((await stateOf("other@x")).spendable).toBe(others);
    const usage = await fetch(`${origin()}/console/api/usage?limit=2`, { headers: { cookie } });
    const { rows } = (await usage.json()) as { rows: { billed_tokens: number; endpoint: string }[] };
    expect(rows).toHaveLength(2);
    expect(before - after.spendable).toBe(rows[0]!.billed_tokens + rows[1]!.billed_tokens);
  });
});

describe("no other site, program or header gets an account's tokens by its cookie", () => {
  const rows: readonly (readonly [string, () => Record<string, string>])[] = [
    ["without the console's header", () => ({ cookie, origin: origin() })],
    ["with another value of it", () => ({ ...ours(), "x-tollgate-console": "0" })],
    ["without Origin", () => ({ cookie, "x-tollgate-console": "1" })],
    ["with a foreign Origin", () => ({ ...ours(), origin: "http://evil.test" })],
    ["with an Origin that begins like ours", () => ({ ...ours(), origin: `${origin()}.evil.test` })],
    ["with an Origin of another port", () => ({ ...ours(), origin: "http://127.0.0.1:1" })],
    ["with the Origin null", () => ({ ...ours(), origin: "null" })],
    ["with an empty Origin", () => ({ ...ours(), origin: "" })],
    ["without a cookie", () => ({ origin: origin(), "x-tollgate-console": "1" })],
    ["with an invented cookie", () => ({ ...ours(), cookie: `tollgate_session=${"A".repeat(43)}` })],
    ["with the cookie of another name", () => ({ ...ours(), cookie: cookie.replace("=", "2=") })],
    // a key, right or wrong, is never passed over for the cookie
    ["with a wrong key", () => ({ ...ours(), authorization: "Bearer sk-tg-wrong" })],
    ["with an empty key", () => ({ ...ours(), authorization: "" })],
    ["with another scheme", () => ({ ...ours(), authorization: "Basic YTpi" })],
    ["with a wrong x-api-key", () => ({ ...ours(), "x-api-key": "sk-tg-wrong" })],
    ["with two keys", () => ({ ...ours(), "x-api-key": "a", authorization: "Bearer b" })],
  ];
  test.each(paths)("%s", async (path) => {
    const before = await stateOf("a@x");
    for (const [name, headers] of rows) {
      const response = await post(path, headers());
      expect([name, response.status]).toEqual([name, 401]);
      expect(await response.text()).toContain("Invalid API key provided");
    }
    expect(await stateOf("a@x")).toEqual(before);
  });

  test("a GET, which carries no Origin, needs our header, which pages of other sites cannot send without one", async () => {
    for (const [path, status] of [
      ["/v1/models", 200],
      ["/v1/models/core-3", 200],
      ["/v1/responses/resp_1", 404],
    ] as const) {
      const { origin: _, "x-tollgate-console": header, ...headers } = ours();
      const statusWith = async (more: object) =>
        (await fetch(origin() + path, { headers: { ...headers, ...more } })).status;
      expect([path, await statusWith({ "x-tollgate-console": header })]).toEqual([path, status]);
      expect([path, await statusWith({})]).toEqual([path, 401]);
      const foreign = { "x-tollgate-console": header, origin: "http://evil.test" };
      expect([path, await statusWith(foreign)]).toEqual([path, 401]);
    }
  });

  test("a page of another site that knows this server's address under another name cannot use it", async () => {
    const { hostname, port } = new URL(origin());
    // Origin and Host agree, as after DNS rebinding; its browser has no cookie of ours for that name.
    const status = await rawStatus(hostname, Number(port), {
      host: "evil.test",
      origin: "http://evil.test",
      "x-tollgate-console": "1",
    });
    expect(status).toBe(401);
  });
});

test("a cookie is worth nothing once its session ended, its account was disabled, or its password was changed", async () => {
  const other = await signIn("other@x");
  const headers = () => ({ ...ours(), cookie: other.cookie });
  expect((await post("/v1/tokenize", headers())).status).toBe(200);
  const signOut = await fetch(`${origin()}/console/api/sign-out`, {
    method: "POST",
    headers: { cookie: other.cookie, origin: origin() },
  });
  expect(signOut.status).toBe(200);
  expect((await post("/v1/tokenize", headers())).status).toBe(401);
});

test("an open request is seen on the event stream, with what it holds, and gone when it ended", async () => {
  const response = await fetch(`${origin()}/console/api/events`, { headers: { cookie } });
  const reader = response.body!.getReader();
  const numbers: { reserved: { tokens: number; requests: number }; requests_in_flight: number }[] = [];
  const readUntil = async (fits: (latest: (typeof numbers)[number]) => boolean) => {
    while (numbers.length === 0 || !fits(numbers.at(-1)!)) {
      const text = new TextDecoder().decode((await reader.read()).value);
      for (const [, json] of text.matchAll(/event: account\ndata: (.*)\n/g)) numbers.push(JSON.parse(json!));
    }
    return numbers.at(-1)!;
  };
  expect(await readUntil(() => true)).toMatchObject({ reserved: { tokens: 0, requests: 0 }, requests_in_flight: 0 });
  const messages = [{ role: "user", content: `[[${stack.node.marker("silent-2s")}]]` }];
  const answer = post("/v1/chat/completions", ours(), { stream: true, messages });
  const during = await readUntil(({ requests_in_flight }) => requests_in_flight > 0);
  expect(during).toMatchObject({ reserved: { tokens: 50, requests: 1 }, requests_in_flight: 1 });
  await (await answer).text();
  expect(await readUntil(({ requests_in_flight }) => requests_in_flight === 0)).toMatchObject({
    reserved: { tokens: 0, requests: 0 },
  });
  await reader.cancel();
}, 120_000);

test("flood protection counts the playground's requests with those of the key", async () => {
  const created = await stack.gateway.cli<{ api_key: string }>(
    ...["accounts", "create", "flood@x", "--password", "correct horse", "--plan", "pro"],
  );
  const { cookie: own } = await signIn("flood@x");
  const statuses: number[] = [];
  for (let index = 0; index < 122; index++) {
    const headers: Record<string, string> =
      index % 2 === 0 ? { ...ours(), cookie: own } : { authorization: `Bearer ${created.api_key}` };
    const response = await post("/v1/chat/completions", headers, { max_tokens: 1 });
    await response.text();
    statuses.push(response.status);
  }
  expect(statuses.indexOf(429)).toBe(120);
}, 120_000);

test("the console's own files and pages are served beside /v1", async () => {
  for (const path of ["/", "/plan", "/usage", "/operator/accounts", "/sign-in"]) {
    const response = await fetch(origin() + path);
    expect([path, response.status, response.headers.get("content-type")]).toEqual([
      path,
      200,
      expect.stringContaining("text/html"),
    ]);
    expect(response.headers.get("content-security-policy")).toContain("default-src 'self'");
  }
  for (const path of ["/", "/plan"]) {
    expect([path, (await fetch(origin() + path, { method: "HEAD" })).status]).toEqual([path, 200]);
  }
  const unknown = await fetch(`${origin()}/nothing`);
  expect([unknown.status, unknown.headers.get("content-type")]).toEqual([404, expect.stringContaining("json")]);
}, 120_000);

/** The status of a POST /v1/tokenize with exactly these headers, which fetch would not let through. */
function rawStatus(host: string, port: number, headers: Record<string, string>): Promise<number> {
  const body = JSON.stringify(bodies["/v1/tokenize"]);
  const lines = Object.entries({ ...headers, "content-length": String(body.length), connection: "close" });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(`POST /v1/tokenize HTTP/1.1\r\n${head}\r\n${body}`));
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    socket.on("end", () => resolve(Number(text.split(" ")[1])));
    socket.on("error", reject);
  });
}
