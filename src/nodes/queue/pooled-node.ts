// One configured node: its health, derived from its requests and, while there are none, from probes.
//
//   starting --(its program answers)-> well
//   well --(429, 503)-> cooling --(a moment)-> well
//   well, cooling --(not reached; a probe confirms it)-> down --(a probe or a request is answered)-> well
//                   the same for a program of ours -> starting: it is restarted
//
// A probe is a cheap GET. A node that is down is probed soon, then at growing intervals. A healthy node is probed only when
// no request has ended there for a while, because requests also show its health. One probe without an answer shows little,
// since the node may be busy. It then stays healthy, but requests prefer other nodes until it answers, because it may hang.
// Its engine and models are read again when it comes back, when it lacks a requested model, and every few minutes: it may
// have been restarted as something else between two probes.
import type { Clock } from "../../core/clock.ts";
import type { NodeConfig } from "../../config/config.ts";
import { nodeCoolOffMs, nodeProbeIntervalMs, nodeProbeTimeoutMs } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { Dial } from "../client/dial.ts";
import { type Engine, engineInWords, unlisted } from "../engine.ts";
import type { NodeModelOf } from "../model-routes.ts";
import { type Look, problemOf } from "../health/look.ts";
import type { LookTurns } from "../health/look-turns.ts";
import { type EndpointLimits, type EstimateOfPrompt, type NodeOutcome, NodeEndpoint } from "../node-endpoint.ts";
import { type LoadLimits, loadLimitsDefault, LoadWatch } from "./load-watch.ts";
import { RecentReplies } from "./recent-replies.ts";
import type { NodeHealth } from "./slot-queue.ts";

/** How often an engine's own facts are read again, even while it is busy: a different one may have been started. */
const nodeFactsIntervalMs = 3 * 60_000;
/** First pause before a node that is down is probed again; each next pause is twice as long, up to the interval. */
const nodeFirstProbeMs = 250;
/** How often a healthy, idle node is probed; each probe is a line in most engines' access logs. */
const nodeIdleLookIntervalMs = 15_000;
/** Consecutive probes that connect but time out before a node counts as down; single-threaded engines answer none while busy. */
const nodeSilentLooksMax = 3;
/** After a failed request, requests that another node can take avoid this one for this long, or until it answers one. */
const nodeDoubtMs = 15_000;
/** The same after an unanswered probe of a node that has requests: until the next such probe has ended. */
const nodeSilentDoubtMs = 30_000;

assert(nodeFirstProbeMs < nodeProbeIntervalMs, "probes of a node that is down grow rarer");
assert(
  nodeIdleLookIntervalMs * 1.25 + nodeProbeTimeoutMs < nodeSilentDoubtMs,
  "one that hangs is passed over all the time",
);

/** For the operator; `node` is the configured name, never an address. */
export type NodeLog = (event: Readonly<{ level: "info" | "warn" | "error"; node: string; message: string }>) => void;

/** The last problem that no client caused, in words without an address; `at` by the wall clock. */
export type LastError = Readonly<{ message: string; at: Ms }>;

export type NodeLimits = LoadLimits &
  Readonly<{
    probeIntervalMs: Ms;
    idleLookIntervalMs: Ms;
    factsIntervalMs: Ms;
    coolOffMs: Ms;
  }>;

export const nodeLimitsDefault: NodeLimits = {
  probeIntervalMs: nodeProbeIntervalMs,
  idleLookIntervalMs: nodeIdleLookIntervalMs,
  factsIntervalMs: nodeFactsIntervalMs,
  coolOffMs: nodeCoolOffMs,
  ...loadLimitsDefault,
};

export type PooledNodeParts = Readonly<{
  clock: Clock;
  log: NodeLog;
  /** Whether it is probed while nothing suggests that it is down. */
  looks: boolean;
  dial: Dial | undefined;
  estimate: EstimateOfPrompt | undefined;
  nodeModelOf: NodeModelOf | undefined;
  saltSeed: bigint | undefined;
  limits: EndpointLimits & NodeLimits;
  turns: LookTurns;
  onHealth(health: NodeHealth): void;
  /** Until when requests prefer other nodes, by the monotonic clock; 0: no longer. */
  onDoubt(until: Ms): void;
  /** It was down, and a request showed that it still is. */
  onTrialFailed(): void;
  onEngine(engine: Engine): void;
  /** Its slots or the others' requests there may have changed. */
  onSlots(node: PooledNode): void;
  /** How long it is expected to read the prompts that were sent there. */
  unreadMs(node: PooledNode): Ms;
  /** See LoadWatchParts. */
  kept(node: PooledNode): number;
  onFirstLook(node: PooledNode): void;
}>;

const busyAndSilent = "it has requests and answers nothing beside them: it is busy, or hangs";

export class PooledNode {
  readonly endpoint: NodeEndpoint;
  health: NodeHealth = "well";
  /** By the wall clock. */
  since: Ms;
  problem: string | null = null;
  lastError: LastError | null = null;
  /** Slots in use. */
  busy = 0;
  /** Where other gateways also use it: how many of its slots are ours. */
  share: number | null = null;
  /** Where they do: each account's slots in use. */
  #running: Map<AccountId, number> | null = null;
  readonly recent = new RecentReplies();
  readonly load: LoadWatch;
  readonly #parts: PooledNodeParts;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;
  /** Nothing may be sent there yet. */
  #arriving = false;
  #lookedAt = false;
  #silentLooks = 0;
  /** Avoided because a probe went unanswered and no request has failed since. */
  #doubtedAsSilent = false;
  /** When it last answered; monotonic. */
  #heardAt: Ms;
  /** When its engine's facts were last read; monotonic. */
  #factsAt: Ms = -Infinity;
  #looking = false;
  /** The engine that others were last notified of. */
  #announced: Engine;
  /** A request was answered since then. */
  #answers = false;

  /** With an arrival, its program is starting until that settles. */
  constructor(config: NodeConfig, arrival: Promise<void> | null, parts: PooledNodeParts) {
    const { clock, limits, dial, estimate, nodeModelOf, saltSeed, looks } = parts;
    this.endpoint = new NodeEndpoint(config, { clock, limits, dial, estimate, nodeModelOf, saltSeed, looks });
    this.#announced = this.endpoint.engine;
    this.#parts = parts;
    this.load = new LoadWatch({
      limits,
      wanted: () => this.config.slots,
      ask: () => this.endpoint.load(),
      engine: () => this.endpoint.engine,
      busy: () => this.busy,
      unreadMs: () => parts.unreadMs(this),
      kept: () => parts.kept(this),
      changed: () => parts.onSlots(this),
    });
    this.since = clock.wall();
    this.#heardAt = clock.monotonic();
    if (arrival !== null) {
      this.#arriving = true;
      this.health = "starting";
      this.problem = "its program is starting and does not answer yet";
      void arrival.then(() => this.#arrived());
    } else if (looks) void this.#look(nodeFirstProbeMs);
  }

  get config(): NodeConfig {
    return this.endpoint.config;
  }

  /** Whether its slots follow the load, or are configured to. */
  get isAuto(): boolean {
    const { slots } = this.config;
    return slots === "auto" || (slots === null && this.load.follows);
  }

  /** For all gateways together. */
  get slotsInAll(): number {
    const { slots } = this.config;
    const { engine } = this.endpoint;
    const most = typeof slots === "number" ? slots : this.load.slots;
    return engine.requestsMax === 1 ? Math.min(1, most) : most;
  }

  /**
   * Requests that it may run at once: one where the engine runs only one, whatever is configured, since it may end that
   * for another.
   */
  get slots(): number {
    return this.isAuto ? this.slotsInAll : Math.min(this.share ?? Infinity, this.slotsInAll);
  }

  /** Requests that its engine has from others. */
  get elsewhere(): number {
    return this.isAuto ? this.load.elsewhere : 0;
  }

  /** Other gateways also use it: it grants nothing before this one has a share. */
  shareSlots(): void {
    this.share ??= 0;
    this.#running ??= new Map();
  }

  /** Accounts with slots on it, where other gateways also use it. */
  get running(): ReadonlySet<AccountId> {
    return new Set(this.#running?.keys());
  }

  /** A slot on it is given. */
  begin(account: AccountId): void {
    this.busy++;
    if (this.busy === 1) this.watchLoad();
    this.#running?.set(account, (this.#running.get(account) ?? 0) + 1);
  }

  /** A slot is given back. */
  end(account: AccountId): void {
    this.busy--;
    const places = this.#running?.get(account);
    if (places === undefined) return; // given before it was shared
    if (places === 1) this.#running!.delete(account);
    else this.#running!.set(account, places - 1);
  }

  watchLoad(): void {
    const isNews = this.config.slots === null && !this.load.follows;
    if (this.load.isAsked && (this.busy > 0 || isNews) && !this.#closed) this.load.wake();
  }

  get #isAway(): boolean {
    return this.health === "down" || this.health === "starting";
  }

  close(): void {
    this.#closed = true;
    this.#disarm();
    this.load.close();
    this.endpoint.close();
  }

  /** Derives the node's health from what happened to a request. */
  readonly outcome = ({ failure, unreachable, responded, overloaded, answered, engine }: NodeOutcome): void => {
    const { clock } = this.#parts;
    if (failure !== null) this.#noteFailure(failure, unreachable);
    if (engine !== undefined && !this.#closed) this.#takeEngine(engine);
    if (answered !== null) {
      this.recent.add(answered.firstPieceMs, answered.outputTokens, clock.monotonic());
      this.#trust();
    } else if (failure !== null && failure.blames !== "client" && !unreachable && !overloaded) {
      this.#doubtedAsSilent = false;
      this.#parts.onDoubt(clock.monotonic() + nodeDoubtMs);
    }
    if (this.#closed || this.#arriving) return;
    if (responded) {
      this.#heardAt = clock.monotonic();
      this.#silentLooks = 0;
    }
    if (this.#isAway) {
      if (responded && !overloaded && failure?.blames !== "operator") {
        this.#factsAt = -Infinity; // it may be another engine: the next probe finds out
        this.#isWell(null);
      } else if (failure !== null) this.#parts.onTrialFailed();
    } else if (unreachable) {
      this.#isGone(problemOf({ kind: "unreachable", cause: failure?.cause ?? "not connected" }), false);
      this.#lookAfter(nodeFirstProbeMs);
    } else if (overloaded && this.health === "well") {
      this.#turn("cooling", "it said that it is busy");
      this.#arm(this.#parts.limits.coolOffMs, () => this.#isWell(null));
    }
    if (answered !== null) {
      this.#answers = true;
      if (this.health === "well") this.problem = null; // whatever a probe thought of its model list
    }
  };

  /** Requests need not avoid it any longer. */
  #trust(): void {
    this.#doubtedAsSilent = false;
    this.#parts.onDoubt(0);
  }

  #noteFailure({ cause, blames }: NonNullable<NodeOutcome["failure"]>, unreachable: boolean): void {
    const level = blames === "operator" ? "error" : blames === "client" ? "info" : "warn";
    this.#log(level, `generation ${blames === "client" ? "refused" : "failed"}: ${cause}`);
    if (blames === "client") return;
    const message = unreachable ? problemOf({ kind: "unreachable", cause }) : `a request failed there: ${cause}`;
    this.lastError = { message, at: this.#parts.clock.wall() };
  }

  #arrived(): void {
    if (this.#closed) return;
    this.#arriving = false;
    this.#isWell(null);
    if (this.#parts.looks) void this.#look(nodeFirstProbeMs);
  }

  /** Reads the node's facts again, busy or not. */
  lookNow(): Promise<void> {
    if (!this.#parts.looks || this.#closed || this.#arriving) return Promise.resolve();
    this.#factsAt = -Infinity;
    if (this.#looking) return Promise.resolve();
    if (this.health !== "cooling") this.#disarm();
    return this.#look(nodeFirstProbeMs);
  }

  /** `delayMs`: the delay before this probe. */
  async #look(delayMs: Ms): Promise<void> {
    const { clock, limits, turns, looks } = this.#parts;
    const now = clock.monotonic();
    // A node that comes back may run another program.
    const isOld = this.#isAway || now - this.#factsAt >= limits.factsIntervalMs;
    if (isOld) this.#factsAt = now;
    this.#looking = true;
    const look = await turns.take(() => this.endpoint.look(isOld ? null : this.endpoint.engine));
    this.#looking = false;
    if (this.#closed) return;
    this.#take(look, isOld);
    if (!this.#lookedAt) {
      this.#lookedAt = true;
      this.#parts.onFirstLook(this);
    }
    if (this.#isAway) this.#lookAfter(2 * delayMs);
    else if (looks && this.health === "well") this.#lookWhenIdle(); // a cooling node returns here by itself
  }

  #take({ health, silent, engine, problem }: Look, isOld: boolean): void {
    const { clock, looks } = this.#parts;
    if (silent && this.busy > 0 && this.health === "well" && this.#lookedAt) {
      this.#doubtedAsSilent = true;
      this.#parts.onDoubt(clock.monotonic() + nodeSilentDoubtMs);
      this.#setProblem(busyAndSilent, "info"); // some engines never answer a probe while they work
      this.#heardAt = clock.monotonic(); // until the next probe
      if (!isOld) return; // rare probes still find a program that hangs
    }
    this.#silentLooks = silent ? this.#silentLooks + 1 : 0;
    if (!silent && this.#doubtedAsSilent) this.#trust();
    if (health === "down") {
      if (silent && !this.#isAway && this.#lookedAt && this.#silentLooks < nodeSilentLooksMax) return;
      this.lastError = { message: problem!, at: clock.wall() };
      return this.#isGone(problem!, silent);
    }
    this.#heardAt = clock.monotonic();
    if (looks && engine !== null) this.#takeEngine(engine);
    // A model that it answers to need not be listed.
    const misfit = engine === null || this.#answers ? null : unlisted(engine, Object.values(this.config.models));
    const wrong = problem ?? (looks ? misfit : null);
    if (this.#isAway) this.#isWell(wrong);
    else this.#setProblem(wrong);
  }

  /** A problem of a node that is up. */
  #setProblem(problem: string | null, level: "info" | "warn" = "warn"): void {
    if (problem !== null && problem !== this.problem && this.#lookedAt) this.#log(level, problem);
    if (this.health === "well") this.problem = problem;
  }

  #takeEngine(engine: Engine): void {
    if (Bun.deepEquals(engine, this.#announced)) return;
    this.#announced = engine;
    this.#answers = false;
    this.endpoint.engine = engine;
    this.load.restart();
    this.#parts.onEngine(engine);
    // The first time, the caller that asked for it reports it.
    if (this.#lookedAt) this.#log("info", `answers: ${engineInWords(engine)}`);
  }

  /** A program of ours without a port yet is being started; a silent one may be up. */
  #isGone(problem: string, silent: boolean): void {
    if (this.config.managed === undefined || silent) this.#turn("down", problem);
    else this.#turn("starting", "its program is started again and does not answer yet");
  }

  #isWell(problem: string | null): void {
    this.#turn("well", problem);
    if (this.#parts.looks) this.#lookWhenIdle();
  }

  #lookAfter(delayMs: Ms): void {
    this.#arm(Math.min(delayMs, this.#parts.limits.probeIntervalMs), () => void this.#look(delayMs));
  }

  /** Skips nodes that answered in the meantime. Names spread the probes of many nodes over time. */
  #lookWhenIdle(): void {
    const { clock, limits } = this.#parts;
    const spread = 0.75 + Number(Bun.hash(this.config.name) % 512n) / 1024;
    const idleMs = limits.idleLookIntervalMs * spread;
    this.#arm(Math.max(1, this.#heardAt + idleMs - clock.monotonic()), () => {
      if (this.health !== "well") return; // the end of that state returns here
      const now = clock.monotonic();
      const mayLook = this.busy === 0 || this.endpoint.engine.requestsMax !== 1;
      if (!mayLook) this.#heardAt = now;
      const isOld = mayLook && now - this.#factsAt >= limits.factsIntervalMs;
      if (now - this.#heardAt < idleMs && !isOld) this.#lookWhenIdle();
      else void this.#look(nodeFirstProbeMs);
    });
  }

  #arm(delayMs: Ms, then: () => void): void {
    this.#disarm();
    this.#timer = setTimeout(then, delayMs);
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #turn(health: NodeHealth, problem: string | null): void {
    const isNew = this.health !== health;
    this.problem = problem;
    if (!isNew) return;
    this.health = health;
    this.since = this.#parts.clock.wall();
    this.#log(health === "down" ? "error" : "info", `is ${health}${problem === null ? "" : `: ${problem}`}`);
    this.#parts.onHealth(health);
  }

  #log(level: "info" | "warn" | "error", message: string): void {
    this.#parts.log({ level, node: this.config.name, message });
  }
}
