// Plans, credit and the requests for them. Without a payment provider, an operator approves each request.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PlanPage as PlanPageReply, PurchaseRequest } from "../../api/plan.ts";
import { countsInWords } from "../../../core/count-limits.ts";
import { count, date, dollars, price, worth } from "../format.ts";
import { AskButton, FormDialog } from "../parts/asking-dialogs.tsx";
import { FormError, LongField, NumberField } from "../parts/field.tsx";
import { Icon } from "../parts/icons.tsx";
import { ModelTable } from "../parts/model-table.tsx";
import { Page } from "../parts/page.tsx";
import { requestTitle, StateBadge } from "../parts/purchase-request.tsx";
import { Empty, isFirstLoad, Loaded } from "../parts/states.tsx";
import { toast } from "../parts/toasts.tsx";
import { get, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { numbers, sells } from "../session.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";

type Plan = PlanPageReply["plans"][number];

export function PlanPage(): VNode {
  const page = useResource(() => get("/plan"), "plan");
  const models = useResource(() => get("/models"), "models");
  const isAlone = page.value?.plans.length === 1;
  const isUnlimited = page.value !== null && currentOf(page.value)?.unlimited === true;
  return (
    <Page
      title={sells.value ? (isAlone ? "Balance" : "Plan and credit") : isAlone ? "Models" : "Plan"}
      lead={
        isUnlimited
          ? "Nothing here is limited; usage is recorded."
          : sells.value
            ? leadOf(page.value)
            : "The models here are free; usage is recorded."
      }
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
        title={sells.value ? "Prices" : "Models"}
        class="card flush apart"
        hidden={isFirstLoad(page)}
        side={sells.value && <span class="quiet small-text">US dollars per 1,000,000 model tokens</span>}
      >
        <Loaded resource={models}>{(value) => <ModelTable models={value.models} />}</Loaded>
      </Card>
    </Page>
  );
}

/** The account's plan; one that is no longer configured works like the first. */
const currentOf = ({ plan, plans }: PlanPageReply): Plan | undefined => plans.find(({ id }) => id === plan) ?? plans[0];

const leadOf = (page: PlanPageReply | null): string =>
  page?.plans.every((plan) => plan.tokens_per_day === 0) === true
    ? "Purchased credit never expires."
    : "The daily allowance is spent first; purchased credit never expires.";

/** The only plan, so there is nothing to choose. */
function AlonePlan({ page }: { page: PlanPageReply }): VNode | null {
  const plan = currentOf(page);
  const spendable = sells.value ? (numbers.value?.spendable ?? null) : null;
  if (plan === undefined) return null;
  return (
    <section class="card plan" aria-label="Balance">
      {spendable !== null && (
        <div>
          <span class="figure-name">To spend now</span>
          <p class="figure">{count(spendable)}</p>
          <p class="quiet small-text">balance tokens, worth {worth(spendable)}</p>
        </div>
      )}
      <PlanFacts plan={plan} isAllowanceShown={sells.value} />
    </section>
  );
}

/** Leaves out what is unlimited or missing. */
function PlanFacts({ plan, isAllowanceShown = false }: { plan: Plan; isAllowanceShown?: boolean }): VNode {
  const facts = [
    isAllowanceShown && plan.tokens_per_day > 0 ? `${count(plan.tokens_per_day)} balance tokens a day` : null,
    factOf(plan.coder_calls_per_window, "coder calls in 4 hours"),
    factOf(plan.searches_per_day, "web searches a day"),
    ...countsInWords({ ...plan, weight: null }, count),
    (plan.weight ?? 1) > 1 ? `${count(plan.weight!)} times the share when accounts compete for nodes` : null,
    plan.batch_discount > 0 ? `Batches cost ${Math.round(plan.batch_discount * 100)} % less` : null,
    plan.priority === "standard"
      ? null
      : plan.priority === "bulk"
        ? "Requests give way to others"
        : "Requests go first",
    plan.priority_max === plan.priority ? null : `x-priority up to ${plan.priority_max}`,
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

const factOf = (amount: number | null, what: string): string | null =>
  amount === null || amount === 0 ? null : `${count(amount)} ${what}`;

type PartProps = Readonly<{ page: PlanPageReply; onRequested: () => void }>;

function Plans({ page, onRequested }: PartProps): VNode {
  const [wanted, setWanted] = useState<Plan | null>(null);
  const asked = page.requests.find(({ kind, state }) => kind === "plan" && state === "pending")?.plan ?? null;
  return (
    <section class="grid-3" aria-label="Plans">
      {page.plans.map((plan) => (
        <article key={plan.id} class={plan.id === page.plan ? "card plan current" : "card plan"}>
          <div class="plan-name">
            <h2>{plan.name}</h2>
            {plan.id === page.plan && <span class="badge accent">Your plan</span>}
            {plan.id === asked && <span class="badge warn">Requested</span>}
          </div>
          {plan.unlimited && <p class="figure">Unlimited</p>}
          {sells.value && plan.tokens_per_day > 0 && (
            <div>
              <p class="figure">{count(plan.tokens_per_day)}</p>
              <p class="quiet small-text">balance tokens a day, worth {price(plan.worth_usd)}</p>
            </div>
          )}
          <PlanFacts plan={plan} />
          {plan.id !== page.plan && (
            <Button
              caption={plan.id === asked ? "Requested" : `Change to ${plan.name}`}
              class="button block"
              disabled={plan.id === asked}
              onClick={() => setWanted(plan)}
              aria-label={`Change to ${plan.name}`}
            />
          )}
        </article>
      ))}
      {wanted !== null && (
        <RequestDialog
          title={`Change to ${wanted.name}?`}
          about={`An operator of this server decides on plan changes.${sells.value ? " Tokens used today count in the new plan too." : ""}`}
          send={(note) => post("/plan/requests", { kind: "plan", plan: wanted.id, note })}
          onClose={() => setWanted(null)}
          onRequested={onRequested}
        />
      )}
    </section>
  );
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
        <h2>Buy credit</h2>
        <p class="quiet small-text">
          You have {count(page.credit)} balance tokens of credit, worth {worth(page.credit)}.
        </p>
      </div>
      <div class="stack" role="group" aria-label="Amount">
        {page.packs.map((pack) => (
          <Pack
            key={pack.tokens}
            name={`${count(pack.tokens)} balance tokens`}
            priceUsd={pack.price_usd}
            chosen={!custom && tokens === pack.tokens}
            onChoose={() => {
              setCustom(false);
              setTokens(pack.tokens);
            }}
          />
        ))}
        <Pack
          name="Custom amount"
          priceUsd={custom && valid ? (tokens / 1e6) * usd_per_million : null}
          chosen={custom}
          onChoose={() => setCustom(true)}
        />
      </div>
      {custom && <CustomAmount limits={page.custom} tokens={tokens} isValid={valid} onTokens={setTokens} />}
      <FormError message={checkout.error} />
      <Button
        caption={page.payment === null ? "Request credit" : `Pay with ${page.payment}`}
        class="button primary block"
        disabled={!valid}
        busy={checkout.busy}
        onClick={buy}
      />
      {asking && (
        <RequestDialog
          title={`Request ${count(tokens)} balance tokens?`}
          about={`Worth ${worth(tokens)}. An operator of this server approves it and arranges the payment.`}
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
  const range = `${count(min)} to ${count(max)}`;
  return (
    <NumberField
      label="Tokens"
      hint={`From ${range}, at ${dollars(price)} for each million`}
      error={isValid ? null : `A whole number from ${range}`}
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
      submit="Send request"
      onSubmit={async () => {
        await send(note.trim() === "" ? undefined : note.trim());
        onClose();
        onRequested();
        toast("The request was sent to the operator.");
      }}
      onClose={onClose}
    >
      <p class="quiet">{about}</p>
      <LongField label="Note to the operator (optional)" rows={2} maxLength={500} value={note} onValue={setNote} />
    </FormDialog>
  );
}

const Requests = ({ page, onChanged }: { page: PlanPageReply; onChanged: () => void }): VNode => (
  <Card title="Your requests">
    {page.requests.length === 0 && page.payments.length === 0 && (
      <Empty icon="requests" title="Nothing requested yet">
        Your requests for plans{sells.value && " and credit"} are listed here with their state.
      </Empty>
    )}
    <ul class="item-list">
      {page.requests.map((request) => (
        <RequestItem key={request.id} request={request} onWithdrawn={onChanged} />
      ))}
      {page.payments.map((payment) => (
        <li key={payment.id}>
          <div>
            <p>Paid for {count(payment.tokens)} balance tokens</p>
            <p class="quiet small-text">{date(payment.paid_at)}</p>
          </div>
          <span class="badge good">Paid</span>
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
        {request.decision_note !== "" && <> · “{request.decision_note}”</>}
      </p>
    </div>
    <div class="row">
      <StateBadge state={request.state} />
      {request.state === "pending" && (
        <AskButton
          caption="Withdraw"
          label={`Withdraw: ${requestTitle(request)}`}
          class="button small"
          title="Withdraw this request?"
          confirm="Withdraw"
          onConfirm={async () => {
            await post(`/plan/requests/${request.id}/withdraw`);
            onWithdrawn();
            toast("The request was withdrawn.");
          }}
        >
          <p>{requestTitle(request)}</p>
        </AskButton>
      )}
    </div>
  </li>
);
