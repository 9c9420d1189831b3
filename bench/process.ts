// Child processes of a benchmark: started on their core, awaited until they say that they are ready, stopped.
import type { Role } from "./placement.ts";
import { placed } from "./placement.ts";

/** The Bun that runs this benchmark also runs its children. */
export const bun = process.execPath;

const readyTimeoutDefaultMs = 30_000;
const stopTimeoutMs = 10_000;
/** The last of the output is kept, to be shown when the process ends by itself. */
const outputMaxCharacters = 8_192;

export type Running = Readonly<{
  pid: number;
  /** The match of `ready` in the output. */
  ready: RegExpExecArray;
  /** Sends SIGTERM and waits; SIGKILL after 10 s. */
  stop(): Promise<void>;
}>;

const children = new Set<Bun.Subprocess>();
let takesChildrenAlong = false;

/** A benchmark that is stopped or fails takes its children along. */
function takeChildrenAlong(): void {
  if (takesChildrenAlong) return;
  takesChildrenAlong = true;
  process.once("exit", () => {
    for (const child of children) child.kill("SIGKILL");
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
}

/** Throws with the process's output when it ends, or is not ready for `readyTimeoutMs` (30 s). */
export async function startProcess(options: {
  role: Role;
  command: readonly string[];
  ready: RegExp;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  readyTimeoutMs?: number;
}): Promise<Running> {
  const child = Bun.spawn(placed(options.role, options.command), {
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  takeChildrenAlong();
  children.add(child);
  void child.exited.then(() => children.delete(child));
  const output = { text: "" };
  const tooLate = setTimeout(() => child.kill("SIGKILL"), options.readyTimeoutMs ?? readyTimeoutDefaultMs);
  const ready = await Promise.race([
    watched(child.stdout, options.ready, output),
    watched(child.stderr, options.ready, output),
    child.exited.then(() => null),
  ]);
  clearTimeout(tooLate);
  if (ready === null) {
    throw new Error(`${options.command.join(" ")} did not get ready:\n${output.text}`);
  }
  let stopping = false;
  void child.exited.then((code) => {
    if (stopping) return;
    console.error(`${options.command.join(" ")} ended by itself (${child.signalCode ?? code}):\n${output.text}`);
  });
  return {
    pid: child.pid,
    ready,
    async stop() {
      stopping = true;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

/** Resolves at the first match; goes on reading, because a full pipe would stop the child. */
function watched(
  stream: ReadableStream<Uint8Array>,
  pattern: RegExp,
  output: { text: string },
): Promise<RegExpExecArray> {
  return new Promise((resolve) => {
    void (async () => {
      const decoder = new TextDecoder();
      let match: RegExpExecArray | null = null;
      for await (const bytes of stream) {
        output.text = (output.text + decoder.decode(bytes, { stream: true })).slice(-outputMaxCharacters);
        match ??= pattern.exec(output.text);
        if (match !== null) resolve(match);
      }
    })();
  });
}
