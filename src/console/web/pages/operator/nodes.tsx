// The inference nodes, live: their health, load, speed and queue. Each has a page with all that is known of it. Operators test
// them with one token, drain and resume them.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { NodeTest, OperatorNode } from "../../../api/nodes.ts";
import { ago, count, moment, shortTime } from "../../format.ts";
import { Card } from "../../parts/card.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { FormError } from "../../parts/field.tsx";
import { Meter } from "../../parts/meter.tsx";
import { OverTime } from "../../parts/over-time.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { toastWithUndo } from "../../parts/toasts.tsx";
import { said } from "../../phrases.ts";
import { get, post, search } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { rowOf } from "../../route.ts";
import { operatorNumbers } from "../../session.ts";
import { t } from "../../texts.ts";
import { useWish } from "../../wish.ts";
import { now } from "../../clock.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";

/** What the palette asks the page to do. */
type NodeWish = Readonly<{ act: "drain" | "resume"; name: string }>;

const splits = ["node"] as const;
const list = "/operator/nodes";
const edit = "/operator/config?table=nodes";

export function NodesPage(): VNode {
  const nodes = useResource(() => get("/operator/nodes"), "nodes");
  const [wish, setWish] = useState<NodeWish | null>(null);
  useWish({
    drain: (name) => setWish({ act: "drain", name }),
    resume: (name) => setWish({ act: "resume", name }),
  });
  const row = rowOf(list);
  const waiting = operatorNumbers.value?.waiting ?? 0;
  const found = (operatorNumbers.value?.nodes ?? nodes.value?.nodes ?? []).filter(
    ({ name }) => row === null || name === row,
  );
  return (
    <Page
      key={row}
      title={row ?? t("menu.nodes")}
      lead={row === null ? t("nodes.waiting", { waiting }) : undefined}
      back={row === null ? undefined : { href: list, name: t("menu.nodes") }}
      actions={
        <a class="button" href={row === null ? edit : `${edit}&row=${encodeURIComponent(row)}`}>
          {t(row === null ? "nodes.edit" : "nodes.edit_one")}
        </a>
      }
    >
      <Loaded resource={nodes} lines={6}>
        {({ gateway }) =>
          found.length === 0 ? (
            <Empty icon="nodes" title={t(row === null ? "nodes.none" : "nodes.no_such")}>
              <a href={row === null ? `${edit}&row=` : list}>{t(row === null ? "nodes.add" : "nodes.all")}</a>
            </Empty>
          ) : (
            <div class="stack">
              {gateway !== null && <p class="quiet break">{t("nodes.seen_by", { gateway })}</p>}
              {row === null ? (
                <section class="card flush" aria-label={t("menu.nodes")}>
                  <DataTable
                    name="nodes"
                    caption={t("menu.nodes")}
                    columns={columnsOf(wish)}
                    rows={found}
                    rowKey={({ name }) => name}
                    first=""
                  />
                </section>
              ) : (
                <Node of={found[0]!} />
              )}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

/** The worst first. */
const states = ["down", "cooling", "drained", "starting", "well"];
const looks: Readonly<Record<string, string>> = { well: "good", cooling: "warn", down: "bad", starting: "warn" };

const sentence = (words: string): string =>
  `${words.charAt(0).toUpperCase()}${words.slice(1)}${words.endsWith("?") ? "" : "."}`;

type NodeProps = Readonly<{ node: OperatorNode; wish: NodeWish | null }>;

const columnsOf = (wish: NodeWish | null): readonly DataColumn<OperatorNode>[] => [
  {
    ...{ id: "name", name: "common.node", look: "parted" },
    sort: ({ name }) => name,
    cell: ({ name }) => <a href={`${list}/${encodeURIComponent(name)}`}>{name}</a>,
  },
  {
    ...{ id: "state", name: "common.state", look: "sentence" },
    sort: ({ health, drained_since: drained }) => states.indexOf(drained === null ? health : "drained"),
    cell: (node) => (
      <>
        <StateBadge node={node} />
        <Trouble node={node} />
      </>
    ),
  },
  figureColumn("busy", "nodes.busy", ({ busy }) => busy, count, { look: "nowrap", cell: (node) => <Busy of={node} /> }),
  figureColumn("queue", "nodes.queue", ({ line }) => line.waiting, count, {
    cell: ({ line }) => (
      <>
        {count(line.waiting)}
        {line.since !== null && <p class="quiet small-text">{t("nodes.oldest", { since: ago(line.since) })}</p>}
      </>
    ),
  }),
  figureColumn("first_token", "models.first_token", (node) => node.first_token_p50_ms, count, {
    cell: (node) => <FirstToken of={node} isShort />,
  }),
  figureColumn("speed", "nodes.speed", (node) => node.tokens_per_second, count, {
    look: "nowrap quiet",
    room: "widest",
    cell: (node) => t("nodes.per_second", { tokens: Math.round(node.tokens_per_second) }),
  }),
  figureColumn("models", "nodes.models", ({ models }) => Object.keys(models).length, count, { room: "wide" }),
  {
    ...{ id: "actions", name: "common.actions", isActions: true },
    cell: (node) => <Actions node={node} wish={wish?.name === node.name ? wish : null} />,
  },
];

const Busy = ({ of: { busy, slots } }: { of: OperatorNode }): VNode => (
  <>
    {t("keys.used_of", { used: busy, limit: slots })}
    <span class="meter share" aria-hidden="true">
      <span style={{ transform: `scaleX(${slots === 0 ? 0 : Math.min(1, busy / slots)})` }} />
    </span>
  </>
);

const Node = ({ of: node }: { of: OperatorNode }): VNode => (
  <div class="stack-large">
    <Card title={t("nodes.now")} class="card stack" side={<StateBadge node={node} />} aria-label={node.name}>
      <Trouble node={node} />
      <Meter
        name={t("nodes.busy")}
        label={t("nodes.busy_of", { name: node.name })}
        value={node.busy}
        of={node.slots}
        ofNote={node.slots_auto ? t("nodes.by_load") : ""}
      />
      <Actions node={node} wish={null} />
    </Card>
    <Card
      title={t("nodes.details")}
      class="card"
      side={<a href={`/operator/log${search({ node: node.name })}`}>{t("nodes.in_log")}</a>}
    >
      <Facts node={node} />
    </Card>
    <Card title={t("nodes.models")} class="card">
      <dl class="facts start">
        {Object.entries(node.models).map(([id, name]) => (
          <Fact key={id} name={id === "*" ? t("nodes.any_model") : id} value={<code>{name}</code>} />
        ))}
      </dl>
    </Card>
    <OverTime account="*" splits={splits} only={{ node: node.name }} />
  </div>
);

const Trouble = ({ node: { problem, drained_since: since, busy } }: { node: OperatorNode }): VNode => (
  <>
    {problem !== null && <p>{sentence(said(problem))}</p>}
    {since !== null && <p role="status">{t("nodes.drained_since", { since: moment(since), running: busy })}</p>}
  </>
);

function StateBadge({ node: { health, problem, drained_since } }: { node: OperatorNode }): VNode {
  if (drained_since !== null) return <span class="badge warn">{t("nodes.state_drained")}</span>;
  if (health === "well" && problem !== null) return <span class="badge warn">{t("nodes.state_unclear")}</span>;
  return <span class={`badge ${looks[health] ?? ""}`}>{t(`nodes.state_${health}`)}</span>;
}

const Facts = ({ node }: { node: OperatorNode }): VNode => (
  <dl class="facts start">
    <Fact name={t("nodes.queue")} value={<Line of={node.line} />} />
    <Fact name={t("models.first_token")} value={<FirstToken of={node} />} />
    <Fact
      name={t("nodes.speed")}
      value={
        <a href={recentLog(node.name, 1)}>{t("nodes.per_second", { tokens: Math.round(node.tokens_per_second) })}</a>
      }
    />
    <Fact name={t("common.address")} class="break" value={<code>{node.url}</code>} />
    <Fact name={t("nodes.since", { state: t(`nodes.state_${node.health}`) })} value={moment(node.since)} />
    {node.last_error !== null && node.last_error.message !== node.problem && (
      <Fact
        name={t("nodes.last_error")}
        value={
          <>
            <a href={`/operator/log${search({ node: node.name, reason: "broken" })}`}>{moment(node.last_error.at)}</a>:{" "}
            {said(node.last_error.message)}
          </>
        }
      />
    )}
    <Fact name={t("nodes.engine")}>
      {node.engine} {node.version}
      {node.context_tokens !== null && (
        <span class="quiet"> · {t("models.context_tokens", { tokens: node.context_tokens })}</span>
      )}
    </Fact>
    {node.load !== null && <Fact name={t("nodes.load")} value={sentence(node.load)} />}
    {node.abilities
      .filter(({ words }) => words !== "")
      .map(({ name, words }) => (
        <Fact key={name} name={name} value={words} />
      ))}
    {node.below.length > 0 && <Fact name={t("nodes.below")} value={node.below.map(sentence).join(" ")} />}
  </dl>
);

/** What it served in the last minutes. */
const recentLog = (node: string, minutes: number): string =>
  `/operator/log${search({ node, reason: "served", from: new Date(now() - minutes * 60_000).toISOString() })}`;

const FirstToken = ({
  of: { name, first_token_p50_ms: half, first_token_p99_ms: most },
  isShort,
}: Readonly<{ of: OperatorNode; isShort?: boolean }>): VNode =>
  half === null || most === null ? (
    <span class="quiet">{isShort ? "–" : t("nodes.no_answer")}</span>
  ) : (
    <a href={recentLog(name, 10)} title={t("nodes.ten_minutes")}>
      {isShort ? shortTime(half) : t("nodes.first_token", { half, most })}
    </a>
  );

/** The accounts that wait for the node. */
function Line({ of: { waiting, accounts, since, most } }: { of: OperatorNode["line"] }): VNode {
  if (waiting === 0) return <span class="quiet">{t("nodes.empty")}</span>;
  const shown = most.reduce((sum, each) => sum + each.waiting, 0);
  return (
    <>
      {t("nodes.line", { waiting, accounts })}
      {since !== null && <span class="quiet"> · {t("nodes.oldest", { since: ago(since) })}</span>}
      <ul class="line small-text">
        {most.map(({ id, email, waiting: own }) => (
          <li key={id} class="break">
            <AccountLink name={email} />: {count(own)}
          </li>
        ))}
        {waiting > shown && <li class="quiet">{t("nodes.others", { waiting: waiting - shown })}</li>}
      </ul>
    </>
  );
}

function Actions({ node: { name, drained_since: drainedSince }, wish }: NodeProps): VNode {
  const [tested, setTested] = useState<NodeTest | null>(null);
  const testing = useAction();
  const draining = useAction();
  const test = (): void =>
    void testing.run(async () => {
      setTested(null);
      setTested(await post("/operator/nodes/test", { name }));
    });
  const drain = (): Promise<unknown> => post("/operator/nodes/drain", { name });
  const resume = (): Promise<unknown> => post("/operator/nodes/resume", { name });
  // Nothing is lost by either, so that it is done at once, and taken back as quickly.
  const act = (what: NodeWish["act"]): void =>
    void draining.run(async () => {
      await (what === "drain" ? drain() : resume());
      toastWithUndo(
        t(what === "drain" ? "nodes.drained" : "nodes.resumed", { name }),
        what === "drain" ? resume : drain,
      );
    });
  useEffect(() => {
    if (wish !== null) act(wish.act);
  }, [wish]);
  return (
    <>
      <div class="row">
        <Button
          caption={t(testing.busy ? "nodes.testing" : "nodes.test")}
          class="button small"
          busy={testing.busy}
          onClick={test}
        />
        <Button
          caption={t(drainedSince === null ? "nodes.drain" : "nodes.resume")}
          class="button small"
          title={t("nodes.drain_about")}
          disabled={draining.busy}
          onClick={() => act(drainedSince === null ? "drain" : "resume")}
        />
      </div>
      <div role="status">{tested !== null && <TestOutcome of={tested} />}</div>
      <FormError message={testing.error ?? draining.error} />
    </>
  );
}

const TestOutcome = ({ of: { model, first_token_ms: first, took_ms: took, problem } }: { of: NodeTest }): VNode =>
  problem === null ? (
    <p>
      <span class="badge good">{t("nodes.answers")}</span> {model}:{" "}
      {first === null ? t("nodes.no_token", { ms: took }) : t("nodes.token_after", { ms: first })}
    </p>
  ) : (
    <p>
      <span class="badge bad">{t("nodes.failed")}</span> {model === null ? "" : `${model}: `}
      {sentence(said(problem))}
    </p>
  );
