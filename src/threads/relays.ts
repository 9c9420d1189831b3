// The main thread's side of all relays: starts them, keeps a session for each, and sends them changes. A relay that
// dies is fatal, like the journal's writer: what it held is unknown then, and only the next start can find out.
import type { FixedOptions } from "../config/config.ts";
import type { ActivityRow } from "../core/activity.ts";
import type { FailedBatch } from "../core/request-log.ts";
import type { AccountId, Ms } from "../core/types.ts";
import { startWorker } from "../core/workers.ts";
import { RelaySession, type RelaySessionParts } from "./relay-session.ts";
import type { FollowedNodes } from "./followed-nodes.ts";
import type { News, RelayRules, ToRelay } from "./messages.ts";
import { MessageBatcher } from "./message-batcher.ts";

/** To a relay's Worker, beside texts, which are answers and news. `number` identifies the requested report. */
export type RelayOrder =
  | Readonly<{ order: "open"; opening: Opening }>
  | Readonly<{ order: "listen" }>
  /** Answered once everything before it was processed. */
  | Readonly<{ order: "report"; number: number; of: Reported }>
  | Readonly<{ order: "stop"; graceMs: Ms }>;

/** The totals of its metrics, or what it recorded for the charts or the request log since the last report. */
export type Reported = "metrics" | "activity" | "failed";

/** What a stopped relay had recorded for the charts and the request log since its last report. */
export type LastWords = Readonly<{ activity: readonly ActivityRow[]; failed: FailedBatch }>;

/** From a relay's Worker, beside texts, which are operations. */
export type RelayReport<Counted = unknown> =
  | Readonly<{ report: "listening" }>
  | Readonly<{ report: "cannot listen"; code: string; message: string }>
  | Readonly<{ report: "so far"; number: number; counted: Counted }>
  | Readonly<{ report: "refusing" }>
  | Readonly<{ report: "stopped"; last: LastWords }>;

/** What a relay needs to know from its start on. */
export type Opening = Readonly<{
  fixed: FixedOptions;
  /** The port to listen on; the one in `fixed` may be 0. */
  port: number;
  /** The complete server's socket. */
  unix: string;
  sealingKey: Uint8Array;
  /** One Int32 that is raised when a key becomes void. */
  keysVersion: SharedArrayBuffer;
  rules: RelayRules;
}>;

class RelayFailed extends Error {
  override readonly name = "RelayFailed";
}

export type RelaysParts = Readonly<{
  nodes: FollowedNodes;
  /** A relay died: end the process at once. */
  onFatal(error: Error): void;
  /** From a relay that stopped. */
  onLastWords(last: LastWords): void;
  /** Creates another Worker than a relay; for tests. Thread tools show the name. */
  startWorker?: (name: string) => Worker;
}>;

const startRelayWorker = (name: string): Worker => startWorker("threads/relay-worker.ts", name);

export class Relays {
  readonly #relays: readonly Relay[];
  readonly #keysVersion: Int32Array;
  #stopping: Promise<Readonly<{ stopped: Promise<unknown> }>> | null = null;

  /** Starts N relays, which do not listen yet. */
  constructor(
    threads: number,
    opening: Omit<Opening, "keysVersion">,
    {
      nodes,
      onFatal,
      onLastWords,
      startWorker: start = startRelayWorker,
      ...parts
    }: Omit<RelaySessionParts, "keysVersion"> & RelaysParts,
  ) {
    const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const keysVersion = new Int32Array(shared);
    const relaySessionParts = { ...parts, keysVersion: () => Atomics.load(keysVersion, 0) };
    this.#keysVersion = keysVersion;
    this.#relays = Array.from({ length: threads }, (_none, place) => {
      const worker = start(`relay ${place + 1}`);
      return new Relay(worker, { ...opening, keysVersion: shared }, nodes.known(), relaySessionParts, {
        onFatal,
        onLastWords,
      });
    });
    nodes.onNews = (news) => {
      for (const relay of this.#relays) relay.tell(news);
    };
  }

  /** Resolves when all listen; rejects with the system's message where one cannot. */
  async listen(): Promise<void> {
    await Promise.all(this.#relays.map((relay) => relay.listen()));
  }

  /** From now on, relays must ask again about every key. */
  voidKeys(): void {
    Atomics.add(this.#keysVersion, 0, 1);
  }

  /** Resolves when all relays apply these rules. */
  async adopt(rules: RelayRules): Promise<void> {
    for (const relay of this.#relays) relay.tell({ news: "rules", rules });
    await this.reports("metrics");
  }

  reports(of: Reported): Promise<readonly unknown[]> {
    return Promise.all(this.#relays.map((relay) => relay.report(of)));
  }

  get openRequests(): number {
    return this.#sum(({ session }) => session.openRequests);
  }

  openRequestsOf(account: AccountId): number {
    return this.#sum(({ session }) => session.openRequestsOf(account));
  }

  get heldEnds(): number {
    return this.#sum(({ session }) => session.heldEnds);
  }

  /**
   * Resolves when they take no new work. The promise in the result resolves when their open requests have ended, or
   * were cut after `graceMs`. A second call joins the same stop.
   */
  stop(graceMs: Ms): Promise<Readonly<{ stopped: Promise<unknown> }>> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: Ms): Promise<Readonly<{ stopped: Promise<unknown> }>> {
    const stopping = this.#relays.map((relay) => relay.stop(graceMs));
    await Promise.all(stopping.map(({ refusing }) => refusing));
    return { stopped: Promise.all(stopping.map(({ stopped }) => stopped)) };
  }

  #sum(of: (relay: Relay) => number): number {
    return this.#relays.reduce((sum, relay) => sum + of(relay), 0);
  }
}

class Relay {
  readonly session: RelaySession;
  readonly #worker: Worker;
  readonly #batcher: MessageBatcher<ToRelay>;
  readonly #listening = Promise.withResolvers<void>();
  readonly #refusing = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #reports = new Map<number, (counted: unknown) => void>();
  readonly #onLastWords: RelaysParts["onLastWords"];
  #nextReport = 1;
  #isStopped = false;

  constructor(
    worker: Worker,
    opening: Opening,
    known: Iterable<News>,
    parts: RelaySessionParts,
    { onFatal, onLastWords }: Pick<RelaysParts, "onFatal" | "onLastWords">,
  ) {
    this.#worker = worker;
    this.#onLastWords = onLastWords;
    this.#batcher = new MessageBatcher((json) => this.#worker.postMessage(json));
    this.session = new RelaySession(parts, this.#batcher);
    this.#worker.onmessage = ({ data }: MessageEvent<string | RelayReport>) => {
      if (typeof data === "string") this.session.obey(data);
      else this.#reported(data);
    };
    this.#worker.onerror = ({ message }) => onFatal(new RelayFailed(`a relay failed: ${message}`));
    this.#worker.addEventListener("close", () => {
      if (!this.#isStopped) onFatal(new RelayFailed("a relay ended"));
    });
    this.#order({ order: "open", opening });
    for (const news of known) this.#batcher.put(news);
    this.#batcher.flush();
  }

  listen(): Promise<void> {
    this.#order({ order: "listen" });
    return this.#listening.promise;
  }

  tell(news: News): void {
    this.#batcher.put(news);
  }

  /** Empty where it has stopped. */
  report(of: Reported): Promise<unknown> {
    if (this.#isStopped) return Promise.resolve([]);
    this.#batcher.flush(); // earlier messages are processed first
    const number = this.#nextReport++;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#reports.set(number, resolve);
    this.#order({ order: "report", number, of });
    return promise;
  }

  stop(graceMs: Ms): Readonly<{ refusing: Promise<void>; stopped: Promise<void> }> {
    this.#order({ order: "stop", graceMs });
    return { refusing: this.#refusing.promise, stopped: this.#stopped.promise };
  }

  #order(order: RelayOrder): void {
    this.#worker.postMessage(order);
  }

  #reported(report: RelayReport): void {
    switch (report.report) {
      case "listening":
        return this.#listening.resolve();
      case "cannot listen":
        return this.#listening.reject(Object.assign(new Error(report.message), { code: report.code }));
      case "so far":
        this.#reports.get(report.number)?.(report.counted);
        this.#reports.delete(report.number);
        return;
      case "refusing":
        return this.#refusing.resolve();
      case "stopped":
        this.#isStopped = true;
        this.#onLastWords(report.last);
        for (const answer of this.#reports.values()) answer([]); // it hears of them no more
        return this.#stopped.resolve();
    }
  }
}
