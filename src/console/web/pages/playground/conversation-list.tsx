// The conversations that this browser keeps: searched, opened, renamed, exported and deleted, one or all.
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { now } from "../../clock.ts";
import { Confirm } from "../../parts/asking-dialogs.tsx";
import { FormError } from "../../parts/field.tsx";
import { Icon } from "../../parts/icons.tsx";
import { NameDialog } from "../../parts/name-dialog.tsx";
import { useAction } from "../../resource.ts";
import { saveFile } from "../../request.ts";
import { navigate } from "../../route.ts";
import type { Entry } from "./conversation-store.ts";
import { exportOf } from "./export.ts";
import {
  conversation,
  deleteAllConversations,
  deleteConversation,
  entries,
  keeping,
  renameConversation,
  searchConversations,
} from "./kept.ts";
import { Button, IconButton } from "../../parts/button.tsx";

const dayMs = 24 * 60 * 60 * 1_000;
const searchAfterMs = 150;
const titleMaxLength = 200;

export const conversationPath = (id: string): string => `/playground?c=${encodeURIComponent(id)}`;

/** `onLeave` closes the drawer in which the list may be. */
export function ConversationList({ onLeave }: { onLeave?: () => void }): VNode {
  const [words, setWords] = useState("");
  const [asking, setAsking] = useState<Entry | "all" | null>(null);
  const all = entries.value;
  const found = useFound(words, all);
  const groups = useMemo(() => grouped(found), [found]);
  const shown = conversation.value.id;
  const close = (): void => setAsking(null);
  if (keeping.value === "nowhere") {
    return (
      <p class="quiet small-text">
        This browser keeps nothing here, as in a private window. A conversation is gone when its page is closed.
      </p>
    );
  }
  return (
    <div class="kept">
      <div class="kept-search">
        <Icon name="search" size={15} />
        <input
          type="search"
          aria-label="Search the conversations"
          placeholder="Search"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      {keeping.value === "full" && (
        <p class="form-error">
          This browser has no room left. New messages are not kept until you delete old conversations.
        </p>
      )}
      <nav class="kept-list" aria-label="Conversations">
        {groups.map(([name, group]) => (
          <section key={name}>
            <h3>{name}</h3>
            <ul>
              {group.map((entry) => (
                <EntryItem
                  key={entry.id}
                  entry={entry}
                  isShown={entry.id === shown}
                  onOpen={onLeave}
                  onMore={() => setAsking(entry)}
                />
              ))}
            </ul>
          </section>
        ))}
        <p class="quiet small-text" role="status">
          {all === null
            ? "Loading…"
            : found.length > 0
              ? ""
              : words.trim() === ""
                ? "None yet"
                : "No conversation contains this"}
        </p>
      </nav>
      <footer>
        <p class="quiet small-text">Kept in this browser only.</p>
        {all !== null && all.length > 0 && <AllTools all={all} onDelete={() => setAsking("all")} />}
      </footer>
      {asking === "all" && <DeleteAll count={all?.length ?? 0} onClose={close} />}
      {asking !== null && asking !== "all" && <EntryDialog entry={asking} onClose={close} />}
    </div>
  );
}

type EntryItemProps = Readonly<{
  entry: Entry;
  isShown: boolean;
  onOpen: (() => void) | undefined;
  onMore: () => void;
}>;

const EntryItem = ({ entry: { id, title }, isShown, onOpen, onMore }: EntryItemProps): VNode => (
  <li class={isShown ? "current" : undefined}>
    <a href={conversationPath(id)} aria-current={isShown ? "true" : undefined} title={title} onClick={onOpen}>
      {title}
    </a>
    <IconButton
      icon="more"
      size={16}
      label={`Rename, export or delete ${title}`}
      title="Rename, export or delete"
      onClick={onMore}
    />
  </li>
);

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

function grouped(found: readonly Entry[]): readonly (readonly [name: string, entries: readonly Entry[]])[] {
  const midnight = new Date(now()).setHours(0, 0, 0, 0);
  const starts = [
    ["Today", midnight],
    ["Yesterday", midnight - dayMs],
    ["The last 7 days", midnight - 7 * dayMs],
    ["The last 30 days", midnight - 30 * dayMs],
    ["Older", -Infinity],
  ] as const;
  const groups = new Map<string, Entry[]>();
  for (const entry of found) {
    const [name = "Older"] = starts.find(([, start]) => entry.updatedAt >= start) ?? [];
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [entry]);
    else group.push(entry);
  }
  return [...groups];
}

function AllTools({ all, onDelete }: { all: readonly Entry[]; onDelete: () => void }): VNode {
  const action = useAction();
  return (
    <>
      <div class="row">
        <Button
          caption="Export all"
          class="link-button"
          disabled={action.busy}
          onClick={() => void action.run(async () => saveFile(await exportOf(all), "conversations.json"))}
        />
        <Button caption="Delete all" class="link-button" onClick={onDelete} />
      </div>
      <FormError message={action.error} />
    </>
  );
}

const DeleteAll = ({ count, onClose }: { count: number; onClose: () => void }): VNode => (
  <Confirm title="Delete all conversations?" confirm="Delete all" onConfirm={deleteAllConversations} onClose={onClose}>
    <p>
      {count === 1 ? "The conversation" : `All ${count} conversations`} of this account in this browser{" "}
      {count === 1 ? "is" : "are"} gone for good. What they cost stays on the usage page.
    </p>
  </Confirm>
);

function EntryDialog({ entry, onClose }: { entry: Entry; onClose: () => void }): VNode {
  const remove = async (): Promise<void> => {
    const wasShown = conversation.value.id === entry.id;
    await deleteConversation(entry.id);
    if (wasShown) navigate("/playground", { replace: true });
  };
  return (
    <NameDialog
      title="Conversation"
      label="Title"
      name={entry.title}
      maxLength={titleMaxLength}
      caption="Rename"
      onName={(title) => renameConversation(entry.id, title)}
      onClose={onClose}
      end={(action) => (
        <footer class="kept-tools">
          <button
            type="button"
            class="button danger-quiet"
            disabled={action.busy}
            onClick={() => void action.run(remove).then((done) => done && onClose())}
          >
            <Icon name="trash" size={16} /> Delete
          </button>
          <button
            type="button"
            class="button"
            disabled={action.busy}
            onClick={() => void action.run(async () => saveFile(await exportOf([entry]), "conversation.json"))}
          >
            <Icon name="download" size={16} /> Export
          </button>
          <Button caption="Rename" type="submit" class="button primary" disabled={action.busy} />
        </footer>
      )}
    />
  );
}
