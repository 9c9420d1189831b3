// What is done to several accounts at once: each by itself, so that each has its own line in the audit log.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { PlanField } from "../../parts/account-fields.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { Button } from "../../parts/button.tsx";
import { toast } from "../../parts/toasts.tsx";
import { messageOf, post } from "../../request.ts";
import { planChoices, sells } from "../../session.ts";
import { t } from "../../texts.ts";
import { randomReference, useCredit } from "./account-changes.tsx";

type MarkedProps = Readonly<{
  /** E-mail addresses by account. */
  marked: ReadonlyMap<number, string>;
  onChanged: () => void;
  onClear: () => void;
}>;

const acts = ["disable", "enable", "set_plan", "add_credit"] as const;
type Act = (typeof acts)[number];

export function MarkedAccounts({ marked, onChanged, onClear }: MarkedProps): VNode {
  const [asking, setAsking] = useState<Act | null>(null);
  const shown = acts.filter(
    (act) => (act !== "add_credit" || sells.value) && (act !== "set_plan" || planChoices().length > 1),
  );
  return (
    <div class="row" role="group" aria-label={t("accounts.selected", { accounts: marked.size })}>
      <strong class="small-text">{t("accounts.selected", { accounts: marked.size })}</strong>
      {shown.map((act) => (
        <Button key={act} caption={t(`accounts.${act}`)} class="button small" onClick={() => setAsking(act)} />
      ))}
      <Button caption={t("accounts.clear")} class="link-button small-text" onClick={onClear} />
      {asking !== null && (
        <ActDialog
          act={asking}
          marked={marked}
          onChanged={onChanged}
          onClear={onClear}
          onClose={() => setAsking(null)}
        />
      )}
    </div>
  );
}

type ActProps = MarkedProps & Readonly<{ act: Act; onClose: () => void }>;

function ActDialog({ act, marked, onChanged, onClear, onClose }: ActProps): VNode {
  const [plan, setPlan] = useState(planChoices()[0] ?? "");
  const { credit, isValid, fields } = useCredit("accounts.credit_tokens");
  // One for all tries, so that nobody is credited twice.
  const [reference] = useState(randomReference);
  const accounts = marked.size;
  const doTo = async (id: number): Promise<unknown> => {
    if (act === "set_plan") return post(`/operator/accounts/${id}/plan`, { plan });
    if (act === "add_credit") return post(`/operator/accounts/${id}/credit`, { ...credit, reference });
    return post(`/operator/accounts/${id}/state`, { disabled: act === "disable" });
  };
  const doAll = async (): Promise<void> => {
    const failures: { email: string; problem: string }[] = [];
    for (const [id, email] of marked)
      await doTo(id).catch((thrown: unknown) => failures.push({ email, problem: messageOf(thrown) }));
    onChanged();
    const [first] = failures;
    if (first !== undefined) throw new Error(t("accounts.failed", { failed: failures.length, accounts, ...first }));
    toast(t("accounts.done", { accounts }));
    onClear();
    onClose();
  };
  const isCredit = act === "add_credit";
  return (
    <FormDialog
      title={t(`accounts.${act}`)}
      submit={t(`accounts.${act}`)}
      kind={act === "disable" ? "danger" : "primary"}
      ready={!isCredit || isValid}
      onSubmit={doAll}
      onClose={onClose}
    >
      {!isCredit && <p>{t(`accounts.${act === "set_plan" ? "plan" : act}_about`, { accounts })}</p>}
      {act === "set_plan" && <PlanField value={plan} onValue={setPlan} />}
      {isCredit && fields}
    </FormDialog>
  );
}
