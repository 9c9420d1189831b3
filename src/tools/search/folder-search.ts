// Searches a folder of the operator's files in two Workers: no stream waits for a query, and no query for a file.
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { FolderSearchConfig } from "../../config/config.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import { searchTimeoutMs } from "../../core/limits.ts";
import { searchResultTextMaxLength } from "../limits.ts";
import type { Log } from "../../core/log.ts";
import { startWorker, WorkerClient, WorkerFailed } from "../../core/workers.ts";
import { DataFolderUnusable } from "../../store/folder/folder-faults.ts";
import type { Found } from "../../store/search-index.ts";
import type { Source } from "../owned-tool.ts";
import type { AccountId } from "../../core/types.ts";
import { SearchFailed, type SearchProvider } from "./search-provider.ts";
import { FolderFiles } from "./folder-files.ts";
import type { QueryRequest } from "./folder-query-worker.ts";
import type { ScanResult } from "./folder-scan.ts";
import type { ScanRequest } from "./folder-scan-worker.ts";

/** Between two log lines while files are indexed. */
const searchProgressIntervalMs = 5_000;

export type FolderSearchParts = Readonly<{
  /** Where the index is kept, as search.db. */
  dataFolder: string;
  clock: Clock;
  log: Log;
  pdfCommand: readonly string[];
}>;

export class FolderSearch implements SearchProvider {
  readonly #config: FolderSearchConfig;
  readonly #parts: FolderSearchParts;
  readonly #file: string;
  readonly #scanner = new WorkerClient<ScanRequest>({
    start: () => startWorker("tools/search/folder-scan-worker.ts"),
    close: { order: "close" },
  });
  readonly #querier = new WorkerClient<QueryRequest>({
    start: () => startWorker("tools/search/folder-query-worker.ts"),
    close: { order: "close" },
  });
  /** The Worker answers one query after the other. A second one is queued there, so that it never idles. */
  readonly #turns = new AccountTurns(2, 1);
  #nextScan: Timer | null = null;
  #isClosed = false;

  private constructor(config: FolderSearchConfig, parts: FolderSearchParts) {
    this.#config = config;
    this.#parts = parts;
    this.#file = join(parts.dataFolder, "search.db");
  }

  /** Opens the index as it is. Throws SearchFolderUnusable or DataFolderUnusable. */
  static async open(config: FolderSearchConfig, parts: FolderSearchParts): Promise<FolderSearch> {
    await FolderFiles.open(config.folder);
    const search = new FolderSearch(config, parts);
    try {
      await search.#scanner.call({ order: "prepare", file: search.#file });
    } catch (error) {
      await search.close();
      throw new DataFolderUnusable((error as Error).message, { cause: error });
    }
    return search;
  }

  /** Brings the index up to date with the folder. Rejects with WorkerFailed; what was indexed until then stays. */
  async scan(): Promise<ScanResult> {
    const { clock, log, pdfCommand } = this.#parts;
    let loggedAt = clock.monotonic();
    const progress = (indexed: unknown) => {
      if (clock.monotonic() - loggedAt < searchProgressIntervalMs) return;
      loggedAt = clock.monotonic();
      log("info", "indexing files for searches", { indexed: indexed as number });
    };
    const { folder } = this.#config;
    const order = { order: "scan", file: this.#file, folder, pdfCommand } as const;
    const result = await this.#scanner.call<ScanResult>(order, { progress });
    for (const { path, reason, isNew } of result.skippedFiles) {
      if (isNew) log("warn", "a file was not indexed", { path: JSON.stringify(path), reason });
    }
    if (result.indexed + result.removed > 0) {
      const { files, indexed, removed, skipped } = result;
      log("info", "the search index was brought up to date", { files, indexed, removed, skipped });
    }
    return result;
  }

  async keepFresh(): Promise<void> {
    try {
      await this.scan();
    } catch (error) {
      if (!(error instanceof WorkerFailed)) throw error;
      if (!this.#isClosed) this.#parts.log("error", "the search index could not be updated", { reason: error.message });
    }
    if (this.#isClosed) return;
    this.#nextScan = setTimeout(() => void this.keepFresh(), this.#config.rescanIntervalMs);
    this.#nextScan.unref();
  }

  async search(
    query: string,
    resultsMax: number,
    account: AccountId,
    cancelSignal: AbortSignal,
  ): Promise<readonly Source[]> {
    const found = await this.#find(query, resultsMax, account, cancelSignal);
    return found.map(({ path, title, passages }) => ({
      title,
      url: `${this.#config.baseUrl}/${path.toWellFormed().split("/").map(encodeURIComponent).join("/")}`,
      text: passages.join("\n\n…\n\n").slice(0, searchResultTextMaxLength).toWellFormed(),
    }));
  }

  async #find(
    query: string,
    resultsMax: number,
    account: AccountId,
    cancelSignal: AbortSignal,
  ): Promise<readonly Found[]> {
    const over = AbortSignal.any([cancelSignal, AbortSignal.timeout(searchTimeoutMs)]);
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const end = () =>
      reject(new SearchFailed(cancelSignal.aborted ? "local: the client left" : "local: the query took too long"));
    over.addEventListener("abort", end);
    if (over.aborted) end();
    try {
      return await Promise.race([ended, this.#ask(query, resultsMax, account, over)]);
    } catch (error) {
      if (error instanceof WorkerFailed) throw new SearchFailed(`local: ${error.message}`, { cause: error });
      throw error;
    } finally {
      over.removeEventListener("abort", end);
    }
  }

  /** The turn lasts until the Worker has answered, even after its caller has stopped waiting. */
  async #ask(query: string, resultsMax: number, account: AccountId, over: AbortSignal): Promise<readonly Found[]> {
    const turn = await this.#turns.enter(account, over).catch(() => null);
    if (turn === null) return []; // the caller has the reason
    using _turn = turn;
    if (this.#isClosed) throw new SearchFailed("local: the index is closed");
    return await this.#querier.call<readonly Found[]>({ order: "search", file: this.#file, query, resultsMax });
  }

  /** Ends both Workers; a scan stops after its current file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#nextScan !== null) clearTimeout(this.#nextScan);
    // The writer last: only a writing connection can remove the log beside the index.
    await this.#querier.close();
    await this.#scanner.close();
  }
}
