// The overview: the balance, running requests and the cost of the last ones. Live while it is open.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AccountNumbers } from "../../api/live.ts";
import type { Overview } from "../../api/overview.ts";
import { count, dollars, plural, worth } from "../format.ts";
import { Countdown } from "../parts/countdown.tsx";
import { LeftMeter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { UsageTable } from "../parts/usage-table.tsx";
import { get } from "../request.ts";
import { useResource } from "../resource.ts";
import { isFreeOfCharge, numbers, sells, session } from "../session.ts";
import { Fact } from "../parts/fact.tsx";
import { Card } from "../parts/card.tsx";

export function OverviewPage(): VNode {
  const overview = useResource(() => get("/overview"), "overview");
  useReloadAfterRequests(overview.reload);
  return (
    <Page
      title="Overview"
      lead={
        overview.value === null || session.value?.plans.length === 1 ? undefined : (
          <>You are on the {overview.value.plan.name} plan.</>
        )
      }
      actions={
        <>
          {overview.value?.numbers.spendable !== null && sells.value && (
            <a class="button" href="/plan">
              Add credit
            </a>
          )}
          <a class="button primary" href="/playground">
            Open the playground
          </a>
        </>
      }
    >
      <Loaded resource={overview} lines={8}>
        {(value) => (
          <div class="stack-large">
            <Balance of={numbers.value ?? value.numbers} />
            <Limits of={numbers.value ?? value.numbers} spend={value.spend} />
            <LastRequests rows={value.last_requests} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

/** Reloads the list and the sums after each request, which adds a row and a price. */
function useReloadAfterRequests(reload: () => void): void {
  const current = numbers.value;
  // If nothing is limited, only the number of running requests changes.
  const moved =
    current === null
      ? null
      : `${current.allowance.left ?? current.requests_in_flight} ${current.credit} ${current.coder_calls.left}`;
  const before = useRef(moved);
  useEffect(() => {
    if (before.current !== null && moved !== before.current) reload();
    before.current = moved;
  }, [moved]);
}

const Balance = ({ of }: { of: AccountNumbers }): VNode | null =>
  of.spendable === null || !sells.value ? null : <LimitedBalance of={of} spendable={of.spendable} />;

const LimitedBalance = ({ of, spendable }: { of: AccountNumbers; spendable: number }): VNode => (
  <section class="card hero" aria-label="Balance">
    <div>
      <span class="figure-name">To spend now</span>
      <strong class={spendable < 0 ? "big below" : "big"}>{count(spendable)}</strong>
      <span class="quiet">balance tokens, worth {worth(spendable)}</span>
    </div>
    <div class="stack">
      {of.allowance.left !== null && of.allowance.granted !== null && of.allowance.granted > 0 && (
        <LeftMeter
          name="Today's allowance"
          left={of.allowance.left}
          of={of.allowance.granted}
          about={
            <>
              Renews in <Countdown to={of.allowance.renews_at} />
            </>
          }
        />
      )}
      <dl class="facts">
        <Fact name="Purchased credit" class="number" value={count(of.credit)} />
        <Fact
          name="Reserved by open requests"
          class="number"
          value={of.reserved.tokens === 0 ? "0" : `−${count(of.reserved.tokens)}`}
        />
      </dl>
    </div>
  </section>
);

const Limits = ({ of, spend }: { of: AccountNumbers; spend: Overview["spend"] }): VNode => (
  <section class="grid-4" aria-label="Limits and spend">
    <div class="card stack">
      <div>
        <span class="figure-name">In flight</span>
        <p class="figure">
          {count(of.requests_in_flight)}
          <span class="figure-unit">{of.requests_in_flight === 1 ? "request" : "requests"}</span>
        </p>
      </div>
      <p class="quiet small-text">{plural(of.reserved.requests, "open reservation")}</p>
    </div>
    {!isFreeOfCharge([{ billed_tokens: spend.days30_tokens }]) && (
      <div class="card stack">
        <div>
          <span class="figure-name">Spent today</span>
          <p class="figure">{dollars(spend.today_usd)}</p>
        </div>
        <p class="quiet small-text">{dollars(spend.days30_usd)} in the last 30 days</p>
      </div>
    )}
    <LimitCard name="Coder calls" limit={of.coder_calls} renews="New window in" />
    <LimitCard name="Web searches" limit={of.searches} renews="Renew in" />
  </section>
);

type LimitCardProps = Readonly<{ name: string; limit: AccountNumbers["searches"]; renews: string }>;

/** Nothing for an unlimited or missing quota. */
function LimitCard({ name, limit: { left, limit, renews_at }, renews }: LimitCardProps): VNode | null {
  if (left === null || limit === null || limit === 0) return null;
  return (
    <div class="card">
      <LeftMeter
        name={name}
        left={left}
        of={limit}
        about={
          <>
            {renews} <Countdown to={renews_at} />
          </>
        }
      />
    </div>
  );
}

const LastRequests = ({ rows }: { rows: Overview["last_requests"] }): VNode => (
  <Card title="Last requests" side={rows.length > 0 && <a href="/usage">All usage</a>}>
    {rows.length === 0 ? (
      <Empty icon="bolt" title="No requests yet">
        Try a model in the <a href="/playground">playground</a>, or use your <a href="/key">API key</a> in your own
        program.
      </Empty>
    ) : (
      <UsageTable rows={rows} caption="The last ten requests, newest first" />
    )}
  </Card>
);
