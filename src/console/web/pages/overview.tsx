// The overview: what is left to spend, what runs now and what the last requests cost. Live while it is open.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AccountNumbers, Overview } from "../../api.ts";
import { count, dollars, plural, worth } from "../format.ts";
import { Countdown } from "../parts/countdown.tsx";
import { Meter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { UsageTable } from "../parts/usage-table.tsx";
import { get } from "../request.ts";
import { useResource } from "../resource.ts";
import { numbers } from "../session.ts";

export function OverviewPage(): VNode {
  const overview = useResource(() => get<Overview>("/overview"), "overview");
  useReloadAfterRequests(overview.reload);
  return (
    <Page
      title="Overview"
      lead={overview.value === null ? undefined : <>You are on the {overview.value.plan.name} plan.</>}
      actions={
        <>
          <a class="button" href="/plan">
            Add credit
          </a>
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

/** A request that ended has a row and a price: the list and the sums are asked for again. */
function useReloadAfterRequests(reload: () => void): void {
  const current = numbers.value;
  const moved = current === null ? null : `${current.allowance.left} ${current.credit} ${current.coder_calls.left}`;
  const before = useRef(moved);
  useEffect(() => {
    if (before.current !== null && moved !== before.current) reload();
    before.current = moved;
  }, [moved]);
}

const Balance = ({ of }: { of: AccountNumbers }): VNode => (
  <section class="card hero" aria-label="Balance">
    <div>
      <span class="figure-name">To spend now</span>
      <strong class={of.spendable < 0 ? "big below" : "big"}>{count(of.spendable)}</strong>
      <span class="quiet">tokens, worth {worth(of.spendable)}</span>
    </div>
    <div class="stack">
      <Meter
        name="Today's allowance"
        left={of.allowance.left}
        of={of.allowance.granted}
        about={
          <>
            Renews in <Countdown to={of.allowance.renews_at} />
          </>
        }
      />
      <dl class="facts">
        <dt>Purchased credit</dt>
        <dd class="number">{count(of.credit)}</dd>
        <dt>Reserved by open requests</dt>
        <dd class="number">{of.reserved.tokens === 0 ? "0" : `−${count(of.reserved.tokens)}`}</dd>
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
    <div class="card stack">
      <div>
        <span class="figure-name">Spent today</span>
        <p class="figure">{dollars(spend.today_usd)}</p>
      </div>
      <p class="quiet small-text">{dollars(spend.days30_usd)} in the last 30 days</p>
    </div>
    <div class="card">
      <Meter
        name="Coder calls"
        left={of.coder_calls.left}
        of={of.coder_calls.limit}
        about={
          <>
            New window in <Countdown to={of.coder_calls.renews_at} />
          </>
        }
      />
    </div>
    <div class="card">
      <Meter
        name="Web searches"
        left={of.searches.left}
        of={of.searches.limit}
        about={
          <>
            Renew in <Countdown to={of.searches.renews_at} />
          </>
        }
      />
    </div>
  </section>
);

const LastRequests = ({ rows }: { rows: Overview["last_requests"] }): VNode => (
  <section class="card flush">
    <header>
      <h2>Last requests</h2>
      {rows.length > 0 && <a href="/usage">All usage</a>}
    </header>
    {rows.length === 0 ? (
      <Empty icon="bolt" title="No requests yet">
        Try a model in the <a href="/playground">playground</a>, or take your <a href="/key">API key</a> into your own
        program.
      </Empty>
    ) : (
      <UsageTable rows={rows} caption="The last ten requests, newest first" />
    )}
  </section>
);
