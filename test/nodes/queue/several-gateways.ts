// Gateways on one node in virtual time: each has a line of its own and the slots that it is dealt, and tells the others
// what it served.
import type { SharingPool } from "../../../src/store/postgres/node-shares.ts";
import type { Priority } from "../../../src/core/priority.ts";
import { noBlocks } from "../../../src/nodes/queue/prompt-blocks.ts";
import { type Chooser, type Place, SlotQueue } from "../../../src/nodes/queue/slot-queue.ts";

const node = "n";

/** Requests whose work is the time that they take, in milliseconds. */
const byLength: Chooser = {
  choose: (_wanting, [first]) => ({ best: first!, free: first!, savedMs: 0 }),
  unreadMs: () => 0,
  readMs: () => 0,
  expectedMs: () => 0,
  sent: (place) => ({ work: (place as Request).ms, unreadWork: 0 }),
  began() {},
  ended: ({ work }) => work,
};

class Request implements Place {
  readonly modelId = "m";
  readonly prompt = noBlocks;
  readonly excluded: ReadonlySet<string> = new Set();
  endsAt = Infinity;
  constructor(
    readonly gateway: Gateway,
    readonly account: number,
    readonly ms: number,
    readonly member = "",
    readonly priority: Priority = "standard",
  ) {}
  granted(): void {
    this.endsAt = this.gateway.world.now + this.ms;
    this.gateway.running.add(this);
  }
  refused(cause: string): void {
    throw new Error(cause);
  }
}

export class Gateway {
  readonly queue: SlotQueue;
  readonly running = new Set<Request>();
  /** What the exchange between gateways needs of this one. */
  readonly pool: SharingPool & Required<Pick<SharingPool, "takeServed" | "servedElsewhere">>;

  constructor(
    readonly world: World,
    slots: number,
    weights: Readonly<Record<number, number>>,
  ) {
    const queue = (this.queue = new SlotQueue(1e9, 1e6, byLength, (account) => weights[account] ?? 1));
    queue.configure([{ name: node, slots: 0, serves: () => true }]);
    this.pool = {
      needs: () => {
        const accounts = new Set([...this.running].map(({ account }) => account));
        return new Map([[node, { slots, busy: this.running.size, ...queue.needOf(node, accounts, world.now) }]]);
      },
      share: (given) => queue.setSlots(node, given.get(node)!, 0),
      takeServed: () => queue.takeServed(),
      servedElsewhere(served) {
        for (const work of served) queue.servedElsewhere(work);
      },
    };
  }

  ask(account: number, ms: number, ...of: [member?: string, priority?: Priority]): void {
    this.queue.enter(new Request(this, account, ms, ...of), this.world.now);
  }
}

export class World {
  now = 0;
  readonly gateways: readonly Gateway[];
  /** Milliseconds of the node, by account. */
  readonly had = new Map<number, number>();
  /** The same by member and class. */
  readonly hadOf = new Map<string, number>();

  constructor(count: number, slots: number, weights: Readonly<Record<number, number>> = {}) {
    this.gateways = Array.from({ length: count }, () => new Gateway(this, slots, weights));
  }

  /** Until then; an account whose request ends asks the same again. */
  run(until: number, ms: (account: number) => number): void {
    for (;;) {
      const running = this.gateways.flatMap((gateway) => [...gateway.running]);
      const next = running.reduce<Request | null>(
        (first, one) => (first === null || one.endsAt < first.endsAt ? one : first),
        null,
      );
      if (next === null || next.endsAt > until) break;
      const { gateway, account, member, priority } = next;
      const who = `${member} ${priority}`;
      this.hadOf.set(who, (this.hadOf.get(who) ?? 0) + next.ms);
      this.now = next.endsAt;
      this.had.set(account, (this.had.get(account) ?? 0) + next.ms);
      gateway.running.delete(next);
      gateway.queue.ended(next, null, this.now);
      gateway.ask(account, ms(account), member, priority);
      gateway.queue.check();
    }
    this.now = until;
  }
}
