// The deciders as the console and commands see them: their answers may come later, from a database server. What is appended
// "in the same commit" stays a plain call: it is made while the change that it goes with is being put together.
import type { Soonly } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";
import type { AccessLink, AccessLinks } from "./access-links.ts";
import type { AccountKeys } from "./account-keys.ts";
import type { Accounts } from "./accounts.ts";
import type { AuditLog } from "./audit.ts";
import type { Identities } from "./identities.ts";
import type { Purchases } from "./purchases.ts";
import type { Sessions } from "./sessions.ts";

/** What is known without a look at the disk. */
type AtOnce = "planOfNew" | "planStill";
export type SoonAccounts = Soonly<Omit<Accounts, AtOnce>> & Pick<Accounts, AtOnce>;
export type SoonAccountKeys = Soonly<AccountKeys>;
export type SoonSessions = Soonly<Sessions>;
export type SoonPurchases = Soonly<Purchases>;
export type SoonAuditLog = Soonly<Omit<AuditLog, "append">> & Pick<AuditLog, "append">;
export type SoonLinks = Soonly<Omit<AccessLinks, "use">> & {
  use<Result>(link: AccessLink, work: (inSameCommit: (account: AccountId) => void) => Promise<Result>): Promise<Result>;
};
export type SoonIdentities = Soonly<Omit<Identities, "append" | "inTurn">> & Pick<Identities, "append" | "inTurn">;
