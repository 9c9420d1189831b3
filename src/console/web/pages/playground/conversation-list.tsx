// The conversations of the account, by day: searched, opened, pinned, renamed, exported, deleted, and where they are kept.
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../../clock.ts";
import { bytes, localDate } from "../../format.ts";
import { Confirm } from "../../parts/asking-dialogs.tsx";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Menu } from "../../parts/menu.tsx";
import { toast, toastWithUndo } from "../../parts/toasts.tsx";
import { messageOf, saveFile } from "../../request.ts";
import { navigate } from "../../route.ts";
import { t } from "../../texts.ts";
import type { Entry } from "./conversation-store.ts";
import { KeepingDialog } from "./keeping-dialog.tsx";
import {
  addConversation,
  conversation,
  deleteAllConversations,
  deleteConversation,
  entries,
  keeping,
  labelConversation,
  searchConversations,
} from "./kept.ts";
import { owner } from "./owner.ts";
import { isWaiting, readConversation, server } from "./places.ts";

const dayMs = 24 * 60 * 60 * 1_000;
const searchAfterMs = 150;
const titleMaxLength = 200;

export const conversationPath = (id: string): string => `/playground?c=${encodeURIComponent(id)}`;

/** Says why, where it fails. */
const tried = (done: Promise<unknown>): void => void done.catch((error: unknown) => toast(messageOf(error), "failed"));

function remove(entry: Entry): void {
  const wasShown = conversation.value.id === entry.id;
  tried(
    deleteConversation(entry).then((putBack) => {
      if (wasShown) navigate("/playground", { replace: true });
      toastWithUndo(t("play.deleted", { title: entry.title }), async () => {
        await putBack();
        if (wasShown) navigate(conversationPath(entry.id), { replace: true });
      });
    }),
  );
}

async function save(some: readonly Entry[], as: "markdown" | "json"): Promise<void> {
  const { jsonOf, markdownOf } = await import("./export.ts");
  const name = some.length === 1 ? some[0]!.title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) : "conversations";
  if (as === "json") return saveFile(await jsonOf(some), `${name}.json`);
  const read = await readConversation(some[0]!.owner, some[0]!.id);
  if (read !== null) saveFile(new Blob([markdownOf(read)], { type: "text/markdown" }), `${name}.md`);
}

async function load(file: File): Promise<void> {
  const { conversationsIn } = await import("./import.ts");
  const read = await conversationsIn(file, owner.value ?? "");
  for (const each of read) await addConversation(each);
  toast(t("play.imported", { count: read.length }));
}

/** `onLeave` closes the drawer in which the list may be. */
export function ConversationList({ onLeave }: { onLeave?: () => void }): VNode {
  const [words, setWords] = useState("");
  const [renamed, setRenamed] = useState<string | null>(null);
  const [asking, setAsking] = useState<Question | null>(null);
  const all = entries.value;
  const found = useFound(words, all);
  const groups = useMemo(() => grouped(found), [found]);
  const shown = conversation.value.id;
  const close = (): void => setAsking(null);
  if (keeping.value === "nowhere" && server.value.state !== "on") {
    return <p class="quiet small-text">{t("play.kept_nowhere")}</p>;
  }
  return (
    <div class="kept">
      <div class="kept-search" hidden={all?.length === 0}>
        <Icon name="search" size={15} />
        <input
          type="search"
          aria-label={t("play.search_label")}
          placeholder={t("play.search")}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      <Trouble />
      <nav class="kept-list" aria-label={t("play.conversations")} onKeyDown={moveFocus}>
        {groups.map(([name, group]) => (
          <section key={name}>
            <h3>{name}</h3>
            <ul>
              {group.map((entry) => (
                <EntryItem
                  key={entry.id}
                  entry={entry}
                  isShown={entry.id === shown}
                  isRenamed={entry.id === renamed}
                  onOpen={onLeave}
                  onRename={setRenamed}
                />
              ))}
            </ul>
          </section>
        ))}
        <p class="quiet small-text" role="status">
          {all === null
            ? t("common.loading")
            : found.length > 0
              ? ""
              : t(words.trim() === "" ? "play.none_yet" : "play.none_found")}
        </p>
      </nav>
      <Foot all={all ?? []} onAsk={setAsking} />
      {asking === "delete all" && (
        <Confirm
          title={t("play.delete_all_title")}
          confirm={t("play.delete_all")}
          onConfirm={deleteAllConversations}
          onClose={close}
        >
          <p>{t("play.delete_all_about", { count: all?.length ?? 0 })}</p>
        </Confirm>
      )}
      {asking === "keeping" && <KeepingDialog count={all?.length ?? 0} onClose={close} />}
    </div>
  );
}

/** Why something is not where it should be. */
function Trouble(): VNode | null {
  const { isFull, isAway } = server.value;
  if (keeping.value !== "full" && !isFull && !isAway) return null;
  return (
    <p class={isAway ? "notice small-text" : "form-error"} role="status">
      {t(keeping.value === "full" ? "play.browser_full" : isFull ? "play.server_full" : "play.server_away")}
    </p>
  );
}

type Question = "delete all" | "keeping";

/** Where they are kept, and what is done with all of them. */
function Foot({ all, onAsk }: Readonly<{ all: readonly Entry[]; onAsk: (question: Question) => void }>): VNode {
  const chooser = useRef<HTMLInputElement>(null);
  const { state } = server.value;
  return (
    <footer>
      <p class="quiet small-text">
        {state === "on"
          ? t("play.kept_on_server", { bytes: bytes(server.value.bytes), most: bytes(server.value.bytes_max) })
          : t("play.kept_in_browser")}{" "}
        {state !== "never" && (
          <Button caption={t("play.change_place")} class="link-button" onClick={() => onAsk("keeping")} />
        )}
      </p>
      <Menu
        label={t("play.all_conversations")}
        items={[
          { caption: t("play.import"), icon: "upload", act: () => chooser.current?.click() },
          ...(all.length === 0
            ? []
            : ([
                { caption: t("play.export_all"), icon: "download", act: () => tried(save(all, "json")) },
                { caption: t("play.delete_all"), icon: "trash", act: () => onAsk("delete all"), isDanger: true },
              ] as const)),
        ]}
      />
      <input
        ref={chooser}
        type="file"
        accept=".json,application/json"
        aria-label={t("play.import")}
        hidden
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          if (file !== undefined) tried(load(file));
          event.currentTarget.value = "";
        }}
      />
    </footer>
  );
}

/** Up and down, from one conversation to the next. */
function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  links[at + step]?.focus();
}

type EntryItemProps = Readonly<{
  entry: Entry;
  isShown: boolean;
  isRenamed: boolean;
  onOpen: (() => void) | undefined;
  /** Null: not anymore. */
  onRename: (id: string | null) => void;
}>;

function EntryItem({ entry, isShown, isRenamed, onOpen, onRename }: EntryItemProps): VNode {
  const { id, title, pinned } = entry;
  const link = useRef<HTMLAnchorElement>(null);
  const rename = (): void => onRename(id);
  const pin = (): void => tried(labelConversation(entry, { pinned: !pinned }));
  if (isRenamed) {
    const end = (name: string): void => {
      onRename(null);
      if (name !== "" && name !== title) tried(labelConversation(entry, { title: name }));
      setTimeout(() => link.current?.focus());
    };
    return (
      <li class="current">
        <TitleField title={title} onEnd={end} />
      </li>
    );
  }
  return (
    <li class={isShown ? "current" : undefined}>
      <a
        ref={link}
        href={conversationPath(id)}
        aria-current={isShown ? "true" : undefined}
        aria-keyshortcuts="F2 Delete"
        title={title}
        dir="auto"
        onClick={onOpen}
        onKeyDown={(event) => {
          if (event.key === "F2") rename();
          if (event.key === "Delete") remove(entry);
        }}
      >
        {title}
      </a>
      {isWaiting(id) && <span class="badge warn">{t("play.only_here")}</span>}
      <Menu
        label={t("play.more_of", { title })}
        items={[
          { caption: t(pinned ? "play.unpin" : "play.pin"), icon: "pin", act: pin },
          { caption: t("play.rename"), icon: "pencil", act: rename },
          { caption: t("play.export_markdown"), icon: "download", act: () => tried(save([entry], "markdown")) },
          { caption: t("play.export_json"), icon: "code", act: () => tried(save([entry], "json")) },
          { caption: t("common.delete"), icon: "trash", act: () => remove(entry), isDanger: true },
        ]}
      />
    </li>
  );
}

function TitleField({ title, onEnd }: Readonly<{ title: string; onEnd: (name: string) => void }>): VNode {
  const field = useRef<HTMLInputElement>(null);
  // At once, and not again while somebody types.
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <input
      ref={field}
      type="text"
      aria-label={t("play.title")}
      maxLength={titleMaxLength}
      defaultValue={title}
      onBlur={(event) => onEnd(event.currentTarget.value.trim())}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.stopPropagation();
        event.preventDefault();
        if (event.key === "Escape") event.currentTarget.value = title;
        event.currentTarget.blur();
      }}
    />
  );
}

/** Matches titles at once, and contents a moment later. */
function useFound(words: string, all: readonly Entry[] | null): readonly Entry[] {
  const [inside, setInside] = useState<ReadonlySet<string>>(new Set());
  const wanted = words.trim().toLowerCase();
  useEffect(() => {
    setInside(new Set());
    if (wanted.length < 2) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      // If the contents cannot be read, titles still match.
      void searchConversations(wanted, controller.signal).then(
        (found) => !controller.signal.aborted && setInside(found),
        () => {},
      );
    }, searchAfterMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted]);
  return useMemo(
    () =>
      (all ?? []).filter(({ id, title }) => wanted === "" || title.toLowerCase().includes(wanted) || inside.has(id)),
    [all, wanted, inside],
  );
}

/** The pinned ones, then by day. */
function grouped(found: readonly Entry[]): readonly (readonly [name: string, entries: readonly Entry[]])[] {
  const midnight = new Date(now()).setHours(0, 0, 0, 0);
  const nameOf = ({ pinned, updatedAt }: Entry): string => {
    if (pinned) return t("play.pinned");
    if (updatedAt >= midnight) return t("common.today");
    return updatedAt >= midnight - dayMs ? t("common.yesterday") : localDate(updatedAt);
  };
  const groups = Map.groupBy(
    [...found].sort((a, b) => Number(b.pinned) - Number(a.pinned)),
    nameOf,
  );
  return [...groups];
}
