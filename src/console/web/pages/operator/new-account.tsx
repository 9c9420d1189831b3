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

export function NewAccountDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }): VNode {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [plan, setPlan] = useState(planChoices()[0] ?? "");
  const [operator, setOperator] = useState(false);
  const [made, setMade] = useState<CreatedAccount | null>(null);
  if (made !== null) {
    return (
      <Dialog title="The account was created" onClose={onClose}>
        <p>
          The key of <strong>{made.email}</strong> is shown only once:
        </p>
        <Secret text={made.api_key} label="Copy the API key" />
        <footer>
          <Button caption="Done" class="button primary" onClick={onClose} />
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
    <FormDialog title="New account" submit="Create account" onSubmit={create} onClose={onClose}>
      <EmailField value={email} onValue={setEmail} hasFocus />
      <PasswordField
        value={password}
        onValue={setPassword}
        hint="Leave empty for an account that only uses its key"
        isNew
        isOptional
      />
      <PlanField value={plan} onValue={setPlan} />
      <label class="check">
        <input type="checkbox" checked={operator} onChange={(event) => setOperator(event.currentTarget.checked)} />
        Operator: may see and change every account
      </label>
    </FormDialog>
  );
}
