// The inference nodes, live: which are healthy, how busy they are, how fast they answer and who waits for them. They can
// be tried with a token, drained and resumed.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { NodeTest, OperatorNode } from "../../../api/nodes.ts";
import { ago, count, moment, plural } from "../../format.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { FormError } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get, post } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { operatorNumbers } from "../../session.ts";
import { useWish } from "../../wish.ts";

/** What the palette asks the page for. */
type NodeWish = Readonly<{ act: "drain" | "resume"; name: string }>;

export function NodesPage(): VNode {
  const nodes = useResource(() => get("/operator/nodes"), "nodes");
  const [wish, setWish] = useState<NodeWish | null>(null);
  useWish({
    drain: (name) => setWish({ act: "drain", name }),
    resume: (name) => setWish({ act: "resume", name }),
  });
  return (
    <Page title="Nodes" lead={`${plural(operatorNumbers.value?.waiting ?? 0, "request")} waiting for a node`}>
      <Loaded resource={nodes} lines={6}>
        {(value) => {
          const shown = operatorNumbers.value?.nodes ?? value.nodes;
          if (shown.length === 0) return <Empty icon="nodes" title="No node is configured" />;
          return (
            <div class="stack">
              {value.gateway !== null && (
                <p class="quiet break">
                  This is how the gateway {value.gateway} sees them. Others see them, and drain them, by themselves.
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
      {node.drained_since !== null ? (
        <span class="badge warn">drained</span>
      ) : node.health === "well" && node.problem !== null ? (
        <span class="badge warn">unclear</span>
      ) : (
        <span class={`badge ${looks[node.health] ?? ""}`}>{node.health}</span>
      )}
    </div>
    {node.problem !== null && <p>{sentence(node.problem)}</p>}
    {node.drained_since !== null && (
      <p role="status">
        Drained since {moment(node.drained_since)}: it gets no new requests;{" "}
        {node.busy === 0 ? "none is left there" : `${count(node.busy)} ${node.busy === 1 ? "is" : "are"} left there`}.
      </p>
    )}
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
    <Actions node={node} wish={wish} />
    <dl class="facts">
      <dt>In line</dt>
      <dd>
        <Line of={node.line} />
      </dd>
      <dt>Address</dt>
      <dd class="break">
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
      <dd>
        {node.first_token_p50_ms === null || node.first_token_p99_ms === null ? (
          <span class="quiet">no answer in ten minutes</span>
        ) : (
          <>
            {count(node.first_token_p50_ms)} ms <span class="quiet">p50</span> · {count(node.first_token_p99_ms)} ms{" "}
            <span class="quiet">p99 of ten minutes</span>
          </>
        )}
      </dd>
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

/** Who waits for it, in words. */
function Line({ of: { waiting, accounts, since, most } }: { of: OperatorNode["line"] }): VNode {
  if (waiting === 0) return <span class="quiet">nobody</span>;
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
  const draining = useAction();
  const test = (): void =>
    void testing.run(async () => {
      setTested(null);
      setTested(await post("/operator/nodes/test", { name }));
    });
  const setDrained = async (drained: boolean): Promise<void> => {
    const done = await draining.run(async () => {
      await post(drained ? "/operator/nodes/drain" : "/operator/nodes/resume", { name });
    });
    if (done) setAsking(false);
  };
  const askToDrain = (): void => {
    draining.clear();
    setAsking(true);
  };
  useEffect(() => {
    if (wish?.act === "drain") askToDrain();
    else if (wish?.act === "resume") void setDrained(false);
  }, [wish]);
  return (
    <>
      <div class="row">
        <button type="button" class="button small" aria-busy={testing.busy} disabled={testing.busy} onClick={test}>
          {testing.busy ? "Testing…" : "Test"}
        </button>
        {drainedSince === null ? (
          <button type="button" class="button small" onClick={askToDrain}>
            Drain
          </button>
        ) : (
          <button type="button" class="button small" disabled={draining.busy} onClick={() => void setDrained(false)}>
            Resume
          </button>
        )}
      </div>
      <div role="status">{tested !== null && <TestOutcome of={tested} />}</div>
      <FormError message={testing.error ?? (asking ? null : draining.error)} />
      {asking && (
        <Confirm
          title={`Drain ${name}?`}
          confirm="Drain"
          danger={false}
          action={draining}
          onConfirm={() => void setDrained(true)}
          onClose={() => setAsking(false)}
        >
          <p>
            It gets no new requests until it is resumed, also after a restart of the server. Answers in progress end.
            Requests that no other node can serve wait in line, and are refused when they waited too long.
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
