// Machines that sign in to the running gateway: its protocol as recorded of Claude Code's own gateway, and tokens that do what
// keys do in every dialect.
import { describe, expect, test } from "bun:test";
import { deviceCodesMax } from "../../src/account/sign-in/devices.ts";
import { dialects } from "../fixtures/dialects.ts";
import recorded from "../fixtures/claude-gateway.json" with { type: "json" };
import { beginAt, type Codes, Person, pollAt, refreshAt, signInAt, type Tokens } from "../fixtures/machine.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

type Exchange = (typeof recorded.exchanges)[number] & {
  body?: string;
  bearer?: string;
  if_none_match?: string;
  etag?: string;
  reply?: Record<string, unknown>;
};

const settings = { permissions: { deny: ["Bash(curl:*)"] }, model: "claude-haiku-4-5", env: { FOO: "bar" } };
const password = "long enough 1";

describe.each([1, 2])("with %i threads", (threads) => {
  const stack = useStack({
    threads,
    config: `[console]\nsign_up = true
      [[managed_settings]]\nplans = ["pro"]\nsettings = {}
      [[managed_settings]]
      settings = { permissions = { deny = ["Bash(curl:*)"] }, model = "claude-haiku-4-5", env = { FOO = "bar" } }`,
  });
  const url = (): string => stack.gateway.url;

  /** Somebody with an account that has credit. */
  async function person(): Promise<{ browser: Person; email: string }> {
    const { email } = await stack.gateway.account();
    await stack.gateway.cli("accounts", "password", email, "--password", password);
    return { browser: await Person.signedIn(url(), email, password), email };
  }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const statusAt = async (path: string, token: string, init: RequestInit = {}): Promise<number> => {
    const reply = await fetch(url() + path, { ...init, headers: bearer(token) });
    await reply.text();
    return reply.status;
  };

  test("answers as the recorded gateway does, and no exchange more or less", async () => {
    const { browser, email } = await person();
    const known: Record<string, string> = { base: url(), access_token: "", device_code: "", etag: "" };
    const filled = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name: string) => known[name]!);
    let codes: Codes | null = null;
    for (const exchange of recorded.exchanges as readonly Exchange[]) {
      const { name, method, path, body, status, reply } = exchange;
      const wanted: Record<string, unknown> = reply ?? {};
      if (name === "poll approved") {
        await browser.approve(url(), codes!, "Claude Code");
        const { body: tokens } = await pollAt(url(), codes!);
        expect(Object.keys(tokens)).toEqual(expect.arrayContaining(Object.keys(wanted)));
        expect([tokens["token_type"], tokens["email"]]).toEqual(["Bearer", email]);
        known["access_token"] = tokens["access_token"] as string;
        continue;
      }
      if (name === "poll again") {
        expect((await pollAt(url(), codes!)).body).toEqual(wanted);
        continue;
      }
      const answer = await fetch(url() + path, {
        method,
        ...(body === undefined ? {} : { body: filled(body) }),
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
          ...(exchange.bearer === undefined ? {} : bearer(filled(exchange.bearer))),
          ...(exchange.if_none_match === undefined ? {} : { "if-none-match": filled(exchange.if_none_match) }),
        },
      });
      const said = await answer.text();
      expect([name, answer.status]).toEqual([name, status]);
      if ("cache-control" in exchange) expect(answer.headers.get("cache-control")).toBe("no-store");
      if (status === 401 && wanted["type"] === "error") {
        expect(answer.headers.get("x-should-retry")).toBe("false"); // Claude Code then asks for a new sign-in at once
        expect(JSON.parse(said)).toMatchObject({ type: "error", error: { type: "authentication_error" } });
        continue;
      }
      if (exchange.etag !== undefined) {
        // The client computes the same checksum: its settings are the recorded ones, in another order.
        known["etag"] = answer.headers.get("etag")!;
        expect(known["etag"]).toBe(exchange.etag);
        expect(JSON.parse(said)).toEqual({ ...wanted, settings });
        continue;
      }
      if (exchange.reply === undefined) continue;
      const shown = JSON.parse(said) as Record<string, unknown>;
      if (name === "device authorization") codes = shown as unknown as Codes;
      known["device_code"] = codes?.device_code ?? "";
      for (const [field, value] of Object.entries(wanted)) {
        if (field === "scopes_supported") continue; // its provider's
        const given = typeof value === "string" ? filled(value) : value;
        const own =
          typeof shown[field] === "string" ? shown[field].replace(codes?.user_code ?? "?", "...") : shown[field];
        expect([name, field, field.endsWith("_code") ? "..." : own]).toEqual([name, field, given]);
      }
    }
    expect(recorded.exchanges.map(({ name }) => name)).toContain("refresh unknown");
  });

  test("a token does what a key does in all dialects, its rows name the machine, and it ends at once", async () => {
    await stack.node.define("said", once(text("hello"), finish("stop")));
    const marker = stack.node.marker("said");
    const { browser, email } = await person();
    const laptop = await signInAt(url(), browser, "Ada's laptop");
    for (const { ask } of asks(marker)) expect(await ask(laptop)).toBe(200);
    expect((await stack.gateway.usage(email)).map(({ key, endpoint }) => [key, endpoint])).toEqual(
      ["/v1/responses", "/v1/messages", "/v1/chat/completions"].map((endpoint) => ["Ada's laptop", endpoint]),
    );
    const { keys } = (await browser.get(url(), "/keys")).body as { keys: { id: number; machine: boolean }[] };
    expect(keys.map(({ machine }) => machine)).toEqual([false, true]);

    // Of two machines, one is revoked; a disabled account has none, and an enabled one its other again.
    const other = await signInAt(url(), browser, "Ada's laptop");
    await browser.post(url(), `/keys/${keys[1]!.id}/revoke`, {});
    for (const { ask } of asks(marker)) expect([await ask(laptop), await ask(other)]).toEqual([401, 200]);
    expect((await refreshAt(url(), laptop.refresh_token)).body).toEqual({ error: "invalid_grant" });
    await stack.gateway.cli("accounts", "disable", email);
    for (const { ask } of asks(marker)) expect(await ask(other)).toBe(401);
    expect(await statusAt("/managed/settings", other.access_token)).toBe(401);
    expect(await statusAt("/v1/metrics", other.access_token, { method: "POST", body: "{}" })).toBe(401);
    expect((await refreshAt(url(), other.refresh_token)).status).toBe(401);
    await stack.gateway.cli("accounts", "enable", email);
    expect((await refreshAt(url(), other.refresh_token)).status).toBe(200);
    for (const { ask } of asks(marker)) expect(await ask(other)).toBe(401); // another token took its place
  });

  test("settings follow the plan, and telemetry of 10 MB is answered and not read", async () => {
    const { browser, email } = await person();
    const { access_token } = await signInAt(url(), browser, "box");
    const body = new Uint8Array(10_000_000);
    expect(await statusAt("/v1/logs", access_token, { method: "POST", body })).toBe(200);
    await stack.gateway.cli("accounts", "plan", email, "pro");
    const reply = await fetch(`${url()}/managed/settings`, { headers: bearer(access_token) });
    expect(((await reply.json()) as { settings: object }).settings).toEqual({});
    expect((await beginAt(url(), { surface: "claude_code" })).user_code).toHaveLength(9);
  });

  test.skipIf(threads > 1)(
    "one stranger behind a proxy that nobody configured keeps nobody from signing in",
    async () => {
      const { browser } = await person();
      const stranger = { "x-forwarded-for": "203.0.113.7" };
      const begin = async (): Promise<number> => {
        const init = { method: "POST", headers: stranger, body: new URLSearchParams({ machine: "m".repeat(60) }) };
        const reply = await fetch(`${url()}/oauth/device_authorization`, init);
        await reply.text();
        return reply.status;
      };
      for (let asked = 0; asked < deviceCodesMax; asked += 500)
        expect(await Promise.all(Array.from({ length: 500 }, begin))).not.toContain(503);
      const tokens = await signInAt(url(), browser, "Ada's laptop");
      expect(await statusAt("/v1/models", tokens.access_token)).toBe(200);
    },
  );

  const asks = (marker: string) =>
    dialects.map((dialect) => ({
      ask: async ({ access_token }: Tokens): Promise<number> => {
        const { endpoint, body } = bodyOf(dialect.name, marker);
        const init = { method: "POST", body: JSON.stringify(body) };
        return statusAt(endpoint, access_token, init);
      },
    }));
});

function bodyOf(dialect: string, marker: string): Readonly<{ endpoint: string; body: object }> {
  const messages = [{ role: "user", content: `[[${marker}]]` }];
  const model = "core-3";
  if (dialect === "chat") return { endpoint: "/v1/chat/completions", body: { model, messages } };
  if (dialect === "messages") return { endpoint: "/v1/messages", body: { model, messages, max_tokens: 100 } };
  return { endpoint: "/v1/responses", body: { model, input: `[[${marker}]]` } };
}
