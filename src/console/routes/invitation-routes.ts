// Links that operators make: invitations, and those by which an account's password is set.
import { invitationInWords, type MadeLink, pathOf } from "../../account/access-links.ts";
import { invitationMs, passwordLinkMs } from "../../core/limits.ts";
import { hourMs } from "../../core/units.ts";
import { theServer } from "../../account/audit.ts";
import type { Invitations, NewLink } from "../api/accounts.ts";
import { audit } from "../audit-entry.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { fail, type Route, route } from "./route.ts";

/** Unused invitations in the console. */
const invitationsShownMax = 200;

export function invitationRoutes({ office }: Pick<ConsoleParts, "office">): Route[] {
  const show = async (): Promise<Invitations> => {
    const open = await office.read(({ links }) => links.invitations(invitationsShownMax));
    return {
      invitations: open.map(({ id, email, plan, credit, createdAt, expiresAt }) => {
        return { id, email, plan, credit, created_at: timeOf(createdAt), expires_at: timeOf(expiresAt) };
      }),
    };
  };

  return [
    route("GET /operator/invitations", show),

    route("POST /operator/invitations", (call) =>
      office.change(async (unit) => {
        const { email = null, plan, credit = 0, expires_in_hours } = call.body;
        const lastsMs = expires_in_hours === undefined ? invitationMs : expires_in_hours * hourMs;
        const wanted = await unit.accounts.invitation({ email, plan, credit, expiresAt: unit.now + lastsMs });
        const made = await unit.links.make(wanted);
        audit(unit, call, "invitation.create", theServer, invitationInWords(made.link));
        return shown(made);
      }),
    ),

    route("POST /operator/invitations/:id/withdraw", async (call) => {
      const isOne = await office.change(async (unit) => {
        if ((await unit.links.findById(call.id)).kind !== "invitation") return false;
        await unit.links.withdraw(call.id);
        audit(unit, call, "invitation.withdraw", theServer, `invitation ${call.id}`);
        return true;
      });
      return isOne ? show() : fail("not_found", "There is no such invitation.");
    }),

    route("POST /operator/accounts/:id/password-link", (call) =>
      office.change(async (unit) => {
        if ((await unit.accounts.record(call.id)) === null) return fail("not_found", "There is no such account.");
        const made = await unit.links.make(await unit.accounts.passwordLink(call.id, unit.now + passwordLinkMs));
        audit(unit, call, "account.password_link", call.id, `link ${made.link.id}`);
        return shown(made);
      }),
    ),
  ];
}

const shown = (made: MadeLink): NewLink => ({
  id: made.link.id,
  path: pathOf(made),
  expires_at: timeOf(made.link.expiresAt),
});
