// The line for the nodes, live: who waits and who runs, and how the work of the last hour was shared.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { OperatorLine } from "../../../api/line.ts";
import { now } from "../../clock.ts";
import { shortTime } from "../../format.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Card } from "../../parts/card.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { Page } from "../../parts/page.tsx";
import { Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { Caches } from "./line-caches.tsx";
import { Lanes } from "./line-lanes.tsx";
import { Shares } from "./line-shares.tsx";
import { t } from "../../texts.ts";

const refreshMs = 1_000;

export function LinePage(): VNode {
  const line = useResource(() => get("/operator/line"), "line");
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && line.reload(), refreshMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title={t("menu.line")} lead={line.value === null ? t("line.lead") : leadOf(line.value)}>
      <Loaded resource={line} lines={10}>
        {(value) => <Shown line={value} />}
      </Loaded>
    </Page>
  );
}

const sumOf = ({ interactive, standard, bulk }: OperatorLine["waiting"]): number => interactive + standard + bulk;

function leadOf({ waiting, nodes }: OperatorLine): string {
  const running = nodes.reduce((sum, node) => sum + sumOf(node.running), 0);
  return t("line.counts", { waiting: sumOf(waiting), running });
}

const Shown = ({ line }: { line: OperatorLine }): VNode => (
  <div class="stack-large">
    {line.gateway !== null && <p class="quiet break">{t("line.gateway", { gateway: line.gateway })}</p>}
    <Lanes line={line} />
    <InLine line={line} />
    <div class="grid-2">
      <Shares served={line.served} />
      <Caches nodes={line.nodes} />
    </div>
    <OnNodes running={line.running} />
  </div>
);

const Priority = ({ of }: { of: OperatorLine["next"][number]["priority"] }): VNode => (
  <span class="row nowrap priority">
    <span class={`swatch priority-${of}`} />
    {t(`class.${of}`)}
  </span>
);

type Waiting = OperatorLine["next"][number];
type Running = OperatorLine["running"][number];

const ageOf = ({ since }: Readonly<{ since: string }>): number => Math.max(0, now() - Date.parse(since));

const waitingColumns: readonly DataColumn<Waiting>[] = [
  {
    ...{ id: "account", name: "line.account_user", look: "parted" },
    cell: ({ account, user }) => (
      <>
        <AccountLink name={account.email} />
        <p class="quiet small-text">{user}</p>
      </>
    ),
  },
  { id: "class", name: "common.class", cell: ({ priority }) => <Priority of={priority} /> },
  { id: "model", name: "common.model", look: "parted", cell: ({ models }) => models.join(", ") },
  figureColumn("requests", "common.requests", ({ requests }) => requests),
  figureColumn("waits", "line.waits_for", ageOf, shortTime),
  figureColumn("place", "line.place", ({ position }) => position),
  figureColumn("first_token", "line.first_token_in", (row) => row.expected_first_token_ms, shortTime),
];

const runningColumns: readonly DataColumn<Running>[] = [
  {
    ...{ id: "account", name: "common.account", look: "parted" },
    cell: ({ account }) => <AccountLink name={account.email} />,
  },
  { id: "class", name: "common.class", cell: ({ priority }) => <Priority of={priority} /> },
  { id: "model", name: "common.model", look: "parted", sort: ({ model }) => model, cell: ({ model }) => model },
  { id: "node", name: "common.node", look: "parted", sort: ({ node }) => node, cell: ({ node }) => node },
  figureColumn("requests", "common.requests", ({ requests }) => requests),
  figureColumn("reading", "line.reading", ({ reading }) => reading),
  figureColumn("oldest", "line.oldest", ageOf, shortTime),
];

function InLine({ line: { next, waiting } }: { line: OperatorLine }): VNode {
  const unseen = sumOf(waiting) - next.reduce((sum, { requests }) => sum + requests, 0);
  return (
    <Card
      title={t("line.in_line")}
      aria-label={t("line.in_line")}
      side={<span class="quiet small-text">{t("line.next_first")}</span>}
    >
      {next.length === 0 ? (
        <p class="card-text quiet">{t("line.none_waits")}</p>
      ) : (
        <DataTable
          caption={t("line.in_line_about")}
          columns={waitingColumns}
          rows={next}
          rowKey={({ account, user, priority }) => `${account.id} ${user} ${priority}`}
          first=""
          prefix="line-"
        />
      )}
      {unseen > 0 && <p class="table-foot quiet small-text">{t("line.unseen", { unseen })}</p>}
    </Card>
  );
}

const OnNodes = ({ running }: { running: OperatorLine["running"] }): VNode => (
  <Card title={t("line.on_nodes")} aria-label={t("line.on_nodes")}>
    {running.length === 0 ? (
      <p class="card-text quiet">{t("line.none_runs")}</p>
    ) : (
      <DataTable
        caption={t("line.on_nodes_about")}
        columns={runningColumns}
        rows={running}
        rowKey={({ account, priority, model, node }) => `${account.id} ${priority} ${model} ${node}`}
        first=""
        prefix="nodes-"
      />
    )}
  </Card>
);
