// The signed-in account's security and data: its password, its browser sessions, its export and its deletion.
import { exportReply } from "../account-data.ts";
import { audit } from "../audit-entry.ts";
import { sessionView } from "../../office/verbs/accounts.ts";
import type { ConsoleParts } from "../parts.ts";
import { knownBrowserCookie, knownBrowserText } from "../signed-in.ts";
import { withoutPasswords } from "./entering.ts";
import { mailRoutes } from "./mail-routes.ts";
import { OwnPasswordTries } from "./own-password-tries.ts";
import { ownDeletionRoutes } from "./own-deletion-routes.ts";
import { type CallOf, done, fail, isFailure, type Route, route, WithCookies } from "./route.ts";

export function accountRoutes(parts: ConsoleParts): Route[] {
  const { office, clock } = parts;
  const passwordTries = new OwnPasswordTries(clock);

  return [
    route("POST /password", (call) => changePassword(parts, passwordTries, call)),

    route("POST /export", ({ visitor: { account } }) =>
      exportReply(parts.accountData, account, account.id, clock.wall()),
    ),

    ...ownDeletionRoutes(parts, passwordTries),
    ...mailRoutes(parts, passwordTries),

    route("GET /sessions", async ({ visitor: { account, session } }) => {
      const open = await office.read(({ sessions }) => sessions.list(account.id));
      return { sessions: open.map((each) => ({ ...sessionView(each), current: each.id === session.id })) };
    }),

    route("POST /sessions/end-others", async ({ visitor: { account, session }, undoable }) => {
      await undoable(office).change(async ({ sessions }) => await sessions.endAll(account.id, session.id));
      return done;
    }),

    route("POST /sessions/:id/end", async ({ visitor: { account }, id, undoable }) => {
      return (await undoable(office).change(({ sessions }) => sessions.end(account.id, id)))
        ? done
        : fail("not_found", "There is no such session.");
    }),
  ];
}

const wrongOldPassword = fail("wrong_credentials", "The old password is wrong.");

/** Counts attempts, because a stolen session could guess passwords here. */
async function changePassword(parts: ConsoleParts, tries: OwnPasswordTries, call: CallOf<"POST /password">) {
  const { office, passwords, browsers, baseUrl } = parts;
  if (!parts.passwordSignIn) return withoutPasswords;
  const { account, session } = call.visitor;
  const turn = tries.begin(call.visitor);
  if (isFailure(turn)) return turn;
  const { old_password, new_password } = call.body;
  const { passwordHash: old } = account;
  if (old === null || !(await passwords.verify(old_password, old, turn))) return wrongOldPassword;
  const passwordHash = await passwords.hashNew(new_password, turn);
  tries.succeeded(call.visitor);
  const changed = await office.change(async (unit) => {
    // Hashing takes time: an operator may have set another password meanwhile, and ended this session.
    const isStill = (await unit.accounts.isAsItWas(account)) && (await unit.sessions.isOpen(session));
    if (!isStill) return null;
    await unit.accounts.setPassword(account.id, passwordHash);
    await unit.sessions.endAll(account.id, session.id);
    // The audit log also has operators' changes to their own accounts.
    if (account.operator) audit(unit, call, "account.password", account.id, "");
    return unit.accounts.record(account.id);
  });
  if (changed === null) return wrongOldPassword;
  // Other browsers are no longer known; this one proved both passwords.
  const known = browsers.recognize(knownBrowserText(call.request.headers, baseUrl), account);
  const introduced = browsers.introduce(changed, known);
  return new WithCookies(done, knownBrowserCookie(introduced, baseUrl));
}
