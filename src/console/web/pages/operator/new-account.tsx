// The dialog that creates an account and shows its key once.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { CreatedAccount } from "../../../api/sign-in.ts";
import { EmailField, PasswordField, PlanField } from "../../parts/account-fields.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Secret } from "../../parts/secret.tsx";
import { post } from "../../request.ts";
import { planChoices } from "../../session.ts";
import { Button } from "../../parts/button.tsx";
import { rich, t } from "../../texts.ts";

export function NewAccountDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }): VNode {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [plan, setPlan] = useState(planChoices()[0] ?? "");
  const [operator, setOperator] = useState(false);
  const [made, setMade] = useState<CreatedAccount | null>(null);
  if (made !== null) {
    return (
      <Dialog title={t("new_account.made")} onClose={onClose}>
        <p>{rich("new_account.key", { email: <strong>{made.email}</strong> })}</p>
        <Secret text={made.api_key} label={t("new_account.copy")} />
        <footer>
          <Button caption={t("common.done")} class="button primary" onClick={onClose} />
        </footer>
      </Dialog>
    );
  }
  const create = async (): Promise<void> => {
    const wanted = { email, plan, operator, ...(password === "" ? {} : { password }) };
    setMade(await post("/operator/accounts", wanted));
    onMade();
  };
  return (
    <FormDialog title={t("new_account.title")} submit={t("sign_in.create_account")} onSubmit={create} onClose={onClose}>
      <EmailField value={email} onValue={setEmail} hasFocus />
      <PasswordField value={password} onValue={setPassword} hint={t("new_account.password_hint")} isNew isOptional />
      <PlanField value={plan} onValue={setPlan} />
      <label class="check">
        <input type="checkbox" checked={operator} onChange={(event) => setOperator(event.currentTarget.checked)} />
        {t("new_account.operator")}
      </label>
    </FormDialog>
  );
}
