// A page of the request log is a merge of lines of the journal and of rows of what was refused or failed, the newest first.
import type { LogFilter, LogPage, LogPlace, LogRow } from "../../core/request-log.ts";
import type { Ms } from "../../core/types.ts";

/** A line of the journal, and its place; and a row of what failed. */
export type FoundRow = LogRow & Readonly<{ sequence: LogPlace["served"] }>;
export type FailedFound = LogRow & Readonly<{ sequence: number }>;

/** `stoppedAt`: where a search gave up. */
export type Served = Readonly<{
  rows: readonly FoundRow[];
  stoppedAt: Readonly<{ sequence: LogPlace["served"]; at: Ms }> | null;
}>;

export function merged(
  place: LogPlace,
  served: Served,
  failed: readonly FailedFound[],
  limit: number,
): Omit<LogPage, "gone"> {
  const { rows: lines, stoppedAt } = served;
  const rows: LogRow[] = [];
  let [line, fail] = [0, 0];
  while (rows.length < limit) {
    const [one, other] = [lines[line], failed[fail]];
    // What comes after the place where a search gave up is shown when it went on.
    const isLine = one !== undefined && (other === undefined || one.at >= other.at);
    const next = isLine ? one : other;
    if (next === undefined || (!isLine && stoppedAt !== null && one === undefined && next.at < stoppedAt.at)) break;
    if (isLine) line += 1;
    else fail += 1;
    const { sequence: _, ...row } = next;
    rows.push(row);
  }
  // Threads and gateways hand in what they served and refused by turns: neighbors may have changed places.
  rows.sort((one, other) => other.at - one.at);
  const isAll = line === lines.length && fail === failed.length && stoppedAt === null;
  const hasLines = line < lines.length || stoppedAt === null;
  return {
    rows,
    next: isAll
      ? null
      : {
          served: hasLines ? (lines[line - 1]?.sequence ?? place.served) : stoppedAt.sequence,
          failed: failed[fail - 1]?.sequence ?? place.failed,
        },
    searchedTo: hasLines ? null : stoppedAt.at,
  };
}

export const statusFits = (status: LogFilter["status"], of: number): boolean =>
  status === null || (of >= status[0] && of <= status[1]);
