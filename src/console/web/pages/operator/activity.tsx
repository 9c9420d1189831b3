// Where operators land: what needs them, what runs now, and what was used over time by all accounts or one.
import type { VNode } from "preact";
import type { OperatorAlert, OperatorTotals } from "../../../api/server.ts";
import type { OverTime as Answer } from "../../../api/over-time.ts";
import { count, date } from "../../format.ts";
import { Figure } from "../../parts/figure.tsx";
import { OverTime } from "../../parts/over-time.tsx";
import { Page } from "../../parts/page.tsx";
import { Icon, type IconName } from "../../parts/icons.tsx";
import { Failure, isFirstLoad, Loading } from "../../parts/states.tsx";
import { said } from "../../phrases.ts";
import { get, search } from "../../request.ts";
import { type Resource, useResource } from "../../resource.ts";
import { changeQuery, place } from "../../route.ts";
import { operatorNumbers, sells } from "../../session.ts";
import { t } from "../../texts.ts";
import { Card } from "../../parts/card.tsx";
import { countedIn } from "./counted.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";

const splits = ["model", "account", "node", "key", "endpoint"] as const;

export function ActivityPage(): VNode {
  const totals = useResource(() => get("/operator/totals"), `${operatorNumbers.value?.alerts ?? 0}`);
  return (
    <Page title={t("menu.activity")} lead={t("activity.lead")}>
      {isFirstLoad(totals) && <Loading lines={6} />}
      {/* Loads meanwhile, but is hidden until what needs the operator has its height. */}
      <div class="stack-large" hidden={isFirstLoad(totals)}>
        <Now totals={totals} />
        <OverTime
          account="*"
          splits={splits}
          counted={countedIn({})}
          below={(answer) => answer.reasons.length > 0 && <Reasons of={answer} />}
        >
          <input
            type="search"
            aria-label={t("over_time.split_account")}
            placeholder={t("activity.account")}
            value={place.value.query.get("account") ?? ""}
            onChange={({ currentTarget }) => changeQuery({ account: currentTarget.value.trim() })}
          />
        </OverTime>
      </div>
    </Page>
  );
}

function Now({ totals }: { totals: Resource<OperatorTotals> }): VNode {
  const now = operatorNumbers.value ?? totals.value;
  const gateways = operatorNumbers.value?.gateways;
  return (
    <>
      {totals.error !== null && <Failure message={totals.error} onRetry={totals.reload} />}
      {totals.value !== null && totals.value.alerts.length > 0 && <Alerts alerts={totals.value.alerts} />}
      <section class="grid-4" aria-label={t("activity.now")}>
        <Figure name={t("activity.in_flight")} value={now === null ? null : count(now.requests_in_flight)}>
          <a href="/operator/line">
            {gateways === undefined
              ? t("activity.waiting", { waiting: operatorNumbers.value?.waiting ?? 0 })
              : t("activity.gateways", { gateways })}
          </a>
        </Figure>
        {sells.value && (
          <Figure name={t("activity.reserved")} value={now === null ? null : count(now.reserved_tokens)}>
            {t("activity.reserved_about")}
          </Figure>
        )}
        <Figure name={t("menu.accounts")} value={totals.value === null ? null : count(totals.value.accounts)}>
          <a href="/operator/accounts">{t("activity.all_accounts")}</a>
        </Figure>
        <Figure
          name={t("activity.to_decide")}
          value={totals.value === null ? null : count(totals.value.pending_purchase_requests)}
        >
          <a href="/operator/requests">{t("activity.all_requests")}</a>
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
  old_backup: "history",
  certificate: "key",
  node_certificate: "key",
  account: "account",
  mail: "warning",
} as const satisfies Readonly<Record<OperatorAlert["kind"], IconName>>;

const Alerts = ({ alerts }: { alerts: readonly OperatorAlert[] }): VNode => (
  <Card title={t("activity.needs_you")} class="card flush alerts" role="region" aria-label={t("activity.needs_you")}>
    <ul>
      {alerts.map(({ kind, about, values, path }) => (
        <li key={kind + about}>
          <a href={path}>
            <Icon name={alertIcons[kind]} size={16} /> {t(`alert.${kind}`, shownValues(values))}
          </a>
        </li>
      ))}
    </ul>
  </Card>
);

/** As they stand in its sentence. */
const shownValues = ({ day = "", problem = "", ...values }: OperatorAlert["values"]): OperatorAlert["values"] => ({
  ...values,
  day: day === "" ? "" : date(day),
  problem: said(String(problem)),
});

type Reason = Answer["reasons"][number];

/** They are of all requests of the time, whatever the figures are limited to. */
const reasonColumns = ({ from, until: to }: Answer): readonly DataColumn<Reason>[] => {
  const link = (reason: string, shown: string): VNode => (
    <a href={`/operator/log${search({ reason, from, to })}`}>{shown}</a>
  );
  return [
    {
      id: "reason",
      name: "activity.reason",
      sort: ({ reason }) => reason,
      cell: ({ reason }) => link(reason, reason.replaceAll("_", " ")),
    },
    figureColumn("status", "activity.status", ({ status }) => status || null, String),
    figureColumn("requests", "common.requests", ({ requests }) => requests, count, {
      cell: ({ reason, requests }) => link(reason, count(requests)),
    }),
  ];
};

const Reasons = ({ of: answer }: { of: Answer }): VNode => (
  <Card title={t("activity.refused")}>
    <DataTable
      name="reasons"
      prefix="reason_"
      caption={t("activity.refused")}
      columns={reasonColumns(answer)}
      rows={answer.reasons}
      rowKey={({ reason }) => reason}
      first="-requests"
    />
  </Card>
);
