// Who gets which node, and who waits. A decider: events in, effects out, no sockets, timers or promises; time comes as an
// argument.
//
// A request enters:
//   (0) all nodes that serve it are drained                 -> waits, as in (3) and (4)
//   (1) no node serves its model, or all that do are away   -> refused at once; but where one is down, one request at a
//       (starting, or down)                                    time is its trial, and others wait for that
//   (2) one that serves it is well and has a free slot      -> granted (which one: see Chooser; one on which a request
//                                                              failed recently only where no other has room)
//   (3) the lines are full                                  -> refused as busy
//   (4) otherwise                                           -> waits
//   (5) a node without room is worth waiting for            -> waits for it as long as that saves time, then takes any
//   (6) its node has much to read, and the account's own    -> waits
//       part of that is more than fair; or light users come,
//       and it would leave them no node that reads nothing
// A trial exists because the report that the node is down may be wrong or outdated. It fails with its connection
// (`trialFailed`): then waiting requests are refused. Otherwise they are let through (`trialHolds`).
// When a node has room, or has read a prompt, the account with the least work among those that wait for it is next (see
// Share), then the person, end user or key with the least work within the account, then a person's key or end user, then
// its first request. So who has 500 requests waits behind their own, and who has long prompts gets no more than a share.
//
// A drained node gets nothing, whatever its health, and is no reason to wait while another is up. Operators drain a node
// before they restart its engine, so requests that can only run there wait through the restart.
//
// No request overtakes at (2): a place waits only while no healthy node that serves it has a free slot, or by (5) or (6),
// because every event that frees or adds a slot (ended, began, configure, well) hands it out at once. `check` asserts this.
import { assert } from "../../core/assert.ts";
import type { NodeWork } from "../../core/node-work.ts";
import type { Forecast } from "../../core/forecast.ts";
import { priorities, type Priority, rankOf } from "../../core/priority.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { type AccountInLine, FairLine, requestsOf } from "./fair-line.ts";
import { aheadOf, LinePace } from "./forecast.ts";
import { LightUsers } from "./light-users.ts";
import { Line, type Link } from "./line.ts";
import type { SeenQueue } from "./line-view.ts";
import type { Candidate, Choice, Used, Wanting } from "./placement.ts";
import { noBlocks } from "./prompt-blocks.ts";
import { ServedWork } from "./served-work.ts";
import { idleAccountsMax, type Share, Shares } from "./share.ts";

/**
 * `cooling`: refuses new work for a moment; waiting requests stay in line. `down`: believed to be unreachable.
 * `starting`: a program of ours that is not ready, to which nothing may be sent.
 */
export type NodeHealth = "well" | "cooling" | "down" | "starting";

export type QueueNode = Readonly<{
  name: string;
  slots: number;
  /** Requests that it has from others, as far as known; absent: none. */
  elsewhere?: number;
  serves: (modelId: string) => boolean;
  /** Absent: unchanged, or healthy where the node is new. */
  health?: NodeHealth;
}>;

/** A request in line or on a node. */
export interface Place extends Wanting {
  /** The end user within the account: one with many requests waits behind their own. */
  readonly member: string;
  /** The key or end user within the member, where that is a person. */
  readonly own?: string | undefined;
  /** Its share among those beside it. Absent: 1. */
  readonly weight?: number | undefined;
  readonly priority: Priority;
  readonly excluded: ReadonlySet<string>;
  /** It is refused where it would have to wait and its first token is expected later than this after `enter`. */
  readonly deadlineMs?: Ms | undefined;
  /** Effects. One of them is called, once, from within an event. */
  granted(node: string): void;
  /** `forecast`: with "too-late" and "full", and mostly with "waited-too-long". */
  refused(cause: RefusalCause, forecast?: Forecast): void;
}
export type RefusalCause = "unlisted" | "away" | "full" | "waited-too-long" | "drained" | "too-late";

/** A request that may enter. */
export type Entrant = Wanting & Pick<Place, "member" | "own" | "weight" | "priority" | "excluded">;

/** `accounts`: those with waiting or running requests there, each as many as its weight; `waitedMs`: the oldest wait. */
export type LineNeed = Readonly<{ waiting: number; accounts: number; waitedMs: Ms }>;

type NodeState = {
  node: QueueNode;
  health: NodeHealth;
  busy: number;
  /** It is down, and a request is its trial. */
  trial: boolean;
  /** The turn of its last trial; smaller is longer ago. */
  triedAt: number;
  /** A request failed there: until then other nodes with room are preferred; monotonic. */
  doubtedUntil: Ms;
  /** An operator wants it to get nothing new. */
  drained: boolean;
  /** No longer configured: takes nothing new and is forgotten when its last request ends. */
  retired: boolean;
  /** Requests that wait for it although another has room. */
  wanted: number;
  /** What runs there, by account. */
  readonly running: Map<AccountId, { requests: number; unread: number; weight: number }>;
  /** The sum over `running`. */
  weight: number;
  /** Whose requests it may serve. */
  readonly lights: LightUsers;
  /** Work of prompts that were sent there and whose first tokens have not come yet. */
  unread: number;
  /** Running requests with the priority "bulk". */
  bulk: number;
  /** Recent work, by priority. */
  readonly work: Record<Priority, number>;
  /** The work of the latest request there. */
  lastWork: number;
  /** The highest tag that had its turn there. */
  turn: number;
  readonly lines: Set<RouteLine>;
  readonly pace: LinePace;
};

/** Whose request it is. `ownShare`: the member's, where it has none within that. */
type Sharing = Readonly<{ share: Share; memberShare: Share; ownShare: Share }>;

/** A request on a node. */
type Running = Sharing &
  Readonly<{
    state: NodeState;
    sent: SentWork;
    work: number;
    since: Ms;
    waitedMs: Ms;
  }> & { unread: number; isReading: boolean };

/** Requests that wait for the same set of nodes with the same priority. */
type RouteLine = {
  readonly key: string;
  readonly priority: Priority;
  /** Of requests for a model that limits how many are under way; else null. */
  readonly modelId: string | null;
  readonly nodes: readonly NodeState[];
  readonly line: FairLine<Waiting>;
};
type Waiting = Sharing & {
  readonly place: Place;
  readonly since: Ms;
  readonly route: RouteLine;
  /** It waits for this node although another has room. */
  wants: NodeState | null;
  /** Until when it waits for that node. It does so only once and then takes any node. Null: it has not chosen yet. */
  wantsUntil: Ms | null;
  inOwn: Link<Waiting> | null;
  inAll: Link<Waiting> | null;
};

/** The expected work of a request, in input tokens: in total, and until its first token. */
export type SentWork = Readonly<{ work: number; unreadWork: number }>;

/** Knows the nodes: which of several suits a request (at least one has room), and how much work requests are. */
export interface Chooser {
  choose<Node extends Candidate>(wanting: Wanting, candidates: readonly Node[], now: Ms): Choice<Node>;
  /** How long the node reads what was sent there; without events it shrinks as time passes. */
  unreadMs(nodeName: string, now: Ms): Ms;
  /** How long it reads the request, which it has not been sent. */
  readMs(wanting: Wanting, nodeName: string): Ms;
  /** How long a request's first token takes on that node, its line left aside. */
  expectedMs(wanting: Wanting, candidate: Candidate, now: Ms): Ms;
  sent(wanting: Wanting, nodeName: string, now: Ms): SentWork;
  began(sent: SentWork, now: Ms): void;
  /** The actual work; `used` is null where the answer was incomplete. */
  ended(sent: SentWork, used: Used | null, now: Ms): number;
}

/** An account's share of the nodes' work relative to others. */
export type WeightOf = (account: AccountId) => number;

/** How many requests of a model may be under way at once; null: any number. */
export type ParallelOf = (modelId: string) => number | null;

/**
 * While a node has this much to read, bulk and accounts above their share wait: the engine reads in order of arrival
 * and takes nothing back. With 1 ms, prompts of 100 tokens were read one by one (40 % less throughput); with 500 ms,
 * neighbors waited twice as long at the same throughput (bench/fairness.ts).
 */
const unreadMaxMs = 60;
/** No one waits for an account that is alone there, but a newcomer waits until everything it sent is read. */
const unreadAloneMaxMs = 1_000;

/** The part of a node's slots that bulk leaves free, because running requests cannot be taken back. */
const bulkFreePart = 0.25;

/** Each priority with waiting requests gets at least this part of a node's work, so that all of them end. */
const workLeastPart = 0.05;
/** Beyond this, half of the recorded work is forgotten. */
const workOfLate = 400_000;

/**
 * While light users come, one of at least this many nodes reads nothing long of bulk and of those with many requests: an
 * engine's step reads up to 2,048 tokens, which delays a newcomer by a quarter of a second.
 */
const quietAmongNodesMin = 4;
/** Nodes that read for longer, and for longer than this times as long as expected, hang: they hold no one back. */
const quietMinMs = 2_000;
const lateTimes = 2;
/** Who runs this many requests, and this many times as many as others, is no light user. */
const manyRequests = 16;
const manyTimes = 1.5;

/** How often a node that reads longer than expected is checked again. */
const lookAgainMs = 250;

/** How many waiting requests are considered when a node has room. */
const looksMax = 48;

/** A forecast looks at every account in line, and thousands may be refused at once. */
const forecastsAtOnceMax = 50;

const newcomerMs = 1_000;
/** Someone with no requests in line, who sends a short prompt. */
const newcomer: Entrant = {
  account: -1,
  member: "",
  modelId: "",
  priority: "standard",
  prompt: noBlocks,
  excluded: new Set(),
};

/** How many requests at most wait for a preferred node while another has room: each is considered in every event. */
const choosyMax = 16;

/** The slot queue of all nodes. */
export class SlotQueue {
  /** The longest wait in line; a change also applies to waiting requests. */
  maxWaitMs: Ms;
  readonly #placesMax: number;
  readonly #chooser: Chooser;
  readonly #weightOf: WeightOf;
  readonly #nodes = new Map<string, NodeState>();
  readonly #routes = new Map<string, RouteLine>();
  readonly #all = new Line<Waiting>();
  readonly #waiting = new Map<Place, Waiting>();
  readonly #choosy = new Set<Waiting>();
  /** The time of the last event. */
  #now: Ms = -Infinity;
  readonly #shares = new Shares<AccountId>(idleAccountsMax);
  readonly #running = new Map<Place, Running>();
  readonly #parallelOf: ParallelOf;
  /** Requests on nodes, by model. */
  readonly #underWay = new Map<string, number>();
  /** For operators. */
  readonly served = new ServedWork();
  /** What newcomers would meet, by model and priority. */
  readonly #newcomers = new Map<string, Readonly<{ at: Ms; forecast: Forecast }>>();
  /** See takeServed. */
  #untold: Map<string, NodeWork> | null = null;
  #trials = 0;
  /** Until then, prompts of those who run many are read; later, their nodes hang. */
  #manyReadUntil: Ms = -Infinity;
  /** Counts requests that began to wait. */
  #order = 0;
  #drained: ReadonlySet<string> = new Set();

  constructor(
    maxWaitMs: Ms,
    placesMax: number,
    chooser: Chooser,
    weightOf: WeightOf = () => 1,
    parallelOf: ParallelOf = () => null,
  ) {
    this.#chooser = chooser;
    this.#parallelOf = parallelOf;
    this.#weightOf = weightOf;
    this.maxWaitMs = maxWaitMs;
    this.#placesMax = placesMax;
  }

  get length(): number {
    return this.#all.length;
  }

  /** Replaces the nodes. Running requests stay on theirs; waiting ones are sorted anew. */
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
          running: new Map(),
          weight: 0,
          lights: new LightUsers(),
          unread: 0,
          bulk: 0,
          work: { interactive: 0, standard: 0, bulk: 0 },
          lastWork: 0,
          turn: 0,
          lines: new Set(),
          pace: new LinePace(),
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

  /** These nodes get nothing new from now on, configured or not. Running requests end there. */
  drain(names: ReadonlySet<string>): void {
    this.#drained = names;
    for (const state of this.#nodes.values()) state.drained = names.has(state.node.name);
    this.#sortAnew();
  }

  /** Whether a configured node serves the model, healthy or not. */
  serves(modelId: string): boolean {
    for (const state of this.#nodes.values()) if (!state.retired && state.node.serves(modelId)) return true;
    return false;
  }

  /** Whether a node that serves the model is up, with room or without. */
  takes(modelId: string): boolean {
    return [...this.#nodes.values()].some((state) => isThere(state) && state.node.serves(modelId));
  }

  /** Whether this node is configured to serve the model, healthy or not. */
  servesOn(nodeName: string, modelId: string): boolean {
    const state = this.#nodes.get(nodeName);
    return state !== undefined && !state.retired && state.node.serves(modelId);
  }

  /** See the decision tree at the top. */
  enter(place: Place, now: Ms): void {
    this.#now = Math.max(this.#now, now);
    const candidates = this.#candidates(place);
    const open = this.#drained.size === 0 ? candidates : candidates.filter(isOpen);
    // (0) a request that another node failed has waited enough
    const waitsForDrained = open.length === 0 && candidates.length > 0 && place.excluded.size === 0;
    const free =
      waitsForDrained || this.#isFull(place.modelId)
        ? null
        : open.every(isAway)
          ? this.#forTrial(open, place) // (1)
          : this.#choose(place, open);
    if (free === "none") return place.refused(this.serves(place.modelId) ? "away" : "unlisted");
    const shares = this.#join(place, candidates);
    const { share, memberShare } = shares;
    if (memberShare.waiting === 0 && candidates.length > 0 && !this.#hasMany(place.priority, shares, candidates[0]!))
      for (const { lights } of candidates) lights.came(share, memberShare, this.#now);
    const mayWait = this.#choosy.size < choosyMax && this.#all.length < this.#placesMax;
    if (free !== null && "best" in free) {
      const { best, free: other, savedMs } = free;
      const node = hasRoom(best) ? best : mayWait ? null : other;
      // As time passed, the node may have room again for requests that already wait.
      if (node !== null && node.lines.size > 0) this.#fill(node);
      const mayHave =
        node !== null &&
        hasRoom(node) &&
        !this.#isFull(place.modelId) &&
        this.#mayHave(place.account, place.priority, share, node) &&
        this.#memberMayHave(shares, node) &&
        !this.#leavesQuiet(place, shares, node, candidates);
      if (mayHave) return this.#grant(place, shares, node, now); // (2)
      if (node === null) {
        this.#choosyWait(place, candidates, best, savedMs); // (5)
        return this.#refuseLate(place);
      }
    } else if (free !== null) return this.#grant(place, shares, free, now); // (1)
    if (this.#all.length >= this.#placesMax) {
      this.#rest(place, shares);
      return place.refused("full", this.#newcomer(place, open)); // (3)
    }
    this.#wait(place, candidates, now); // (4), (6)
    this.#refuseLate(place);
  }

  /** A request in line whose first token is expected after its deadline. */
  #refuseLate(place: Place): void {
    const waiting = this.#waiting.get(place)!;
    if (place.deadlineMs === undefined) return;
    const forecast = this.#forecastOf(waiting);
    if (this.#now + forecast.firstTokenMs <= waiting.since + place.deadlineMs) return;
    this.#remove(waiting);
    place.refused("too-late", forecast);
  }

  /** What a request that entered now would meet, or why it would be refused. */
  forecast(entrant: Entrant, now: Ms): Forecast | RefusalCause {
    this.#now = Math.max(this.#now, now);
    const candidates = this.#candidates(entrant);
    if (candidates.length === 0) return this.serves(entrant.modelId) ? "away" : "unlisted";
    const open = candidates.filter(isOpen);
    if (open.length === 0) return "drained";
    if (open.every(isAway)) return "away";
    const shares = this.#join(entrant, candidates);
    const choice = this.#choose(entrant, open);
    const begins =
      choice !== null &&
      hasRoom(choice.best) &&
      !this.#isFull(entrant.modelId) &&
      this.#mayHave(entrant.account, entrant.priority, shares.share, choice.best) &&
      this.#memberMayHave(shares, choice.best);
    this.#rest(entrant, shares);
    if (begins)
      return { position: 0, waitMs: 0, firstTokenMs: this.#chooser.expectedMs(entrant, choice.best, this.#now) };
    return this.#all.length >= this.#placesMax ? "full" : this.#forecastBehind(entrant, open, null);
  }

  isInLine(place: Place): boolean {
    return this.#waiting.has(place);
  }

  /** Null where the place does not wait (anymore). Looks at every account in line. */
  forecastOf(place: Place, now: Ms): Forecast | null {
    this.#now = Math.max(this.#now, now);
    const waiting = this.#waiting.get(place);
    return waiting === undefined ? null : this.#forecastOf(waiting);
  }

  #forecastOf(waiting: Waiting): Forecast {
    const { place, route } = waiting;
    return this.#forecastBehind(place, route.nodes.filter(isOpen), route.line.before(waiting));
  }

  /** Behind `own` requests of the same end user; null: behind all of them. */
  #forecastBehind(entrant: Entrant, nodes: readonly NodeState[], own: number | null): Forecast {
    const lines = new Set(nodes.flatMap((state) => [...state.lines]));
    const rank = rankOf(entrant.priority);
    const ahead = aheadOf(lines, entrant, own, ({ priority }) => rankOf(priority) - rank);
    const there = nodes.filter(({ health }) => health === "well");
    const reads = there.map((state) => this.#chooser.expectedMs(entrant, state, this.#now));
    const readMs = reads.length === 0 ? 0 : Math.min(...reads);
    // A node that has not shown how often it takes a request takes one in the time of a first token.
    const perMs = there.reduce((sum, { pace }, at) => sum + 1 / Math.max(1, pace.everyMs ?? reads[at]!), 0);
    const waitMs = perMs === 0 ? this.maxWaitMs : (ahead + 1) / perMs;
    return { position: ahead + 1, waitMs, firstTokenMs: waitMs + readMs };
  }

  /** What someone with nothing in line would meet: counted once a second, because a full line refuses thousands. */
  #newcomer({ modelId, priority }: Entrant, nodes: readonly NodeState[]): Forecast {
    const key = `${modelId}\n${priority}`;
    const known = this.#newcomers.get(key);
    if (known !== undefined && this.#now - known.at < newcomerMs) return known.forecast;
    const forecast = this.#forecastBehind({ ...newcomer, modelId, priority }, nodes, null);
    this.#newcomers.set(key, { at: this.#now, forecast });
    return forecast;
  }

  /** How long a newcomer's short prompt takes to its first token on that node; null where it takes none now. */
  #expectedMs(nodeName: string): Ms | null {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health !== "well" || state.drained || state.retired) return null;
    return hasRoom(state) && state.lines.size === 0
      ? this.#chooser.expectedMs(newcomer, state, this.#now)
      : this.#forecastBehind(newcomer, [state], null).firstTokenMs;
  }

  /** The client left while waiting. False when it does not wait (anymore). */
  leave(place: Place): boolean {
    const waiting = this.#waiting.get(place);
    if (waiting === undefined) return false;
    this.#remove(waiting);
    return true;
  }

  /** Its first token came. */
  began(place: Place, now = this.#now): void {
    this.#now = Math.max(this.#now, now);
    const running = this.#running.get(place);
    if (running === undefined) return;
    const { state, sent } = running;
    this.#chooser.began(sent, this.#now);
    running.isReading = false;
    this.#hasRead(place.account, running);
    this.#fillAfterReading(state);
  }

  /** A granted place is done with its node; `used` is null where the answer was incomplete. */
  ended(place: Place, used: Used | null = null, now = this.#now): void {
    this.#now = Math.max(this.#now, now);
    const running = this.#running.get(place);
    assert(running !== undefined, "a place is given back once");
    const { state, share, sent } = running;
    this.#running.delete(place);
    this.#hasRead(place.account, running);
    const all = this.#chooser.ended(sent, used, this.#now);
    if (used !== null) share.answered(Math.max(0, all - sent.unreadWork));
    const { account, modelId, priority } = place;
    const node = state.node.name;
    this.served.add({ account, modelId, node, priority, work: all, waitedMs: running.waitedMs }, this.#now);
    this.#had(place, running, all - running.work);
    for (const each of sharesOf(running)) each.running--;
    this.#rest(place, running);
    if (place.priority === "bulk") state.bulk--;
    const there = state.running.get(place.account)!;
    if (--there.requests === 0) {
      state.running.delete(place.account);
      state.weight -= there.weight;
    }
    state.busy--;
    this.#underWay.set(modelId, this.#underWay.get(modelId)! - 1);
    if (state.retired && state.busy === 0) this.#nodes.delete(state.node.name);
    else if (state.health === "down") this.#passTrialOn(state);
    else this.#fillAfterReading(state);
    if (this.#parallelOf(modelId) !== null) this.fillModel(modelId);
  }

  /** More requests of the model may be under way than before. */
  fillModel(modelId: string): void {
    for (const route of [...this.#routes.values()])
      if (route.modelId === modelId) for (const state of route.nodes) this.#fill(state);
  }

  /** Whether as many requests of the model are under way as may be. */
  #isFull(modelId: string): boolean {
    const most = this.#parallelOf(modelId);
    return most !== null && (this.#underWay.get(modelId) ?? 0) >= most;
  }

  /** Work since the last call, for other gateways; empty at the first. */
  takeServed(): readonly NodeWork[] {
    const untold = [...(this.#untold?.values() ?? [])];
    this.#untold = new Map();
    return untold;
  }

  /**
   * Another gateway did this work on a node that has this name here. It counts as if done here while someone waits here.
   * Otherwise no one lacked it, and the account owes nothing; so with its end users and keys, and with classes.
   */
  servedElsewhere({ node, account, member, priority, work }: NodeWork): void {
    if (this.#all.length === 0) return;
    const [share, state] = [this.#shares.known(account), this.#nodes.get(node)];
    share?.had(work);
    if (member !== undefined && share !== undefined && share.waiting > 0) share.members.known(member)?.had(work);
    if (priority !== undefined && state !== undefined && state.lines.size > 0) classHad(state, priority, work);
  }

  /** The node is still down: a request could not connect. */
  trialFailed(nodeName: string): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health !== "down") return;
    state.trial = false;
    for (const route of [...state.lines]) this.#refuseIfHopeless(route);
  }

  /** The node was reported down, but a request has connected: those who wait for the trial need not wait for its answer. */
  trialHolds(nodeName: string): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.health !== "down" || !state.trial) return;
    state.trial = false;
    while (state.busy < state.node.slots && this.#grantNext(state));
    if (state.lines.size > 0 && !state.drained) state.trial = true; // the next request to end passes it on
  }

  /** Its slots and the others' requests, while nothing else about it changes. */
  setSlots(nodeName: string, slots: number, elsewhere: number): void {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || (state.node.slots === slots && state.node.elsewhere === elsewhere)) return;
    state.node = { ...state.node, slots, elsewhere };
    this.#fill(state);
  }

  /** Its free slots, where only bulk waits for them, which must leave them to others. */
  keptFromBulk(nodeName: string): number {
    const state = this.#nodes.get(nodeName);
    if (state === undefined || state.lines.size === 0 || !hasRoom(state) || !hasBulkEnough(state)) return 0;
    return [...state.lines].every(({ priority }) => priority === "bulk") ? state.node.slots - state.busy : 0;
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
   * A request failed on the node. A failing node would always be the idlest, and a client that retries would meet it
   * again. Or it has requests and is silent. 0: it answered.
   */
  doubt(nodeName: string, until: Ms): void {
    const state = this.#nodes.get(nodeName);
    if (state !== undefined) state.doubtedUntil = until;
  }

  /** Refuses requests that waited too long. */
  expire(now: Ms): void {
    this.#now = Math.max(this.#now, now);
    for (const waiting of [...this.#choosy]) {
      if (waiting.wantsUntil! > now) continue;
      this.#takesOther(waiting);
    }
    // Prompts that should have been read by now delay no one any longer, even without a first token.
    for (const state of [...this.#nodes.values()]) if (state.lines.size > 0) this.#fill(state);
    let counted = forecastsAtOnceMax;
    for (;;) {
      const oldest = this.#all.first?.value;
      if (oldest === undefined || oldest.since + this.maxWaitMs > now) return;
      const drained = oldest.route.nodes.every((state) => state.drained);
      const forecast = drained || counted-- <= 0 ? undefined : this.#forecastOf(oldest);
      this.#remove(oldest);
      oldest.place.refused(drained ? "drained" : "waited-too-long", forecast);
    }
  }

  /** When `expire` is due next, or null. */
  nextExpiry(): Ms | null {
    const oldest = this.#all.first?.value;
    if (oldest === undefined) return null;
    let next = oldest.since + this.maxWaitMs;
    for (const { wantsUntil } of this.#choosy) next = Math.min(next, wantsUntil!);
    for (const state of this.#nodes.values()) {
      if (state.lines.size === 0 || !hasRoom(state)) continue;
      const unreadMs = this.#chooser.unreadMs(state.node.name, this.#now);
      const mayStayQuiet = state.lights.areThere(this.#now) && this.#nodes.size >= quietAmongNodesMin;
      if (mayStayQuiet) next = Math.min(next, this.#now + lookAgainMs);
      const most = [unreadAloneMaxMs, unreadMaxMs].find((ms) => unreadMs > ms);
      if (most !== undefined) next = Math.min(next, this.#now + Math.max(unreadMs - most, lookAgainMs));
    }
    return next;
  }

  states(): { name: string; health: NodeHealth; busy: number; slots: number }[] {
    return [...this.#nodes.values()]
      .filter(({ retired }) => !retired)
      .map(({ node, health, busy }) => ({ name: node.name, health, busy, slots: node.slots }));
  }

  /** What waits and runs, to be read at once: see line-view. */
  seen(now: Ms): SeenQueue<Waiting> {
    this.#now = Math.max(this.#now, now);
    return {
      lines: [...this.#routes.values()],
      running: this.#running,
      served: this.served,
      forecastOf: (waiting) => this.#forecastOf(waiting),
      expectedMs: (nodeName) => this.#expectedMs(nodeName),
    };
  }

  /** What the requests that wait for a node need; `running`: accounts with slots there. */
  needOf(nodeName: string, running: ReadonlySet<AccountId>, now: Ms): LineNeed {
    return this.#needOf(this.#nodes.get(nodeName)?.lines ?? [], running, now);
  }

  /** The same of a model with a limit, and how many of its requests are under way. */
  needOfModel(modelId: string, now: Ms): LineNeed & Readonly<{ busy: number }> {
    const running = new Set<AccountId>();
    for (const place of this.#running.keys()) if (place.modelId === modelId) running.add(place.account);
    const lines = [...this.#routes.values()].filter((route) => route.modelId === modelId);
    return { busy: this.#underWay.get(modelId) ?? 0, ...this.#needOf(lines, running, now) };
  }

  #needOf(lines: Iterable<RouteLine>, running: ReadonlySet<AccountId>, now: Ms): LineNeed {
    const accounts = new Set(running);
    let waiting = 0;
    let since = now;
    for (const route of lines) {
      for (const { key, inside } of route.line) {
        accounts.add(key);
        waiting += inside.length;
        since = Math.min(since, inside.since);
      }
    }
    let weight = 0;
    for (const account of accounts) weight += this.#weightOf(account);
    return { waiting, accounts: Math.ceil(weight), waitedMs: now - since };
  }

  /** Asserts what must hold between any two events. */
  check(): void {
    let waiting = 0;
    for (const route of this.#routes.values()) {
      const wait = waitingIn(route);
      waiting += wait.length;
      assert(wait.length > 0, "an empty line is forgotten");
      const isFull = route.modelId !== null && this.#isFull(route.modelId);
      const isReading =
        isFull || route.priority === "bulk" || route.nodes.some((state) => this.#isPressed(state) || state.unread >= 1);
      for (const state of route.nodes)
        assert(
          !hasRoom(state) || isReading || wait.every(({ wants }) => wants !== null),
          "a request waits beside a free slot only where it may not have it",
        );
      const open = route.nodes.filter(isOpen);
      assert(
        isFull || open.length === 0 || open.some((state) => !isAway(state) || state.trial),
        "no request waits for nodes that are all away and not tried",
      );
    }
    const wanted = [...this.#nodes.values()].reduce((sum, state) => sum + state.wanted, 0);
    assert(this.#choosy.size <= choosyMax && wanted <= this.#choosy.size, "few wait for a node of their choice");
    assert(waiting === this.#all.length && waiting === this.#waiting.size, "every waiting place is in all lists");
    const running = [...this.#nodes.values()].flatMap((state) => [...state.running.values()]);
    const requests = running.reduce((sum, one) => sum + one.requests, 0);
    const busy = [...this.#nodes.values()].reduce((sum, state) => sum + state.busy, 0);
    assert(busy === requests && busy === this.#running.size, "every running request is counted once");
    for (const { unread } of running) assert(unread >= 0, "unread work is never negative");
  }

  #candidates({ modelId, excluded }: Entrant): NodeState[] {
    const candidates: NodeState[] = [];
    for (const state of this.#nodes.values())
      if (!state.retired && !excluded.has(state.node.name) && state.node.serves(modelId)) candidates.push(state);
    return candidates;
  }

  /** Null where no node has room. */
  #choose(place: Entrant, open: readonly NodeState[]): Choice<NodeState> | null {
    const isBulk = place.priority === "bulk";
    const well = open.filter((state) => state.health === "well" && !state.retired && !(isBulk && hasBulkEnough(state)));
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

  /** Waiting longer for its preferred node does not pay. */
  #takesOther(waiting: Waiting): void {
    this.#takesAny(waiting);
    for (const state of waiting.route.nodes) this.#fill(state);
  }

  /** The node that it takes, which has room; null where it waits for another, as it may once. */
  #takes(waiting: Waiting, state: NodeState): NodeState | null {
    const { place, route, share, wants, wantsUntil } = waiting;
    if (!this.#memberMayHave(waiting, state)) return null;
    if (this.#leavesQuiet(place, waiting, state, route.nodes)) return null;
    if (wants !== null) return wants === state || state.health !== "well" ? state : null;
    if (state.health !== "well") return state;
    const choice = this.#choose(place, route.nodes.filter(isOpen));
    if (choice === null || choice.best === state) return state;
    if (hasRoom(choice.best)) {
      const mayHave =
        this.#mayHave(place.account, place.priority, share, choice.best) &&
        this.#memberMayHave(waiting, choice.best) &&
        !this.#leavesQuiet(place, waiting, choice.best, route.nodes);
      return mayHave ? choice.best : null;
    }
    if (wantsUntil !== null || this.#choosy.size >= choosyMax) return state;
    this.#want(waiting, choice.best, choice.savedMs);
    return null;
  }

  /**
   * Where all nodes are away, the one to try, which is the one tried longest ago; null where a trial is running, "none"
   * where no node can be tried. A request that another node failed is no further trial.
   */
  #forTrial(candidates: readonly NodeState[], { excluded }: Place): NodeState | null | "none" {
    if (excluded.size > 0) return "none";
    let longest: NodeState | null = null;
    for (const state of candidates) {
      if (state.trial) return null;
      // A trial needs no share of a node's slots: a node that is down grants none.
      if (state.health !== "down" || state.busy >= Math.max(1, state.node.slots)) continue;
      if (longest === null || state.triedAt < longest.triedAt) longest = state;
    }
    return longest ?? "none";
  }

  /** The trial ended without a connection failure, or an earlier request ended: the next in line is the trial. */
  #passTrialOn(state: NodeState): void {
    state.trial = false;
    this.#grantNext(state);
  }

  #grant(place: Place, sharing: Sharing, state: NodeState, since: Ms): void {
    const { share, memberShare, ownShare } = sharing;
    if (state.health === "down") {
      state.trial = true;
      state.triedAt = ++this.#trials;
    }
    state.busy++;
    this.#underWay.set(place.modelId, (this.#underWay.get(place.modelId) ?? 0) + 1);
    const sent = this.#chooser.sent(place, state.node.name, this.#now);
    state.turn = Math.max(state.turn, share.tag);
    if (this.#hasMany(place.priority, sharing, state)) {
      const readMs = lateTimes * this.#chooser.unreadMs(state.node.name, this.#now);
      this.#manyReadUntil = Math.max(this.#manyReadUntil, this.#now + Math.max(quietMinMs, readMs));
    }
    if (place.priority === "bulk") state.bulk++;
    // An account's own answers predict its next ones best: those of others may be ten times as long.
    const expected = share.answerWork === null ? sent.work : sent.unreadWork + share.answerWork;
    state.lastWork = expected;
    classHad(state, place.priority, expected);
    share.turn = Math.max(share.turn, memberShare.tag);
    memberShare.turn = Math.max(memberShare.turn, ownShare.tag);
    this.#had(place, { state, share, memberShare, ownShare }, expected);
    for (const each of sharesOf(sharing)) each.running++;
    this.#rest(place, sharing);
    let there = state.running.get(place.account);
    if (there === undefined) {
      there = { requests: 0, unread: 0, weight: share.weight };
      state.running.set(place.account, there);
      state.weight += there.weight;
    }
    there.requests++;
    there.unread += sent.unreadWork;
    state.unread += sent.unreadWork;
    this.#running.set(place, {
      state,
      share,
      memberShare,
      ownShare,
      sent,
      work: expected,
      since: this.#now,
      waitedMs: this.#now - since,
      unread: sent.unreadWork,
      isReading: true,
    });
    place.granted(state.node.name);
  }

  #had({ account, member, priority }: Place, running: Sharing & Pick<Running, "state">, work: number): void {
    for (const each of sharesOf(running)) each.had(work);
    if (this.#untold === null) return;
    const node = running.state.node.name;
    const key = `${node}\n${account} ${priority} ${member}`;
    this.#untold.set(key, { node, account, member, priority, work: work + (this.#untold.get(key)?.work ?? 0) });
  }

  #hasRead(account: AccountId, running: Running): void {
    const { state, unread } = running;
    running.unread = 0;
    state.unread -= unread;
    state.running.get(account)!.unread -= unread;
  }

  /** Where none of its requests waits, its turn comes no sooner than that of the waiting ones, and no later than it must. */
  #join(entrant: Entrant, nodes: readonly NodeState[]): Sharing {
    const sharing = this.#sharing(entrant);
    const { share, memberShare, ownShare } = sharing;
    share.weight = this.#weightOf(entrant.account);
    ownShare.weight = entrant.weight ?? 1;
    if (memberShare.waiting === 0) memberShare.join(share.turn);
    if (ownShare !== memberShare && ownShare.waiting === 0) ownShare.join(memberShare.turn);
    if (share.waiting > 0) return sharing;
    let [first, last] = [Infinity, 0];
    for (const { lines, turn } of nodes) {
      last = Math.max(last, turn);
      for (const { line } of lines) first = Math.min(first, line.turn);
    }
    share.join(Math.min(first, last));
    return sharing;
  }

  #sharing({ account, member, own }: Entrant): Sharing {
    const share = this.#shares.of(account);
    const memberShare = share.members.of(member);
    return { share, memberShare, ownShare: own === undefined ? memberShare : memberShare.members.of(own) };
  }

  #rest({ account, member, own }: Entrant, { share, memberShare, ownShare }: Sharing): void {
    if (own !== undefined) memberShare.members.used(own, ownShare);
    share.members.used(member, memberShare);
    this.#shares.used(account, share);
  }

  /** Whether it may have more read there: at once where no one waits for that, otherwise in turn. */
  #mayHave(account: AccountId, priority: Priority, share: Share, state: NodeState): boolean {
    const isBulk = priority === "bulk";
    if (isBulk && hasBulkEnough(state)) return false;
    const unreadMs = this.#chooser.unreadMs(state.node.name, this.#now);
    if (state.busy === 0 || unreadMs <= unreadMaxMs) return true;
    if (isBulk) return false;
    if (this.#shares.active <= 1) return unreadMs <= unreadAloneMaxMs;
    const there = state.running.get(account);
    let weights = state.weight;
    let turn = Infinity;
    for (const { line, priority: other } of state.lines) {
      if (rankOf(other) < rankOf(priority)) return false;
      if (other !== priority) continue;
      weights += line.weight;
      turn = Math.min(turn, line.turn);
    }
    if (share.tag > turn) return false;
    return there === undefined || (there.unread / there.weight) * weights < state.unread;
  }

  /** Within an account or a person that is alone: who has requests there leaves room for those without. */
  #memberMayHave({ share, memberShare, ownShare }: Sharing, state: NodeState): boolean {
    if (this.#shares.active > 1 || state.busy === 0) return true;
    const isShared = share.members.active > 1;
    if (!isShared && (ownShare === memberShare || memberShare.members.active <= 1)) return true;
    return (isShared ? memberShare : ownShare).running === 0 || !this.#isPressed(state);
  }

  /** Bulk, and who runs many more requests than others. */
  #hasMany(priority: Priority, { share, memberShare: member }: Sharing, { lights }: NodeState): boolean {
    if (priority === "bulk") return true;
    const isMany = ({ running }: Share, all: number, active: number, of: Share | null): boolean =>
      running >= manyRequests &&
      running * (active === 1 && lights.areBeside(share, of, this.#now) ? 2 : active) > manyTimes * all;
    return (
      isMany(share, this.#running.size, this.#shares.active, null) ||
      isMany(member, share.running, share.members.active, member)
    );
  }

  /** The next light user shall find one of these nodes that reads nothing. */
  #leavesQuiet(place: Entrant, sharing: Sharing, state: NodeState, nodes: readonly NodeState[]): boolean {
    if (!state.lights.areThere(this.#now) || nodes.length < quietAmongNodesMin) return false;
    if (this.#now > this.#manyReadUntil) return false;
    if (state.unread < 1 && nodes.some((other) => other !== state && hasRoom(other) && other.unread < 1)) return false;
    return this.#hasMany(place.priority, sharing, state) && this.#chooser.readMs(place, state.node.name) > unreadMaxMs;
  }

  #isPressed(state: NodeState): boolean {
    return this.#chooser.unreadMs(state.node.name, this.#now) > unreadMaxMs;
  }

  #wait(place: Place, nodes: NodeState[], since: Ms): void {
    const route = this.#routeOf(nodes, place);
    const sharing = this.#sharing(place);
    const waiting: Waiting = {
      place,
      ...sharing,
      since,
      route,
      wants: null,
      wantsUntil: null,
      inOwn: null,
      inAll: null,
    };
    for (const each of sharesOf(sharing)) each.waiting++;
    this.#rest(place, sharing);
    route.line.add(waiting, this.#order++);
    waiting.inAll = this.#all.append(waiting);
    this.#waiting.set(place, waiting);
  }

  #routeOf(nodes: NodeState[], { priority, modelId: model }: Place): RouteLine {
    const modelId = this.#parallelOf(model) === null ? null : model;
    const key = [priority, modelId ?? "", ...nodes.map(({ node }) => node.name)].join("\n");
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const route: RouteLine = { key, priority, modelId, nodes, line: new FairLine() };
    this.#routes.set(key, route);
    for (const state of nodes) {
      const { work, lines } = state;
      // A priority that did not wait was not held back.
      if (![...lines].some((line) => line.priority === priority))
        work[priority] = Math.max(work[priority], leastWork(state));
      lines.add(route);
    }
    return route;
  }

  #remove(waiting: Waiting): void {
    const { route, place } = waiting;
    this.#takesAny(waiting);
    this.#waiting.delete(place);
    this.#all.remove(waiting.inAll!);
    route.line.remove(waiting);
    for (const each of sharesOf(waiting)) each.waiting--;
    this.#rest(place, waiting);
    if (route.line.length === 0) {
      this.#routes.delete(route.key);
      for (const state of route.nodes) state.lines.delete(route);
    }
  }

  /** Hands out the node's free slots to the requests that wait for it. */
  #fill(state: NodeState): void {
    while (hasRoom(state) && this.#grantNext(state));
  }

  /** Where it has nothing to read now, others need not stay quiet. */
  #fillAfterReading(state: NodeState): void {
    this.#fill(state);
    if (state.unread >= 1 || !state.lights.areThere(this.#now)) return;
    for (const { nodes } of [...state.lines]) for (const other of nodes) if (other !== state) this.#fill(other);
  }

  /** False where no request takes it. */
  #grantNext(state: NodeState): boolean {
    if (state.drained || state.lines.size === 0) return false;
    let looks = 0;
    const isOpenTo = ({ modelId }: RouteLine): boolean => modelId === null || !this.#isFull(modelId);
    for (const lines of linesOf(state, isOpenTo)) {
      for (const account of inTurn(lines)) {
        const mayHave = state.health !== "well" || this.#mayHave(account.key, lines[0]!.priority, account.share, state);
        if (!mayHave) break;
        for (const waiting of requestsOf(account)) {
          const node = this.#takes(waiting, state);
          if (node !== null) {
            this.#remove(waiting);
            node.pace.took(this.#now, node.lines.size > 0);
            this.#grant(waiting.place, waiting, node, waiting.since);
            return true;
          }
          if (++looks >= looksMax) return false;
        }
      }
    }
    return false;
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

  /** After a change of nodes: every waiting request moves to the right line in the old order, or is granted or refused. */
  #sortAnew(): void {
    const waiting: Waiting[] = [];
    for (let link = this.#all.first; link !== null; link = link.after) waiting.push(link.value);
    for (const one of waiting) this.#remove(one);
    for (const { place, since } of waiting) this.enter(place, since);
  }
}

const sharesOf = ({ share, memberShare, ownShare }: Sharing): readonly Share[] =>
  ownShare === memberShare ? [share, memberShare] : [share, memberShare, ownShare];

const isAway = ({ health }: NodeState): boolean => health === "down" || health === "starting";

const isOpen = ({ drained }: NodeState): boolean => !drained;

const isThere = (state: NodeState): boolean => !state.retired && !state.drained && !isAway(state);

function hasRoom({ node, health, busy, drained, retired }: NodeState): boolean {
  return health === "well" && !drained && !retired && busy < node.slots;
}

const hasBulkEnough = ({ bulk, node: { slots } }: NodeState): boolean =>
  bulk >= Math.max(1, Math.floor(slots * (1 - bulkFreePart)));

/** The lines of each priority with waiting requests: the priority that had too little of the node's work first. */
function linesOf(state: NodeState, isOpenTo: (line: RouteLine) => boolean): RouteLine[][] {
  const lines = [...state.lines].filter(
    (line) => isOpenTo(line) && (!isAway(state) || !line.nodes.some(isThere)), // they wait for those
  );
  if (lines.length < 2) return lines.length === 0 ? [] : [lines];
  const { work } = state;
  const least = leastWork(state) - state.lastWork;
  return priorities
    .map((priority) => lines.filter((line) => line.priority === priority))
    .filter(({ length }) => length > 0)
    .toSorted(([one], [other]) => Number(work[other!.priority] < least) - Number(work[one!.priority] < least));
}

/** The part of a node's recent work that a priority with waiting requests gets at least. */
const leastWork = ({ work }: NodeState): number => workLeastPart * (work.interactive + work.standard + work.bulk);

/** The accounts in these lines, by their tags. */
function* inTurn(lines: readonly RouteLine[]): Generator<AccountInLine<Waiting>> {
  if (lines.length === 1) return yield* lines[0]!.line.inTurn();
  const firsts = lines.flatMap(({ line }) => {
    const accounts = line.inTurn();
    const first = accounts.next();
    return first.done === true ? [] : [{ account: first.value, accounts }];
  });
  while (firsts.length > 0) {
    const next = firsts.reduce((least, one) => (isSooner(one.account, least.account) ? one : least));
    yield next.account;
    const after = next.accounts.next();
    if (after.done === true) firsts.splice(firsts.indexOf(next), 1);
    else next.account = after.value;
  }
}

const waitingIn = ({ line }: RouteLine): Waiting[] => [...line].flatMap((account) => [...requestsOf(account)]);

function isSooner(one: AccountInLine<Waiting>, other: AccountInLine<Waiting>): boolean {
  return one.tag < other.tag || (one.tag === other.tag && one.order < other.order);
}

/** Only what was lately counts. */
function classHad({ work }: NodeState, priority: Priority, more: number): void {
  work[priority] = Math.max(0, work[priority] + more);
  if (work.interactive + work.standard + work.bulk > workOfLate) for (const each of priorities) work[each] /= 2;
}
