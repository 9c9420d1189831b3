// Nodes whose every word, end and fault the simulation decides, behind the real slot queue: the pool as the spine sees
// it, without sockets, timers or chance.
import type { AnyCancelSignal } from "../../src/core/cancel-signal.ts";
import type { GatewayParts } from "../../src/gateway.ts";
import { noBlocks } from "../../src/nodes/queue/prompt-blocks.ts";
import type { NodeHealth, Place, QueueNode } from "../../src/nodes/queue/slot-queue.ts";
import { SlotQueue } from "../../src/nodes/queue/slot-queue.ts";
import { refuse } from "../../src/core/refusals.ts";
import type { AccountId, Ask, Ending, Ms, Piece, Refusal, Sink, Slot, Usage } from "../../src/core/types.ts";
import { queuePlacesMax } from "../../src/core/limits.ts";
import { idlest } from "../nodes/queue/idlest.ts";

const busy = refuse("busy", { seconds: 5 });
const nothing: ReadonlySet<string> = new Set();

/** A generation that is running on a node. */
export class Generation {
  pieces = 0;
  calls = 0;
  /** The client reads too slowly, so the node's socket is not read. */
  paused = false;
  ended = false;
  readonly #resolve: (ending: Ending) => void;

  constructor(
    readonly node: string,
    readonly ask: Ask,
    readonly sink: Sink,
    resolve: (ending: Ending) => void,
  ) {
    this.#resolve = resolve;
  }

  /** One read of the node's socket. */
  say(pieces: readonly Piece[]): void {
    for (const piece of pieces) {
      this.pieces += 1;
      this.sink.piece(piece);
    }
    const caughtUp = this.sink.flush();
    if (caughtUp === null) return;
    this.paused = true;
    void caughtUp.then(() => (this.paused = false));
  }

  end(ending: Ending): void {
    if (this.ended) return;
    this.ended = true;
    this.#resolve(ending);
  }
}

export class SimulatedNodes {
  readonly queue: SlotQueue;
  readonly names: readonly string[];
  running: Generation[] = [];
  readonly #now: () => Ms;
  /** What a client that left is charged: the node's running usage, or our own count of it. */
  readonly #usageOfGone: (generation: Generation) => Readonly<{ usage: Usage; estimated: boolean }>;

  constructor(
    nodes: readonly QueueNode[],
    now: () => Ms,
    usageOfGone: (generation: Generation) => Readonly<{ usage: Usage; estimated: boolean }>,
  ) {
    this.queue = new SlotQueue(600_000, queuePlacesMax, idlest);
    this.queue.configure(nodes);
    this.names = nodes.map(({ name }) => name);
    this.#now = now;
    this.#usageOfGone = usageOfGone;
  }

  get busy(): number {
    return this.queue.states().reduce((sum, state) => sum + state.busy, 0);
  }

  setHealth(name: string, health: NodeHealth): void {
    this.queue.setHealth(name, health);
  }

  readonly pool: GatewayParts["pool"] = {
    enter: (ask, account, cancelSignal, excluded = nothing) => this.#enter(ask, account, cancelSignal, excluded),
  };

  #enter(
    ask: Ask,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
    excluded: ReadonlySet<string>,
  ): Slot | Refusal | Promise<Slot | Refusal> {
    if (cancelSignal.aborted) return busy;
    let result: Slot | Refusal | null = null;
    let settle = (given: Slot | Refusal): void => void (result = given);
    const place: Place = {
      modelId: ask.model.id,
      account,
      member: "",
      priority: "standard",
      prompt: noBlocks,
      excluded,
      granted: (node) => settle(this.#slot(node, place)),
      refused: () => settle(busy),
    };
    this.queue.enter(place, this.#now());
    if (result !== null) return result;
    const { promise, resolve } = Promise.withResolvers<Slot | Refusal>();
    const leave = () => {
      if (this.queue.leave(place)) resolve(busy);
    };
    settle = (given) => {
      cancelSignal.removeEventListener("abort", leave);
      resolve(given);
    };
    cancelSignal.addEventListener("abort", leave);
    return promise;
  }

  #slot(nodeName: string, place: Place): Slot {
    return {
      nodeName,
      alike: () => new Set([nodeName]),
      run: (ask, _account, cancelSignal, sink) => {
        const { promise, resolve } = Promise.withResolvers<Ending>();
        const generation = new Generation(nodeName, ask, sink, (ending) => {
          this.running.splice(this.running.indexOf(generation), 1);
          resolve(ending);
        });
        const left = () => generation.end({ kind: "cancelled", ...this.#usageOfGone(generation) });
        this.running.push(generation);
        if (cancelSignal.aborted) left();
        else cancelSignal.addEventListener("abort", left);
        return promise;
      },
      [Symbol.dispose]: () => this.queue.ended(place),
    };
  }
}
