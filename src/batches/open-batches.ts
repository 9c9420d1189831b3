// Batches of a running server.
import type { Files } from "../files/files.ts";
import { isVoice } from "../core/model-kinds.ts";
import type { AccountId } from "../core/types.ts";
import type { Inside, KeptAsked, KeptReply } from "../http/kept-routes.ts";
import type { BatchesDesk, BatchRow } from "../office/work.ts";
import { answers } from "./answers.ts";
import { type Batch, timeOf } from "./batch.ts";
import { Batches, type BatchesOptions } from "./batches.ts";

export type OpenBatchesOptions = Omit<BatchesOptions, "gateway" | "dialectAt" | "watch" | "files"> &
  Readonly<{ files: Files; emailOf(account: AccountId): Promise<string | null> }>;

export function openBatches({ parts: gateway, dialects, watch }: Inside, options: OpenBatchesOptions) {
  const dialectAt = (at: string) => dialects.all.find(({ endpoint }) => endpoint === at) ?? dialects.usual;
  // the lines of a file have no place for audio
  const endpoints = dialects.all.filter(({ modelKind }) => !isVoice(modelKind)).map(({ endpoint }) => endpoint);
  const batches = new Batches({ ...options, gateway, dialectAt, watch });
  const rowOf = async (batch: Batch | null): Promise<BatchRow | null> =>
    batch === null ? null : { account: await options.emailOf(batch.account), ...shownToOperators(batch) };
  const desk: BatchesDesk = {
    async list(account, limit) {
      const rows = await Promise.all((await batches.newest(account, limit)).map(rowOf));
      return rows.filter((row) => row !== null);
    },
    show: async (id) => rowOf(await batches.find(id)),
    async cancel(id) {
      const found = await batches.find(id);
      return rowOf(found === null ? null : await batches.cancel(found.account, id));
    },
  };
  return {
    batches,
    desk,
    answer: (route: string, asked: KeptAsked): Promise<KeptReply> =>
      answers[route]!(asked, { batches, files: options.files, endpoints }),
  };
}

const shownToOperators = ({ id, state, endpoint, model, total, sums, waits, errors, ...batch }: Batch) => ({
  id,
  state,
  endpoint,
  model,
  lines: total,
  completed: sums.completed,
  failed: sums.failed,
  billed_tokens: sums.billed,
  created_at: timeOf(batch.createdAt)!,
  expires_at: timeOf(batch.expiresAt)!,
  ended_at: timeOf(batch.endedAt),
  waits,
  errors: errors.map(({ line, message }) => (line === null ? message : `line ${line}: ${message}`)),
});
