// Keeps each account's prompts apart in the engines' prefix caches: otherwise the time to a first token reveals whether
// another account sent the same prompt.
import type { SharePrefixCache } from "../config/config.ts";
import type { PlanId } from "../core/plan-ids.ts";
import { personPrefix } from "../core/standing.ts";
import type { AccountId } from "../core/types.ts";

export type PrefixCacheRule = Readonly<{
  /** Absent: accounts are kept apart where the engine can do it. */
  sharing?: SharePrefixCache | undefined;
  /** The account's, where accounts of a plan share the cache. */
  plan?: PlanId | undefined;
  /** See personOf. */
  person?: string | null | undefined;
  /** Differs between gateways, because their accounts on the same engine have the same numbers. */
  seed: bigint;
}>;

/** What a request says to an engine that accounts share. `priority`: see enginePriority. */
export type EngineShare = PrefixCacheRule & Readonly<{ priority?: number | undefined }>;

export const usualShare: EngineShare = { seed: 0n };

/** Derived from a secret of the data folder, so that prompts are found again after a restart. */
export function saltSeedOf(secret: Uint8Array): bigint {
  return new Bun.CryptoHasher("sha256").update("salts of prefix caches").update(secret).digest().readBigUInt64LE();
}

/**
 * `salt`: a request's `cache_salt` is part of its cache key. `salt-if-asked`: it may be a router that passes the salt
 * on, or an engine that refuses unknown fields. `unused-if-asked`: it can only bypass its cache. `shared`: it can do
 * neither.
 */
export type PrefixCacheTrait = "salt" | "salt-if-asked" | "unused-if-asked" | "shared";

/** In a team, whose request it is, who stands in line as that; null: an account's, or a service key's. */
export const personOf = (member: string | undefined): string | null =>
  member?.startsWith(personPrefix) === true ? member : null;

/** Whose prompts an engine finds again: everyone's, those of its account's plan, of its team, only the account's own, or none. */
export type KeptPrompts = "for all" | "by plan" | "by team" | "by account" | "nothing";

export function keptPrompts(trait: PrefixCacheTrait, sharing: PrefixCacheRule["sharing"]): KeptPrompts {
  const fields = prefixCacheFields(trait, { sharing, seed: 0n }, 0);
  if (fields === null) return "for all";
  if (!("cache_salt" in fields)) return "nothing";
  return sharing === "plan" || sharing === "team" ? `by ${sharing}` : "by account";
}

export function shareFields(trait: PrefixCacheTrait, share: EngineShare, account: AccountId): Record<string, unknown> {
  const { priority } = share;
  return { ...prefixCacheFields(trait, share, account), ...(priority === undefined ? {} : { priority }) };
}

function prefixCacheFields(
  trait: PrefixCacheTrait,
  { sharing, seed, plan, person = null }: PrefixCacheRule,
  account: AccountId,
): Readonly<Record<string, unknown>> | null {
  if (sharing === true || trait === "shared") return null;
  if (trait !== "salt" && sharing === undefined) return null;
  if (trait === "unused-if-asked") return { cache_prompt: false };
  const own = person === null || sharing === "team" ? `account ${account}` : `account ${account} ${person}`;
  const group = sharing === "plan" && plan !== undefined ? `plan ${plan}` : own;
  return { cache_salt: Bun.hash(group, seed).toString(36) };
}
