// One step of the conversation: a question, a tool's result, or answers with their reasoning, calls and sources.
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, dollars } from "../../format.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Icon } from "../../parts/icons.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { Markdown, SafeLink } from "../../parts/markdown.tsx";
import type { Answer, Call, ServerCall, ToolTurn, UserTurn } from "./conversation.ts";
import { askAgain, askInstead, choose, giveResult, goOnWith } from "./exchange.ts";
import { Thumbs } from "./pictures.tsx";
import type { OpenCall, Replies, Step } from "./tree.ts";
import { Button, IconButton } from "../../parts/button.tsx";

/** Longer texts are cut at first: a browser takes seconds to lay out a megabyte. */
const questionShownLength = 5_000;
const editedMaxLength = 100_000;
const answerShownLength = 50_000;

type StepViewProps = Readonly<{
  step: Step;
  /** The step and its other versions, oldest first. */
  versions: readonly Step[];
  /** Changes while answers are written, since these stay the same objects. */
  revision: number;
  waiting: readonly OpenCall[];
  /** An answer is being written: nothing can be sent now. */
  busy: boolean;
}>;

/** Drawn again only when it changes: a conversation may be long. */
export function StepView({ step, versions, revision, waiting, busy }: StepViewProps): VNode {
  const own = step.turn.role === "replies" ? waiting : none;
  return useMemo(
    () => <TurnView step={step} versions={versions} revision={revision} waiting={own} busy={busy} />,
    [step, versions.length, versions.indexOf(step), revision, own, busy],
  );
}
const none: readonly OpenCall[] = [];

function TurnView({ step, versions, waiting, busy }: StepViewProps): VNode {
  const { turn } = step;
  const chooser = versions.length > 1 ? <Versions step={step} versions={versions} busy={busy} /> : null;
  switch (turn.role) {
    case "user":
      return <Asked step={step} turn={turn} chooser={chooser} busy={busy} />;
    case "tool":
      return <ToolResult turn={turn} />;
    case "replies":
      return <RepliesView step={step} turn={turn} chooser={chooser} waiting={waiting} busy={busy} />;
    default:
      return turn satisfies never;
  }
}

type VersionsProps = Readonly<{ step: Step; versions: readonly Step[]; busy: boolean }>;

function Versions({ step, versions, busy }: VersionsProps): VNode {
  const at = versions.indexOf(step);
  const button = (index: number, label: string, icon: "back" | "chevron"): VNode => {
    const version = versions[index];
    return (
      <IconButton
        icon={icon}
        size={14}
        label={label}
        disabled={version === undefined || busy}
        onClick={() => version !== undefined && choose(version)}
      />
    );
  };
  return (
    <span class="versions" role="group" aria-label="Versions">
      {button(at - 1, "Earlier version", "back")}
      <span class="number">
        {at + 1} / {versions.length}
      </span>
      {button(at + 1, "Later version", "chevron")}
    </span>
  );
}

type AskedProps = Readonly<{ step: Step; turn: UserTurn; chooser: VNode | null; busy: boolean }>;

function Asked({ step, turn, chooser, busy }: AskedProps): VNode {
  const [editing, setEditing] = useState(false);
  const { text } = turn;
  return (
    <article class="turn user" aria-label="You">
      <Thumbs pictures={turn.pictures} />
      {editing ? (
        <QuestionEditor
          text={text}
          busy={busy}
          onCancel={() => setEditing(false)}
          onSend={(next) => {
            setEditing(false);
            askInstead(step, next);
          }}
        />
      ) : (
        text !== "" && (
          <Clipped text={text} length={questionShownLength}>
            {(shown) => (
              <div class="bubble" dir="auto">
                <LongText text={shown} />
              </div>
            )}
          </Clipped>
        )
      )}
      {!editing && (
        <footer class="turn-tools">
          {text !== "" && <CopyButton text={text} label="Copy the question" />}
          <IconButton
            icon="pencil"
            size={16}
            label="Edit the question"
            title={text.length > editedMaxLength ? "Too long to edit here" : "Edit, and continue from here"}
            disabled={busy || text.length > editedMaxLength}
            onClick={() => setEditing(true)}
          />
          {chooser}
        </footer>
      )}
    </article>
  );
}

type QuestionEditorProps = Readonly<{
  text: string;
  busy: boolean;
  onSend: (text: string) => void;
  onCancel: () => void;
}>;

function QuestionEditor({ text, busy, onSend, onCancel }: QuestionEditorProps): VNode {
  const [words, setWords] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  const canSend = words.trim() !== "" && !busy;
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, []);
  return (
    <form
      class="question-editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) onSend(words);
      }}
    >
      <textarea
        ref={field}
        rows={3}
        aria-label="The question"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (canSend) onSend(words);
        }}
      />
      <footer onMouseDown={(event) => event.preventDefault()}>
        <Button caption="Cancel" class="button small" onClick={onCancel} />
        <Button
          caption="Send this instead"
          type="submit"
          class="button small primary"
          disabled={!canSend}
          title="Ctrl+Enter"
        />
      </footer>
    </form>
  );
}

type ClippedProps = Readonly<{ text: string; length: number; children: (shown: string) => VNode }>;

/** The start of a long text, and the rest on demand. */
function Clipped({ text, length, children }: ClippedProps): VNode {
  const [whole, setWhole] = useState(false);
  if (whole || text.length <= length * 1.2) return children(text);
  return (
    <>
      {children(`${text.slice(0, length)}…`)}
      <Button
        caption={`Show all ${count(text.length)} characters`}
        class="link-button small-text"
        onClick={() => setWhole(true)}
      />
    </>
  );
}

const ToolResult = ({ turn }: { turn: ToolTurn }): VNode => (
  <article class="turn tool" aria-label={`Result of ${turn.name}`}>
    <p class="quiet small-text">Result of {turn.name}</p>
    <div class="bubble" dir="auto">
      <LongText text={turn.output} />
    </div>
  </article>
);

type RepliesViewProps = Readonly<{
  step: Step;
  turn: Replies;
  chooser: VNode | null;
  waiting: readonly OpenCall[];
  busy: boolean;
}>;

function RepliesView({ step, turn, chooser, waiting, busy }: RepliesViewProps): VNode {
  const { lanes } = turn;
  const view = (answer: Answer, lane: number): VNode => (
    <AnswerView
      answer={answer}
      waiting={waiting.filter((open) => open.lane === lane)}
      busy={busy}
      chooser={lane === 0 || lanes[0] === null ? chooser : null}
      isOneOfTwo={lanes.length > 1}
      onAgain={() => askAgain(step, lane)}
      onAlone={() => goOnWith(answer, lane)}
    />
  );
  const [first] = lanes;
  if (lanes.length === 1 && first != null) return view(first, 0);
  return (
    <div class="lanes" tabIndex={0} role="group" aria-label="Answers side by side">
      {lanes.map((answer, lane) => (
        <div key={lane} class="lane">
          {answer !== null && <p class="lane-name">{answer.model}</p>}
          {answer !== null && view(answer, lane)}
        </div>
      ))}
    </div>
  );
}

type AnswerViewProps = Readonly<{
  answer: Answer;
  waiting: readonly OpenCall[];
  busy: boolean;
  chooser: VNode | null;
  isOneOfTwo: boolean;
  onAgain: () => void;
  onAlone: () => void;
}>;

function AnswerView(props: AnswerViewProps): VNode {
  const { answer, waiting, busy, onAgain } = props;
  const streaming = answer.state === "streaming";
  const thinkingNow = streaming && answer.text === "" && answer.calls.length === 0;
  return (
    <article class="turn answer" aria-label={`Answer of ${answer.model}`} aria-busy={streaming}>
      {answer.reasoning !== "" && (
        <details class="reasoning">
          <summary>{thinkingNow ? "Thinking…" : "Reasoning"}</summary>
          <div dir="auto">
            <LongText text={answer.reasoning} />
          </div>
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
      <PlaceInLine of={answer} />
      <div class={streaming ? "caret" : undefined}>
        {answer.text !== "" && (
          <Clipped text={answer.text} length={answerShownLength}>
            {(shown) => <Markdown text={shown} />}
          </Clipped>
        )}
      </div>
      {answer.calls.map((call, index) => {
        const open = waiting.find((each) => each.call === call);
        return (
          <CallView
            key={call.id || index}
            call={call}
            waits={open !== undefined}
            onResult={(output) => open !== undefined && giveResult(open, output)}
          />
        );
      })}
      {answer.sources.length > 0 && (
        <section class="sources" aria-label="Sources">
          <h3>Sources</h3>
          <ol>
            {answer.sources.map(({ url, title }) => (
              <li key={url}>
                <SafeLink href={url} shownText={title}>
                  {title}
                </SafeLink>
              </li>
            ))}
          </ol>
        </section>
      )}
      {answer.state === "failed" && (
        <div class="form-error answer-failed">
          <p role="alert">{answer.error}</p>
          <button type="button" class="button small" disabled={busy} onClick={onAgain}>
            <Icon name="refresh" size={14} /> Try again
          </button>
        </div>
      )}
      {!streaming && <AnswerFoot {...props} />}
    </article>
  );
}

const PlaceInLine = ({ of: { state, firstTokenMs, place } }: { of: Answer }): VNode | null =>
  state === "streaming" && firstTokenMs === null && place !== undefined ? (
    <p class="quiet small-text" role="status">
      {place}
    </p>
  ) : null;

function AnswerFoot({ answer, busy, chooser, isOneOfTwo, onAgain, onAlone }: AnswerViewProps): VNode {
  const { state, usage, finish, firstTokenMs, totalMs, requestId, text, costUsd } = answer;
  return (
    <footer class="turn-foot">
      <span class="turn-tools">
        {text !== "" && <CopyButton text={text} label="Copy the answer" />}
        {state !== "failed" && (
          <IconButton
            icon="refresh"
            size={16}
            label="Ask again"
            title="Ask again; this answer stays as a version"
            disabled={busy}
            onClick={onAgain}
          />
        )}
        {isOneOfTwo && <Button caption="Continue with this" class="button small" disabled={busy} onClick={onAlone} />}
        {chooser}
      </span>
      {!isOneOfTwo && <span>{answer.model}</span>}
      {state === "stopped" && <span class="badge warn">{finish === "cut" ? "Not finished" : "Stopped"}</span>}
      {(finish === "length" || finish === "max_tokens" || finish === "max_output_tokens") && (
        <span class="badge warn">Output budget reached</span>
      )}
      {firstTokenMs !== null && <span class="number">first token {seconds(firstTokenMs)}</span>}
      {totalMs !== null && <span class="number">total {seconds(totalMs)}</span>}
      {usage !== null && (
        <span class="number" title={`${count(usage.cached)} of the input cached, ${count(usage.reasoning)} reasoning`}>
          {count(usage.input)} in · {count(usage.output)} out
        </span>
      )}
      {costUsd !== null && <span class="number">{costUsd === 0 ? "free" : dollars(costUsd)}</span>}
      {requestId !== null && <RequestId id={requestId} isBilled={state !== "failed"} />}
    </footer>
  );
}

/** The usage page lists only billed requests: of a failed one, people can copy the id, which the server's log has. */
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
    <Arguments json={call.arguments} />
    {call.result !== null && (
      <details>
        <summary>Result</summary>
        <pre>
          <LongText text={call.result} />
        </pre>
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
      <Arguments json={call.arguments} />
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
          <Button caption="Send result" type="submit" />
        </form>
      )}
    </section>
  );
}

const Arguments = ({ json }: { json: string }): VNode => {
  const text = useMemo(() => indented(json), [json]);
  return (
    <pre>
      <LongText text={text} />
    </pre>
  );
};

/** Longer or deeper JSON stays as it is: indented, 5,000 nested brackets are 50 MB. */
const indentedMaxLength = 20_000;
const indentedMaxDepth = 50;

function indented(json: string): string {
  if (json.length > indentedMaxLength || isDeep(json)) return json;
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not complete yet, or no JSON at all
  }
}

/** Brackets inside strings count, too; few strings have that many. */
function isDeep(json: string): boolean {
  let depth = 0;
  for (const letter of json) {
    if (letter === "[" || letter === "{") depth++;
    else if (letter === "]" || letter === "}") depth--;
    if (depth > indentedMaxDepth) return true;
  }
  return false;
}
