// What operators change of an account: plan, credit, cost center, sign-in, state; and its data, as a file or deleted.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { NewLink, OperatorAccount } from "../../../api/accounts.ts";
import { worth } from "../../format.ts";
import { passwordMinLength } from "../../parts/account-fields.tsx";
import { Confirm } from "../../parts/asking-dialogs.tsx";
import { Button } from "../../parts/button.tsx";
import { ExportButton } from "../../parts/export-button.tsx";
import { FormError, NumberField, TextField } from "../../parts/field.tsx";
import { SecretLink } from "../../parts/secret.tsx";
import { Select } from "../../parts/select.tsx";
import { toast } from "../../parts/toasts.tsx";
import { UndoButton } from "../../parts/undo-button.tsx";
import { get, post, randomName } from "../../request.ts";
import { useAction } from "../../resource.ts";
import { account as own, planChoices, sells, session } from "../../session.ts";
import { rich, t, type TextKey } from "../../texts.ts";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { MailAddressForm } from "./mail-address.tsx";

type FormProps = Readonly<{ account: OperatorAccount; onChanged: (next: OperatorAccount) => void }>;

export const AccountChanges = ({ onReload, ...form }: FormProps & Readonly<{ onReload: () => void }>): VNode => (
  <section class="grid-2" aria-label={t("sheet.changes")}>
    <PlanForm {...form} />
    <CostCenterForm {...form} />
    <MailAddressForm {...form} />
    {sells.value && <CreditForm {...form} />}
    {!form.account.team && <PasswordForm account={form.account} onChanged={onReload} />}
    <StateForm {...form} />
    <Panel title={t("sheet.data")}>
      <p class="quiet small-text">{t("sheet.data_about")}</p>
      <ExportButton path={`/operator/accounts/${form.account.id}/export`}>{t("sheet.export")}</ExportButton>
    </Panel>
    <DeletionForm {...form} />
  </section>
);

const Panel = ({ title, children }: { title: string; children: ComponentChildren }): VNode => (
  <section class="card stack" aria-label={title}>
    <h2>{title}</h2>
    {children}
  </section>
);

const strong = (inner: ComponentChildren): VNode => <strong>{inner}</strong>;

/** How much credit and why, as fields and as what they say. */
export function useCredit(label: TextKey) {
  const [tokens, setTokens] = useState(1_000_000);
  const [text, setText] = useState("");
  const reason = text.trim();
  const fields = (
    <>
      <NumberField
        label={t(label)}
        hint={Number.isNaN(tokens) ? undefined : worth(tokens)}
        min={1}
        step={1}
        required
        value={tokens}
        onValue={setTokens}
      />
      <TextField
        label={t("accounts.reason")}
        hint={t("accounts.reason_hint")}
        required
        maxLength={500}
        value={text}
        onValue={setText}
      />
    </>
  );
  const isValid = Number.isInteger(tokens) && tokens > 0 && reason !== "";
  return { credit: { tokens, reason }, isValid, fields, clear: () => setText("") };
}

function CreditForm({ account: { id, email }, onChanged }: FormProps): VNode {
  const { credit, isValid, fields, clear } = useCredit("log.tokens");
  const { tokens } = credit;
  /** Minted when the question is shown, so that a grant that is sent twice counts once; null: nothing is asked. */
  const [reference, setReference] = useState<string | null>(null);
  return (
    <Panel title={t("sheet.credit")}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setReference(randomReference());
        }}
      >
        <div class="grid-2">{fields}</div>
        <div>
          <Button caption={t("sheet.grant")} type="submit" disabled={!isValid} />
        </div>
      </form>
      {reference !== null && (
        <Confirm
          title={t("sheet.grant_ask")}
          confirm={t("sheet.grant")}
          danger={false}
          onConfirm={async () => {
            onChanged(await post(`/operator/accounts/${id}/credit`, { ...credit, reference }));
            clear();
            toast(t("sheet.granted", { tokens, email }));
          }}
          onClose={() => setReference(null)}
        >
          <p>{rich("sheet.grant_about", { email, tokens, worth: worth(tokens), strong })}</p>
        </Confirm>
      )}
    </Panel>
  );
}

export const randomReference = (): string => `console-${randomName()}`;

/** One field whose value is sent as it is; what it was is easily set again. */
function OneField({ title, about, isSame, save, children }: OneFieldProps): VNode {
  const action = useAction();
  return (
    <Panel title={title}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void action.run(save);
        }}
      >
        <p class="quiet small-text">{about}</p>
        <div class="row">
          <div class="grow">{children}</div>
          <Button
            caption={t("sheet.save")}
            type="submit"
            busy={action.busy}
            disabled={isSame}
            aria-label={t("sheet.save_of", { title })}
          />
        </div>
        <FormError message={action.error} />
      </form>
    </Panel>
  );
}

type OneFieldProps = Readonly<{
  title: string;
  about: string;
  isSame: boolean;
  save: () => Promise<void>;
  children: ComponentChildren;
}>;

function PlanForm({ account, onChanged }: FormProps): VNode {
  const [plan, setPlan] = useState(account.plan);
  return (
    <OneField
      title={t("menu.plan")}
      about={t("sheet.plan_about")}
      isSame={plan === account.plan}
      save={async () => {
        onChanged(await post(`/operator/accounts/${account.id}/plan`, { plan }));
        toast(t("sheet.plan_changed", { email: account.email, plan }));
      }}
    >
      <Select aria-label={t("menu.plan")} value={plan} onValue={setPlan} options={planChoices(account.plan)} />
    </OneField>
  );
}

function CostCenterForm({ account: { id, cost_center: old }, onChanged }: FormProps): VNode {
  const [text, setText] = useState(old ?? "");
  const title = t("sheet.cost_center");
  return (
    <OneField
      title={title}
      about={t("sheet.cost_center_about")}
      isSame={text.trim() === (old ?? "")}
      save={async () => {
        onChanged(await post(`/operator/accounts/${id}/cost-center`, { cost_center: text.trim() || null }));
        toast(t("sheet.saved"));
      }}
    >
      <input
        aria-label={title}
        maxLength={100}
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </OneField>
  );
}

function PasswordForm({ account, onChanged }: { account: OperatorAccount; onChanged: () => void }): VNode {
  const [password, setPassword] = useState("");
  const action = useAction();
  const reset = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const done = await action.run(async () => {
      await post(`/operator/accounts/${account.id}/password`, { password });
    });
    if (!done) return;
    setPassword("");
    onChanged();
    toast(t("sheet.password_set", { email: account.email }));
  };
  const [link, setLink] = useState<NewLink | null>(null);
  const makeLink = (): void =>
    void action.run(async () => setLink(await post(`/operator/accounts/${account.id}/password-link`)));
  const { passwords = true, provider = null } = session.value ?? {};
  const ways = provider === null ? "password" : passwords ? "both" : "provider";
  return (
    <Panel title={t("sheet.sign_in")}>
      {passwords && (
        <form class="row" onSubmit={(event) => void reset(event)}>
          <div class="grow">
            <input
              type="password"
              aria-label={t("sheet.new_password")}
              placeholder={t("account_fields.password_hint", { passwordMinLength })}
              required
              minLength={passwordMinLength}
              autocomplete="new-password"
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          </div>
          <Button caption={t("sheet.set_password")} type="submit" busy={action.busy} />
        </form>
      )}
      <div class="row spread">
        <p class="quiet small-text grow">{t(`sheet.link_${ways}`, { provider: provider ?? "" })}</p>
        <Button caption={t("sheet.make_link")} disabled={action.busy} onClick={makeLink} />
      </div>
      {link !== null && <SecretLink path={link.path} />}
      <FormError message={action.error} />
    </Panel>
  );
}

function StateForm({ account: { id, email, ...account }, onChanged }: FormProps): VNode {
  const { disabled } = account;
  const act = disabled ? "enable" : "disable";
  const isOwn = id === own.value?.id;
  const action = useAction();
  const change = (next: boolean) => post(`/operator/accounts/${id}/state`, { disabled: next });
  const enable = async (): Promise<void> => {
    onChanged(await change(false));
    toast(t("sheet.enable_done", { email }));
  };
  return (
    <Panel title={t("common.state")}>
      <div class="row spread">
        <p class="quiet small-text grow">{t(`sheet.${act}_about`)}</p>
        {disabled ? (
          <Button caption={t("sheet.enable")} busy={action.busy} onClick={() => void action.run(enable)} />
        ) : (
          <UndoButton
            caption={t("sheet.disable")}
            class="button danger-quiet"
            disabled={isOwn}
            hint={isOwn ? t("sheet.own") : undefined}
            done={t("sheet.disable_done", { email })}
            act={() => change(true)}
            onChanged={async () => onChanged(await get(`/operator/accounts/${id}`))}
          />
        )}
      </div>
      <FormError message={action.error} />
    </Panel>
  );
}

/** Recognized by the name that a deletion leaves. */
const isDeleted = ({ email, disabled, has_password }: OperatorAccount): boolean =>
  disabled && !has_password && /^deleted-[\d-]+@invalid$/i.test(email);

function DeletionForm({ account, onChanged }: FormProps): VNode | null {
  const [asking, setAsking] = useState(false);
  if (isDeleted(account)) return null;
  const isOwn = account.id === own.value?.id;
  return (
    <Panel title={t("common.delete")}>
      <div class="row spread">
        <p class="quiet small-text grow">{t("sheet.delete_about")}</p>
        <Button
          caption={t("deletions.do")}
          class="button danger-quiet"
          disabled={isOwn}
          title={isOwn ? t("sheet.own") : undefined}
          onClick={() => setAsking(true)}
        />
      </div>
      {asking && <DeletionDialog account={account} onDeleted={onChanged} onClose={() => setAsking(false)} />}
    </Panel>
  );
}
