// Using a link: an invitation creates an account, a password link sets a password.
import type { Unit } from "../../account/office.ts";
import { Mails } from "../../account/people/mails.ts";
import type { AccessLink } from "../../account/records.ts";
import { Teams } from "../../account/people/teams.ts";
import type { LinkShown } from "../api/sign-in.ts";
import type { AccountId } from "../../core/types.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import {
  AddressTries,
  admitted,
  enteredReply,
  type Entering,
  isDisabled,
  noteOwn,
  withoutPasswords,
} from "./entering.ts";
import { fail, type Failure, isFailure, type Route, route } from "./route.ts";

/** Who was invited by an operator has that address; a team's admin may be wrong, as who chose one may be. */
export async function addressed(
  { mails: mailParts }: Unit,
  { work }: Pick<ConsoleParts, "work">,
  account: AccountId,
  email: string,
  link: Pick<AccessLink, "email" | "team"> | null,
): Promise<void> {
  const mails = new Mails(mailParts);
  if (link !== null && link.email !== null && link.team === null) mails.setAddress(account, email);
  else if (work.mail !== null) await mails.ask(account, email);
}

export function linkRoutes(parts: ConsoleParts): Route[] {
  const { office, passwords, clock } = parts;
  // A token cannot be guessed, but each look reads the disk, and setting a password costs a hash.
  const tries = new AddressTries();

  return [
    route("POST /link", async (call) => {
      const refused = tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      const [link, owner, team] = await office.read(async ({ links, accounts }) => {
        const found = await links.find(call.body.token);
        const recordOf = async (id: AccountId | null) => (id === null ? null : accounts.record(id));
        return [found, await recordOf(found.account), await recordOf(found.team)] as const;
      });
      const { kind, email, plan, credit, expiresAt } = link;
      if (owner !== null && owner.disabledAt !== null) return isDisabled;
      const shown: LinkShown = {
        kind,
        email: owner?.email ?? email,
        plan: owner?.plan ?? plan,
        credit,
        expires_at: timeOf(expiresAt),
        team: team?.email ?? null,
      };
      return shown;
    }),

    route("POST /link/use", async (call) => {
      const refused = tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      if (!parts.passwordSignIn) return withoutPasswords;
      const { token, email: chosen, password } = call.body;
      await office.read(({ links }) => links.find(token)); // nothing is hashed for one that does not work
      const passwordHash = await passwords.hashNew(password);
      const entered = await office.change(async (unit): Promise<Entering | Failure> => {
        const { accounts, links, sessions } = unit;
        const link = await links.find(token);
        const { kind, account, credit } = link;
        if (kind === "invitation" || account === null) {
          const [email, plan] = [link.email ?? chosen, accounts.planStill(link.plan)];
          if (email === undefined) return fail("invalid_request", "Choose an e-mail address.");
          const { id, api_key } = await accounts.create({ email, passwordHash, plan, credit });
          await links.use(link.id, id);
          await new Teams(unit.teams).join(link, id);
          await addressed(unit, parts, id, email, link);
          noteOwn(unit, call, "account.create", id, `by invitation ${link.id}: plan ${plan}, credit ${credit}`);
          return admitted(unit, parts, call, id, api_key);
        }
        if ((await accounts.record(account))!.disabledAt !== null) return isDisabled;
        await accounts.setPassword(account, passwordHash);
        await links.use(link.id, account);
        noteOwn(unit, call, "account.password", account, `by link ${link.id}`);
        await sessions.endAll(account, null);
        return admitted(unit, parts, call, account, null);
      });
      return isFailure(entered) ? entered : enteredReply(parts, entered);
    }),
  ];
}
