// The playground: a conversation with any model, or with up to four side by side, through the same endpoints and at the same
// prices as every client.
import { signal } from "@preact/signals";
import type { ComponentProps, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ConsoleModels } from "../../../api/overview.ts";
import { SnippetTabs } from "../../parts/code-block.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icons.tsx";
import { goHome } from "../../parts/kept-focus.ts";
import { Failure } from "../../parts/states.tsx";
import { toast } from "../../parts/toasts.tsx";
import { cents } from "../../format.ts";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { navigate, place } from "../../route.ts";
import { sells, session } from "../../session.ts";
import { Composer } from "./composer.tsx";
import { type TextKey, t } from "../../texts.ts";
import { type Answer, change, modelsOf, readSchema, readTools, revision, settings, type Turn } from "./conversation.ts";
import { ConversationList, conversationPath } from "./conversation-list.tsx";
import { send, startNew, stop } from "./exchange.ts";
import { answering, conversation, entries, openConversation, opening, written } from "./kept.ts";
import { snippetsOf } from "./request-code.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { dialects } from "./stream.ts";
import { isEmpty, openCalls, pathOf, type Step, turnsOf, versionsByParent } from "./tree.ts";
import { StepView } from "./turn-view.tsx";
import { IconButton } from "../../parts/button.tsx";

const suggestions = ["play.suggest_code", "play.suggest_haiku", "play.suggest_table", "play.suggest_short"] as const;
/** The conversation follows the answer while the reader is within this distance of its end. */
const followPixels = 80;

/** More columns than this are too narrow to read. */
const modelsMax = 4;

type Sheet = "settings" | "code" | "conversations";

export function PlaygroundPage(): VNode {
  const models = useResource(() => get("/models"), "models");
  const [sheet, setSheet] = useState<Sheet | null>(null);
  const close = (): void => setSheet(null);
  const shown = conversation.value;
  const { title } = shown;
  const { model, others } = settings.value;
  useFirstModel(models.value);
  useAddress();
  useKeyboardRoom();
  useEffect(() => {
    document.title = [title, t("menu.playground"), "Tollgate"].filter((part) => part !== "").join(" · ");
  }, [title]);

  const outputTokens = models.value?.models.find(({ id }) => id === model)?.output_tokens;
  return (
    <div class={`playground ${others === "" ? "" : "comparing"} ${isListShown.value ? "" : "without-list"}`}>
      <aside class="play-list" aria-label={t("play.kept_conversations")}>
        <button type="button" class="button block" disabled={isEmpty(shown)} onClick={begin}>
          <Icon name="plus" size={16} /> {t("play.new")}
        </button>
        <ConversationList />
      </aside>
      <section class="play-main" aria-label={t("play.conversation")}>
        <Head models={models.value} onSheet={setSheet} />
        <Conversation
          isReady={model !== "" ? models.value !== null : models.value?.models.length === 0}
          model={models.value?.models.find(({ id }) => id === model)}
        >
          {models.error === null ? null : <Failure message={models.error} onRetry={models.reload} />}
        </Conversation>
        <Composer
          streaming={answering.value}
          obstacle={obstacleOf(pathOf(shown))}
          models={models.value}
          onSend={send}
          onStop={stop}
        />
      </section>
      <aside class="play-side" aria-label={t("play.settings")}>
        <SettingsPanel outputTokens={outputTokens} />
      </aside>
      {sheet === "conversations" && (
        <Dialog title={t("play.conversations")} kind="sheet drawer" onClose={close}>
          <ConversationList onLeave={close} />
        </Dialog>
      )}
      {sheet === "settings" && (
        <Dialog title={t("play.settings")} kind="sheet" onClose={close}>
          <SettingsPanel outputTokens={outputTokens} />
        </Dialog>
      )}
      {sheet === "code" && (
        <Dialog title={t("play.as_code")} kind="sheet" onClose={close}>
          <RequestCode />
        </Dialog>
      )}
    </div>
  );
}

function Head({ models, onSheet }: { models: ConsoleModels | null; onSheet: (sheet: Sheet) => void }): VNode {
  const [model = "", ...others] = modelsOf(settings.value);
  const choose = (next: readonly string[]): void => change({ others: next.join("\n") });
  return (
    <header class="play-head">
      <HeadButton
        icon="history"
        label={t("play.conversations")}
        aria-expanded={isListShown.value}
        shown="only-with-list"
        onClick={() => showList(!isListShown.value)}
      />
      <HeadButton
        icon="history"
        label={t("play.conversations")}
        shown="only-without-list"
        onClick={() => onSheet("conversations")}
      />
      <h1 tabIndex={-1}>{t("menu.playground")}</h1>
      <div class="play-models">
        <ModelChoice label={t("play.model")} models={models} chosen={model} onChoose={(id) => change({ model: id })} />
        {others.map((other, index) => (
          <span key={index} class="play-other">
            <ModelChoice
              label={t("play.model_number", { number: index + 2 })}
              models={models}
              chosen={other}
              onChoose={(id) => choose(others.with(index, id))}
            />
            <IconButton
              icon="close"
              size={14}
              label={t("play.remove", { name: other })}
              onClick={() => choose(others.toSpliced(index, 1))}
            />
          </span>
        ))}
      </div>
      <HeadButton
        icon="columns"
        word="play.compare_word"
        label={t(others.length === 0 ? "play.compare" : "play.compare_more")}
        aria-pressed={others.length > 0}
        disabled={model === "" || others.length + 1 >= modelsMax}
        onClick={() => choose([...others, otherThan([model, ...others], models)])}
      />
      <HeadButton
        icon="settings"
        word="play.settings"
        label={t("play.settings")}
        shown="only-narrow"
        onClick={() => onSheet("settings")}
      />
      <HeadButton icon="code" word="play.code_word" label={t("play.show_code")} onClick={() => onSheet("code")} />
      <HeadButton
        icon="plus"
        label={t("play.new")}
        shown="only-without-new"
        disabled={isEmpty(conversation.value)}
        onClick={begin}
      />
    </header>
  );
}

function begin(): void {
  startNew();
  navigate("/playground");
  goHome();
}

type HeadButtonProps = ComponentProps<typeof IconButton> &
  Readonly<{
    /** Where it is shown; absent: everywhere. */
    shown?: "only-with-list" | "only-without-list" | "only-without-new" | "only-narrow";
  }>;

const HeadButton = ({ shown, ...button }: HeadButtonProps): VNode => (
  <IconButton {...button} title={button.label} look={shown} />
);

/** A request needs a model: the first one that a node serves is chosen. */
function useFirstModel(models: ConsoleModels | null): void {
  useEffect(() => {
    if (models === null || settings.value.model !== "") return;
    const first = usable(models)[0] ?? models.models[0];
    if (first !== undefined) change({ model: first.id });
  }, [models, settings.value.model === ""]);
}

function usable({ models }: ConsoleModels): ConsoleModels["models"] {
  const able = models.filter(({ usable, coder }) => usable && !coder);
  return [...able.filter(({ served }) => served), ...able.filter(({ served }) => !served)];
}

const otherThan = (chosen: readonly string[], models: ConsoleModels | null): string =>
  (models === null ? undefined : usable(models).find(({ id }) => !chosen.includes(id)))?.id ?? chosen[0]!;

/** Whether a wide window shows the list of conversations; this browser remembers it. */
const listKey = "tollgate-playground-list";
const isListShown = signal(localStorage.getItem(listKey) !== "hidden");
function showList(shown: boolean): void {
  isListShown.value = shown;
  localStorage.setItem(listKey, shown ? "shown" : "hidden");
}

/** The address names the conversation, for reloads and bookmarks. `?model=` chooses one, `?new` starts anew. */
function useAddress(): void {
  const { path, query } = place.value;
  const wanted = query.get("c");
  const model = query.get("model");
  const { id, steps } = conversation.value;
  const has = (wantedId: string): boolean => entries.value?.some((entry) => entry.id === wantedId) === true;
  const isKept = has(id);
  useEffect(() => {
    if (model !== null) change({ model, others: "" });
    if (model !== null || query.has("new")) {
      startNew();
      navigate("/playground", { replace: true });
    } else if (wanted !== null && wanted !== conversation.value.id) {
      void openConversation(wanted).then((found) => {
        if (found || place.value.query.get("c") !== wanted) return;
        toast(t("play.not_here"), "failed");
        startNew();
        navigate("/playground", { replace: true });
      });
    }
  }, [wanted, model, query.has("new")]);
  const isBack = wanted !== null && has(wanted);
  useEffect(() => {
    // Somebody deleted it elsewhere, and put it back: its address is still this one.
    if (isBack && wanted !== conversation.value.id) void openConversation(wanted);
  }, [isBack]);
  useEffect(() => {
    if (path !== "/playground" || !isKept || steps.size === 0 || model !== null || query.has("new")) return;
    if (conversation.value.id !== id) return; // a new one was begun before this ran
    // Another tab may have deleted the one that the address names.
    if (wanted === null || (wanted !== id && !has(wanted))) navigate(conversationPath(id), { replace: true });
  }, [path, wanted, id, isKept]);
}

/** Safari on phones lays the keyboard over the page, so the page ends above it (others: interactive-widget). */
function useKeyboardRoom(): void {
  useEffect(() => {
    const { visualViewport } = globalThis;
    const root = document.documentElement;
    const measure = (): void => {
      const covered = visualViewport === null ? 0 : innerHeight - visualViewport.height * visualViewport.scale;
      root.style.setProperty("--keyboard", `${covered > keyboardMinPixels ? Math.round(covered) : 0}px`);
    };
    visualViewport?.addEventListener("resize", measure);
    return () => {
      visualViewport?.removeEventListener("resize", measure);
      root.style.removeProperty("--keyboard");
    };
  }, []);
}
/** The browser's own bars come and go, too, but are lower than a keyboard. */
const keyboardMinPixels = 120;

function obstacleOf(path: readonly Step[]): string | null {
  if (settings.value.model === "") return t("play.loading_models");
  if (opening.value !== null) return t("play.loading_conversation");
  if (typeof readTools(settings.value.tools) === "string") return t("play.tools_no_json");
  if (typeof readSchema(settings.value.schema) === "string") return t("play.schema_no_json");
  return openCalls(path).length > 0 ? t("play.result_first") : null;
}

type ModelChoiceProps = Readonly<{
  label: string;
  models: ConsoleModels | null;
  chosen: string;
  onChoose: (id: string) => void;
}>;

const ModelChoice = ({ label, models, chosen, onChoose }: ModelChoiceProps): VNode => (
  <select
    aria-label={label}
    value={chosen}
    disabled={models === null}
    onChange={(event) => onChoose(event.currentTarget.value)}
  >
    {models?.models.map(({ id, served }) => (
      <option key={id} value={id}>
        {served ? id : t("play.no_node", { model: id })}
      </option>
    ))}
    {models?.models.every(({ id }) => id !== chosen) === true && chosen !== "" && (
      <option value={chosen}>{t("play.not_served", { model: chosen })}</option>
    )}
  </select>
);

/** Announced by screen readers; a failed answer has an alert of its own. */
const announced: Readonly<Record<Answer["state"], TextKey | null>> = {
  streaming: "play.is_answering",
  done: "play.is_complete",
  stopped: "play.is_stopped",
  failed: null,
};

/** Of several answers, an unfinished one counts. */
function stateOf(step: Step | undefined): string {
  if (step?.turn.role !== "replies") return "";
  const states = step.turn.lanes.flatMap((answer) => (answer === null ? [] : [answer.state]));
  const state = states.find((each) => each === "streaming") ?? states.find((each) => each === "failed") ?? states[0];
  const key = state === undefined ? null : announced[state];
  return key === null ? "" : t(key);
}

/** Keeps the end of a scrolled list in sight while it grows, until the reader scrolls up. */
function useFollowing(isAtStart: () => boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const place = useRef(0);
  const toEnd = (): void => {
    const element = scroller.current;
    if (element !== null && follows.current && !isAtStart()) element.scrollTop = element.scrollHeight;
  };
  useEffect(() => {
    const column = scroller.current?.firstElementChild;
    if (column == null) return undefined;
    const observer = new ResizeObserver(toEnd); // a long answer is drawn over several frames
    observer.observe(column);
    return () => observer.disconnect();
  }, []);
  const onScroll = ({ currentTarget }: { currentTarget: HTMLDivElement }): void => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget;
    // Only a reader scrolls up: an answer that grew between two draws leaves the place as it is.
    if (scrollHeight - scrollTop - clientHeight < followPixels) follows.current = true;
    else if (scrollTop < place.current) follows.current = false;
    place.current = scrollTop;
  };
  return { scroller, follows, toEnd, onScroll };
}

type Model = ConsoleModels["models"][number];
type ConversationProps = Readonly<{
  /** It begins when models are known: what says more of them later would move. */
  isReady: boolean;
  model: Model | undefined;
  children: VNode | null;
}>;

function Conversation({ isReady, model, children }: ConversationProps): VNode {
  const shown = conversation.value;
  const changes = revision.value;
  const all = useMemo(() => pathOf(shown), [shown]);
  const versions = useMemo(() => versionsByParent(shown), [shown]);
  const waiting = useMemo(() => openCalls(all), [all]);
  // An empty conversation shows its beginning.
  const { scroller, follows, toEnd, onScroll } = useFollowing(() => isEmpty(conversation.value));
  useEffect(toEnd, [all, changes]);
  useEffect(() => {
    follows.current = true; // the user asked for a new turn, and wants to see it
  }, [all.length, shown.id]);
  return (
    <div
      ref={scroller}
      class="turns"
      tabIndex={0}
      role="log"
      aria-label={t("play.messages")}
      aria-live="off"
      onScroll={onScroll}
    >
      <div class="turns-column">
        {children}
        {all.length === 0 && isReady && <Suggestions model={model} />}
        {all.map((step) => (
          <StepView
            key={step.id}
            step={step}
            versions={versions.get(step.parent) ?? []}
            revision={written.value.has(step.id) ? changes : 0}
            waiting={waiting}
            busy={answering.value}
          />
        ))}
      </div>
      <p class="for-readers" role="status">
        {stateOf(all.at(-1))}
      </p>
    </div>
  );
}

/** What one should know of a model before the first question. */
function factsOf({ context_tokens: context, reads_images, reads_audio, price, flat_price }: Model): string {
  const [input, output] = [cents(price.input_cents), cents(price.output_cents)];
  const isFree = price.input_cents + price.output_cents === 0;
  return [
    t("play.context", { tokens: `${Math.round(context / 1024)}K` }),
    reads_images && t("play.reads_images"),
    reads_audio && t("play.reads_audio"),
    sells.value && (isFree ? t("play.free") : t(flat_price ? "play.price_flat" : "play.price", { input, output })),
  ]
    .filter((part) => part !== false)
    .join(" · ");
}

const Suggestions = ({ model }: Pick<ConversationProps, "model">): VNode => (
  <div class="empty">
    <Icon name="playground" size={28} />
    <p class="empty-title">{model === undefined ? t("play.try_model") : t("play.ask_model", { model: model.id })}</p>
    {model !== undefined && <p class="number">{factsOf(model)}</p>}
    <p class="quiet small-text">{t(sells.value ? "play.like_others_sells" : "play.like_others")}</p>
    <div class="suggestions">
      {suggestions.map((key) => (
        <button key={key} type="button" disabled={model === undefined} onClick={() => send(t(key), [])}>
          {t(key)}
        </button>
      ))}
    </div>
  </div>
);

/** The last request, or the first one that would be sent. */
function RequestCode(): VNode {
  const dialect = dialects[settings.value.dialect];
  const path = pathOf(conversation.value);
  const asked = turnsOf(
    path.slice(0, path.findLastIndex(({ turn }) => turn.role !== "replies") + 1),
    conversation.value.lane,
  );
  const shown: readonly Turn[] = asked.length > 0 ? asked : [{ role: "user", text: t("play.say_hello"), pictures: [] }];
  const baseUrl = session.value?.base_url ?? location.origin;
  return (
    <div class="stack">
      <p class="quiet">
        {t(asked.length > 0 ? "play.last_request" : "play.first_request")} <code>{dialect.endpoint}</code>
      </p>
      <SnippetTabs
        key={settings.value.dialect}
        label={t("play.clients")}
        snippets={snippetsOf(settings.value.dialect, dialect, dialect.body(settings.value, shown), baseUrl)}
      />
    </div>
  );
}
