// The interface of a search provider; each provider of the configuration's [search] implements it.
import type { AccountId } from "../../core/types.ts";
import type { Source } from "../owned-tool.ts";

/** The provider gave no usable answer in time; the message is for the operator's log and names no query. */
export class SearchFailed extends Error {
  override readonly name = "SearchFailed";
}

export interface SearchProvider {
  /** At most `resultsMax` documents, the best first; none is an empty list. Accounts take turns. Rejects with SearchFailed. */
  search(query: string, resultsMax: number, account: AccountId, cancelSignal: AbortSignal): Promise<readonly Source[]>;
  /** Lets go of indexes and connections. */
  close(): Promise<void>;
}
