// Reads PDFs in separate processes, each with limits on time and memory: a file made to exhaust its reader ends only that
// process. (A Worker shares the gateway's memory: 600 KB of PDF filled 2.6 GB.)
//
//   first    nearly all: a few at once, a short time each
//   again    slower ones, with the whole time, and what else their accounts send meanwhile
//   behind   files of an account that recently sent one beyond the limits
//
// So files made to take long delay each other, but not those of other accounts.
import { readFile } from "node:fs/promises";
import { pdfTextMaxLength } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import { type Clock, systemClock } from "../../core/clock.ts";

const pdfTimeoutMs = 15_000;
const pdfMemoryMaxBytes = 512 * 1024 * 1024;
/** Processor time of a first attempt: 200 full pages. PDFs that take longer wait behind all others. */
const pdfFirstTryProcessorMs = 1_000;
export const pdfReadersMax = 4;
const pdfReadersAccountMax = 2;
/** Second attempts, and the PDFs of accounts that recently sent one beyond the limits, run beside the others. */
const pdfSlowReadersMax = 1;
export const pdfExcessRememberedMs = 10 * 60_000;
/** Accounts remembered for that; beyond it the oldest are forgotten. */
const pdfExcessAccountsMax = 10_000;

assert(pdfReadersAccountMax < pdfReadersMax, "an account leaves turns to others: PDFs");

const checkIntervalMs = 25;
const pageBytes = 4_096;
/** Linux counts processor time in hundredths of a second. */
const tickMs = 10;
/** Of one UTF-16 unit. */
const utf8BytesMax = 3;

export type PdfReaderOptions = Readonly<{ timeoutMs?: Ms; firstTryProcessorMs?: Ms; clock?: Clock }>;

/** Why it was ended: it continues in another attempt, the file is beyond the limits, or the machine gave it no time. */
type Try = Readonly<{ text: string | null; excess: "first try" | "limits" | "time" | null }>;

export class PdfReader {
  readonly #command: readonly string[];
  readonly #timeoutMs: Ms;
  readonly #firstTryMs: Ms;
  readonly #clock: Clock;
  readonly #first = new AccountTurns(pdfReadersMax, pdfReadersAccountMax);
  readonly #again = new AccountTurns(pdfSlowReadersMax, pdfSlowReadersMax);
  readonly #behind = new AccountTurns(pdfSlowReadersMax, pdfSlowReadersMax);
  /** Accounts that sent a file beyond the limits, with the time; latest last. */
  readonly #exceeded = new Map<AccountId, Ms>();

  /** `command`: the program that reads a PDF on its standard input and writes the text. */
  constructor(command: readonly string[], options: PdfReaderOptions = {}) {
    this.#command = command;
    this.#timeoutMs = options.timeoutMs ?? pdfTimeoutMs;
    this.#firstTryMs = options.firstTryProcessorMs ?? pdfFirstTryProcessorMs;
    this.#clock = options.clock ?? systemClock;
  }

  /** The text; null if there is none, if it cannot be read within the limits, or if `cancelSignal` aborted. */
  async read(bytes: Uint8Array, account: AccountId, cancelSignal: AbortSignal): Promise<string | null> {
    for (let isSecond = false; ;) {
      const turns = this.#turnsOf(account, isSecond);
      const turn = await turns.enter(account, cancelSignal).catch(() => null);
      if (turn === null) return null;
      using _turn = turn;
      if (cancelSignal.aborted) return null;
      // Another file of the account may have been too slow meanwhile.
      if (this.#turnsOf(account, turns === this.#again) !== turns) continue;
      const { text, excess } = await this.#try(
        bytes,
        turns === this.#first ? this.#firstTryMs : Infinity,
        cancelSignal,
      );
      if (excess === "limits") this.#noteExcess(account);
      if (excess !== "first try") return text;
      isSecond = true;
    }
  }

  /** An account whose file is tried again has its others wait behind that file. */
  #turnsOf(account: AccountId, isSecond: boolean): AccountTurns {
    if (this.#hasExceeded(account)) return this.#behind;
    return isSecond || this.#again.openOf(account) > 0 ? this.#again : this.#first;
  }

  #hasExceeded(account: AccountId): boolean {
    const at = this.#exceeded.get(account);
    return at !== undefined && this.#clock.monotonic() - at < pdfExcessRememberedMs;
  }

  #noteExcess(account: AccountId): void {
    this.#exceeded.delete(account);
    this.#exceeded.set(account, this.#clock.monotonic());
    if (this.#exceeded.size > pdfExcessAccountsMax) this.#exceeded.delete(this.#exceeded.keys().next().value!);
  }

  async #try(bytes: Uint8Array, processorMaxMs: Ms, cancelSignal: AbortSignal): Promise<Try> {
    const child = Bun.spawn([...this.#command], {
      stdin: bytes,
      stdout: "pipe",
      stderr: "ignore",
      env: {}, // nothing of ours, because it reads what a stranger wrote
      maxBuffer: utf8BytesMax * pdfTextMaxLength,
      killSignal: "SIGKILL",
    });
    const kill = () => child.kill("SIGKILL");
    let excess: Try["excess"] = null;
    const began = this.#clock.monotonic();
    let used: Use = { processorMs: null, residentBytes: 0 };
    const check = async (): Promise<void> => {
      used = (await useOf(child.pid)) ?? used;
      const elapsedMs = this.#clock.monotonic() - began;
      const processorMs = used.processorMs ?? elapsedMs;
      if (used.residentBytes > pdfMemoryMaxBytes) excess = "limits";
      else if (processorMs > processorMaxMs) excess = "first try";
      // A busy machine is not the file's fault.
      else if (elapsedMs > this.#timeoutMs) excess = processorMs > this.#firstTryMs ? "limits" : "time";
      if (excess !== null) kill();
    };
    cancelSignal.addEventListener("abort", kill);
    const watch = setInterval(() => void check(), checkIntervalMs);
    try {
      const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited]);
      return { text: exitCode === 0 && text.trim() !== "" ? text : null, excess: exitCode === 0 ? null : excess };
    } finally {
      clearInterval(watch);
      cancelSignal.removeEventListener("abort", kill);
    }
  }
}

/** What a process has used; the time is null where unknown. */
type Use = Readonly<{ processorMs: Ms | null; residentBytes: number }>;

/** proc(5), stat; null without /proc (macOS, Windows): the limits on time and pages remain. */
async function useOf(pid: number): Promise<Use | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => null);
  if (stat === null) return null;
  // The program's name, in parentheses, may contain anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, residentPages] = [fields[11], fields[12], fields[21]].map(Number);
  return { processorMs: (user! + system!) * tickMs, residentBytes: residentPages! * pageBytes };
}
