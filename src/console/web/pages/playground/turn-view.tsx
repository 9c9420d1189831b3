// One step of the conversation: a question, a tool's result, or answers with their reasoning, calls and sources.
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, dollars, shortTime } from "../../format.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Icon } from "../../parts/icons.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { Markdown, SafeLink } from "../../parts/markdown.tsx";
import { t } from "../../texts.ts";
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
    <span class="versions" role="group" aria-label={t("play.versions")}>
      {button(at - 1, t("play.earlier"), "back")}
      <span class="number">
        {at + 1} / {versions.length}
      </span>
      {button(at + 1, t("play.later"), "chevron")}
    </span>
  );
}

type AskedProps = Readonly<{ step: Step; turn: UserTurn; chooser: VNode | null; busy: boolean }>;

function Asked({ step, turn, chooser, busy }: AskedProps): VNode {
  const [editing, setEditing] = useState(false);
  const { text } = turn;
  return (
    <article class="turn user" aria-label={t("play.you")}>
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
          {text !== "" && <CopyButton text={text} label={t("play.copy_question")} />}
          <IconButton
            icon="pencil"
            size={16}
            label={t("play.edit_question")}
            title={t(text.length > editedMaxLength ? "play.edit_too_long" : "play.edit_about")}
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
        aria-label={t("play.question")}
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
        <Button caption={t("common.cancel")} class="button small" onClick={onCancel} />
        <Button
          caption={t("play.send_instead")}
          type="submit"
          class="button small primary"
          disabled={!canSend}
          title={t("play.send_keys")}
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
        caption={t("play.show_all", { count: text.length })}
        class="link-button small-text"
        onClick={() => setWhole(true)}
      />
    </>
  );
}

const ToolResult = ({ turn }: { turn: ToolTurn }): VNode => (
  <article class="turn tool" aria-label={t("play.result_of", { name: turn.name })}>
    <p class="quiet small-text">{t("play.result_of", { name: turn.name })}</p>
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
      isOneOfSeveral={lanes.length > 1}
      onAgain={() => askAgain(step, lane)}
      onAlone={() => goOnWith(answer, lane)}
    />
  );
  const [first] = lanes;
  if (lanes.length === 1 && first != null) return view(first, 0);
  return (
    <div
      class="lanes"
      style={{ "--lanes": lanes.length }}
      tabIndex={0}
      role="group"
      aria-label={t("play.side_by_side")}
    >
      {lanes.map((answer, lane) => (
        <div key={lane} class="lane">
          {answer !== null && <p class="lane-name">{answer.model}</p>}
          {answer !== null && <Figures answer={answer} among={lanes} />}
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
  isOneOfSeveral: boolean;
  onAgain: () => void;
  onAlone: () => void;
}>;

function AnswerView(props: AnswerViewProps): VNode {
  const { answer, waiting, busy, onAgain } = props;
  const streaming = answer.state === "streaming";
  const thinkingNow = streaming && answer.text === "" && answer.calls.length === 0;
  return (
    <article class="turn answer" aria-label={t("play.answer_of", { model: answer.model })} aria-busy={streaming}>
      {answer.reasoning !== "" && (
        <details class="reasoning">
          <summary>{t(thinkingNow ? "play.thinking" : "play.reasoning")}</summary>
          <div dir="auto">
            <LongText text={answer.reasoning} />
          </div>
        </details>
      )}
      {answer.searches.length > 0 && (
        <p class="quiet small-text">
          <Icon name="globe" size={14} />{" "}
          {t("play.searched", { queries: answer.searches.map((query) => `“${query}”`).join(", ") })}
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
        <section class="sources" aria-label={t("play.sources")}>
          <h3>{t("play.sources")}</h3>
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
            <Icon name="refresh" size={14} /> {t("common.try_again")}
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

function AnswerFoot({ answer, busy, chooser, isOneOfSeveral, onAgain, onAlone }: AnswerViewProps): VNode {
  const { state, usage, finish, firstTokenMs, totalMs, requestId, text, costUsd } = answer;
  return (
    <footer class="turn-foot">
      <span class="turn-tools">
        {text !== "" && <CopyButton text={text} label={t("play.copy_answer")} />}
        {state !== "failed" && (
          <IconButton
            icon="refresh"
            size={16}
            label={t("play.ask_again")}
            title={t("play.ask_again_about")}
            disabled={busy}
            onClick={onAgain}
          />
        )}
        {isOneOfSeveral && <Button caption={t("play.go_on")} class="button small" disabled={busy} onClick={onAlone} />}
        {chooser}
      </span>
      {!isOneOfSeveral && <span>{answer.model}</span>}
      {state === "stopped" && <span class="badge warn">{t(finish === "cut" ? "play.cut" : "play.stopped")}</span>}
      {(finish === "length" || finish === "max_tokens" || finish === "max_output_tokens") && (
        <span class="badge warn">{t("play.budget_reached")}</span>
      )}
      {!isOneOfSeveral && firstTokenMs !== null && (
        <span class="number">{t("play.first_token_in", { time: shortTime(firstTokenMs) })}</span>
      )}
      {totalMs !== null && <span class="number">{t("play.total_in", { time: shortTime(totalMs) })}</span>}
      {!isOneOfSeveral && usage !== null && (
        <span class="number" title={t("play.of_these", { cached: usage.cached, reasoning: usage.reasoning })}>
          {t("play.in_out", { input: count(usage.input), output: count(usage.output) })}
        </span>
      )}
      {!isOneOfSeveral && costUsd !== null && <span class="number">{costOf(costUsd)}</span>}
      {requestId !== null && <RequestId id={requestId} isBilled={state !== "failed"} />}
    </footer>
  );
}

/** The usage page lists only billed requests: of a failed one, people can copy the id, which the server's log has. */
const RequestId = ({ id, isBilled }: { id: string; isBilled: boolean }): VNode =>
  isBilled ? (
    <a href={`/usage?text=${encodeURIComponent(id)}`} title={id}>
      {t("play.usage")}
    </a>
  ) : (
    <CopyButton text={id} label={t("play.copy_request_id", { id })} caption={t("play.request_id")} />
  );

const costOf = (usd: number): string => (usd === 0 ? t("play.free") : dollars(usd));

const speedOf = ({ usage, firstTokenMs, totalMs }: Answer): number | null =>
  usage === null || firstTokenMs === null || totalMs === null || totalMs <= firstTokenMs
    ? null
    : usage.output / ((totalMs - firstTokenMs) / 1_000);

type FiguresProps = Readonly<{ answer: Answer; among: readonly (Answer | null)[] }>;

/** How one of several models did; reads no signal, or it would be drawn for that signal alone. What is the best of them stands out once all are done. */
function Figures({ answer, among }: FiguresProps): VNode {
  const all = among.filter((each) => each !== null);
  const isOver = all.every(({ state }) => state !== "streaming");
  const figure = (
    name: string,
    of: (answer: Answer) => number | null,
    text: (value: number) => string,
    best: typeof Math.min,
  ): VNode => {
    const value = of(answer);
    const values = all.flatMap((each) => of(each) ?? []);
    const isBest = isOver && new Set(values).size > 1 && value === best(...values);
    return (
      <div class={isBest ? "best" : undefined}>
        <dt>{name}</dt>
        <dd class="number">{value === null ? "–" : text(value)}</dd>
      </div>
    );
  };
  return (
    <dl class="lane-figures">
      {figure(t("play.first_token"), (of) => of.firstTokenMs, shortTime, Math.min)}
      {figure(t("play.speed"), speedOf, (speed) => t("play.per_second", { count: count(Math.round(speed)) }), Math.max)}
      {figure(t("play.tokens"), (of) => of.usage?.output ?? null, count, Math.min)}
      {figure(t("play.cost"), (of) => of.costUsd, costOf, Math.min)}
    </dl>
  );
}

const ServerCallView = ({ call, runs }: { call: ServerCall; runs: boolean }): VNode => (
  <section class="call" aria-label={t("play.call_of_on", { name: call.name, server: call.server })}>
    <header>
      <Icon name="nodes" size={15} />
      <code>{call.name}</code>
      <span class="quiet">{t("play.on_server", { server: call.server })}</span>
      {runs && <span class="badge">{t("play.running")}</span>}
      {call.failed && <span class="badge bad">{t("play.call_failed")}</span>}
    </header>
    <Arguments json={call.arguments} />
    {call.result !== null && (
      <details>
        <summary>{t("play.result")}</summary>
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
    <section class="call" aria-label={t("play.call_of", { name: call.name })}>
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
            aria-label={t("play.result_of", { name: call.name })}
            placeholder={t("play.result_example")}
            value={output}
            onInput={(event) => setOutput(event.currentTarget.value)}
          />
          <Button caption={t("play.send_result")} type="submit" />
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
