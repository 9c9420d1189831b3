// Links by operators: invitations, and links that set an account's password.
import { invitations, invite, passwordLink, withdrawInvitation } from "../../office/verbs/accounts.ts";
import { ask } from "../ask.ts";
import type { ConsoleParts } from "../parts.ts";
import { type Call, fail, type Route, route } from "./route.ts";

export function invitationRoutes(parts: ConsoleParts): Route[] {
  const { office, baseUrl } = parts;
  const show = async (call: Call<"operator">) => ({
    invitations: await ask(parts, "operator", call, invitations, {}),
  });
  type Made = Readonly<{ link: string; expires_at: string; mailed?: boolean }>;
  const shown = (id: number, { link, expires_at, mailed = false }: Made) => ({
    id,
    path: link.slice(baseUrl.length),
    expires_at,
    mailed,
  });

  return [
    route("GET /operator/invitations", show),

    route("POST /operator/invitations", async (call) => {
      const { expires_in_hours: hours, ...wanted } = call.body;
      const expires = hours === undefined ? undefined : `${hours}h`;
      const made = await ask(parts, "operator", call, invite, { ...wanted, expires });
      return shown(made.id, made);
    }),

    route("POST /operator/invitations/:id/withdraw", async (call) => {
      const { kind } = await office.read(({ links }) => links.findById(call.id));
      if (kind !== "invitation") return fail("not_found", "There is no such invitation.");
      await ask(parts, "operator", call, withdrawInvitation, { id: call.id });
      return show(call);
    }),

    route("POST /operator/accounts/:id/password-link", async (call) => {
      const record = await office.read(({ accounts }) => accounts.record(call.id));
      if (record === null) return fail("not_found", "There is no such account.");
      const made = await ask(parts, "operator", call, passwordLink, { email: record.email });
      return shown(made.link_id, made);
    }),
  ];
}
