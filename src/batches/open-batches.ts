// Batches of a running server.
import type { Files } from "../files/files.ts";
import type { Inside, KeptAsked, KeptReply } from "../http/kept-routes.ts";
import { answers } from "./answers.ts";
import { Batches, type BatchesOptions } from "./batches.ts";

export type OpenBatchesOptions = Omit<BatchesOptions, "gateway" | "dialectAt" | "watch" | "files"> &
  Readonly<{ files: Files }>;

export function openBatches({ parts: gateway, dialects, watch }: Inside, options: OpenBatchesOptions) {
  const dialectAt = (at: string) => dialects.all.find(({ endpoint }) => endpoint === at) ?? dialects.usual;
  const endpoints = dialects.all.map(({ endpoint }) => endpoint);
  const batches = new Batches({ ...options, gateway, dialectAt, watch });
  return {
    batches,
    answer: (route: string, asked: KeptAsked): Promise<KeptReply> =>
      answers[route]!(asked, { batches, files: options.files, endpoints }),
  };
}
