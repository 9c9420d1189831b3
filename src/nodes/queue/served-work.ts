// Work that the nodes have done, for operators: who had how much of the last hour. It decides nothing.
import type { Priority } from "../../core/priority.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { LastHour } from "./last-hour.ts";

/** Work is in input tokens. */
export type Served = { readonly work: Record<Priority, number>; requests: number; waitedMs: Ms };

export type ServedRequest = Readonly<{
  account: AccountId;
  modelId: string;
  node: string;
  priority: Priority;
  work: number;
  waitedMs: Ms;
}>;

export class ServedWork {
  /** Since the start. */
  readonly work = noWork();
  readonly classes = served<Priority>();
  readonly accounts = served<AccountId>();
  readonly models = served<string>();
  readonly nodes = served<string>();

  /** A request ended. Takes 0.05 us. */
  add({ account, modelId, node, priority, work, waitedMs }: ServedRequest, now: Ms): void {
    this.work[priority] += work;
    addTo(this.classes.of(priority, now), priority, work, waitedMs);
    addTo(this.accounts.of(account, now), priority, work, waitedMs);
    addTo(this.models.of(modelId, now), priority, work, waitedMs);
    addTo(this.nodes.of(node, now), priority, work, waitedMs);
  }
}

function addTo(sum: Served, priority: Priority, work: number, waitedMs: Ms): void {
  sum.work[priority] += work;
  sum.requests++;
  sum.waitedMs += waitedMs;
}

/** Null is the key of what has none of its own. */
export type ServedRow<Key> = Served & Readonly<{ key: Key | null }>;

export function mostFirst<Key>(of: readonly LastHour<Key, Served>[], now: Ms): ServedRow<Key>[] {
  const sums = new Map<Key | null, ServedRow<Key>>();
  for (const [key, sum] of of.flatMap((each) => [...each.sums(now)])) {
    const known = sums.get(key);
    if (known === undefined) sums.set(key, { ...sum, key });
    else plusServed(known, sum);
  }
  return [...sums.values()].toSorted((one, other) => workOf(other) - workOf(one));
}

const noWork = (): Record<Priority, number> => ({ interactive: 0, standard: 0, bulk: 0 });

export const noneServed = (): Served => ({ work: noWork(), requests: 0, waitedMs: 0 });

/** Adds the second to the first. */
export function plusServed(sum: Served, { work, requests, waitedMs }: Served): void {
  sum.work.interactive += work.interactive;
  sum.work.standard += work.standard;
  sum.work.bulk += work.bulk;
  sum.requests += requests;
  sum.waitedMs += waitedMs;
}

const served = <Key>(): LastHour<Key, Served> => new LastHour(noneServed, plusServed);

export const workOf = ({ work: { interactive, standard, bulk } }: Served): number => interactive + standard + bulk;
