// The line for the nodes, live: who waits and who runs, and how the work of the last hour was shared.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { OperatorLine } from "../../../api/line.ts";
import { now } from "../../clock.ts";
import { count, plural, shortTime } from "../../format.ts";
import { Card } from "../../parts/card.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { figures, Table } from "../../parts/table.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { Caches } from "./line-caches.tsx";
import { Lanes } from "./line-lanes.tsx";
import { Shares } from "./line-shares.tsx";

const refreshMs = 1_000;

export function LinePage(): VNode {
  const line = useResource(() => get("/operator/line"), "line");
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && line.reload(), refreshMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title="Line" lead={line.value === null ? "Who waits for a node, and who runs" : leadOf(line.value)}>
      <Loaded resource={line} lines={10}>
        {(value) => <Shown line={value} />}
      </Loaded>
    </Page>
  );
}

const sumOf = ({ interactive, standard, bulk }: OperatorLine["waiting"]): number => interactive + standard + bulk;

function leadOf({ waiting, nodes }: OperatorLine): string {
  const running = nodes.reduce((sum, node) => sum + sumOf(node.running), 0);
  const waits = sumOf(waiting);
  return `${waits === 0 ? "No request waits" : waits === 1 ? "1 request waits" : `${count(waits)} requests wait`}, ${running === 0 ? "none runs" : running === 1 ? "1 runs" : `${count(running)} run`}`;
}

const Shown = ({ line }: { line: OperatorLine }): VNode => (
  <div class="stack-large">
    {line.gateway !== null && (
      <p class="quiet break">This is the line of the gateway {line.gateway}. Each gateway has its own.</p>
    )}
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
    {of}
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
    <Card title="In line" side={<span class="quiet small-text">the next first</span>}>
      {next.length === 0 ? (
        <Empty icon="check" title="No request waits" />
      ) : (
        <Table
          role="region"
          aria-label="In line"
          tabIndex={0}
          caption="Users and keys that wait; places and times are those of their first requests"
          columns={[
            "Account, and its user or key",
            "Class",
            "Model",
            ...figures("Requests", "Waits for", "Place", "First token in"),
          ]}
        >
          {next.map(({ account, user, priority, models, requests, since, position, expected_first_token_ms: ms }) => (
            <tr key={`${account.id} ${user} ${priority}`}>
              <td class="break">
                {account.email}
                <p class="quiet small-text">{user}</p>
              </td>
              <td>
                <Priority of={priority} />
              </td>
              <td class="break">{models.join(", ")}</td>
              <Figure name="Requests" text={count(requests)} />
              <Figure name="Waits for" text={sinceOf(since)} />
              <Figure name="Place" text={position === null ? "–" : count(position)} />
              <Figure name="First token in" text={ms === null ? "–" : shortTime(ms)} />
            </tr>
          ))}
        </Table>
      )}
      {unseen > 0 && <p class="table-foot quiet small-text">{plural(unseen, "request")} of others are not shown.</p>}
    </Card>
  );
}

const OnNodes = ({ running }: { running: OperatorLine["running"] }): VNode => (
  <Card title="On nodes">
    {running.length === 0 ? (
      <Empty icon="nodes" title="No request runs" />
    ) : (
      <Table
        role="region"
        aria-label="On nodes"
        tabIndex={0}
        caption="Running requests by account, class, model and node"
        columns={["Account", "Class", "Model", "Node", ...figures("Requests", "Reading", "Oldest")]}
      >
        {running.map(({ account, priority, model, node, requests, reading, since }) => (
          <tr key={`${account.id} ${priority} ${model} ${node}`}>
            <td class="break">{account.email}</td>
            <td>
              <Priority of={priority} />
            </td>
            <td class="break">{model}</td>
            <td class="break">{node}</td>
            <Figure name="Requests" text={count(requests)} />
            <Figure name="Reading" text={count(reading)} />
            <Figure name="Oldest" text={sinceOf(since)} />
          </tr>
        ))}
      </Table>
    )}
  </Card>
);
