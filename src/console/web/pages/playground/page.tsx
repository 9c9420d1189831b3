// The playground: a conversation with any model, through the same endpoints and at the same prices as every client.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ConsoleModels } from "../../../api.ts";
import { SnippetTabs } from "../../parts/code-block.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Failure } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { session } from "../../session.ts";
import { Composer } from "./composer.tsx";
import {
  type Answer,
  answering,
  type Call,
  change,
  openCalls,
  type Picture,
  readSchema,
  readTools,
  revision,
  settings,
  type Turn,
  turns,
} from "./conversation.ts";
import { snippetsOf } from "./request-code.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { ask, dialects, stop } from "./stream.ts";
import { TurnView } from "./turn-view.tsx";

const suggestions = [
  "Explain how a token bucket limits a rate, with a short code example",
  "Write a haiku about gates and tolls",
  "Compare SQLite and PostgreSQL for a small service in a table",
  "What is the difference between concurrency and parallelism?",
];
/** Within so many pixels of its end, the conversation follows the answer. */
const followPixels = 80;

export function PlaygroundPage(): VNode {
  const models = useResource(() => get<ConsoleModels>("/models"), "models");
  const [sheet, setSheet] = useState<"settings" | "code" | null>(null);
  const all = turns.value;
  useFirstModel(models.value);
  useEffect(() => {
    document.title = "Playground · Tollgate";
  }, []);

  const send = (text: string, pictures: readonly Picture[]): void =>
    void ask(settings.value, [{ role: "user", text, pictures }]);
  const giveResult = (call: Call, output: string): void => {
    const result: Turn = { role: "tool", callId: call.id, name: call.name, output };
    if (openCalls(all).length === 1) return void ask(settings.value, [result]);
    turns.value = [...all, result];
  };
  return (
    <div class="playground">
      <section class="play-main" aria-label="Conversation">
        <header class="play-head">
          <h1 tabIndex={-1}>Playground</h1>
          <ModelChoice models={models.value} />
          <button
            type="button"
            class="icon-button only-narrow"
            aria-label="Settings"
            title="Settings"
            onClick={() => setSheet("settings")}
          >
            <Icon name="settings" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label="Show the request as code"
            title="Show the request as code"
            onClick={() => setSheet("code")}
          >
            <Icon name="code" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label="New conversation"
            title="New conversation"
            disabled={all.length === 0}
            onClick={() => {
              stop();
              turns.value = [];
            }}
          >
            <Icon name="plus" />
          </button>
        </header>
        <Conversation onSuggestion={(text) => send(text, [])} onResult={giveResult} ready={settings.value.model !== ""}>
          {models.error === null ? null : <Failure message={models.error} onRetry={models.reload} />}
        </Conversation>
        <Composer
          streaming={answering.value}
          obstacle={obstacleOf(all)}
          readsImages={models.value?.models.find(({ id }) => id === settings.value.model)?.reads_images ?? true}
          onSend={send}
          onStop={stop}
        />
      </section>
      <aside class="play-side" aria-label="Settings">
        <SettingsPanel />
      </aside>
      {sheet === "settings" && (
        <Dialog title="Settings" kind="sheet" onClose={() => setSheet(null)}>
          <SettingsPanel />
        </Dialog>
      )}
      {sheet === "code" && (
        <Dialog title="The request as code" kind="sheet" onClose={() => setSheet(null)}>
          <RequestCode />
        </Dialog>
      )}
    </div>
  );
}

/** Something must be chosen before anything can be sent: the first model that a node serves. */
function useFirstModel(models: ConsoleModels | null): void {
  useEffect(() => {
    if (models === null || settings.value.model !== "") return;
    const able = models.models.filter(({ usable, coder }) => usable && !coder);
    const first = able.find(({ served }) => served) ?? able[0] ?? models.models[0];
    if (first !== undefined) change({ model: first.id });
  }, [models]);
}

function obstacleOf(all: readonly Turn[]): string | null {
  if (settings.value.model === "") return "Loading models…";
  if (typeof readTools(settings.value.tools) === "string") return "The tools are not valid JSON";
  if (typeof readSchema(settings.value.schema) === "string") return "The schema is not valid JSON";
  return openCalls(all).length > 0 ? "Give the tool's result first" : null;
}

const ModelChoice = ({ models }: { models: ConsoleModels | null }): VNode => (
  <select
    aria-label="Model"
    value={settings.value.model}
    disabled={models === null}
    onChange={(event) => change({ model: event.currentTarget.value })}
  >
    {models?.models.map(({ id, served }) => (
      <option key={id} value={id}>
        {served ? id : `${id} (no node)`}
      </option>
    ))}
  </select>
);

/** What readers of screens are told; why an answer failed is told by its own alert. */
const told: Readonly<Record<Answer["state"], string>> = {
  streaming: "The model is answering",
  done: "The answer is complete",
  stopped: "The answer was stopped",
  failed: "",
};

type ConversationProps = Readonly<{
  ready: boolean;
  onSuggestion: (text: string) => void;
  onResult: (call: Call, output: string) => void;
  children: VNode | null;
}>;

function Conversation({ ready, onSuggestion, onResult, children }: ConversationProps): VNode {
  const all = turns.value;
  const changes = revision.value;
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const place = useRef(0);
  useEffect(() => {
    const element = scroller.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [all, changes]);
  useEffect(() => {
    follows.current = true; // a new turn was asked for by the user, who wants to see it
  }, [all.length]);
  const last = all.at(-1);
  const waiting = openCalls(all);
  return (
    <div
      ref={scroller}
      class="turns"
      tabIndex={0}
      role="log"
      aria-label="Messages"
      aria-live="off"
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        // Only a reader scrolls up: an answer that grew between two draws leaves the place as it is.
        if (scrollHeight - scrollTop - clientHeight < followPixels) follows.current = true;
        else if (scrollTop < place.current) follows.current = false;
        place.current = scrollTop;
      }}
    >
      <div class="turns-column">
        {children}
        {all.length === 0 && (
          <div class="empty">
            <Icon name="playground" size={28} />
            <p class="empty-title">Try a model</p>
            <p class="quiet">
              Its requests are like any others: they use the same endpoints and your balance, and appear in your usage.
            </p>
            <div class="suggestions">
              {suggestions.map((text) => (
                <button key={text} type="button" disabled={!ready} onClick={() => onSuggestion(text)}>
                  {text}
                </button>
              ))}
            </div>
          </div>
        )}
        {all.map((turn, index) => (
          <TurnView
            key={index}
            turn={turn}
            revision={turn === last ? changes : 0}
            waiting={waiting}
            onResult={onResult}
          />
        ))}
      </div>
      <p class="for-readers" role="status">
        {last?.role === "assistant" && told[last.state]}
      </p>
    </div>
  );
}

/** What was sent last, or would be sent first. */
function RequestCode(): VNode {
  const dialect = dialects[settings.value.dialect];
  const asked = turns.value.slice(0, turns.value.findLastIndex(({ role }) => role !== "assistant") + 1);
  const shown: readonly Turn[] = asked.length > 0 ? asked : [{ role: "user", text: "Say hello", pictures: [] }];
  const baseUrl = session.value?.base_url ?? location.origin;
  return (
    <div class="stack">
      <p class="quiet">
        {asked.length > 0 ? "The last request" : "A first request"} with these settings, in the dialect{" "}
        <code>{dialect.endpoint}</code>.
      </p>
      <SnippetTabs
        key={settings.value.dialect}
        label="Clients"
        snippets={snippetsOf(settings.value.dialect, dialect, dialect.body(settings.value, shown), baseUrl)}
      />
    </div>
  );
}
