// The end of the account page: how its owner has it deleted, where this server lets owners do so.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { DeletionState } from "../../api/account.ts";
import type { PurchaseRequest } from "../../api/plan.ts";
import { ago, utc } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { DialogFormEnd } from "../parts/dialog-form-end.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { Field, FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { toast } from "../parts/toasts.tsx";
import { post } from "../request.ts";
import { type Resource, useAction } from "../resource.ts";
import { navigate } from "../route.ts";
import { account, become, sells } from "../session.ts";

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
          <button type="button" class="button danger-quiet" onClick={ask}>
            {way === "self" ? "Delete account" : "Ask for deletion"}
          </button>
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
          <span class="badge warn">Asked</span> <time title={utc(request.created_at)}>{ago(request.created_at)}</time>
        </p>
        <button type="button" class="button" aria-busy={action.busy} disabled={action.busy} onClick={withdraw}>
          Withdraw
        </button>
      </div>
      <FormError message={action.error} />
    </>
  );
}

type DialogProps = Readonly<{ state: DeletionState; onAsked: () => void; onClose: () => void }>;

function OwnDeletionDialog({ state: { way, proof, is_fresh }, onAsked, onClose }: DialogProps): VNode {
  const [confirm, setConfirm] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction();
  const email = account.value?.email ?? "";
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    await action.run(async () => {
      const body = { confirm: confirm.trim(), ...(proof === "password" ? { password } : {}) };
      const session = await post("/deletion", body);
      onClose();
      toast(way === "self" ? "Your account was deleted." : "The request was sent to the operator.");
      become(session);
      if (session.account === null) navigate("/sign-in");
      else onAsked();
    });
  };
  return (
    <Dialog title={way === "self" ? "Delete your account?" : "Ask for your account's deletion?"} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p>
          Download your data first: nobody can bring it back. The playground's conversations are in your browser alone:
          delete them there before.
        </p>
        <ExportButton path="/export">Export your data</ExportButton>
        {proof === "password" && (
          <Field label="Password">
            {(control) => (
              <input
                {...control}
                type="password"
                required
                autocomplete="current-password"
                value={password}
                onInput={(event) => setPassword(event.currentTarget.value)}
              />
            )}
          </Field>
        )}
        {proof === "sign_in" && !is_fresh && (
          <>
            <p>You signed in a while ago. Sign in again, and come back here within ten minutes.</p>
            <ProviderButton body={{ next: "/account", again: true }} words="Sign in again with" block={false} />
          </>
        )}
        <Field label={`Type ${email} to confirm`}>
          {(control) => (
            <input
              {...control}
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={confirm}
              onInput={(event) => setConfirm(event.currentTarget.value)}
            />
          )}
        </Field>
        <DialogFormEnd
          action={action}
          onCancel={onClose}
          kind="danger"
          ready={confirm.trim() === email && (proof === "password" ? password !== "" : is_fresh)}
        >
          {way === "self" ? "Delete account" : "Send request"}
        </DialogFormEnd>
      </form>
    </Dialog>
  );
}
