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
    <section class="card stack" aria-label="Delete the account">
      <h2>Delete the account</h2>
      <p class="quiet small-text">
        Erases your e-mail address, keys, password, sessions and stored responses for good
        {sells.value && ", and ends what is left of the balance"}.
        {way === "request" && " An operator of this server decides on it."}
      </p>
      {request !== null && request.state === "declined" && (
        <p>Your request was declined{request.decision_note !== "" && <>: “{request.decision_note}”</>}.</p>
      )}
      {isPending ? (
        <Pending request={request} onWithdrawn={state.reload} />
      ) : (
        <div>
          <Button
            caption={way === "self" ? "Delete account" : "Request deletion"}
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
      toast("The request was withdrawn.");
      onWithdrawn();
    });
  return (
    <>
      <div class="row spread">
        <p>
          <span class="badge warn">Requested</span> <Time at={request.created_at} />
        </p>
        <Button caption="Withdraw" busy={action.busy} onClick={withdraw} />
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
    toast(way === "self" ? "Your account was deleted." : "The request was sent to the operator.");
    become(session);
    if (session.account === null) navigate("/sign-in");
    else onAsked();
  };
  return (
    <FormDialog
      title={way === "self" ? "Delete your account?" : "Request the deletion of your account?"}
      submit={way === "self" ? "Delete account" : "Send request"}
      kind="danger"
      ready={confirm.trim() === email && (proof === "password" ? password !== "" : is_fresh)}
      onSubmit={erase}
      onClose={onClose}
    >
      <p>
        Download your data first: a deletion cannot be undone. The playground's conversations are in your browser only;
        delete them there as well.
      </p>
      <ExportButton path="/export">Export your data</ExportButton>
      {proof === "password" && <PasswordField value={password} onValue={setPassword} isNew={false} />}
      {proof === "sign_in" && !is_fresh && (
        <>
          <p>You signed in a while ago. Sign in again, and come back here within ten minutes.</p>
          <ProviderButton body={{ next: "/account", again: true }} words="Sign in again with" block={false} />
        </>
      )}
      <ConfirmationField label={`Type ${email} to confirm`} value={confirm} onValue={setConfirm} />
    </FormDialog>
  );
}
