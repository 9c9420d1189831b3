// Where an account's mail goes, and what it wants of it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { MailState } from "../../api/mail.ts";
import { EmailField, PasswordField } from "../parts/account-fields.tsx";
import { FormDialog } from "../parts/asking-dialogs.tsx";
import { Button } from "../parts/button.tsx";
import { FormError } from "../parts/field.tsx";
import { Loaded } from "../parts/states.tsx";
import { toast } from "../parts/toasts.tsx";
import { get, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { account } from "../session.ts";
import { t } from "../texts.ts";

type Kind = MailState["choices"][number];

export function MailSection(): VNode {
  const state = useResource(() => get("/mail"), "mail");
  return (
    <section class="card stack">
      <h2>{t("mail.mail")}</h2>
      <Loaded resource={state} lines={3}>
        {(value) => <Mail state={value} onChanged={state.reload} />}
      </Loaded>
    </section>
  );
}

function Mail({ state, onChanged }: { state: MailState; onChanged: () => void }): VNode {
  const [asking, setAsking] = useState(false);
  const action = useAction();
  const { address, kinds, choices } = state;
  const choose = (kind: Kind, wants: boolean): void =>
    void action.run(async () => {
      await post("/mail/kinds", { kinds: choices.filter((each) => (each === kind ? wants : kinds.includes(each))) });
      onChanged();
    });
  return (
    <>
      <p>{address === null ? t("mail.nowhere") : t("mail.goes_to", { address })}</p>
      <div>
        <Button caption={t("mail.change")} onClick={() => setAsking(true)} />
      </div>
      {address !== null &&
        choices.map((kind) => (
          <label key={kind} class="check">
            <input
              type="checkbox"
              checked={kinds.includes(kind)}
              disabled={action.busy}
              onChange={(event) => choose(kind, event.currentTarget.checked)}
            />
            {t(`mail.kind_${kind}`)}
          </label>
        ))}
      <FormError message={action.error} />
      {asking && <AddressDialog state={state} onChanged={onChanged} onClose={() => setAsking(false)} />}
    </>
  );
}

type DialogProps = Readonly<{ state: MailState; onChanged: () => void; onClose: () => void }>;

function AddressDialog({ state: { address, proof }, onChanged, onClose }: DialogProps): VNode {
  const [wanted, setWanted] = useState(address ?? account.value?.email ?? "");
  const [password, setPassword] = useState("");
  const send = async (): Promise<void> => {
    const next = wanted.trim() === "" ? null : wanted.trim();
    await post("/mail/address", { address: next, ...(proof === "password" ? { password } : {}) });
    toast(next === null ? t("mail.nowhere") : t("mail.asked", { address: next }));
    onChanged();
    onClose();
  };
  return (
    <FormDialog title={t("mail.change")} submit={t("mail.save")} onSubmit={send} onClose={onClose}>
      <EmailField value={wanted} onValue={setWanted} hint={t("mail.change_about")} isOptional hasFocus />
      {proof === "password" && <PasswordField value={password} onValue={setPassword} isNew={false} />}
    </FormDialog>
  );
}
