// Keeps each account's prompts apart in the engines' prefix caches: otherwise the time to a first token reveals whether
// another account sent the same prompt.
import type { AccountId } from "../core/types.ts";

/** What the node's configuration and this gateway say about it. */
export type PrefixCacheRule = Readonly<{
  /** True: accounts share the cache. False: they are kept apart at any price. Absent: apart where the engine can do it. */
  isShared?: boolean | undefined;
  /** Differs between gateways, because their accounts on the same engine have the same numbers. */
  seed: bigint;
}>;

export const usualPrefixCache: PrefixCacheRule = { seed: 0n };

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

/** Whose prompts an engine finds again: everyone's, only the account's own, or none. */
export type KeptPrompts = "for all" | "by account" | "nothing";

export function keptPrompts(trait: PrefixCacheTrait, isShared: PrefixCacheRule["isShared"]): KeptPrompts {
  const fields = prefixCacheFields(trait, { isShared, seed: 0n }, 0);
  if (fields === null) return "for all";
  return "cache_salt" in fields ? "by account" : "nothing";
}

export function prefixCacheFields(
  trait: PrefixCacheTrait,
  { isShared, seed }: PrefixCacheRule,
  account: AccountId,
): Readonly<Record<string, unknown>> | null {
  if (isShared === true || trait === "shared") return null;
  if (trait !== "salt" && isShared !== false) return null;
  if (trait === "unused-if-asked") return { cache_prompt: false };
  return { cache_salt: Bun.hash(`account ${account}`, seed).toString(36) };
}
