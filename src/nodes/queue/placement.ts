// Where a request goes: to the node from which its first token is expected soonest. A decider: what was sent, what began and
// what ended in, a node out; time comes as an argument.
//
//   expected = what the node still has to read + what it has to read of this prompt + a little for each request it runs
//
// What it has to read of a prompt is what it has not in its cache, as far as that is known from what was sent there. What an
// engine says of cached tokens corrects that: one that had nothing of a prompt that it knew has lost everything, one that
// had less keeps less than was thought. How fast it reads is learned from the times to first tokens.
//
// So a conversation stays where it is as long as that pays, a beginning that all share is read on another node when the
// ones that know it are busy, and a node that comes or has restarted is cold and idle, and gets its part.
import type { AccountId, Ms, PromptBlocks } from "../../core/types.ts";
import type { KeptPrompts } from "../prefix-cache.ts";
import { Line, type Link } from "./line.ts";
import { assert } from "../../core/assert.ts";
import { PrefixIndex } from "./prefix-index.ts";
import { bytesOfBlocks, mixed } from "./prompt-blocks.ts";

/** A request that wants a node. */
export type Wanting = Readonly<{ modelId: string; account: AccountId; prompt: PromptBlocks }>;

/** A node that may have it. */
export type Candidate = Readonly<{
  node: Readonly<{ name: string; slots: number; elsewhere?: number }>;
  busy: number;
  wanted?: number;
}>;

/** The best node for a request, which may be worth waiting for, and the best of those that have room. */
export type Choice<Node> = Readonly<{
  best: Node;
  free: Node;
  /** What waiting for `best` is expected to save, if that is another one. */
  savedMs: Ms;
}>;

/** What an answer that came to its end says; 0 input tokens: nothing. */
export type Used = Readonly<{ inputTokens: number; cachedTokens: number; outputTokens: number }>;

/** What was expected of the caches, and what engines said of it. */
export type CacheCounts = Readonly<{ expectedTokens: number; reportedTokens: number }>;

/** A request that was sent to a node. */
export type Sent = {
  readonly node: KnownNode;
  readonly wanting: Wanting;
  readonly keys: Keys;
  readonly sentAt: Ms;
  /** Of its blocks, those that the node was thought to have read. */
  readonly readBlocks: number;
  readonly unreadBytes: number;
  /** In the work of an input token: what it is expected to be until its first token, and in all. */
  readonly unreadWork: number;
  readonly work: number;
  /** How long reading that takes; 0 from the first token on. */
  readMs: Ms;
  beganAt: Ms | null;
  /** From when it was the next to begin until it did. */
  headMs: Ms;
  inReading: Link<Sent> | null;
};

type Pace = Readonly<{ bytes: number; ms: Ms }>;

type KnownNode = {
  readonly index: PrefixIndex;
  keeps: KeptPrompts;
  /** As its engine tells it; null where it does not. */
  cacheTokens: number | null;
  /** What part of that is really had. */
  share: number;
  /** It said of a request that something was cached: where it says 0, nothing was. */
  saysCached: boolean;
  /** By model. */
  readonly paces: Map<string, Pace>;
  /** A step in which each running request gets a token. */
  stepMs: Ms;
  /** Of the prompts that it gets. */
  bytesPerToken: number;
  /** How long a request stays there. */
  stayMs: Ms;
  readonly reading: Line<Sent>;
  /** Of all in `reading`. */
  readMs: Ms;
  /** Since when the first of them is. */
  headSince: Ms;
};

/** Of English text; each node's own is learned. */
const bytesPerTokenUsual = 4;
/** A GPU of the middle, until a node has shown its own pace. */
const paceUsual = 20; // bytes a ms
/** So many bytes weigh as much as what is assumed. */
const paceWeightBytes = 65_536;
/** What was read before weighs so much less with each prompt. */
const paceFading = 0.97;
/** The time of less says little of the pace: a step of the engine's takes its own. */
const paceBytesMin = 6_144;
const paceMinMs = 1_000;
const stepUsualMs = 20;
/** An output token is so many input tokens' work: each takes a step of the engine, which reads many in the same time. */
const outputWork = 4;
const outputTokensUsual = 200;
const stayUsualMs = 5_000;
/** Each request that runs delays a first token by such a part of a step, and is delayed by it. */
const crowdSteps = 0.3;
/** Times that differ by no more say nothing of which node is sooner. */
const alikeMs = 1;
const alikePart = 0.05;
/** An engine that runs many requests reads more slowly; beyond so much more time it may have hung. */
const lateTimes = 2;
const lateMinMs = 2_000;
/** A cache of which nothing is known, and one of a node that is unlike all that are. */
const cacheTokensUsual = 400_000;
const cacheTokensMax = 8_000_000;
const cacheShareMin = 0.02;
/** A report of so much less than expected is none of evictions: blocks of engines are not ours. */
const doubtBytes = 2_048;
const coldBytes = 4_096;

export class Placement {
  readonly #nodes = new Map<string, KnownNode>();
  readonly #seeds = new Map<string, number>();
  /** By model, as soon as one has read enough of it: bytes a ms. */
  readonly #fastest = new Map<string, number>();
  /** By model, of an answer. */
  readonly #outputTokens = new Map<string, number>();
  #expectedTokens = 0;
  #reportedTokens = 0;
  #last: { wanting: Wanting; shared: Keys | null; own: Keys | null } | null = null;

  /** Sets what is known of a node; one that is new is cold. */
  know(name: string, keeps: KeptPrompts, cacheTokens: number | null): void {
    const node = this.#node(name);
    if (node.keeps !== keeps) node.index.clear();
    node.keeps = keeps;
    if (cacheTokens !== null && cacheTokens !== node.cacheTokens) node.share = 1;
    node.cacheTokens = cacheTokens ?? node.cacheTokens;
    this.#limit(node);
  }

  /** It was started again, or is another one. */
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

  get memoryBytes(): number {
    return [...this.#nodes.values()].reduce((sum, { index }) => sum + index.memoryBytes, 0);
  }

  /** The candidate from which the first token is expected soonest, and that of those that have room. */
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
      // Among those that have nothing of it and are alike, its beginning decides: a cache of each is filled, and several
      // gateways choose the same.
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

  /** How long its first token is expected to take there. */
  expectedMs(wanting: Wanting, candidate: Candidate, now: Ms): Ms {
    return this.#msOf(wanting, candidate, this.#unreadBytes(wanting, candidate.node.name), now);
  }

  /**
   * Until the node has read all that was sent there. A prompt that is read for much longer than was expected says nothing of
   * the others: the engine may have hung.
   */
  unreadMs(name: string, now: Ms): Ms {
    const node = this.#node(name);
    const head = node.reading.first?.value;
    if (head === undefined) return 0;
    const patienceMs = Math.max(lateMinMs, lateTimes * head.readMs);
    return Math.max(0, waitOf(node, now) - Math.max(0, now - node.headSince - patienceMs));
  }

  #msOf({ modelId }: Wanting, candidate: Candidate, unread: number, now: Ms): Ms {
    const {
      node: { name, slots, elsewhere = 0 },
      busy,
      wanted = 0,
    } = candidate;
    const node = this.#node(name);
    const expected = waitOf(node, now) + unread / this.#paceOf(node, modelId);
    const crowd = crowdSteps * node.stepMs * (busy + elsewhere);
    // So many of those that it runs must end first, and those that want it begin.
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
    node.index.forget(keys.before); // its blocks have it from now on
    node.index.use(keys.blocks);
    return sent;
  }

  /** Its first token is there. */
  began(sent: Sent, now: Ms): void {
    if (sent.inReading === null) return;
    sent.beganAt = now;
    sent.headMs = now - Math.max(sent.sentAt, sent.node.headSince);
    sent.node.headSince = now; // nobody else is read on from here, whoever was the first
    this.#hasRead(sent);
    sent.node.index.read(sent.keys.blocks, sent.readBlocks);
  }

  /** It is done; `used` is null where it did not come to its end. Gives the work that it was. */
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
    if (sent.keys.blocks.length > 0 || sent.keys.end !== 0) this.#learnCache(sent, used, perToken);
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

  #learnCache({ node, keys, readBlocks, wanting }: Sent, { cachedTokens, outputTokens }: Used, perToken: number): void {
    const { index } = node;
    if (node.saysCached) {
      const expected = bytesOfBlocks(readBlocks);
      const reported = cachedTokens * perToken;
      this.#expectedTokens += expected / perToken;
      this.#reportedTokens += cachedTokens;
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

  /** Bytes a ms: as on the fastest node, until this one has shown its own, so that it is tried. */
  #paceOf({ paces }: KnownNode, modelId: string): number {
    const fastest = this.#fastest.get(modelId);
    if (fastest === undefined) return paceUsual;
    const own = paces.get(modelId);
    return own === undefined ? fastest : (own.bytes + paceWeightBytes) / (own.ms + paceWeightBytes / fastest);
  }

  /** The prompt's blocks as this model's of those who share them. */
  #keys(wanting: Wanting, keeps: KeptPrompts): Keys {
    if (this.#last?.wanting !== wanting) this.#last = { wanting, shared: null, own: null };
    const last = this.#last;
    if (keeps === "for all") return (last.shared ??= keysOf(wanting.prompt, this.#seed(wanting.modelId)));
    return (last.own ??= keysOf(wanting.prompt, mixed(this.#seed(wanting.modelId) + wanting.account)));
  }

  #seed(modelId: string): number {
    let seed = this.#seeds.get(modelId);
    if (seed === undefined) this.#seeds.set(modelId, (seed = Bun.hash.xxHash32(modelId)));
    return seed;
  }
}

/** Of its prompt's beginning, by which nodes are ranked that are alike otherwise. */
const startBlocks = 64;

const rankOf = (start: number, name: string): number => Bun.hash.xxHash32(name, start);

/** What an index knows a prompt by. */
type Keys = Readonly<{ blocks: Uint32Array; end: number; before: number }>;

function keysOf({ hashes, end, before }: PromptBlocks, seed: number): Keys {
  const blocks = new Uint32Array(hashes.length);
  for (let at = 0; at < blocks.length; at++) blocks[at] = mixed(hashes[at]! ^ seed);
  return { blocks, end: mixed(end ^ seed), before: mixed(before ^ seed) };
}

/** One that has answered the turn before has all until the end of that answer. */
function unreadOf({ index }: KnownNode, keys: Keys, { bytes, before, beforeBytes }: PromptBlocks): number {
  const matched = bytesOfBlocks(index.match(keys.blocks));
  return bytes - (before !== 0 && index.has(keys.before) ? Math.max(matched, beforeBytes) : matched);
}

/** Until the node has read all that was sent there. */
function waitOf({ reading, readMs, headSince }: KnownNode, now: Ms): Ms {
  const head = reading.first?.value;
  return head === undefined ? 0 : Math.max(0, readMs - Math.min(head.readMs, now - headSince));
}

const blend = (before: number, now: number, part: number): number => before + part * (now - before);
