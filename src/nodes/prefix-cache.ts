// How an account's prompts are kept apart from those of others in what engines keep of prompts: who measures the time to a
// first token learns whether somebody asked the same before.
import type { AccountId } from "../core/types.ts";

/** What of a node's configuration, and of this gateway, decides it. */
export type PrefixCacheRule = Readonly<{
  /** True: accounts share it. False: they are kept apart at any price. Absent: where the engine can tell them apart. */
  isShared?: boolean | undefined;
  /** Another one in each gateway: others that use the same engine have accounts of the same numbers. */
  seed: bigint;
}>;

export const usualPrefixCache: PrefixCacheRule = { seed: 0n };

/** Of a secret of the data folder, so that a restart finds again what engines keep. */
export function saltSeedOf(secret: Uint8Array): bigint {
  return new Bun.CryptoHasher("sha256").update("salts of prefix caches").update(secret).digest().readBigUInt64LE();
}

/**
 * `salt`: `cache_salt` of a request is part of what its prompt is found by. `salt-if-asked`: it may be a router, which passes it
 * on, or an engine that refuses what it does not know. `unused-if-asked`: it can only leave out what it kept. `shared`: it
 * can nothing.
 */
export type PrefixCacheTrait = "salt" | "salt-if-asked" | "unused-if-asked" | "shared";

/** Whose prompts an engine finds again: everybody's, of each account its own, or none. */
export type KeptPrompts = "for all" | "by account" | "nothing";

export function keptPrompts(trait: PrefixCacheTrait, isShared: PrefixCacheRule["isShared"]): KeptPrompts {
  const fields = prefixCacheFields(trait, { isShared, seed: 0n }, 0);
  if (fields === null) return "for all";
  return "cache_salt" in fields ? "by account" : "nothing";
}

/** Fields of the node's request. */
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
