// Plans, credit and the requests for them. Without a payment provider, an operator approves each request.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PlanPage as PlanPageReply, PurchaseRequest } from "../../api/plan.ts";
import { countNames } from "../../../core/count-limits.ts";
import { count, date, dollars, percentage, price, worth } from "../format.ts";
import { AskButton, FormDialog } from "../parts/asking-dialogs.tsx";
import { FormError, LongField, NumberField } from "../parts/field.tsx";
import { Countdown } from "../parts/countdown.tsx";
import { Icon } from "../parts/icons.tsx";
import { LeftMeter } from "../parts/meter.tsx";
import { ModelTable } from "../parts/model-table.tsx";
import { Page } from "../parts/page.tsx";
import { requestTitle, StateBadge } from "../parts/purchase-request.tsx";
import { isFirstLoad, Loaded } from "../parts/states.tsx";
import { toast } from "../parts/toasts.tsx";
import { get, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { numbers, sells } from "../session.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { rich, t } from "../texts.ts";

type Plan = PlanPageReply["plans"][number];

export function PlanPage(): VNode {
  const page = useResource(() => get("/plan"), "plan");
  const models = useResource(() => get("/models"), "models");
  const isAlone = page.value?.plans.length === 1;
  const isUnlimited = page.value !== null && currentOf(page.value)?.unlimited === true;
  return (
    <Page
      title={t(sells.value ? (isAlone ? "menu.balance" : "plan.title") : isAlone ? "menu.models" : "menu.plan")}
      lead={isUnlimited ? t("plan.unlimited_lead") : sells.value ? leadOf(page.value) : t("plan.free_lead")}
    >
      <Loaded resource={page} lines={10}>
        {(value) => (
          <div class="stack-large">
            {!isAlone && <Plans page={value} onRequested={page.reload} />}
            {!isUnlimited && isAlone && <AlonePlan page={value} />}
            {!isUnlimited && sells.value && (
              <div class="grid-2">
                <Credit page={value} onRequested={page.reload} />
                <Requests page={value} onChanged={page.reload} />
              </div>
            )}
            {!sells.value && !isAlone && <Requests page={value} onChanged={page.reload} />}
          </div>
        )}
      </Loaded>
      <Card
        title={t(sells.value ? "plan.prices" : "menu.models")}
        class="card flush apart"
        hidden={isFirstLoad(page)}
        side={sells.value && <span class="quiet small-text">{t("plan.prices_unit", { million: 1_000_000 })}</span>}
      >
        <Loaded resource={models}>
          {({ models: all }) => (
            <ModelTable models={all.toSorted((one, other) => Number(other.served) - Number(one.served))} />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** The account's plan; one that is no longer configured works like the first. */
const currentOf = ({ plan, plans }: PlanPageReply): Plan | undefined => plans.find(({ id }) => id === plan) ?? plans[0];

const leadOf = (page: PlanPageReply | null): string =>
  page?.plans.every((plan) => plan.tokens_per_day === 0) === true ? t("plan.credit_lead") : t("plan.allowance_lead");

/** The only plan, so there is nothing to choose. */
function AlonePlan({ page }: { page: PlanPageReply }): VNode | null {
  const plan = currentOf(page);
  const spendable = sells.value ? (numbers.value?.spendable ?? null) : null;
  if (plan === undefined) return null;
  return (
    <section class="card plan" aria-label={t("menu.balance")}>
      {spendable !== null && (
        <div>
          <span class="figure-name">{t("plan.to_spend")}</span>
          <p class="figure">{count(spendable)}</p>
          <p class="quiet small-text">{t("plan.tokens_worth", { worth: worth(spendable) })}</p>
        </div>
      )}
      <PlanFacts plan={plan} isAllowanceShown={sells.value} />
    </section>
  );
}

/** Leaves out what is unlimited or missing. */
function PlanFacts({ plan, isAllowanceShown = false }: { plan: Plan; isAllowanceShown?: boolean }): VNode {
  const { tokens_per_day, coder_calls_per_window, searches_per_day, weight, batch_discount, priority } = plan;
  const facts = [
    isAllowanceShown && tokens_per_day > 0 ? t("plan.fact_tokens", { amount: tokens_per_day }) : null,
    coder_calls_per_window ? t("plan.fact_coder", { amount: coder_calls_per_window }) : null,
    searches_per_day ? t("plan.fact_searches", { amount: searches_per_day }) : null,
    ...countNames.flatMap(([name]) =>
      name === "weight" || plan[name] === null ? [] : [t(`limit_words.${name}`, { amount: plan[name] })],
    ),
    (weight ?? 1) > 1 ? t("plan.fact_weight", { amount: weight! }) : null,
    batch_discount > 0 ? t("plan.fact_batches", { discount: percentage(batch_discount) }) : null,
    priority === "standard" ? null : t(priority === "bulk" ? "plan.fact_bulk" : "plan.fact_interactive"),
    plan.priority_max === priority ? null : t("plan.fact_priority_max", { priority: plan.priority_max }),
  ];
  return (
    <ul>
      {facts.map(
        (fact) =>
          fact !== null && (
            <li key={fact}>
              <Icon name="check" size={14} /> {fact}
            </li>
          ),
      )}
    </ul>
  );
}

type PartProps = Readonly<{ page: PlanPageReply; onRequested: () => void }>;

function Plans({ page, onRequested }: PartProps): VNode {
  const [wanted, setWanted] = useState<Plan | null>(null);
  const asked = page.requests.find(({ kind, state }) => kind === "plan" && state === "pending")?.plan ?? null;
  return (
    <section class="grid-3" aria-label={t("plan.plans")}>
      {page.plans.map((plan) => (
        <article key={plan.id} class={plan.id === page.plan ? "card plan current" : "card plan"}>
          <div class="plan-name">
            <h2>{plan.name}</h2>
            {plan.id === page.plan && <span class="badge accent">{t("plan.yours")}</span>}
            {plan.id === asked && <span class="badge warn">{t("deletion.requested")}</span>}
          </div>
          {plan.unlimited && <p class="figure">{t("plan.unlimited")}</p>}
          {sells.value && plan.tokens_per_day > 0 && (
            <div>
              <p class="figure">{count(plan.tokens_per_day)}</p>
              <p class="quiet small-text">{t("plan.day_worth", { worth: price(plan.worth_usd) })}</p>
            </div>
          )}
          <PlanFacts plan={plan} />
          {plan.id === page.plan && <AllowanceLeft />}
          {plan.id !== page.plan && (
            <Button
              caption={plan.id === asked ? t("deletion.requested") : t("purchase.plan", { plan: plan.name })}
              class="button block"
              disabled={plan.id === asked}
              onClick={() => setWanted(plan)}
              aria-label={t("purchase.plan", { plan: plan.name })}
            />
          )}
        </article>
      ))}
      {wanted !== null && (
        <RequestDialog
          title={t("plan.change_ask", { plan: wanted.name })}
          about={t(sells.value ? "plan.change_about_sells" : "plan.change_about")}
          send={(note) => post("/plan/requests", { kind: "plan", plan: wanted.id, note })}
          onClose={() => setWanted(null)}
          onRequested={onRequested}
        />
      )}
    </section>
  );
}

/** What is left of the day, as the page where plans are compared should say. */
function AllowanceLeft(): VNode | null {
  const { left = null, granted = null, renews_at = "" } = numbers.value?.allowance ?? {};
  if (!sells.value || left === null || granted === null || granted === 0) return null;
  const about = rich("overview.renews", { time: <Countdown to={renews_at} /> });
  return <LeftMeter name={t("left.allowance")} left={left} of={granted} about={about} />;
}

function Credit({ page, onRequested }: PartProps): VNode {
  const [tokens, setTokens] = useState(page.packs[0]?.tokens ?? page.custom.min_tokens);
  const [custom, setCustom] = useState(false);
  const [asking, setAsking] = useState(false);
  const checkout = useAction();
  const { min_tokens, max_tokens, usd_per_million } = page.custom;
  const valid = Number.isInteger(tokens) && tokens >= min_tokens && tokens <= max_tokens;
  const buy = (): void => {
    if (page.payment === null) return setAsking(true);
    void checkout.run(async () => {
      const { url } = await post("/plan/checkout", { tokens });
      location.assign(url);
    });
  };
  return (
    <section class="card stack">
      <div>
        <h2>{t("plan.buy")}</h2>
        <p class="quiet small-text">{t("plan.have", { credit: page.credit, worth: worth(page.credit) })}</p>
      </div>
      <div class="grid-3" role="group" aria-label={t("plan.amount")}>
        {page.packs.map((pack) => (
          <Pack
            key={pack.tokens}
            name={t("plan.pack", { tokens: pack.tokens })}
            priceUsd={pack.price_usd}
            chosen={!custom && tokens === pack.tokens}
            onChoose={() => {
              setCustom(false);
              setTokens(pack.tokens);
            }}
          />
        ))}
        <Pack
          name={t("plan.custom")}
          priceUsd={custom && valid ? (tokens / 1e6) * usd_per_million : null}
          chosen={custom}
          onChoose={() => setCustom(true)}
        />
      </div>
      {custom && <CustomAmount limits={page.custom} tokens={tokens} isValid={valid} onTokens={setTokens} />}
      <FormError message={checkout.error} />
      <div>
        <Button
          caption={page.payment === null ? t("plan.request_credit") : t("plan.pay_with", { payment: page.payment })}
          class="button primary"
          disabled={!valid}
          busy={checkout.busy}
          onClick={buy}
        />
      </div>
      {asking && (
        <RequestDialog
          title={t("plan.request_ask", { tokens })}
          about={t("plan.request_about", { worth: worth(tokens) })}
          send={(note) => post("/plan/requests", { kind: "credit", tokens, note })}
          onClose={() => setAsking(false)}
          onRequested={onRequested}
        />
      )}
    </section>
  );
}

type PackProps = Readonly<{ name: string; priceUsd: number | null; chosen: boolean; onChoose: () => void }>;

const Pack = ({ name, priceUsd, chosen, onChoose }: PackProps): VNode => (
  <button type="button" class="pack" aria-pressed={chosen} onClick={onChoose}>
    <span>{name}</span>
    {priceUsd !== null && <strong>{dollars(priceUsd)}</strong>}
  </button>
);

type CustomAmountProps = Readonly<{
  limits: PlanPageReply["custom"];
  tokens: number;
  isValid: boolean;
  onTokens: (tokens: number) => void;
}>;

function CustomAmount({ limits, tokens, isValid, onTokens }: CustomAmountProps): VNode {
  const { min_tokens: min, max_tokens: max, usd_per_million: price } = limits;
  const range = { min, max, price: dollars(price) };
  return (
    <NumberField
      label={t("plan.tokens")}
      hint={t("plan.range", range)}
      error={isValid ? null : t("plan.range_wrong", { min, max })}
      min={min}
      max={max}
      step={100_000}
      value={tokens}
      onValue={onTokens}
    />
  );
}

type RequestDialogProps = Readonly<{
  title: string;
  about: string;
  send: (note: string | undefined) => Promise<unknown>;
  onClose: () => void;
  onRequested: () => void;
}>;

function RequestDialog({ title, about, send, onClose, onRequested }: RequestDialogProps): VNode {
  const [note, setNote] = useState("");
  return (
    <FormDialog
      title={title}
      submit={t("deletion.send")}
      onSubmit={async () => {
        await send(note.trim() === "" ? undefined : note.trim());
        onClose();
        onRequested();
        toast(t("deletion.sent"));
      }}
      onClose={onClose}
    >
      <p class="quiet">{about}</p>
      <LongField label={t("plan.note")} rows={2} maxLength={500} value={note} onValue={setNote} />
    </FormDialog>
  );
}

/** Nothing where there are none. */
const Requests = ({ page, onChanged }: { page: PlanPageReply; onChanged: () => void }): VNode | null =>
  page.requests.length + page.payments.length === 0 ? null : (
    <Card title={t("plan.requests")}>
      <ul class="item-list">
        {page.requests.map((request) => (
          <RequestItem key={request.id} request={request} onWithdrawn={onChanged} />
        ))}
        {page.payments.map((payment) => (
          <li key={payment.id}>
            <div>
              <p>{t("plan.paid_for", { tokens: payment.tokens })}</p>
              <p class="quiet small-text">{date(payment.paid_at)}</p>
            </div>
            <span class="badge good">{t("plan.paid")}</span>
          </li>
        ))}
      </ul>
    </Card>
  );

const RequestItem = ({ request, onWithdrawn }: { request: PurchaseRequest; onWithdrawn: () => void }): VNode => (
  <li>
    <div>
      <p>{requestTitle(request)}</p>
      <p class="quiet small-text">
        <Time at={request.created_at} />
        {request.decision_note !== "" && <> · {t("plan.note_shown", { note: request.decision_note })}</>}
      </p>
    </div>
    <div class="row">
      <StateBadge state={request.state} />
      {request.state === "pending" && (
        <AskButton
          caption={t("deletion.withdraw")}
          label={t("plan.withdraw_of", { title: requestTitle(request) })}
          class="button small"
          title={t("plan.withdraw_ask")}
          confirm={t("deletion.withdraw")}
          onConfirm={async () => {
            await post(`/plan/requests/${request.id}/withdraw`);
            onWithdrawn();
            toast(t("deletion.withdrawn"));
          }}
        >
          <p>{requestTitle(request)}</p>
        </AskButton>
      )}
    </div>
  </li>
);
