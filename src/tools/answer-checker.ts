// The gateway's end of checking answers: one order at a time goes to the checking process, accounts take turns, and a
// check that takes too long is ended together with the process. Others lose nothing by that but the start of the next.
import { join } from "node:path";
import { checkIdleMs, checkStartMs, checkTimeMaxMs, checkedTextMaxLength } from "../limits.ts";
import type { Log } from "../log.ts";
import { CountingQueue } from "../tokens/counting-queue.ts";
import type { AccountId, Ms } from "../types.ts";
import type { Verdict } from "./answer-validator.ts";
import type { CheckAnswer, CheckOrder } from "./checking-process.ts";

/** The verdict, or that there is none: `slow`, the check took too long; `failed`, the process cannot be started. */
export type CheckResult = Verdict | Readonly<{ verdict: "slow" }> | Readonly<{ verdict: "failed" }>;

/** Gives verdicts on schemas and answers (see `CheckOrder`). */
export interface Checker {
  /** Never rejects. */
  check(order: CheckOrder, account: AccountId): Promise<CheckResult>;
}

export type AnswerCheckerOptions = Readonly<{
  log: Log;
  timeMaxMs?: Ms;
  idleMs?: Ms;
  /** For tests: another process. */
  command?: readonly string[];
}>;

type Job = Readonly<{ account: AccountId; order: CheckOrder; resolve: (result: CheckResult) => void }>;

/** A compiled binary, which has no script beside it, is started with a command of its own. */
const commandDefault = (): readonly string[] =>
  import.meta.url.includes("/$bunfs/")
    ? [process.execPath, "check-answers"]
    : [process.execPath, join(import.meta.dir, "checking-process.ts")];

export class AnswerChecker implements Checker {
  readonly #log: Log;
  readonly #timeMaxMs: Ms;
  readonly #idleMs: Ms;
  readonly #command: readonly string[];
  readonly #queue = new CountingQueue<Job>();
  #process: Bun.Subprocess | null = null;
  #ready = false;
  #running: Job | null = null;
  /** Of the start, of the running check, or of idleness: never two at once. */
  #timer: Timer | null = null;
  readonly #exits = new Set<Promise<number>>();

  constructor({
    log,
    timeMaxMs = checkTimeMaxMs,
    idleMs = checkIdleMs,
    command = commandDefault(),
  }: AnswerCheckerOptions) {
    this.#log = log;
    this.#timeMaxMs = timeMaxMs;
    this.#idleMs = idleMs;
    this.#command = command;
  }

  check(order: CheckOrder, account: AccountId): Promise<CheckResult> {
    if (order.text !== null && order.text.length > checkedTextMaxLength) return Promise.resolve({ verdict: "slow" });
    const { promise, resolve } = Promise.withResolvers<CheckResult>();
    this.#queue.enter({ account, order, resolve });
    this.#advance();
    return promise;
  }

  /** Ends the process; what waits is answered `failed`. Resolves when every process has ended. */
  async close(): Promise<void> {
    this.#failAll();
    this.#end();
    await Promise.all(this.#exits);
  }

  /** Gives the process its next order, or starts it first, or lets it rest. */
  #advance(): void {
    if (this.#running !== null) return;
    if (this.#process === null) {
      if (!this.#queue.isEmpty) this.#start();
      return;
    }
    if (!this.#ready) return;
    const job = this.#queue.next();
    if (job === null) return this.#limit(this.#idleMs, () => this.#end());
    this.#running = job;
    this.#limit(this.#timeMaxMs, () => {
      this.#log("warn", "a check of structured output took too long", { account: job.account });
      this.#end();
      this.#answer({ verdict: "slow" });
    });
    this.#process.send(job.order);
  }

  #answer(result: CheckResult): void {
    const job = this.#running;
    if (job === null) return;
    this.#running = null;
    this.#queue.leave(job);
    job.resolve(result);
    this.#advance();
  }

  #start(): void {
    this.#ready = false;
    const started = Bun.spawn([...this.#command], {
      // it needs nothing of ours, least of all the keys of nodes
      env: {},
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "json",
      ipc: (message: CheckAnswer) => {
        if (this.#process !== started) return;
        if (message !== "ready") return this.#answer(message);
        this.#ready = true;
        this.#advance();
      },
      onExit: () => {
        this.#exits.delete(started.exited);
        if (this.#process !== started) return; // it was told to
        const wasReady = this.#ready;
        this.#process = null;
        this.#stopTimer();
        this.#log("error", "the process that checks structured output ended", { ready: wasReady });
        // out of memory over one order, most likely: the others get a new process
        if (wasReady) this.#answer({ verdict: "slow" });
        else this.#failAll();
      },
    });
    started.unref();
    this.#process = started;
    this.#exits.add(started.exited);
    this.#limit(checkStartMs, () => {
      this.#log("error", "the process that checks structured output does not start");
      this.#end();
      this.#failAll();
    });
  }

  #failAll(): void {
    for (let job = this.#queue.next(); job !== null; job = this.#queue.next()) {
      if (job === this.#running) this.#running = null;
      this.#queue.leave(job);
      job.resolve({ verdict: "failed" });
    }
  }

  #end(): void {
    this.#stopTimer();
    const ended = this.#process;
    this.#process = null;
    ended?.kill("SIGKILL");
  }

  #limit(ms: Ms, exceeded: () => void): void {
    this.#stopTimer();
    this.#timer = setTimeout(exceeded, ms);
    this.#timer.unref();
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
