// The shown conversation, and the conversations and presets that this browser keeps for the signed-in account.
import { computed, effect, signal } from "@preact/signals";
import { now } from "../../clock.ts";
import { toast } from "../../parts/toasts.tsx";
import { change, defaultSettings, type Settings, settings } from "./conversation.ts";
import { owner } from "./owner.ts";
import * as store from "./conversation-store.ts";
import { type Conversation, isEmpty, newConversation, newId, type Step } from "./tree.ts";

/** The newest conversations are kept, up to this number and approximate size; the browser may have less room. */
const keptMax = 1_000;
const keptBytesMax = 256 * 1024 * 1024;
const presetsMax = 100;
/** How often a growing answer is kept. */
const keepEveryMs = 2_000;

export const conversation = signal<Conversation>(newConversation());
/** Newest first; null until they are read. */
export const entries = signal<readonly store.Entry[] | null>(null);
export const presets = signal<readonly store.Preset[]>([]);
/** `nowhere`: this browser keeps nothing. `full`: it had no room for the last change. */
export const keeping = signal<"browser" | "nowhere" | "full">("browser");

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

/** The account whose list is shown. The effect also runs for other changes of the session. */
let shownTo: string | null = null;
effect(() => {
  const next = owner.value;
  if (next === shownTo) return;
  shownTo = next;
  known.clear();
  own.clear();
  unkept.clear();
  conversation.value = newConversation();
  entries.value = null;
  presets.value = [];
  settings.value = defaultSettings;
  keeping.value = "browser";
  if (next !== null) void refresh(true);
});

/** Reads the list again. The first time, takes over the model of the newest conversation. */
async function refresh(first = false): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  try {
    const [read, presetsRead] = await Promise.all([store.readEntries(of), store.readPresets(of)]);
    if (of !== owner.value) return;
    entries.value = read;
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
    toast("This browser has no room left to keep the conversation. Delete old ones.", "failed");
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
  const read = await store.readConversation(of, id).catch(() => null);
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
  const read = of === null ? null : await store.readConversation(of, id).catch(() => null);
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

/** Writes happen in order. */
let last: Promise<unknown> = Promise.resolve();
function inOrder<Value>(act: () => Promise<Value>): Promise<Value> {
  const next = last.then(act, act);
  last = next.catch(() => {});
  return next;
}

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
      const there = await store.write(entry, [...before.values()], known.has(kept.id));
      unkept.delete(kept.id);
      if (of !== owner.value || !there) return there;
      known.add(kept.id);
      if (keeping.value === "full") keeping.value = "browser";
      tellTabs({ owner: of, conversation: kept.id, deleted: false });
      if (entries.value === null) return true;
      const title = entries.value.find(({ id }) => id === kept.id)?.title ?? kept.title;
      entries.value = [{ ...entry, title }, ...entries.value.filter(({ id }) => id !== kept.id)];
      await dropOldest(of);
    } catch (error) {
      if (of === owner.value) cannotKeep(error);
    }
    return true;
  });
}

/** Keeps a growing answer, at most every two seconds, and when the page may go away. */
export function keepWhileWritten(act: () => void): { due(): void; end(): void } {
  let lastMs = -Infinity; // keeps the first words at once
  const onHidden = (): void => {
    if (document.visibilityState === "hidden") act();
  };
  document.addEventListener("visibilitychange", onHidden);
  return {
    due() {
      if (now() - lastMs < keepEveryMs) return;
      lastMs = now();
      act();
    },
    end: () => document.removeEventListener("visibilitychange", onHidden),
  };
}

async function dropOldest(of: string): Promise<void> {
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
  await refresh();
}

/** Rejects if it fails, for the dialog that asked. */
export async function renameConversation(id: string, title: string): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  await inOrder(() => store.rename(of, id, title));
  update(id, (before) => ({ ...before, title }));
  tellTabs({ owner: of, conversation: id, deleted: false });
  await refresh();
}

export async function deleteConversation(id: string): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  await inOrder(() => store.remove(of, [id]));
  forget(of, id);
  await refresh();
}

export async function deleteAllConversations(): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  await inOrder(() => store.removeAll(of));
  for (const { id } of entries.value ?? []) known.add(id);
  forget(of, null);
  await refresh();
}

function forget(of: string, id: string | null): void {
  tellTabs({ owner: of, conversation: id, deleted: true });
  if (keeping.value === "full") keeping.value = "browser";
  if (id === null || id === conversation.value.id) show(newConversation());
}

export const searchConversations = (words: string, cancelSignal: AbortSignal): Promise<ReadonlySet<string>> =>
  owner.value === null ? Promise.resolve(new Set()) : store.search(owner.value, words, cancelSignal);

// ---------------------------------------------------------------- presets

/** Replaces a preset of the same name. */
export async function savePreset(name: string): Promise<void> {
  const of = owner.value;
  if (of === null) return;
  const before = presets.value.find((preset) => preset.name === name);
  if (before === undefined && presets.value.length >= presetsMax)
    throw new Error(`There are ${presetsMax} presets already.`);
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
