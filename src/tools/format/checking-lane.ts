// The gateway's end of one checking process: one order at a time, accounts in turn. One that hangs is replaced.
import { join } from "node:path";
import type { Log } from "../../core/log.ts";
import { FairQueue } from "../../core/fair-queue.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type {
  CheckAnswer,
  CheckingPace,
  CheckLimits,
  CheckOrder,
  LimitedOrder,
  TimedVerdict,
} from "./checking-process.ts";

/** A process without a verdict for this long has hung, however busy the machine is. */
const checkSilenceMs = 60_000;
const checkStartMs = 10_000;
/** The checking process ends after this long without a check. */
const checkIdleMs = 5 * 60_000;

/** `refused`: its account had used up its time when its turn came. `failed`: the process cannot be started. */
export type LaneResult = TimedVerdict | Readonly<{ verdict: "refused" | "failed" }>;

export type CheckingLaneOptions = Readonly<{
  pace: CheckingPace;
  /** What a check gets at its first attempt, its second, ...; all first attempts go before all second ones. */
  tries: readonly CheckLimits[];
  log: Log;
  /** Called when an account's turn has come. */
  mayRun: (account: AccountId) => boolean;
  /** Called for each check that was made or given up, before its caller gets the result. */
  made?: (account: AccountId, result: TimedVerdict) => void;
  idleMs?: Ms;
  silenceMs?: Ms;
  /** For tests: another process. */
  command?: readonly string[];
}>;

type Job = Readonly<{ account: AccountId; order: CheckOrder; attempt: number; resolve: (result: LaneResult) => void }>;

/** Processor time charged for a check that took its process down. */
const lostUsedMs = 3_000;

/** A compiled binary has no script beside it, so it is started with a command of its own. */
const commandOf = (pace: CheckingPace): readonly string[] => [
  process.execPath,
  import.meta.url.includes("/$bunfs/") ? "check-answers" : join(import.meta.dir, "checking-process.ts"),
  ...(pace === "quick" ? ["--quick"] : []),
];

export class CheckingLane {
  readonly #options: CheckingLaneOptions;
  /** Of first attempts, second ones, ... */
  readonly #queues: readonly FairQueue<Job>[];
  #process: Bun.Subprocess | null = null;
  #ready = false;
  #running: Job | null = null;
  /** For the start, the running check, or idleness: never two at once. */
  #timer: Timer | null = null;
  readonly #exits = new Set<Promise<number>>();

  constructor(options: CheckingLaneOptions) {
    this.#options = options;
    this.#queues = options.tries.map(() => new FairQueue<Job>());
  }

  /** Never rejects. */
  check(order: CheckOrder, account: AccountId): Promise<LaneResult> {
    const { promise, resolve } = Promise.withResolvers<LaneResult>();
    this.#queues[0]!.enter({ account, order, attempt: 0, resolve });
    this.#advance();
    return promise;
  }

  /** Ends the process; waiting checks get `failed`. Resolves when every process has ended. */
  async close(): Promise<void> {
    this.#failAll();
    this.#end();
    await Promise.all(this.#exits);
  }

  #advance(): void {
    if (this.#running !== null) return;
    const job = this.#nextThatMay();
    if (this.#process === null) {
      if (job !== null) this.#start();
      return;
    }
    if (!this.#ready) return;
    if (job === null) return this.#limit(this.#options.idleMs ?? checkIdleMs, () => this.#end());
    this.#running = job;
    this.#limit(this.#options.silenceMs ?? checkSilenceMs, () => {
      this.#end();
      this.#lost();
    });
    this.#process.send({ ...job.order, ...this.#options.tries[job.attempt]! } satisfies LimitedOrder);
  }

  #nextThatMay(): Job | null {
    for (let job = this.#next(); job !== null; job = this.#next()) {
      if (this.#options.mayRun(job.account)) return job;
      this.#queues[job.attempt]!.leave(job);
      job.resolve({ verdict: "refused" });
    }
    return null;
  }

  #next(): Job | null {
    for (const queue of this.#queues) if (!queue.isEmpty) return queue.next();
    return null;
  }

  /** The process is gone, and with it its current check. */
  #lost(): void {
    const account = this.#running?.account ?? null;
    this.#options.log("warn", "the process that checks structured output ended", { account });
    this.#answer({ verdict: "slow", usedMs: lostUsedMs }, true);
  }

  #answer(result: TimedVerdict, isLast = false): void {
    const job = this.#running;
    if (job === null) return;
    this.#running = null;
    this.#queues[job.attempt]!.leave(job);
    const again = isLast || result.verdict !== "slow" ? undefined : this.#queues[job.attempt + 1];
    if (again !== undefined) {
      again.enter({ ...job, attempt: job.attempt + 1 });
      return this.#advance();
    }
    this.#options.made?.(job.account, result);
    job.resolve(result);
    this.#advance();
  }

  #start(): void {
    this.#ready = false;
    const { pace, log, command = commandOf(pace) } = this.#options;
    const started = Bun.spawn([...command], {
      // It needs nothing of ours, least of all the keys of nodes.
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
        if (this.#process !== started) return; // on our order
        const wasReady = this.#ready;
        this.#process = null;
        this.#stopTimer();
        if (wasReady) return this.#lost(); // stuck in its order, or out of memory: the others get a new process
        log("error", "the process that checks structured output does not start");
        this.#failAll();
      },
    });
    started.unref();
    this.#process = started;
    this.#exits.add(started.exited);
    this.#limit(checkStartMs, () => {
      log("error", "the process that checks structured output does not start");
      this.#end();
      this.#failAll();
    });
  }

  #failAll(): void {
    this.#running = null;
    for (let job = this.#next(); job !== null; job = this.#next()) {
      this.#queues[job.attempt]!.leave(job);
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
