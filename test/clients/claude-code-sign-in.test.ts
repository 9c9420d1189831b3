// Claude Code signs in by itself (/login, Cloud gateway): in a terminal, with a person who comes from an identity provider.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { Person } from "../fixtures/machine.ts";
import { missing } from "../fixtures/optional.ts";
import { ScriptedProvider } from "../fixtures/scripted-provider.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";
import { claudeCodeInstalled, claudeCodePlatform, program } from "./claude-code.ts";

const absent = missing(
  "Claude Code",
  claudeCodeInstalled,
  "run npm ci in test/clients (Linux on x64 only)",
  claudeCodePlatform,
);

const email = "ada@example.com";
let provider: ScriptedProvider;
let home: string;
beforeAll(async () => {
  provider = await ScriptedProvider.start();
  provider.said.claims = { sub: "ada-1", email, email_verified: true };
  home = await mkdtemp(join(tmpdir(), "tollgate-claude-"));
  await Promise.all([".claude", "work"].map((name) => mkdir(join(home, name))));
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

const environment = () => ({
  PATH: process.env["PATH"],
  HOME: home,
  TERM: "xterm-256color",
  BROWSER: "/bin/true",
  DISABLE_AUTOUPDATER: "1",
  HTTPS_PROXY: "http://127.0.0.1:9", // nothing is asked outside
  NO_PROXY: "127.0.0.1",
});

/** Claude Code in a terminal, whose screen is read without spaces: these are drawn by moving the cursor. */
class Screen implements Disposable {
  #shown = "";
  readonly #child;

  constructor() {
    const decoder = new TextDecoder();
    this.#child = Bun.spawn([program], {
      cwd: join(home, "work"),
      env: environment(),
      terminal: {
        cols: 150,
        rows: 50,
        data: (_terminal, bytes) => void (this.#shown += decoder.decode(bytes, { stream: true })),
      },
    });
  }

  get #text(): string {
    return this.#shown.replace(/\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[()=>][0-9A-Z]?)|\s/g, "");
  }

  /** What it shows that matches, since the last key. */
  async shows(pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(`the screen shows ${pattern}: ${this.#text.slice(-500)}`, async () => pattern.exec(this.#text));
  }

  press(key: "enter" | "up"): void {
    this.#shown = "";
    this.#child.terminal!.write({ enter: "\r", up: "\x1b[A" }[key]);
  }

  /** Chooses the answer above the one that is chosen. */
  async sayYes(): Promise<void> {
    this.press("up");
    await this.shows(/❯Yes/);
    this.press("enter");
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
    this.#child.terminal!.close();
  }
}

async function claude(...words: string[]): Promise<Readonly<{ code: number; said: string }>> {
  const child = Bun.spawn([program, ...words], {
    cwd: join(home, "work"),
    env: environment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 100_000,
  });
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, said: out + error };
}

type Credentials = { enterpriseGateway: { url: string; jwt: string; expiresAt: number; idpRefreshToken: string } };

describe.skipIf(absent)("Claude Code signs in", () => {
  const stack = useStack(async () => ({
    config: `[oidc]
      issuer = "${provider.issuer}"
      client_id = "${provider.client.id}"
      client_secret = "${provider.client.secret}"
      plan = "pro"
      [[managed_settings]]
      plans = ["pro"]
      [managed_settings.settings.env]
      ANTHROPIC_MODEL = "core-3"
      CLAUDE_CODE_MAX_CONTEXT_TOKENS = "196608"
      CLAUDE_CODE_ENABLE_TELEMETRY = "1"
      OTEL_METRICS_EXPORTER = "otlp"
      OTEL_LOGS_EXPORTER = "otlp"
      OTEL_EXPORTER_OTLP_PROTOCOL = "http/json"`,
  }));

  test("with a code that its person approves, works with the settings of her plan, and signs out", async () => {
    const { url } = stack.gateway;
    const settings = { forceLoginMethod: "gateway", forceLoginGatewayUrl: url };
    await writeFile(join(home, ".claude/settings.json"), JSON.stringify(settings));
    using screen = new Screen();
    await screen.shows(/textstyle/);
    screen.press("enter");
    await screen.shows(/Entertoconnect/);
    screen.press("enter");
    await screen.shows(/Trustgateway/);
    await screen.sayYes();
    const [, code] = (await screen.shows(/Code:([A-Z]{4}-[A-Z]{4})/)) as unknown as [string, string];

    // She comes from the identity provider, to the page of her code.
    const ada = new Person();
    const next = `/device?user_code=${code}`;
    const { body: begun } = await ada.post(url, "/provider/start", { next });
    const { body: entered } = await ada.post(url, "/provider/finish", { query: provider.signIn(begun["url"]) });
    expect(entered["next"]).toBe(next);
    const { body: asking } = await ada.post(url, "/device", { user_code: code });
    expect(asking).toMatchObject({ program: "Claude Code", address: "127.0.0.1", name: "Claude Code at 127.0.0.1" });
    await ada.approve(url, { user_code: code }, "Claude Code on Ada's laptop");
    await screen.shows(new RegExp(`SignedintoCloudgatewayas${email}`));
    await screen.sayYes();
    await screen.shows(/ConnectedtoCloudgateway/);

    await stack.node.define("hello", once(text("Hello Ada."), finish("stop")));
    await stack.gateway.cli("accounts", "credit", email, "9000000");
    const asked = async (): Promise<void> => {
      const { code: ended, said } = await claude("-p", `[[${stack.node.marker("hello")}]]`);
      expect([ended, said]).toEqual([0, expect.stringContaining("Hello Ada.")]);
    };
    await asked();
    // It renews a token that is about to expire, once, with the token for that.
    const file = join(home, ".claude/.credentials.json");
    const kept = async (): Promise<Credentials> => JSON.parse(await readFile(file, "utf8")) as Credentials;
    const { enterpriseGateway: before, ...others } = await kept();
    const soon = { ...before, expiresAt: Date.now() + 60_000 };
    await writeFile(file, JSON.stringify({ ...others, enterpriseGateway: soon }));
    await asked();
    const { enterpriseGateway: after } = await kept();
    expect([after.url, after.jwt === before.jwt, after.idpRefreshToken === before.idpRefreshToken]).toEqual([
      url,
      false,
      false,
    ]);
    await asked();
    const rows = await stack.gateway.usage(email);
    expect(rows.length).toBeGreaterThan(0);
    for (const { key, model, endpoint } of rows) {
      expect([key, model, endpoint]).toEqual(["Claude Code on Ada's laptop", "core-3", "/v1/messages"]);
    }
    await claude("auth", "logout");
    expect((await stack.gateway.keys(email)).map(({ name }) => name)).toEqual(["default"]);
  });
});
