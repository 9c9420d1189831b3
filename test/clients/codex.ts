// Runs Codex headless against a gateway: a home and a project of its own in a temporary folder, everything that is not
// the conversation switched off, and its requests written down.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linesOf } from "../fixtures/lines.ts";
import { type Exchange, WireTap } from "./claude-code-tap.ts";

// the platform's package itself, under a name of its own: npm has each platform as a version of one package
const program = join(import.meta.dir, "node_modules/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
export const codexInstalled = existsSync(program);
/** Where npm has a program of it that runs here. */
export const codexPlatform = process.platform === "linux" && process.arch === "x64";

/** A line of `codex exec --json`. */
type CodexEvent = { type: string; item?: CodexItem; [field: string]: unknown };
type CodexItem = { type: string; text?: string; [field: string]: unknown };
export type CodexRun = Readonly<{
  exitCode: number;
  events: readonly CodexEvent[];
  /** The last thing that it said. */
  answer: string | null;
  /** Messages of its errors, in order. */
  failures: readonly string[];
  errors: string;
  /** What it asked of the gateway in this run. */
  exchanges: readonly Exchange[];
}>;

export type CodexOptions = Readonly<{
  key: string;
  args?: readonly string[];
  /** More lines of its configuration, before the tables. */
  config?: string;
  /** `builtin` is the provider that opens a WebSocket first; `custom` is what our README tells to configure. */
  provider?: "custom" | "builtin";
  /** Continues the last conversation. */
  resume?: boolean;
}>;

export class Codex implements AsyncDisposable {
  /** The project's folder, where it works. */
  readonly work: string;
  readonly #folder: string;
  readonly #tap: WireTap;

  private constructor(folder: string, tap: WireTap) {
    this.#folder = folder;
    this.work = join(folder, "work");
    this.#tap = tap;
  }

  static async start(gatewayUrl: string): Promise<Codex> {
    const folder = await mkdtemp(join(tmpdir(), "tollgate-codex-"));
    await Promise.all(["work", "home"].map((name) => mkdir(join(folder, name))));
    return new Codex(folder, await WireTap.start(gatewayUrl));
  }

  /** `codex exec PROMPT` to its end. */
  async run(prompt: string, options: CodexOptions): Promise<CodexRun> {
    const { key, args = [], config = "", provider = "custom", resume = false } = options;
    const home = join(this.#folder, "home");
    const builtin = provider === "builtin" ? `openai_base_url = "${this.#tap.url}/v1"\n` : 'model_provider = "gw"\n';
    await writeFile(
      join(home, "config.toml"),
      `model = "core-3"\ncheck_for_update_on_startup = false\n${builtin}${config}
[model_providers.gw]
name = "Gateway"
base_url = "${this.#tap.url}/v1"
env_key = "GW_KEY"
wire_api = "responses"
[analytics]
enabled = false
[otel]
exporter = "none"
`,
    );
    this.#tap.take();
    const words = resume ? ["exec", "resume", "--last"] : ["exec"];
    const child = Bun.spawn(
      // the sandbox of its shell wants namespaces, which containers do not give
      [
        program,
        ...words,
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        ...args,
        prompt,
      ],
      {
        cwd: this.work,
        env: {
          PATH: process.env["PATH"],
          HOME: home,
          CODEX_HOME: home,
          GW_KEY: key,
          OPENAI_API_KEY: key,
          CODEX_API_KEY: key,
          // nothing but loopback can be asked: every other address meets a closed port
          HTTP_PROXY: "http://127.0.0.1:9",
          HTTPS_PROXY: "http://127.0.0.1:9",
          NO_PROXY: "127.0.0.1",
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        timeout: 100_000,
      },
    );
    const errors = new Response(child.stderr).text();
    const events: CodexEvent[] = [];
    for await (const line of linesOf(child.stdout)) events.push(JSON.parse(line) as CodexEvent);
    const items = events.filter(({ type }) => type === "item.completed").map(({ item }) => item!);
    return {
      exitCode: await child.exited,
      events,
      answer: items.findLast(({ type }) => type === "agent_message")?.text ?? null,
      failures: events.filter(({ type }) => type === "error").map(({ message }) => String(message)),
      errors: await errors,
      exchanges: this.#tap.take(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tap[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
