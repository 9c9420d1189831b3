// The Worker that answers queries from a folder's index, beside the one that writes it.
import { answerCalls, endWorker } from "../../core/workers.ts";
import { SearchIndexReader } from "../../store/search-index.ts";

export type QueryRequest =
  /** Answered with a list of Found. The first one opens the index at `file`. */
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
