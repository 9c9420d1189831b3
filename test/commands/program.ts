// Runs the program as a process of its own, as an operator does.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Finished, runToEnd } from "../fixtures/children.ts";

const binary = process.env["TOLLGATE_BINARY"];
/** The program's command: a built binary where TOLLGATE_BINARY names one, else the sources. */
export const tollgate: readonly string[] =
  binary === undefined ? [process.execPath, join(import.meta.dir, "../../src/main.ts")] : [binary];

/** Only what the program needs: a variable of the machine that runs the tests must not change them. */
const environment = { PATH: process.env["PATH"]!, HOME: tmpdir() };

/** Runs a command to its end. */
export async function run(
  words: readonly string[],
  { program = tollgate, cwd = tmpdir(), variables = {} }: RunOptions = {},
): Promise<Finished> {
  const env = { ...environment, ...variables };
  const { code, stdout, stderr } = await runToEnd([...program, ...words], { cwd, env });
  return { code, stdout: stdout.trim(), stderr: stderr.trim() };
}
export type RunOptions = Readonly<{
  program?: readonly string[];
  cwd?: string;
  variables?: Readonly<Record<string, string>>;
}>;

/** A server that is listening. */
export class Server implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** What it has written so far. */
  stdout = "";
  stderr = "";
  readonly #waiting = new Set<() => void>();

  private constructor(child: Bun.Subprocess<"ignore", "pipe", "pipe">) {
    this.#child = child;
    void this.#read(child.stdout, (text) => (this.stdout += text));
    void this.#read(child.stderr, (text) => (this.stderr += text));
  }

  /** `started` is told its process id at once. */
  static async start(
    words: readonly string[],
    { started, ...options }: RunOptions & { started?: (pid: number) => void } = {},
  ): Promise<Server> {
    const { program = tollgate, cwd = tmpdir(), variables = {} } = options;
    const threads = process.env["TOLLGATE_TEST_THREADS"];
    const more = threads === undefined || words.includes("--threads") ? [] : ["--threads", threads];
    const child = Bun.spawn([...program, "serve", ...words, ...more], {
      cwd,
      env: { ...environment, ...variables },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    started?.(child.pid);
    const server = new Server(child);
    await server.says(/listening on .*\n.*\n/);
    return server;
  }

  get url(): string {
    return /listening on (http:\/\/[^\s,]+)/.exec(this.stdout)![1]!;
  }

  /** Resolves when it has written what matches; rejects when it ends without. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (found !== null) return found;
      // of itself or by a signal: waiting for its end would be over at once, again and again
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`ended without ${pattern}: ${this.stdout}${this.stderr}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      await Promise.race([promise, this.#child.exited]);
      this.#waiting.delete(resolve);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Its exit code, or null when a signal ended it. */
  async ended(): Promise<number | null> {
    await this.#child.exited;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async #read(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      add(decoder.decode(bytes, { stream: true }));
      for (const wake of this.#waiting) wake();
    }
  }
}

/** A new folder that goes when the scope ends. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A chat request; the reply's text, all of it. */
export function chat(url: string, key: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "Hello" }], ...body }),
    signal,
  });
}
