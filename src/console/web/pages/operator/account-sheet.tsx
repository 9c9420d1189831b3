// One account as operators see it: its balance, its last requests, and forms that change it.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { NewLink, OperatorAccount } from "../../../api/accounts.ts";
import { ago, count, plural, utc, worth } from "../../format.ts";
import { passwordMinLength } from "../../parts/account-fields.tsx";
import { AskButton, Confirm } from "../../parts/asking-dialogs.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ExportButton } from "../../parts/export-button.tsx";
import { FormError, NumberField, TextField } from "../../parts/field.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { SecretLink } from "../../parts/secret.tsx";
import { toast } from "../../parts/toasts.tsx";
import { UsageTable } from "../../parts/usage-table.tsx";
import { get, post } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { account as own, planChoices, sells, session } from "../../session.ts";
import { MailAddressForm } from "./mail-address.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";
import { Select } from "../../parts/select.tsx";

const usageRows = 10;

type SheetProps = Readonly<{ id: number; onClose: () => void; onChanged: () => void }>;

export function AccountSheet({ id, onClose, onChanged }: SheetProps): VNode {
  const account = useResource(() => get(`/operator/accounts/${id}`), String(id));
  const usage = useResource(() => get(`/operator/accounts/${id}/usage`, { limit: usageRows }), String(id));
  const changed = (next: OperatorAccount): void => {
    account.replace(next);
    onChanged();
  };
  return (
    <Dialog title={account.value?.email ?? "Account"} kind="sheet" onClose={onClose}>
      <Loaded resource={account} lines={8}>
        {(value) => (
          <div class="stack-large">
            <Facts account={value} />
            {sells.value && <CreditForm account={value} onChanged={changed} />}
            <PlanForm account={value} onChanged={changed} />
            <PasswordForm account={value} onChanged={account.reload} />
            <MailAddressForm account={value} onChanged={changed} />
            <StateForm account={value} onChanged={changed} />
            <Panel title="Data">
              <p class="quiet small-text">
                Everything that this server keeps about the account as one JSON file, without keys and passwords.
              </p>
              <ExportButton path={`/operator/accounts/${value.id}/export`}>Export</ExportButton>
            </Panel>
            <DeletionForm account={value} onChanged={changed} />
            <section class="card flush">
              <header>
                <h3>Last requests</h3>
              </header>
              <Loaded resource={usage}>
                {({ rows }) =>
                  rows.length === 0 ? (
                    <Empty icon="usage" title="No requests yet" />
                  ) : (
                    <UsageTable rows={rows} caption="The last requests of this account" />
                  )
                }
              </Loaded>
            </section>
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}

const Facts = ({ account }: { account: OperatorAccount }): VNode => (
  <section class="stack" aria-label="Balance">
    <div class="row">
      {account.disabled ? <span class="badge bad">Disabled</span> : <span class="badge good">Active</span>}
      {account.operator && <span class="badge accent">Operator</span>}
      {!account.has_password && <span class="badge">No password</span>}
      {account.providers.length > 0 && <span class="badge">Connected with a provider</span>}
    </div>
    <dl class="facts">
      {sells.value && (
        <Fact
          name="To spend now"
          class="number"
          value={
            account.numbers.spendable === null ? "Not limited" : `${count(account.numbers.spendable)} balance tokens`
          }
        />
      )}
      {sells.value && account.numbers.allowance.granted !== null && account.numbers.allowance.granted > 0 && (
        <Fact
          name="Allowance left today"
          class="number"
          value={`${count(account.numbers.allowance.left ?? 0)} of ${count(account.numbers.allowance.granted)}`}
        />
      )}
      {(sells.value || account.credit !== 0) && (
        <Fact name="Credit" class="number" value={`${count(account.credit)}, ${worth(account.credit)}`} />
      )}
      <Fact name={sells.value ? "Reserved, in flight" : "In flight"} class="number">
        {sells.value && `${count(account.numbers.reserved.tokens)} balance tokens, `}
        {plural(account.numbers.requests_in_flight, "request")}
      </Fact>
      <Fact name="Made" title={utc(account.created_at)} value={ago(account.created_at)} />
      <Fact name="Key made" title={utc(account.key_created_at)} value={ago(account.key_created_at)} />
    </dl>
  </section>
);

type FormProps = Readonly<{ account: OperatorAccount; onChanged: (next: OperatorAccount) => void }>;

const Panel = ({ title, children }: { title: string; children: ComponentChildren }): VNode => (
  <section class="card stack">
    <h3>{title}</h3>
    {children}
  </section>
);

function CreditForm({ account, onChanged }: FormProps): VNode {
  const [tokens, setTokens] = useState(1_000_000);
  const [reason, setReason] = useState("");
  /** Minted when the question is shown, so that a grant that is sent twice counts once; null: nothing is asked. */
  const [reference, setReference] = useState<string | null>(null);
  const valid = Number.isInteger(tokens) && tokens > 0 && reason.trim() !== "";
  return (
    <Panel title="Credit">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setReference(randomReference());
        }}
      >
        <div class="grid-2">
          <NumberField
            label="Tokens"
            hint={Number.isNaN(tokens) ? undefined : worth(tokens)}
            min={1}
            step={1}
            required
            value={tokens}
            onValue={setTokens}
          />
          <TextField
            label="Reason"
            hint="Kept in the audit log"
            required
            maxLength={500}
            value={reason}
            onValue={setReason}
          />
        </div>
        <div>
          <Button caption="Grant credit" type="submit" disabled={!valid} />
        </div>
      </form>
      {reference !== null && (
        <Confirm
          title="Grant credit?"
          confirm="Grant credit"
          danger={false}
          onConfirm={async () => {
            onChanged(
              await post(`/operator/accounts/${account.id}/credit`, { tokens, reason: reason.trim(), reference }),
            );
            setReason("");
            toast(`${count(tokens)} balance tokens were credited to ${account.email}.`);
          }}
          onClose={() => setReference(null)}
        >
          <p>
            <strong>{account.email}</strong> gets <strong>{count(tokens)}</strong> balance tokens, worth {worth(tokens)}
            .
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

/** `crypto.randomUUID` is missing where the console is used over plain http from another machine. */
export const randomReference = (): string =>
  `console-${Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;

function PlanForm({ account, onChanged }: FormProps): VNode {
  const [plan, setPlan] = useState(account.plan);
  return (
    <Panel title="Plan">
      <div class="row">
        <div class="grow">
          <Select aria-label="Plan" value={plan} onValue={setPlan} options={planChoices(account.plan)} />
        </div>
        <AskButton
          caption="Change plan"
          disabled={plan === account.plan}
          title="Change the plan?"
          confirm="Change plan"
          danger={false}
          onConfirm={async () => {
            onChanged(await post(`/operator/accounts/${account.id}/plan`, { plan }));
            toast(`${account.email} is now on the plan ${plan}.`);
          }}
        >
          <p>
            <strong>{account.email}</strong> goes from {account.plan} to <strong>{plan}</strong>. The new limits apply
            at once.
          </p>
        </AskButton>
      </div>
    </Panel>
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
    toast(`${account.email} has a new password; its browsers were signed out.`);
  };
  const [link, setLink] = useState<NewLink | null>(null);
  const makeLink = (): void =>
    void action.run(async () => setLink(await post(`/operator/accounts/${account.id}/password-link`)));
  const { passwords = true, provider = null } = session.value ?? {};
  const ways = [passwords ? "set a password" : null, provider === null ? null : `connect with ${provider}`];
  return (
    <Panel title={!passwords ? "Sign-in" : account.has_password ? "New password" : "Password"}>
      {passwords && (
        <form class="row" onSubmit={(event) => void reset(event)}>
          <div class="grow">
            <input
              type="password"
              aria-label="New password"
              placeholder={`At least ${passwordMinLength} characters`}
              required
              minLength={passwordMinLength}
              autocomplete="new-password"
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          </div>
          <Button caption="Set password" type="submit" busy={action.busy} />
        </form>
      )}
      <div class="row spread">
        <p class="quiet small-text grow">
          A link lets the owner {ways.filter((way) => way !== null).join(" or ")}. It works once, within a day.
        </p>
        <Button caption="Make a link" disabled={action.busy} onClick={makeLink} />
      </div>
      {link !== null && <SecretLink path={link.path} />}
      <FormError message={action.error} />
    </Panel>
  );
}

function StateForm({ account, onChanged }: FormProps): VNode {
  const disabled = !account.disabled;
  const verb = disabled ? "Disable account" : "Enable account";
  const isOwn = account.id === own.value?.id;
  return (
    <Panel title={disabled ? "Disable" : "Enable"}>
      <div class="row spread">
        <p class="quiet small-text grow">
          {disabled
            ? `Its key and its browsers are refused until it is enabled again. ${sells.value ? "Balance and usage stay." : "Its usage stays."}`
            : "Its key works again, and it may sign in."}
        </p>
        <AskButton
          caption={verb}
          class={disabled ? "button danger-quiet" : "button"}
          disabled={isOwn}
          hint={isOwn ? "This is your own account" : undefined}
          title={`${verb}?`}
          confirm={verb}
          danger={disabled}
          onConfirm={async () => {
            onChanged(await post(`/operator/accounts/${account.id}/state`, { disabled }));
            toast(`${account.email} is ${disabled ? "disabled" : "active again"}.`);
          }}
        >
          <p>
            <strong>{account.email}</strong>{" "}
            {disabled
              ? "is refused everywhere at once. Replies in progress finish."
              : "may use its key and sign in again."}
          </p>
        </AskButton>
      </div>
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
    <Panel title="Delete">
      <div class="row spread">
        <p class="quiet small-text grow">
          Permanently erases e-mail, key, password, sessions and notes. Its records stay, without a name.
        </p>
        <Button
          caption="Delete account"
          class="button danger-quiet"
          disabled={isOwn}
          title={isOwn ? "This is your own account" : undefined}
          onClick={() => setAsking(true)}
        />
      </div>
      {asking && <DeletionDialog account={account} onDeleted={onChanged} onClose={() => setAsking(false)} />}
    </Panel>
  );
}
