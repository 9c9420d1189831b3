// The named keys of accounts as the command line and the console see them, in a unit of the office: made, shown once, listed,
// renamed, limited anew and revoked.
import { parseRange } from "../../core/address.ts";
import type { KnownModels } from "../../core/catalog.ts";
import {
  type CountField,
  countLimits,
  type CountName,
  countNames,
  eachCount,
  isOfEndUsers,
} from "../../core/count-limits.ts";
import { endUserName } from "../../core/end-user.ts";
import { changedLimits, noLimits } from "../../core/key-limits.ts";
import { momentOfText } from "../../core/iso-time.ts";
import { keyListMax, keyNameMaxLength } from "../../core/limits.ts";
import { dayMs } from "../../core/units.ts";
import { isPriority, priorities, type Priority } from "../../core/priority.ts";
import { nearest } from "../../core/nearest.ts";
import { type AccountId, defaultKey, type KeyId, type KeyLimits, type Ms } from "../../core/types.ts";
import { AccountError, type Accounts } from "./accounts.ts";
import type { Draft } from "../draft.ts";
import { defaultKeyName, isReservedName } from "./key-names.ts";
import { endingOf, hashApiKey, mintApiKey } from "./keys.ts";
import type { AccountRecord, KeyRecord, KeyUse, OfficeRecords, Standings } from "../records.ts";

export const keysMax = 100;
/** Including revoked keys, which stay for the names on their journal lines. */
const keysEverMax = 5_000;
/** A machine that does not come for this long after its token expired must be approved again. */
export const machineIdleMaxMs = 30 * dayMs;

/** The account has no such key, or it was revoked. */
export class KeyNotFound extends AccountError {
  constructor(id: KeyId) {
    super(`the account has no key ${id}`);
  }
}

type WantedLimits = Readonly<{
  /** ISO 8601. */
  expires_at: string;
  /** Balance tokens of a UTC day, and of a UTC month. */
  limit_day: number;
  limit_month: number;
  models: readonly string[];
  /** CIDR ranges. */
  addresses: readonly string[];
  /** It may say for whom it asks. */
  forwards_users: boolean;
  /** Balance tokens of each of those in a UTC day. */
  limit_end_user_day: number;
  priority: Priority;
  priority_max: Priority;
}> &
  Readonly<Record<CountName, number>>;

/** What is asked for; what is absent is not limited. */
export type NewKey = Readonly<{ name: string }> & Partial<WantedLimits>;

/** Other limits of a key: what is absent stays, and null is limited no more. Keys that forward no end users limit none. */
export type NewLimits = Readonly<{ [Limit in keyof WantedLimits]?: WantedLimits[Limit] | null }>;

/** In the words of `tollgate keys list --json`. */
export type KeyView = Readonly<{
  /** 1 is the key that every account has. */
  id: KeyId;
  name: string;
  /** Its last four characters; null for keys from before they were kept. */
  ending: string | null;
  created_at: string;
  /** To within a minute; null where it never was. */
  last_used_at: string | null;
  expires_at: string | null;
  expired: boolean;
  limit_day: number | null;
  limit_month: number | null;
  /** Balance tokens charged today and this month (UTC); null for the first key, which has no limits. */
  used_day: number | null;
  used_month: number | null;
  models: readonly string[] | null;
  addresses: readonly string[] | null;
  forwards_users: boolean;
  limit_end_user_day: number | null;
  priority: Priority | null;
  priority_max: Priority | null;
  /** True: the token of a machine that signed in, which renews it. */
  machine: boolean;
  /** Whom its use is booked to, in the place of its account's. */
  cost_center: string | null;
  /** Of a team's key: the e-mail of the person whose it is; null: nobody's. */
  member: string | null;
}> &
  Readonly<Record<CountName, number | null>>;

/** `api_key` is shown this once: only its hash is kept. */
export type CreatedKey = KeyView & Readonly<{ api_key: string }>;

type Parts = Readonly<{
  records: Pick<OfficeRecords, "keysOf" | "endUsersNamed">;
  standings: Standings;
  accounts: Pick<Accounts, "record" | "checkNotErased">;
  /** The served models; absent if the nodes' lists are unknown. */
  catalog: Partial<KnownModels>;
  draft: Draft;
  now: Ms;
}>;

export class AccountKeys {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Those that may be used, the first one first; also those that expired. `member`: of a team's, those of that person. */
  async list(account: AccountId, member: AccountId | null = null): Promise<KeyView[]> {
    const { standings, accounts, now } = this.#parts;
    const record = (await accounts.record(account))!;
    const { keyUsedAt } = await standings.of(record, now);
    const named = (await this.#keys(account)).filter(
      (key) => key.revokedAt === null && (member === null || isOf(key, member)),
    );
    const uses = named.length === 0 ? noUses : await standings.ofKeys(account, now);
    const ids = [...new Set(named.flatMap(({ limits }) => limits?.member ?? []))];
    const people = await Promise.all(ids.map((id) => accounts.record(id)));
    const emails = new Map(people.map((person) => [person!.id, person!.email]));
    const views = named.map((key) => {
      return { ...viewOf(key, uses.get(key.id), now), member: emails.get(key.limits?.member ?? 0) ?? null };
    });
    return member === null ? [viewOfFirst(record, keyUsedAt), ...views] : views;
  }

  /** The names of all there ever were, for filters. */
  async namesOf(account: AccountId): Promise<Readonly<{ id: KeyId; name: string; ending: string | null }>[]> {
    const { keyEnding } = (await this.#parts.accounts.record(account))!;
    const named = (await this.#keys(account)).map(({ id, name, keyEnding: ending }) => ({ id, name, ending }));
    return [{ id: defaultKey, name: defaultKeyName, ending: keyEnding }, ...named];
  }

  /** Throws AccountError for a name that is taken or none, a limit that is none, and where there are too many. */
  async create(account: AccountId, wanted: NewKey, member: AccountId | null = null): Promise<CreatedKey> {
    const { accounts, now } = this.#parts;
    await accounts.checkNotErased(account);
    const limits = changedLimits(null, { ...limitsOf(wanted, now, noLimits), member });
    this.#checkModels(limits?.models ?? null);
    const known = await this.#keys(account);
    const own = known.filter((key) => isOf(key, member));
    const [api_key, record] = this.#make(account, checkName(wanted.name, own), limits, null, known);
    return { ...viewOf(record, undefined, now), api_key };
  }

  /**
   * A key of a machine, of which nobody knows a token until the machine fetches one. Its name gets a number where another
   * key has it. Throws AccountError as `create`.
   */
  async addMachine(account: AccountId, named: string, familyHash: string, expiresAt: Ms): Promise<KeyRecord> {
    const { accounts, draft, now: at } = this.#parts;
    await accounts.checkNotErased(account);
    const lapsed = ({ familyHash: family, revokedAt, limits }: KeyRecord): boolean =>
      family !== null && revokedAt === null && (limits?.expiresAt ?? at) + machineIdleMaxMs <= at;
    for (const { id: key } of (await this.#keys(account)).filter(lapsed)) {
      draft.changes.push({ change: "revoke_key", account, key, at });
    }
    const known = await this.#keys(account);
    const taken = new Set(known.flatMap((key) => (key.revokedAt === null ? key.name.toLowerCase() : [])));
    const trimmed = named.trim();
    let name = trimmed;
    for (let number = 2; taken.has(name.toLowerCase()) || isReservedName(name); number += 1) {
      name = `${trimmed.slice(0, keyNameMaxLength - 5)} ${number}`;
    }
    return this.#make(account, checkName(name, known), { ...noLimits, expiresAt }, familyHash, known)[1];
  }

  /** Gives a machine another token; the one before is void. */
  renew({ account, id: key }: KeyRecord, token: string, refreshHash: string, expiresAt: Ms): void {
    const made = { keyHash: hashApiKey(token), keyEnding: endingOf(token), refreshHash, expiresAt };
    this.#parts.draft.changes.push({ change: "key_token", account, key, ...made });
  }

  /** Throws AccountError for the first key, one that is not there, and a name that is taken or none. */
  async rename(account: AccountId, id: KeyId, name: string, member: AccountId | null = null): Promise<KeyView> {
    const [record, all] = await this.#find(account, id, member);
    const others = all.filter((key) => key.id !== id && isOf(key, record.limits?.member ?? null));
    const renamed = { ...record, name: checkName(name, others) };
    this.#parts.draft.changes.push({ change: "key_name", account, key: id, name: renamed.name });
    return this.#view(renamed);
  }

  /**
   * Acts when it is on disk, on whatever comes then; what runs keeps what it holds. Throws AccountError as `create`, for
   * the first key and one that is not there.
   */
  async limit(account: AccountId, id: KeyId, wanted: NewLimits, member: AccountId | null = null): Promise<KeyView> {
    const { draft, now } = this.#parts;
    const [record] = await this.#find(account, id, member);
    if (record.familyHash !== null && wanted.expires_at !== undefined) {
      throw new AccountError("a machine renews its token until the key is revoked: it has no other expiry");
    }
    const limits = limitsOf(wanted, now, record.limits ?? noLimits);
    const had = record.limits?.models ?? [];
    this.#checkModels(limits.models?.filter((name) => !had.includes(name)) ?? null);
    draft.changes.push({ change: "key_limits", account, key: id, limits });
    return this.#view({ ...record, limits: changedLimits(record.limits, limits) });
  }

  /** In the place of its account's cost center; null: that one's again. Throws AccountError as `rename`. */
  async setCostCenter(account: AccountId, id: KeyId, costCenter: string | null): Promise<void> {
    await this.#find(account, id, null);
    this.#parts.draft.changes.push({ change: "key_limits", account, key: id, limits: { costCenter } });
  }

  /** Void at once, also for open bodies; what runs may end. Throws AccountError as `rename`. */
  async revoke(
    account: AccountId,
    id: KeyId,
    member: AccountId | null = null,
  ): Promise<Readonly<{ id: KeyId; name: string }>> {
    const { draft, now: at } = this.#parts;
    const [{ name }] = await this.#find(account, id, member);
    draft.changes.push({ change: "revoke_key", account, key: id, at });
    return { id, name };
  }

  /** Those of an account's end users who are called so, one for each key that named them. Throws AccountError for none. */
  async endUser(account: AccountId, given: string): Promise<Readonly<{ name: string; keys: readonly string[] }>> {
    const { records } = this.#parts;
    const name = endUserName(given);
    const found = await records.endUsersNamed(account, name);
    if (found.length === 0) throw new AccountError(`no end user of the account is called ${JSON.stringify(name)}`);
    const keys = new Map((await this.#keys(account)).map((key) => [key.id, key.name]));
    return { name, keys: found.map(({ key }) => keys.get(key) ?? `key ${key}`) };
  }

  /** Takes away who it was; what it used stays. What it asks for later, or is being answered, names it again. */
  async eraseEndUser(account: AccountId, given: string): Promise<Readonly<{ keys: readonly string[] }>> {
    const { name, keys } = await this.endUser(account, given);
    this.#parts.draft.changes.push({ change: "erase_end_user", account, name });
    return { keys };
  }

  /** Throws AccountError for a name that no request can use. */
  #checkModels(names: readonly string[] | null): void {
    const served = this.#parts.catalog.models;
    if (served === undefined) return;
    const unknown = names?.find((name) => !served.has(name));
    if (unknown === undefined) return;
    const meant = nearest(unknown, served.keys()) ?? served.keys().find((name) => name.includes(unknown)) ?? null;
    const hint = meant === null ? "tollgate models lists those that are" : `did you mean ${JSON.stringify(meant)}?`;
    throw new AccountError(`no model is called ${JSON.stringify(unknown)}: ${hint}`);
  }

  #make(
    account: AccountId,
    name: string,
    limits: KeyLimits | null,
    familyHash: string | null,
    known: readonly KeyRecord[],
  ): readonly [key: string, record: KeyRecord] {
    const own = known.filter((key) => isOf(key, limits?.member ?? null));
    if (own.length >= keysEverMax || own.filter(({ revokedAt }) => revokedAt === null).length >= keysMax) {
      throw new AccountError(
        `an account, or member of a team, has at most ${keysMax} keys, and ${keysEverMax} with those that were revoked`,
      );
    }
    const { draft, now } = this.#parts;
    const id = Math.max(defaultKey, ...known.map((key) => key.id)) + 1;
    const key = mintApiKey();
    const hashes = { keyHash: hashApiKey(key), keyEnding: endingOf(key), familyHash, refreshHash: null };
    const record: KeyRecord = { account, id, name, ...hashes, limits, createdAt: now, usedAt: null, revokedAt: null };
    draft.changes.push({ change: "new_key", key: record, account });
    return [key, record];
  }

  async #keys(account: AccountId): Promise<readonly KeyRecord[]> {
    const { records, draft } = this.#parts;
    return draft.keys(account, await records.keysOf(account));
  }

  /** A key that may be used, and all there ever were. `member`: one of that person's, in a team. */
  async #find(
    account: AccountId,
    id: KeyId,
    member: AccountId | null,
  ): Promise<readonly [KeyRecord, readonly KeyRecord[]]> {
    if (id === defaultKey && member === null) {
      throw new AccountError(
        `the key "${defaultKeyName}" stays as it is: tollgate keys rotate makes another one, which voids it; limits are for ` +
          "keys of their own",
      );
    }
    const all = await this.#keys(account);
    const record = all.find((key) => key.id === id && key.revokedAt === null);
    if (record === undefined || (member !== null && !isOf(record, member))) throw new KeyNotFound(id);
    return [record, all];
  }

  async #view(record: KeyRecord): Promise<KeyView> {
    const { standings, now } = this.#parts;
    return viewOf(record, (await standings.ofKeys(record.account, now)).get(record.id), now);
  }
}

/** Of a team's keys, those of a person, or nobody's. */
const isOf = ({ limits }: KeyRecord, member: AccountId | null): boolean => (limits?.member ?? null) === member;

const noUses: ReadonlyMap<KeyId, KeyUse> = new Map();

function viewOfFirst({ keyCreatedAt: createdAt, keyEnding }: AccountRecord, usedAt: Ms | null): KeyView {
  const first = { id: defaultKey, name: defaultKeyName, keyEnding, createdAt, limits: null, usedAt, familyHash: null };
  return { ...viewOf(first, undefined, 0), used_day: null, used_month: null };
}

type Viewed = Pick<KeyRecord, "id" | "name" | "keyEnding" | "createdAt" | "limits" | "usedAt" | "familyHash">;

function viewOf(
  { id, name, keyEnding, createdAt, limits, familyHash, ...record }: Viewed,
  use: KeyUse | undefined,
  now: Ms,
): KeyView {
  const { expiresAt, tokensPerDay, tokensPerMonth, models, addresses, forwardsUsers, endUserTokensPerDay, ...others } =
    limits ?? noLimits;
  return {
    id,
    name,
    ending: keyEnding,
    created_at: timeOf(createdAt),
    last_used_at: timeOrNull(use?.usedAt ?? record.usedAt),
    expires_at: timeOrNull(expiresAt),
    expired: expiresAt !== null && expiresAt <= now,
    limit_day: tokensPerDay,
    limit_month: tokensPerMonth,
    used_day: use?.day ?? 0,
    used_month: use?.month ?? 0,
    models,
    addresses,
    forwards_users: forwardsUsers,
    limit_end_user_day: endUserTokensPerDay,
    priority: others.priority,
    priority_max: others.priorityMax,
    ...eachCount((_, field) => others[field]),
    machine: familyHash !== null,
    cost_center: others.costCenter,
    member: null,
  };
}

function checkName(name: string, others: readonly KeyRecord[]): string {
  const trimmed = name.trim();
  const shown = JSON.stringify(trimmed.slice(0, keyNameMaxLength));
  if (trimmed === "" || trimmed.length > keyNameMaxLength || /[\p{C}\p{Zl}\p{Zp}]/u.test(trimmed)) {
    throw new AccountError(`a key's name is a line of 1 to ${keyNameMaxLength} characters, not ${shown}`);
  }
  const isTaken = others.some((key) => key.revokedAt === null && key.name.toLowerCase() === trimmed.toLowerCase());
  if (isTaken || isReservedName(trimmed)) throw new AccountError(`a key is called ${shown} already`);
  return trimmed;
}

/** Those that are asked for, of a key that has `had`. */
function limitsOf(wanted: NewLimits, now: Ms, had: KeyLimits): Partial<KeyLimits> {
  const { expires_at, limit_day, limit_month, models, addresses, forwards_users, limit_end_user_day } = wanted;
  const { priority, priority_max } = wanted;
  const expiresAt = typeof expires_at === "string" ? momentOfText(expires_at) : null;
  if (typeof expires_at === "string" && (expiresAt === null || expiresAt <= now)) {
    throw new AccountError(
      `a key expires at a later time such as 2030-01-31T00:00:00Z, not ${JSON.stringify(expires_at.slice(0, 100))}`,
    );
  }
  for (const limit of [limit_day, limit_month, limit_end_user_day]) {
    if (typeof limit === "number" && !(Number.isSafeInteger(limit) && limit >= 1)) {
      throw new AccountError(`a key's limit is a whole number of balance tokens from 1 on, not ${limit}`);
    }
  }
  const counts: Partial<Record<CountField, number | null>> = {};
  const forwardsUsers = forwards_users === undefined ? had.forwardsUsers : forwards_users === true;
  for (const [name, field] of countNames) {
    const { most } = countLimits[name];
    const value = wanted[name];
    if (typeof value === "number" && !(Number.isSafeInteger(value) && value >= 1 && value <= most)) {
      throw new AccountError(`a key's ${name} is a whole number from 1 to ${most}, not ${value}`);
    }
    if (typeof value === "number" && !forwardsUsers && isOfEndUsers(name)) throw new AccountError(forwardsNone);
    if (value !== undefined) counts[field] = value;
    else if (forwards_users === false && isOfEndUsers(name)) counts[field] = null;
  }
  for (const name of ["priority", "priority_max"] as const) {
    const value = wanted[name] ?? null;
    if (value !== null && !isPriority(value)) {
      throw new AccountError(`a key's ${name} is one of ${priorities.join(", ")}, not ${JSON.stringify(value)}`);
    }
  }
  if (typeof limit_end_user_day === "number" && !forwardsUsers) throw new AccountError(forwardsNone);
  const perEndUser = forwards_users === undefined || forwardsUsers ? limit_end_user_day : null;
  const wrong = addresses?.find((text) => parseRange(text) === null);
  if (wrong !== undefined) {
    throw new AccountError(
      `an address is one such as 192.0.2.7, or a range such as 10.0.0.0/8, not ${JSON.stringify(wrong)}`,
    );
  }
  return {
    ...(expires_at === undefined ? {} : { expiresAt }),
    ...(limit_day === undefined ? {} : { tokensPerDay: limit_day }),
    ...(limit_month === undefined ? {} : { tokensPerMonth: limit_month }),
    ...(models === undefined ? {} : { models: checkList("models", models) }),
    ...(addresses === undefined ? {} : { addresses: checkList("addresses", addresses) }),
    ...(forwards_users === undefined ? {} : { forwardsUsers }),
    ...(perEndUser === undefined ? {} : { endUserTokensPerDay: perEndUser }),
    ...(priority === undefined ? {} : { priority }),
    ...(priority_max === undefined ? {} : { priorityMax: priority_max }),
    ...counts,
  };
}

const forwardsNone = "a key limits its end users only where it forwards who they are";

function checkList(what: string, list: readonly string[] | null): readonly string[] | null {
  if (list === null || list.length === 0) return null;
  if (list.length > keyListMax || list.some((text) => text === "" || text.length > 200)) {
    throw new AccountError(`a key names at most ${keyListMax} ${what}, of 1 to 200 characters each`);
  }
  return [...new Set(list)];
}

/** For the audit log. */
export const limitsDetail = (key: KeyId, limits: NewLimits): string =>
  `key ${key}: ${Object.entries(limits)
    .map(([limit, value]) => `${limit} ${limitInWords(value)}`)
    .join(", ")}`;

export const limitInWords = (limit: NewLimits[keyof NewLimits]): string =>
  limit === null || limit === undefined ? "none" : String(limit) || "none"; // an empty list is none

const timeOf = (at: Ms): string => new Date(at).toISOString();
const timeOrNull = (at: Ms | null): string | null => (at === null ? null : timeOf(at));
