// opencode, an agent for the command line, run headless: one question, one tool round, with the provider of each dialect.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

// the platform's package itself: its wrapper lists packages for every platform, which npm ci wants in the lock file
const program = join(import.meta.dir, "node_modules/opencode-linux-x64-baseline/bin/opencode");
const platform = process.platform === "linux" && process.arch === "x64";
const absent = missing("opencode", existsSync(program), "run npm ci in test/clients (Linux on x64 only)", platform);

describe.skipIf(absent)("opencode", () => {
  const stack = useStack();
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tollgate-opencode-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test.each([
    ["@ai-sdk/openai-compatible", "/v1/chat/completions"],
    ["@ai-sdk/openai", "/v1/responses"],
    ["@ai-sdk/anthropic", "/v1/messages"],
  ])("%s: text and a tool round end well, and no request is refused", async (npm, endpoint) => {
    const account = await stack.gateway.account();
    const work = join(folder, "work");
    const home = join(folder, "home");
    await Promise.all([mkdir(work, { recursive: true }), mkdir(home, { recursive: true })]);
    const model = {
      name: "core-3",
      limit: { context: 196_608, output: 32_000 },
      reasoning: true,
      attachment: true,
      tool_call: true,
      modalities: { input: ["text", "image", "pdf"], output: ["text"] },
    };
    await writeFile(
      join(work, "opencode.json"),
      JSON.stringify({
        $schema: "https://opencode.ai/config.json",
        autoupdate: false,
        share: "disabled",
        permission: { bash: "allow", edit: "allow", webfetch: "deny" },
        provider: {
          tollgate: {
            npm,
            options: { baseURL: `${stack.gateway.url}/v1`, apiKey: account.api_key },
            models: { "core-3": model },
          },
        },
      }),
    );
    const marker = stack.node.marker("opencode-bash");
    const child = Bun.spawn([program, "run", "-m", "tollgate/core-3", `run echo [[${marker}]]`], {
      cwd: work,
      // nothing but loopback may be asked: updates, model lists and plugins are off
      env: {
        PATH: process.env["PATH"],
        HOME: home,
        XDG_CONFIG_HOME: join(home, "config"),
        XDG_DATA_HOME: join(home, "data"),
        XDG_CACHE_HOME: join(home, "cache"),
        XDG_STATE_HOME: join(home, "state"),
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        no_proxy: "127.0.0.1",
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: 100_000,
    });
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect(await child.exited, errors).toBe(0);
    expect(output).toContain("The tool said hello. Done.");
    expect(errors).toContain("hello-from-tool");

    const requests = await stack.node.requests(marker);
    // every request that the node finished was charged; a title is asked beside the two rounds of the agent
    const rows = await stack.gateway.usage(account.email);
    expect(requests.length).toBeGreaterThanOrEqual(2);
    expect(rows).toHaveLength(requests.length);
    expect(new Set(rows.map((row) => row.endpoint))).toEqual(new Set([endpoint]));
    const metrics = await (await fetch(`${stack.gateway.url}/metrics`)).text();
    expect(metrics).not.toMatch(/status="[45]\d\d"[^\n]* [1-9]/);
  });
});
