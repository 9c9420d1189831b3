// The line for the nodes, live: who waits and who runs, and how the work of the last hour was shared.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { OperatorLine } from "../../../api/line.ts";
import { now } from "../../clock.ts";
import { count, shortTime } from "../../format.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Card } from "../../parts/card.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { figures, Table } from "../../parts/table.tsx";
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

const sinceOf = (time: string): string => shortTime(Math.max(0, now() - Date.parse(time)));

const Priority = ({ of }: { of: OperatorLine["next"][number]["priority"] }): VNode => (
  <span class="row nowrap priority">
    <span class={`swatch priority-${of}`} />
    {t(`class.${of}`)}
  </span>
);

const Figure = ({ name, text }: { name: string; text: string }): VNode => (
  <td class="number" data-name={name}>
    {text}
  </td>
);

function InLine({ line: { next, waiting } }: { line: OperatorLine }): VNode {
  const unseen = sumOf(waiting) - next.reduce((sum, { requests }) => sum + requests, 0);
  return (
    <Card title={t("line.in_line")} side={<span class="quiet small-text">{t("line.next_first")}</span>}>
      {next.length === 0 ? (
        <Empty icon="check" title={t("line.none_waits")} />
      ) : (
        <Table
          role="region"
          aria-label={t("line.in_line")}
          tabIndex={0}
          caption={t("line.in_line_about")}
          columns={[
            t("line.account_user"),
            t("common.class"),
            t("common.model"),
            ...figures(t("common.requests"), t("line.waits_for"), t("line.place"), t("line.first_token_in")),
          ]}
        >
          {next.map(({ account, user, priority, models, requests, since, position, expected_first_token_ms: ms }) => (
            <tr key={`${account.id} ${user} ${priority}`}>
              <td class="break">
                <AccountLink name={account.email} />
                <p class="quiet small-text">{user}</p>
              </td>
              <td>
                <Priority of={priority} />
              </td>
              <td class="break">{models.join(", ")}</td>
              <Figure name={t("common.requests")} text={count(requests)} />
              <Figure name={t("line.waits_for")} text={sinceOf(since)} />
              <Figure name={t("line.place")} text={position === null ? "–" : count(position)} />
              <Figure name={t("line.first_token_in")} text={ms === null ? "–" : shortTime(ms)} />
            </tr>
          ))}
        </Table>
      )}
      {unseen > 0 && <p class="table-foot quiet small-text">{t("line.unseen", { unseen })}</p>}
    </Card>
  );
}

const OnNodes = ({ running }: { running: OperatorLine["running"] }): VNode => (
  <Card title={t("line.on_nodes")}>
    {running.length === 0 ? (
      <Empty icon="nodes" title={t("line.none_runs")} />
    ) : (
      <Table
        role="region"
        aria-label={t("line.on_nodes")}
        tabIndex={0}
        caption={t("line.on_nodes_about")}
        columns={[
          t("common.account"),
          t("common.class"),
          t("common.model"),
          t("common.node"),
          ...figures(t("common.requests"), t("line.reading"), t("line.oldest")),
        ]}
      >
        {running.map(({ account, priority, model, node, requests, reading, since }) => (
          <tr key={`${account.id} ${priority} ${model} ${node}`}>
            <td class="break">
              <AccountLink name={account.email} />
            </td>
            <td>
              <Priority of={priority} />
            </td>
            <td class="break">{model}</td>
            <td class="break">{node}</td>
            <Figure name={t("common.requests")} text={count(requests)} />
            <Figure name={t("line.reading")} text={count(reading)} />
            <Figure name={t("line.oldest")} text={sinceOf(since)} />
          </tr>
        ))}
      </Table>
    )}
  </Card>
);
