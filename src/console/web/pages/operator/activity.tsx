// Where operators land: what needs them, what runs now, and activity over time by model, node, account or key.
import type { VNode } from "preact";
import type { OperatorAlert } from "../../../api/server.ts";
import type { ActivityFigures, ActivityPage as Activity, ActivityQuery } from "../../../api/activity.ts";
import { compact, count, date, dollars, shortTime } from "../../format.ts";
import { Choice } from "../../parts/choice.tsx";
import { Figure } from "../../parts/figure.tsx";
import { Page } from "../../parts/page.tsx";
import { Icon, type IconName } from "../../parts/icons.tsx";
import { Empty, Failure, Loaded } from "../../parts/states.tsx";
import { TimeChart, type TimeSeries } from "../../parts/time-chart.tsx";
import { get, search } from "../../request.ts";
import { useEvery, useResource } from "../../resource.ts";
import { navigate, place } from "../../route.ts";
import { isFreeOfCharge, operatorNumbers, sells } from "../../session.ts";
import { Card } from "../../parts/card.tsx";
import { figures, Table } from "../../parts/table.tsx";

/** How often the visible page reloads its charts. */
const refreshMs = 15_000;
const soonMs = 3_000;
const dayMs = 86_400_000;

const ranges = {
  "1h": "1 hour",
  "6h": "6 hours",
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
};
const splits = { model: "By model", node: "By node", account: "By account", key: "By key" };

/** The choice is part of the page's address, so that people can bookmark and share it. */
function queryOf(query: URLSearchParams): ActivityQuery {
  const [range, by] = [query.get("range") ?? "", query.get("by") ?? ""];
  return {
    range: Object.hasOwn(ranges, range) ? (range as ActivityQuery["range"]) : "24h",
    by: Object.hasOwn(splits, by) ? (by as ActivityQuery["by"]) : "model",
  };
}

export function ActivityPage(): VNode {
  const query = queryOf(place.value.query);
  const activity = useResource(() => get("/operator/activity", query), search(query));
  const ms = activity.value?.is_complete === false ? soonMs : refreshMs;
  useEvery(ms, () => document.visibilityState === "visible" && activity.reload());
  const show = (change: Partial<ActivityQuery>): void =>
    navigate(`/operator${search({ ...query, ...change })}`, { replace: true });
  return (
    <Page title="Activity" lead="All accounts of this server. Days in UTC.">
      <div class="stack-large">
        <Now />
        <div class="row activity-choice">
          <Choice name="Range" options={ranges} chosen={query.range} onChoose={(range) => show({ range })} />
          <Choice name="Split" options={splits} chosen={query.by} onChoose={(by) => show({ by })} />
        </div>
        <Loaded resource={activity} lines={10}>
          {(value) => <Shown activity={value} />}
        </Loaded>
      </div>
    </Page>
  );
}

function Now(): VNode {
  const totals = useResource(() => get("/operator/totals"), `${operatorNumbers.value?.alerts ?? 0}`);
  const now = operatorNumbers.value ?? totals.value;
  const gateways = operatorNumbers.value?.gateways;
  const inAll = gateways === undefined ? null : gateways === 1 ? "all gateways: 1" : `all ${count(gateways)} gateways`;
  return (
    <>
      {totals.error !== null && <Failure message={totals.error} onRetry={totals.reload} />}
      {totals.value !== null && totals.value.alerts.length > 0 && <Alerts alerts={totals.value.alerts} />}
      <section class="grid-4" aria-label="Now">
        <Figure name="In flight" value={now === null ? null : count(now.requests_in_flight)}>
          <a href="/operator/line">{inAll ?? `${count(operatorNumbers.value?.waiting ?? 0)} waiting for a node`}</a>
        </Figure>
        {sells.value && (
          <Figure name="Reserved" value={now === null ? null : count(now.reserved_tokens)}>
            balance tokens of open requests{inAll === null ? "" : `, ${inAll}`}
          </Figure>
        )}
        <Figure name="Accounts" value={totals.value === null ? null : count(totals.value.accounts)}>
          <a href="/operator/accounts">All accounts</a>
        </Figure>
        <Figure
          name="Requests to decide"
          value={totals.value === null ? null : count(totals.value.pending_purchase_requests)}
        >
          <a href="/operator/requests">All requests</a>
        </Figure>
      </section>
    </>
  );
}

const alertIcons = {
  ledger: "warning",
  node: "nodes",
  model: "models",
  disk: "save",
  backup: "history",
  certificate: "key",
  account: "account",
  mail: "warning",
} as const satisfies Readonly<Record<OperatorAlert["kind"], IconName>>;

const Alerts = ({ alerts }: { alerts: readonly OperatorAlert[] }): VNode => (
  <Card title="Needs you" class="card flush alerts" role="region" aria-label="Needs you">
    <ul>
      {alerts.map(({ kind, text, path }) => (
        <li key={text}>
          <a href={path}>
            <Icon name={alertIcons[kind]} size={16} /> {text}
          </a>
        </li>
      ))}
    </ul>
  </Card>
);

function Shown({ activity }: { activity: Activity }): VNode {
  const { all, series, step_ms: stepMs } = activity;
  const from = Date.parse(activity.from);
  const bySeries = (values: (figures: ActivityFigures) => TimeSeries["values"], lower?: typeof values): TimeSeries[] =>
    series.map(({ label, steps }) => ({
      label,
      values: values(steps),
      ...(lower === undefined ? {} : { lower: lower(steps) }),
    }));
  const sum = (one: readonly number[], other: readonly number[]) => one.map((value, at) => value + other[at]!);
  const results = (["answered", "left", "refused", "failed"] as const).map((label) => ({
    label: label === "left" ? "client left" : label,
    values: all.steps[label],
  }));
  const bars = (title: string, series: TimeSeries[]): VNode => (
    <TimeChart from={from} stepMs={stepMs} title={title} kind="bars" series={series} short={compact} />
  );
  const times = (title: string, series: TimeSeries[]): VNode => (
    <TimeChart
      from={from}
      stepMs={stepMs}
      title={title}
      kind="lines"
      series={series}
      short={shortTime}
      words={bothTimes}
    />
  );
  const tokens = bySeries((of) => sum(of.input, of.output));
  const refusals = bySeries((of) => sum(of.refused, of.failed));
  const waits = bySeries(
    (of) => of.wait_p95_ms,
    (of) => of.wait_p50_ms,
  );
  const firstTokens = bySeries(
    (of) => of.first_token_p95_ms,
    (of) => of.first_token_p50_ms,
  );
  return (
    <div class="stack-large">
      <Totals total={all.total} />
      {series.length === 0 ? (
        <section class="card">
          <Empty icon="activity" title="No requests in this time" />
        </section>
      ) : (
        <section class="grid-2" aria-label="Charts">
          {bars(
            "Requests",
            bySeries((of) => of.requests),
          )}
          {bars("Results", results)}
          {bars("Tokens, input and output", tokens)}
          {bars("Refused or failed", refusals)}
          {times("Wait for a node, p50 (dashed) and p95", waits)}
          {times("First token, p50 (dashed) and p95", firstTokens)}
        </section>
      )}
      <TopAccounts activity={activity} />
      <Refusals refusals={activity.refusals_today} />
    </div>
  );
}

const oneTime = (ms: number | null | undefined): string => (ms == null ? "–" : shortTime(ms));
const bothTimes = (upper: number | null, lower: number | null | undefined): string =>
  upper === null ? "–" : `${oneTime(lower)} / ${oneTime(upper)}`;

function Totals({ total }: { total: ActivityFigures }): VNode {
  const of = (values: readonly number[]): number => values[0] ?? 0;
  return (
    <section class="grid-4" aria-label="Totals">
      <Figure name="Requests" value={count(of(total.requests))}>
        {count(of(total.answered))} answered, {count(of(total.left))} with client gone
      </Figure>
      <Figure name="Refused or failed" value={count(of(total.refused) + of(total.failed))}>
        <a href="/operator/log?reason=failed">
          {count(of(total.refused))} refused, {count(of(total.failed))} failed
        </a>
      </Figure>
      <Figure name="Tokens" value={compact(of(total.input) + of(total.output))}>
        {count(of(total.input))} in, {count(of(total.output))} out
      </Figure>
      <Figure
        name="First token, p50 / p95"
        value={bothTimes(total.first_token_p95_ms[0] ?? null, total.first_token_p50_ms[0])}
      >
        wait for a node {bothTimes(total.wait_p95_ms[0] ?? null, total.wait_p50_ms[0])}
      </Figure>
    </section>
  );
}

function TopAccounts({
  activity: { from, top_accounts: accounts, is_complete: isComplete },
}: {
  activity: Activity;
}): VNode {
  const first = Math.floor(Date.parse(from) / dayMs) * dayMs;
  const isFree = isFreeOfCharge(accounts);
  return (
    <Card title="Top accounts" side={<span class="quiet small-text">since {date(first)}, 00:00 UTC</span>}>
      {accounts.length === 0 ? (
        <Empty
          icon="accounts"
          title={isComplete ? "No requests were answered" : "Still being computed. Look again in a moment."}
        />
      ) : (
        <Table
          role="region"
          aria-label="Top accounts"
          tabIndex={0}
          columns={[
            "Account",
            ...figures("Requests", "Input", "Output", ...(isFree ? [] : ["Balance tokens", "Worth"])),
          ]}
        >
          {accounts.map(({ id, email, requests, input, output, billed_tokens, cost_usd }) => (
            <tr key={id}>
              <td>
                <a href={`/operator/log${search({ account: email })}`}>{email}</a>
              </td>
              {[requests, input, output, ...(isFree ? [] : [billed_tokens])].map((value, at) => (
                <td key={at} class="number">
                  {count(value)}
                </td>
              ))}
              {!isFree && <td class="number">{dollars(cost_usd)}</td>}
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

const Refusals = ({ refusals }: { refusals: Activity["refusals_today"] }): VNode => (
  <Card title="Refused or failed today" side={<span class="quiet small-text">since 00:00 UTC</span>}>
    {refusals.length === 0 ? (
      <Empty icon="check" title="Every request was served today" />
    ) : (
      <Table columns={["Reason", ...figures("Status", "Requests")]}>
        {refusals.map(({ reason, status, requests }) => (
          <tr key={reason}>
            <td>
              <a href={`/operator/log${search({ reason })}`}>{reason.replaceAll("_", " ")}</a>
            </td>
            <td class="number">{status === 0 ? "–" : status}</td>
            <td class="number">{count(requests)}</td>
          </tr>
        ))}
      </Table>
    )}
  </Card>
);
