// Whether a request may start, and what it holds while it runs. Decided in this order:
//   (1) a disabled account gets nothing, whoever found its key before that: on another thread, or before a long body;
//       nor does one whose plan has not the model
//   (2) a model of the coder tier, in a dialect that is billed in calls, counts a call and skips (3) and (5)
//   (3) flood protection
//   (4) the journal must take writes, else nothing could be charged
//   (5) the output budget is reserved from the balance
//   (6) it begins, or waits for the account's others to settle (balance-line.ts)
import { assert } from "../core/assert.ts";
import {
  busyRetrySeconds,
  floodRequestsMax,
  inputRequestsPerMinuteDefault,
  outputTokensDefault,
} from "../core/limits.ts";
import { allows } from "../core/plans.ts";
import { refuse } from "../core/refusals.ts";
import {
  StoreUnavailable,
  type AccountId,
  type Ask,
  type Hold,
  type Model,
  type ModelKind,
  type Moment,
  type Ms,
  type Refusal,
  type Usage,
  noUsage,
} from "../core/types.ts";
import { BalanceLine, type BalanceWaiter } from "./balance-line.ts";
import type { Reply } from "./entry.ts";
import { Flood } from "./flood.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import { billedTokens, isFreeOfCharge, ratesOf, type Rates } from "./price.ts";
import { coderWindowOf, dayOf } from "./quota.ts";
import { coderQuotaReached, quotaExceeded } from "./quota-refusals.ts";

/** What admission reads of an Ask. */
export type Asked = Pick<Ask, "endpoint" | "coderBilling" | "model" | "outputTokensMax">;

/**
 * Balance tokens that a request holds: its output budget (spec, "Balance"), of a shop's own model what that budget costs, so
 * that a free model holds nothing and a dear one holds enough. What has no output holds what its input is expected to cost.
 */
function heldTokens({ model, outputTokensMax }: Asked, inputTokens: number): number {
  if (model.kind !== "chat") {
    return isFree(model) ? 0 : Math.max(1, billedTokens(ratesOf(model.price), { ...noUsage, inputFresh: inputTokens }));
  }
  if (model.tier !== "own") return outputTokensMax;
  return isFree(model) ? 0 : Math.max(1, billedTokens(ratesOf(model.price), { ...noUsage, output: outputTokensMax }));
}

/** A shop's own model without a price. */
const isFree = ({ tier, price }: Model): boolean => tier === "own" && isFreeOfCharge(ratesOf(price));

const freeRates: Rates = { inputCents: 0, cachedInputCents: 0, outputCents: 0 };

export class Admission {
  readonly #ledger: Ledger;
  readonly #floods: Readonly<Record<ModelKind, Flood>>;
  /** Of an account, to models of embeddings and reranking. */
  inputRequestsPerMinute = inputRequestsPerMinuteDefault;
  readonly #journal: Journal;
  readonly #siteUrl: string;
  /** Those who were admitted and wait for others of their account to settle. */
  readonly line: Pick<BalanceLine, "length" | "maxWaitMs" | "onWaiting" | "look">;
  readonly #line: BalanceLine;

  /** `ofInputs`: the window of requests to models of embeddings and reranking. */
  constructor(ledger: Ledger, flood: Flood, journal: Journal, siteUrl: string, ofInputs = new Flood()) {
    this.#ledger = ledger;
    this.#floods = { chat: flood, embedding: ofInputs, rerank: ofInputs };
    this.#journal = journal;
    this.#siteUrl = siteUrl;
    this.line = this.#line = new BalanceLine(ledger, journal, siteUrl);
  }

  /** Counts a malformed request for flood protection; it reserves nothing. `now` is monotonic. */
  countRequest(account: AccountId, now: Ms, kind: ModelKind = "chat"): Refusal | null {
    return this.#count(account, now, kind, kind === "chat" ? this.#requestsPerMinute(account) : 0);
  }

  /** `ofPlan`: what the account's plan allows of requests for answers. */
  #count(account: AccountId, now: Ms, kind: ModelKind, ofPlan: number): Refusal | null {
    const seconds = this.#floods[kind].count(account, now, kind === "chat" ? ofPlan : this.inputRequestsPerMinute);
    return seconds === 0 ? null : refuse("too_many_requests", { seconds });
  }

  /** The usual number where the disk cannot be read: such a request is refused for that, if it is not malformed. */
  #requestsPerMinute(account: AccountId): number {
    try {
      return this.#ledger.account(account).plan.requestsPerMinute;
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return floodRequestsMax;
      throw thrown;
    }
  }

  /** Refuses, and counts, a request whose window is full already: before anything is done for it that costs time. */
  refuseFlooded(account: AccountId, now: Ms, kind: ModelKind = "chat"): Refusal | null {
    return this.#floods[kind].isFull(account, now) ? this.countRequest(account, now, kind) : null;
  }

  /**
   * Admits a request with a Hold, or says why not. `inputTokens`: what it is expected to read. `requestId` was minted by the
   * gateway and is used only once.
   */
  admit(account: AccountId, ask: Asked, inputTokens: number, requestId: string, now: Moment): Hold | Refusal {
    try {
      // (1)
      const loaded = this.#ledger.account(account);
      if (loaded.disabled) return refuse("invalid_api_key");
      if (!allows(loaded.plan, ask.model)) return refuse("model_not_in_plan", { model: ask.model.id });
      // (2)
      if (ask.model.coder && ask.coderBilling === "calls") return this.#admitCall(loaded, ask, requestId, now.wall);
      // (3)
      const flooded = this.#count(account, now.monotonic, ask.model.kind, loaded.plan.requestsPerMinute);
      if (flooded !== null) return flooded;
      // (4)
      if (!this.#journal.writable) return refuse("quota_unverified");
      // (5)
      const held = heldTokens(ask, inputTokens);
      if (isFree(ask.model)) this.#ledger.reserveNothing(loaded);
      else if (!this.#ledger.reserve(loaded, held, now.wall)) {
        return quotaExceeded(this.#siteUrl, this.#ledger.spendable(loaded, now.wall), held, now.wall);
      }
      const hold = new TokenHold(this.#ledger, this.#journal, this.#line, loaded, ask, inputTokens, requestId);
      // (6)
      const begins = this.#line.enter(loaded, hold, now);
      if (begins === true) hold.begun();
      else if (begins === false) hold.waits();
      else {
        hold.refused(begins);
        return begins;
      }
      return hold;
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return refuse("quota_unverified");
      throw thrown;
    }
  }

  #admitCall(loaded: LoadedAccount, ask: Asked, requestId: string, now: Ms): Hold | Refusal {
    if (!this.#journal.writable) return refuse("quota_unverified");
    if (!this.#ledger.takeCoderCall(loaded, now)) {
      const { used } = this.#ledger.use(loaded, "coder_calls", coderWindowOf(now));
      return coderQuotaReached(this.#siteUrl, ask.model.id, used, loaded.plan.coderCallsPerWindow, now);
    }
    this.#ledger.appended(loaded);
    const counted = this.#journal.append({
      billingKey: `call:${requestId}`,
      kind: "coder_call",
      account: loaded.id,
      at: now,
      period: coderWindowOf(now),
      used: 1,
      creditDelta: 0,
      reply: null,
    });
    const ready = this.#journal.durable(counted).then(() => null);
    return new CallHold(this.#ledger, this.#journal, loaded, ask, requestId, ready);
  }
}

/** A reservation of balance tokens: settled once, or given back in full by its dispose. */
class TokenHold implements Hold, BalanceWaiter {
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #line: BalanceLine;
  readonly #account: LoadedAccount;
  readonly #ask: Asked;
  readonly #requestId: string;
  /** It began without a balance, and does not end with a debt: a reload may have brought the plan one. */
  readonly #unlimited: boolean;
  /** See BalanceWaiter. */
  readonly budget: number;
  cost: number;
  #state: "waiting" | "begun" | "over" = "waiting";
  #ready: PromiseWithResolvers<Refusal | null> | null = null;

  constructor(
    ledger: Ledger,
    journal: Journal,
    line: BalanceLine,
    account: LoadedAccount,
    ask: Asked,
    inputTokens: number,
    requestId: string,
  ) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#line = line;
    this.#account = account;
    this.#ask = ask;
    this.#requestId = requestId;
    this.#unlimited = account.plan.unlimited;
    this.budget = heldTokens(ask, inputTokens);
    this.cost = expectedCost(ask, noUsage, inputTokens);
  }

  get ready(): Promise<Refusal | null> | null {
    return this.#ready?.promise ?? null;
  }

  /** From the moment in which it stands in line: it may be refused before anybody asks. */
  waits(): void {
    this.#ready = Promise.withResolvers();
  }

  begun(): void {
    this.#state = "begun";
    this.#ready?.resolve(null);
  }

  refused(refusal: Refusal): void {
    this.#state = "over";
    this.#ledger.release(this.#account, this.budget);
    this.#ready?.resolve(refusal);
  }

  expect(spent: Usage, inputTokens: number, now: Ms): boolean {
    assert(this.#state === "begun", "rounds are run by requests that have begun");
    if (this.cost === 0) return true;
    const before = this.cost;
    const had = this.#account.expected - before + expectedCost(this.#ask, spent, 0);
    const isWithin = had <= this.#ledger.balance(this.#account, now);
    this.cost = expectedCost(this.#ask, spent, inputTokens);
    this.#line.change(this.#account, before, this.cost, now);
    return isWithin;
  }

  settle(usage: Usage, estimated: boolean, now: Ms): Promise<void> {
    assert(this.#state === "begun", "a hold is resolved exactly once");
    const rates = ratesOf(this.#ask.model.price);
    const billed = billedTokens(rates, usage);
    let fromAllowance: number;
    try {
      fromAllowance = this.#ledger.settle(this.#account, this.budget, billed, now, this.#unlimited);
    } catch (thrown) {
      // Nothing was changed: the hold stays open and its dispose gives it back.
      if (thrown instanceof StoreUnavailable) return Promise.reject(thrown);
      throw thrown;
    }
    this.#state = "over";
    this.#ledger.appended(this.#account);
    const sequence = this.#journal.append({
      billingKey: this.#requestId,
      kind: "charge",
      account: this.#account.id,
      at: now,
      period: dayOf(now),
      used: fromAllowance,
      creditDelta: fromAllowance - billed,
      reply: replyOf(this.#ask, usage, rates, billed, estimated),
    });
    this.#line.end(this.#account, this.cost, now);
    return this.#journal.durable(sequence);
  }

  [Symbol.dispose](): void {
    if (this.#state === "over") return;
    const waited = this.#state === "waiting";
    this.#state = "over";
    this.#ledger.release(this.#account, this.budget);
    if (waited) this.#line.leave(this.#account, this);
    else this.#line.end(this.#account, this.cost);
    this.#ready?.resolve(givenUp);
  }
}

/** Nobody reads it: the client left. */
const givenUp: Refusal = refuse("busy", { seconds: busyRetrySeconds });

/**
 * Balance tokens that a request comes to whose rounds so far came to `spent`, when it reads so much more and writes what
 * its budget leaves; 0 only where nothing costs anything. A budget that does not limit the answer says nothing of it.
 */
function expectedCost({ model, outputTokensMax }: Asked, spent: Usage, inputTokens: number): number {
  const rates = ratesOf(model.price);
  const output =
    model.budgetLimitsAnswer || model.kind !== "chat"
      ? outputTokensMax
      : Math.max(outputTokensMax, outputTokensDefault);
  const inputFresh = spent.inputFresh + inputTokens;
  const tokens = billedTokens(rates, { ...spent, inputFresh, output: Math.max(output, spent.output) });
  return isFreeOfCharge(rates) ? 0 : Math.max(1, tokens);
}

/**
 * A counted coder call. The call stays counted however the request ends; settling it records its tokens. A class of its own,
 * because it shares nothing with TokenHold but the shape of a line: no price, no line to wait in, no rounds that cost.
 */
class CallHold implements Hold {
  readonly ready: Promise<null>;
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #account: LoadedAccount;
  readonly #ask: Asked;
  readonly #requestId: string;
  #open = true;

  constructor(
    ledger: Ledger,
    journal: Journal,
    account: LoadedAccount,
    ask: Asked,
    requestId: string,
    ready: Promise<null>,
  ) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#account = account;
    this.#ask = ask;
    this.#requestId = requestId;
    this.ready = ready;
  }

  settle(usage: Usage, estimated: boolean, now: Ms): Promise<void> {
    assert(this.#open, "a hold is resolved exactly once");
    this.#close();
    this.#ledger.appended(this.#account);
    const sequence = this.#journal.append({
      billingKey: this.#requestId,
      kind: "coder_usage",
      account: this.#account.id,
      at: now,
      period: 0,
      used: 0,
      creditDelta: 0,
      reply: replyOf(this.#ask, usage, freeRates, 0, estimated),
    });
    return this.#journal.durable(sequence);
  }

  [Symbol.dispose](): void {
    if (this.#open) this.#close();
  }

  #close(): void {
    this.#open = false;
    this.#ledger.release(this.#account, 0);
  }
}

function replyOf(ask: Asked, usage: Usage, rates: Rates, billed: number, estimated: boolean): Reply {
  return {
    endpoint: ask.endpoint,
    model: ask.model.id,
    inputFresh: usage.inputFresh,
    inputCached: usage.inputCached,
    output: usage.output,
    reasoning: usage.reasoning,
    inputCents: rates.inputCents,
    cachedInputCents: rates.cachedInputCents,
    outputCents: rates.outputCents,
    parts: rates.parts,
    billedTokens: billed,
    estimated,
  };
}
