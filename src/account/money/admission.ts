// Whether a request may start, and what it holds while it runs. Decided in this order:
//   (1) a disabled account gets nothing, nor does a key that is void, whoever found it before that: on another thread, or
//       before a long body; nor does a model that the plan has not, or the key may not use
//   (2) a model of the coder tier, in a dialect that is billed in calls, counts a call and skips flood protection and (5)
//   (3) what its end user may use in a minute, flood protection, what the plan and the key may use in a minute; calls skip
//       the second of them, batches both
//   (4) the journal must take writes, else nothing could be charged
//   (5) the output budget is reserved from the balance, and from what the key may spend; an open one when it begins
//   (6) it begins, or waits for the account's others to settle, or the key's (balance-line.ts)
import { type Priority, priorityOf } from "../../core/priority.ts";
import { assert } from "../../core/assert.ts";
import {
  busyRetrySeconds,
  floodRequestsMax,
  inputRequestsPerMinuteDefault,
  outputTokensDefault,
} from "../../core/limits.ts";
import { allows } from "../../core/plans.ts";
import type { RateLeft, RatesLeft } from "../../core/rates-left.ts";
import { refuse } from "../../core/refusals.ts";
import {
  StoreUnavailable,
  type AccountId,
  type Course,
  defaultKey,
  type Hold,
  type KeyId,
  type Model,
  type ModelKind,
  type Moment,
  type Ms,
  type OutputHeld,
  type Refusal,
  type Usage,
  noUsage,
} from "../../core/types.ts";
import type { Asked } from "./asked.ts";
import type { AdmissionRequest, Asker, Books } from "./books.ts";
import { BalanceLine, type BalanceWaiter } from "./balance-line.ts";
import type { EndUser } from "./end-users.ts";
import type { Entry, Reply } from "./entry.ts";
import { Flood } from "./flood.ts";
import {
  type CountedTokens,
  type MinuteLine,
  noWindows,
  refusedByMinute,
  tightest,
  tokensOf,
  windowsOf,
} from "./minute-limits.ts";
import type { MinuteWindow } from "./minute-window.ts";
import type { Journal } from "../journal.ts";
import type { Ledger } from "./ledger.ts";
import { KeysUsed } from "../people/keys-used.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import type { LoadedKey } from "./loaded-key.ts";
import { billedTokens, isFreeOfCharge, outputWithin, ratesOf, type Rates, usageWithin } from "./price.ts";
import { coderWindowOf, dayOf } from "./quota.ts";
import { coderQuotaReached, keyQuotaExceeded, quotaExceeded } from "./quota-refusals.ts";
import { noSpendLimits, SpendLimit } from "./spend-limit.ts";

/** An answer without a budget starts once this much or more is available: less would be no answer. */
const openBudgetMinTokens = 256;
/** What is held beyond the tokens that an answer without a budget already has: as much as the default budget. */
const openBudgetAheadTokens = outputTokensDefault;

/**
 * A hold that its account's rows know of: what is needed to go on with it, in a later batch on the same rows. `budget`: the
 * balance tokens that it holds. `cost`: those that it is expected to cost. `writes`: output tokens of a round, if no budget ends it.
 */
export type HoldRecord = Readonly<{
  requestId: string;
  key: KeyId;
  ask: Asked;
  kind: "tokens" | "call";
  budget: number;
  cost: number;
  writes: number;
  waits: boolean;
  unlimited: boolean;
  /** Of the account's first key when it was admitted. */
  keyHash: string;
  /** For whom it is asked; null where the key may not say so. */
  endUser: string | null;
  output: OutputHeld | null;
  /** Null where nothing limits a minute's tokens. */
  counted: CountedTokens | null;
}>;

/** What became of a hold; a Refusal: it waited in vain, and has given its budget back. */
type HoldState = "waiting" | "begun" | "over" | Refusal;

const isResolved = (state: HoldState): boolean => state !== "waiting" && state !== "begun";

export interface RecordedHold extends Hold {
  rates: RatesLeft | null;
  counted: CountedTokens | null;
  readonly priority: Priority;
  expect?(spent: Usage, inputTokens: number, now: Ms): boolean;
  /** What of a usage would be charged now. Throws StoreUnavailable. */
  believed(usage: Usage, now: Ms): Usage;
  grow?(written: number, now: Ms): number;
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
  return model.tier === "own" ? tokensFor(model, outputTokensMax) : outputTokensMax;
}

/** What so long an answer of a shop's own model costs at most. */
function tokensFor(model: Model, output: number): number {
  return isFree(model) ? 0 : Math.max(1, billedTokens(ratesOf(model.price), { ...noUsage, output }));
}

/** Output tokens with which an open budget begins at least. Null: the budget was named, or costs nothing. */
const leastOutput = ({ model, openBudget, outputTokensMax }: Asked): number | null =>
  openBudget !== true || isFree(model) ? null : Math.min(openBudgetMinTokens, outputTokensMax);

/** A shop's own model without a price. */
const isFree = ({ tier, price }: Model): boolean => tier === "own" && isFreeOfCharge(ratesOf(price));

const freeRates: Rates = { inputCents: 0, cachedInputCents: 0, outputCents: 0 };

type FloodWindows = Pick<Flood, "count" | "isFull" | "left">;

export class Admission implements Books {
  readonly #ledger: Ledger;
  readonly #floods: Readonly<Record<ModelKind, FloodWindows>>;
  /** Of an account, to models of embeddings and reranking. */
  inputRequestsPerMinute = inputRequestsPerMinuteDefault;
  /** The one by which limits of a minute are counted: gateways that share them have that of the database. */
  windowClock: keyof Moment = "monotonic";
  readonly #journal: Journal;
  readonly #siteUrl: string;
  readonly keysUsed: KeysUsed;
  /** Those who were admitted and wait for others of their account to settle. */
  readonly line: Pick<BalanceLine, "length" | "maxWaitMs" | "onWaiting" | "look">;
  readonly #line: BalanceLine;
  readonly #books: HoldBooks;

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
    this.#floods = { chat: flood, embedding: ofInputs, rerank: ofInputs, transcription: ofInputs, speech: ofInputs };
    this.#journal = journal;
    this.#siteUrl = siteUrl;
    this.line = this.#line = new BalanceLine(ledger, journal, siteUrl);
    this.#books = { ledger, journal, line: this.#line };
  }

  /** Counts a malformed request for flood protection; it reserves nothing. `now` is monotonic. */
  countRequest(account: AccountId, now: Ms, kind: ModelKind = "chat"): Refusal | null {
    return this.#countFlood(account, now, kind, kind === "chat" ? this.#requestsPerMinute(account) : 0);
  }

  /** `ofPlan`: what the account's plan allows of requests for answers. */
  #countFlood(account: AccountId, now: Ms, kind: ModelKind, ofPlan: number): Refusal | null {
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

  admit(request: AdmissionRequest, now: Moment): RecordedHold | Refusal {
    const { account, key: keyId, ask, inputTokens, requestId, endUser = null } = request;
    const { expected = { input: inputTokens, output: 0 } } = request;
    try {
      // (1)
      const loaded = this.#ledger.account(account);
      if (loaded.disabled) return refuse("invalid_api_key");
      const key = keyId > defaultKey ? this.#ledger.key(loaded, keyId) : null;
      if (key === null ? keyId > defaultKey : key.isVoidAt(now.wall)) return refuse("invalid_api_key");
      const { model } = ask;
      const refused = refusedModel(loaded, key, model);
      if (refused !== null) return refused;
      this.keysUsed.used(loaded, key, keyId, now.wall);
      // (2)
      if (ask.model.coder && ask.coderBilling === "calls") {
        return this.#admitCall(loaded, key, request, now);
      }
      // (3)
      const asking = this.#endUserOf(loaded, key, endUser, now);
      const limited = ask.batch === true ? null : this.#refuseByTime(loaded, key, asking, request, now);
      if (limited !== null) return limited;
      // (4)
      if (!this.#journal.writable) return refuse("quota_unverified");
      // (5)
      const least = leastOutput(ask);
      const held = least === null ? heldTokens(ask, inputTokens) : tokensFor(ask.model, least);
      const spendLimits = (asking ?? key)?.spendLimits ?? noSpendLimits;
      if (isFree(ask.model)) this.#ledger.reserveNothing(loaded);
      else if (least !== null) {
        const full = this.#line.refuseLeast(loaded, { ask, spendLimits, least: held }, now.wall);
        if (full !== null) return full;
        this.#ledger.reserveNothing(loaded);
      } else {
        const full = this.#ledger.reserve(loaded, spendLimits, held, now.wall);
        if (full instanceof SpendLimit) return keyQuotaExceeded(full, ask, held, now.wall);
        if (full !== null) {
          return quotaExceeded(this.#siteUrl, this.#ledger.spendable(loaded, now.wall), ask, held, now.wall);
        }
      }
      const { keyHash, plan } = loaded;
      const by: By = {
        account: loaded,
        key: keyId,
        named: key,
        endUser: asking,
        spendLimits,
        budget: least === null ? held : 0,
        output: null,
        keyHash,
        unlimited: plan.unlimited,
      };
      const writes = writesOf(ask, expected.output);
      const cost = expectedCost(ask, least ?? ask.outputTokensMax, noUsage, expected.input, writes);
      const hold = new TokenHold(this.#books, by, ask, { cost, writes }, requestId);
      // (6)
      return this.#enter(hold, loaded, key, request, now);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return refuse("quota_unverified");
      throw thrown;
    }
  }

  /** See (3). An end user who asks too often takes nothing of the flood protection, which others share. */
  #refuseByTime(
    loaded: LoadedAccount,
    key: LoadedKey | null,
    endUser: EndUser | null,
    request: AdmissionRequest,
    now: Moment,
  ): Refusal | null {
    const windows = windowsOf(loaded, key, endUser);
    const own = windows.at(-1);
    const tooOften =
      own !== undefined && own === endUser?.minute ? this.#refuseByMinute([own], loaded, request, now) : null;
    if (tooOften !== null) return tooOften;
    const { kind } = request.ask.model;
    const flooded = this.#countFlood(loaded.id, now.monotonic, kind, loaded.plan.requestsPerMinute);
    if (flooded === null) return this.#refuseByMinute(windows, loaded, request, now);
    const ofFlood = this.#floodLeft(loaded, kind, now);
    return ofFlood === null ? flooded : { ...flooded, rates: tightest([], 0, now.wall, ofFlood) };
  }

  #refuseByMinute(
    windows: readonly MinuteWindow[],
    loaded: LoadedAccount,
    request: AdmissionRequest,
    now: Moment,
  ): Refusal | null {
    if (windows === noWindows) return null;
    const ofFlood = this.#floodLeft(loaded, request.ask.model.kind, now);
    return refusedByMinute(windows, tokensOf(request), now[this.windowClock], now.wall, ofFlood);
  }

  /** Of the requests that the shop says that the plan has a minute; null: nothing is said. */
  #floodLeft({ id, plan }: LoadedAccount, kind: ModelKind, { monotonic }: Moment): RateLeft | null {
    return kind === "chat" && plan.saysRequests === true
      ? this.#floods.chat.left(id, monotonic, plan.requestsPerMinute)
      : null;
  }

  /** The hold begins or waits, and counts in its limits of a minute; or it is refused. */
  #enter(
    hold: TokenHold | CallHold,
    loaded: LoadedAccount,
    key: LoadedKey | null,
    request: AdmissionRequest,
    now: Moment,
  ): RecordedHold | Refusal {
    const begins = this.#line.enter(loaded, hold, now);
    if (begins === true) hold.begun();
    else if (begins === false) hold.waits();
    else {
      hold.refused(begins);
      return begins;
    }
    const windows = windowsOf(loaded, key, hold.endUser);
    const ofFlood = this.#floodLeft(loaded, request.ask.model.kind, now);
    if ((windows === noWindows && ofFlood === null) || request.ask.batch === true) return hold;
    const at = now[this.windowClock];
    const tokens = tokensOf(request);
    for (const window of windows) window.count(tokens, at);
    hold.counted = windows === noWindows ? null : { tokens, at, wall: now.wall };
    hold.rates = tightest(windows, at, now.wall, ofFlood);
    return hold;
  }

  /** What requests of the last minute used, the latest first: after a start. What was not charged nobody knows anymore. */
  recall(lines: Iterable<MinuteLine>, now: Moment): void {
    for (const { account, key, endUser, at, tokens } of [...lines].reverse()) {
      const loaded = this.#ledger.account(account);
      const named = key > defaultKey ? this.#ledger.key(loaded, key) : null;
      const asking = endUser === null || named === null ? null : this.#ledger.endUsers.exactly(loaded, named, endUser);
      const countedAt = now.monotonic - Math.max(0, now.wall - at);
      for (const window of windowsOf(loaded, named, asking)) window.count(tokens, countedAt);
    }
  }

  /** Goes on with a hold that the account's rows know of. `since`: from when it has waited, if it does. */
  resume(loaded: LoadedAccount, record: HoldRecord, since: Ms): RecordedHold {
    const { key, ask, kind, budget, requestId, keyHash, unlimited, output } = record;
    const named = key > defaultKey ? this.#ledger.key(loaded, key) : null;
    const caller: Caller = { account: loaded, key, named, endUser: this.#resumedFor(loaded, named, record) };
    const counted = record.counted;
    if (kind === "call") {
      const call = new CallHold(this.#books, caller, ask, requestId, Promise.resolve(null));
      call.counted = counted;
      return this.#resumed(call, loaded, record, since);
    }
    const spendLimits = (caller.endUser ?? named)?.spendLimits ?? noSpendLimits;
    const by: By = { ...caller, spendLimits, budget, output, keyHash, unlimited };
    const hold = new TokenHold(this.#books, by, ask, record, requestId);
    hold.counted = counted;
    return this.#resumed(hold, loaded, record, since);
  }

  #resumed<Resumed extends TokenHold | CallHold>(
    hold: Resumed,
    loaded: LoadedAccount,
    { waits }: HoldRecord,
    since: Ms,
  ): Resumed {
    if (!waits) hold.begun();
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
    const endUser = this.#resumedFor(loaded, named, record);
    const budget = record.kind === "call" ? 0 : billedTokens(ratesOf(record.ask.model.price), usage);
    if (budget === 0) this.#ledger.reserveNothing(loaded);
    else {
      const spendLimits = (endUser ?? named)?.spendLimits ?? noSpendLimits;
      if (!fitsWithout(0, this.#ledger, loaded, spendLimits, now)) return false;
      if (this.#ledger.reserve(loaded, spendLimits, budget, now) !== null) return false;
    }
    loaded.running += 1;
    if (named !== null) named.running += 1;
    if (endUser !== null) endUser.running += 1;
    void this.resume(loaded, { ...record, budget, cost: 0, waits: false }, 0).settle(usage, estimated, now, course);
    return true;
  }

  #resumedFor(account: LoadedAccount, key: LoadedKey | null, { endUser }: HoldRecord): EndUser | null {
    return endUser === null || key === null ? null : this.#ledger.endUsers.exactly(account, key, endUser);
  }

  #endUserOf(account: LoadedAccount, key: LoadedKey | null, name: string | null, now: Moment): EndUser | null {
    if (name === null || key?.limits?.forwardsUsers !== true) return null;
    return this.#ledger.endUsers.of(account, key, name, now);
  }

  #admitCall(
    loaded: LoadedAccount,
    named: LoadedKey | null,
    request: AdmissionRequest,
    moment: Moment,
  ): RecordedHold | Refusal {
    const { key, ask, requestId, endUser: name = null } = request;
    const now = moment.wall;
    const endUser = this.#endUserOf(loaded, named, name, moment);
    const limited = this.#refuseByMinute(windowsOf(loaded, named, endUser), loaded, request, moment);
    if (limited !== null) return limited;
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
    const caller = { account: loaded, key, named, endUser };
    const hold = new CallHold(this.#books, caller, ask, requestId, ready);
    return this.#enter(hold, loaded, named, request, moment);
  }
}

type HoldBooks = Readonly<{ ledger: Ledger; journal: Journal; line: BalanceLine }>;
type Expectation = Pick<HoldRecord, "cost" | "writes">;

/** Whose request it is, and what it holds its budget against beside the account's balance. `named`: its key, if it is one. */
type Caller = Readonly<{
  account: LoadedAccount;
  key: KeyId;
  named: LoadedKey | null;
  /** Null where the key may not say for whom it asks. */
  endUser: EndUser | null;
}>;
type By = Caller &
  Readonly<{
    spendLimits: readonly SpendLimit[];
    budget: number;
    output: OutputHeld | null;
    keyHash: string;
    unlimited: boolean;
  }>;

/**
 * Whether the account and the key have what all begun requests are expected to cost, without so much of it. What one of them
 * comes to beyond what was expected is believed only then: whatever it is, the others cost no more than that, and only it goes
 * beyond the balance. `unlimited`: of what the account has there is no end, of what the key may spend there is. Throws
 * StoreUnavailable.
 */
function fitsWithout(
  cost: number,
  ledger: Ledger,
  account: LoadedAccount,
  spendLimits: readonly SpendLimit[],
  now: Ms,
  unlimited = false,
): boolean {
  if (!unlimited && account.expected - cost > ledger.balance(account, now)) return false;
  return spendLimits.every((limit) => limit.expected - cost <= limit.left(now));
}

/** What every hold has: whose it is, and that it begins or waits, and ends once. */
abstract class AnyHold implements BalanceWaiter {
  abstract readonly kind: HoldRecord["kind"];
  abstract readonly spendLimits: readonly SpendLimit[];
  abstract readonly least: number | null;
  budget = 0;
  cost = 0;
  rates: RatesLeft | null = null;
  counted: CountedTokens | null = null;
  state: HoldState = "waiting";
  readonly priority: Priority;
  readonly named: LoadedKey | null;
  readonly endUser: EndUser | null;
  protected readonly account: LoadedAccount;
  protected decided: PromiseWithResolvers<Refusal | null> | null = null;
  readonly #key: KeyId;

  constructor(
    protected readonly books: HoldBooks,
    { account, key, named, endUser }: Caller,
    readonly ask: Asked,
    readonly requestId: string,
    /** Of the account's first key when it was admitted. */
    readonly keyHash: string,
  ) {
    this.account = account;
    this.#key = key;
    this.named = named;
    this.endUser = endUser;
    if (endUser !== null) endUser.uses += 1;
    this.priority = priorityOf(account.plan, ask.priority, named?.limits);
  }

  get record(): HoldRecord {
    const { requestId, ask, kind, budget, cost, keyHash, counted } = this;
    const endUser = this.endUser?.name ?? null;
    const own = { writes: 0, unlimited: false, output: null };
    const waits = this.state === "waiting";
    return { requestId, key: this.#key, ask, kind, budget, cost, waits, keyHash, endUser, counted, ...own };
  }

  /** From the moment in which it stands in line: it may be refused before anybody asks. */
  waits(): void {
    this.decided = Promise.withResolvers();
  }

  begun(): void {
    this.state = "begun";
    this.decided?.resolve(null);
  }

  refused(refusal: Refusal): void {
    this.giveBack(noUsage, refusal);
    this.decided?.resolve(refusal);
  }

  position(): number | null {
    return this.books.line.positionOf(this.account, this);
  }

  isVoidAt(now: Ms): boolean {
    if (this.named !== null) return this.named.isVoidAt(now);
    return this.#key === defaultKey && this.account.keyHash !== this.keyHash;
  }

  /** Only an open budget finds more as it begins. */
  reserves(_now: Ms): void {}

  [Symbol.dispose](): void {
    if (isResolved(this.state)) return;
    const waited = this.state === "waiting";
    this.giveBack(noUsage, "over");
    if (waited) this.books.line.leave(this.account, this);
    else this.books.line.end(this.account, this);
    this.decided?.resolve(givenUp);
  }

  /** What it counted of a minute's tokens becomes what it used; `wall` only matters where that is more. */
  protected end({ inputFresh, inputCached, output }: Usage, state: "over" | Refusal, wall?: Ms): void {
    const { account, counted, named, endUser } = this;
    this.state = state;
    if (endUser !== null) endUser.uses -= 1;
    if (counted === null) return;
    const now = counted.at + Math.max(0, (wall ?? counted.wall) - counted.wall);
    const used = inputFresh + inputCached + output;
    for (const window of windowsOf(account, named, endUser)) window.correct(counted.tokens, counted.at, used, now);
  }

  protected giveBack(usage: Usage, state: "over" | Refusal, wall?: Ms): void {
    this.end(usage, state, wall);
    this.books.ledger.release(this.account, this.spendLimits, this.budget);
  }

  /** Its line in the journal, whose number this gives. */
  protected append(line: Pick<Entry, "kind" | "period" | "used" | "creditDelta" | "reply">, at: Ms): number {
    const endUser = this.endUser?.name ?? null;
    return this.books.journal.append({
      billingKey: this.requestId,
      account: this.account.id,
      key: this.#key,
      endUser,
      at,
      ...line,
    });
  }
}

/** A reservation of balance tokens: settled once, or given back in full by its dispose. */
class TokenHold extends AnyHold implements RecordedHold {
  readonly kind = "tokens";
  /** See BalanceWaiter. */
  readonly spendLimits: readonly SpendLimit[];
  readonly least: number | null;
  outputHeld: OutputHeld | null;
  /** It began without a balance, and does not end with a debt: a reload may have brought the plan one. */
  readonly #unlimited: boolean;
  readonly #writes: number;

  constructor(books: HoldBooks, by: By, ask: Asked, { cost, writes }: Expectation, requestId: string) {
    super(books, by, ask, requestId, by.keyHash);
    this.spendLimits = by.spendLimits;
    this.#unlimited = by.unlimited;
    this.budget = by.budget;
    this.outputHeld = by.output;
    const least = leastOutput(ask);
    this.least = least === null ? null : tokensFor(ask.model, least);
    this.cost = cost;
    this.#writes = writes;
  }

  override get record(): HoldRecord {
    return { ...super.record, writes: this.#writes, unlimited: this.#unlimited, output: this.outputHeld };
  }

  get ready(): Promise<Refusal | null> | null {
    return this.decided?.promise ?? null;
  }

  /** Half of what is free at most, so that there is something left for the next one. */
  override reserves(now: Ms): void {
    const { model, outputTokensMax } = this.ask;
    const rates = ratesOf(model.price);
    const least = leastOutput(this.ask)!;
    const first = Math.min(openBudgetAheadTokens, outputTokensMax);
    const free = outputWithin(rates, this.#room(now, this.cost - this.least!), 2 * first);
    const held = Math.min(first, Math.max(least, Math.floor(free / 2)));
    const most = outputWithin(rates, this.#mostLeft(now), outputTokensMax);
    this.cost -= this.least!;
    this.#hold(held, Math.max(held, most));
  }

  expect(spent: Usage, inputTokens: number, now: Ms): boolean {
    assert(this.state === "begun", "rounds are run by requests that have begun");
    if (this.cost === 0) return true;
    const before = this.cost;
    const output = this.outputHeld?.held ?? this.ask.outputTokensMax;
    const had = expectedCost(this.ask, output, spent, 0, Math.max(0, this.#writes - spent.output));
    const isWithin = fitsWithout(before - had, this.books.ledger, this.account, this.spendLimits, now);
    const next = expectedCost(this.ask, output, spent, inputTokens, this.#writes);
    this.cost = isWithin ? next : Math.min(before, next);
    this.books.line.change(this.account, this.spendLimits, before, this.cost, now);
    return isWithin;
  }

  grow(written: number, now: Ms): number {
    assert(this.state === "begun" && this.outputHeld !== null, "an answer is written by a request that has begun");
    const { held, most } = this.outputHeld;
    const wanted = Math.min(written + openBudgetAheadTokens, most);
    if (wanted <= held) return held;
    const found = outputWithin(ratesOf(this.ask.model.price), this.#room(now, this.cost - this.budget), wanted);
    if (found <= held) return held;
    const before = this.cost;
    this.#hold(found, most);
    this.books.line.change(this.account, this.spendLimits, before, this.cost, now);
    return found;
  }

  #hold(held: number, most: number): void {
    const tokens = tokensFor(this.ask.model, held);
    this.books.ledger.reserveMore(this.account, this.spendLimits, tokens - this.budget);
    this.cost += tokens - this.budget;
    this.budget = tokens;
    this.outputHeld = { held, most };
  }

  /**
   * Balance tokens that an open budget may hold, with those that it does: what others do not hold, and are not expected to
   * cost. Alone it may go beyond that by `input`, what it reads.
   */
  #room(now: Ms, input: number): number {
    const own = this.state === "begun" ? 1 : 0;
    const beside = ({ held, begun, expected }: LoadedAccount | SpendLimit, left: number): number => {
      const free = left - held + this.budget;
      return begun === own ? free : Math.min(free, left - (expected - own * this.cost) - input);
    };
    const ofLimits = this.spendLimits.map((limit) => beside(limit, limit.left(now)));
    return Math.min(beside(this.account, this.books.ledger.balance(this.account, now)), ...ofLimits);
  }

  /** Balance tokens that it might hold if nobody else held any. */
  #mostLeft(now: Ms): number {
    return Math.min(this.books.ledger.balance(this.account, now), ...this.spendLimits.map((limit) => limit.left(now)));
  }

  believed(usage: Usage, now: Ms): Usage {
    const rates = ratesOf(this.ask.model.price);
    if (billedTokens(rates, usage) <= this.cost) return usage;
    if (fitsWithout(this.cost, this.books.ledger, this.account, this.spendLimits, now, this.#unlimited)) return usage;
    return usageWithin(rates, usage, this.cost);
  }

  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<Usage> {
    assert(this.state === "begun", "a hold is resolved exactly once");
    const rates = ratesOf(this.ask.model.price);
    let charged: Usage;
    let billed: number;
    let fromAllowance: number;
    try {
      charged = this.believed(usage, now);
      billed = billedTokens(rates, charged);
      const { spendLimits } = this;
      fromAllowance = this.books.ledger.settle(this.account, spendLimits, this.budget, billed, now, this.#unlimited);
    } catch (thrown) {
      // Nothing was changed: the hold stays open and its dispose gives it back.
      if (thrown instanceof StoreUnavailable) return Promise.reject(thrown);
      throw thrown;
    }
    this.books.ledger.appended(this.account, this.endUser, now);
    this.end(usage, "over", now);
    const isEstimated = estimated || charged !== usage;
    const costCenter = costCenterOf(this.account, this.named);
    const sequence = this.append(
      {
        kind: "charge",
        period: dayOf(now),
        used: fromAllowance,
        creditDelta: fromAllowance - billed,
        reply: replyOf(this.ask, charged, rates, billed, isEstimated, course, costCenter),
      },
      now,
    );
    this.books.line.end(this.account, this, now);
    return this.books.journal.durable(sequence).then(() => charged);
  }
}

/** Nobody reads it: the client left. */
const givenUp: Refusal = refuse("busy", { seconds: busyRetrySeconds });

/** Whether the budget ends the answer, over all its rounds. One that does not says nothing of an answer. */
const isLimited = ({ budgetLimitsAnswer, kind }: Model): boolean => budgetLimitsAnswer || kind !== "chat";

/** Output tokens that a round without a limit is expected to write. */
const writesOf = ({ model, outputTokensMax }: Asked, expected: number): number =>
  isLimited(model) ? 0 : Math.max(outputTokensMax, outputTokensDefault, expected);

/**
 * Balance tokens that a request comes to whose rounds so far came to `spent`, when it reads so much more and writes what
 * its budget leaves, or `writes` where that is no limit; 0 only where nothing costs anything.
 */
function expectedCost({ model }: Asked, budget: number, spent: Usage, inputTokens: number, writes: number): number {
  const rates = ratesOf(model.price);
  if (isFreeOfCharge(rates)) return 0;
  const output = isLimited(model) ? Math.max(budget, spent.output) : spent.output + writes;
  const inputFresh = spent.inputFresh + inputTokens;
  const { inputCached } = spent;
  return Math.max(1, billedTokens(rates, { inputFresh, inputCached, output }));
}

/** A counted coder call. The call stays counted however the request ends; settling it records its tokens. */
class CallHold extends AnyHold implements RecordedHold {
  readonly kind = "call";
  readonly spendLimits = noSpendLimits;
  readonly least = null;
  /** Its count is on disk. */
  readonly #counted: Promise<null>;

  constructor(books: HoldBooks, caller: Caller, ask: Asked, requestId: string, counted: Promise<null>) {
    super(books, caller, ask, requestId, caller.account.keyHash);
    this.#counted = counted;
  }

  get ready(): Promise<Refusal | null> {
    return this.decided === null ? this.#counted : this.decided.promise.then((refusal) => refusal ?? this.#counted);
  }

  believed(usage: Usage): Usage {
    return usage;
  }

  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<Usage> {
    assert(this.state === "begun", "a hold is resolved exactly once");
    const { account } = this;
    this.books.ledger.appended(account, this.endUser, now);
    this.giveBack(usage, "over", now);
    this.books.line.end(account, this, now);
    const reply = replyOf(this.ask, usage, freeRates, 0, estimated, course, costCenterOf(account, this.named));
    const sequence = this.append({ kind: "coder_usage", period: 0, used: 0, creditDelta: 0, reply }, now);
    return this.books.journal.durable(sequence).then(() => usage);
  }
}

function replyOf(
  ask: Asked,
  usage: Usage,
  rates: Rates,
  billed: number,
  estimated: boolean,
  course: Course | undefined,
  costCenter: string | null,
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
    costCenter,
  };
}

const costCenterOf = ({ costCenter }: LoadedAccount, key: LoadedKey | null): string | null =>
  key?.limits?.costCenter ?? costCenter;
