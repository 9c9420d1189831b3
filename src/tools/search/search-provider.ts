// The interface of search providers, one for each provider of the configuration's [search].
import type { AccountId } from "../../core/types.ts";
import type { Source } from "../owned-tool.ts";

/** The provider gave no usable answer in time; the message is for the operator's log and names no query. */
export class SearchFailed extends Error {
  override readonly name = "SearchFailed";
}

export interface SearchProvider {
  /** At most `resultsMax` documents, best first, or an empty list. Accounts take turns. Rejects with SearchFailed. */
  search(query: string, resultsMax: number, account: AccountId, cancelSignal: AbortSignal): Promise<readonly Source[]>;
  close(): Promise<void>;
}
