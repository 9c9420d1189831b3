// API keys: `sk-tg-` and 43 base62 characters, which is 256 bits. Only a key's SHA-256 is kept, in memory and on disk,
// and its last four characters on disk.
// A key is found by its whole hash, so the time of a look-up says nothing about how much of a guess was right.
import { base62Digits } from "../../core/base62.ts";
import { changedLimits } from "../../core/key-limits.ts";
import { defaultKey, type KeyLimits, type Ms, type Principal } from "../../core/types.ts";
import type { BookKeys } from "../money/books.ts";
import type { Ledger } from "../money/ledger.ts";
import type { LoadedAccount } from "../money/loaded-account.ts";
import type { LoadedKey } from "../money/loaded-key.ts";
import type { AccountRecords } from "../records.ts";

export const apiKeyPrefix = "sk-tg-";
export const apiKeySecretLength = 43;
const shape = /^sk-tg-[0-9A-Za-z]{43}$/;

/** A new key. Bytes of 248 and above are thrown away: 256 is no multiple of 62, and the remainder would be a bias. */
export function mintApiKey(randomBytes: (bytes: Uint8Array) => Uint8Array = (bytes) => crypto.getRandomValues(bytes)) {
  const unbiasedBelow = 256 - (256 % base62Digits.length);
  const bytes = new Uint8Array(64);
  let secret = "";
  while (secret.length < apiKeySecretLength) {
    for (const byte of randomBytes(bytes)) {
      if (byte < unbiasedBelow && secret.length < apiKeySecretLength)
        secret += base62Digits[byte % base62Digits.length];
    }
  }
  return apiKeyPrefix + secret;
}

/** By which people tell keys apart that begin alike: so little that 232 of its 256 bits stay unknown. */
export const endingOf = (key: string): string => key.slice(-4);

/** SHA-256 of a key, base64. */
export function hashApiKey(key: string): string {
  return Bun.SHA256.hash(key, "base64");
}

/**
 * The hash under which a key would be found, or null for what is not shaped like one: that costs neither a hash nor a
 * look at the disk. Any string is safe.
 */
export function keyHashOf(key: string): string | null {
  const isKey = key.length === apiKeyPrefix.length + apiKeySecretLength && shape.test(key);
  return isKey ? hashApiKey(key) : null;
}

export class Keys implements BookKeys {
  // Only keys that exist are remembered, so wrong ones cannot fill the memory.
  readonly #principals = new Map<string, Principal>();
  readonly #records: Pick<AccountRecords, "byKeyHash" | "keyByHash">;
  readonly #ledger: Ledger;
  /** Called when a key is void, in the same moment. */
  onVoid: () => void = () => {};

  constructor(records: Pick<AccountRecords, "byKeyHash" | "keyByHash">, ledger: Ledger) {
    this.#records = records;
    this.#ledger = ledger;
  }

  /**
   * Who asks by a key, or null; whether it expired is the caller's to see. Throws StoreUnavailable when the disk must be
   * read and cannot be.
   */
  principal(key: string): Principal | null {
    const keyHash = keyHashOf(key);
    return keyHash === null ? null : this.ofHash(keyHash);
  }

  ofHash(keyHash: string): Principal | null {
    return this.#principals.get(keyHash) ?? this.#find(keyHash);
  }

  /** Gives the account another first key; the one before is void at once, also while the disk still has it. */
  replace(account: LoadedAccount, keyHash: string): void {
    this.#principals.delete(account.keyHash);
    account.keyHash = keyHash;
    this.onVoid();
  }

  /** A named key is void at once, also while the disk still has it. */
  revoke(key: LoadedKey): void {
    key.isVoid = true;
    this.#principals.delete(key.keyHash);
    this.onVoid();
  }

  /** Looks at a named key anew when it comes next, on every thread: it has other limits. */
  relimit(key: LoadedKey, limits: KeyLimits | null): void {
    key.limit(limits);
    this.#principals.delete(key.keyHash);
    this.onVoid();
  }

  /** A machine's key has another token: the one before is void. */
  renew(key: LoadedKey, { keyHash, expiresAt }: Readonly<{ keyHash: string; expiresAt: Ms }>): void {
    this.#principals.delete(key.keyHash);
    key.keyHash = keyHash;
    this.relimit(key, changedLimits(key.limits, { expiresAt }));
  }

  /** Looks at the account anew when one of its keys comes next: it was disabled. */
  forget(account: LoadedAccount): void {
    this.#principals.delete(account.keyHash);
    for (const { keyHash } of account.keys?.values() ?? []) this.#principals.delete(keyHash);
    this.onVoid();
  }

  #find(keyHash: string): Principal | null {
    const record = this.#records.byKeyHash(keyHash);
    if (record === null) return this.#findNamed(keyHash);
    const account = this.#ledger.account(record.id);
    if (account.keyHash !== keyHash || account.disabled) return null;
    return this.#remember(keyHash, { account: record.id, key: defaultKey, limits: null });
  }

  #findNamed(keyHash: string): Principal | null {
    const record = this.#records.keyByHash(keyHash);
    if (record === null) return null;
    const account = this.#ledger.account(record.account);
    const key = this.#ledger.key(account, record.id);
    if (key === null || key.isVoid || account.disabled) return null;
    return this.#remember(keyHash, { account: account.id, key: key.id, limits: key.limits });
  }

  #remember(keyHash: string, principal: Principal): Principal {
    this.#principals.set(keyHash, principal);
    return principal;
  }
}
