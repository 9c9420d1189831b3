// Where a request goes: to the node from which its first token is expected soonest. A decider: sent, began and ended
// requests in, a node out; time comes as an argument.
//
//   expected = what the node still has to read + what it has to read of this prompt + a little for each request it runs
//
// A node has to read the part of a prompt that is not in its cache, as far as the requests sent there show. Cached tokens
// that an engine reports correct this: an engine with nothing of a known prompt has lost everything, one with less keeps
// less than assumed. Reading speed is learned from the times to first tokens.
//
// So a conversation stays on its node while that pays; a shared prefix is read on another node when the nodes that know it
// are busy; and a new or restarted node is cold and idle, and gets its share.
import type { PlanId } from "../../core/plan-ids.ts";
import type { AccountId, Ms, PromptBlocks } from "../../core/types.ts";
import { type KeptPrompts, personOf } from "../prefix-cache.ts";
import { LastHour } from "./last-hour.ts";
import { Line, type Link } from "./line.ts";
import { assert } from "../../core/assert.ts";
import { PrefixIndex } from "./prefix-index.ts";
import { bytesOfBlocks, mixed } from "./prompt-blocks.ts";

/** A request that needs a node. `member`: see Standing. */
export type Wanting = Readonly<{ modelId: string; account: AccountId; member?: string; prompt: PromptBlocks }>;

/** A node that may get it. */
export type Candidate = Readonly<{
  node: Readonly<{ name: string; slots: number; elsewhere?: number }>;
  busy: number;
  wanted?: number;
}>;

/** The best node for a request, which may be worth waiting for, and the best of those with room. */
export type Choice<Node> = Readonly<{
  best: Node;
  free: Node;
  /** How much time waiting for `best` is expected to save, where that is another node. */
  savedMs: Ms;
}>;

/** The usage of a complete answer; 0 input tokens: not reported. */
export type Used = Readonly<{ inputTokens: number; cachedTokens: number; outputTokens: number }>;

/** Expected cache hits, and those that engines reported. */
export type CacheCounts = Readonly<{ expectedTokens: number; reportedTokens: number }>;

/** The same of a node in the last hour, and the input of these answers. */
export type CacheHour = { inputTokens: number; expectedTokens: number; reportedTokens: number };

/** A request that was sent to a node. */
export type Sent = {
  readonly node: KnownNode;
  readonly wanting: Wanting;
  readonly keys: Keys;
  readonly sentAt: Ms;
  /** How many of its blocks the node was thought to have read. */
  readonly readBlocks: number;
  readonly unreadBytes: number;
  /** Work, in input tokens, that is expected until its first token, and in total. */
  readonly unreadWork: number;
  readonly work: number;
  /** How long that reading takes; 0 after the first token. */
  readMs: Ms;
  beganAt: Ms | null;
  /** How long it was the next to begin. */
  headMs: Ms;
  inReading: Link<Sent> | null;
};

type Pace = Readonly<{ bytes: number; ms: Ms }>;

type KnownNode = {
  readonly name: string;
  readonly index: PrefixIndex;
  keeps: KeptPrompts;
  /** As the engine reports it; null where it does not. */
  cacheTokens: number | null;
  /** How much of that it actually has, as a fraction. */
  share: number;
  /** It has reported cached tokens before, so a report of 0 means none. */
  saysCached: boolean;
  /** By model. */
  readonly paces: Map<string, Pace>;
  /** The time of a step, in which each running request gets a token. */
  stepMs: Ms;
  /** For its prompts. */
  bytesPerToken: number;
  /** How long a request stays there. */
  stayMs: Ms;
  readonly reading: Line<Sent>;
  /** The sum over `reading`. */
  readMs: Ms;
  /** Since when the first of them is being read. */
  headSince: Ms;
};

/** For English text; each node's own ratio is learned. */
const bytesPerTokenUsual = 4;
/** A mid-range GPU's, until a node has shown its own pace. */
const paceUsual = 20; // bytes a ms
/** The assumed pace weighs as much as this many bytes. */
const paceWeightBytes = 65_536;
/** Each new prompt reduces the weight of the earlier ones by this factor. */
const paceFading = 0.97;
/** Shorter prompts say little about the pace, because an engine step takes its own time. */
const paceBytesMin = 6_144;
const paceMinMs = 1_000;
const stepUsualMs = 20;
/** An output token is as much work as this many input tokens: each takes a step of the engine, which reads many in that time. */
const outputWork = 4;
const outputTokensUsual = 200;
const stayUsualMs = 5_000;
/** Each running request delays a first token by this part of a step, and is delayed as much by it. */
const crowdSteps = 0.2;
/** The last step of a prompt: when it is over can only be seen by the first token. */
const lastReadMaxMs = 150;
/** A step that takes longer reads prompts, too. Steps of 250 ms sent first tokens past idle nodes to reading ones. */
const stepMaxMs = 20;
/** Smaller differences in time do not show which node is sooner. */
const alikeMs = 1;
const alikePart = 0.05;
/** An engine that runs many requests reads more slowly; beyond this factor it may have hung. */
const lateTimes = 2;
const lateMinMs = 2_000;
/** A cache of unknown size, and one on a node that fits nothing known. */
const cacheTokensUsual = 400_000;
const cacheTokensMax = 8_000_000;
const cacheShareMin = 0.02;
/** A report that is lower by this much does not prove eviction, because our blocks are not the engine's. */
const doubtBytes = 2_048;
const coldBytes = 4_096;

export class Placement {
  readonly #nodes = new Map<string, KnownNode>();
  readonly #seeds = new Map<string, number>();
  /** By model, once a node has read enough of it: bytes a ms. */
  readonly #fastest = new Map<string, number>();
  /** By model, per answer. */
  readonly #outputTokens = new Map<string, number>();
  #expectedTokens = 0;
  #reportedTokens = 0;
  readonly #hour = new LastHour<string, CacheHour>(
    () => ({ inputTokens: 0, expectedTokens: 0, reportedTokens: 0 }),
    (sum, { inputTokens, expectedTokens, reportedTokens }) => {
      sum.inputTokens += inputTokens;
      sum.expectedTokens += expectedTokens;
      sum.reportedTokens += reportedTokens;
    },
  );
  #last: { wanting: Wanting; shared: Keys | null; ofPlan: Keys | null; ofTeam: Keys | null; own: Keys | null } | null =
    null;
  readonly #planOf: (account: AccountId) => PlanId;
  readonly #nodeModelOf: (modelId: string) => string | null;

  /** `nodeModelOf`: models of the same one on the nodes, such as presets, find each other's prompts. */
  constructor(
    planOf: (account: AccountId) => PlanId = () => "",
    nodeModelOf: (modelId: string) => string | null = () => null,
  ) {
    this.#planOf = planOf;
    this.#nodeModelOf = nodeModelOf;
  }

  /** Sets what is known about a node; a new one is cold. */
  know(name: string, keeps: KeptPrompts, cacheTokens: number | null): void {
    const node = this.#node(name);
    if (node.keeps !== keeps) node.index.clear();
    node.keeps = keeps;
    if (cacheTokens !== null && cacheTokens !== node.cacheTokens) node.share = 1;
    node.cacheTokens = cacheTokens ?? node.cacheTokens;
    this.#limit(node);
  }

  /** It was restarted, or is another engine. */
  cold(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    node.index.clear();
    node.saysCached = false;
  }

  /** It is no longer configured. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }

  get counts(): CacheCounts {
    return { expectedTokens: Math.round(this.#expectedTokens), reportedTokens: this.#reportedTokens };
  }

  /** By node, where its engine reports cached tokens. */
  lastHour(now: Ms): ReadonlyMap<string | null, Readonly<CacheHour>> {
    return this.#hour.sums(now);
  }

  get memoryBytes(): number {
    return [...this.#nodes.values()].reduce((sum, { index }) => sum + index.memoryBytes, 0);
  }

  /** The candidate with the soonest expected first token, and the best of those with room. */
  choose<Node extends Candidate>(wanting: Wanting, candidates: readonly Node[], now: Ms): Choice<Node> {
    let best: Node | null = null;
    let free: Node | null = null;
    let [bestMs, freeMs] = [Infinity, Infinity];
    let bestRank = 0;
    const { hashes, end, bytes } = wanting.prompt;
    const start = hashes[Math.min(hashes.length, startBlocks) - 1] ?? end;
    for (const candidate of candidates) {
      const unread = this.#unreadBytes(wanting, candidate.node.name);
      const ms = this.#msOf(wanting, candidate, unread, now);
      const isFull = candidate.busy >= candidate.node.slots;
      if (isFull) {
        if (ms < bestMs) [best, bestMs] = [candidate, ms];
        continue;
      }
      // Among equal nodes without any of the prompt, its prefix decides: each fills its own cache, and several gateways
      // choose alike.
      const isCold = unread === bytes;
      const margin = isCold ? alikeMs + alikePart * ms : 0;
      if (ms > freeMs + margin) continue;
      const rank = isCold ? rankOf(start, candidate.node.name) : 0;
      if (ms >= freeMs - margin && rank < bestRank) continue;
      [free, freeMs, bestRank] = [candidate, ms, rank];
    }
    assert(free !== null, "one has room");
    return best === null || freeMs <= bestMs
      ? { best: free, free, savedMs: 0 }
      : { best, free, savedMs: freeMs - bestMs };
  }

  /** How long it reads what it lacks of the prompt. */
  readMs(wanting: Wanting, name: string): Ms {
    return this.#unreadBytes(wanting, name) / this.#paceOf(this.#node(name), wanting.modelId);
  }

  /** How long its first token is expected to take there. */
  expectedMs(wanting: Wanting, candidate: Candidate, now: Ms): Ms {
    return this.#msOf(wanting, candidate, this.#unreadBytes(wanting, candidate.node.name), now);
  }

  /**
   * How long until the node has read everything that was sent there. A prompt that takes much longer than expected says
   * nothing about the others, because the engine may have hung.
   */
  unreadMs(name: string, now: Ms): Ms {
    const node = this.#node(name);
    const head = node.reading.first?.value;
    if (head === undefined) return 0;
    return Math.max(0, waitOf(node, now) - Math.max(0, now - node.headSince - patienceFor(head)));
  }

  #msOf({ modelId }: Wanting, candidate: Candidate, unread: number, now: Ms): Ms {
    const {
      node: { name, slots, elsewhere = 0 },
      busy,
      wanted = 0,
    } = candidate;
    const node = this.#node(name);
    const head = node.reading.first?.value;
    const lastRead = head === undefined || isGivenUp(node, head, now) ? 0 : Math.min(lastReadMaxMs, head.readMs / 3);
    const expected = Math.max(waitOf(node, now), lastRead) + unread / this.#paceOf(node, modelId);
    const crowd = crowdSteps * Math.min(node.stepMs, stepMaxMs) * (busy + elsewhere);
    // This many of its running requests must end first, and the requests that prefer it begin.
    const ends = busy < slots ? 0 : busy - slots + 1 + wanted;
    return expected + crowd + (ends * node.stayMs) / Math.max(1, busy);
  }

  #unreadBytes(wanting: Wanting, name: string): number {
    const node = this.#node(name);
    return unreadOf(node, this.#keys(wanting, node.keeps), wanting.prompt);
  }

  sent(wanting: Wanting, name: string, now: Ms): Sent {
    const node = this.#node(name);
    const { prompt, modelId } = wanting;
    const keys = this.#keys(wanting, node.keeps);
    const unreadBytes = unreadOf(node, keys, prompt);
    const unreadWork = unreadBytes / node.bytesPerToken;
    const sent: Sent = {
      node,
      wanting,
      keys,
      sentAt: now,
      readBlocks: node.index.match(keys.blocks, true),
      unreadBytes,
      unreadWork,
      work: unreadWork + outputWork * (this.#outputTokens.get(modelId) ?? outputTokensUsual),
      readMs: unreadBytes / this.#paceOf(node, modelId),
      beganAt: null,
      headMs: 0,
      inReading: null,
    };
    if (node.reading.length === 0) node.headSince = now;
    sent.inReading = node.reading.append(sent);
    node.readMs += sent.readMs;
    node.index.forget(keys.before); // its blocks include it from now on
    node.index.use(keys.blocks);
    return sent;
  }

  /** Its first token came. */
  began(sent: Sent, now: Ms): void {
    if (sent.inReading === null) return;
    sent.beganAt = now;
    sent.headMs = now - Math.max(sent.sentAt, sent.node.headSince);
    sent.node.headSince = now; // no other request is being read on from here, whichever was first
    this.#hasRead(sent);
    sent.node.index.read(sent.keys.blocks, sent.readBlocks);
  }

  /** It ended; `used` is null where its answer was incomplete. Returns its work. */
  ended(sent: Sent, used: Used | null, now: Ms): number {
    const { node, unreadWork, beganAt, wanting } = sent;
    this.#ended(sent, used, now);
    if (used === null) return unreadWork + (beganAt === null ? 0 : (outputWork * (now - beganAt)) / node.stepMs);
    const before = this.#outputTokens.get(wanting.modelId) ?? used.outputTokens;
    this.#outputTokens.set(wanting.modelId, blend(before, used.outputTokens, 0.05));
    const readTokens = node.saysCached ? used.inputTokens - used.cachedTokens : Math.min(used.inputTokens, unreadWork);
    return readTokens + outputWork * used.outputTokens;
  }

  #ended(sent: Sent, used: Used | null, now: Ms): void {
    if (sent.inReading !== null) {
      if (sent.node.reading.first === sent.inReading) sent.node.headSince = now;
      this.#hasRead(sent);
    }
    if (used === null) return;
    sent.node.stayMs = blend(sent.node.stayMs, now - sent.sentAt, 0.1);
    if (used.inputTokens === 0 || sent.wanting.prompt.bytes === 0) return;
    const { node, wanting, beganAt, headMs } = sent;
    const { bytes } = wanting.prompt;
    const perToken = bytes / used.inputTokens;
    node.bytesPerToken = blend(node.bytesPerToken, perToken, 0.05);
    if (beganAt !== null) {
      if (used.outputTokens > 8) node.stepMs = blend(node.stepMs, (now - beganAt) / (used.outputTokens - 1), 0.1);
      node.saysCached ||= used.cachedTokens > 0;
      const unread = node.saysCached ? (used.inputTokens - used.cachedTokens) * perToken : sent.unreadBytes;
      if (unread >= paceBytesMin || headMs >= paceMinMs) this.#learnPace(node, wanting.modelId, unread, headMs);
    }
    if (sent.keys.blocks.length > 0 || sent.keys.end !== 0) this.#learnCache(sent, used, perToken, now);
  }

  #learnPace(node: KnownNode, modelId: string, bytes: number, headMs: Ms): void {
    const before = node.paces.get(modelId) ?? { bytes: 0, ms: 0 };
    const took = Math.max(1, headMs - node.stepMs);
    node.paces.set(modelId, { bytes: paceFading * before.bytes + bytes, ms: paceFading * before.ms + took });
    let fastest = 0;
    for (const { paces } of this.#nodes.values()) {
      const pace = paces.get(modelId);
      if (pace !== undefined && pace.bytes >= paceWeightBytes) fastest = Math.max(fastest, pace.bytes / pace.ms);
    }
    if (fastest > 0) this.#fastest.set(modelId, fastest);
  }

  #learnCache(sent: Sent, { inputTokens, cachedTokens, outputTokens }: Used, perToken: number, now: Ms): void {
    const { node, keys, readBlocks, wanting } = sent;
    const { index, name } = node;
    if (node.saysCached) {
      const expected = bytesOfBlocks(readBlocks);
      const reported = cachedTokens * perToken;
      this.#expectedTokens += expected / perToken;
      this.#reportedTokens += cachedTokens;
      const hour = this.#hour.of(name, now);
      hour.inputTokens += inputTokens;
      hour.expectedTokens += expected / perToken;
      hour.reportedTokens += cachedTokens;
      if (reported === 0 && expected >= coldBytes) index.clear();
      else if (reported + doubtBytes < expected) {
        node.share *= 0.97 * Math.min(1, index.bytes / index.bytesMax);
        node.share = Math.max(node.share, cacheShareMin);
      } else if (index.bytes > 0.98 * index.bytesMax) node.share *= 1.002;
    }
    this.#limit(node);
    if (index.match(keys.blocks, true) < keys.blocks.length) {
      index.use(keys.blocks);
      index.read(keys.blocks, 0);
    }
    const { prompt } = wanting;
    if (prompt.end !== 0)
      index.note(keys.end, outputTokens * perToken + prompt.bytes - bytesOfBlocks(keys.blocks.length));
  }

  #limit(node: KnownNode): void {
    const tokens = Math.min(cacheTokensMax, node.share * (node.cacheTokens ?? cacheTokensUsual));
    node.index.limit(node.keeps === "nothing" ? 0 : tokens * node.bytesPerToken);
  }

  #hasRead(sent: Sent): void {
    const { node, inReading } = sent;
    node.reading.remove(inReading!);
    sent.inReading = null;
    node.readMs = node.reading.length === 0 ? 0 : node.readMs - sent.readMs;
    sent.readMs = 0;
  }

  #node(name: string): KnownNode {
    let node = this.#nodes.get(name);
    if (node === undefined) {
      node = {
        name,
        index: new PrefixIndex(cacheTokensUsual * bytesPerTokenUsual),
        keeps: "by account",
        cacheTokens: null,
        share: 1,
        saysCached: false,
        paces: new Map(),
        stepMs: stepUsualMs,
        bytesPerToken: bytesPerTokenUsual,
        stayMs: stayUsualMs,
        reading: new Line(),
        readMs: 0,
        headSince: 0,
      };
      this.#nodes.set(name, node);
    }
    return node;
  }

  /** Bytes a ms: as on the fastest node until this one has shown its own, so that it gets tried. */
  #paceOf({ paces }: KnownNode, modelId: string): number {
    const fastest = this.#fastest.get(modelId);
    if (fastest === undefined) return paceUsual;
    const own = paces.get(modelId);
    return own === undefined ? fastest : (own.bytes + paceWeightBytes) / (own.ms + paceWeightBytes / fastest);
  }

  /** The keys of the prompt's blocks for this model and for the accounts that share them. */
  #keys(wanting: Wanting, keeps: KeptPrompts): Keys {
    if (this.#last?.wanting !== wanting) this.#last = { wanting, shared: null, ofPlan: null, ofTeam: null, own: null };
    const last = this.#last;
    const { prompt, modelId, account, member } = wanting;
    const seed = this.#seed(this.#nodeModelOf(modelId) ?? modelId);
    if (keeps === "for all") return (last.shared ??= keysOf(prompt, seed));
    const person = personOf(member);
    if (keeps === "by team" || (keeps !== "by plan" && person === null)) {
      return (last.ofTeam ??= keysOf(prompt, mixed(seed + account)));
    }
    if (keeps !== "by plan") return (last.own ??= keysOf(prompt, mixed(mixed(seed + account) ^ this.#seed(person!))));
    return (last.ofPlan ??= keysOf(prompt, mixed(seed ^ this.#seed(`plan ${this.#planOf(account)}`))));
  }

  #seed(name: string): number {
    let seed = this.#seeds.get(name);
    if (seed === undefined) this.#seeds.set(name, (seed = Bun.hash.xxHash32(name)));
    return seed;
  }
}

/** Blocks of a prompt's prefix by which otherwise equal nodes are ranked. */
const startBlocks = 64;

const rankOf = (start: number, name: string): number => Bun.hash.xxHash32(name, start);

/** What an index knows a prompt by. */
type Keys = Readonly<{ blocks: Uint32Array; end: number; before: number }>;

function keysOf({ hashes, end, before }: PromptBlocks, seed: number): Keys {
  const blocks = new Uint32Array(hashes.length);
  for (let at = 0; at < blocks.length; at++) blocks[at] = mixed(hashes[at]! ^ seed);
  return { blocks, end: mixed(end ^ seed), before: mixed(before ^ seed) };
}

/** A node that answered the previous turn has everything up to the end of that answer. */
function unreadOf({ index }: KnownNode, keys: Keys, { bytes, before, beforeBytes }: PromptBlocks): number {
  const matched = bytesOfBlocks(index.match(keys.blocks));
  return bytes - (before !== 0 && index.has(keys.before) ? Math.max(matched, beforeBytes) : matched);
}

/** How long until the node has read everything that was sent there. */
function waitOf({ reading, readMs, headSince }: KnownNode, now: Ms): Ms {
  const head = reading.first?.value;
  return head === undefined ? 0 : Math.max(0, readMs - Math.min(head.readMs, now - headSince));
}

const patienceFor = ({ readMs }: Sent): Ms => Math.max(lateMinMs, lateTimes * readMs);

const isGivenUp = ({ headSince }: KnownNode, head: Sent, now: Ms): boolean => now - headSince > patienceFor(head);

const blend = (before: number, now: number, part: number): number => before + part * (now - before);
