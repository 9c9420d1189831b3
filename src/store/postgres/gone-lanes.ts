// Gives back what gateways held that are gone. A lane's row changes at least at each heartbeat; one that has not changed for
// 15 s is gone, by the clock of who looks, in looks of which none failed or came late. No clocks are compared, and neither an
// outage of the server nor a pause of who looks makes anybody gone.
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { type Call, call, type Connection, isFailed, type Row, type Server, StatementError } from "./connection.ts";
import { limited, type Pace } from "./pace.ts";
import { goneLanesKeptMs, laneGoneMs, lanesLookLateMs, lanesLookMs } from "./limits.ts";
import * as sql from "./statements.ts";
import { type Meta, outdated } from "./tables-state.ts";

/** A row as it was seen, and since when it has been so. */
type Seen = Readonly<{ mark: string; since: Ms }>;

export class GoneLanes {
  /** Lanes that were found gone, and their holds. */
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

  /** Never rejects. */
  async look(): Promise<void> {
    const startedAt = this.#pace.monotonic();
    if (startedAt - this.#lookedAt > lanesLookLateMs) this.#seen.clear();
    try {
      this.#connection ??= await limited(this.#pace, this.#server.connect(), (late) => late.close());
      const [found, meta] = await this.#send([call(sql.lookAtLanes), call(sql.readMeta)]);
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
    } catch (thrown) {
      // What was seen before counts only if the next look is in time. That the server is away, the lane says.
      const isOurs = !(thrown instanceof StatementError) || /^(?:2|42)/.test(thrown.state ?? "");
      if (isOurs) this.#log("error", "gone gateways cannot be looked for", { error: String(thrown) });
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
    const [, , marked] = await this.#send([call(sql.begin), call(sql.setUp), call(sql.markGone, lane, mark)]);
    if (marked!.length === 0) {
      await this.#send([call(sql.rollback)]);
      return;
    }
    const all = [lane, null] as const;
    const [, given] = await this.#send([
      call(sql.lockHolders, ...all),
      call(sql.giveBack, ...all),
      call(sql.forgetShares),
      call(sql.forgetLanes, goneLanesKeptMs),
      call(sql.commit),
    ]);
    const holds = given![0]!["holds"] as number;
    this.counts.lanes += 1;
    this.counts.holds += holds;
    this.#log("warn", "a gateway is gone: what its requests held is given back", { lane, holds });
  }

  async #send(calls: readonly Call[]): Promise<readonly (readonly Row[])[]> {
    const outcomes = await limited(this.#pace, this.#connection!.send(calls), () => {});
    return outcomes.map((outcome) => {
      if (isFailed(outcome)) throw outcome;
      return outcome;
    });
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}
