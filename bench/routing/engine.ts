// A model of an engine like vLLM: a prefix cache of pages (the least recently used go first, the end of a prompt before its
// beginning), prompts read in chunks of a step's budget, continuous batching, first come, first served, and nothing taken
// back. Its cache is its own and not the index by which the gateway judges, so that the benchmark can show where that errs. It
// knows no clock: `plan` says how long the next step takes, and `apply` ends that step.
import { blockTokens, type EnginePrompt } from "./text.ts";

export type EngineSettings = Readonly<{
  /** The size of its cache. */
  blocks: number;
  requestsMax: number;
  /** Tokens of one step. */
  budgetTokens: number;
  readTokensPerMs: number;
  /** A step takes this long, and this much longer for each request in it. */
  stepMs: number;
  requestMs: number;
}>;

export const usualEngine: EngineSettings = {
  blocks: 25_000, // 400,000 tokens
  requestsMax: 256,
  budgetTokens: 2_048,
  readTokensPerMs: 8,
  stepMs: 12,
  requestMs: 0.15,
};

export const enginesOfSpeed = (speed: number): EngineSettings => ({
  ...usualEngine,
  readTokensPerMs: usualEngine.readTokensPerMs * speed,
  stepMs: usualEngine.stepMs / speed,
  requestMs: usualEngine.requestMs / speed,
});

/** A request on an engine. */
export class Job {
  /** Tokens of the prompt that are in the cache or read, those that were in the cache at first, and tokens of the answer. */
  computed = 0;
  cached = 0;
  written = 0;
  hasLeft = false;
  /** Cached blocks that it holds, and blocks that it will need besides. */
  readonly held: number[] = [];
  reserved = 0;

  constructor(
    readonly prompt: EnginePrompt,
    readonly outputTokens: number,
    /** Its first token, each further one, and its end. */
    readonly began: () => void,
    readonly wrote: () => void,
    readonly ended: () => void,
  ) {}

  get unread(): number {
    return Math.max(0, this.prompt.tokens - this.computed);
  }
}

export class Engine {
  readonly settings: EngineSettings;
  readonly waiting: Job[] = [];
  readonly running: Job[] = [];
  /** Cached blocks: how many requests hold each. */
  readonly #holders = new Map<number, number>();
  /** Cached blocks that none holds, the oldest first. */
  readonly #unheld = new Set<number>();
  #reserved = 0;
  #planned: { job: Job; tokens: number }[] = [];

  constructor(settings: EngineSettings) {
    this.settings = settings;
  }

  /** The part of its cache that requests hold, from 0 to 1. */
  get cacheUse(): number {
    return (this.#holders.size - this.#unheld.size + this.#reserved) / this.settings.blocks;
  }

  get unreadTokens(): number {
    let sum = 0;
    for (const job of this.running) sum += job.unread;
    for (const { prompt } of this.waiting) sum += prompt.tokens - this.cachedTokens(prompt);
    return sum;
  }

  /** How much of a prompt it has in its cache; the last token is always read. */
  cachedTokens({ blocks, tokens }: EnginePrompt): number {
    const most = Math.floor((tokens - 1) / blockTokens);
    let at = 0;
    while (at < most && this.#holders.has(blocks[at]!)) at++;
    return at * blockTokens;
  }

  /** Everything that no request holds. */
  loseCache(): void {
    for (const block of this.#unheld) this.#holders.delete(block);
    this.#unheld.clear();
  }

  take(job: Job): void {
    this.waiting.push(job);
  }

  leave(job: Job): void {
    job.hasLeft = true;
    if (this.waiting.includes(job)) this.waiting.splice(this.waiting.indexOf(job), 1);
    else if (this.running.includes(job)) this.#release(job);
  }

  /** Milliseconds of the next step; null where there is nothing to do. */
  plan(): number | null {
    const { budgetTokens, requestsMax, stepMs, requestMs, readTokensPerMs } = this.settings;
    let left = budgetTokens;
    let read = 0;
    this.#planned = [];
    const include = (job: Job): void => {
      const tokens = Math.min(left, job.unread || 1);
      if (job.unread > 0) read += tokens;
      left -= tokens;
      this.#planned.push({ job, tokens });
    };
    for (const job of this.running) {
      if (left <= 0) break;
      include(job);
    }
    while (left > 0 && this.running.length < requestsMax && this.#admitsNext()) include(this.running.at(-1)!);
    return this.#planned.length === 0 ? null : stepMs + requestMs * this.#planned.length + read / readTokensPerMs;
  }

  apply(): void {
    for (const { job, tokens } of this.#planned) {
      if (job.hasLeft) continue;
      const wasReading = job.unread > 0;
      if (wasReading) job.computed += tokens;
      if (job.unread === 0) job.written++;
      this.#cacheFullBlocks(job);
      if (job.written === 0) continue;
      if (wasReading) job.began();
      else job.wrote();
      if (job.written < job.outputTokens) continue;
      this.#release(job);
      job.ended();
    }
    this.#planned = [];
  }

  #admitsNext(): boolean {
    const job = this.waiting[0];
    if (job === undefined) return false;
    const { prompt, outputTokens } = job;
    const cached = this.cachedTokens(prompt);
    const found = prompt.blocks.subarray(0, cached / blockTokens);
    const wanted = Math.ceil((prompt.tokens + outputTokens) / blockTokens) - found.length;
    const unheld = found.reduce((count, block) => count + Number(this.#unheld.has(block)), 0);
    const held = this.#holders.size - this.#unheld.size + unheld + this.#reserved;
    if (held + wanted > this.settings.blocks && this.running.length > 0) return false;
    for (const block of found) this.#hold(job, block);
    job.reserved = wanted;
    this.#reserved += wanted;
    for (const oldest of this.#unheld) {
      if (this.#holders.size + this.#reserved <= this.settings.blocks) break;
      this.#unheld.delete(oldest);
      this.#holders.delete(oldest);
    }
    job.computed = job.cached = cached;
    this.running.push(this.waiting.shift()!);
    return true;
  }

  #hold(job: Job, block: number): void {
    this.#unheld.delete(block);
    this.#holders.set(block, (this.#holders.get(block) ?? 0) + 1);
    job.held.push(block);
  }

  /** From now on others find them. */
  #cacheFullBlocks(job: Job): void {
    const { blocks } = job.prompt;
    const full = Math.min(blocks.length, Math.floor((job.computed + job.written) / blockTokens));
    while (job.held.length < full) {
      this.#hold(job, blocks[job.held.length]!);
      job.reserved--;
      this.#reserved--;
    }
  }

  #release(job: Job): void {
    this.running.splice(this.running.indexOf(job), 1);
    this.#reserved -= job.reserved;
    for (const block of job.held.toReversed()) {
      const holders = this.#holders.get(block)! - 1;
      this.#holders.set(block, holders);
      if (holders === 0) this.#unheld.add(block);
    }
  }
}
