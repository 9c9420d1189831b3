// Requests of accounts for credit, another plan or their deletion, which an operator approves or declines once; and payments
// reported by a provider, which are credited once, however often they are reported. In a unit of the office.
import type { AccountId, Ms, PlanId } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import { type Accounts, AccountError } from "../people/accounts.ts";
import type { Draft } from "../draft.ts";
import type { Payment, OfficeRecords, PurchaseRequest } from "../records.ts";

export const purchaseRequestsPendingMax = 5;
/** Each stays in the ledger, whatever its outcome. */
export const purchaseRequestsPerDayMax = 20;

export type Wanted =
  | Readonly<{ kind: "credit"; tokens: number }>
  | Readonly<{ kind: "plan"; plan: PlanId }>
  | Readonly<{ kind: "deletion" }>;

export class DecidedOtherwise extends AccountError {
  constructor({ state }: Pick<PurchaseRequest, "state">) {
    super(`this request is ${state} already`);
  }
}

type Decision = Exclude<PurchaseRequest["state"], "pending">;
/** `isNew`: it was decided just now. */
export type Decided = Readonly<{ request: PurchaseRequest; isNew: boolean }>;
type Parts = Readonly<{
  accounts: Pick<Accounts, "checkNotErased" | "changePlan" | "credit">;
  records: OfficeRecords;
  draft: Draft;
  now: Ms;
}>;

export class Purchases {
  readonly records: OfficeRecords;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.records = parts.records;
    this.#parts = parts;
  }

  /** Asks an operator. Throws AccountError where too many requests of the account are pending, or were made lately. */
  async ask(account: AccountId, wanted: Wanted, note: string): Promise<PurchaseRequest> {
    const { records, draft, now } = this.#parts;
    if ((await records.pendingRequests(account)) >= purchaseRequestsPendingMax) {
      throw new AccountError(`at most ${purchaseRequestsPendingMax} requests may be pending; withdraw one first`);
    }
    if (wanted.kind === "deletion" && (await records.lastDeletionRequest(account))?.state === "pending") {
      throw new AccountError("a request to delete this account is pending already");
    }
    const latest = await records.requestsOf(account, Number.MAX_SAFE_INTEGER, purchaseRequestsPerDayMax);
    const freeAt = (latest[purchaseRequestsPerDayMax - 1]?.createdAt ?? -Infinity) + dayMs;
    if (now < freeAt) {
      const [day, time] = new Date(freeAt).toISOString().split("T") as [string, string];
      throw new AccountError(
        `at most ${purchaseRequestsPerDayMax} requests may be made in 24 hours; ask again at ${day} ${time.slice(0, 8)} UTC`,
      );
    }
    const request: PurchaseRequest = {
      id: await records.next("purchase_requests"),
      account,
      kind: wanted.kind,
      tokens: wanted.kind === "credit" ? wanted.tokens : null,
      plan: wanted.kind === "plan" ? wanted.plan : null,
      note,
      state: "pending",
      createdAt: now,
      decidedAt: null,
      decisionNote: "",
    };
    draft.changes.push({ change: "purchase_request", request });
    return request;
  }

  /** Does what was asked for, once: the same decision again changes nothing, and another throws DecidedOtherwise. */
  approve(id: number, note: string): Promise<Decided> {
    return this.#decide(id, "approved", note);
  }

  decline(id: number, note: string): Promise<Decided> {
    return this.#decide(id, "declined", note);
  }

  /** By the account itself; as `approve`. */
  withdraw(id: number): Promise<Decided> {
    return this.#decide(id, "withdrawn", "");
  }

  /** Credits a payment, once however often it is reported. Throws AccountError for an amount that cannot be. */
  async paid({ id, account, tokens, paidAt }: Payment): Promise<{ credited: boolean }> {
    const { accounts, draft } = this.#parts;
    const paid = await accounts.credit(account, tokens, `payment:${id}`);
    if (paid.credited) draft.changes.push({ change: "payment", id, account, tokens, at: paidAt });
    return paid;
  }

  async #decide(id: number, state: Decision, note: string): Promise<Decided> {
    const { records, draft, now: decidedAt } = this.#parts;
    const request = (await records.request(id))!;
    if (request.state === state) return { request, isNew: false };
    if (request.state !== "pending") throw new DecidedOtherwise(request);
    if (state === "approved") await this.#grant(request);
    draft.changes.push({ change: "decision", id, state, at: decidedAt, note });
    return { request: { ...request, state, decidedAt, decisionNote: note }, isNew: true };
  }

  async #grant({ id, account, kind, tokens, plan }: PurchaseRequest): Promise<void> {
    const { accounts } = this.#parts;
    await accounts.checkNotErased(account);
    if (kind === "deletion") throw new AccountError("delete the account to grant this request");
    if (plan !== null) await accounts.changePlan(account, plan);
    if (tokens !== null) await accounts.credit(account, tokens, `request:${id}`);
  }
}
