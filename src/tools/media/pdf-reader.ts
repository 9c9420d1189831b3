// Reads PDFs in processes of their own, each with limits on time and memory: a file made to exhaust its reader ends
// that process and nothing else. (A Worker shares the gateway's memory: 600 KB of PDF filled 2.6 GB.)
import { readFile } from "node:fs/promises";
import {
  pdfMemoryMaxBytes,
  pdfReadersAccountMax,
  pdfReadersMax,
  pdfTextMaxLength,
  pdfTimeoutMs,
} from "../../core/limits.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { AccountTurns } from "../../core/account-turns.ts";

const memoryCheckIntervalMs = 25;
const pageBytes = 4_096;
/** Of one UTF-16 unit. */
const utf8BytesMax = 3;

export class PdfReader {
  readonly #command: readonly string[];
  readonly #timeoutMs: Ms;
  readonly #turns = new AccountTurns(pdfReadersMax, pdfReadersAccountMax);

  /** `command`: the program that reads a PDF on its standard input and writes the text. */
  constructor(command: readonly string[], timeoutMs: Ms = pdfTimeoutMs) {
    this.#command = command;
    this.#timeoutMs = timeoutMs;
  }

  /** The text; null if there is none, it cannot be read within the limits, or `cancelSignal` was aborted. */
  async read(bytes: Uint8Array, account: AccountId, cancelSignal: AbortSignal): Promise<string | null> {
    const turn = await this.#turns.enter(account, cancelSignal).catch(() => null);
    if (turn === null) return null;
    using _turn = turn;
    if (cancelSignal.aborted) return null;
    const child = Bun.spawn([...this.#command], {
      stdin: bytes,
      stdout: "pipe",
      stderr: "ignore",
      env: {}, // nothing of ours: it reads what a stranger wrote
      timeout: this.#timeoutMs,
      killSignal: "SIGKILL",
      maxBuffer: utf8BytesMax * pdfTextMaxLength,
    });
    const kill = () => child.kill("SIGKILL");
    cancelSignal.addEventListener("abort", kill);
    const watch = setInterval(() => void killIfLarge(child), memoryCheckIntervalMs);
    try {
      const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited]);
      return exitCode === 0 && text.trim() !== "" ? text : null;
    } finally {
      clearInterval(watch);
      cancelSignal.removeEventListener("abort", kill);
    }
  }
}

/** Where there is no /proc (macOS, Windows) the limits on time and pages remain. */
async function killIfLarge(child: Bun.Subprocess): Promise<void> {
  const statm = await readFile(`/proc/${child.pid}/statm`, "latin1").catch(() => "");
  const residentPages = Number(statm.split(" ")[1] ?? 0);
  if (residentPages * pageBytes > pdfMemoryMaxBytes) child.kill("SIGKILL");
}
