// The main thread's end of stored responses, which a Worker of their own has: however long a conversation is, no commit of
// the ledger waits for it, and a failure here never affects a balance. The Worker works in order, so a request finds what was
// kept before it, although no request waited for the disk.
import type {
  ConversationAct,
  EarlierTexts,
  ItemPage,
  References,
  StoredResponse,
  StoredResponses,
} from "../../dialects/stored-responses.ts";
import { bodyMaxBytes, storedResponsesLookupsWaitingMax, storedResponsesWaitingBytesMax } from "../../core/limits.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import type { Log } from "../../core/log.ts";
import { Outage } from "../outage.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { AccountId, Refusal } from "../../core/types.ts";
import { WorkerClient, WorkerFailed } from "../../core/workers.ts";
import type { StoredResponseLimits, StoredResponseTable } from "./stored-responses-table.ts";
import type { NotAdded } from "./conversations.ts";
import { type KeptResponse, packKept } from "./kept-text.ts";
import type { ResponsesCall } from "./stored-responses-worker.ts";

/** Stored responses of an account; beyond it the oldest go first. */
const storedResponsesCountMax = 10_000;
/** Responses that end within this time are written together; reading one has it written at once. */
const storedResponsesGatherMs = 20;
/** The same where the end of a reply waits for it. */
const storedResponsesAwaitedGatherMs = 1;
/** Concurrent look-ups, one per account: memory holds the largest conversations of this many accounts at a time. */
const storedResponsesLookupsMax = 4;

export type SetLimits = Pick<StoredResponseLimits, "keepMs" | "accountBytesMax">;

const limitsOf = ({ keepMs, accountBytesMax }: SetLimits): StoredResponseLimits => ({
  keepMs,
  accountBytesMax,
  accountCountMax: storedResponsesCountMax,
  conversationBytesMax: bodyMaxBytes,
});

type KeeperOptions = Readonly<{
  limits: SetLimits;
  log: Log;
  /** Callers wait until it is kept, since another gateway may be asked for it. */
  awaited: boolean;
  worker: Readonly<{ start(): Worker; open(limits: StoredResponseLimits): ResponsesCall }>;
}>;

/**
 * Keeping fails in silence: the client has its whole reply by then, and learns that the response is unknown when it
 * refers to it. The log says once when keeping begins to fail and once when it works again.
 */
export class KeptResponses implements StoredResponses {
  #limits: StoredResponseLimits;
  readonly #log: Log;
  protected readonly worker: WorkerClient<ResponsesCall>;
  readonly #awaited: boolean;
  #waitingBytes = 0;
  /** Erased accounts, for which nothing more is kept: a relay may report an earlier answer late. */
  readonly #erased = new Set<AccountId>();
  /** Gathered for the next order, which the timer sends. */
  #gathered: KeptResponse[] = [];
  #gatheredBytes = 0;
  #gatherTimer: Timer | null = null;
  /** Resolves when they are kept, or could not be. */
  #gatheredKept: PromiseWithResolvers<void> | null = null;
  readonly #outage: Outage;
  /** A conversation may take the Worker a second: an account's look-ups go one after the other, and accounts take turns. */
  readonly #turns = new AccountTurns(storedResponsesLookupsMax, 1);
  #closed = false;

  protected constructor({ limits, log, awaited, worker }: KeeperOptions) {
    this.#limits = limitsOf(limits);
    this.#log = log;
    this.#outage = new Outage(log, "responses are not stored", "responses are stored again");
    this.#awaited = awaited;
    this.worker = new WorkerClient<ResponsesCall>({
      start: worker.start,
      open: () => worker.open(this.#limits),
      close: { order: "close" },
      onNews: (reason) => this.#failed(new Error(String(reason))),
      onFailure: (error) => this.#failed(error),
    });
  }

  /** Bytes that wait to be written. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  async find(account: AccountId, { previousResponseId, itemIds }: References): Promise<EarlierTexts | Refusal> {
    const order = { order: "find", account, previousId: previousResponseId, itemIds } as const;
    const found = await this.#asked<EarlierTexts | "too_large">(order);
    return found === "too_large" ? refuse("body_too_large") : found;
  }

  keep(
    account: AccountId,
    { id, previousResponseId, conversation, input: items, output, settings }: StoredResponse,
  ): void | Promise<void> {
    if (this.#erased.has(account)) return;
    const input = typeof items === "string" ? items : JSON.stringify(items);
    const bytes = input.length + output.length + settings.length; // characters, which is near enough
    if (this.#waitingBytes + bytes > storedResponsesWaitingBytesMax) {
      return this.#outage.failed(new Error("too much waits to be written"));
    }
    this.#waitingBytes += bytes;
    this.#gatheredBytes += bytes;
    this.#gathered.push({ account, id, previousId: previousResponseId, conversation, input, output, settings });
    this.#gatherTimer ??= setTimeout(
      () => this.#keepGathered(),
      this.#awaited ? storedResponsesAwaitedGatherMs : storedResponsesGatherMs,
    );
    if (this.#awaited) return (this.#gatheredKept ??= Promise.withResolvers()).promise;
  }

  #keepGathered(): void {
    if (this.#gatherTimer !== null) clearTimeout(this.#gatherTimer);
    this.#gatherTimer = null;
    if (this.#gathered.length === 0) return;
    const bytes = this.#gatheredBytes;
    const packed = packKept(this.#gathered);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    const kept = this.#gatheredKept;
    this.#gatheredKept = null;
    // Locked accounts are kept later: no reply waits for that.
    this.#call<readonly NotAdded[]>({ order: "keep", packed }, () => kept?.resolve())
      .then(
        (left) => {
          this.#outage.worked();
          for (const one of left) this.#log("warn", "an answer was not added to its conversation", one);
        },
        (error: Error) => this.#outage.failed(error),
      )
      .finally(() => {
        this.#waitingBytes -= bytes;
        kept?.resolve();
      });
  }

  response(account: AccountId, id: string): Promise<string | null | Refusal> {
    return this.#asked<string | null>({ order: "response", account, id });
  }

  async input(account: AccountId, id: string, page: ItemPage): Promise<string | null | Refusal> {
    const found = await this.#asked<ReturnType<StoredResponseTable["input"]>>({ order: "input", account, id, page });
    if (found === "unknown_after") return refuse("malformed", { reason: `after: '${page.after}' is not in this list` });
    return found === null || isRefusal(found) ? found : found.body;
  }

  delete(account: AccountId, id: string): Promise<boolean | Refusal> {
    return this.#asked<boolean>({ order: "delete", account, id });
  }

  async converse(account: AccountId, id: string, act: ConversationAct): Promise<string | Refusal> {
    if (this.#erased.has(account)) return refuse("internal");
    return this.#asked<string>({ order: "converse", account, id, act });
  }

  /** Removes all of an account's responses; `forEver` keeps no more of them. Rejects where the file cannot be written. */
  async erase(account: AccountId, forEver: boolean): Promise<void> {
    if (forEver) this.#erased.add(account);
    await this.#call({ order: "erase", account, forEver });
  }

  /** What is kept, and what is found, is within these from here on. */
  limit(limits: SetLimits): void {
    this.#limits = limitsOf(limits);
    this.#call({ order: "limits", limits: this.#limits }).catch((error: Error) => this.#failed(error));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#keepGathered();
    await this.worker.close();
  }

  /** For what a client waits for; a failure is in the log and a refusal. */
  async #asked<Result>(call: ResponsesCall & Readonly<{ account: AccountId }>): Promise<Result | Refusal> {
    if (this.#turns.waitingOf(call.account) >= storedResponsesLookupsWaitingMax) return refuse("busy", { seconds: 1 });
    try {
      using _ = this.#turns.take(call.account) ?? (await this.#turns.enter(call.account));
      if (this.#closed) return refuse("internal"); // it waited while the gateway stopped
      return await this.#call<Result>(call);
    } catch (thrown) {
      this.#failed(thrown as Error);
      return refuse(isAway(thrown) ? "quota_unverified" : "internal");
    }
  }

  /** What was kept before is found by what is asked after. */
  #call<Result>(call: ResponsesCall, progress = (): void => {}): Promise<Result> {
    if (call.order !== "keep") this.#keepGathered();
    return this.worker.call<Result>(call, { progress });
  }

  #failed(error: Error): void {
    this.#log("error", "stored responses failed", { reason: error.message });
  }
}

/** The database does not answer: the same may be asked again. */
const isAway = (thrown: unknown): boolean => thrown instanceof WorkerFailed && thrown.error === "StoreUnavailable";
