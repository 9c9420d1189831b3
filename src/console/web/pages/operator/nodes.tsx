// The inference nodes, live: which are healthy, how busy they are and how fast they answer.
import type { VNode } from "preact";
import type { OperatorNode, OperatorNodes } from "../../../api.ts";
import { count, moment, plural } from "../../format.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { operatorNumbers } from "../../session.ts";

export function NodesPage(): VNode {
  const nodes = useResource(() => get<OperatorNodes>("/operator/nodes"), "nodes");
  return (
    <Page title="Nodes" lead={`${plural(operatorNumbers.value?.waiting ?? 0, "request")} waiting for a node`}>
      <Loaded resource={nodes} lines={6}>
        {(value) => {
          const shown = operatorNumbers.value?.nodes ?? value.nodes;
          return shown.length === 0 ? (
            <Empty icon="nodes" title="No node is configured" />
          ) : (
            <div class="grid-2">
              {shown.map((node) => (
                <NodeCard key={node.name} node={node} />
              ))}
            </div>
          );
        }}
      </Loaded>
    </Page>
  );
}

const looks: Readonly<Record<string, string>> = { well: "good", cooling: "warn", down: "bad", starting: "warn" };

const healthNames: Readonly<Record<string, string>> = {
  well: "Well",
  cooling: "Cooling",
  down: "Down",
  starting: "Starting",
};

const sentence = (words: string): string =>
  `${words.charAt(0).toUpperCase()}${words.slice(1)}${words.endsWith("?") ? "" : "."}`;

const NodeCard = ({ node }: { node: OperatorNode }): VNode => (
  <article class="card stack">
    <div class="row spread">
      <h2>{node.name}</h2>
      {node.health === "well" && node.problem !== null ? (
        <span class="badge warn">unclear</span>
      ) : (
        <span class={`badge ${looks[node.health] ?? ""}`}>{node.health}</span>
      )}
    </div>
    {node.problem !== null && <p>{sentence(node.problem)}</p>}
    <div class="meter-row">
      <div class="names">
        <span class="figure-name">Busy slots</span>
        <span class="number">
          {count(node.busy)}{" "}
          <span class="quiet">
            of {count(node.slots)}
            {node.slots_auto ? ", by its load" : ""}
          </span>
        </span>
      </div>
      <span
        class="meter"
        role="meter"
        aria-label={`Busy slots of ${node.name}`}
        aria-valuemin={0}
        aria-valuemax={node.slots}
        aria-valuenow={node.busy}
      >
        <span style={{ transform: `scaleX(${node.slots === 0 ? 0 : Math.min(1, node.busy / node.slots)})` }} />
      </span>
    </div>
    <dl class="facts">
      <dt>Address</dt>
      <dd>
        <code>{node.url}</code>
      </dd>
      <dt>{healthNames[node.health] ?? node.health} since</dt>
      <dd>{moment(node.since)}</dd>
      {node.last_error !== null && node.last_error.message !== node.problem && (
        <>
          <dt>Last error</dt>
          <dd>
            {moment(node.last_error.at)}: {node.last_error.message}
          </dd>
        </>
      )}
      <dt>Engine</dt>
      <dd>
        {node.engine} {node.version}
        {node.context_tokens !== null && <span class="quiet"> · {count(node.context_tokens)} tokens of context</span>}
      </dd>
      {node.load !== null && (
        <>
          <dt>Its load</dt>
          <dd>{sentence(node.load)}</dd>
        </>
      )}
      {node.abilities
        .filter(({ words }) => words !== "")
        .map(({ name, words }) => (
          <>
            <dt>{name}</dt>
            <dd>{words}</dd>
          </>
        ))}
      {node.below.length > 0 && (
        <>
          <dt>Below the catalog</dt>
          <dd>{node.below.map(sentence).join(" ")}</dd>
        </>
      )}
      <dt>First token</dt>
      <dd class="number">{node.first_token_ms === null ? "–" : `${count(Math.round(node.first_token_ms))} ms`}</dd>
      <dt>Speed</dt>
      <dd class="number">{count(Math.round(node.tokens_per_second))} tokens/s</dd>
      {Object.entries(node.models).map(([id, name]) => (
        <>
          <dt>{id === "*" ? "Any other model" : id}</dt>
          <dd>
            <code>{name}</code>
          </dd>
        </>
      ))}
    </dl>
  </article>
);
