// The Worker that answers queries from the index of a folder, beside the one that writes it.
import { answerCalls, endWorker } from "../../core/workers.ts";
import { SearchIndexReader } from "../../store/search-index.ts";

export type QueryRequest =
  /** A list of Found is answered. The index at `file` is opened for the first. */
  Readonly<{ order: "search"; file: string; query: string; resultsMax: number }> | Readonly<{ order: "close" }>;

declare const self: Worker;

let index: SearchIndexReader | null = null;

answerCalls<QueryRequest>(self, (request) => {
  switch (request.order) {
    case "search":
      index ??= new SearchIndexReader(request.file);
      return index.search(request.query, request.resultsMax);
    case "close":
      index?.close();
      endWorker(self);
      return null;
    default:
      return request satisfies never;
  }
});
