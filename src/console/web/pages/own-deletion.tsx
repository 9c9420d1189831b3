// Deletion of the account by its owner, if this server allows it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { DeletionState } from "../../api/account.ts";
import type { PurchaseRequest } from "../../api/plan.ts";
import { ConfirmationField, PasswordField } from "../parts/account-fields.tsx";
import { FormDialog } from "../parts/asking-dialogs.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { toast } from "../parts/toasts.tsx";
import { post } from "../request.ts";
import { type Resource, useAction } from "../resource.ts";
import { navigate } from "../route.ts";
import { account, become, sells } from "../session.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { t } from "../texts.ts";

export function OwnDeletionSection({ state }: { state: Resource<DeletionState> }): VNode | null {
  const [asking, setAsking] = useState(false);
  if (state.value === null || state.value.way === "off") return null;
  const { way, request } = state.value;
  const isPending = request?.state === "pending";
  const ask = (): void => {
    state.reload(); // the sign-in may be less fresh by now
    setAsking(true);
  };
  return (
    <section class="card stack" aria-label={t("deletion.title")}>
      <h2>{t("deletion.title")}</h2>
      <p class="quiet small-text">
        {t(sells.value ? "deletion.about_sells" : "deletion.about")}
        {way === "request" && ` ${t("deletion.operator_decides")}`}
      </p>
      {request !== null && request.state === "declined" && (
        <p>
          {request.decision_note === ""
            ? t("deletion.declined")
            : t("deletion.declined_note", { note: request.decision_note })}
        </p>
      )}
      {isPending ? (
        <Pending request={request} onWithdrawn={state.reload} />
      ) : (
        <div>
          <Button
            caption={t(way === "self" ? "deletion.delete" : "deletion.request")}
            class="button danger-quiet"
            onClick={ask}
          />
        </div>
      )}
      {asking && <OwnDeletionDialog state={state.value} onAsked={state.reload} onClose={() => setAsking(false)} />}
    </section>
  );
}

function Pending({ request, onWithdrawn }: { request: PurchaseRequest; onWithdrawn: () => void }): VNode {
  const action = useAction();
  const withdraw = (): void =>
    void action.run(async () => {
      await post(`/plan/requests/${request.id}/withdraw`);
      toast(t("deletion.withdrawn"));
      onWithdrawn();
    });
  return (
    <>
      <div class="row spread">
        <p>
          <span class="badge warn">{t("deletion.requested")}</span> <Time at={request.created_at} />
        </p>
        <Button caption={t("deletion.withdraw")} busy={action.busy} onClick={withdraw} />
      </div>
      <FormError message={action.error} />
    </>
  );
}

type DialogProps = Readonly<{ state: DeletionState; onAsked: () => void; onClose: () => void }>;

function OwnDeletionDialog({ state: { way, proof, is_fresh }, onAsked, onClose }: DialogProps): VNode {
  const [confirm, setConfirm] = useState("");
  const [password, setPassword] = useState("");
  const email = account.value?.email ?? "";
  const erase = async (): Promise<void> => {
    const body = { confirm: confirm.trim(), ...(proof === "password" ? { password } : {}) };
    const session = await post("/deletion", body);
    onClose();
    toast(t(way === "self" ? "deletion.deleted" : "deletion.sent"));
    become(session);
    if (session.account === null) navigate("/sign-in");
    else onAsked();
  };
  return (
    <FormDialog
      title={t(way === "self" ? "deletion.ask" : "deletion.ask_request")}
      submit={t(way === "self" ? "deletion.delete" : "deletion.send")}
      kind="danger"
      ready={confirm.trim() === email && (proof === "password" ? password !== "" : is_fresh)}
      onSubmit={erase}
      onClose={onClose}
    >
      <p>{t("deletion.export_first")}</p>
      <ExportButton path="/export">{t("account.export")}</ExportButton>
      {proof === "password" && <PasswordField value={password} onValue={setPassword} isNew={false} />}
      {proof === "sign_in" && !is_fresh && (
        <>
          <p>{t("deletion.not_fresh")}</p>
          <ProviderButton body={{ next: "/account", again: true }} words="provider.again" block={false} />
        </>
      )}
      <ConfirmationField label={t("deletion.confirm", { email })} value={confirm} onValue={setConfirm} />
    </FormDialog>
  );
}
