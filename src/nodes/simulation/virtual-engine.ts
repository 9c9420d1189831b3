// A model of an engine such as vLLM or SGLang in virtual time: in each step every answer gets a token and prompts are read
// in order of arrival, up to a budget of tokens; nothing is taken back. Steps in which nothing is read are all alike, so they
// pass in one event until the next answer ends or another prompt comes. Prompts are kept in a cache of blocks.
import type { Ms } from "../../core/types.ts";
import { PrefixIndex } from "../queue/prefix-index.ts";
import { bytesOfBlocks } from "../queue/prompt-blocks.ts";

/** How fast an engine is. */
export type EngineRates = Readonly<{
  /** Tokens of prompts that it reads in a millisecond. */
  readPerMs: number;
  /** A step takes this long, and longer for each request in it. */
  stepMs: Ms;
  requestMs: Ms;
  /** The way to the engine and back, which delays a first token and nothing else. */
  wayMs: Ms;
}>;

/** A mid-range GPU with a model of 8 B, for engines that have shown nothing yet. */
export const usualRates: EngineRates = { readPerMs: 8, stepMs: 12, requestMs: 0.15, wayMs: 0 };

/** Tokens of a step (vLLM's max_num_batched_tokens). */
const stepTokens = 2_048;
/** Prompts count in bytes in the index, as in Placement. */
export const bytesPerToken = 4;

/** A request on an engine. */
export interface Job {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Hashes of the blocks of its prompt, and of its prompt with the answer, as this engine keeps them. */
  readonly promptKeys: Uint32Array;
  readonly keys: Uint32Array;
  /** See Prompt. */
  readonly knownTokens: number;
  /** Set by the engine, when it begins to read. */
  cachedTokens: number;
  unread: number;
  /** The engine's step that ends it. */
  endStep: number;
  first(now: Ms): void;
  end(now: Ms): void;
}

export class VirtualEngine {
  readonly rates: EngineRates;
  /** When its next event is due; Infinity while it has nothing to do. */
  nextAt: Ms = Infinity;
  busyMs: Ms = 0;
  readonly #cache: PrefixIndex | null;
  readonly #waiting: Job[] = [];
  #head = 0;
  readonly #writing = new EndHeap();
  #steps = 0;
  #phaseAt: Ms = 0;
  #phaseStepMs: Ms = 0;
  #phaseSteps = 0;
  readonly #chunks: { job: Job; tokens: number }[] = [];
  #advancing = false;

  /** `cacheTokens`: how much of prompts it keeps; 0: nothing. */
  constructor(rates: EngineRates, cacheTokens: number) {
    this.rates = rates;
    this.#cache = cacheTokens === 0 ? null : new PrefixIndex(cacheTokens * bytesPerToken);
  }

  take(job: Job, now: Ms): void {
    this.#waiting.push(job);
    if (this.#advancing) return;
    if (this.nextAt === Infinity) return this.#plan(now);
    if (this.#chunks.length > 0 || this.#phaseSteps === 1) return;
    // The step under way ends first.
    const done = Math.min(this.#phaseSteps, Math.floor((now - this.#phaseAt) / this.#phaseStepMs) + 1);
    this.#phaseSteps = done;
    this.nextAt = this.#phaseAt + done * this.#phaseStepMs;
  }

  /** The event that is due at `nextAt`. */
  advance(): void {
    const now = this.nextAt;
    this.#advancing = true;
    this.#steps += this.#phaseSteps;
    this.busyMs += now - this.#phaseAt;
    for (const { job, tokens } of this.#chunks) {
      job.unread -= tokens;
      if (job.unread === 0) this.#begins(job, now);
    }
    this.#chunks.length = 0;
    for (let job = this.#writing.first; job !== undefined && job.endStep <= this.#steps; job = this.#writing.first) {
      this.#writing.removeFirst();
      this.#ends(job, now);
    }
    this.#advancing = false;
    this.#plan(now);
  }

  #begins(job: Job, now: Ms): void {
    this.#cache?.read(job.promptKeys, 0);
    job.endStep = this.#steps + job.outputTokens - 1;
    job.first(now);
    if (job.outputTokens <= 1) this.#ends(job, now);
    else this.#writing.add(job);
  }

  #ends(job: Job, now: Ms): void {
    if (this.#cache !== null) {
      this.#cache.use(job.keys);
      this.#cache.read(job.keys, 0);
    }
    job.end(now);
  }

  #plan(now: Ms): void {
    const { readPerMs, stepMs, requestMs } = this.rates;
    let left = Math.max(1, stepTokens - this.#writing.length);
    let read = 0;
    while (left > 0 && this.#head < this.#waiting.length) {
      const job = this.#waiting[this.#head]!;
      if (job.unread < 0) this.#lookUp(job);
      const tokens = Math.min(left, job.unread);
      this.#chunks.push({ job, tokens });
      left -= tokens;
      read += tokens;
      if (tokens < job.unread) break;
      this.#head++;
    }
    if (this.#head > 1_024 && 2 * this.#head > this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
    const requests = this.#writing.length + this.#chunks.length;
    this.#phaseAt = now;
    if (requests === 0) return void (this.nextAt = Infinity);
    this.#phaseStepMs = stepMs + requestMs * requests + read / readPerMs;
    this.#phaseSteps = read > 0 ? 1 : Math.max(1, this.#writing.first!.endStep - this.#steps);
    this.nextAt = now + this.#phaseSteps * this.#phaseStepMs;
  }

  /** Reads what its cache does not have, at least a block, and keeps it from now on. */
  #lookUp(job: Job): void {
    const { inputTokens, promptKeys, knownTokens } = job;
    if (this.#cache !== null) {
      const blocks = this.#cache.match(promptKeys, true);
      // Engines keep far smaller blocks than the index: where it has all whole ones, they have the rest.
      const hasKnown = blocks > 0 && bytesOfBlocks(blocks + 1) > knownTokens * bytesPerToken;
      const cached = Math.max(Math.floor(bytesOfBlocks(blocks) / bytesPerToken), hasKnown ? knownTokens : 0);
      job.cachedTokens = Math.max(0, Math.min(cached, inputTokens - 1));
      this.#cache.use(promptKeys);
    }
    job.unread = Math.max(1, inputTokens - job.cachedTokens);
  }
}

/** Requests that are being answered, those that end first before the others. */
class EndHeap {
  readonly #jobs: Job[] = [];

  get length(): number {
    return this.#jobs.length;
  }
  get first(): Job | undefined {
    return this.#jobs[0];
  }

  add(job: Job): void {
    const jobs = this.#jobs;
    let at = jobs.push(job) - 1;
    for (let up = (at - 1) >> 1; at > 0 && jobs[up]!.endStep > job.endStep; up = (at - 1) >> 1) {
      jobs[at] = jobs[up]!;
      at = up;
    }
    jobs[at] = job;
  }

  removeFirst(): void {
    const jobs = this.#jobs;
    const last = jobs.pop()!;
    if (jobs.length === 0) return;
    let at = 0;
    for (let child = 1; child < jobs.length; child = 2 * at + 1) {
      if (child + 1 < jobs.length && jobs[child + 1]!.endStep < jobs[child]!.endStep) child++;
      if (jobs[child]!.endStep >= last.endStep) break;
      jobs[at] = jobs[child]!;
      at = child;
    }
    jobs[at] = last;
  }
}
