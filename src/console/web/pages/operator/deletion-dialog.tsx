// Asks an operator to confirm that an account is to be deleted, and deletes it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { OperatorAccount } from "../../../api/accounts.ts";
import { ConfirmationField } from "../../parts/account-fields.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { toast } from "../../parts/toasts.tsx";
import { post } from "../../request.ts";

type DeletionProps = Readonly<{
  account: Pick<OperatorAccount, "id" | "email">;
  onDeleted: (next: OperatorAccount) => void;
  onClose: () => void;
}>;

export function DeletionDialog({ account: { id, email }, onDeleted, onClose }: DeletionProps): VNode {
  const [confirm, setConfirm] = useState("");
  return (
    <FormDialog
      title="Delete this account?"
      submit="Delete account"
      kind="danger"
      ready={confirm.trim() === email}
      onSubmit={async () => {
        const left = await post(`/operator/accounts/${id}/delete`, { confirm: confirm.trim() });
        onClose();
        onDeleted(left);
        toast(`The account ${id} was deleted.`);
      }}
      onClose={onClose}
    >
      <p>
        <strong>{email}</strong> is erased with its key, password, sessions and stored responses. This cannot be undone.
      </p>
      <ConfirmationField label="Type its e-mail address to confirm" value={confirm} onValue={setConfirm} />
    </FormDialog>
  );
}
