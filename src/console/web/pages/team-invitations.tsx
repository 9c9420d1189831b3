// The open invitations into a team, which its admins take back.
import type { VNode } from "preact";
import type { Invitation } from "../../api/teams.ts";
import { count, fullMoment } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { UndoButton } from "../parts/undo-button.tsx";
import { post } from "../request.ts";
import { t } from "../texts.ts";

type TeamInvitationsProps = Readonly<{ team: number; open: readonly Invitation[]; onChanged: () => void }>;

/** Nothing where there are none. */
export function TeamInvitations({ team, open, onChanged }: TeamInvitationsProps): VNode | null {
  if (open.length === 0) return null;
  return (
    <Card title={t("team_invitations.title")} aria-label={t("team_invitations.title")}>
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
            <UndoButton
              caption={t("team_invitations.withdraw")}
              class="button small"
              label={t("team_invitations.withdraw_one", { id: String(id) })}
              done={t("team_invitations.withdrawn")}
              act={() => post(`/teams/${team}/withdraw`, { invitation: id })}
              onChanged={onChanged}
            />
          </li>
        ))}
      </ul>
    </Card>
  );
}
