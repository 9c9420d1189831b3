// Counts what the operators' charts show, by minute: one call for each request, when it is over. The counts are
// collected every few seconds (`take`) and kept on disk.
import {
  type ActivityKind,
  type ActivityRow,
  activityCounts,
  durationBucket,
  durationBuckets,
  minuteMs,
  type SparseDurations,
} from "../core/activity.ts";
import { activityNamesMax } from "../core/limits.ts";
import { refusals } from "../core/refusals.ts";
import { defaultKey, type Ms } from "../core/types.ts";
import type { RequestRecord } from "./request-record.ts";

/** Minutes counted and not yet collected: 4 MB where each has the most names. */
export const activityMinutesMax = 15;

class Cell {
  /** In the order of `activityCounts`. */
  readonly counts: number[] = activityCounts.map(() => 0);
  wait: Uint32Array | null = null;
  firstToken: Uint32Array | null = null;

  /** `result`: the index of answered, refused, failed or left; 0 where it was none of them. */
  count(result: number, { usage }: RequestRecord, firstToken: number): void {
    const { counts } = this;
    counts[0]! += 1;
    if (result > 0) counts[result]! += 1;
    if (usage !== null) {
      counts[5]! += usage.inputFresh + usage.inputCached;
      counts[6]! += usage.inputCached;
      counts[7]! += usage.output;
    }
    if (firstToken >= 0) (this.firstToken ??= new Uint32Array(durationBuckets))[firstToken]! += 1;
  }

  countWait(bucket: number): void {
    (this.wait ??= new Uint32Array(durationBuckets))[bucket]! += 1;
  }
}

const kinds = ["all", "model", "node", "account", "key", "reason"] as const satisfies readonly ActivityKind[];
type Minute = Readonly<{ at: Ms; cells: Readonly<Record<ActivityKind, Map<string, Cell>>> }>;

export class ActivityCounts {
  /** Newest last. */
  #minutes: Minute[] = [];

  /**
   * A request is over. Uses loops, because writing out five series took the compiler 0.5 s of CPU time, once in a
   * process, after 70,000 requests.
   */
  count(record: RequestRecord): void {
    const { arrivedAt, endedAt, firstPieceAt, rounds, refusal, account } = record;
    const { cells } = this.#minuteOf(record.arrivedWall + (endedAt ?? arrivedAt) - arrivedAt);
    const result = resultOf(record);
    const firstToken = firstPieceAt === null ? -1 : durationBucket(firstPieceAt - arrivedAt);
    const counted = [
      cellOf(cells.node, rounds.at(-1)?.node ?? ""),
      cellOf(cells.all, ""),
      cellOf(cells.model, record.model?.id ?? ""),
      cellOf(cells.account, account === null ? "" : String(account)),
      cellOf(cells.key, account === null ? "" : `${account} ${record.key ?? defaultKey}`),
    ];
    for (const cell of counted) cell.count(result, record, firstToken);
    if (refusal !== null) cellOf(cells.reason, refusal).counts[0]! += 1;
    for (const { node, queuedAt, startedAt, endedAt: until } of rounds) {
      const wait = durationBucket((startedAt ?? until) - queuedAt);
      counted[0] = cellOf(cells.node, node ?? "");
      for (const cell of counted) cell.countWait(wait);
    }
  }

  take(): ActivityRow[] {
    const minutes = this.#minutes;
    this.#minutes = [];
    return minutes.flatMap(({ at, cells }) =>
      kinds.flatMap((kind) =>
        [...cells[kind]].map(([name, { counts, wait, firstToken }]) => ({
          at,
          kind,
          name,
          counts,
          wait: sparse(wait),
          firstToken: sparse(firstToken),
        })),
      ),
    );
  }

  #minuteOf(wall: Ms): Minute {
    const at = Math.floor(wall / minuteMs) * minuteMs;
    const last = this.#minutes.at(-1);
    if (last?.at === at) return last;
    const known = this.#minutes.find((minute) => minute.at === at);
    if (known !== undefined) return known;
    const minute: Minute = {
      at,
      cells: {
        all: new Map(),
        model: new Map(),
        node: new Map(),
        account: new Map(),
        key: new Map(),
        reason: new Map(),
      },
    };
    this.#minutes.push(minute);
    if (this.#minutes.length > activityMinutesMax) this.#minutes.shift(); // no one collects them
    return minute;
  }
}

/** Beyond the limit, names are counted together: accounts and a shop's models may be many. */
function cellOf(cells: Map<string, Cell>, name: string): Cell {
  const known = cells.get(name);
  if (known !== undefined) return known;
  const kept = cells.size < activityNamesMax ? name : "";
  let cell = cells.get(kept);
  if (cell === undefined) cells.set(kept, (cell = new Cell()));
  return cell;
}

const [answered, refused, failed, left] = [1, 2, 3, 4];

function resultOf({ refusal, ending }: RequestRecord): number {
  if (refusal !== null) return refusals[refusal].status >= 500 ? failed! : refused!;
  if (ending === null) return 0;
  return ending === "end" ? answered! : ending === "cancelled" ? left! : failed!;
}

function sparse(buckets: Uint32Array | null): SparseDurations {
  const pairs: number[] = [];
  buckets?.forEach((count, bucket) => count > 0 && pairs.push(bucket, count));
  return pairs;
}
