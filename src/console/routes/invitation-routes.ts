// Links that operators make: invitations, and those by which an account's password is set.
import { invitationInWords, pathOf } from "../../account/access-links.ts";
import { hourMs, invitationMs, invitationsShownMax, passwordLinkMs } from "../../core/limits.ts";
import { theServer } from "../../account/audit.ts";
import type { Invitations, NewLink } from "../api/accounts.ts";
import { auditEntry } from "../audit-entry.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { fail, type Route, route } from "./route.ts";

export function invitationRoutes(parts: ConsoleParts): Route[] {
  const { accounts, links, auditLog, clock } = parts;

  const show = async (): Promise<Invitations> => {
    const open = await links.invitations(invitationsShownMax);
    return {
      invitations: open.map(({ id, email, plan, credit, createdAt, expiresAt }) => {
        return { id, email, plan, credit, created_at: timeOf(createdAt), expires_at: timeOf(expiresAt) };
      }),
    };
  };

  return [
    route("GET /operator/invitations", show),

    route("POST /operator/invitations", async (call) => {
      const { email = null, plan, credit = 0, expires_in_hours } = call.body;
      const now = clock.wall();
      const lastsMs = expires_in_hours === undefined ? invitationMs : expires_in_hours * hourMs;
      const wanted = await accounts.invitation({ email, plan, credit, expiresAt: now + lastsMs }, now);
      const made = await links.make(wanted, (id) =>
        auditLog.append(auditEntry(clock, call, "invitation.create", theServer, invitationInWords({ ...wanted, id }))),
      );
      return { id: made.link.id, path: pathOf(made), expires_at: timeOf(made.link.expiresAt) };
    }),

    route("POST /operator/invitations/:id/withdraw", async (call) => {
      if ((await links.findById(call.id)).kind !== "invitation")
        return fail("not_found", "There is no such invitation.");
      await links.withdraw(call.id, () =>
        auditLog.append(auditEntry(clock, call, "invitation.withdraw", theServer, `invitation ${call.id}`)),
      );
      return show();
    }),

    route("POST /operator/accounts/:id/password-link", async (call) => {
      const record = await accounts.record(call.id);
      if (record === null) return fail("not_found", "There is no such account.");
      const now = clock.wall();
      const wanted = await accounts.passwordLink(call.id, now + passwordLinkMs, now);
      const made = await links.make(wanted, (id) =>
        auditLog.append(auditEntry(clock, call, "account.password_link", call.id, `link ${id}`)),
      );
      return { id: made.link.id, path: pathOf(made), expires_at: timeOf(made.link.expiresAt) } satisfies NewLink;
    }),
  ];
}
