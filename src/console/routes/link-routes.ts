// Using a link: an invitation creates an account, a password link sets a password.
import type { LinkShown } from "../api/sign-in.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { AddressTries, enteredReply, isDisabled, noteOwn, withoutPasswords } from "./entering.ts";
import { fail, type Route, route } from "./route.ts";

export function linkRoutes(parts: ConsoleParts): Route[] {
  const { accounts, sessions, links, clock } = parts;
  // Nobody guesses a token; but each look is one at the disk, and a password that is set costs its hash.
  const tries = new AddressTries();

  return [
    route("POST /link", async (call) => {
      const refused = tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      const { kind, account, email, plan, credit, expiresAt } = await links.find(call.body.token);
      const owner = account === null ? null : await accounts.record(account);
      if (owner !== null && owner.disabledAt !== null) return isDisabled;
      const shown: LinkShown = {
        kind,
        email: owner?.email ?? email,
        plan: owner?.plan ?? plan,
        credit,
        expires_at: timeOf(expiresAt),
      };
      return shown;
    }),

    route("POST /link/use", async (call) => {
      const refused = tries.begin(call, clock.monotonic());
      if (refused !== null) return refused;
      if (!parts.passwordSignIn) return withoutPasswords;
      const { token, email: chosen, password } = call.body;
      const link = await links.find(token);
      const { kind, account, credit } = link;
      const plan = accounts.planStill(link.plan);
      if (kind === "invitation" || account === null) {
        const email = link.email ?? chosen;
        if (email === undefined) return fail("invalid_request", "Choose an e-mail address.");
        const created = await links.use(link, (use) =>
          accounts.create({ email, password, plan, credit }, (id) => {
            noteOwn(parts, call, "account.create", id, `by invitation ${link.id}: plan ${plan}, credit ${credit}`);
            use(id);
          }),
        );
        return enteredReply(parts, call, (await accounts.record(created.id))!, { apiKey: created.api_key });
      }
      if ((await accounts.record(account))!.disabledAt !== null) return isDisabled;
      await links.use(link, (use) =>
        sessions.endAllWith(account, null, (endSessions) =>
          accounts.changePasswordById(account, password, () => {
            noteOwn(parts, call, "account.password", account, `by link ${link.id}`);
            use(account);
            endSessions();
          }),
        ),
      );
      return enteredReply(parts, call, (await accounts.record(account))!);
    }),
  ];
}
