// Whether a request may start, and what it holds while it runs. Decided in this order:
//   (1) a disabled account gets nothing, whoever found its key before that: on another thread, or before a long body
//   (2) core-coder-1 on chat-completions and messages counts a call and skips (3) and (5)
//   (3) flood protection
//   (4) the journal must take writes, else nothing could be charged
//   (5) the output budget is reserved from the balance
import { assert } from "../assert.ts";
import { refuse } from "../refusals.ts";
import { StoreUnavailable, type AccountId, type Ask, type Hold, type Ms, type Refusal, type Usage } from "../types.ts";
import type { Reply } from "./entry.ts";
import type { Flood } from "./flood.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import { billedTokens, ratesOf, type Rates } from "./price.ts";
import { coderWindowOf, dayOf } from "./quota.ts";

/** What admission reads of an Ask. */
export type Asked = Pick<Ask, "endpoint" | "model" | "outputTokensMax">;

const freeRates: Rates = { inputCents: 0, cachedInputCents: 0, outputCents: 0 };

export class Admission {
  readonly #ledger: Ledger;
  readonly #flood: Flood;
  readonly #journal: Journal;
  readonly #siteUrl: string;

  constructor(ledger: Ledger, flood: Flood, journal: Journal, siteUrl: string) {
    this.#ledger = ledger;
    this.#flood = flood;
    this.#journal = journal;
    this.#siteUrl = siteUrl;
  }

  /** Counts a malformed request for flood protection; it reserves nothing. */
  countRequest(account: AccountId, now: Ms): Refusal | null {
    const seconds = this.#flood.count(account, now);
    return seconds === 0 ? null : refuse("too_many_requests", { seconds });
  }

  /** Refuses, and counts, a request whose window is full already: before anything is done for it that costs time. */
  refuseFlooded(account: AccountId, now: Ms): Refusal | null {
    return this.#flood.isFull(account, now) ? this.countRequest(account, now) : null;
  }

  /** Admits a request with a Hold, or says why not. `requestId` was minted by the gateway and is used only once. */
  admit(account: AccountId, ask: Asked, requestId: string, now: Ms): Hold | Refusal {
    try {
      // (1)
      const loaded = this.#ledger.account(account);
      if (loaded.disabled) return refuse("invalid_api_key");
      // (2)
      if (ask.model.coder && ask.endpoint !== "/v1/responses") return this.#admitCall(loaded, ask, requestId, now);
      // (3)
      const flooded = this.countRequest(account, now);
      if (flooded !== null) return flooded;
      // (4)
      if (!this.#journal.writable) return refuse("quota_unverified");
      // (5)
      if (!this.#ledger.reserve(loaded, ask.outputTokensMax, now)) {
        return refuse("quota_exceeded", { site_url: this.#siteUrl });
      }
      return new TokenHold(this.#ledger, this.#journal, loaded, ask, requestId);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return refuse("quota_unverified");
      throw thrown;
    }
  }

  #admitCall(loaded: LoadedAccount, ask: Asked, requestId: string, now: Ms): Hold | Refusal {
    if (!this.#journal.writable) return refuse("quota_unverified");
    if (!this.#ledger.takeCoderCall(loaded, now)) {
      return refuse("coder_quota_reached", { model: ask.model.id, site_url: this.#siteUrl });
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
    return new CallHold(this.#ledger, this.#journal, loaded, ask, requestId, this.#journal.durable(counted));
  }
}

/** A reservation of balance tokens: settled once, or given back in full by its dispose. */
class TokenHold implements Hold {
  readonly ready = null;
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #account: LoadedAccount;
  readonly #ask: Asked;
  readonly #requestId: string;
  #open = true;

  constructor(ledger: Ledger, journal: Journal, account: LoadedAccount, ask: Asked, requestId: string) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#account = account;
    this.#ask = ask;
    this.#requestId = requestId;
  }

  settle(usage: Usage, estimated: boolean, now: Ms): Promise<void> {
    assert(this.#open, "a hold is resolved exactly once");
    const rates = ratesOf(this.#ask.model.price);
    const billed = billedTokens(rates, usage);
    let fromAllowance: number;
    try {
      fromAllowance = this.#ledger.settle(this.#account, this.#ask.outputTokensMax, billed, now);
    } catch (thrown) {
      // Nothing was changed: the hold stays open and its dispose gives it back.
      if (thrown instanceof StoreUnavailable) return Promise.reject(thrown);
      throw thrown;
    }
    this.#open = false;
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
    return this.#journal.durable(sequence);
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#ledger.release(this.#account, this.#ask.outputTokensMax);
  }
}

/** A counted coder call. The call stays counted however the request ends; settling it records its tokens. */
class CallHold implements Hold {
  readonly ready: Promise<void>;
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
    ready: Promise<void>,
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
    billedTokens: billed,
    estimated,
  };
}
