// Gives back what gateways held that are gone. A lane's row changes at least at each heartbeat; one that has not changed for
// 15 s is gone, by the observer's clock, if no look in that time failed or came late. No clocks are compared, and neither an
// outage of the server nor a pause of the observer makes a gateway gone. Where one of its accounts is locked, the others' holds are
// given back account by account, and those of that account with a later look.
import type { Log } from "../../core/log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import {
  arrayOf,
  type Call,
  call,
  type Connection,
  isFailed,
  type StatementResult,
  type Row,
  type Server,
  StatementError,
} from "./connection.ts";
import { isLocked } from "./locked-accounts.ts";
import { limited, type Pace } from "./pace.ts";
import { batchLockMs, batchLockQuickMs, goneLanesKeptMs, laneGoneMs, lanesLookLateMs, lanesLookMs } from "./limits.ts";
import * as sql from "./statements.ts";
import { type Questions, statement } from "../questions.ts";
import { type Meta, outdated } from "./tables-state.ts";

/** A row as it was seen, and since when it has been so. */
type Seen = Readonly<{ mark: string; since: Ms }>;

type LeftHold = Readonly<{ lane: string; account: AccountId; request: string }>;

export class GoneLanes {
  readonly counts = { lanes: 0, holds: 0 };
  /** Why this program may not write to the tables anymore, in words: a newer one has changed them; null: it may. */
  outdated: string | null = null;
  readonly #server: Server;
  readonly #pace: Pace;
  readonly #log: Log;
  #seen = new Map<string, Seen>();
  #lookedAt: Ms = Number.NEGATIVE_INFINITY;
  #connection: Connection | null = null;
  #stop: () => void = () => {};
  #isClosed = false;

  constructor(server: Server, pace: Pace, log: Log) {
    this.#server = server;
    this.#pace = pace;
    this.#log = log;
  }

  begin(): void {
    this.#stop = this.#pace.after(lanesLookMs, () => {
      void this.look().then(() => {
        if (!this.#isClosed) this.begin();
      });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.#disconnect();
  }

  async look(): Promise<void> {
    const startedAt = this.#pace.monotonic();
    if (startedAt - this.#lookedAt > lanesLookLateMs) this.#seen.clear();
    try {
      this.#connection ??= await limited(this.#pace, this.#server.connect(), (late) => late.close());
      const [found, meta, left] = await this.#send([
        call(sql.lookAtLanes),
        call(sql.readMeta),
        call(sql.readLeftHolds),
      ]);
      const lanes = found as readonly Readonly<Record<string, string>>[];
      this.#note(meta![0] as unknown as Meta);
      const now = this.#pace.monotonic();
      const seen = new Map<string, Seen>();
      for (const { id, mark } of lanes) {
        const before = this.#seen.get(id!);
        seen.set(id!, before?.mark === mark! ? before : { mark: mark!, since: now });
      }
      this.#seen = seen;
      this.#lookedAt = startedAt;
      for (const [id, { mark, since }] of seen) if (startedAt - since > laneGoneMs) await this.#giveBack(id, mark);
      if (left!.length > 0) await this.#giveBackLeft(left as readonly unknown[] as readonly LeftHold[]);
    } catch (thrown) {
      // What was seen before counts only if the next look is in time. That the server is away, the lane says.
      const isSlow = thrown instanceof StatementError && thrown.state === "25P03"; // this gateway stood still
      const isOurs = !(thrown instanceof StatementError) || (!isSlow && /^(?:2|42)/.test(thrown.state ?? ""));
      if (isOurs) this.#log("error", "the search for dead gateways failed", { error: String(thrown) });
      this.#disconnect();
    }
    if (this.#isClosed) this.#disconnect();
  }

  #note(meta: Meta): void {
    const before = this.outdated;
    this.outdated = outdated(meta);
    if (before === null && this.outdated !== null) {
      this.#log("error", "new requests are refused: the tables are newer than this program", { reason: this.outdated });
    }
  }

  async #giveBack(lane: string, mark: string): Promise<void> {
    if (!(await this.#mark(lane, mark))) return;
    const all = [lane, null] as const;
    const outcomes = await this.#ask([
      call(sql.lockHolders, ...all),
      call(sql.giveBack, ...all),
      call(sql.forgetShares),
      call(sql.forgetLanes, goneLanesKeptMs),
      call(sql.commit),
    ]);
    let holds: number | null = null;
    if (isLocked(outcomes[0]!)) {
      // With the next look, without the accounts that are locked.
      await this.#send([call(sql.rollback)]);
      if (!(await this.#mark(lane, mark))) return;
      await this.#send([call(sql.forgetShares), call(sql.commit)]);
    } else holds = givenOf(rowsOf(outcomes)[1]!);
    this.counts.lanes += 1;
    this.counts.holds += holds ?? 0;
    this.#log("warn", "a gateway is gone: its requests' holds are released", { lane, holds: holds ?? "later" });
  }

  /** In a transaction that is open where it was marked. */
  async #mark(lane: string, mark: string): Promise<boolean> {
    const [, , marked] = await this.#send([call(sql.begin), sql.setUpFor(batchLockMs), call(sql.markGone, lane, mark)]);
    if (marked!.length === 0) await this.#send([call(sql.rollback)]);
    return marked!.length > 0;
  }

  async #giveBackLeft(left: readonly LeftHold[]): Promise<void> {
    for (const own of Map.groupBy(left, ({ lane, account }) => `${lane} ${account}`).values()) {
      const given = [own[0]!.lane, arrayOf(own.map(({ request }) => request))] as const;
      const outcomes = await this.#ask([
        ...[
          call(sql.begin),
          sql.setUpFor(batchLockQuickMs),
          call(sql.lockHolders, ...given),
          call(sql.giveBack, ...given),
        ],
        call(sql.commit),
      ]);
      if (isLocked(outcomes[2]!)) await this.#send([call(sql.rollback)]);
      else this.counts.holds += givenOf(rowsOf(outcomes)[3]!);
    }
  }

  async #send(calls: readonly Call[]): Promise<readonly (readonly Row[])[]> {
    return rowsOf(await this.#ask(calls));
  }

  #ask(calls: readonly Call[]): Promise<readonly StatementResult[]> {
    return limited(this.#pace, this.#connection!.send(calls), () => {});
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}

const rowsOf = (outcomes: readonly StatementResult[]): readonly (readonly Row[])[] =>
  outcomes.map((outcome) => {
    if (isFailed(outcome)) throw outcome;
    return outcome;
  });

const givenOf = (rows: readonly Row[]): number => rows[0]!["holds"] as number;

/** Whether a request is open at some gateway. */
export async function hasHold(tables: Pick<Questions, "ask">, requestId: string): Promise<boolean> {
  return (await tables.ask(holdOf, requestId)).length > 0;
}

const holdOf = statement("hold of request", "SELECT 1 AS held FROM holds WHERE request_id = $1::text");
