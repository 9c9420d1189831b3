// Requests of accounts for credit, another plan or their deletion, which an operator approves or declines once; and payments reported
// by a provider, which are credited once, however often they are reported.
import type { Clock } from "../core/clock.ts";
import { dayMs } from "../core/units.ts";
import type { AccountId, Ms, PlanId } from "../core/types.ts";
import { type Accounts, AccountError } from "./accounts.ts";
import type { Journal } from "./journal.ts";

export const purchaseRequestsPendingMax = 5;
/** Each stays in the ledger, whatever its outcome. */
export const purchaseRequestsPerDayMax = 20;

export type PurchaseRequest = Readonly<{
  id: number;
  account: AccountId;
  /** One of kind deletion is approved by the erasure of its account alone. */
  kind: "credit" | "plan" | "deletion";
  /** Balance tokens of kind credit. */
  tokens: number | null;
  plan: PlanId | null;
  note: string;
  state: "pending" | "approved" | "declined" | "withdrawn";
  createdAt: Ms;
  decidedAt: Ms | null;
  decisionNote: string;
}>;

export type Wanted =
  | Readonly<{ kind: "credit"; tokens: number }>
  | Readonly<{ kind: "plan"; plan: PlanId }>
  | Readonly<{ kind: "deletion" }>;

export type Payment = Readonly<{
  /** The provider's name and its id of the payment, such as stripe:pi_123: the credit's billing key. */
  id: string;
  account: AccountId;
  tokens: number;
  paidAt: Ms;
}>;

/** Every call gives the committed state and throws StoreUnavailable when the disk cannot be read. */
export interface PurchaseRecords {
  request(id: number): PurchaseRequest | null;
  lastRequestId(): number;
  /** Newest first, those with an id below `before`. */
  requestsOf(account: AccountId, before: number, limit: number): readonly PurchaseRequest[];
  requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind?: PurchaseRequest["kind"] | null,
  ): readonly PurchaseRequest[];
  /** The newest of kind deletion: no older one is pending. */
  lastDeletionRequest(account: AccountId): PurchaseRequest | null;
  pendingRequests(account: AccountId | null): number;
  /** Newest first. */
  paymentsOf(account: AccountId, limit: number): readonly Payment[];
}

/** It was decided otherwise before. */
export class DecidedOtherwise extends AccountError {
  constructor({ state }: Pick<PurchaseRequest, "state">) {
    super(`this request is ${state} already`);
  }
}

type Decision = Exclude<PurchaseRequest["state"], "pending">;
type Parts = Readonly<{ accounts: Accounts; records: PurchaseRecords; journal: Journal; clock: Clock }>;

export class Purchases {
  readonly #parts: Parts;
  /** Decisions on their way to disk. */
  readonly #deciding = new Map<number, Readonly<{ state: Decision; done: Promise<void> }>>();
  /** Requests on their way to disk, by account. */
  readonly #asking = new Map<AccountId, number>();
  /** Null until somebody asked. */
  #lastId: number | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Asks an operator. Throws AccountError where too many requests of the account are pending, or were made lately. */
  async ask(account: AccountId, wanted: Wanted, note: string): Promise<PurchaseRequest> {
    const { records, journal, clock } = this.#parts;
    const asking = this.#asking.get(account) ?? 0;
    if (records.pendingRequests(account) + asking >= purchaseRequestsPendingMax) {
      throw new AccountError(`at most ${purchaseRequestsPendingMax} requests may be pending; withdraw one first`);
    }
    const isPending = (): boolean => records.lastDeletionRequest(account)?.state === "pending";
    if (wanted.kind === "deletion" && (asking > 0 || isPending())) {
      throw new AccountError("a request to delete this account is pending already");
    }
    // Those that are on their way to disk are of now.
    const latest = records.requestsOf(account, Number.MAX_SAFE_INTEGER, purchaseRequestsPerDayMax - asking);
    const freeAt = (latest[purchaseRequestsPerDayMax - asking - 1]?.createdAt ?? -Infinity) + dayMs;
    if (clock.wall() < freeAt) {
      const [day, time] = new Date(freeAt).toISOString().split("T") as [string, string];
      throw new AccountError(
        `at most ${purchaseRequestsPerDayMax} requests may be made in 24 hours; ask again at ${day} ${time.slice(0, 8)} UTC`,
      );
    }
    const id = (this.#lastId ??= records.lastRequestId()) + 1;
    this.#lastId = id;
    const request: PurchaseRequest = {
      id,
      account,
      kind: wanted.kind,
      tokens: wanted.kind === "credit" ? wanted.tokens : null,
      plan: wanted.kind === "plan" ? wanted.plan : null,
      note,
      state: "pending",
      createdAt: clock.wall(),
      decidedAt: null,
      decisionNote: "",
    };
    this.#asking.set(account, asking + 1);
    try {
      await journal.durable(journal.change({ change: "purchase_request", request }));
    } finally {
      const left = this.#asking.get(account)! - 1;
      if (left === 0) this.#asking.delete(account);
      else this.#asking.set(account, left);
    }
    return request;
  }

  /**
   * Does what was asked for, once: the same decision again changes nothing, and another throws DecidedOtherwise.
   * `alongside` is called only by the one that decides.
   */
  approve(request: PurchaseRequest, note: string, inSameCommit?: () => void): Promise<PurchaseRequest> {
    return this.#decide(request, "approved", note, inSameCommit);
  }

  /** As `approve`. */
  decline(request: PurchaseRequest, note: string, inSameCommit?: () => void): Promise<PurchaseRequest> {
    return this.#decide(request, "declined", note, inSameCommit);
  }

  /** By the account itself; as `approve`. */
  withdraw(request: PurchaseRequest): Promise<PurchaseRequest> {
    return this.#decide(request, "withdrawn", "");
  }

  /** Credits a payment, once however often it is reported. Throws AccountError for an amount that cannot be. */
  async paid({ id, account, tokens, paidAt }: Payment): Promise<{ credited: boolean }> {
    const { accounts, journal } = this.#parts;
    return accounts.addCreditById(account, tokens, `payment:${id}`, () => {
      journal.change({ change: "payment", id, account, tokens, at: paidAt });
    });
  }

  async #decide({ id }: PurchaseRequest, state: Decision, note: string, inSameCommit?: () => void) {
    const { records } = this.#parts;
    const underWay = this.#deciding.get(id);
    if (underWay !== undefined) {
      if (underWay.state !== state) throw new DecidedOtherwise(underWay);
      await underWay.done;
      return records.request(id)!;
    }
    const request = records.request(id)!;
    if (request.state === state) return request;
    if (request.state !== "pending") throw new DecidedOtherwise(request);
    const decidedAt = this.#parts.clock.wall();
    const done = this.#carryOut(request, state, decidedAt, note, inSameCommit);
    this.#deciding.set(id, { state, done });
    try {
      await done;
    } finally {
      this.#deciding.delete(id);
    }
    return { ...request, state, decidedAt, decisionNote: note };
  }

  /** What is given and the decision are in one commit. */
  async #carryOut(
    { id, account, kind, tokens, plan }: PurchaseRequest,
    state: Decision,
    at: Ms,
    note: string,
    inSameCommit?: () => void,
  ) {
    const { accounts, journal } = this.#parts;
    if (state === "approved") accounts.checkNotErased(account);
    if (state === "approved" && kind === "deletion") throw new AccountError("delete the account to grant this request");
    const decision = () => {
      const sequence = journal.change({ change: "decision", id, state, at, note });
      inSameCommit?.();
      return sequence;
    };
    if (state === "approved" && plan !== null) return accounts.changePlanById(account, plan, decision);
    if (state === "approved" && tokens !== null) {
      await accounts.addCreditById(account, tokens, `request:${id}`, decision);
      return;
    }
    await journal.durable(decision());
  }
}
