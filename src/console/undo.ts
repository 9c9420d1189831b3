// What people can take back for a minute: a page names its change, and what the change took away comes back exactly as it was. It
// is kept in the memory of this gateway: after a restart, or at another gateway, it can no longer be taken back.
import type { AccountChange } from "../account/journal.ts";
import type { Office, Unit } from "../account/office.ts";
import { takeBack } from "../account/people/taken-back.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountId, Ms } from "../core/types.ts";
import { noteOwn } from "./routes/entering.ts";
import { type Call, done, fail, type Route, route, type Visitor } from "./routes/route.ts";

const keptMs = 60_000;
const keptMax = 1_000;
/** Shorter names might be guessed or meet another's. */
const nameMinLength = 16;
const nameMaxLength = 64;

type Kept = Readonly<{
  by: AccountId;
  asOperator: boolean;
  until: Ms;
  changes: readonly AccountChange[];
  /** Of the accounts whose sessions it ended. */
  passwords: ReadonlyMap<AccountId, string | null>;
}>;

export class Undo {
  readonly #clock: Clock;
  /** By the names that pages gave, the oldest first. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** An office whose change can be taken back under this name; the office itself for a name that is none. */
  keeping(office: Office, { account }: Visitor, name: string): Office {
    if (name.length < nameMinLength || name.length > nameMaxLength) return office;
    return {
      read: (work) => office.read(work),
      change: async (work) => {
        const [result, kept] = await office.change(async (unit) => [await work(unit), await this.#of(unit)] as const);
        if (kept.changes.length > 0) {
          const [oldest] = this.#kept.keys();
          if (this.#kept.size >= keptMax) this.#kept.delete(oldest!);
          const until = this.#clock.monotonic() + keptMs;
          this.#kept.set(name, { by: account.id, asOperator: account.operator, until, ...kept });
        }
        return result;
      },
    };
  }

  async #of({ accounts, teams }: Unit): Promise<Pick<Kept, "changes" | "passwords">> {
    const changes = [...teams.draft.takenBack];
    const owners = changes.flatMap((change) => (change.change === "open_session" ? [change.session.account] : []));
    const passwords = new Map<AccountId, string | null>();
    for (const owner of new Set(owners)) passwords.set(owner, (await accounts.record(owner))?.passwordHash ?? null);
    return { changes, passwords };
  }

  route(office: Office): Route {
    return route("POST /undo", async (call) => {
      const { account } = call.visitor;
      const kept = this.#kept.get(call.body.name);
      const isTheirs = kept?.by === account.id && this.#clock.monotonic() < kept.until;
      if (!isTheirs || (kept.asOperator && !account.operator)) return tooLate;
      this.#kept.delete(call.body.name);
      return office.change(async (unit) => {
        if (!kept.asOperator && !(await isStillAdmin(unit, call, kept.changes))) return tooLate;
        const hasSamePassword = ({ account }: { account: AccountId }, now: string | null): boolean =>
          kept.passwords.get(account) === now;
        const detail = await takeBack(unit, { changes: kept.changes, hasSamePassword });
        const [first] = kept.changes;
        noteOwn(unit, call, "undo", subjectOf(first!) ?? account.id, detail);
        return done;
      });
    });
  }
}

const tooLate = fail("not_found", "This can no longer be undone.");

const subjectOf = (change: AccountChange): AccountId | null =>
  change.change === "open_session" ? change.session.account : "account" in change ? change.account : null;

/** Whoever takes others back into a team must still be its admin. */
async function isStillAdmin(
  { accounts }: Unit,
  { visitor: { account } }: Call<"account">,
  changes: readonly AccountChange[],
): Promise<boolean> {
  for (const change of changes) {
    const team =
      change.change === "member" && change.member.account !== account.id
        ? change.member.team
        : change.change === "link"
          ? change.link.team
          : null;
    if (team !== null && (await accounts.member(team, account.id))?.role !== "admin") return false;
  }
  return true;
}
