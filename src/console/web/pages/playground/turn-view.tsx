// One step of the conversation: a question, a tool's result, or an answer with its reasoning, calls and sources.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { count } from "../../format.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Markdown, SafeLink } from "../../parts/markdown.tsx";
import type { Answer, Call, ServerCall, ToolTurn, Turn, UserTurn } from "./conversation.ts";
import { Thumbs } from "./pictures.tsx";

type TurnViewProps = Readonly<{
  turn: Turn;
  /** Changes with the turn: the answer that is being written stays the same object. */
  revision: number;
  waiting: readonly Call[];
  onResult: (call: Call, output: string) => void;
}>;

export function TurnView({ turn, waiting, onResult }: TurnViewProps): VNode {
  switch (turn.role) {
    case "user":
      return <Asked turn={turn} />;
    case "tool":
      return <ToolResult turn={turn} />;
    case "assistant":
      return <AnswerView answer={turn} waiting={waiting} onResult={onResult} />;
    default:
      return turn satisfies never;
  }
}

const Asked = ({ turn }: { turn: UserTurn }): VNode => (
  <article class="turn user" aria-label="You">
    <Thumbs pictures={turn.pictures} />
    {turn.text !== "" && (
      <div class="bubble" dir="auto">
        {turn.text}
      </div>
    )}
  </article>
);

const ToolResult = ({ turn }: { turn: ToolTurn }): VNode => (
  <article class="turn tool" aria-label={`Result of ${turn.name}`}>
    <p class="quiet small-text">Result of {turn.name}</p>
    <div class="bubble" dir="auto">
      {turn.output}
    </div>
  </article>
);

type AnswerViewProps = Readonly<{
  answer: Answer;
  waiting: readonly Call[];
  onResult: (call: Call, output: string) => void;
}>;

function AnswerView({ answer, waiting, onResult }: AnswerViewProps): VNode {
  const streaming = answer.state === "streaming";
  const thinkingNow = streaming && answer.text === "" && answer.calls.length === 0;
  return (
    <article class="turn answer" aria-label={`Answer of ${answer.model}`} aria-busy={streaming}>
      {answer.reasoning !== "" && (
        <details class="reasoning">
          <summary>{thinkingNow ? "Thinking…" : "Reasoning"}</summary>
          <div dir="auto">{answer.reasoning}</div>
        </details>
      )}
      {answer.searches.length > 0 && (
        <p class="quiet small-text">
          <Icon name="globe" size={14} /> Searched the web for {answer.searches.map((query) => `“${query}”`).join(", ")}
        </p>
      )}
      {answer.serverCalls.map((call, index) => (
        <ServerCallView key={call.id || index} call={call} runs={streaming && call.result === null} />
      ))}
      <div class={streaming ? "caret" : undefined}>{answer.text !== "" && <Markdown text={answer.text} />}</div>
      {answer.calls.map((call, index) => (
        <CallView
          key={call.id || index}
          call={call}
          waits={waiting.includes(call)}
          onResult={(output) => onResult(call, output)}
        />
      ))}
      {answer.sources.length > 0 && (
        <section class="sources" aria-label="Sources">
          <h3>Sources</h3>
          <ol>
            {answer.sources.map(({ url, title }) => (
              <li key={url}>
                <SafeLink href={url} told={title}>
                  {title}
                </SafeLink>
              </li>
            ))}
          </ol>
        </section>
      )}
      {answer.state === "failed" && (
        <p class="form-error" role="alert">
          {answer.error}
        </p>
      )}
      {!streaming && <AnswerFoot answer={answer} />}
    </article>
  );
}

function AnswerFoot({ answer }: { answer: Answer }): VNode {
  const { state, usage, finish, firstTokenMs, totalMs, requestId, text } = answer;
  return (
    <footer class="turn-foot">
      {text !== "" && <CopyButton text={text} label="Copy the answer" />}
      <span>{answer.model}</span>
      {state === "stopped" && <span class="badge warn">Stopped</span>}
      {(finish === "length" || finish === "max_tokens" || finish === "max_output_tokens") && (
        <span class="badge warn">Output budget reached</span>
      )}
      {usage !== null && (
        <span class="number" title={`${count(usage.cached)} of the input cached, ${count(usage.reasoning)} reasoning`}>
          {count(usage.input)} in · {count(usage.output)} out
        </span>
      )}
      {firstTokenMs !== null && <span class="number">first token {seconds(firstTokenMs)}</span>}
      {totalMs !== null && <span class="number">total {seconds(totalMs)}</span>}
      {requestId !== null && <RequestId id={requestId} isBilled={state !== "failed"} />}
    </footer>
  );
}

/** A request that failed is not among the billed ones: its id is what the server's log knows. */
const RequestId = ({ id, isBilled }: { id: string; isBilled: boolean }): VNode =>
  isBilled ? (
    <a href={`/usage?text=${encodeURIComponent(id)}`} title={id}>
      Usage
    </a>
  ) : (
    <CopyButton text={id} label={`Copy the request id ${id}`} caption="Request id" />
  );

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;

const ServerCallView = ({ call, runs }: { call: ServerCall; runs: boolean }): VNode => (
  <section class="call" aria-label={`Call of ${call.name} on ${call.server}`}>
    <header>
      <Icon name="nodes" size={15} />
      <code>{call.name}</code>
      <span class="quiet">on {call.server}</span>
      {runs && <span class="badge">Running</span>}
      {call.failed && <span class="badge bad">Failed</span>}
    </header>
    <pre>{indented(call.arguments)}</pre>
    {call.result !== null && (
      <details>
        <summary>Result</summary>
        <pre>{call.result}</pre>
      </details>
    )}
  </section>
);

type CallViewProps = Readonly<{ call: Call; waits: boolean; onResult: (output: string) => void }>;

function CallView({ call, waits, onResult }: CallViewProps): VNode {
  const [output, setOutput] = useState("");
  return (
    <section class="call" aria-label={`Call of ${call.name}`}>
      <header>
        <Icon name="code" size={15} />
        <code>{call.name}</code>
      </header>
      <pre>{indented(call.arguments)}</pre>
      {waits && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onResult(output);
          }}
        >
          <input
            type="text"
            aria-label={`Result of ${call.name}`}
            placeholder="What did the tool return?"
            value={output}
            onInput={(event) => setOutput(event.currentTarget.value)}
          />
          <button type="submit" class="button">
            Send result
          </button>
        </form>
      )}
    </section>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // still on its way, or what the model wrote is not JSON
  }
}
