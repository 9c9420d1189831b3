// This gateway's shares of the nodes' slots: tells the other gateways what it needs there and hears what it has, four times
// a second while somebody waits, else once. One transaction for all nodes. While the server is away, shares stay as they are.
// Once a second gateways also tell each other how much work they did for whom.
import type { Log } from "../../core/log.ts";
import type { NodeWork } from "../../core/node-work.ts";
import type { Ms } from "../../core/types.ts";
import { arrayOf, type Call, call, type Connection, isFailed, type Row, type Server } from "./connection.ts";
import { sharesBusyMs, sharesIdleMs, sharesSoonestMs, workEveryMs, workRowsMax } from "./limits.ts";
import { limited, type Pace } from "./pace.ts";
import { type NodeNeed, type Share, shareOf, type ShareRow, slotsOf } from "./shares.ts";
import * as sql from "./statements.ts";

/** Who speaks to the nodes. Nodes have names here that mean the same on all gateways. */
export interface SharingPool {
  /** What it needs of each node whose slots it shares. */
  needs(): ReadonlyMap<string, NodeNeed & Readonly<{ slots: number }>>;
  /** How many requests it may have at each of them from now on. */
  share(slots: ReadonlyMap<string, number>): void;
  /** The work since the last call. Absent: other gateways do not learn it. */
  takeServed?(): readonly NodeWork[];
  /** Another gateway did this; its node may be none of this gateway's. */
  servedElsewhere?(served: readonly NodeWork[]): void;
}

export type NodeSharesParts = Readonly<{
  server: Server;
  pool: SharingPool;
  /** The gateway's life that is registered now; null where none is. */
  lane(): string | null;
  pace: Pace;
  log: Log;
}>;

export class NodeShares {
  readonly #parts: NodeSharesParts;
  #connection: Connection | null = null;
  #stop: () => void = () => {};
  #exchangedAt: Ms = Number.NEGATIVE_INFINITY;
  #isExchanging = false;
  /** It exchanges as soon as it may. */
  #isSoon = false;
  #isAway = false;
  #isClosed = false;
  #dealt: ReadonlyMap<string, Share> = new Map();
  #workToldAt: Ms = Number.NEGATIVE_INFINITY;
  /** The number of the latest row of work. */
  #workTold = 0;
  /** The number of the latest row that was heard of each lane. */
  #workHeard: ReadonlyMap<string, number> = new Map();

  constructor(parts: NodeSharesParts) {
    this.#parts = parts;
  }

  /** As they were dealt out last, by the names that nodes have here. */
  get dealt(): ReadonlyMap<string, Share> {
    return this.#dealt;
  }

  /** Somebody began to wait: a share may be had elsewhere. */
  lineBegan(): void {
    if (this.#isSoon || this.#isExchanging || this.#isClosed) return;
    this.#isSoon = true;
    this.#exchangeAfter(sharesSoonestMs);
  }

  /** Once, and again and again from then on. Never rejects. */
  async exchange(): Promise<void> {
    this.#stop();
    this.#isSoon = false;
    this.#isExchanging = true;
    try {
      await this.#exchange();
      if (this.#isAway) this.#parts.log("info", "the nodes' slots are shared out again");
      this.#isAway = false;
    } catch (thrown) {
      this.#disconnect();
      // Without the ledger no request is admitted, which the lane says.
      if (!this.#isAway)
        this.#parts.log("warn", "the nodes' slots could not be shared out: shares stay as they are", {
          error: String(thrown),
        });
      this.#isAway = true;
    }
    this.#isExchanging = false;
    this.#exchangedAt = this.#parts.pace.monotonic();
    if (this.#isClosed) return this.#disconnect();
    const isWaiting = [...this.#parts.pool.needs().values()].some(({ waiting }) => waiting > 0);
    this.#exchangeAfter(isWaiting ? sharesBusyMs : sharesIdleMs);
  }

  /** Leaves its shares to the others. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    const { pace, lane } = this.#parts;
    const own = lane();
    if (this.#connection === null || this.#isExchanging || own === null) return;
    // Where that fails, the lane's end says the same a moment later.
    await limited(pace, this.#connection.send([call(sql.leaveNodes, own, arrayOf([]))]), () => {}).catch(() => {});
    this.#disconnect();
  }

  #exchangeAfter(ms: Ms): void {
    this.#stop();
    const due = this.#exchangedAt + ms - this.#parts.pace.monotonic();
    this.#stop = this.#parts.pace.after(Math.max(0, due), () => void this.exchange());
  }

  async #exchange(): Promise<void> {
    const { pool, lane } = this.#parts;
    const own = lane();
    if (own === null) return;
    await this.#exchangeWork(own);
    const needs = pool.needs();
    if (needs.size === 0) return;
    const nodes = arrayOf([...needs.keys()]);
    const lock = [call(sql.begin), sql.setUpFor(), call(sql.lockNodes, nodes), call(sql.readShares, nodes)];
    let [, , locked, rows] = await this.#send(lock);
    if (locked!.length < needs.size) {
      [, , , , locked, rows] = await this.#send([call(sql.rollback), call(sql.makeNodes, nodes), ...lock]);
    }
    const shares = new Map(
      [...needs].map(([node, { slots, ...need }]) => {
        const { others, index, mine } = rowsOf(rows!, node, own);
        // What runs is there, even where this life of the gateway has no row yet.
        const row = { ...need, granted: Math.max(mine?.granted ?? 0, need.busy) };
        return [node, { before: row.granted, ...shareOf(slots, others.toSpliced(index, 0, row), index) }];
      }),
    );
    // What is given back is no longer used before others hear of it; what is had is used when it is committed.
    pool.share(new Map([...shares].map(([node, { before, target }]) => [node, Math.min(before, target)])));
    const written = [...pool.needs()].flatMap(([node, need]) => {
      const share = shares.get(node);
      return share === undefined ? [] : [{ node, ...need, granted: Math.max(share.granted, need.busy) }];
    });
    const column = (of: (row: (typeof written)[number]) => string | number) => arrayOf(written.map(of));
    await this.#send([
      call(
        sql.writeShares,
        own,
        ...[column(({ node }) => node), column(({ granted }) => granted), column(({ busy }) => busy)],
        ...[column(({ waiting }) => waiting), column(({ accounts }) => accounts)],
        column(({ waitedMs }) => Math.round(waitedMs)), // a clock's parts of a millisecond are none of the column's
      ),
      call(sql.leaveNodes, own, nodes),
      call(sql.commit),
    ]);
    pool.share(new Map([...shares].map(([node, share]) => [node, slotsOf(share)])));
    this.#dealt = shares;
  }

  /** So that an account with requests at several gateways gets its share of all, not of each. */
  async #exchangeWork(own: string): Promise<void> {
    const { pool, pace } = this.#parts;
    if (pool.takeServed === undefined || pace.monotonic() - this.#workToldAt < workEveryMs) return;
    this.#workToldAt = pace.monotonic();
    const served = mostFirst(pool.takeServed().map((one) => ({ ...one, work: Math.round(one.work) })));
    const rest = Map.groupBy(served.slice(workRowsMax), ({ node, account }) => `${account} ${node}`);
    const accounts = [...rest.values()].map((rows) => {
      return { node: rows[0]!.node, account: rows[0]!.account, work: rows.reduce((sum, { work }) => sum + work, 0) };
    });
    const most = [...served.slice(0, workRowsMax), ...mostFirst(accounts).slice(0, workRowsMax)];
    const [rows] = await this.#send([
      call(sql.readWork, own),
      ...(most.length === 0 ? [] : [call(sql.writeWork, own, ++this.#workTold, JSON.stringify(most))]),
      call(sql.forgetWork, own),
    ]);
    const heard = new Map<string, number>();
    for (const row of rows!) {
      const [from, number] = [row["lane"] as string, row["number"] as number];
      heard.set(from, number);
      if (number <= (this.#workHeard.get(from) ?? 0)) continue;
      pool.servedElsewhere?.(JSON.parse(row["work"] as string) as NodeWork[]);
    }
    this.#workHeard = heard;
  }

  async #send(calls: readonly Call[]): Promise<readonly (readonly Row[])[]> {
    const { pace, server } = this.#parts;
    this.#connection ??= await limited(pace, server.connect(), (late) => late.close());
    const outcomes = await limited(pace, this.#connection.send(calls), () => {});
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

const mostFirst = (served: readonly NodeWork[]): readonly NodeWork[] =>
  served.toSorted((one, other) => Math.abs(other.work) - Math.abs(one.work));

/** A node's rows in the order of their lanes; where this gateway's row belongs among the others. */
function rowsOf(rows: readonly Row[], node: string, own: string) {
  const ofNode = rows.filter((row) => row["node"] === node);
  const others = ofNode.filter((row) => row["lane"] !== own);
  const mine = ofNode.find((row) => row["lane"] === own);
  const index = others.filter((row) => (row["lane"] as string) < own).length;
  return { others: others.map(rowOf), index, mine: mine === undefined ? null : rowOf(mine) };
}

const rowOf = (row: Row): ShareRow => ({
  granted: row["granted"] as number,
  busy: row["busy"] as number,
  waiting: row["waiting"] as number,
  accounts: row["accounts"] as number,
  waitedMs: row["waited_ms"] as number,
});
