// Where an account's mail goes, as an operator sets it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { OperatorAccount } from "../../../api/accounts.ts";
import { EmailField } from "../../parts/account-fields.tsx";
import { Button } from "../../parts/button.tsx";
import { FormError } from "../../parts/field.tsx";
import { toast } from "../../parts/toasts.tsx";
import { post } from "../../request.ts";
import { useAction } from "../../resource.ts";
import { session } from "../../session.ts";
import { t } from "../../texts.ts";

type Props = Readonly<{ account: OperatorAccount; onChanged: (next: OperatorAccount) => void }>;

/** Nothing where no mail is sent. */
export function MailAddressForm({ account, onChanged }: Props): VNode | null {
  const [address, setAddress] = useState(account.mail_address ?? "");
  const action = useAction();
  if (session.value?.mail !== true || account.team) return null;
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      const next = address.trim() === "" ? null : address.trim();
      onChanged(await post(`/operator/accounts/${account.id}/address`, { address: next }));
      toast(next === null ? t("mail_address.none") : t("mail_address.set", { email: account.email, address: next }));
    });
  };
  return (
    <form class="card stack" onSubmit={save}>
      <h2>{t("mail_address.heading")}</h2>
      <EmailField value={address} onValue={setAddress} hint={t("mail_address.about")} isOptional />
      <FormError message={action.error} />
      <div>
        <Button caption={t("mail.save")} type="submit" busy={action.busy} />
      </div>
    </form>
  );
}
