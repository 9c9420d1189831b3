// The overview: the balance, running requests and the cost of the last ones. Live while it is open.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AccountNumbers } from "../../api/live.ts";
import type { Overview } from "../../api/overview.ts";
import { count, dollars, worth } from "../format.ts";
import { Countdown } from "../parts/countdown.tsx";
import { LeftMeter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { RecentUse } from "../parts/use-chart.tsx";
import { UsageTable } from "../parts/usage-table.tsx";
import { get } from "../request.ts";
import { useResource } from "../resource.ts";
import { isFreeOfCharge, numbers, sells, session } from "../session.ts";
import { Fact } from "../parts/fact.tsx";
import { Card } from "../parts/card.tsx";
import { rich, t } from "../texts.ts";

export function OverviewPage(): VNode {
  const overview = useResource(() => get("/overview"), "overview");
  useReloadAfterRequests(overview.reload);
  return (
    <Page
      title={t("menu.overview")}
      lead={
        overview.value === null || session.value?.plans.length === 1
          ? undefined
          : t("overview.plan", { plan: overview.value.plan.name })
      }
      actions={
        <>
          {overview.value?.numbers.spendable !== null && sells.value && (
            <a class="button" href="/plan">
              {t("overview.add_credit")}
            </a>
          )}
          <a class="button primary" href="/playground">
            {t("overview.playground")}
          </a>
        </>
      }
    >
      <Loaded resource={overview} lines={8}>
        {(value) => (
          <div class="stack-large">
            <Balance of={numbers.value ?? value.numbers} />
            <Limits of={numbers.value ?? value.numbers} spend={value.spend} />
            <section class="card">
              <RecentUse />
            </section>
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
  <section class="card hero" aria-label={t("menu.balance")}>
    <div>
      <span class="figure-name">{t("left.to_spend")}</span>
      <strong class={spendable < 0 ? "big below" : "big"}>{count(spendable)}</strong>
      <span class="quiet">{t("overview.worth", { worth: worth(spendable) })}</span>
    </div>
    <div class="stack">
      {of.allowance.left !== null && of.allowance.granted !== null && of.allowance.granted > 0 && (
        <LeftMeter
          name={t("left.allowance")}
          left={of.allowance.left}
          of={of.allowance.granted}
          about={rich("overview.renews", { time: <Countdown to={of.allowance.renews_at} /> })}
        />
      )}
      <dl class="facts">
        <Fact name={t("left.credit")} class="number" value={count(of.credit)} />
        <Fact
          name={t("overview.reserved")}
          class="number"
          value={of.reserved.tokens === 0 ? "0" : `−${count(of.reserved.tokens)}`}
        />
      </dl>
    </div>
  </section>
);

const Limits = ({ of, spend }: { of: AccountNumbers; spend: Overview["spend"] }): VNode => (
  <section class="grid-4" aria-label={t("overview.limits")}>
    <div class="card stack">
      <div>
        <span class="figure-name">{t("overview.in_flight")}</span>
        <p class="figure">
          {count(of.requests_in_flight)}
          <span class="figure-unit">{t("overview.requests", { requests: of.requests_in_flight })}</span>
        </p>
      </div>
      <p class="quiet small-text">{t("overview.reservations", { reservations: of.reserved.requests })}</p>
    </div>
    {!isFreeOfCharge([{ billed_tokens: spend.days30_tokens }]) && (
      <div class="card stack">
        <div>
          <span class="figure-name">{t("overview.spent_today")}</span>
          <p class="figure">{dollars(spend.today_usd)}</p>
        </div>
        <p class="quiet small-text">{t("overview.spent_30", { amount: dollars(spend.days30_usd) })}</p>
      </div>
    )}
    <LimitCard name={t("overview.coder_calls")} limit={of.coder_calls} isWindow />
    <LimitCard name={t("overview.searches")} limit={of.searches} />
  </section>
);

type LimitCardProps = Readonly<{ name: string; limit: AccountNumbers["searches"]; isWindow?: boolean }>;

/** Nothing for an unlimited or missing quota. */
function LimitCard({ name, limit: { left, limit, renews_at }, isWindow }: LimitCardProps): VNode | null {
  if (left === null || limit === null || limit === 0) return null;
  return (
    <div class="card">
      <LeftMeter
        name={name}
        left={left}
        of={limit}
        about={rich(isWindow ? "overview.new_window" : "overview.renews", { time: <Countdown to={renews_at} /> })}
      />
    </div>
  );
}

const LastRequests = ({ rows }: { rows: Overview["last_requests"] }): VNode => (
  <Card title={t("overview.last")} side={rows.length > 0 && <a href="/usage">{t("overview.all_requests")}</a>}>
    {rows.length === 0 ? (
      <Empty icon="bolt" title={t("usage.none")}>
        {rich("overview.none_about", {
          playground: (inner) => <a href="/playground">{inner}</a>,
          key: (inner) => <a href="/key">{inner}</a>,
        })}
      </Empty>
    ) : (
      <UsageTable rows={rows} caption={t("overview.last_ten")} />
    )}
  </Card>
);
