// What a unit of the office changes in memory, where the books are in memory: the ledger, keys and sessions. In two steps:
//
//   decided     what is taken away is refused at once (a disabled account, an old key, an ended session), also while the
//               disk still has it; an account that is made is there, so that its lines can be booked
//   resolved    on disk: all else holds from now on. Lost: everything is as it was before
//
// One unit at a time is between the two.
import { changedLimits } from "../core/key-limits.ts";
import type { Catalog } from "../core/catalog.ts";
import { planOf } from "../core/plans.ts";
import type { AccountId, KeyId, Ms } from "../core/types.ts";
import type { Draft } from "./draft.ts";
import type { AccountChange } from "./journal.ts";
import type { Keys } from "./people/keys.ts";
import type { KnownSessions } from "./sign-in/known-sessions.ts";
import type { Ledger } from "./money/ledger.ts";
import { LoadedAccount } from "./money/loaded-account.ts";
import type { LoadedKey } from "./money/loaded-key.ts";
import { coderWindowOf, dayOf } from "./money/quota.ts";
import type { AccountRecord, KeyUse, Standing, Standings } from "./records.ts";

type Parts = Readonly<{
  /** Looks at all accounts. */
  countOnDisk(): number;
  ledger: Ledger;
  keys: Keys;
  sessions: KnownSessions;
  plans: Catalog["plans"];
}>;

export class OfficeMemory implements Standings {
  readonly #parts: Parts;
  /** What is on its way to disk, and what puts memory back where that is lost. */
  #decided: Readonly<{ changes: readonly AccountChange[]; takeBack: readonly (() => void)[] }> | null = null;
  /** Null until somebody asked. */
  #count: number | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Throws StoreUnavailable, and changes nothing, where the disk must be read and cannot be. */
  decided({ changes, entries }: Draft): void {
    const { ledger, sessions } = this.#parts;
    const takeBack: (() => void)[] = [];
    this.#decided = { changes, takeBack };
    sessions.decided(changes);
    try {
      for (const change of changes) {
        const undo = this.#decide(change);
        if (undo !== null) takeBack.unshift(undo);
      }
      for (const { account } of entries) ledger.account(account);
    } catch (thrown) {
      this.resolved(false);
      throw thrown;
    }
    for (const { account } of entries) ledger.appended(ledger.account(account));
  }

  resolved(isCommitted: boolean): void {
    const { changes, takeBack } = this.#decided!;
    this.#decided = null;
    this.#parts.sessions.resolved(isCommitted);
    if (isCommitted) for (const change of changes) this.#commit(change);
    else for (const undo of takeBack) undo();
  }

  // -------------------------------------------------------------- what memory knows

  count(): number {
    if (this.#count !== null) return this.#count;
    const count = this.#parts.countOnDisk();
    // What is on its way may be on disk already, and would be counted again when it is known to be.
    if (this.#decided === null) this.#count = count;
    return count;
  }

  of({ id }: AccountRecord, now: Ms): Standing {
    const { ledger } = this.#parts;
    const account = ledger.account(id);
    const { credit, held, holds, usedAt: keyUsedAt } = account;
    const used = {
      allowance: ledger.use(account, "allowance", dayOf(now)).used,
      coder_calls: ledger.use(account, "coder_calls", coderWindowOf(now)).used,
      searches: ledger.use(account, "searches", dayOf(now)).used,
    };
    return { credit, held, holds, used, keyUsedAt };
  }

  ofKeys(account: AccountId, now: Ms): ReadonlyMap<KeyId, KeyUse> {
    const { ledger } = this.#parts;
    const keys = ledger.keysOf(ledger.account(account)).values();
    return new Map(keys.map((key): [KeyId, KeyUse] => [key.id, useOf(key, now)]));
  }

  ofMembers(team: AccountId, members: readonly AccountId[], now: Ms): readonly Omit<KeyUse, "usedAt">[] {
    const { ledger } = this.#parts;
    return members.map((member) => ledger.memberLimit(ledger.account(team), member).used(now));
  }

  // -------------------------------------------------------------- changes

  /** What acts at once; gives what takes it back. */
  #decide(change: AccountChange): (() => void) | null {
    const { ledger, keys, plans } = this.#parts;
    switch (change.change) {
      case "create": {
        const { account: id, plan, keyHash } = change;
        ledger.add(new LoadedAccount(id, planOf(plans, plan), 0, keyHash));
        return () => ledger.remove(id);
      }
      case "disabled":
        return change.at === null ? null : this.#disable(change.account);
      case "erase":
        return this.#disable(change.account);
      case "key": {
        const account = ledger.account(change.account);
        const before = account.keyHash;
        keys.replace(account, change.keyHash);
        return () => keys.replace(account, before);
      }
      case "revoke_key": {
        const key = ledger.key(ledger.account(change.account), change.key);
        if (key === null) return null;
        keys.revoke(key);
        return () => void (key.isVoid = false);
      }
      default:
        return null;
    }
  }

  #disable(id: AccountId): (() => void) | null {
    const { ledger, keys } = this.#parts;
    const account = ledger.account(id);
    if (account.disabled) return null;
    account.disabled = true;
    keys.forget(account);
    return () => void (account.disabled = false);
  }

  /** What acts when it is on disk. An account that is not in memory is loaded from there when it is asked for. */
  #commit(change: AccountChange): void {
    const { ledger, keys, plans } = this.#parts;
    const account = "account" in change && change.account !== null ? ledger.ifLoaded(change.account) : null;
    if (change.change === "create" && this.#count !== null) this.#count += 1;
    if (change.change === "erase") this.#count = null; // it may have been one of those before
    if (account === null) return;
    switch (change.change) {
      case "plan":
        account.plan = planOf(plans, change.plan); // a reload may have taken it away by now
        return;
      case "cost_center":
        account.costCenter = change.costCenter;
        return;
      case "disabled":
        account.disabled = change.at !== null;
        return;
      case "new_key":
        ledger.addKey(account, change.key);
        return;
      case "restore_key": {
        const key = account.keys?.get(change.key.id);
        if (key !== undefined) key.isVoid = false;
        return;
      }
      case "key_name": {
        const key = account.keys?.get(change.key);
        if (key === undefined) return;
        key.rename(change.name);
        ledger.endUsers.renamed(account.id, key);
        return;
      }
      case "key_token": {
        const key = account.keys?.get(change.key);
        if (key !== undefined) keys.renew(key, change);
        return;
      }
      case "key_limits": {
        const key = account.keys?.get(change.key);
        if (key === undefined) return;
        keys.relimit(key, changedLimits(key.limits, change.limits));
        ledger.endUsers.limited(account.id, key);
        return;
      }
      case "member": {
        const { account: id, tokensPerDay, tokensPerMonth } = change.member;
        account.members?.get(id)?.limit(tokensPerDay, tokensPerMonth);
        return;
      }
      case "erase_end_user":
        ledger.endUsers.erased(account.id, change.name);
        return;
      case "erase":
        keys.replace(account, change.keyHash);
        ledger.endUsers.erased(account.id);
        return;
      default:
        return;
    }
  }
}

function useOf({ usedAt, spendLimit }: LoadedKey, now: Ms): KeyUse {
  return { usedAt, ...(spendLimit?.used(now) ?? { day: 0, month: 0 }) };
}
