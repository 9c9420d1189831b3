// Who gets which node. Tollgate's are the program's own line and placement, which know what a gateway knows; the others are
// rules of other routers as published, and two that look into the engines.
import type { AccountId } from "../../src/core/types.ts";
import { AutoSlots } from "../../src/nodes/queue/auto-slots.ts";
import { Placement } from "../../src/nodes/queue/placement.ts";
import { promptBlocks } from "../../src/nodes/queue/prompt-blocks.ts";
import { type Place, SlotQueue } from "../../src/nodes/queue/slot-queue.ts";
import type { Turn } from "../../src/core/types.ts";
import { usualEngine } from "./engine.ts";
import { blockTokens, type Message } from "./text.ts";
import type { Asked, Fleet, Policy, PolicyOf } from "./world.ts";

export type TollgateSettings = Readonly<{
  /** "auto": by the engines' load. */
  slots?: number | "auto";
  keeps?: "for all" | "by account";
  weights?: Readonly<Record<string, number>>;
}>;

const turnOf = ({ role, content }: Message): Turn =>
  role === "assistant" ? { role, content, reasoning: null, calls: [] } : { role, content };

/** The line and the placement behind the interface of a policy. */
class Tollgate implements Policy {
  readonly #fleet: Fleet;
  readonly #queue: SlotQueue;
  readonly #accounts = new Map<string, AccountId>();
  readonly #places = new Map<Asked, Place>();
  readonly #slots: number[];
  #looksAt = Infinity;

  constructor(fleet: Fleet, { slots = "auto", keeps = "for all", weights = {} }: TollgateSettings) {
    this.#fleet = fleet;
    const placement = new Placement();
    const nameOf = (account: AccountId): string => [...this.#accounts.keys()][account - 1]!;
    this.#queue = new SlotQueue(1e9, 1e6, placement, (account) => weights[nameOf(account)] ?? 1);
    this.#slots = fleet.engines.map(() => (slots === "auto" ? 0 : slots));
    fleet.engines.forEach((_engine, node) => placement.know(`${node}`, keeps, usualEngine.blocks * blockTokens));
    if (slots === "auto")
      fleet.engines.forEach((_engine, node) => this.#followLoad(node, new AutoSlots(null), placement));
    this.nodeChanged();
  }

  nodeChanged(): void {
    const { engines, trace } = this.#fleet;
    this.#queue.configure(
      engines.map((_engine, node) => ({
        name: `${node}`,
        slots: this.#slots[node]!,
        serves: (model) => trace.nodes[node]!.models.includes(model),
        health: this.#fleet.isUp(node) ? "well" : "down",
      })),
    );
  }

  arrived(asked: Asked): void {
    const { session, messages } = asked;
    let account = this.#accounts.get(session.account);
    if (account === undefined) this.#accounts.set(session.account, (account = this.#accounts.size + 1));
    const place: Place = {
      modelId: session.model,
      account,
      member: session.user,
      priority: session.priority,
      prompt: promptBlocks(messages.map(turnOf), []),
      excluded: new Set(),
      granted: (node) => this.#fleet.send(asked, Number(node)),
      refused: (cause) => this.#fleet.refuse(asked, cause),
    };
    this.#places.set(asked, place);
    this.#queue.enter(place, this.#fleet.now);
    this.#expireLater();
  }

  began(asked: Asked): void {
    this.#queue.began(this.#places.get(asked)!, this.#fleet.now);
  }

  ended(asked: Asked): void {
    const { inputTokens, cachedTokens, outputTokens, failure } = asked.row;
    const used = failure === null ? { inputTokens, cachedTokens, outputTokens } : null;
    this.#queue.ended(this.#places.get(asked)!, used, this.#fleet.now);
    this.#places.delete(asked);
    this.#expireLater();
  }

  failed(asked: Asked): void {
    this.#queue.ended(this.#places.get(asked)!, null, this.#fleet.now);
    this.arrived(asked);
  }

  #expireLater(): void {
    const next = this.#queue.nextExpiry();
    if (next === null || next >= this.#looksAt) return;
    this.#looksAt = next;
    this.#fleet.later(Math.max(1, next - this.#fleet.now), () => {
      this.#looksAt = Infinity;
      this.#queue.expire(this.#fleet.now);
      this.#expireLater();
    });
  }

  /** As often as the gateway asks the engine for it. */
  #followLoad(node: number, auto: AutoSlots, placement: Placement): void {
    this.#slots[node] = auto.slots;
    const look = (): void => {
      const { running, waiting, cacheUse } = this.#fleet.engines[node]!;
      const busy = this.#queue.states()[node]!.busy;
      if (this.#fleet.isUp(node)) {
        const unreadMs = placement.unreadMs(`${node}`, this.#fleet.now);
        const kept = this.#queue.keptFromBulk(`${node}`);
        auto.take({ running: running.length, waiting: waiting.length, cacheUse }, busy, unreadMs, kept);
      }
      this.#slots[node] = auto.slots;
      this.#queue.setSlots(`${node}`, auto.slots, auto.elsewhere);
      this.#fleet.later(busy >= auto.slots || waiting.length > 0 ? 250 : 1_000, look);
    };
    this.#fleet.later(50, look);
  }
}

export const tollgate =
  (settings: TollgateSettings = {}): PolicyOf =>
  (fleet) =>
    new Tollgate(fleet, settings);

/** A node as soon as a request arrives; `busy`: requests on each. */
const atOnce =
  (choiceOf: (fleet: Fleet) => (asked: Asked, nodes: readonly number[], busy: readonly number[]) => number): PolicyOf =>
  (fleet) => {
    const choose = choiceOf(fleet);
    const busy = fleet.engines.map(() => 0);
    return {
      arrived(asked) {
        const node = choose(asked, fleet.nodesFor(asked.session), busy);
        busy[node]!++;
        fleet.send(asked, node);
      },
      ended: (_asked, node) => void busy[node]!--,
      failed(asked, node) {
        busy[node]!--;
        this.arrived(asked);
      },
    };
  };

const leastBy = (nodes: readonly number[], cost: (node: number) => number): number =>
  nodes.reduce((least, node) => (cost(node) < cost(least) ? node : least));

const roundRobin = atOnce(() => {
  let turn = 0;
  return (_asked, nodes) => nodes[turn++ % nodes.length]!;
});

/** By the conversation, where clients name it. */
const bySession = atOnce(() => ({ session }, nodes) => {
  return leastBy(nodes, (node) => Bun.hash.xxHash32(session.id, node));
});

/** As sglang-router published it: the longest known beginning, and the idlest node while the loads differ much. */
const cacheAware = atOnce(({ engines }) => {
  const known = engines.map(() => new Set<number>());
  return ({ prompt }, nodes, busy) => {
    const blocks = prompt.blocks.subarray(0, Math.floor(prompt.tokens / blockTokens));
    const matched = (node: number): number => {
      let count = 0;
      while (count < blocks.length && known[node]!.has(blocks[count]!)) count++;
      return count;
    };
    const loads = nodes.map((node) => busy[node]!);
    const [most, least] = [Math.max(...loads), Math.min(...loads)];
    let node = leastBy(nodes, (one) => -matched(one));
    if (most - least > 32 && most > 1.1 * least) node = leastBy(nodes, (one) => busy[one]!);
    else if (matched(node) <= 0.5 * blocks.length) node = leastBy(nodes, (one) => known[one]!.size);
    for (const block of blocks) known[node]!.add(block);
    return node;
  };
});

/** It sees the engines' caches and everything that they still have to read. */
const oracle = atOnce(({ engines }) => ({ prompt }, nodes) => {
  return leastBy(nodes, (node) => {
    const engine = engines[node]!;
    const { settings, running, waiting, cacheUse } = engine;
    const unread = engine.unreadTokens + prompt.tokens - engine.cachedTokens(prompt);
    const crowd = (running.length + 4 * waiting.length) * (settings.stepMs / 6);
    return unread / settings.readTokensPerMs + crowd + (cacheUse > 0.9 ? 2_000 : 0);
  });
});

/**
 * Of a load that some meet beside others: it sees every step of the engines, and lets the others' prompts in one by one while
 * another node reads nothing, or is about to.
 */
export const quietOracle: PolicyOf = (fleet) => {
  const { engines, trace } = fleet;
  const aboutToMs = 20;
  const others: Asked[] = [];
  const readsForMs = (node: number): number => {
    const { unreadTokens, settings } = engines[node]!;
    if (unreadTokens === 0) return 0;
    const later = Math.max(0, unreadTokens - settings.budgetTokens) / settings.readTokensPerMs;
    return Math.max(0, fleet.stepEndsAt(node) - fleet.now) + later;
  };
  const nodes = engines.map((_engine, node) => node);
  const letIn = (): void => {
    while (others.length > 0) {
      const isQuietBeside = (node: number): boolean =>
        nodes.some((other) => other !== node && readsForMs(other) <= aboutToMs);
      const idle = nodes.filter((node) => engines[node]!.unreadTokens === 0 && isQuietBeside(node));
      if (idle.length === 0) return;
      fleet.send(
        others.shift()!,
        leastBy(idle, (node) => engines[node]!.running.length),
      );
    }
  };
  const look = (): void => {
    letIn();
    fleet.later(1, look);
  };
  look();
  return {
    arrived(asked) {
      if (trace.judged?.(asked.session) === false) others.push(asked);
      else
        fleet.send(
          asked,
          leastBy(nodes, (node) => readsForMs(node) + engines[node]!.running.length / 10),
        );
    },
  };
};

/** By the names of the results. */
export const policies: Readonly<Record<string, PolicyOf>> = {
  oracle,
  tollgate: tollgate(),
  "cache_aware rule": cacheAware,
  "by session": bySession,
  "round robin": roundRobin,
};
