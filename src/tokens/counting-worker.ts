// The Worker that counts tokens and holds the tables, so that counting stops no stream. A message ends it.
import { setPriority } from "node:os";
import type { AccountId, EncodingName } from "../core/types.ts";
import { FairQueue } from "../core/fair-queue.ts";
import { answerCalls, endWorker } from "../core/workers.ts";
import { TokenReading, Tokenizer } from "./tokenizer.ts";

/** `bytes`: the texts in UTF-8, joined; `ends`: where each ends. Answered with a Count; null: cancelled meanwhile. */
export type CountingCall =
  | Readonly<{
      order: "count";
      id: number;
      account: AccountId;
      encoding: EncodingName;
      bytes: Uint8Array;
      ends: Uint32Array;
      keep: boolean;
    }>
  | Readonly<{ order: "forget"; id: number }>
  | Readonly<{ order: "close" }>;

/** The number of tokens, and the tokens themselves where requested. */
export type Count = Readonly<{ count: number; tokens: readonly Uint32Array[] }>;

type Job = {
  readonly id: number;
  readonly account: AccountId;
  readonly tokenizer: Tokenizer;
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
  readonly keep: boolean;
  /** The text that is being read, and its index. */
  reading: TokenReading | null;
  index: number;
  count: number;
  readonly tokens: Uint32Array[];
  answer(count: Count | null): void;
};

declare const self: Worker;

/** 1 to 3 ms of work: a short text waits this long for each account with a long one. */
const sliceSteps = 100_000;
/** Linux gives the main thread 9 times this thread's share where both want the same core. */
const niceness = 10;

const queue = new FairQueue<Job>();
const jobs = new Map<number, Job>();
let running = false;

answerCalls<CountingCall>(self, (call) => {
  switch (call.order) {
    case "count":
      return new Promise<Count | null>((answer) => enter(call, answer));
    case "forget": {
      const job = jobs.get(call.id);
      if (job !== undefined) leave(job, null); // otherwise it was answered while the message was on its way
      return undefined;
    }
    case "close":
      for (const job of [...jobs.values()]) leave(job, null); // no one waits for them
      return endWorker(self);
  }
});

// On Linux a priority applies to the thread; elsewhere it would apply to the whole process.
if (process.platform === "linux") setPriority(0, niceness);

function enter(call: Extract<CountingCall, { order: "count" }>, answer: Job["answer"]): void {
  const { id, account, encoding, bytes, ends, keep } = call;
  const tokenizer = tokenizerOf(encoding);
  const job: Job = { id, account, tokenizer, bytes, ends, keep, reading: null, index: 0, count: 0, tokens: [], answer };
  jobs.set(id, job);
  queue.enter(job);
  if (running) return;
  running = true;
  setImmediate(runSlice);
}

const tokenizers = new Map<EncodingName, Tokenizer>();

function tokenizerOf(encoding: EncodingName): Tokenizer {
  let tokenizer = tokenizers.get(encoding);
  if (tokenizer === undefined) tokenizers.set(encoding, (tokenizer = new Tokenizer(encoding)));
  return tokenizer;
}

/** One slice for the job whose turn it is; messages come in between slices. */
function runSlice(): void {
  const job = queue.next();
  if (job === null) {
    running = false;
    return;
  }
  if (advance(job, job.tokenizer.steps + sliceSteps)) leave(job, { count: job.count, tokens: job.tokens });
  setImmediate(runSlice);
}

function advance(job: Job, lastStep: number): boolean {
  const { tokenizer } = job;
  while (job.index < job.ends.length) {
    if (tokenizer.steps >= lastStep) return false;
    const start = job.index === 0 ? 0 : job.ends[job.index - 1]!;
    job.reading ??= new TokenReading(tokenizer, job.bytes.subarray(start, job.ends[job.index]!), job.keep);
    if (!job.reading.advance(lastStep - tokenizer.steps)) return false;
    job.count += job.reading.count;
    if (job.keep) job.tokens.push(job.reading.tokens());
    job.reading = null;
    job.index++;
  }
  return true;
}

function leave(job: Job, count: Count | null): void {
  jobs.delete(job.id);
  queue.leave(job);
  job.answer(count);
}
