// Every model: the nodes that have it, whether it is up, its price, the plans that include it and its use.
import type { VNode } from "preact";
import type { OperatorModels } from "../../../api/nodes.ts";
import { compact, count, plural, price } from "../../format.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get, search } from "../../request.ts";
import { useEvery, useResource } from "../../resource.ts";
import { operatorNumbers, sells } from "../../session.ts";
import { figures, Table } from "../../parts/table.tsx";

type OperatorModel = OperatorModels["models"][number];

/** The server records use this often. */
const refreshMs = 10_000;

export function ModelsPage(): VNode {
  const models = useResource(() => get("/operator/models"), nodesNow());
  useEvery(refreshMs, models.reload);
  return (
    <Page
      title="Models"
      lead={`${sells.value ? "Prices in US dollars per 1,000,000 model tokens. " : ""}Use of the last 24 hours.`}
      actions={
        <a class="button" href="/operator/config?table=models">
          Edit models
        </a>
      }
    >
      <SickNodes />
      <section class="card flush" aria-label="Models">
        <Loaded resource={models} lines={10}>
          {(value) =>
            value.models.length === 0 ? (
              <Empty icon="models" title="No model is served" />
            ) : (
              <ModelsTable models={value.models} />
            )
          }
        </Loaded>
      </section>
    </Page>
  );
}

/** The state of the nodes that decides which models are served. */
const nodesNow = (): string =>
  (operatorNumbers.value?.nodes ?? [])
    .map(({ name, health, drained_since, below }) => [name, health, drained_since, ...below].join(" "))
    .join("\n");

const ModelsTable = ({ models }: { models: readonly OperatorModel[] }): VNode => (
  <Table
    caption="Models"
    columns={[
      "Model",
      "State",
      "Nodes",
      { figure: sells.value ? "Input / cached / output" : "", hidden: !sells.value },
      "Plans",
      ...figures("Context", "Requests", "Tokens in / out", "First token"),
    ]}
    widestOnly={["Plans", "Context"]}
  >
    {models.map((model) => (
      <Row key={model.id} model={model} />
    ))}
  </Table>
);

function Row({ model }: { model: OperatorModel }): VNode {
  const { id, aliases, hidden, kind, day, plans, context_tokens: context } = model;
  return (
    <tr>
      <td>
        <Parted name={id} />
        {aliases.length > 0 && (
          <span class="quiet small-text">
            {" = "}
            {aliases.map((alias, index) => (
              <>
                {index > 0 && ", "}
                <Parted name={alias} />
              </>
            ))}
          </span>
        )}
        {kind !== "chat" && <span class="quiet small-text"> {kind}</span>}
        {hidden && <span class="quiet small-text"> hidden</span>}
      </td>
      <td>
        <State of={model} />
      </td>
      <td class="quiet sentence">
        {model.nodes.length > 0 ? <Parted name={wholeNodes(model).join(", ")} /> : model.missing}
        {model.below.map((line) => (
          <p key={line} class="small-text break">
            {line}
          </p>
        ))}
      </td>
      {/* Hidden, not left out, because the layout for phones counts the cells of a row. */}
      <td class="number nowrap sentence" data-name="Price" hidden={!sells.value}>
        {sells.value && priceOf(model)}
      </td>
      <td class="quiet break widest-only" data-name="Plans">
        {plans === null ? "all" : plans.length === 0 ? "none" : plans.join(", ")}
      </td>
      <td class="number quiet nowrap widest-only" data-name="Context" title={`${count(context)} tokens`}>
        {Math.round(context / 1024)}K
      </td>
      <td class="number nowrap" data-name="Requests">
        {day.requests === 0 ? "0" : <a href={`/operator/log${search({ model: id })}`}>{count(day.requests)}</a>}
        {day.failed > 0 && <span class="quiet"> ({count(day.failed)} failed)</span>}
      </td>
      <td class="number quiet nowrap" data-name="Tokens in / out">
        {compact(day.input)} / {compact(day.output)}
      </td>
      <td class="number quiet nowrap" data-name="First token">
        {day.first_token_p50_ms === null ? "–" : `${count(day.first_token_p50_ms)} ms`}
      </td>
    </tr>
  );
}

/** Breaks between the parts of a name, and inside a part only if the part alone is too long for a line. */
const Parted = ({ name }: { name: string }): VNode => (
  <span class="parted">
    {name.split(/(?<=[-/:_@])/).map((part, index) => (
      <>
        {index > 0 && <wbr />}
        {part}
      </>
    ))}
  </span>
);

/** Nodes that keep all promises of the model; each of the others has a line of its own. */
const wholeNodes = ({ nodes, below }: OperatorModel): readonly string[] =>
  nodes.filter((name) => !below.some((line) => line.startsWith(`${name}: `)));

function State({ of: { nodes, up, below } }: { of: OperatorModel }): VNode {
  if (nodes.length === 0) return <span class="badge bad">No node</span>;
  if (!up) return <span class="badge warn">Drained</span>;
  if (below.length > 0) return <span class="badge warn">Below promise</span>;
  return <span class="badge good">Up</span>;
}

function priceOf({ price: dollars }: OperatorModel): string {
  if (dollars === null) return "free: no price set";
  const { input, cached, output, per } = dollars;
  if (per !== undefined) return `$${input} per ${per}`;
  return input === cached && input === output
    ? `${price(input)} flat`
    : [input, cached, output].map((amount) => price(amount)).join(" / ");
}

/** Which nodes are drained or have a problem. */
function SickNodes(): VNode | null {
  const sick = operatorNumbers.value?.nodes.filter(({ problem }) => problem !== null) ?? [];
  const drained = operatorNumbers.value?.nodes.filter(({ drained_since }) => drained_since !== null) ?? [];
  if (sick.length + drained.length === 0) return null;
  return (
    <>
      {drained.length > 0 && (
        <p class="notice" role="status">
          <span>
            {plural(drained.length, "node")} drained: <strong>{drained.map(({ name }) => name).join(", ")}</strong>.{" "}
            <a href="/operator/nodes">Nodes</a>
          </span>
        </p>
      )}
      {sick.map(({ name, url, problem }) => (
        <p key={name} class="notice" role="status">
          <span>
            Node <strong>{name}</strong> at <code>{url}</code>: {problem}
            {problem?.endsWith("?") === true ? "" : "."}
          </span>
        </p>
      ))}
    </>
  );
}
