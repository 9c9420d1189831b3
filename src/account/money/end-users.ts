// The people behind keys that may name them (`--forwards-users`). What each may use in a day is a SpendLimit like a key's.
// However many names a program invents, memory is bounded: the disk knows who is not here, and names that are new are so
// many in a day; those beyond count as one end user, with one limit.
import { otherEndUsers } from "../../core/end-user.ts";
import type { CountField } from "../../core/count-limits.ts";
import type { AccountId, KeyId, Moment, Ms } from "../../core/types.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import type { LoadedKey } from "./loaded-key.ts";
import type { MinuteWindow } from "./minute-window.ts";
import { dayOf, type Period } from "./quota.ts";
import type { AccountRecords } from "../records.ts";
import { SpendLimit } from "./spend-limit.ts";

/** New end-user names of an account in a UTC day; those beyond count as one end user. */
const endUsersNewPerDayMax = 20_000;
/** End users of all accounts in memory; the disk knows the others. About 0.7 KB each. */
const endUsersLoadedMax = 10_000;
/** Those whose limits of a minute count something stay beyond that, up to so many times as many. */
const countedMaxTimes = 5;

type PerEndUser = Extract<CountField, `endUser${string}`>;

/** What each end user of a key may have: the least that the plan and the key say. Null: any number. */
export function perEndUser(limit: PerEndUser, { plan }: LoadedAccount, key: LoadedKey | null): number | null {
  const [ofPlan, ofKey] = [plan[limit] ?? null, key?.limits?.[limit] ?? null];
  return ofPlan === null || ofKey === null ? (ofPlan ?? ofKey) : Math.min(ofPlan, ofKey);
}

export class EndUser {
  /** Its open requests, and its lines that are not on disk: as long as there are any, it stays in memory. */
  uses = 0;
  /** Requests that have begun, also those that cost nothing. */
  running = 0;
  /** Null until a limit of a minute is looked at. */
  minute: MinuteWindow | null = null;
  /** It was erased while requests of it were open, so the disk has less of it than memory. */
  isErased = false;
  /** What its requests hold their budgets against: the key's limit, and its own. */
  readonly spendLimits: readonly SpendLimit[];

  constructor(
    readonly account: AccountId,
    readonly key: KeyId,
    readonly name: string,
    /** Also where the key does not limit its end users: it may get a limit for them. */
    readonly limit: SpendLimit,
    ofKey: readonly SpendLimit[],
    /** The disk has it, or a line that is on its way there. */
    public isKnown: boolean,
  ) {
    this.spendLimits = [...ofKey, limit];
  }

  /** It has as many requests under way as it may. */
  isFull(account: LoadedAccount, key: LoadedKey | null): boolean {
    const most = perEndUser("endUserParallel", account, key);
    return most !== null && this.running >= most;
  }
}

/** Looked at when room is wanted; those that are in use go behind the others. */
const lookedAt = 8;

export class EndUsers {
  /** Those used last are last. */
  readonly #loaded = new Map<string, EndUser>();
  readonly #records: Pick<AccountRecords, "hasEndUser" | "endUsersSince" | "endUserUse">;
  readonly #loadedMax: number;
  readonly #newPerDayMax: number;
  #now: Ms = 0;

  constructor(
    records: Pick<AccountRecords, "hasEndUser" | "endUsersSince" | "endUserUse">,
    loadedMax = endUsersLoadedMax,
    newPerDayMax = endUsersNewPerDayMax,
  ) {
    this.#records = records;
    this.#loadedMax = loadedMax;
    this.#newPerDayMax = newPerDayMax;
  }

  get size(): number {
    return this.#loaded.size;
  }

  loaded(): Iterable<EndUser> {
    return this.#loaded.values();
  }

  /** Who is meant by a name, or all that are too many. Throws StoreUnavailable. */
  of(account: LoadedAccount, key: LoadedKey, name: string, now: Moment): EndUser {
    this.#now = now.monotonic;
    const named = this.#get(account, key, name);
    if (named.isKnown || this.#newOf(account, now.wall).count < this.#newPerDayMax) return named;
    return this.#get(account, key, otherEndUsers);
  }

  /** Of a request that was admitted for it, however many came new since. Throws StoreUnavailable. */
  exactly(account: LoadedAccount, key: LoadedKey, name: string): EndUser {
    return this.#get(account, key, name);
  }

  /** A line of it is on its way to disk. */
  appended(account: LoadedAccount, endUser: EndUser, now: Ms): void {
    endUser.uses += 1;
    if (endUser.isKnown) return;
    endUser.isKnown = true;
    this.#newOf(account, now).count += 1;
  }

  /** It is there, or lost. */
  ended(endUser: EndUser): void {
    endUser.uses -= 1;
  }

  find(account: AccountId, key: KeyId, name: string): EndUser | null {
    return this.#loaded.get(nameOf(account, key, name)) ?? null;
  }

  /** The disk has forgotten who that was, or who all of an account's were. */
  erased(account: AccountId, name: string | null = null): void {
    for (const [id, endUser] of this.#loaded) {
      if (endUser.account !== account || (name !== null && endUser.name !== name)) continue;
      if (endUser.uses === 0) this.#loaded.delete(id);
      endUser.isErased = true;
    }
  }

  renamed(account: AccountId, { id, name }: LoadedKey): void {
    for (const endUser of this.#loaded.values()) {
      if (endUser.account === account && endUser.key === id) endUser.limit.name = name;
    }
  }

  /** The key has another limit for them. */
  limited(account: AccountId, { id, limits }: LoadedKey): void {
    const perDay = limits?.endUserTokensPerDay ?? null;
    for (const endUser of this.#loaded.values()) {
      if (endUser.account === account && endUser.key === id) endUser.limit.limit(perDay, null);
    }
  }

  #get(account: LoadedAccount, key: LoadedKey, name: string): EndUser {
    const id = nameOf(account.id, key.id, name);
    const found = this.#loaded.get(id) ?? this.#load(account.id, key, name);
    this.#loaded.delete(id);
    this.#loaded.set(id, found);
    if (this.#loaded.size > this.#loadedMax) this.#makeRoom(found);
    return found;
  }

  #load(account: AccountId, key: LoadedKey, name: string): EndUser {
    const perDay = key.limits?.endUserTokensPerDay ?? null;
    const read = (from: Period, before: Period) => this.#records.endUserUse(account, key.id, name, from, before);
    const limit = new SpendLimit(key.name, perDay, null, read, name);
    return new EndUser(account, key.id, name, limit, key.spendLimits, this.#records.hasEndUser(account, key.id, name));
  }

  #makeRoom(latest: EndUser): void {
    let looked = 0;
    for (const [id, endUser] of this.#loaded) {
      if (endUser === latest || (looked += 1) > lookedAt) return;
      this.#loaded.delete(id);
      const isCounted =
        endUser.minute?.isOver(this.#now) === false && this.#loaded.size < countedMaxTimes * this.#loadedMax;
      if (endUser.uses > 0 || isCounted) this.#loaded.set(id, endUser);
      else if (this.#loaded.size <= this.#loadedMax) return;
    }
  }

  #newOf(account: LoadedAccount, now: Ms): { readonly day: Period; count: number } {
    const day = dayOf(now);
    if (account.newEndUsers?.day === day) return account.newEndUsers;
    return (account.newEndUsers = { day, count: this.#records.endUsersSince(account.id, day) });
  }
}

const nameOf = (account: AccountId, key: KeyId, name: string): string => `${account} ${key} ${name}`;
