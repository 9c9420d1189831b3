// What is known of a batch, and how the two APIs show it.
import type { AccountId, Endpoint, Ms } from "../core/types.ts";

/** OpenAI's `/v1/batches`, whose lines and results are files, or Anthropic's `/v1/messages/batches`. */
export type BatchForm = "openai" | "anthropic";
export type BatchError = Readonly<{ code: string; line: number | null; message: string; param: string | null }>;

/** How it ends, once no more of its lines run. */
export type BatchEnd = "completed" | "expired" | "cancelled" | "failed";
type BatchState = "validating" | "in_progress" | "cancelling" | "finalizing" | BatchEnd;

/** What its lines have come to; billed in balance tokens. */
export type BatchSums = {
  completed: number;
  failed: number;
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  billed: number;
};

/** As it is on disk. */
export type Batch = {
  readonly id: string;
  readonly form: BatchForm;
  readonly account: AccountId;
  /** By which it was made, and asked anew before each line; null: by a signed-in browser. */
  readonly keyHash: string | null;
  /** Of the client that made it; null where unknown. */
  readonly address: string | null;
  readonly endpoint: Endpoint;
  /** Null: its requests came with it. */
  readonly inputFileId: string | null;
  readonly createdAt: Ms;
  readonly expiresAt: Ms;
  /** From when its output is made to when it expires. */
  readonly outputKeepMs: Ms;
  readonly metadata: Readonly<Record<string, string>> | null;
  state: BatchState;
  /** Why it ends, decided before it is written what has not run. */
  end: BatchEnd | null;
  errors: readonly BatchError[];
  /** Lines; 0 until they are read. */
  total: number;
  /** The first of its models. */
  model: string | null;
  sums: BatchSums;
  startedAt: Ms | null;
  cancellingAt: Ms | null;
  finalizingAt: Ms | null;
  endedAt: Ms | null;
  outputFileId: string | null;
  errorFileId: string | null;
  /** Lines that had not run when it ended. */
  unrun: number;
  /** Why it waits, in words; null where it does not. */
  waits: string | null;
};

export const noSums: Readonly<BatchSums> = {
  completed: 0,
  failed: 0,
  input: 0,
  cachedInput: 0,
  output: 0,
  reasoning: 0,
  billed: 0,
};

export const hasEnded = ({ endedAt }: Batch): boolean => endedAt !== null;

const secondsOf = (at: Ms | null): number | null => (at === null ? null : Math.floor(at / 1000));

function openaiBatch(batch: Batch): object {
  const { state, sums, errors, endedAt } = batch;
  const ended = (as: BatchEnd): number | null => (state === as ? secondsOf(endedAt) : null);
  const { input, cachedInput, output, reasoning } = sums;
  return {
    id: batch.id,
    object: "batch",
    endpoint: batch.endpoint,
    model: batch.model,
    errors: errors.length === 0 ? null : { object: "list", data: errors },
    input_file_id: batch.inputFileId,
    completion_window: `${Math.round((batch.expiresAt - batch.createdAt) / 3_600_000)}h`,
    status: state,
    output_file_id: endedAt === null ? null : batch.outputFileId,
    error_file_id: endedAt === null ? null : batch.errorFileId,
    created_at: secondsOf(batch.createdAt),
    in_progress_at: secondsOf(batch.startedAt),
    expires_at: secondsOf(batch.expiresAt),
    finalizing_at: secondsOf(batch.finalizingAt),
    completed_at: ended("completed"),
    failed_at: ended("failed"),
    expired_at: ended("expired"),
    cancelling_at: secondsOf(batch.cancellingAt),
    cancelled_at: ended("cancelled"),
    request_counts: { total: batch.total, completed: sums.completed, failed: sums.failed },
    usage: {
      input_tokens: input + cachedInput,
      input_tokens_details: { cached_tokens: cachedInput },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + cachedInput + output,
    },
    metadata: batch.metadata,
    billed_tokens: sums.billed,
    waits: batch.waits,
  };
}

export const timeOf = (at: Ms | null): string | null => (at === null ? null : new Date(at).toISOString());

function anthropicBatch(batch: Batch): object {
  const { id, total, sums, end, unrun, endedAt, cancellingAt } = batch;
  const unrunAs = (as: BatchEnd): number => (endedAt !== null && end === as ? unrun : 0);
  return {
    id,
    type: "message_batch",
    processing_status: endedAt !== null ? "ended" : cancellingAt !== null ? "canceling" : "in_progress",
    request_counts: {
      processing: endedAt !== null ? 0 : Math.max(0, total - sums.completed - sums.failed),
      succeeded: sums.completed,
      errored: sums.failed + unrunAs("failed"),
      canceled: unrunAs("cancelled"),
      expired: unrunAs("expired"),
    },
    created_at: timeOf(batch.createdAt),
    expires_at: timeOf(batch.expiresAt),
    ended_at: timeOf(endedAt),
    cancel_initiated_at: timeOf(cancellingAt),
    archived_at: null,
    results_url: endedAt === null ? null : `/v1/messages/batches/${id}/results`,
  };
}

export const shownBatch = (batch: Batch): object =>
  batch.form === "openai" ? openaiBatch(batch) : anthropicBatch(batch);
