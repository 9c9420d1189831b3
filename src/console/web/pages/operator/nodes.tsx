// The inference nodes, live: their health, load, speed and queue. Operators test them with one token, drain and resume them.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { NodeTest, OperatorNode } from "../../../api/nodes.ts";
import { ago, count, moment, plural } from "../../format.ts";
import { Confirm } from "../../parts/asking-dialogs.tsx";
import { FormError } from "../../parts/field.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get, post } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { operatorNumbers } from "../../session.ts";
import { useWish } from "../../wish.ts";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";

/** What the palette asks the page to do. */
type NodeWish = Readonly<{ act: "drain" | "resume"; name: string }>;

export function NodesPage(): VNode {
  const nodes = useResource(() => get("/operator/nodes"), "nodes");
  const [wish, setWish] = useState<NodeWish | null>(null);
  useWish({
    drain: (name) => setWish({ act: "drain", name }),
    resume: (name) => setWish({ act: "resume", name }),
  });
  return (
    <Page
      title="Nodes"
      lead={`${plural(operatorNumbers.value?.waiting ?? 0, "request")} waiting for a node`}
      actions={
        <a class="button" href="/operator/config?table=nodes">
          Edit nodes
        </a>
      }
    >
      <Loaded resource={nodes} lines={6}>
        {(value) => {
          const shown = operatorNumbers.value?.nodes ?? value.nodes;
          if (shown.length === 0) return <Empty icon="nodes" title="No node is configured" />;
          return (
            <div class="stack">
              {value.gateway !== null && (
                <p class="quiet break">
                  This is how the gateway {value.gateway} sees them. Each gateway checks and drains nodes by itself.
                </p>
              )}
              <div class="grid-2">
                {shown.map((node) => (
                  <NodeCard key={node.name} node={node} wish={wish?.name === node.name ? wish : null} />
                ))}
              </div>
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

type NodeProps = Readonly<{ node: OperatorNode; wish: NodeWish | null }>;

const NodeCard = ({ node, wish }: NodeProps): VNode => (
  <article class="card stack" aria-label={node.name}>
    <div class="row spread">
      <h2 class="break">{node.name}</h2>
      <StateBadge node={node} />
    </div>
    {node.problem !== null && <p>{sentence(node.problem)}</p>}
    {node.drained_since !== null && (
      <p role="status">
        Drained since {moment(node.drained_since)}: it gets no new requests;{" "}
        {node.busy === 0 ? "none is running" : `${count(node.busy)} still running`}.
      </p>
    )}
    <Meter
      name="Busy slots"
      label={`Busy slots of ${node.name}`}
      value={node.busy}
      of={node.slots}
      ofNote={node.slots_auto ? ", by its load" : ""}
    />
    <Actions node={node} wish={wish} />
    <Facts node={node} />
  </article>
);

function StateBadge({ node: { health, problem, drained_since } }: { node: OperatorNode }): VNode {
  if (drained_since !== null) return <span class="badge warn">drained</span>;
  if (health === "well" && problem !== null) return <span class="badge warn">unclear</span>;
  return <span class={`badge ${looks[health] ?? ""}`}>{health}</span>;
}

const Facts = ({ node }: { node: OperatorNode }): VNode => (
  <dl class="facts">
    <Fact name="Queue" value={<Line of={node.line} />} />
    <Fact name="Address" class="break" value={<code>{node.url}</code>} />
    <Fact name={`${healthNames[node.health] ?? node.health} since`} value={moment(node.since)} />
    {node.last_error !== null && node.last_error.message !== node.problem && (
      <Fact name="Last error" value={`${moment(node.last_error.at)}: ${node.last_error.message}`} />
    )}
    <Fact name="Engine">
      {node.engine} {node.version}
      {node.context_tokens !== null && <span class="quiet"> · {count(node.context_tokens)} tokens of context</span>}
    </Fact>
    {node.load !== null && <Fact name="Load" value={sentence(node.load)} />}
    {node.abilities
      .filter(({ words }) => words !== "")
      .map(({ name, words }) => (
        <Fact name={name} value={words} />
      ))}
    {node.below.length > 0 && <Fact name="Below the catalog" value={node.below.map(sentence).join(" ")} />}
    <Fact name="First token">
      {node.first_token_p50_ms === null || node.first_token_p99_ms === null ? (
        <span class="quiet">no answer in the last ten minutes</span>
      ) : (
        <>
          {count(node.first_token_p50_ms)} ms <span class="quiet">p50</span> · {count(node.first_token_p99_ms)} ms{" "}
          <span class="quiet">p99 of the last ten minutes</span>
        </>
      )}
    </Fact>
    <Fact name="Speed" class="number" value={`${count(Math.round(node.tokens_per_second))} tokens/s`} />
    {Object.entries(node.models).map(([id, name]) => (
      <Fact name={id === "*" ? "Any other model" : id} value={<code>{name}</code>} />
    ))}
  </dl>
);

/** The accounts that wait for the node. */
function Line({ of: { waiting, accounts, since, most } }: { of: OperatorNode["line"] }): VNode {
  if (waiting === 0) return <span class="quiet">none</span>;
  const shown = most.reduce((sum, each) => sum + each.waiting, 0);
  return (
    <>
      {plural(waiting, "request")} of {plural(accounts, "account")}
      {since !== null && <span class="quiet"> · the oldest since {ago(since)}</span>}
      <ul class="line small-text">
        {most.map(({ id, email, waiting: own }) => (
          <li key={id} class="break">
            {email}: {count(own)}
          </li>
        ))}
        {waiting > shown && <li class="quiet">others: {count(waiting - shown)}</li>}
      </ul>
    </>
  );
}

function Actions({ node: { name, drained_since: drainedSince }, wish }: NodeProps): VNode {
  const [asking, setAsking] = useState(false);
  const [tested, setTested] = useState<NodeTest | null>(null);
  const testing = useAction();
  const resuming = useAction();
  const test = (): void =>
    void testing.run(async () => {
      setTested(null);
      setTested(await post("/operator/nodes/test", { name }));
    });
  const resume = (): void =>
    void resuming.run(async () => {
      await post("/operator/nodes/resume", { name });
    });
  useEffect(() => {
    if (wish?.act === "drain") setAsking(true);
    else if (wish?.act === "resume") resume();
  }, [wish]);
  return (
    <>
      <div class="row">
        <Button caption={testing.busy ? "Testing…" : "Test"} class="button small" busy={testing.busy} onClick={test} />
        {drainedSince === null ? (
          <Button caption="Drain" class="button small" onClick={() => setAsking(true)} />
        ) : (
          <Button caption="Resume" class="button small" disabled={resuming.busy} onClick={resume} />
        )}
      </div>
      <div role="status">{tested !== null && <TestOutcome of={tested} />}</div>
      <FormError message={testing.error ?? resuming.error} />
      {asking && (
        <Confirm
          title={`Drain ${name}?`}
          confirm="Drain"
          danger={false}
          onConfirm={async () => {
            await post("/operator/nodes/drain", { name });
          }}
          onClose={() => setAsking(false)}
        >
          <p>
            It gets no new requests until it is resumed, even after a restart of the server. Answers in progress finish.
            Requests that no other node can serve wait in line, and are refused when they have waited too long.
          </p>
        </Confirm>
      )}
    </>
  );
}

const TestOutcome = ({ of: { model, first_token_ms: first, took_ms: took, problem } }: { of: NodeTest }): VNode =>
  problem === null ? (
    <p>
      <span class="badge good">answers</span> {model}:{" "}
      {first === null ? `an end without a token after ${count(took)} ms` : `the first token after ${count(first)} ms`}.
    </p>
  ) : (
    <p>
      <span class="badge bad">failed</span> {model === null ? "" : `${model}: `}
      {sentence(problem)}
    </p>
  );
