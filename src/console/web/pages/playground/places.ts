// Where conversations are: in this browser, and on the server where the account chose that. What the server does not take for now
// (it is away, or full) stays in this browser, and goes there later. Both places merge by steps, so that nothing is lost.
import { signal } from "@preact/signals";
import type { BodyOf, ReplyOf } from "../../../api/routes.ts";
import { isRecord } from "../../../../core/is-record.ts";
import { get, post } from "../../request.ts";
import { restoredSettings } from "./conversation.ts";
import * as browser from "./conversation-store.ts";
import type { Entry, Read } from "./conversation-store.ts";
import { pictureOf } from "./pictures.tsx";
import type { Step } from "./tree.ts";

type Kept = ReplyOf<"GET /conversations">;
type ServerRecord = BodyOf<"POST /conversations/write">["records"][number];

/** What the server said last; `isAway`: it did not answer then. `isFull`: it did not take a conversation. */
export const server = signal<Omit<Kept, "heads"> & Readonly<{ isAway: boolean; isFull: boolean }>>(none());
/** Of the server, by their ids. */
let heads = new Map<string, Entry>();
/** Conversations of which this browser has something that the server lacks. */
const waiting = new Set<string>();

function none() {
  const nothing = { state: "never", version: 0, conversations_max: 0, bytes: 0, bytes_max: 0 } as const;
  return { ...nothing, isAway: false, isFull: false };
}

export function forgetPlaces(): void {
  server.value = none();
  heads = new Map();
  waiting.clear();
}

const isOn = (): boolean => server.value.state === "on";

// ---------------------------------------------------------------- the server's records

/** Requests of about this size; a file alone may be larger. */
const writeBytes = 4 * 1024 * 1024;

function recordsOf(entry: Entry, steps: readonly Step[]): readonly ServerRecord[] {
  const { owner: _owner, id: _id, title, pinned, ...state } = entry;
  const text = (id: string, value: unknown, words = "") => ({ id, words, content: JSON.stringify(value) });
  return [
    text("", state),
    { ...text("~", { title, pinned }), once: true },
    ...steps.flatMap((step) => {
      const files = step.turn.role === "user" ? step.turn.pictures : [];
      return [
        ...files.map(({ base64 }, index) => ({ id: `${step.id}/${index}`, words: "", content: base64 })),
        text(step.id, browser.withoutFiles(step), browser.textsOf(step).join("\n").toLowerCase()),
      ];
    }),
  ];
}

async function writeToServer(entry: Entry, steps: readonly Step[], known: boolean) {
  let some: ServerRecord[] = [];
  let length = 0;
  const records = recordsOf(entry, steps);
  for (const [index, record] of records.entries()) {
    some.push(record);
    length += record.content.length + record.words.length;
    if (length < writeBytes && index < records.length - 1) continue;
    const { state, version } = await post("/conversations/write", { id: entry.id, known, records: some });
    server.value = { ...server.value, isAway: false, isFull: state === "full" && server.value.isFull };
    if (state !== "kept") return state;
    // If nobody else wrote, the list is as this browser knows it.
    if (version === server.value.version + 1) server.value = { ...server.value, version };
    some = [];
    length = 0;
  }
  heads.set(entry.id, entry);
  return "kept";
}

const parsed = (content: string): Record<string, unknown> => {
  const value: unknown = JSON.parse(content);
  return isRecord(value) ? value : {};
};

async function readHeads(owner: string): Promise<void> {
  const seen = heads.size === 0 ? null : server.value.version;
  const { heads: read, ...kept } = await get("/conversations", { seen });
  server.value = { ...server.value, ...kept, isAway: false };
  if (read === null) return;
  heads = new Map();
  for (const { conversation: id, id: record, content } of read) {
    const before = heads.get(id) ?? { title: "", pinned: false };
    // Records are sorted: what a list shows comes before the name.
    if (record === "") heads.set(id, { ...parsed(content), ...before, owner, id } as Entry);
    else if (heads.has(id)) heads.set(id, { ...(before as Entry), ...parsed(content) });
  }
  for (const [id, entry] of heads) heads.set(id, { ...entry, settings: restoredSettings(entry.settings) });
}

async function readFromServer(id: string): Promise<Read | null> {
  const entry = heads.get(id);
  const records = new Map<string, string>();
  for (let after = ""; ;) {
    const { records: some } = await get("/conversations/records", { id, after });
    for (const record of some) records.set(record.id, record.content);
    const last = some.at(-1);
    if (last === undefined) break;
    after = last.id;
  }
  if (entry === undefined || records.size === 0) return null;
  const steps = [...records].flatMap(([key, content]): Step[] => {
    if (key === "~" || key.includes("/")) return [];
    const step = parsed(content) as unknown as Step;
    if (step.turn.role !== "user") return [browser.withCutAnswers(step)];
    const pictures = step.turn.pictures.map(({ name, type }, index) =>
      pictureOf(name, type, records.get(`${key}/${index}`) ?? ""),
    );
    return [{ ...step, turn: { ...step.turn, pictures } }];
  });
  return { entry, steps };
}

// ---------------------------------------------------------------- both places

/** Null: the server is away. Anything else that it says is thrown. */
async function unlessAway<Value>(act: () => Promise<Value>): Promise<Value | null> {
  try {
    return await act();
  } catch (error) {
    const { status } = error as Readonly<{ status?: number }>;
    if (status !== 0 && (status ?? 500) < 500) throw error;
    server.value = { ...server.value, isAway: true };
    return null;
  }
}

/** Newest first. */
export async function readEntries(owner: string): Promise<readonly Entry[]> {
  await unlessAway(() => readHeads(owner));
  const here = await browser.readEntries(owner).catch((error: unknown) => {
    if (isOn()) return [];
    throw error;
  });
  waiting.clear();
  if (!isOn()) return here;
  for (const { id } of here) waiting.add(id);
  const entries = new Map(heads);
  for (const entry of here)
    if (!(entry.updatedAt <= (heads.get(entry.id)?.updatedAt ?? -1))) entries.set(entry.id, entry);
  return [...entries.values()].sort((a, b) => b.updatedAt - a.updatedAt);
}

/** Whether it is in this browser alone, where the account keeps conversations on the server. */
export const isWaiting = (id: string): boolean => isOn() && waiting.has(id);

/** Null if it does not exist (anymore), or the server is away. */
export async function readConversation(owner: string, id: string): Promise<Read | null> {
  const [here, there] = await Promise.all([
    browser.readConversation(owner, id).catch(() => null),
    isOn() ? unlessAway(() => readFromServer(id)) : null,
  ]);
  return merged(here, there);
}

function merged(here: Read | null, there: Read | null): Read | null {
  if (here === null || there === null) return here ?? there;
  const entry = here.entry.updatedAt > there.entry.updatedAt ? here.entry : there.entry;
  const steps = new Map([...there.steps, ...here.steps].map((step) => [step.id, step]));
  return { entry, steps: [...steps.values()] };
}

/** False, and nothing is written, if a `known` conversation is gone: it was deleted elsewhere. */
export async function write(entry: Entry, steps: readonly Step[], known: boolean): Promise<boolean> {
  if (!isOn()) return browser.write(entry, steps, known);
  if (!waiting.has(entry.id)) {
    const state = await unlessAway(() => writeToServer(entry, steps, known && heads.has(entry.id)));
    if (state === "kept") return true;
    if (state === "gone") return false;
    if (state === "off") server.value = { ...server.value, state };
  }
  await browser.write(entry, steps, false);
  waiting.add(entry.id); // only now it may be said that it stays here
  if (isOn() && !server.value.isAway) await sendWaiting(entry.owner, entry.id);
  return true;
}

/** Sends what waits in this browser to the server; gives whether any was sent. */
export async function sendAllWaiting(owner: string, onSent = (_left: number): void => {}): Promise<boolean> {
  const before = waiting.size;
  for (const id of [...waiting]) {
    if (!isOn() || server.value.isAway) break;
    await sendWaiting(owner, id);
    onSent(waiting.size);
  }
  return waiting.size < before;
}

async function sendWaiting(owner: string, id: string): Promise<void> {
  const read = await browser.readConversation(owner, id);
  // Whatever became of it meanwhile: nothing that somebody wrote here is lost.
  const state = read === null ? "kept" : await unlessAway(() => writeToServer(read.entry, read.steps, false));
  if (state === "full") server.value = { ...server.value, isFull: true };
  if (state !== "kept") return;
  if (read === null || (await browser.removeUnchanged(read.entry))) waiting.delete(id);
}

export async function label(entry: Entry, given: Partial<Pick<Entry, "title" | "pinned">>): Promise<void> {
  await browser.label(entry.owner, entry.id, given).catch((error: unknown) => {
    if (!isOn()) throw error;
  });
  if (!heads.has(entry.id)) return;
  const { title, pinned } = { ...entry, ...given };
  const records = [{ id: "~", words: "", content: JSON.stringify({ title, pinned }) }];
  await post("/conversations/write", { id: entry.id, known: true, records });
}

export async function remove(owner: string, ids: readonly string[]): Promise<void> {
  if (ids.some((id) => heads.has(id))) await post("/conversations/remove", { ids: [...ids] });
  await browser.remove(owner, ids).catch((error: unknown) => {
    if (!isOn()) throw error;
  });
  for (const id of ids) waiting.delete(id);
}

/** The conversations with these words in a question, result or answer, case-insensitive. */
export async function search(owner: string, words: string, cancelSignal: AbortSignal): Promise<ReadonlySet<string>> {
  const [here, there] = await Promise.all([
    browser.search(owner, words, cancelSignal).catch(() => []),
    isOn() ? unlessAway(() => get("/conversations/search", { words })) : null,
  ]);
  return new Set([...here, ...(there?.ids ?? [])]);
}

/** Moves all of them. Rejects where a part could not be moved: nothing is deleted before all of it is in its new place. */
export async function keepOnServer(owner: string, on: boolean, onMoved: (left: number) => void): Promise<void> {
  if (on) {
    await post("/conversations/choice", { on, version: 0 });
    await readEntries(owner);
    await sendAllWaiting(owner, onMoved);
    return;
  }
  await readHeads(owner);
  let left = heads.size;
  for (const id of heads.keys()) {
    const read = merged(await browser.readConversation(owner, id), await readFromServer(id));
    if (read !== null) await browser.write({ ...read.entry, owner }, read.steps, false);
    onMoved(--left);
  }
  await post("/conversations/choice", { on, version: server.value.version });
  forgetPlaces();
}
