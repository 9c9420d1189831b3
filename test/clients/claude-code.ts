// Runs Claude Code headless against a gateway: a home and a project of its own in a temporary folder, everything that
// is not the conversation switched off, and its requests written down.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linesOf } from "../fixtures/lines.ts";
import { type Exchange, WireTap } from "./claude-code-tap.ts";

// the platform's package itself: its wrapper only links to it in a script after the installation
export const program = join(import.meta.dir, "node_modules/@anthropic-ai/claude-code-linux-x64/claude");
export const claudeCodeInstalled = existsSync(program);
/** Where npm has a program of it that runs here. */
export const claudeCodePlatform = process.platform === "linux" && process.arch === "x64";

/** A line of `--output-format stream-json`. */
type ClaudeEvent = { type: string; subtype?: string; [field: string]: unknown };
type ClaudeResult = ClaudeEvent & {
  is_error: boolean;
  result: string;
  num_turns: number;
  structured_output?: unknown;
};
export type ClaudeRun = Readonly<{
  exitCode: number;
  events: readonly ClaudeEvent[];
  /** The last event. */
  result: ClaudeResult;
  errors: string;
  /** What it asked of the gateway in this run. */
  exchanges: readonly Exchange[];
}>;

export type ClaudeOptions = Readonly<{
  key: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
}>;

export class ClaudeCode implements AsyncDisposable {
  /** The project's folder, where it works. */
  readonly work: string;
  readonly #folder: string;
  readonly #tap: WireTap;
  readonly #outside: Outside;

  private constructor(folder: string, tap: WireTap, outside: Outside) {
    this.#folder = folder;
    this.work = join(folder, "work");
    this.#tap = tap;
    this.#outside = outside;
  }

  static async start(gatewayUrl: string): Promise<ClaudeCode> {
    const folder = await mkdtemp(join(tmpdir(), "tollgate-claude-"));
    await Promise.all(["work", "home", "tmp"].map((name) => mkdir(join(folder, name))));
    return new ClaudeCode(folder, await WireTap.start(gatewayUrl), await Outside.start());
  }

  /**
   * `claude -p PROMPT` to its end.
   * @throws if it asked anything of a host that is not the gateway
   */
  async run(prompt: string, { key, args = [], env = {} }: ClaudeOptions): Promise<ClaudeRun> {
    this.#tap.take();
    const child = Bun.spawn(
      [program, "-p", prompt, "--output-format", "stream-json", "--verbose", "--model", "core-3", ...args],
      {
        cwd: this.work,
        env: {
          PATH: process.env["PATH"],
          HOME: join(this.#folder, "home"),
          TMPDIR: join(this.#folder, "tmp"),
          CLAUDE_CODE_TMPDIR: join(this.#folder, "tmp"),
          ANTHROPIC_BASE_URL: this.#tap.url,
          ANTHROPIC_API_KEY: key,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_TELEMETRY: "1",
          DISABLE_AUTOUPDATER: "1",
          // an id that it does not know is taken for a model of 1,000,000 tokens
          CLAUDE_CODE_MAX_CONTEXT_TOKENS: "196608",
          HTTP_PROXY: this.#outside.url,
          HTTPS_PROXY: this.#outside.url,
          NO_PROXY: "127.0.0.1",
          ...env,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        timeout: 100_000,
      },
    );
    const errors = new Response(child.stderr).text();
    const events: ClaudeEvent[] = [];
    for await (const line of linesOf(child.stdout)) events.push(JSON.parse(line) as ClaudeEvent);
    const exitCode = await child.exited;
    if (this.#outside.asked.length > 0) throw new Error(`asked outside: ${this.#outside.asked.join(", ")}`);
    const result = events.findLast(({ type }) => type === "result");
    if (result === undefined) throw new Error(`Claude Code ended with ${exitCode}: ${await errors}`);
    return { exitCode, events, result: result as ClaudeResult, errors: await errors, exchanges: this.#tap.take() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tap[Symbol.asyncDispose]();
    this.#outside[Symbol.dispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A proxy that lets nothing through and remembers who was asked for. */
class Outside implements Disposable {
  readonly url: string;
  readonly asked: string[];
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>, asked: string[]) {
    this.#server = server;
    this.asked = asked;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Outside> {
    const asked: string[] = [];
    const server = createServer((socket) => {
      socket.once("data", (bytes) => {
        asked.push(bytes.toString("latin1").split("\r\n")[0]!);
        socket.destroy();
      });
      socket.on("error", () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Outside(server, asked);
  }

  [Symbol.dispose](): void {
    this.#server.close();
  }
}
