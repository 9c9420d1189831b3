// Machines that sign in (RFC 8628): a program shows a code, a person approves it in the console, and the program fetches a
// token. That token is a key of the account, with an expiry. What renews it changes with each use. One that is used again
// later was stolen or copied, and ends the machine's key. In a unit of the office. Codes and tokens are kept as hashes.
import { createHmac } from "node:crypto";
import { type AuditLog, serverEntry } from "../audit.ts";
import type { Draft } from "../draft.ts";
import type { Accounts } from "../people/accounts.ts";
import { type AccountKeys, machineIdleMaxMs } from "../people/account-keys.ts";
import { mintApiKey } from "../people/keys.ts";
import type { DeviceCode, KeyRecord, OfficeRecords } from "../records.ts";
import type { AccountId, Ms } from "../../core/types.ts";

/** How long a code may be approved, and fetched after that. */
export const deviceCodeMs = 10 * 60_000;
/**
 * Programs of a machine that share a token renew it at once, and a reply can get lost: within the same or the next of these
 * periods, the same token gives the same two again (RFC 9700, 4.14.2).
 */
export const renewedAgainMs = 60_000;
/** Beyond these, the oldest goes: who asked for many must not keep others out until they end. */
export const deviceCodesMax = 5_000;
/** Without vowels, so that codes are no words (RFC 8628, 6.1): 20^8 of them. */
const letters = "BCDFGHJKLMNPQRSTVWXZ";
const userCodeLetters = 8;

export type DeviceParts = Readonly<{
  records: OfficeRecords;
  accounts: Pick<Accounts, "record">;
  accountKeys: AccountKeys;
  auditLog: AuditLog;
  draft: Draft;
  now: Ms;
}>;

/** How long tokens last, and the server's secret that makes those that renew others. */
export type TokenMaking = Readonly<{ lifeMs: Ms; secret: Uint8Array }>;
export type MachineTokens = Readonly<{ access: string; refresh: string; email: string }>;
export type NotYet = "authorization_pending" | "access_denied" | "expired_token";

export class Devices {
  readonly #parts: DeviceParts;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
  }

  async begin(
    said: Pick<DeviceCode, "program" | "machine" | "address">,
  ): Promise<Readonly<{ deviceCode: string; userCode: string }>> {
    const { records, draft, now } = this.#parts;
    const oldest = (await records.deviceCodes()) < deviceCodesMax ? null : await records.oldestDeviceCode();
    if (oldest !== null) draft.changes.push({ change: "end_device_code", deviceHash: oldest.deviceHash });
    const [secret, userCode] = [newSecret(), newUserCode()];
    const hashes = { deviceHash: hashOf(secret), userCodeHash: hashOf(userCode) };
    const code = { ...said, ...hashes, expiresAt: now + deviceCodeMs, deniedAt: null };
    draft.changes.push({ change: "device_code", code, now });
    return { deviceCode: secret, userCode: `${userCode.slice(0, 4)}-${userCode.slice(4)}` };
  }

  /** What waits for a person's decision; null: nothing, or not anymore. Any string is safe. */
  async find(userCode: string): Promise<DeviceCode | null> {
    const typed = userCode.toUpperCase().replace(/[\s-]/g, "");
    if (typed.length !== userCodeLetters) return null;
    const code = await this.#parts.records.deviceCode("userCodeHash", hashOf(typed));
    return code?.deniedAt === null && this.#parts.now < code.expiresAt ? code : null;
  }

  /** Null: as `find`. Throws AccountError where the account has too many keys, or the name is none. */
  async approve(account: AccountId, userCode: string, name: string): Promise<KeyRecord | null> {
    const { accounts, accountKeys, draft, now } = this.#parts;
    if ((await accounts.record(account))?.disabledAt !== null) return null;
    const code = await this.find(userCode);
    if (code === null) return null;
    draft.changes.push({ change: "end_device_code", deviceHash: code.deviceHash });
    return accountKeys.addMachine(account, name, code.deviceHash, now + deviceCodeMs);
  }

  async deny(userCode: string): Promise<DeviceCode | null> {
    const code = await this.find(userCode);
    const { draft, now: at } = this.#parts;
    if (code !== null) draft.changes.push({ change: "deny_device_code", deviceHash: code.deviceHash, at });
    return code;
  }

  /** Why there is no token for a code; null: `issue` gives one. Any string is safe. */
  async state(deviceCode: string): Promise<NotYet | null> {
    const { records, now } = this.#parts;
    const is = hashOf(deviceCode);
    const code = await records.deviceCode("deviceHash", is);
    if (code !== null && now < code.expiresAt) {
      return code.deniedAt === null ? "authorization_pending" : "access_denied";
    }
    return isUnfetched(await records.keyWith("familyHash", is), now) ? null : "expired_token";
  }

  /** Works once. */
  async issue(deviceCode: string, making: TokenMaking): Promise<MachineTokens | null> {
    const { records, now } = this.#parts;
    const key = await records.keyWith("familyHash", hashOf(deviceCode));
    return isUnfetched(key, now) ? this.#give(key, successors(deviceCode, deviceCode, now, making), making) : null;
  }

  /** Null: not valid (anymore). Any string is safe. */
  async refresh(token: string, making: TokenMaking): Promise<MachineTokens | null> {
    const { accountKeys, auditLog, now } = this.#parts;
    const key = await this.#machineOf(token);
    if (key === null) return null;
    const family = token.slice(refreshPrefix.length, refreshPrefix.length + secretLength);
    if (key.refreshHash !== hashOf(token)) {
      for (const at of [now, now - renewedAgainMs]) {
        const given = successors(token, family, at, making);
        if (key.refreshHash === hashOf(given.refresh)) return this.#give(key, given, null);
      }
      await accountKeys.revoke(key.account, key.id);
      const detail = `key ${key.id}: its machine's token was renewed twice by the same one`;
      auditLog.append(serverEntry(now, "sign-in of a machine", "key.revoke", key.account, detail));
      return null;
    }
    if ((key.limits?.expiresAt ?? 0) + machineIdleMaxMs <= now) return null;
    return this.#give(key, successors(token, family, now, making), making);
  }

  /** Ends the machine of either of its tokens. */
  async signOut(token: string, accessHash: string | null): Promise<void> {
    const { records, accountKeys } = this.#parts;
    const key = accessHash === null ? await this.#machineOf(token) : await records.keyWith("keyHash", accessHash);
    if (key !== null && key.familyHash !== null) await accountKeys.revoke(key.account, key.id);
  }

  /** The key whose family a refresh token is of. */
  async #machineOf(token: string): Promise<KeyRecord | null> {
    const isOne = token.length === refreshPrefix.length + 2 * secretLength && token.startsWith(refreshPrefix);
    if (!isOne) return null;
    const family = token.slice(refreshPrefix.length, refreshPrefix.length + secretLength);
    const key = await this.#parts.records.keyWith("familyHash", hashOf(family));
    return key !== null && key.refreshHash !== null ? key : null;
  }

  /** `making` null: the key has them already. */
  async #give(key: KeyRecord, tokens: Tokens, making: TokenMaking | null): Promise<MachineTokens | null> {
    const { accounts, accountKeys, now } = this.#parts;
    const owner = await accounts.record(key.account);
    if (owner?.disabledAt !== null) return null;
    if (making !== null) accountKeys.renew(key, tokens.access, hashOf(tokens.refresh), now + making.lifeMs);
    return { ...tokens, email: owner.email };
  }
}

type Tokens = Readonly<{ access: string; refresh: string }>;

/** What follows a token in a period: nobody without the secret can tell, however often somebody asks. */
function successors(before: string, family: string, at: Ms, { secret }: TokenMaking): Tokens {
  const period = Math.floor(at / renewedAgainMs);
  const derived = (algorithm: "sha256" | "sha512", use: string): Buffer =>
    createHmac(algorithm, secret).update(`machine token ${use} ${period} ${before}`).digest();
  let rounds = 0;
  const access = mintApiKey((bytes) => {
    bytes.set(derived("sha512", `access ${(rounds += 1)}`));
    return bytes;
  });
  return { access, refresh: refreshPrefix + family + derived("sha256", "refresh").toString("base64url") };
}

/** A refresh token is this, its machine's secret (the device code) and one of its own. */
const refreshPrefix = "tgr-";
const secretLength = 43;

const isUnfetched = (key: KeyRecord | null, now: Ms): key is KeyRecord =>
  key !== null && key.refreshHash === null && now < (key.limits?.expiresAt ?? 0);

const newSecret = (): string =>
  crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true });

/** Bytes of 240 and above are thrown away: 256 is no multiple of 20. */
function newUserCode(): string {
  let code = "";
  while (code.length < userCodeLetters) {
    for (const byte of crypto.getRandomValues(new Uint8Array(16))) {
      if (byte < 240 && code.length < userCodeLetters) code += letters[byte % letters.length];
    }
  }
  return code;
}

const hashOf = (secret: string): string => new Bun.CryptoHasher("sha256").update(secret).digest("base64");
