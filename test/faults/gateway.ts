// A gateway in this process on a temporary data folder: everything is real, its sockets, its journal and its Workers, but
// a node's silence is cut short and the disk can be replaced.
import { desksOf } from "../account/desks.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "bun:test";
import { type FolderAccounting, openAccounting } from "../../src/books/accounting.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { NodeConfig } from "../../src/config/config.ts";
import { type RunningServer, type ServerOptions, startServer } from "../../src/http/app.ts";
import type { PoolLimits } from "../../src/nodes/queue/pool.ts";
import { NodePool } from "../../src/nodes/queue/pool.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { bodyOf, type ClientView, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { ModelHabits } from "../../src/tools/model-habits.ts";

/** Long enough for a busy machine; what follows a finish reason is only waited for. */
const limits: Partial<PoolLimits> = {
  firstPieceMs: 60_000,
  stallMs: 60_000,
  afterFinishMs: 80,
  connectTimeoutMs: 60_000,
  coolOffMs: 50,
};
/** For nodes that fall silent, or cannot be dialed. */
export const impatient: Partial<PoolLimits> = { ...limits, firstPieceMs: 600, stallMs: 400, connectTimeoutMs: 300 };

/** Of all gateways here: its Worker takes half a second to load its tables. */
const counter = new TokenCounter({ log: () => {} });

export type Caller = Readonly<{ email: string; key: string }>;
export type Reply = Readonly<{ status: number; headers: Headers; body: string; id: string; view: ClientView }>;
export type AskOptions = Readonly<{ model?: string; prompt?: string; more?: object; signal?: AbortSignal }>;

export class FaultGateway implements AsyncDisposable {
  readonly #folder: string;
  readonly accounting: FolderAccounting;
  readonly pool: NodePool;
  readonly #server: RunningServer;
  readonly log: string[];
  #callers = 0;

  private constructor(
    folder: string,
    accounting: FolderAccounting,
    parts: { pool: NodePool; server: RunningServer; log: string[] },
  ) {
    this.#folder = folder;
    this.accounting = accounting;
    this.pool = parts.pool;
    this.#server = parts.server;
    this.log = parts.log;
  }

  static async start(
    nodes: readonly (string | Partial<NodeConfig>)[],
    given: Partial<PoolLimits> = limits,
    { looks = false, ...more }: Partial<ServerOptions> & Readonly<{ looks?: boolean }> = {},
  ): Promise<FaultGateway> {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-faults-"));
    const log: string[] = [];
    const catalog = embeddedCatalog();
    const clock = systemClock;
    const accounting = await openAccounting({
      dataFolder: folder,
      catalog,
      siteUrl: "http://site",
      clock,
      onFatal: (error) => log.push(`fatal ${error.message}`),
    });
    const configs = nodes.map((node, index) => ({
      name: `node-${index + 1}`,
      url: "",
      apiKey: null,
      slots: 64,
      models: { "*": "m" },
      ...(typeof node === "string" ? { url: node } : node),
    }));
    const pool = new NodePool(configs as readonly NodeConfig[], {
      clock,
      queueMaxWaitMs: 10_000,
      log: ({ level, node, message }) => log.push(`${level} ${node} ${message}`),
      limits: given,
      looks,
      estimate: (ask, account, cancelSignal) => counts.ofUncounted(ask, account, cancelSignal),
    });
    const counts = new TokenCounts(counter, pool, clock);
    const { keys, admission } = accounting;
    const server = startServer(
      {
        keys,
        admission,
        catalog,
        pool,
        habits: new ModelHabits(),
        storedResponses: null,
        clock,
        log: (level, event, fields) => log.push(`${level} ${event} ${JSON.stringify(fields ?? {})}`),
      },
      { host: "127.0.0.1", port: 0, counts, sealingKey: new Uint8Array(32), ...more },
    );
    return new FaultGateway(folder, accounting, { pool, server, log });
  }

  get url(): string {
    return this.#server.url;
  }

  async caller(credit = 100_000_000): Promise<Caller> {
    const email = `caller-${(this.#callers += 1)}@x`;
    const { api_key: key } = await desksOf(this.accounting).accounts.create({ email, credit });
    return { email, key };
  }

  /** Sends a request and reads what comes until it ends or breaks. */
  async ask(caller: Caller, endpoint: Endpoint, stream: boolean, options: AskOptions = {}): Promise<Reply> {
    const { model = "core-3", prompt = "hello", more = {}, signal } = options;
    const response = await fetch(this.url + endpoint, {
      method: "POST",
      headers: { authorization: `Bearer ${caller.key}` },
      body: JSON.stringify(bodyOf(endpoint, model, prompt, { stream, ...more })),
      ...(signal === undefined ? {} : { signal }),
    });
    const body = await response.text();
    const { status, headers } = response;
    const id = headers.get("x-request-id") ?? "";
    return { status, headers, body, id, view: viewOf(endpoint, stream && status === 200, body) };
  }

  usage(caller: Caller) {
    return desksOf(this.accounting).accounts.usage(caller.email, 10_000);
  }

  /** I4: nothing is open, held, in line or busy. */
  async expectQuiet(): Promise<void> {
    const state = () => {
      const { holds, heldTokens, uncommitted } = this.accounting.ledger.totals();
      const busy = this.pool.states().reduce((sum, node) => sum + node.busy, 0);
      return { open: this.#server.openRequests, holds, heldTokens, uncommitted, busy, waiting: this.pool.waiting };
    };
    const quiet = { open: 0, holds: 0, heldTokens: 0, uncommitted: 0, busy: 0, waiting: 0 };
    await eventually("nothing is open any more", async () => Bun.deepEquals(state(), quiet)).catch(() =>
      expect(state()).toEqual(quiet),
    );
    expect((await this.accounting.verify()).violations).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(0);
    await this.pool.close();
    await this.accounting.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
