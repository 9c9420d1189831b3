// Pages of a list: how long they are, and where the next one begins.
import { pageMax } from "../api/shapes.ts";

const pageDefault = 50;

/** The number of rows that a query asks for, within bounds. */
export const limitOf = (limit: string | undefined, max = pageMax): number =>
  Math.min(max, Math.max(1, Number(limit ?? pageDefault)));

/** A page of rows that end in ids; `found` may have one row more, which shows that there is a next page. */
export function pageOf<Row extends Readonly<{ id: number }>>(
  found: readonly Row[],
  limit: number,
): Readonly<{ shown: readonly Row[]; next: string | null }> {
  const shown = found.slice(0, limit);
  return { shown, next: found.length > limit ? String(shown.at(-1)!.id) : null };
}
