// A conversation as a tree: edited questions and new answers are versions. The path to the chosen leaf is sent.
import { now } from "../../clock.ts";
import { t } from "../../texts.ts";
import { type Answer, type Call, isImage, type ToolTurn, type Turn, type UserTurn } from "./conversation.ts";

/** Answers to one question, of one model or several side by side. Null: that model was not asked. */
export type Replies = Readonly<{ role: "replies"; lanes: readonly (Answer | null)[] }>;

export type Step = Readonly<{
  id: string;
  parent: string | null;
  at: number;
  turn: UserTurn | ToolTurn | Replies;
}>;

export type Conversation = Readonly<{
  id: string;
  title: string;
  createdAt: number;
  steps: ReadonlyMap<string, Step>;
  leaf: string | null;
  /** Which of several models the conversation continues with. */
  lane: number;
}>;

/** A call of the last answers that waits for its result. */
export type OpenCall = Readonly<{ lane: number; call: Call }>;

const titleMaxLength = 80;

let latest = 0;

/** Unique, because a question and its answer may have the same millisecond and are sorted by time. */
function nextMoment(): number {
  latest = Math.max(now(), latest + 1);
  return latest;
}

/** Sorts by time. `crypto.randomUUID` is missing over plain http from another machine. */
export function newId(at = nextMoment()): string {
  const random = crypto.getRandomValues(new Uint32Array(2));
  return at.toString(36) + [...random].map((part) => part.toString(36).padStart(7, "0")).join("");
}

export const newConversation = (): Conversation => ({
  id: newId(),
  title: "",
  createdAt: now(),
  steps: new Map(),
  leaf: null,
  lane: 0,
});

export const isEmpty = ({ steps }: Conversation): boolean => steps.size === 0;

/** From the first question to `leaf`. */
export function pathTo({ steps }: Pick<Conversation, "steps">, leaf: string | null): readonly Step[] {
  const path: Step[] = [];
  const seen = new Set<string>(); // guards against cycles in stored data
  for (let id = leaf; id !== null && !seen.has(id);) {
    seen.add(id);
    const step = steps.get(id);
    if (step === undefined) break;
    path.push(step);
    id = step.parent;
  }
  return path.reverse();
}

export const pathOf = (conversation: Conversation): readonly Step[] => pathTo(conversation, conversation.leaf);

export const withStep = (conversation: Conversation, step: Step): Conversation => ({
  ...conversation,
  title: conversation.title === "" && step.turn.role === "user" ? titleOf(step.turn) : conversation.title,
  steps: new Map(conversation.steps).set(step.id, step),
  leaf: step.id,
});

export function newStep(parent: string | null, turn: Step["turn"]): Step {
  const at = nextMoment();
  return { id: newId(at), parent, at, turn };
}

function titleOf({ text, pictures }: UserTurn): string {
  const line = text.slice(0, 1_000).replaceAll(/\s+/g, " ").trim();
  if (line === "") return pictures.find((picture) => !isImage(picture))?.name ?? t("play.images");
  return line.length <= titleMaxLength ? line : `${line.slice(0, titleMaxLength - 1).trimEnd()}…`;
}

const older = (a: Step, b: Step): number => a.at - b.at || (a.id < b.id ? -1 : 1);

/** Versions by parent, oldest first. An answer that failed before its first word does not count. */
export function versionsByParent({ steps, leaf }: Conversation): ReadonlyMap<string | null, readonly Step[]> {
  const path = new Set(pathTo({ steps }, leaf).map(({ id }) => id));
  const versions = new Map<string | null, Step[]>();
  for (const step of [...steps.values()].sort(older)) {
    if (!path.has(step.id) && saysNothing(step)) continue;
    const beside = versions.get(step.parent);
    if (beside === undefined) versions.set(step.parent, [step]);
    else beside.push(step);
  }
  return versions;
}

const saysNothing = ({ turn }: Step): boolean =>
  turn.role === "replies" &&
  turn.lanes.every((answer) => answer === null || (answer.state === "failed" && answer.text === ""));

export function leafBelow({ steps }: Conversation, id: string): string {
  const children = Map.groupBy(steps.values(), ({ parent }) => parent);
  const below = new Set([id]);
  let newest = steps.get(id);
  // The loop also visits members that are added meanwhile. A step may have the same millisecond as its parent.
  for (const parent of below) {
    for (const step of children.get(parent) ?? []) {
      if (saysNothing(step)) continue;
      below.add(step.id);
      if (newest === undefined || step.parent === newest.id || older(newest, step) < 0) newest = step;
    }
  }
  return newest?.id ?? id;
}

/** The conversation as one model knows it: of several side by side, only the answers in its lane. */
export function turnsOf(path: readonly Step[], lane: number): readonly Turn[] {
  const turns: Turn[] = [];
  let lanes = 1;
  for (const { turn } of path) {
    if (turn.role === "replies") {
      lanes = turn.lanes.length;
      const answer = turn.lanes[lanes === 1 ? 0 : lane];
      if (answer != null) turns.push(answer);
    } else if (turn.role === "user" || lanes === 1 || turn.lane === lane) turns.push(turn);
  }
  return turns;
}

/** The calls of the last answers that wait for a result before the conversation can go on. */
export function openCalls(path: readonly Step[]): readonly OpenCall[] {
  const last = path.findLastIndex(({ turn }) => turn.role === "replies");
  const replies = path[last]?.turn;
  if (replies?.role !== "replies") return [];
  const given = path
    .slice(last + 1)
    .flatMap(({ turn }) => (turn.role === "tool" ? [`${turn.lane} ${turn.callId}`] : []));
  if (path.slice(last + 1).some(({ turn }) => turn.role === "user")) return [];
  return replies.lanes.flatMap((answer, lane) =>
    answer?.state !== "done"
      ? []
      : answer.calls.filter(({ id }) => !given.includes(`${lane} ${id}`)).map((call) => ({ lane, call })),
  );
}
