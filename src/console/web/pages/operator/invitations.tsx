// Invitations: the dialog that makes one and shows its link once, and the list of unused ones.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Invitations, NewLink } from "../../../api/accounts.ts";
import { fullMoment, worth } from "../../format.ts";
import { EmailField, PlanField } from "../../parts/account-fields.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { NumberField } from "../../parts/field.tsx";
import { FreshInvitation } from "../../parts/secret.tsx";
import { UndoButton } from "../../parts/undo-button.tsx";
import { post } from "../../request.ts";
import type { Resource } from "../../resource.ts";
import { planChoices, sells } from "../../session.ts";
import { Card } from "../../parts/card.tsx";
import { t } from "../../texts.ts";

const hoursOfDay = 24;

export function InviteDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }): VNode {
  const [email, setEmail] = useState("");
  const [plan, setPlan] = useState(planChoices()[0] ?? "");
  const [credit, setCredit] = useState(0);
  const [days, setDays] = useState(7);
  const [made, setMade] = useState<NewLink | null>(null);
  if (made !== null) return <MadeDialog made={made} email={email} onClose={onClose} />;
  const invite = async (): Promise<void> => {
    const wanted = { plan, credit, expires_in_hours: days * hoursOfDay, ...(email === "" ? {} : { email }) };
    setMade(await post("/operator/invitations", wanted));
    onMade();
  };
  return (
    <FormDialog title={t("invitations.title")} submit={t("invitations.make")} onSubmit={invite} onClose={onClose}>
      <EmailField
        value={email}
        onValue={(value) => setEmail(value.trim())}
        hint={t("invitations.email_hint")}
        isOptional
        hasFocus
      />
      <PlanField value={plan} onValue={setPlan} />
      <div class="grid-2">
        {sells.value && (
          <NumberField
            label={t("invitations.credit")}
            hint={Number.isNaN(credit) ? undefined : worth(credit)}
            min={0}
            step={1}
            required
            value={credit}
            onValue={setCredit}
          />
        )}
        <NumberField label={t("invitations.days")} min={1} max={90} step={1} required value={days} onValue={setDays} />
      </div>
    </FormDialog>
  );
}

type MadeProps = Readonly<{ made: NewLink; email: string; onClose: () => void }>;

const MadeDialog = ({ made, email, onClose }: MadeProps): VNode => (
  <FreshInvitation path={made.path} mailedTo={made.mailed ? email : null} onClose={onClose}>
    {t("invitations.made", { time: fullMoment(made.expires_at) })}
  </FreshInvitation>
);

type OpenInvitationsProps = Readonly<{ resource: Resource<Invitations> }>;

/** Nothing where there are none. */
export function OpenInvitations({ resource }: OpenInvitationsProps): VNode | null {
  const { value, reload } = resource;
  if (value === null || value.invitations.length === 0) return null;
  return (
    <Card title={t("invitations.open")}>
      <ul class="item-list">
        {value.invitations.map(({ id, email, plan, credit, expires_at }) => (
          <li key={id}>
            <div class="grow">
              <p>{email ?? t("invitations.anyone")}</p>
              <p class="quiet small-text">
                {t("invitations.about", { id: String(id), plan, credit, time: fullMoment(expires_at) })}
              </p>
            </div>
            <UndoButton
              caption={t("invitations.withdraw")}
              class="button small"
              done={t("team_invitations.withdrawn")}
              act={() => post(`/operator/invitations/${id}/withdraw`)}
              onChanged={reload}
            />
          </li>
        ))}
      </ul>
    </Card>
  );
}
