// Requests that were served, as numbers: when they came, whose they were, what work they were and how they went. No texts.
import { priorities } from "./priority.ts";
import type { Ms } from "./types.ts";

/** The numbers of a request in a page, in this order; NaN where something was not measured. */
export const arrivalColumns = [
  /** When it ended, by the wall clock. */
  "endedAt",
  "account",
  /** The end user's number within the account, or -1 - the key's number. */
  "member",
  /** Places among the page's names; a node's is -1 where unknown. */
  "model",
  "node",
  "rank",
  "input",
  /** The part of `input` that its node had in its cache. */
  "cached",
  "output",
  /** As in Course. */
  "waitMs",
  "sentMs",
  "firstTokenMs",
  "durationMs",
] as const;
export type ArrivalColumn = (typeof arrivalColumns)[number];

/** A page of them, in the order in which they ended. */
export type ArrivalPage = Readonly<{
  numbers: Float64Array<ArrayBuffer>;
  names: readonly string[];
  /** What the next page begins after; null after the last one. */
  next: number | string | null;
}>;

/** As both stores read it. */
export type ArrivalRow = Readonly<
  Record<"at" | "account" | "key" | "input" | "cached" | "output", number> &
    Record<"endUser" | "waitMs" | "sentMs" | "firstTokenMs" | "durationMs", number | null> & {
      model: string;
      node: string | null;
      /** Null in lines from before: standard. */
      priority: string | null;
    }
>;

export function arrivalPage(rows: readonly ArrivalRow[], next: ArrivalPage["next"]): ArrivalPage {
  const names = new Map<string, number>();
  const placeOf = (name: string): number => {
    const known = names.get(name);
    if (known !== undefined) return known;
    names.set(name, names.size);
    return names.size - 1;
  };
  const numbers = new Float64Array(rows.length * arrivalColumns.length);
  let at = 0;
  for (const row of rows) {
    const { account, endUser, key, node, input, cached, output } = row;
    const rank = Math.max(0, (priorities as readonly string[]).indexOf(row.priority ?? "standard"));
    const who = [row.at, account, endUser ?? -1 - key, placeOf(row.model), node === null ? -1 : placeOf(node), rank];
    for (const number of who) numbers[at++] = number;
    for (const number of [input, cached, output]) numbers[at++] = number;
    for (const ms of [row.waitMs, row.sentMs, row.firstTokenMs, row.durationMs]) numbers[at++] = ms ?? Number.NaN;
  }
  return { numbers, names: [...names.keys()], next };
}

export interface ArrivalQueries {
  /** Those that ended from `from` on, behind `after`, the `next` of the page before. Rejects with StoreUnavailable. */
  arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage>;
}
