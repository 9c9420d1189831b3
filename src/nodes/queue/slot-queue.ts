// Who gets which node, and who waits. A decider: events in, effects out, no sockets, timers or promises; time comes as an
// argument.
//
// A request enters:
//   (0) all nodes that serve it are drained                 -> waits, as in (3) and (4)
//   (1) no node serves its model, or all that do are away   -> refused at once; but where one is down, one request at a
//       (starting, or down)                                    time is its trial, and others wait for that
//   (2) one that serves it is well and has a free slot      -> granted (which one: see Chooser; one on which a request
//                                                              failed lately only where no other has room)
//   (3) the lines are full                                  -> refused as busy
//   (4) else                                                -> waits
//   (5) a node without room is worth waiting for            -> waits for that as long as it saves, then takes any
// The trial is there because whoever said that the node is down may be wrong, and by now it may be back. It fails with
// its connection (`trialFailed`): then those who wait are refused. If it does not, they are let through (`trialHolds`).
// A slot becomes free: among the accounts that wait for something this node serves, the one whose turn is longest ago is
// next; within an account first come, first served. So an account with 500 requests waits behind its own.
//
// A drained node gets nothing, whatever its health is, and is no reason to wait while another is there; an operator does
// that before its engine is started again, so that those who wait for it alone do so through that, too.
//
// Nobody overtakes at (2): a place waits only while no well node that serves it has a free slot, or by (5), because every
// event that frees or adds one (release, configure, well) hands it out at once. `check` asserts it in tests.
import { assert } from "../../core/assert.ts";
import { queuePlacesMax } from "../../core/limits.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { Line } from "./line.ts";
import type { Link } from "./line.ts";
import type { Candidate, Choice, Wanting } from "./placement.ts";

/**
 * `cooling`: refuses new work for a moment, those who wait stay in line. `down`: not there, as far as is known.
 * `starting`: a program of ours that is not ready, where nothing may be sent.
 */
export type NodeHealth = "well" | "cooling" | "down" | "starting";

export type QueueNode = Readonly<{
  name: string;
  slots: number;
  /** Requests that it has from others, as far as they are known; absent: none. */
  elsewhere?: number;
  serves: (modelId: string) => boolean;
  /** Absent: as it was, and well where it is new. */
  health?: NodeHealth;
}>;

/** A request in line or on a node. */
export interface Place extends Wanting {
  readonly excluded: ReadonlySet<string>;
  /** Effects, called at most once in all, from within an event. */
  granted(node: string): void;
  refused(cause: RefusalCause): void;
}
export type RefusalCause = "unlisted" | "away" | "full" | "waited-too-long" | "drained";

/** Those who stand in the lines that a node serves. */
export type NodeLine = Readonly<{
  waiting: number;
  /** Since when the one does that has waited longest; null where nobody waits. */
  since: Ms | null;
  accounts: number;
  /** Those with most in line first. */
  most: readonly Readonly<{ account: AccountId; waiting: number }>[];
}>;

/** `accounts`: those who wait or run there; `waitedMs`: how long the oldest has waited. */
export type LineNeed = Readonly<{ waiting: number; accounts: number; waitedMs: Ms }>;

type NodeState = {
  node: QueueNode;
  health: NodeHealth;
  busy: number;
  /** It is down and a request is to show whether it still is. */
  trial: boolean;
  /** The turn of its last trial; smaller is longer ago. */
  triedAt: number;
  /** A request failed there: until then others are chosen where one has room; monotonic. */
  doubtedUntil: Ms;
  /** An operator wants it to get nothing new. */
  drained: boolean;
  /** No longer configured: takes nothing new, forgotten when its last request ends. */
  retired: boolean;
  /** Requests that wait for it while another has room. */
  wanted: number;
  readonly lines: Set<RouteLine>;
};

/** Those who wait for the same set of nodes. */
type RouteLine = {
  readonly key: string;
  readonly nodes: readonly NodeState[];
  readonly accounts: Line<AccountLine>;
  readonly byId: Map<AccountId, Link<AccountLine>>;
};
/** `turn`: when the account was last served or began to wait; smaller is longer ago. */
type AccountLine = { readonly account: AccountId; turn: number; readonly places: Line<Waiting> };
type Waiting = {
  readonly place: Place;
  readonly since: Ms;
  readonly route: RouteLine;
  /** It waits for this node while another has room. */
  wants: NodeState | null;
  /** Until then; once, so that it takes any node after that. Null: it has not chosen yet. */
  wantsUntil: Ms | null;
  inAccount: Link<Waiting> | null;
  inAll: Link<Waiting> | null;
};

/** Says which of several nodes is a request's; one of them has room at least. */
export interface Chooser {
  choose<Node extends Candidate>(wanting: Wanting, candidates: readonly Node[], now: Ms): Choice<Node>;
}

/** The one with the smallest part of its slots in use. */
const idlest = {
  choose<Node extends Candidate>(_wanting: Wanting, candidates: readonly Node[]): Choice<Node> {
    const least = candidates.reduce((least, one) => (load(one) < load(least) ? one : least));
    return { best: least, free: least, savedMs: 0 };
  },
};

/** So many requests at most wait for a node of their choice while another has room: each is looked at in each event. */
const choosyMax = 16;

/** The slot queue of all nodes. */
export class SlotQueue {
  /** Longest wait in line; a change also holds for those who wait. */
  maxWaitMs: Ms;
  readonly #placesMax: number;
  readonly #chooser: Chooser;
  readonly #nodes = new Map<string, NodeState>();
  readonly #routes = new Map<string, RouteLine>();
  readonly #all = new Line<Waiting>();
  readonly #waiting = new Map<Place, Waiting>();
  readonly #choosy = new Set<Waiting>();
  /** As the last event said it. */
  #now: Ms = -Infinity;
  /** Last turn of accounts that wait now. */
  #turn = 0;
  #drained: ReadonlySet<string> = new Set();

  constructor(maxWaitMs: Ms, placesMax: number = queuePlacesMax, chooser: Chooser = idlest) {
    this.#chooser = chooser;
    this.maxWaitMs = maxWaitMs;
    this.#placesMax = placesMax;
  }

  get length(): number {
    return this.#all.length;
  }

  /** Replaces the nodes. Running requests stay on theirs; those who wait are sorted anew. */
  configure(nodes: readonly QueueNode[]): void {
    const names = new Set(nodes.map(({ name }) => name));
    for (const state of this.#nodes.values()) if (!names.has(state.node.name)) this.#retire(state);
    for (const node of nodes) {
      const known = this.#nodes.get(node.name);
      if (known === undefined)
        this.#nodes.set(node.name, {
          node,
          health: node.health ?? "well",
          busy: 0,
          trial: false,
          triedAt: 0,
          doubtedUntil: 0,
          drained: this.#drained.has(node.name),
          retired: false,
          wanted: 0,
          lines: new Set(),
        });
      else {
        known.node = node;
        known.health = node.health ?? known.health;
        known.trial &&= known.health === "down";
        known.retired = false;
      }
    }
    this.#sortAnew();
  }

  /** From here on these get nothing new, whether they are configured or not. What runs there ends. */
  drain(names: ReadonlySet<string>): void {
    this.#drained = names;
    for (const state of this.#nodes.values()) state.drained = names.has(state.node.name);
    this.#sortAnew();
  }

  /** Whether a configured node serves the model, well or not. */
  serves(modelId: string): boolean {
    for (const state of this.#nodes.values()) if (!state.retired && state.node.serves(modelId)) return true;
    return false;
  }

  /** Whether one that serves the model is there, with room or without. */
  takes(modelId: string): boolean {
    return [...this.#nodes.values()].some((state) => isThere(state) && state.node.serves(modelId));
  }

  /** Whether this node is configured to serve the model, well or not. */
  servesOn(nodeName: string, modelId: string): boolean {
    const state = this.#nodes.get(nodeName);
    return state !== undefined && !state.retired && state.node.serves(modelId);
  }

  /** See the decision tree at the top. */
  enter(place: Place, now: Ms): void {
    this.#now = Math.max(this.#now, now);
    const candidates = this.#candidates(place);
    const open = this.#drained.size === 0 ? candidates : candidates.filter(isOpen);
    // (0) what another node failed has waited enough
    const waitsForDrained = open.length === 0 && candidates.length > 0 && place.excluded.size === 0;
    const free = waitsForDrained
      ? null
      : open.every(isAway)
        ? this.#forTrial(open, place) // (1)
        : this.#choose(place, open);
    if (free === "none") return place.refused(this.serves(place.modelId) ? "away" : "unlisted");
    const mayWait = this.#choosy.size < choosyMax && this.#all.length < this.#placesMax;
    if (free !== null && "best" in free) {
      const { best, free: now, savedMs } = free;
      if (hasRoom(best) || !mayWait) return this.#grant(place, hasRoom(best) ? best : now); // (2)
      return this.#choosyWait(place, candidates, best, savedMs); // (5)
    }
    if (free !== null) return this.#grant(place, free); // (1)
    if (this.#all.length >= this.#placesMax) return place.refused("full"); // (3)
    this.#wait(place, candidates, now); // (4)
  }

  /** The client left while waiting. False when it does not wait (anymore). */
  leave(place: Place): boolean {
    const waiting = this.#waiting.get(place);
    if (waiting === undefined) return false;
    this.#remove(waiting);
    return true;
  }

  /** A granted place is done with its node. */
  release(nodeName: string, now = this.#now): void {
    this.#now = Math.max(this.#now, now);
    const state = this.#nodes.get(nodeName);
    assert(state !== undefined && state.busy > 0, `release of node ${nodeName} without a reservation`);
    state.busy--;
    if (state.retired && state.busy === 0) this.#nodes.delete(nodeName);
    else if (state.health === "down") this.#passTrialOn(state);
    else this.#fill(state);
  }

  /** The node that was down is down: a request could not connect. */
  trialFailed(nodeName: string): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health !== "down") return;
    state.trial = false;
    for (const route of [...state.lines]) this.#refuseIfHopeless(route);
  }

  /** The node is said to be down, but a request has connected: those who wait for it need not wait for its answer. */
  trialHolds(nodeName: string): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health !== "down" || !state.trial) return;
    state.trial = false;
    while (state.busy < state.node.slots && this.#grantNext(state));
    if (state.lines.size > 0 && !state.drained) state.trial = true; // the next to end passes it on
  }

  /** How many it takes at once, and what it has from others, while nothing else about it changes. */
  setSlots(nodeName: string, slots: number, elsewhere: number): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || (state.node.slots === slots && state.node.elsewhere === elsewhere)) return;
    state.node = { ...state.node, slots, elsewhere };
    this.#fill(state);
  }

  setHealth(nodeName: string, health: NodeHealth): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health === health) return;
    state.health = health;
    state.trial = false;
    if (health === "well") this.#fill(state);
    else {
      for (const waiting of [...this.#choosy]) if (waiting.wants === state) this.#takesOther(waiting);
      for (const route of [...state.lines]) this.#refuseIfHopeless(route);
    }
  }

  /**
   * A request failed on the node. What fails does so at once, so that this node would always be the idlest, and a client
   * that asks again would meet it again. Or it has requests and is silent. 0: it answered.
   */
  doubt(nodeName: string, until: Ms): void {
    const state = this.#nodes.get(nodeName);
    if (state !== undefined) state.doubtedUntil = until;
  }

  /** Refuses those who waited too long. */
  expire(now: Ms): void {
    this.#now = Math.max(this.#now, now);
    for (const waiting of [...this.#choosy]) {
      if (waiting.wantsUntil! > now) continue;
      this.#takesOther(waiting);
    }
    for (;;) {
      const oldest = this.#all.first?.value;
      if (oldest === undefined || oldest.since + this.maxWaitMs > now) return;
      const drained = oldest.route.nodes.every((state) => state.drained);
      this.#remove(oldest);
      oldest.place.refused(drained ? "drained" : "waited-too-long");
    }
  }

  /** When `expire` has something to do at the earliest, or null. */
  nextExpiry(): Ms | null {
    const oldest = this.#all.first?.value;
    if (oldest === undefined) return null;
    let next = oldest.since + this.maxWaitMs;
    for (const { wantsUntil } of this.#choosy) next = Math.min(next, wantsUntil!);
    return next;
  }

  states(): { name: string; health: NodeHealth; busy: number; slots: number }[] {
    return [...this.#nodes.values()]
      .filter(({ retired }) => !retired)
      .map(({ node, health, busy }) => ({ name: node.name, health, busy, slots: node.slots }));
  }

  /** Who waits for each node; who waits for several stands in the line of each. Each line is walked once, by account. */
  lines(shownMax: number): ReadonlyMap<string, NodeLine> {
    const ofNodes = new Map<string, NodeLine>();
    for (const route of this.#routes.values()) {
      const line = lineOf(route, shownMax);
      for (const { node } of route.nodes) ofNodes.set(node.name, together(ofNodes.get(node.name), line, shownMax));
    }
    return ofNodes;
  }

  /** What those need who wait for a node; `running`: accounts that have places there. */
  needOf(nodeName: string, running: ReadonlySet<AccountId>, now: Ms): LineNeed {
    const accounts = new Set(running);
    let waiting = 0;
    let since = now;
    for (const route of this.#nodes.get(nodeName)?.lines ?? []) {
      for (let link = route.accounts.first; link !== null; link = link.after) {
        const { account, places } = link.value;
        accounts.add(account);
        waiting += places.length;
        since = Math.min(since, places.first!.value.since);
      }
    }
    return { waiting, accounts: accounts.size, waitedMs: now - since };
  }

  /** Asserts what must hold between any two events. */
  check(): void {
    let waiting = 0;
    for (const route of this.#routes.values()) {
      assert(route.accounts.length === route.byId.size, "an account stands once in a line");
      for (let link = route.accounts.first; link !== null; link = link.after) {
        assert(link.value.places.length > 0, "an account in line waits for something");
        waiting += link.value.places.length;
      }
      assert(route.accounts.length > 0, "an empty line is forgotten");
      const wait = waitingIn(route);
      for (const state of route.nodes)
        assert(!hasRoom(state) || wait.every(({ wants }) => wants !== null), "nobody waits beside a free slot unasked");
      const open = route.nodes.filter(isOpen);
      assert(
        open.length === 0 || open.some((state) => !isAway(state) || state.trial),
        "nobody waits for nodes that are all away and not tried",
      );
    }
    const wanted = [...this.#nodes.values()].reduce((sum, state) => sum + state.wanted, 0);
    assert(this.#choosy.size <= choosyMax && wanted <= this.#choosy.size, "few wait for a node of their choice");
    assert(waiting === this.#all.length && waiting === this.#waiting.size, "every waiting place is in all lists");
    for (const { busy } of this.#nodes.values()) assert(busy >= 0, "busy is never negative");
  }

  #candidates({ modelId, excluded }: Place): NodeState[] {
    const candidates: NodeState[] = [];
    for (const state of this.#nodes.values())
      if (!state.retired && !excluded.has(state.node.name) && state.node.serves(modelId)) candidates.push(state);
    return candidates;
  }

  /** Null where none has room. */
  #choose(place: Place, open: readonly NodeState[]): Choice<NodeState> | null {
    const well = open.filter(({ health, retired }) => health === "well" && !retired);
    const trusted = well.filter(({ doubtedUntil }) => doubtedUntil <= this.#now);
    const among = trusted.some(hasRoom) ? trusted : well;
    if (!among.some(hasRoom)) return null;
    if (among.length === 1) return { best: among[0]!, free: among[0]!, savedMs: 0 };
    return this.#chooser.choose(place, among, this.#now);
  }

  #choosyWait(place: Place, candidates: NodeState[], best: NodeState, savedMs: Ms): void {
    this.#wait(place, candidates, this.#now);
    this.#want(this.#waiting.get(place)!, best, savedMs);
  }

  #want(waiting: Waiting, best: NodeState, savedMs: Ms): void {
    waiting.wants = best;
    waiting.wantsUntil = this.#now + savedMs;
    best.wanted++;
    this.#choosy.add(waiting);
  }

  #takesAny(waiting: Waiting): void {
    if (waiting.wants === null) return;
    waiting.wants.wanted--;
    waiting.wants = null;
    this.#choosy.delete(waiting);
  }

  /** What it waited for is not worth more time. */
  #takesOther(waiting: Waiting): void {
    this.#takesAny(waiting);
    for (const state of waiting.route.nodes) this.#fill(state);
  }

  /** Whether it is best off there; the first time that it is not, it may wait for another. */
  #takes(waiting: Waiting, state: NodeState): boolean {
    const { place, route, wants, wantsUntil } = waiting;
    if (wants !== null) return wants === state || state.health !== "well";
    if (wantsUntil !== null || state.health !== "well" || this.#choosy.size >= choosyMax) return true;
    const choice = this.#choose(place, route.nodes.filter(isOpen));
    if (choice === null || hasRoom(choice.best)) return true;
    this.#want(waiting, choice.best, choice.savedMs);
    return false;
  }

  /**
   * Of nodes that are all away: the one to be tried, which was tried longest ago; null where one is being tried, "none"
   * where none can be. A request that another node failed has shown enough.
   */
  #forTrial(candidates: readonly NodeState[], { excluded }: Place): NodeState | null | "none" {
    if (excluded.size > 0) return "none";
    let longest: NodeState | null = null;
    for (const state of candidates) {
      if (state.trial) return null;
      // A trial is had without a share of a node's slots, too: what is down gives none.
      if (state.health !== "down" || state.busy >= Math.max(1, state.node.slots)) continue;
      if (longest === null || state.triedAt < longest.triedAt) longest = state;
    }
    return longest ?? "none";
  }

  /** The trial ended without a connection that failed, or an earlier request ended: the next in line is the trial. */
  #passTrialOn(state: NodeState): void {
    state.trial = false;
    this.#grantNext(state);
  }

  #grant(place: Place, state: NodeState): void {
    if (state.health === "down") {
      state.trial = true;
      state.triedAt = ++this.#turn;
    }
    state.busy++;
    place.granted(state.node.name);
  }

  #wait(place: Place, nodes: NodeState[], since: Ms): void {
    const route = this.#routeOf(nodes);
    let link = route.byId.get(place.account);
    if (link === undefined) {
      link = route.accounts.append({ account: place.account, turn: ++this.#turn, places: new Line() });
      route.byId.set(place.account, link);
    }
    const waiting: Waiting = { place, since, route, wants: null, wantsUntil: null, inAccount: null, inAll: null };
    waiting.inAccount = link.value.places.append(waiting);
    waiting.inAll = this.#all.append(waiting);
    this.#waiting.set(place, waiting);
  }

  #routeOf(nodes: NodeState[]): RouteLine {
    const key = nodes.map(({ node }) => node.name).join("\n");
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const route: RouteLine = { key, nodes, accounts: new Line(), byId: new Map() };
    this.#routes.set(key, route);
    for (const state of nodes) state.lines.add(route);
    return route;
  }

  #remove(waiting: Waiting): void {
    const { route, place } = waiting;
    this.#takesAny(waiting);
    this.#waiting.delete(place);
    this.#all.remove(waiting.inAll!);
    const link = route.byId.get(place.account)!;
    link.value.places.remove(waiting.inAccount!);
    if (link.value.places.length === 0) {
      route.accounts.remove(link);
      route.byId.delete(place.account);
    }
    if (route.accounts.length === 0) {
      this.#routes.delete(route.key);
      for (const state of route.nodes) state.lines.delete(route);
    }
  }

  /** Hands out the node's free slots to those who wait for it. */
  #fill(state: NodeState): void {
    while (hasRoom(state) && this.#grantNext(state));
  }

  /** False where nobody waits for it. */
  #grantNext(state: NodeState): boolean {
    const next = this.#nextFor(state);
    if (next === null) return false;
    this.#remove(next);
    this.#endTurn(next.place.account, state);
    this.#grant(next.place, state);
    return true;
  }

  #nextFor(state: NodeState): Waiting | null {
    if (state.drained) return null;
    let longest = Infinity;
    let next: Waiting | null = null;
    for (const route of state.lines) {
      if (isAway(state) && route.nodes.some(isThere)) continue; // they wait for those
      for (let link = route.accounts.first; link !== null && link.value.turn < longest; link = link.after) {
        const first = this.#firstFor(link.value, state);
        if (first === null) continue;
        [longest, next] = [link.value.turn, first];
      }
    }
    return next;
  }

  /** Those who wait for another node stand aside. */
  #firstFor({ places }: AccountLine, state: NodeState): Waiting | null {
    for (let link = places.first; link !== null; link = link.after)
      if (this.#takes(link.value, state)) return link.value;
    return null;
  }

  /** The account goes to the end of every line for this node, so that waiting in several lines gives no more turns. */
  #endTurn(account: AccountId, state: NodeState): void {
    const turn = ++this.#turn;
    for (const route of state.lines) {
      const link = route.byId.get(account);
      if (link === undefined) continue;
      route.accounts.remove(link);
      link.value.turn = turn;
      route.byId.set(account, route.accounts.append(link.value));
    }
  }

  #refuseIfHopeless(route: RouteLine): void {
    const open = route.nodes.filter((state) => !state.retired && !state.drained);
    if (open.some((state) => !isAway(state) || state.trial)) return;
    if (open.length === 0 && route.nodes.some((state) => !state.retired)) return; // they wait until one is resumed
    for (const waiting of waitingIn(route)) {
      this.#remove(waiting);
      waiting.place.refused("away");
    }
  }

  #retire(state: NodeState): void {
    state.retired = true;
    if (state.busy === 0) this.#nodes.delete(state.node.name);
  }

  /** After a change of nodes: everybody who waits stands in the right line, in the old order, or is granted or refused. */
  #sortAnew(): void {
    const waiting: Waiting[] = [];
    for (let link = this.#all.first; link !== null; link = link.after) waiting.push(link.value);
    for (const one of waiting) this.#remove(one);
    for (const { place, since } of waiting) this.enter(place, since);
  }
}

const isAway = ({ health }: NodeState): boolean => health === "down" || health === "starting";

const isOpen = ({ drained }: NodeState): boolean => !drained;

const isThere = (state: NodeState): boolean => !state.retired && !state.drained && !isAway(state);

function hasRoom({ node, health, busy, drained, retired }: NodeState): boolean {
  return health === "well" && !drained && !retired && busy < node.slots;
}

function lineOf({ accounts }: RouteLine, shownMax: number): NodeLine {
  let waiting = 0;
  let since = Number.POSITIVE_INFINITY;
  let most: NodeLine["most"][number][] = [];
  for (let link = accounts.first; link !== null; link = link.after) {
    const { account, places } = link.value;
    waiting += places.length;
    since = Math.min(since, places.first!.value.since);
    if (most.length < shownMax || places.length > most.at(-1)!.waiting) {
      most = withMost([...most, { account, waiting: places.length }], shownMax);
    }
  }
  return { waiting, since, accounts: accounts.length, most };
}

/** An account that waits in both counts as two where it is not among those with most. */
function together(one: NodeLine | undefined, other: NodeLine, shownMax: number): NodeLine {
  if (one === undefined) return other;
  const most = new Map(one.most.map(({ account, waiting }) => [account, waiting]));
  const known = most.size;
  for (const { account, waiting } of other.most) most.set(account, (most.get(account) ?? 0) + waiting);
  const twice = known + other.most.length - most.size;
  return {
    waiting: one.waiting + other.waiting,
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

function waitingIn(route: RouteLine): Waiting[] {
  const all: Waiting[] = [];
  for (let account = route.accounts.first; account !== null; account = account.after)
    for (let link = account.value.places.first; link !== null; link = link.after) all.push(link.value);
  return all;
}

function load({ busy, node: { slots, elsewhere = 0 } }: Candidate): number {
  return (busy + elsewhere) / (slots + elsewhere);
}
