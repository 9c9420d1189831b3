// Whether a request may start, and what it holds while it runs. Decided in this order:
//   (1) a disabled account gets nothing, nor does a key that is void, whoever found it before that: on another thread, or
//       before a long body; nor does a model that the plan has not, or the key may not use
//   (2) a model of the coder tier, in a dialect that is billed in calls, counts a call and skips (3) and (5)
//   (3) flood protection
//   (4) the journal must take writes, else nothing could be charged
//   (5) the output budget is reserved from the balance, and from what the key may spend
//   (6) it begins, or waits for the account's others to settle, or the key's (balance-line.ts)
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
  type Course,
  defaultKey,
  type Hold,
  type KeyId,
  type Model,
  type ModelKind,
  type Moment,
  type Ms,
  type Principal,
  type Refusal,
  type Usage,
  noUsage,
} from "../core/types.ts";
import { BalanceLine, type BalanceWaiter } from "./balance-line.ts";
import type { EndUser } from "./end-users.ts";
import type { Reply } from "./entry.ts";
import { Flood } from "./flood.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import { KeysUsed } from "./keys-used.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import type { LoadedKey } from "./loaded-key.ts";
import { billedTokens, isFreeOfCharge, ratesOf, type Rates } from "./price.ts";
import { coderWindowOf, dayOf } from "./quota.ts";
import { coderQuotaReached, keyQuotaExceeded, quotaExceeded } from "./quota-refusals.ts";
import { noSpendLimits, SpendLimit } from "./spend-limit.ts";

/** What admission needs of a Principal: what limits it, the ledger knows. */
export type Asker = Pick<Principal, "account" | "key" | "keyHash">;

/** What admission reads of an Ask. */
export type Asked = Pick<Ask, "endpoint" | "coderBilling" | "model" | "outputTokensMax">;

/**
 * A hold that its account's rows know of: what is needed to go on with it, in a later batch on the same rows. `budget`: the
 * balance tokens that it holds. `cost`: those that it is expected to cost.
 */
export type HoldRecord = Readonly<{
  requestId: string;
  key: KeyId;
  ask: Asked;
  kind: "tokens" | "call";
  budget: number;
  cost: number;
  waits: boolean;
  unlimited: boolean;
  /** Of the account's first key when it was admitted. */
  keyHash: string;
  /** For whom it is asked; null where the key may not say so. */
  endUser: string | null;
}>;

/** What became of a hold; a Refusal: it waited in vain, and has given its budget back. */
export type HoldState = "waiting" | "begun" | "over" | Refusal;

const isResolved = (state: HoldState): boolean => state !== "waiting" && state !== "begun";

/** A hold as this module makes it. */
export interface RecordedHold extends Hold {
  expect?(spent: Usage, inputTokens: number, now: Ms): boolean;
  readonly state: HoldState;
  readonly record: HoldRecord;
}

/** Why a plan or a key may not ask the model; null: it may. */
export function refusedModel(
  { plan }: Pick<LoadedAccount, "plan">,
  key: Pick<LoadedKey, "name" | "mayUse"> | null,
  model: Model,
): Refusal | null {
  if (!allows(plan, model)) return refuse("model_not_in_plan", { model: model.id });
  if (key !== null && !key.mayUse(model)) return refuse("model_not_for_key", { model: model.id, key: key.name });
  return null;
}

/**
 * Balance tokens that a request holds: its output budget (spec, "Balance"), of a shop's own model what that budget costs, so
 * that a free model holds nothing and a dear one holds enough. What has no output holds what its input is expected to cost.
 */
function heldTokens({ model, outputTokensMax }: Asked, inputTokens: number): number {
  if (model.kind !== "chat") {
    const read = { inputFresh: inputTokens, inputCached: 0, output: 0 };
    return isFree(model) ? 0 : Math.max(1, billedTokens(ratesOf(model.price), read));
  }
  if (model.tier !== "own") return outputTokensMax;
  const written = { inputFresh: 0, inputCached: 0, output: outputTokensMax };
  return isFree(model) ? 0 : Math.max(1, billedTokens(ratesOf(model.price), written));
}

/** A shop's own model without a price. */
const isFree = ({ tier, price }: Model): boolean => tier === "own" && isFreeOfCharge(ratesOf(price));

const freeRates: Rates = { inputCents: 0, cachedInputCents: 0, outputCents: 0 };

type FloodWindows = Pick<Flood, "count" | "isFull">;

export class Admission {
  readonly #ledger: Ledger;
  readonly #floods: Readonly<Record<ModelKind, FloodWindows>>;
  /** Of an account, to models of embeddings and reranking. */
  inputRequestsPerMinute = inputRequestsPerMinuteDefault;
  readonly #journal: Journal;
  readonly #siteUrl: string;
  readonly keysUsed: KeysUsed;
  /** Those who were admitted and wait for others of their account to settle. */
  readonly line: Pick<BalanceLine, "length" | "maxWaitMs" | "onWaiting" | "look">;
  readonly #line: BalanceLine;

  /** `ofInputs`: the window of requests to models of embeddings and reranking. */
  constructor(
    ledger: Ledger,
    flood: FloodWindows,
    journal: Journal,
    siteUrl: string,
    ofInputs: FloodWindows = new Flood(),
  ) {
    this.keysUsed = new KeysUsed(journal);
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

  /** Why the account's plan or the key may not ask the model; null: it may. */
  refuseModel(principal: Asker, model: Model): Refusal | null {
    try {
      const loaded = this.#ledger.account(principal.account);
      return refusedModel(loaded, principal.key > defaultKey ? this.#ledger.key(loaded, principal.key) : null, model);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return refuse("quota_unverified");
      throw thrown;
    }
  }

  /**
   * Admits a request with a Hold, or says why not. `inputTokens`: what it is expected to read. `requestId` was minted by the
   * gateway and is used only once. `endUser`: for whom the key's program says that it asks; null: it may not say so.
   */
  admit(
    principal: Asker,
    ask: Asked,
    inputTokens: number,
    requestId: string,
    now: Moment,
    endUser: string | null = null,
  ): RecordedHold | Refusal {
    try {
      // (1)
      const loaded = this.#ledger.account(principal.account);
      if (loaded.disabled) return refuse("invalid_api_key");
      const key = principal.key > defaultKey ? this.#ledger.key(loaded, principal.key) : null;
      if (key === null ? principal.key > defaultKey : key.isVoidAt(now.wall)) return refuse("invalid_api_key");
      const { model } = ask;
      const refused = refusedModel(loaded, key, model);
      if (refused !== null) return refused;
      this.keysUsed.used(loaded, key, principal.key, now.wall);
      // (2)
      if (ask.model.coder && ask.coderBilling === "calls") {
        const caller: Caller = {
          account: loaded,
          key: principal.key,
          endUser: this.#endUserOf(loaded, key, endUser, now),
        };
        return this.#admitCall(caller, ask, requestId, now.wall);
      }
      // (3)
      const flooded = this.#count(principal.account, now.monotonic, model.kind, loaded.plan.requestsPerMinute);
      if (flooded !== null) return flooded;
      // (4)
      if (!this.#journal.writable) return refuse("quota_unverified");
      // (5)
      const held = heldTokens(ask, inputTokens);
      const asking = endUser === null ? null : this.#endUserOf(loaded, key, endUser, now);
      const spendLimits = (asking ?? key)?.spendLimits ?? noSpendLimits;
      if (isFree(ask.model)) this.#ledger.reserveNothing(loaded);
      else {
        const full = this.#ledger.reserve(loaded, spendLimits, held, now.wall);
        if (full instanceof SpendLimit) return keyQuotaExceeded(full, held, now.wall);
        if (full !== null) {
          return quotaExceeded(this.#siteUrl, this.#ledger.spendable(loaded, now.wall), held, now.wall);
        }
      }
      const { keyHash, plan } = loaded;
      const by: By = {
        account: loaded,
        key: principal.key,
        named: key,
        endUser: asking,
        spendLimits,
        budget: held,
        keyHash,
        unlimited: plan.unlimited,
      };
      const cost = expectedCost(ask, noUsage, inputTokens);
      const hold = new TokenHold(this.#ledger, this.#journal, this.#line, by, ask, cost, requestId);
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

  /** Goes on with a hold that the account's rows know of. `since`: from when it has waited, if it does. */
  resume(loaded: LoadedAccount, record: HoldRecord, since: Ms): RecordedHold {
    const { key, ask, kind, budget, cost, requestId, keyHash, unlimited } = record;
    const named = key > defaultKey ? this.#ledger.key(loaded, key) : null;
    const caller: Caller = { account: loaded, key, endUser: this.#resumedFor(loaded, named, record) };
    if (kind === "call") {
      return new CallHold(this.#ledger, this.#journal, caller, ask, requestId, Promise.resolve(null));
    }
    const spendLimits = (caller.endUser ?? named)?.spendLimits ?? noSpendLimits;
    const by: By = { ...caller, named, spendLimits, budget, keyHash, unlimited };
    const hold = new TokenHold(this.#ledger, this.#journal, this.#line, by, ask, cost, requestId);
    if (!record.waits) hold.begun();
    else {
      hold.waits();
      this.#line.resume(loaded, hold, since);
    }
    return hold;
  }

  /** Charges what a request came to whose hold is gone, if the account has as much left; says whether it had. */
  settleLate(
    loaded: LoadedAccount,
    record: HoldRecord,
    usage: Usage,
    estimated: boolean,
    now: Ms,
    course?: Course,
  ): boolean {
    const named = record.key > defaultKey ? this.#ledger.key(loaded, record.key) : null;
    const budget = record.kind === "call" ? 0 : billedTokens(ratesOf(record.ask.model.price), usage);
    if (budget === 0) this.#ledger.reserveNothing(loaded);
    else {
      const asking = this.#resumedFor(loaded, named, record) ?? named;
      if (this.#ledger.reserve(loaded, asking?.spendLimits ?? noSpendLimits, budget, now) !== null) return false;
    }
    void this.resume(loaded, { ...record, budget, cost: 0, waits: false }, 0).settle(usage, estimated, now, course);
    return true;
  }

  #resumedFor(account: LoadedAccount, key: LoadedKey | null, { endUser }: HoldRecord): EndUser | null {
    return endUser === null || key === null ? null : this.#ledger.endUsers.exactly(account, key, endUser);
  }

  #endUserOf(account: LoadedAccount, key: LoadedKey | null, name: string | null, now: Moment): EndUser | null {
    if (name === null || key?.limits?.forwardsUsers !== true) return null;
    return this.#ledger.endUsers.of(account, key, name, now.wall);
  }

  #admitCall(caller: Caller, ask: Asked, requestId: string, now: Ms): RecordedHold | Refusal {
    const { account: loaded, key, endUser } = caller;
    if (!this.#journal.writable) return refuse("quota_unverified");
    if (!this.#ledger.takeCoderCall(loaded, now)) {
      const { used } = this.#ledger.use(loaded, "coder_calls", coderWindowOf(now));
      return coderQuotaReached(this.#siteUrl, ask.model.id, used, loaded.plan.coderCallsPerWindow, now);
    }
    this.#ledger.appended(loaded, endUser, now);
    const counted = this.#journal.append({
      billingKey: `call:${requestId}`,
      kind: "coder_call",
      account: loaded.id,
      key,
      endUser: endUser?.name ?? null,
      at: now,
      period: coderWindowOf(now),
      used: 1,
      creditDelta: 0,
      reply: null,
    });
    const ready = this.#journal.durable(counted).then(() => null);
    return new CallHold(this.#ledger, this.#journal, caller, ask, requestId, ready);
  }
}

/** Whose request it is, and what it holds its budget against beside the account's balance. `named`: its key, if it is one. */
type Caller = Readonly<{
  account: LoadedAccount;
  key: KeyId;
  /** Null where the key may not say for whom it asks. */
  endUser: EndUser | null;
}>;
type By = Caller &
  Readonly<{
    named: LoadedKey | null;
    spendLimits: readonly SpendLimit[];
    budget: number;
    keyHash: string;
    unlimited: boolean;
  }>;

/** A reservation of balance tokens: settled once, or given back in full by its dispose. */
class TokenHold implements RecordedHold, BalanceWaiter {
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #line: BalanceLine;
  readonly #account: LoadedAccount;
  readonly #key: KeyId;
  readonly #named: LoadedKey | null;
  readonly #endUser: EndUser | null;
  /** Of the account's first key when it was admitted. */
  readonly #keyHash: string;
  readonly #ask: Asked;
  readonly #requestId: string;
  /** It began without a balance, and does not end with a debt: a reload may have brought the plan one. */
  readonly #unlimited: boolean;
  /** See BalanceWaiter. */
  readonly spendLimits: readonly SpendLimit[];
  readonly budget: number;
  cost: number;
  #state: HoldState = "waiting";
  #ready: PromiseWithResolvers<Refusal | null> | null = null;

  constructor(
    ledger: Ledger,
    journal: Journal,
    line: BalanceLine,
    { account, key, named, endUser, spendLimits, budget, keyHash, unlimited }: By,
    ask: Asked,
    cost: number,
    requestId: string,
  ) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#line = line;
    this.#account = account;
    this.#key = key;
    this.#named = named;
    this.#endUser = endUser;
    if (endUser !== null) endUser.uses += 1;
    this.#keyHash = keyHash;
    this.spendLimits = spendLimits;
    this.#ask = ask;
    this.#requestId = requestId;
    this.#unlimited = unlimited;
    this.budget = budget;
    this.cost = cost;
  }

  get state(): HoldState {
    return this.#state;
  }

  get record(): HoldRecord {
    return {
      ...{ requestId: this.#requestId, key: this.#key, ask: this.#ask, kind: "tokens", budget: this.budget },
      ...{ cost: this.cost, waits: this.#state === "waiting", unlimited: this.#unlimited, keyHash: this.#keyHash },
      endUser: this.#endUser?.name ?? null,
    };
  }

  get ready(): Promise<Refusal | null> | null {
    return this.#ready?.promise ?? null;
  }

  /** From the moment in which it stands in line: it may be refused before anybody asks. */
  waits(): void {
    this.#ready = Promise.withResolvers();
  }

  isVoidAt(now: Ms): boolean {
    if (this.#named !== null) return this.#named.isVoidAt(now);
    return this.#key === defaultKey && this.#account.keyHash !== this.#keyHash;
  }

  begun(): void {
    this.#state = "begun";
    this.#ready?.resolve(null);
  }

  refused(refusal: Refusal): void {
    this.#isOver(refusal);
    this.#ledger.release(this.#account, this.spendLimits, this.budget);
    this.#ready?.resolve(refusal);
  }

  expect(spent: Usage, inputTokens: number, now: Ms): boolean {
    assert(this.#state === "begun", "rounds are run by requests that have begun");
    if (this.cost === 0) return true;
    const before = this.cost;
    const had = expectedCost(this.#ask, spent, 0) - before;
    const isWithin =
      this.#account.expected + had <= this.#ledger.balance(this.#account, now) &&
      this.spendLimits.every((limit) => limit.expected + had <= limit.left(now));
    this.cost = expectedCost(this.#ask, spent, inputTokens);
    this.#line.change(this.#account, this.spendLimits, before, this.cost, now);
    return isWithin;
  }

  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<void> {
    assert(this.#state === "begun", "a hold is resolved exactly once");
    const rates = ratesOf(this.#ask.model.price);
    const billed = billedTokens(rates, usage);
    let fromAllowance: number;
    try {
      const { spendLimits } = this;
      fromAllowance = this.#ledger.settle(this.#account, spendLimits, this.budget, billed, now, this.#unlimited);
    } catch (thrown) {
      // Nothing was changed: the hold stays open and its dispose gives it back.
      if (thrown instanceof StoreUnavailable) return Promise.reject(thrown);
      throw thrown;
    }
    this.#ledger.appended(this.#account, this.#endUser, now);
    this.#isOver();
    const sequence = this.#journal.append({
      billingKey: this.#requestId,
      kind: "charge",
      account: this.#account.id,
      key: this.#key,
      endUser: this.#endUser?.name ?? null,
      at: now,
      period: dayOf(now),
      used: fromAllowance,
      creditDelta: fromAllowance - billed,
      reply: replyOf(this.#ask, usage, rates, billed, estimated, course),
    });
    this.#line.end(this.#account, this.spendLimits, this.cost, now);
    return this.#journal.durable(sequence);
  }

  [Symbol.dispose](): void {
    if (isResolved(this.#state)) return;
    const waited = this.#state === "waiting";
    this.#isOver();
    this.#ledger.release(this.#account, this.spendLimits, this.budget);
    if (waited) this.#line.leave(this.#account, this);
    else this.#line.end(this.#account, this.spendLimits, this.cost);
    this.#ready?.resolve(givenUp);
  }

  #isOver(state: HoldState = "over"): void {
    this.#state = state;
    if (this.#endUser !== null) this.#endUser.uses -= 1;
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
  if (isFreeOfCharge(rates)) return 0;
  const output =
    model.budgetLimitsAnswer || model.kind !== "chat"
      ? outputTokensMax
      : Math.max(outputTokensMax, outputTokensDefault);
  const inputFresh = spent.inputFresh + inputTokens;
  const { inputCached } = spent;
  return Math.max(1, billedTokens(rates, { inputFresh, inputCached, output: Math.max(output, spent.output) }));
}

/**
 * A counted coder call. The call stays counted however the request ends; settling it records its tokens. A class of its own,
 * because it shares nothing with TokenHold but the shape of a line: no price, no line to wait in, no rounds that cost.
 */
class CallHold implements RecordedHold {
  readonly ready: Promise<null>;
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #caller: Caller;
  readonly #ask: Asked;
  readonly #requestId: string;
  #open = true;

  constructor(ledger: Ledger, journal: Journal, caller: Caller, ask: Asked, requestId: string, ready: Promise<null>) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#caller = caller;
    if (caller.endUser !== null) caller.endUser.uses += 1;
    this.#ask = ask;
    this.#requestId = requestId;
    this.ready = ready;
  }

  get state(): HoldState {
    return this.#open ? "begun" : "over";
  }

  get record(): HoldRecord {
    const { account, key, endUser } = this.#caller;
    return {
      ...{ requestId: this.#requestId, key, ask: this.#ask, kind: "call", budget: 0 },
      ...{ cost: 0, waits: false, unlimited: false, keyHash: account.keyHash, endUser: endUser?.name ?? null },
    };
  }

  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<void> {
    assert(this.#open, "a hold is resolved exactly once");
    const { account, key, endUser } = this.#caller;
    this.#ledger.appended(account, endUser, now);
    this.#close();
    const sequence = this.#journal.append({
      billingKey: this.#requestId,
      kind: "coder_usage",
      account: account.id,
      key,
      endUser: endUser?.name ?? null,
      at: now,
      period: 0,
      used: 0,
      creditDelta: 0,
      reply: replyOf(this.#ask, usage, freeRates, 0, estimated, course),
    });
    return this.#journal.durable(sequence);
  }

  [Symbol.dispose](): void {
    if (this.#open) this.#close();
  }

  #close(): void {
    this.#open = false;
    if (this.#caller.endUser !== null) this.#caller.endUser.uses -= 1;
    this.#ledger.release(this.#caller.account, noSpendLimits, 0);
  }
}

function replyOf(
  ask: Asked,
  usage: Usage,
  rates: Rates,
  billed: number,
  estimated: boolean,
  course: Course | undefined,
): Reply {
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
    course,
  };
}
