// goose, an agent for the command line, run headless with the provider of each dialect: an answer, a tool round, what is
// refused, and Ctrl-C in the middle.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { missing } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const program = join(import.meta.dir, "node_modules/@aaif/goose-binary-linux-x64/bin/goose");
const platform = process.platform === "linux" && process.arch === "x64";
const absent = missing("goose", existsSync(program), "run npm ci in test/clients (Linux on x64 only)", platform);

describe.skipIf(absent)("goose", () => {
  const stack = useStack();
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "tollgate-goose-"));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  const start = (provider: string, key: string, prompt: string, model = "core-3") => {
    const own = mkdtempSync(join(home, "run-")); // those that run at once must not make one database
    return Bun.spawn([program, "run", "--no-session", "--no-profile", "--with-builtin", "developer", "-t", prompt], {
      cwd: own,
      env: {
        PATH: process.env["PATH"],
        HOME: own,
        NO_PROXY: "127.0.0.1",
        GOOSE_DISABLE_KEYRING: "1",
        GOOSE_TELEMETRY_ENABLED: "false",
        GOOSE_MODE: "auto",
        GOOSE_PROVIDER: provider,
        GOOSE_MODEL: model,
        OPENAI_HOST: stack.gateway.url,
        OPENAI_API_KEY: key,
        ANTHROPIC_HOST: stack.gateway.url,
        ANTHROPIC_API_KEY: key,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: 60_000,
    });
  };

  test.each([
    ["openai", "/v1/chat/completions"],
    ["anthropic", "/v1/messages"],
  ])("%s: a tool round ends well, refusals say why, and Ctrl-C ends the generation", async (provider, endpoint) => {
    const account = await stack.gateway.account();
    const shell = [
      callStart(0, "call_1", "developer__shell"),
      ...callArguments(0, '{"command":', '"echo from-shell"}'),
    ];
    const replies = [stream(shell, finish("tool_calls")), stream(text("The shell ", "said it."), finish("stop"))];
    await stack.node.define("goose", { advance: "rounds", replies });
    const marker = stack.node.marker("goose");
    const said = async (key: string, prompt: string, model?: string) =>
      new Response(start(provider, key, prompt, model).stdout).text();
    const [ran, wrong, unknown] = await Promise.all([
      said(account.api_key, `run [[${marker}]]`),
      said("wrong", "hi"),
      said(account.api_key, "hi", "nope"), // it tries for seven seconds
    ]);
    expect(ran).toMatch(/from-shell[^]*The shell said it\./);
    expect(wrong).toContain("Invalid API key provided");
    expect(unknown).toContain("The model `nope` does not exist");
    const rounds = await stack.node.requests(marker);
    const results = rounds.flatMap(({ body }) => (body!["messages"] as { role: string; content: string }[]).slice(-1));
    expect(results.find(({ role }) => role === "tool")?.content).toContain("from-shell");
    expect((await stack.gateway.usage(account.email)).every((row) => row.endpoint === endpoint)).toBe(true);

    const endless = stack.node.marker("endless");
    const child = start(provider, account.api_key, `[[${endless}]]`);
    await eventually("it streams", async () => (await stack.node.requests(endless))[0]?.sent.length ?? null);
    child.kill("SIGINT");
    await child.exited;
    await eventually("the node sees all of them closed", async () =>
      (await stack.node.requests(endless)).every(({ clientClosedAt }) => clientClosedAt !== null) ? true : null,
    );
  });
});
