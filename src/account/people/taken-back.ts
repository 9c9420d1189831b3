// Brings back what a change took away: an account's state, a member with the same keys, sessions and invitations. What happened
// since then stands: whatever does not fit it anymore stays away.
import type { Unit } from "../office.ts";
import type { AccountChange } from "../journal.ts";
import type { SessionRecord } from "../records.ts";
import { AccountError } from "./accounts.ts";

type Back = Readonly<{
  changes: readonly AccountChange[];
  /** Whether an account still has the password that it had: sessions that a new one ended stay ended. */
  hasSamePassword(session: SessionRecord, now: string | null): boolean;
}>;

/** In words, what came back. Throws AccountError where nothing can. */
export async function takeBack(unit: Unit, { changes, hasSamePassword }: Back): Promise<string> {
  const { accounts, sessions } = unit;
  const { draft, records } = unit.teams;
  const words: string[] = [];
  const reopened: SessionRecord[] = [];
  for (const change of changes) {
    switch (change.change) {
      case "disabled":
        await accounts.checkNotErased(change.account);
        words.push("enabled again");
        break;
      case "member": {
        const { team, account } = change.member;
        await accounts.checkNotErased(team);
        const { email, disabledAt } = await accounts.checkPerson(account);
        if (disabledAt !== null) throw new AccountError(`${email} is disabled`);
        if ((await accounts.member(team, account)) !== null) throw new AccountError(`${email} is in the team already`);
        words.push(`account ${account} as ${change.member.role}`);
        break;
      }
      case "restore_key": {
        const { account, key } = change;
        await accounts.checkNotErased(account);
        const all = draft.keys(account, await records.keysOf(account));
        const isTaken = all.some(
          ({ name, limits, revokedAt }) =>
            revokedAt === null && name === key.name && limits?.member === key.limits?.member,
        );
        if (isTaken) continue;
        words.push(`key "${key.name}"`);
        break;
      }
      case "open_session": {
        const owner = await accounts.record(change.session.account);
        if (owner?.disabledAt !== null || !hasSamePassword(change.session, owner.passwordHash)) continue;
        reopened.push(change.session);
        continue;
      }
      case "link":
        if (change.link.team !== null) await accounts.checkNotErased(change.link.team);
        words.push(`invitation ${change.link.id}`);
        break;
      default:
        continue;
    }
    draft.changes.push(change);
  }
  if (reopened.length > 0) {
    await sessions.reopen(reopened);
    words.push(`sessions: ${reopened.length}`);
  }
  if (words.length === 0) throw new AccountError("nothing of it can come back");
  return words.join(", ");
}
