// Conversations and presets in this browser (IndexedDB), by account. Each step is a record, so that two tabs can add.
import { isRecord } from "../../../../core/is-record.ts";
import { type Answer, newAnswer, restoredSettings, type Settings } from "./conversation.ts";
import { readPicture } from "./pictures.tsx";
import type { Conversation, Step } from "./tree.ts";

/** What the list shows of a conversation, and its state when it was left. */
export type Entry = Readonly<{
  owner: string;
  id: string;
  title: string;
  pinned: boolean;
  createdAt: number;
  updatedAt: number;
  leaf: string | null;
  lane: number;
  settings: Settings;
  /** Its approximate size, including images. */
  bytes: number;
}>;

export type Preset = Readonly<{ owner: string; id: string; name: string; settings: Settings }>;

type StoredStep = Readonly<{ owner: string; conversation: string; id: string; step: Step }>;

const stores = { entries: "entries", steps: "steps", presets: "presets" } as const;
const databaseName = "tollgate-playground";
/** Steps that a search of the contents reads at once. */
const searchBatch = 200;

let opened: Promise<IDBDatabase> | null = null;

/** Rejects if the browser keeps nothing, as in some private windows. */
function database(): Promise<IDBDatabase> {
  opened ??= open().catch((error: unknown) => {
    opened = null;
    throw error;
  });
  return opened;
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(databaseName, 1);
    request.onupgradeneeded = () => {
      const made = request.result;
      made.createObjectStore(stores.entries, { keyPath: ["owner", "id"] });
      made.createObjectStore(stores.steps, { keyPath: ["owner", "conversation", "id"] });
      made.createObjectStore(stores.presets, { keyPath: ["owner", "id"] });
    };
    request.onerror = () => reject(request.error ?? new Error("the browser keeps nothing"));
    request.onblocked = () => reject(new Error("another tab keeps an older version open"));
    request.onsuccess = () => {
      const { result } = request;
      // A newer console in another tab may upgrade the database; this tab reopens it on demand.
      result.onversionchange = () => {
        result.close();
        opened = null;
      };
      result.onclose = () => {
        opened = null;
      };
      resolve(result);
    };
  });
}

const valueOf = <Value>(request: IDBRequest<Value>): Promise<Value> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser did not read it"));
  });

/** All keys that start with these parts: an array sorts after every string. */
const below = (...parts: readonly string[]): IDBKeyRange => IDBKeyRange.bound([...parts], [...parts, []]);

async function reading(store: string): Promise<IDBObjectStore> {
  return (await database()).transaction(store, "readonly").objectStore(store);
}

/** Resolves once everything is written; otherwise nothing is, for example if the browser has no room left. */
async function writing(names: readonly string[], write: (transaction: IDBTransaction) => void): Promise<void> {
  const transaction = (await database()).transaction(names, "readwrite");
  await new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the browser did not write it"));
    try {
      write(transaction);
    } catch (error) {
      transaction.abort();
      reject(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

const restoredEntry = (entry: Entry): Entry => ({
  ...entry,
  pinned: entry.pinned ?? false,
  settings: restoredSettings(entry.settings),
});

/** Newest first. */
export async function readEntries(owner: string): Promise<readonly Entry[]> {
  const entries = await valueOf((await reading(stores.entries)).getAll(below(owner)) as IDBRequest<Entry[]>);
  return entries.map(restoredEntry).sort((a, b) => b.updatedAt - a.updatedAt);
}

export type Read = Readonly<{ entry: Entry; steps: readonly Step[] }>;

/** Null if it does not exist (anymore). */
export async function readConversation(owner: string, id: string): Promise<Read | null> {
  const transaction = (await database()).transaction([stores.entries, stores.steps], "readonly");
  const [entry, stored] = await Promise.all([
    valueOf(transaction.objectStore(stores.entries).get([owner, id]) as IDBRequest<Entry | undefined>),
    valueOf(transaction.objectStore(stores.steps).getAll(below(owner, id)) as IDBRequest<StoredStep[]>),
  ]);
  if (entry === undefined) return null;
  const steps = await Promise.all(stored.map(({ step }) => restored(step)));
  return { entry: restoredEntry(entry), steps };
}

/** Reads images from their stored files. */
async function restored(step: Step): Promise<Step> {
  const { turn } = step;
  if (turn.role !== "user") return withCutAnswers(step);
  const pictures = await Promise.all(turn.pictures.map(({ file, name }) => readPicture(file, name)));
  return { ...step, turn: { ...turn, pictures } };
}

/** Marks an answer that was never finished as cut off. */
export function withCutAnswers(step: Step): Step {
  const { turn } = step;
  if (turn.role !== "replies") return step;
  const lanes = turn.lanes.map((answer): Answer | null => {
    if (answer === null) return null;
    const whole = { ...newAnswer(answer.model, answer.startedAt), ...answer };
    return whole.state === "streaming" ? { ...whole, state: "stopped", finish: "cut" } : whole;
  });
  return { ...step, turn: { ...turn, lanes } };
}

export const withoutFiles = (step: Step): Step =>
  step.turn.role !== "user"
    ? step
    : { ...step, turn: { ...step.turn, pictures: step.turn.pictures.map((picture) => ({ ...picture, base64: "" })) } };

/** False, and nothing is written, if a `known` conversation's entry is gone: another tab deleted it. Names stay. */
export async function write(entry: Entry, steps: readonly Step[], known: boolean): Promise<boolean> {
  let there = true;
  await writing([stores.entries, stores.steps], (transaction) => {
    const entries = transaction.objectStore(stores.entries);
    const before = entries.get([entry.owner, entry.id]) as IDBRequest<Entry | undefined>;
    before.onsuccess = () => {
      there = before.result !== undefined;
      if (known && !there) return;
      const { title, pinned } = before.result ?? entry;
      entries.put({ ...entry, title, pinned });
      const { owner, id: conversation } = entry;
      for (const step of steps) {
        transaction.objectStore(stores.steps).put({ owner, conversation, id: step.id, step: withoutFiles(step) });
      }
    };
  });
  return !known || there;
}

export const label = (owner: string, id: string, given: Partial<Pick<Entry, "title" | "pinned">>): Promise<void> =>
  writing([stores.entries], (transaction) => {
    const entries = transaction.objectStore(stores.entries);
    const before = entries.get([owner, id]) as IDBRequest<Entry | undefined>;
    before.onsuccess = () => {
      if (before.result !== undefined) entries.put({ ...before.result, ...given });
    };
  });

export const remove = (owner: string, ids: readonly string[]): Promise<void> =>
  writing([stores.entries, stores.steps], (transaction) => {
    for (const id of ids) {
      transaction.objectStore(stores.entries).delete([owner, id]);
      transaction.objectStore(stores.steps).delete(below(owner, id));
    }
  });

/** False, and it stays, if it was written since the entry was read. */
export async function removeUnchanged({ owner, id, updatedAt }: Entry): Promise<boolean> {
  let isUnchanged = false;
  await writing([stores.entries, stores.steps], (transaction) => {
    const before = transaction.objectStore(stores.entries).get([owner, id]) as IDBRequest<Entry | undefined>;
    before.onsuccess = () => {
      isUnchanged = before.result?.updatedAt === updatedAt;
      if (!isUnchanged) return;
      transaction.objectStore(stores.entries).delete([owner, id]);
      transaction.objectStore(stores.steps).delete(below(owner, id));
    };
  });
  return isUnchanged;
}

/** The conversations with these words in a question, result or answer, case-insensitive. */
export async function search(owner: string, words: string, cancelSignal: AbortSignal): Promise<ReadonlySet<string>> {
  const wanted = words.toLowerCase();
  const found = new Set<string>();
  let range = below(owner);
  while (!cancelSignal.aborted) {
    const batch = await valueOf((await reading(stores.steps)).getAll(range, searchBatch) as IDBRequest<StoredStep[]>);
    for (const { conversation, step } of batch) {
      if (!found.has(conversation) && textsOf(step).some((text) => text.toLowerCase().includes(wanted))) {
        found.add(conversation);
      }
    }
    const last = batch.at(-1);
    if (last === undefined || batch.length < searchBatch) break;
    range = IDBKeyRange.bound([owner, last.conversation, last.id], [owner, []], true);
  }
  return found;
}

export function textsOf({ turn }: Step): readonly string[] {
  if (!isRecord(turn)) return [];
  if (turn.role === "user") return [turn.text];
  if (turn.role === "tool") return [turn.output];
  return turn.lanes.flatMap((answer) => (answer === null ? [] : [answer.text]));
}

export async function readPresets(owner: string): Promise<readonly Preset[]> {
  const presets = await valueOf((await reading(stores.presets)).getAll(below(owner)) as IDBRequest<Preset[]>);
  return presets.map((preset) => ({ ...preset, settings: restoredSettings(preset.settings) }));
}

export const writePreset = (preset: Preset): Promise<void> =>
  writing([stores.presets], (transaction) => {
    transaction.objectStore(stores.presets).put(preset);
  });

export const removePreset = (owner: string, id: string): Promise<void> =>
  writing([stores.presets], (transaction) => {
    transaction.objectStore(stores.presets).delete([owner, id]);
  });

/** The approximate size of a conversation, at two bytes for each character. */
export function bytesOf({ steps }: Conversation): number {
  let sum = 0;
  for (const { turn } of steps.values()) {
    if (turn.role === "user") sum += 2 * turn.text.length + turn.pictures.reduce((all, { file }) => all + file.size, 0);
    else if (turn.role === "tool") sum += 2 * turn.output.length;
    else for (const answer of turn.lanes) sum += 2 * ((answer?.text.length ?? 0) + (answer?.reasoning.length ?? 0));
  }
  return sum;
}
