// Do accounts share the nodes fairly: by weight, long prompts beside short ones, few requests beside a pile of somebody
// else's, people behind one key, the urgent beside bulk? In virtual time: the line and the placement are the program's own,
// the engines are a model of vLLM (prompts in chunks of a step's budget, first come first served, nothing taken back).
//
//   bun bench/fairness.ts [--seconds 300] [--nodes 4]
import type { Priority } from "../src/core/priority.ts";
import { Placement } from "../src/nodes/queue/placement.ts";
import { promptBlocks } from "../src/nodes/queue/prompt-blocks.ts";
import { type Place, SlotQueue } from "../src/nodes/queue/slot-queue.ts";
import { readFlags } from "./flags.ts";

export const fairnessDefaults = { seconds: 300, nodes: 4 };

const engine = { budgetTokens: 2_048, readTokensPerMs: 8, stepMs: 12, requestMs: 0.15, slots: 128 } as const;

type Kind = Readonly<{ prompt: number; answer: number }>;

class Request implements Place {
  readonly modelId = "m";
  readonly excluded: ReadonlySet<string> = new Set();
  readonly prompt;
  unread: number;
  written = 0;
  firstMs: number | null = null;
  constructor(
    readonly world: World,
    readonly account: number,
    readonly member: string,
    readonly priority: Priority,
    readonly kind: Kind,
    readonly at: number,
    readonly ended: () => void,
  ) {
    this.unread = kind.prompt;
    this.prompt = promptBlocks([{ role: "user", content: `${Math.random()} `.padEnd(4 * kind.prompt, "abcd ") }], []);
  }
  granted(node: string): void {
    this.world.take(this, Number(node));
  }
  refused(cause: string): void {
    throw new Error(cause);
  }
}

/** Engines and a clock that jumps from one event to the next. */
class World {
  now = 0;
  readonly placement = new Placement();
  readonly queue: SlotQueue;
  readonly rows: Request[] = [];
  readonly #running: Request[][];
  readonly #isStepping: boolean[];
  readonly #events: { at: number; then: () => void }[] = [];

  constructor(nodes: number, weights: Readonly<Record<number, number>> = {}) {
    this.queue = new SlotQueue(1e9, 1e6, this.placement, (account) => weights[account] ?? 1);
    this.#running = Array.from({ length: nodes }, () => []);
    this.#isStepping = this.#running.map(() => false);
    this.queue.configure(
      this.#running.map((_none, at) => ({ name: `${at}`, slots: engine.slots, serves: () => true })),
    );
  }

  later(ms: number, then: () => void): void {
    const at = this.now + ms;
    let low = this.#events.length;
    while (low > 0 && this.#events[low - 1]!.at < at) low--;
    this.#events.splice(low, 0, { at, then });
  }

  run(untilMs: number): void {
    for (let next = this.#events.pop(); next !== undefined && next.at <= untilMs; next = this.#events.pop()) {
      this.now = next.at;
      next.then();
    }
  }

  ask(account: number, kind: Kind, member = "", priority: Priority = "standard", ended = (): void => {}): void {
    const request = new Request(this, account, member, priority, kind, this.now, ended);
    this.rows.push(request);
    this.queue.enter(request, this.now);
    this.#lookLater();
  }

  /** Asks again as soon as it is answered. */
  keepAsking(account: number, kind: Kind, member = "", priority: Priority = "standard"): void {
    this.ask(account, kind, member, priority, () => this.keepAsking(account, kind, member, priority));
  }

  take(request: Request, node: number): void {
    this.#running[node]!.push(request);
    if (this.#isStepping[node]) return;
    this.#isStepping[node] = true;
    this.later(0, () => this.#step(node));
  }

  #step(node: number): void {
    const running = this.#running[node]!;
    this.#isStepping[node] = running.length > 0;
    if (running.length === 0) return;
    let left: number = engine.budgetTokens;
    let read = 0;
    let count = 0;
    const steps = running.map((request) => {
      const tokens = Math.min(left, request.unread > 0 ? request.unread : 1);
      left -= tokens;
      if (request.unread > 0) read += tokens;
      if (tokens > 0) count++;
      return { request, tokens };
    });
    this.later(engine.stepMs + engine.requestMs * count + read / engine.readTokensPerMs, () => {
      for (const { request, tokens } of steps) this.#advance(request, tokens, node);
      this.#step(node);
    });
  }

  #advance(request: Request, tokens: number, node: number): void {
    if (tokens === 0) return;
    if (request.unread > 0 && (request.unread -= tokens) > 0) return;
    request.written++;
    if (request.firstMs === null) {
      request.firstMs = this.now - request.at;
      this.queue.began(request, this.now);
    }
    if (request.written < request.kind.answer) return;
    const running = this.#running[node]!;
    running.splice(running.indexOf(request), 1);
    const { prompt: inputTokens, answer: outputTokens } = request.kind;
    this.queue.ended(request, { inputTokens, cachedTokens: 0, outputTokens }, this.now);
    request.ended();
  }

  #looksAt = Infinity;
  #lookLater(): void {
    const next = this.queue.nextExpiry();
    if (next === null || next >= this.#looksAt) return;
    this.#looksAt = next;
    this.later(Math.max(1, next - this.now), () => {
      this.#looksAt = Infinity;
      this.queue.expire(this.now);
      this.#lookLater();
    });
  }

  /** Milliseconds to the first token of those who fit, the shortest first. */
  firsts(fits: (request: Request) => boolean): number[] {
    return this.rows.flatMap((request) => (fits(request) ? (request.firstMs ?? []) : [])).toSorted((a, b) => a - b);
  }

  /** In the work of an input token. */
  work(fits: (request: Request) => boolean): number {
    return this.rows.reduce((sum, one) => sum + (fits(one) ? one.kind.prompt - one.unread + 4 * one.written : 0), 0);
  }
}

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length);
const told = (firsts: readonly number[]): string =>
  `mean ${mean(firsts).toFixed(0)} ms, p99 ${(firsts[Math.floor(0.99 * firsts.length)] ?? 0).toFixed(0)} ms of ${firsts.length}`;

const chat: Kind = { prompt: 600, answer: 100 };
const pile: Kind = { prompt: 3_000, answer: 300 };

/** Ten accounts that ask each two seconds, beside what `beside` puts there. */
function tenSmall(nodes: number, seconds: number, priority: Priority, beside: (world: World) => void): World {
  const world = new World(nodes);
  beside(world);
  for (let account = 1; account <= 10; account++) {
    const ask = (): void => {
      world.ask(account, chat, "", priority);
      world.later(2_000, ask);
    };
    world.later(5_000 + 190 * account, ask);
  }
  world.run(1_000 * seconds);
  return world;
}
const isSmall = ({ account }: Request): boolean => account <= 10;
const flood = (world: World, priority: Priority = "standard"): void => {
  for (let n = 0; n < 500; n++) world.later(0, () => world.keepAsking(99, pile, "", priority));
};

export function fairness({ seconds, nodes }: typeof fairnessDefaults, print: (line: string) => void): void {
  const weighted = new World(nodes, { 1: 1, 2: 2, 3: 4 });
  const kinds: Readonly<Record<number, Kind>> = {
    1: chat,
    2: { prompt: 20_000, answer: 400 },
    3: { prompt: 100, answer: 800 },
  };
  for (let n = 0; n < 150 * nodes; n++) for (const account of [1, 2, 3]) weighted.keepAsking(account, kinds[account]!);
  const worksAt = (ms: number): number[] => {
    weighted.run(ms);
    return [1, 2, 3].map((account) => weighted.work((request) => request.account === account));
  };
  const before = worksAt(400 * seconds); // until the engines are full, and answers have shown how long they are
  const works = worksAt(1_000 * seconds).map((work, at) => work - before[at]!);
  print(
    `weights 1 : 2 : 4, always waiting      work ${works.map((work) => (work / works[0]!).toFixed(2)).join(" : ")}`,
  );
  const alone = tenSmall(nodes, seconds, "standard", () => {});
  print(`ten small accounts alone               first token ${told(alone.firsts(isSmall))}`);
  const beside = tenSmall(nodes, seconds, "standard", flood);
  print(`beside one with 500 requests at once   first token ${told(beside.firsts(isSmall))}`);
  const urgent = tenSmall(nodes, seconds, "interactive", (world) => flood(world, "bulk"));
  print(`interactive, beside 500 of bulk        first token ${told(urgent.firsts(isSmall))}`);
  const only = new World(nodes);
  flood(only, "bulk");
  only.run(1_000 * seconds);
  const bulk = (world: World): number => world.work(({ account }) => account === 99);
  print(`bulk beside them does                  ${((100 * bulk(urgent)) / bulk(only)).toFixed(0)} % of its work alone`);
  const house = new World(nodes);
  for (let n = 0; n < 300; n++) house.keepAsking(1, pile, "greedy");
  for (let person = 0; person < 49; person++) {
    const ask = (): void => {
      house.ask(1, chat, `person ${person}`);
      house.later(8_000, ask);
    };
    house.later(5_000 + 160 * person, ask);
  }
  house.run(1_000 * seconds);
  print(
    `49 people behind one key, one greedy   first token ${told(house.firsts(({ member }) => member !== "greedy"))}`,
  );
}

if (import.meta.main) fairness(readFlags(fairnessDefaults), console.log);
