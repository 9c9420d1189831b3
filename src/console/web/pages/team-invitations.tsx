// The open invitations into a team, which its admins take back.
import type { VNode } from "preact";
import type { Invitation } from "../../api/teams.ts";
import { count, fullMoment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { FormError } from "../parts/field.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { t } from "../texts.ts";

type TeamInvitationsProps = Readonly<{ team: number; open: readonly Invitation[]; onChanged: () => void }>;

/** Nothing where there are none. */
export function TeamInvitations({ team, open, onChanged }: TeamInvitationsProps): VNode | null {
  const action = useAction();
  if (open.length === 0) return null;
  const withdraw = (invitation: number): void =>
    void action.run(() => post(`/teams/${team}/withdraw`, { invitation }).then(onChanged));
  return (
    <Card title={t("team_invitations.title")} aria-label={t("team_invitations.title")}>
      <FormError message={action.error} />
      <ul class="item-list">
        {open.map(({ id, email, limit_day, limit_month, expires_at }) => (
          <li key={id}>
            <div class="grow">
              <p class="break">{email ?? t("team_invitations.anyone")}</p>
              <p class="quiet small-text">
                {[
                  t("team_invitations.until", { id: String(id), time: fullMoment(expires_at) }),
                  ...(limit_day === null ? [] : [t("team_invitations.day", { tokens: count(limit_day) })]),
                  ...(limit_month === null ? [] : [t("team_invitations.month", { tokens: count(limit_month) })]),
                ].join(" · ")}
              </p>
            </div>
            <Button
              caption={t("team_invitations.withdraw")}
              class="button small"
              aria-label={t("team_invitations.withdraw_one", { id: String(id) })}
              disabled={action.busy}
              onClick={() => withdraw(id)}
            />
          </li>
        ))}
      </ul>
    </Card>
  );
}
