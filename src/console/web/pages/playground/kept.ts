// The shown conversation, and the conversations and presets that this browser keeps for the signed-in account.
import { computed, effect, signal } from "@preact/signals";
import { now } from "../../clock.ts";
import { toast } from "../../parts/toasts.tsx";
import { t } from "../../texts.ts";
import { change, defaultSettings, type Settings, settings } from "./conversation.ts";
import { owner } from "./owner.ts";
import * as store from "./conversation-store.ts";
import * as places from "./places.ts";
import { type Conversation, isEmpty, newConversation, newId, type Step } from "./tree.ts";

/** The newest conversations are kept, up to this number and approximate size; the browser may have less room. */
const keptMax = 1_000;
const keptBytesMax = 256 * 1024 * 1024;
const presetsMax = 100;
/** How often a growing answer is kept. */
const keepEveryMs = 2_000;
const keptPerMs = 100;
/** How often the server is asked what other browsers wrote. */
const lookEveryMs = 20_000;

export const conversation = signal<Conversation>(newConversation());
/** Newest first; null until they are read. */
export const entries = signal<readonly store.Entry[] | null>(null);
export const presets = signal<readonly store.Preset[]>([]);
/** `nowhere`: this browser keeps nothing. `full`: it had no room for the last change. */
export const keeping = signal<"browser" | "nowhere" | "full">("browser");

/** A conversation that is read, to be shown: what somebody sends belongs to it. */
export const opening = signal<string | null>(null);

/** The conversations with growing answers, by step id; the user may look at another one meanwhile. */
export const written = signal<ReadonlyMap<string, string>>(new Map());
export const answering = computed(() => [...written.value.values()].includes(conversation.value.id));

/** Latest states of answers that this tab wrote: a read while one is being kept may return an older one. */
const own = new Map<string, Step>();
export const noteOwn = (step: Step): unknown => own.set(step.id, step);

/** Steps that could not be written yet, by conversation. */
const unkept = new Map<string, Map<string, Step>>();

/** Conversations that this tab has read or written: if one is gone, another tab deleted it. */
const known = new Set<string>();
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("tollgate-playground");
type Change = Readonly<{ owner: string; conversation: string | null; deleted: boolean }>;

const tellTabs = (change: Change): void => channel?.postMessage(change);
channel?.addEventListener("message", ({ data }: MessageEvent<Change>) => {
  if (data.owner !== owner.value) return;
  void refresh();
  const shown = conversation.value.id;
  if (data.conversation !== null && data.conversation !== shown) return;
  if (data.deleted) show(newConversation());
  else if (known.has(shown)) void takeFromOtherTab(shown);
});

/** Writes, and reads of the list, happen in order. */
let last: Promise<unknown> = Promise.resolve();
function inOrder<Value>(act: () => Promise<Value>): Promise<Value> {
  const next = last.then(act, act);
  last = next.catch(() => {});
  return next;
}

/** The account whose list is shown. The effect also runs for other changes of the session. */
let shownTo: string | null = null;
effect(() => {
  const next = owner.value;
  if (next === shownTo) return;
  shownTo = next;
  known.clear();
  own.clear();
  unkept.clear();
  places.forgetPlaces();
  conversation.value = newConversation();
  entries.value = null;
  presets.value = [];
  settings.value = defaultSettings;
  keeping.value = "browser";
  if (next !== null) void refresh(true);
});

/** Other browsers may have written, and the server may be back. */
async function look(): Promise<void> {
  const of = owner.value;
  if (of === null || document.visibilityState === "hidden" || places.server.value.state === "never") return;
  await refresh();
  if (await inOrder(() => places.sendAllWaiting(of))) await refresh();
}
setInterval(() => places.server.value.state === "on" && void look(), lookEveryMs);
for (const event of ["focus", "online"]) addEventListener(event, () => void look());

/** Reads the list again. The first time, takes over the model of the newest conversation. */
async function refresh(first = false): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  try {
    const seen = places.server.value.version;
    const [read, presetsRead] = await Promise.all([
      inOrder(() => places.readEntries(of)), // never a list from before a write that has ended
      store.readPresets(of).catch(() => []),
    ]);
    if (of !== owner.value) return;
    const shown = conversation.value.id;
    const [was, is] = [entries.value, read].map((all) => all?.some(({ id }) => id === shown));
    entries.value = read;
    if (was === true && is === false && !answering.value) show(newConversation());
    else if (seen !== places.server.value.version && known.has(shown)) void takeFromOtherTab(shown);
    presets.value = presetsRead.toSorted((a, b) => a.name.localeCompare(b.name));
    const newest = read[0]?.settings;
    if (first && newest !== undefined && isEmpty(conversation.value)) {
      settings.value = { ...defaultSettings, model: newest.model, dialect: newest.dialect };
    }
  } catch (error) {
    if (of === owner.value) cannotKeep(error);
  }
}

function cannotKeep(error: unknown): void {
  const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
  const before = keeping.value;
  keeping.value = isFull ? "full" : "nowhere";
  entries.value ??= [];
  if (isFull && before !== "full") {
    toast(t("play.browser_full"), "failed");
  }
}

// ---------------------------------------------------------------- the conversation that is shown

export function show(next: Conversation): void {
  conversation.value = next;
}

/** Changes a conversation if it is shown; otherwise only its steps are kept. */
export function update(id: string, act: (before: Conversation) => Conversation): void {
  if (conversation.value.id === id) conversation.value = act(conversation.value);
}

/** Shows a kept conversation; false if it is not here. */
export async function openConversation(id: string): Promise<boolean> {
  const of = owner.value;
  if (of === null) return false;
  opening.value = id;
  // After the first list, which says where they are.
  const read = await inOrder(() => places.readConversation(of, id)).catch(() => null);
  if (opening.value === id) opening.value = null;
  if (read === null || of !== owner.value) return false;
  known.add(id);
  settings.value = read.entry.settings;
  show(conversationOf(read));
  return true;
}

const conversationOf = ({ entry, steps }: store.Read): Conversation => ({
  id: entry.id,
  title: entry.title,
  createdAt: entry.createdAt,
  lane: entry.lane,
  leaf: entry.leaf,
  steps: new Map(steps.map((step) => [step.id, own.get(step.id) ?? step])),
});

async function takeFromOtherTab(id: string): Promise<void> {
  const of = owner.value;
  const read = of === null ? null : await places.readConversation(of, id).catch(() => null);
  if (read === null || of !== owner.value) return;
  const theirs = conversationOf(read);
  update(id, (ours) => {
    // This tab keeps showing its own leaf, or follows if nothing was added here.
    const leaf = theirs.leaf === null ? undefined : theirs.steps.get(theirs.leaf);
    const isDone = leaf?.turn.role === "replies" && !wasCut(leaf);
    const follows = isDone && ours.leaf !== null && !answering.value && isBelow(theirs, ours.leaf);
    return {
      ...ours,
      title: theirs.title,
      steps: new Map([...theirs.steps, ...[...ours.steps].filter(([, step]) => !wasCut(step))]),
      leaf: follows ? theirs.leaf : ours.leaf,
    };
  });
}

/** Another tab may still be writing it. */
const wasCut = ({ turn }: Step): boolean =>
  turn.role === "replies" && turn.lanes.some((answer) => answer?.finish === "cut");

function isBelow({ steps, leaf }: Conversation, id: string): boolean {
  let left = steps.size;
  for (let at = leaf; at !== null && left-- > 0; at = steps.get(at)?.parent ?? null) if (at === id) return true;
  return false;
}

// ---------------------------------------------------------------- keeping

/** Keeps the conversation with these steps. False if it was deleted meanwhile. */
export function keep(
  of: string | null,
  kept: Conversation,
  steps: readonly Step[],
  withSettings: Settings,
): Promise<boolean> {
  if (of === null || keeping.value === "nowhere") return Promise.resolve(true);
  const entry: store.Entry = {
    owner: of,
    id: kept.id,
    title: kept.title,
    pinned: false,
    createdAt: kept.createdAt,
    updatedAt: now(),
    leaf: kept.leaf,
    lane: kept.lane,
    settings: withSettings,
    bytes: store.bytesOf(kept),
  };
  return inOrder(async () => {
    // Includes the steps that had no room before.
    const before = unkept.get(kept.id) ?? new Map<string, Step>();
    for (const step of steps) before.set(step.id, step);
    unkept.set(kept.id, before);
    try {
      const there = await places.write(entry, [...before.values()], known.has(kept.id));
      unkept.delete(kept.id);
      if (of !== owner.value || !there) return there;
      known.add(kept.id);
      if (keeping.value === "full") keeping.value = "browser";
      tellTabs({ owner: of, conversation: kept.id, deleted: false });
      if (entries.value === null) return true;
      const { title, pinned } = entries.value.find(({ id }) => id === kept.id) ?? entry;
      entries.value = [{ ...entry, title, pinned }, ...entries.value.filter(({ id }) => id !== kept.id)];
      await dropOldest(of);
    } catch (error) {
      if (of === owner.value) cannotKeep(error);
    }
    return true;
  });
}

/** Keeps a growing answer, every two seconds or, since all of it is written each time, less often; and when the page may go. */
export function keepWhileWritten(act: () => void): { due(length: number): void; end(): void } {
  let lastMs = -Infinity; // keeps the first words at once
  const onHidden = (): void => {
    if (document.visibilityState === "hidden") act();
  };
  document.addEventListener("visibilitychange", onHidden);
  return {
    due(length) {
      if (now() - lastMs < Math.max(keepEveryMs, length / keptPerMs)) return;
      lastMs = now();
      act();
    },
    end: () => document.removeEventListener("visibilitychange", onHidden),
  };
}

async function dropOldest(of: string): Promise<void> {
  if (places.server.value.state === "on") return; // the server says when it is full
  let bytes = 0;
  const past = (entries.value ?? []).filter((entry, index) => {
    bytes += entry.bytes;
    return index > 0 && (index >= keptMax || bytes > keptBytesMax);
  });
  if (past.length === 0) return;
  await store.remove(
    of,
    past.map(({ id }) => id),
  );
  void refresh();
}

/** What follows reject if they fail, for who asked. */
export async function labelConversation(
  entry: store.Entry,
  given: Partial<Pick<store.Entry, "title" | "pinned">>,
): Promise<void> {
  await inOrder(() => places.label(entry, given));
  update(entry.id, (before) => ({ ...before, title: given.title ?? before.title }));
  tellTabs({ owner: entry.owner, conversation: entry.id, deleted: false });
  await refresh();
}

/** Gives what puts it back. */
export async function deleteConversation({ owner: of, id }: store.Entry): Promise<() => Promise<void>> {
  await refresh(); // what comes back is as others left it
  const read = await places.readConversation(of, id);
  const wasShown = id === conversation.value.id;
  await inOrder(() => places.remove(of, [id]));
  forget(of, id);
  await refresh();
  return async () => {
    if (read === null || of !== owner.value) return;
    await addConversation(read);
    if (wasShown) await openConversation(id);
  };
}

/** One that was deleted, or comes from a file. */
export async function addConversation({ entry, steps }: store.Read): Promise<void> {
  await inOrder(() => places.write(entry, steps, false));
  known.add(entry.id);
  tellTabs({ owner: entry.owner, conversation: entry.id, deleted: false });
  await refresh();
}

export async function deleteAllConversations(): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  const ids = (entries.value ?? []).map(({ id }) => id);
  await inOrder(() => places.remove(of, ids));
  for (const id of ids) known.add(id);
  forget(of, null);
  await refresh();
}

/** Moves all conversations to the server, or back to this browser. */
export async function keepOnServer(on: boolean, onMoved: (left: number) => void): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  try {
    await inOrder(() => places.keepOnServer(of, on, onMoved));
  } finally {
    tellTabs({ owner: of, conversation: null, deleted: false });
    await refresh();
  }
}

function forget(of: string, id: string | null): void {
  tellTabs({ owner: of, conversation: id, deleted: true });
  if (keeping.value === "full") keeping.value = "browser";
  if (id === null || id === conversation.value.id) show(newConversation());
}

export const searchConversations = (words: string, cancelSignal: AbortSignal): Promise<ReadonlySet<string>> =>
  owner.value === null ? Promise.resolve(new Set()) : places.search(owner.value, words, cancelSignal);

// ---------------------------------------------------------------- presets

/** Replaces a preset of the same name. */
export async function savePreset(name: string): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  const before = presets.value.find((preset) => preset.name === name);
  if (before === undefined && presets.value.length >= presetsMax)
    throw new Error(t("play.presets_full", { count: presetsMax }));
  await store.writePreset({ owner: of, id: before?.id ?? newId(), name, settings: settings.value });
  tellTabs({ owner: of, conversation: null, deleted: false });
  await refresh();
}

export async function deletePreset(id: string): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  await store.removePreset(of, id);
  tellTabs({ owner: of, conversation: null, deleted: false });
  await refresh();
}

export const applyPreset = (preset: store.Preset): void => change(preset.settings);
