// Who waits in line and who runs, for operators. It only reads.
import type { Forecast } from "../../core/forecast.ts";
import { type Priority, rankOf } from "../../core/priority.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { type FairLine, type InLine, inTurnOf, type MemberInLine } from "./fair-line.ts";
import type { CacheHour } from "./placement.ts";
import { mostFirst, type ServedRow, ServedWork } from "./served-work.ts";

/** A node's line. */
export type NodeLine = Readonly<{
  waiting: number;
  byPriority: Readonly<Record<Priority, number>>;
  /** Since when the longest wait lasts; null where no request waits. */
  since: Ms | null;
  accounts: number;
  /** The accounts with the most requests in line, first. */
  most: readonly Readonly<{ account: AccountId; waiting: number }>[];
}>;

const noLine: NodeLine = {
  waiting: 0,
  byPriority: { interactive: 0, standard: 0, bulk: 0 },
  since: null,
  accounts: 0,
  most: [],
};

/** An end user's or key's requests in one line; `since`, `forecast`: of the first of them. */
export type WaitingUser = Readonly<{
  account: AccountId;
  member: string;
  /** Within its account. */
  weight: number;
  priority: Priority;
  models: readonly string[];
  requests: number;
  since: Ms;
  /** Null where there are too many accounts in line to count for each. */
  forecast: Forecast | null;
}>;

/** An account's requests for a model on a node; `reading`: those without a first token, `since`: of the oldest. */
export type RunningGroup = {
  readonly node: string;
  readonly account: AccountId;
  readonly priority: Priority;
  readonly modelId: string;
  requests: number;
  reading: number;
  since: Ms;
};

/** `firstTokenMs`: expected by someone with nothing in line for a short prompt; null where the node takes none now. */
export type NodeOutlook = NodeLine & Readonly<{ firstTokenMs: Ms | null }>;

/** What operators see of the line; times by the wall clock. */
export type LineView = Readonly<{
  /** All that wait, by class. */
  waiting: Readonly<Record<Priority, number>>;
  /** Those who are next first, at most so many as wanted. */
  next: readonly WaitingUser[];
  running: readonly RunningGroup[];
  /** Work of the last hour, with what is expected of what runs; those with most of it first. `weight`: an account's now. */
  accounts: readonly (ServedRow<AccountId> & Readonly<{ weight: number | null }>)[];
  classes: readonly ServedRow<Priority>[];
  models: readonly ServedRow<string>[];
  nodes: readonly ServedRow<string>[];
  /** By node, where its engine reports cached tokens. */
  caches: ReadonlyMap<string | null, Readonly<CacheHour>>;
}>;

type Place = Readonly<{ account: AccountId; priority: Priority; modelId: string; weight?: number | undefined }>;
type Waiter = InLine & Readonly<{ place: Place }>;
type OneLine<Waiting extends Waiter> = Readonly<{
  priority: Priority;
  line: FairLine<Waiting>;
  nodes: readonly Runner["state"][];
}>;
type Runner = Readonly<{
  state: Readonly<{ node: Readonly<{ name: string }> }>;
  since: Ms;
  isReading: boolean;
  work: number;
  waitedMs: Ms;
}>;

/** The queue as it is: it changes with the next event. */
export type SeenQueue<Waiting extends Waiter> = Readonly<{
  lines: readonly OneLine<Waiting>[];
  running: Iterable<readonly [Place, Runner]>;
  served: ServedWork;
  forecastOf(waiting: Waiting): Forecast;
  /** See NodeOutlook. */
  expectedMs(nodeName: string): Ms | null;
}>;

/** `now` is monotonic, and `wall` the same moment. */
export type SeenLine<Waiting extends Waiter = Waiter> = SeenQueue<Waiting> &
  Readonly<{
    now: Ms;
    wall: Ms;
    nodes: readonly string[];
    weightOf(account: AccountId): number;
    caches: LineView["caches"];
  }>;

/** How many requests of a user are looked at for their models. */
const modelsLookMax = 20;
/** A forecast looks at every account in line: so many looks take about 5 ms. */
const accountLooksMax = 200_000;

/** The line of each node. A request that waits for several stands in each of their lines. */
export function nodeLines(
  seen: Pick<SeenLine, "lines" | "expectedMs" | "nodes" | "now" | "wall">,
  shownMax: number,
): ReadonlyMap<string, NodeOutlook> {
  const ofNodes = new Map<string, NodeLine>();
  for (const each of seen.lines) {
    const line = lineOf(each, shownMax);
    for (const { node } of each.nodes) ofNodes.set(node.name, together(ofNodes.get(node.name), line, shownMax));
  }
  const outlookOf = (name: string): NodeOutlook => {
    const { since, ...line } = ofNodes.get(name) ?? noLine;
    const firstTokenMs = seen.expectedMs(name);
    return { ...line, since: since === null ? null : since + seen.wall - seen.now, firstTokenMs };
  };
  return new Map(seen.nodes.map((name) => [name, outlookOf(name)]));
}

/** `usersMax`: how many users of those that wait. */
export function lineView(
  { lines, running, served, forecastOf, now, wall, weightOf, caches }: SeenLine,
  usersMax: number,
): LineView {
  const underWay = new ServedWork();
  for (const [place, { state, work, waitedMs }] of running)
    underWay.add({ ...place, node: state.node.name, work, waitedMs }, now);
  const byWall = <Of extends Readonly<{ since: Ms }>>(of: Of): Of => ({ ...of, since: of.since + wall - now });
  return {
    waiting: waitingByPriority(lines),
    next: usersInLine(lines, usersMax, forecastOf).map(byWall),
    running: runningGroups(running).map(byWall),
    accounts: mostFirst([served.accounts, underWay.accounts], now).map((row) => ({
      ...row,
      weight: row.key === null ? null : weightOf(row.key),
    })),
    classes: mostFirst([served.classes, underWay.classes], now),
    models: mostFirst([served.models, underWay.models], now),
    nodes: mostFirst([served.nodes, underWay.nodes], now),
    caches,
  };
}

function lineOf({ line, priority }: OneLine<Waiter>, shownMax: number): NodeLine {
  let waiting = 0;
  let since = Number.POSITIVE_INFINITY;
  let most: NodeLine["most"][number][] = [];
  for (const { key: account, inside } of line) {
    waiting += inside.length;
    since = Math.min(since, inside.since);
    if (most.length < shownMax || inside.length > (most.at(-1)?.waiting ?? Infinity)) {
      most = withMost([...most, { account, waiting: inside.length }], shownMax);
    }
  }
  return { waiting, byPriority: { ...noLine.byPriority, [priority]: waiting }, since, accounts: line.length, most };
}

/** An account that waits in both counts twice where it is not among those with the most. */
function together(one: NodeLine | undefined, other: NodeLine, shownMax: number): NodeLine {
  if (one === undefined) return other;
  const most = new Map(one.most.map(({ account, waiting }) => [account, waiting]));
  const known = most.size;
  for (const { account, waiting } of other.most) most.set(account, (most.get(account) ?? 0) + waiting);
  const twice = known + other.most.length - most.size;
  return {
    waiting: one.waiting + other.waiting,
    byPriority: sumOf(one.byPriority, other.byPriority),
    since: Math.min(one.since ?? Infinity, other.since ?? Infinity),
    accounts: one.accounts + other.accounts - twice,
    most: withMost(
      [...most].map(([account, waiting]) => ({ account, waiting })),
      shownMax,
    ),
  };
}

const withMost = (accounts: NodeLine["most"][number][], shownMax: number): NodeLine["most"][number][] =>
  accounts.toSorted((a, b) => b.waiting - a.waiting).slice(0, shownMax);

const sumOf = (one: NodeLine["byPriority"], other: NodeLine["byPriority"]): NodeLine["byPriority"] => ({
  interactive: one.interactive + other.interactive,
  standard: one.standard + other.standard,
  bulk: one.bulk + other.bulk,
});

function waitingByPriority(lines: SeenLine["lines"]): Record<Priority, number> {
  const waiting = { interactive: 0, standard: 0, bulk: 0 };
  for (const { priority, line } of lines) for (const { inside } of line) waiting[priority] += inside.length;
  return waiting;
}

/** Those who are next first, at most so many. */
function usersInLine<Waiting extends Waiter>(
  lines: readonly OneLine<Waiting>[],
  shownMax: number,
  forecastOf: (waiting: Waiting) => Forecast,
): WaitingUser[] {
  const all = lines.toSorted((one, other) => rankOf(one.priority) - rankOf(other.priority));
  const accounts = all.reduce((sum, { line }) => sum + line.length, 0);
  let forecasts = accountLooksMax / Math.max(1, accounts);
  const users: WaitingUser[] = [];
  for (const { priority, line } of all) {
    for (const { account, member, places } of firstOf(line, shownMax)) {
      const first = inTurnOf(places).next().value!;
      const { length: requests } = places;
      const forecast = forecasts-- >= 1 ? forecastOf(first) : null;
      const { weight = 1 } = first.place;
      users.push({
        account,
        member,
        weight,
        priority,
        models: modelsOf(places),
        requests,
        since: first.since,
        forecast,
      });
    }
  }
  const place = ({ forecast }: WaitingUser): number => forecast?.position ?? Infinity;
  const inOrder = (one: WaitingUser, other: WaitingUser): number =>
    rankOf(one.priority) - rankOf(other.priority) || place(one) - place(other) || one.since - other.since;
  return users.toSorted(inOrder).slice(0, shownMax);
}

type UserInLine<Waiting extends InLine> = Readonly<{
  account: AccountId;
  member: string;
  places: MemberInLine<Waiting>;
}>;

function* firstOf<Waiting extends Waiter>(line: FairLine<Waiting>, most: number): Generator<UserInLine<Waiting>> {
  let left = most;
  for (const { key: account, inside } of line.inTurn()) {
    for (const { key: member, inside: places } of inside.ranks.inOrder()) {
      if (left-- === 0) return;
      yield { account, member, places };
    }
  }
}

const modelsOf = <Waiting extends Waiter>(places: MemberInLine<Waiting>): readonly string[] => [
  ...new Set(
    inTurnOf(places)
      .take(modelsLookMax)
      .map(({ place }) => place.modelId),
  ),
];

/** By class; those with most requests first. */
function runningGroups(running: Iterable<readonly [Place, Runner]>): RunningGroup[] {
  const groups = new Map<string, RunningGroup>();
  for (const [{ account, modelId, priority }, { state, since, isReading }] of running) {
    const node = state.node.name;
    const key = `${account}\n${priority}\n${node}\n${modelId}`;
    let group = groups.get(key);
    if (group === undefined)
      groups.set(key, (group = { node, account, priority, modelId, requests: 0, reading: 0, since }));
    group.requests++;
    if (isReading) group.reading++;
    group.since = Math.min(group.since, since);
  }
  return [...groups.values()].toSorted(
    (one, other) => rankOf(one.priority) - rankOf(other.priority) || other.requests - one.requests,
  );
}
