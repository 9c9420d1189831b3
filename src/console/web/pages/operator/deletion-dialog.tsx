// Asks an operator to confirm that an account is to be deleted, and deletes it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { OperatorAccount } from "../../../api/accounts.ts";
import { ConfirmationField } from "../../parts/account-fields.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { toast } from "../../parts/toasts.tsx";
import { post } from "../../request.ts";
import { rich, t } from "../../texts.ts";

type DeletionProps = Readonly<{
  account: Pick<OperatorAccount, "id" | "email">;
  onDeleted: (next: OperatorAccount) => void;
  onClose: () => void;
}>;

export function DeletionDialog({ account: { id, email }, onDeleted, onClose }: DeletionProps): VNode {
  const [confirm, setConfirm] = useState("");
  return (
    <FormDialog
      title={t("deletions.ask")}
      submit={t("deletions.do")}
      kind="danger"
      ready={confirm.trim() === email}
      onSubmit={async () => {
        const left = await post(`/operator/accounts/${id}/delete`, { confirm: confirm.trim() });
        onClose();
        onDeleted(left);
        toast(t("deletions.done", { id: String(id) }));
      }}
      onClose={onClose}
    >
      <p>{rich("deletions.about", { email: <strong>{email}</strong> })}</p>
      <ConfirmationField label={t("deletions.confirm")} value={confirm} onValue={setConfirm} />
    </FormDialog>
  );
}
