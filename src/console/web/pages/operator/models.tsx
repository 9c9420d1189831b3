// Every model: the nodes that have it, whether it is up, its price, the plans that include it and its use.
import type { ComponentChildren, VNode } from "preact";
import type { OperatorModels } from "../../../api/nodes.ts";
import { now } from "../../clock.ts";
import { compact, count, price } from "../../format.ts";
import { Card } from "../../parts/card.tsx";
import { Fact } from "../../parts/fact.tsx";
import { Figure } from "../../parts/figure.tsx";
import { OverTime } from "../../parts/over-time.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { said } from "../../phrases.ts";
import { get, search } from "../../request.ts";
import { type Resource, useEvery, useResource } from "../../resource.ts";
import { rowOf } from "../../route.ts";
import { operatorNumbers, sells } from "../../session.ts";
import { rich, t } from "../../texts.ts";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";

const splits = ["account", "key", "endpoint"] as const;

type OperatorModel = OperatorModels["models"][number];

/** The server records use this often. */
const refreshMs = 10_000;

const list = "/operator/models";
const pathOf = (id: string): string => `${list}/${encodeURIComponent(id)}`;

export function ModelsPage(): VNode {
  const models = useResource(() => get("/operator/models"), nodesNow());
  useEvery(refreshMs, models.reload);
  const row = rowOf(list);
  if (row !== null) return <ModelPage id={row} models={models} />;
  return (
    <Page
      title={t("menu.models")}
      lead={t(sells.value ? "models.about_sells" : "models.about")}
      actions={
        <a class="button" href="/operator/config?table=models">
          {t("models.edit")}
        </a>
      }
    >
      <SickNodes />
      <section class="card flush" aria-label={t("menu.models")}>
        <Loaded resource={models} lines={10}>
          {(value) =>
            value.models.length === 0 ? (
              <Empty icon="models" title={t("models.none")} />
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

const hourMs = 3_600_000;

/** Of this hour and the 23 before it, as the server counts. */
const logOfDay = (of: Readonly<{ model: string; reason?: string }>): string =>
  `/operator/log${search({ ...of, from: new Date((Math.floor(now() / hourMs) - 23) * hourMs).toISOString() })}`;

function ModelPage({ id, models }: Readonly<{ id: string; models: Resource<OperatorModels> }>): VNode {
  return (
    <Page
      title={id}
      back={{ href: list, name: t("menu.models") }}
      actions={
        <a class="button" href={`/operator/config${search({ table: "models", row: id })}`}>
          {t("models.edit_one")}
        </a>
      }
    >
      <Loaded resource={models} lines={10}>
        {(value) => {
          const model = value.models.find((each) => each.id === id || each.aliases.includes(id));
          return model === undefined ? (
            <Empty icon="models" title={t("models.no_such")}>
              <a href={list}>{t("models.all")}</a>
            </Empty>
          ) : (
            <Model of={model} />
          );
        }}
      </Loaded>
    </Page>
  );
}

function Model({ of: model }: { of: OperatorModel }): VNode {
  const { id, aliases, kind, nodes, missing, below, day, plans, context_tokens: context } = model;
  return (
    <div class="stack-large">
      <section class="grid-4" aria-label={t("models.last_day")}>
        <Figure name={t("common.requests")} value={count(day.requests)}>
          <a href={logOfDay({ model: id })}>{t("models.in_log")}</a>
        </Figure>
        <Figure name={t("models.failures")} value={count(day.failed)}>
          <a href={logOfDay({ model: id, reason: "broken" })}>{t("models.why")}</a>
        </Figure>
        <Figure name={t("models.tokens")} value={`${compact(day.input)} / ${compact(day.output)}`} />
        <Figure
          name={t("models.first_token")}
          value={day.first_token_p50_ms === null ? "–" : inMs(day.first_token_p50_ms)}
        />
      </section>
      <Card title={t("models.serving")} class="card" side={<State of={model} />}>
        <dl class="facts start">
          <Fact name={t("menu.nodes")} class="break">
            {nodes.length === 0
              ? missing
              : nodes.map((name, index) => (
                  <>
                    {index > 0 && ", "}
                    <a href={`/operator/nodes/${encodeURIComponent(name)}`}>{name}</a>
                  </>
                ))}
          </Fact>
          {below.length > 0 && <Fact name={t("models.state_below")} class="break" value={below.join("; ")} />}
          {sells.value && <Fact name={t("models.price")} value={priceOf(model)} />}
          <Fact name={t("models.plans")} value={plansIn(plans)} />
          <Fact name={t("common.context")} value={t("models.context_tokens", { tokens: context })} />
          {aliases.length > 0 && <Fact name={t("models.aliases")} class="break" value={aliases.join(", ")} />}
          <Fact name={t("models.kind")} value={kind} />
        </dl>
      </Card>
      <OverTime account="*" splits={splits} only={{ model: id }} />
    </div>
  );
}

const inMs = (ms: number): string => `${count(ms)} ms`;

const columns: readonly DataColumn<OperatorModel>[] = [
  { id: "model", name: "common.model", sort: ({ id }) => id, cell: (model) => <Name of={model} /> },
  {
    id: "state",
    name: "common.state",
    sort: (model) => states.indexOf(stateOf(model)),
    cell: (model) => <State of={model} />,
  },
  { id: "nodes", name: "menu.nodes", look: "quiet sentence", cell: (model) => <Nodes of={model} /> },
  { id: "price", name: "models.price", isFigure: true, look: "nowrap", cell: priceOf },
  { id: "plans", name: "models.plans", look: "quiet break", room: "widest", cell: ({ plans }) => plansIn(plans) },
  {
    id: "context",
    name: "common.context",
    isFigure: true,
    look: "quiet nowrap",
    room: "widest",
    sort: ({ context_tokens: tokens }) => tokens,
    cell: ({ context_tokens: tokens }) => (
      <span title={t("models.context_tokens", { tokens })}>{Math.round(tokens / 1024)}K</span>
    ),
  },
  {
    id: "requests",
    name: "common.requests",
    isFigure: true,
    look: "nowrap",
    sort: ({ day }) => day.requests,
    cell: ({ id, day }) => (
      <>
        {day.requests === 0 ? "0" : <a href={logOfDay({ model: id })}>{count(day.requests)}</a>}
        {day.failed > 0 && (
          <>
            {" "}
            <a class="quiet" href={logOfDay({ model: id, reason: "broken" })}>
              {t("models.failed", { failed: day.failed })}
            </a>
          </>
        )}
      </>
    ),
  },
  {
    id: "tokens",
    name: "models.tokens",
    isFigure: true,
    look: "quiet nowrap",
    sort: ({ day }) => day.input + day.output,
    cell: ({ day }) => `${compact(day.input)} / ${compact(day.output)}`,
  },
  figureColumn("first_token", "models.first_token", ({ day }) => day.first_token_p50_ms, inMs, {
    look: "quiet nowrap",
  }),
];

const ModelsTable = ({ models }: { models: readonly OperatorModel[] }): VNode => (
  <DataTable
    name="models"
    caption={t("menu.models")}
    columns={columns.filter(({ id }) => sells.value || id !== "price")}
    rows={models}
    rowKey={({ id }) => id}
    first="state"
  />
);

const plansIn = (plans: OperatorModel["plans"]): string =>
  plans === null ? t("models.all_plans") : plans.length === 0 ? t("models.no_plan") : plans.join(", ");

const Name = ({ of: { id, aliases, kind, hidden } }: { of: OperatorModel }): VNode => (
  <>
    <a href={pathOf(id)}>
      <Parted name={id} />
    </a>
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
    {hidden && <span class="quiet small-text"> {t("models.hidden")}</span>}
  </>
);

const Nodes = ({ of: model }: { of: OperatorModel }): VNode => (
  <>
    {model.nodes.length > 0 && <Parted name={wholeNodes(model).join(", ")} />}
    {stateOf(model) === "none" && model.missing}
    {model.below.map((line) => (
      <p key={line} class="small-text break">
        {line}
      </p>
    ))}
  </>
);

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

/** The worst first; what the catalog knows and no node is for waits at the end. */
const states = ["none", "failing", "drained", "below", "up", "unused"] as const;
const looks: Readonly<Record<(typeof states)[number], string>> = {
  none: "bad",
  failing: "bad",
  drained: "warn",
  below: "warn",
  up: "good",
  unused: "",
};

function stateOf({ id, by, nodes, up, below, day }: OperatorModel): (typeof states)[number] {
  const isWanted = by !== "catalog" || operatorNumbers.value?.nodes.some(({ models }) => Object.hasOwn(models, id));
  if (nodes.length === 0) return isWanted === true ? "none" : "unused";
  if (day.failed * 2 > day.requests) return "failing";
  return !up ? "drained" : below.length > 0 ? "below" : "up";
}

const State = ({ of }: { of: OperatorModel }): VNode => (
  <span class={`badge ${looks[stateOf(of)]}`}>{t(`models.state_${stateOf(of)}`)}</span>
);

function priceOf({ price: dollars }: OperatorModel): string {
  if (dollars === null) return t("models.free");
  const { input, cached, output, per } = dollars;
  if (per !== undefined) return t("models.per", { price: `$${input}`, unit: per });
  return input === cached && input === output
    ? t("models.flat", { price: price(input) })
    : [input, cached, output].map((amount) => price(amount)).join(" / ");
}

const strong = (inner: ComponentChildren): VNode => <strong>{inner}</strong>;

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
            {rich("models.drained", {
              nodes: drained.length,
              names: drained.map(({ name }) => name).join(", "),
              strong,
              link: (inner) => <a href="/operator/nodes">{inner}</a>,
            })}
          </span>
        </p>
      )}
      {sick.map(({ name, url, problem }) => (
        <p key={name} class="notice" role="status">
          <span>
            {rich("models.sick", {
              name,
              url,
              problem: said(problem ?? ""),
              strong,
              code: (inner) => <code>{inner}</code>,
            })}
          </span>
        </p>
      ))}
    </>
  );
}
