// A relay: one of the threads that serve clients. It does the work that takes time for each request and token: HTTP,
// bodies, dialects, the nodes' sockets. Decisions that must be made in one place it requests from the main thread.
import { assert } from "../core/assert.ts";
import { LiveCatalog, modelsByName } from "../core/catalog.ts";
import { systemClock } from "../core/clock.ts";
import { Tracing } from "../telemetry/tracing.ts";
import type { GatewayParts } from "../gateway.ts";
import type { RunningServer } from "../http/app.ts";
import { Metrics } from "../http/metrics/metrics.ts";
import { startRelayServer } from "./relay-app.ts";
import { openLog, usualLogFormat } from "../core/log.ts";
import { endWorker } from "../core/workers.ts";
import { MainThreadClient } from "./main-thread-client.ts";
import { mainServes } from "./main-serves.ts";
import type { RelayOperation, RelayRules, ToRelay } from "./messages.ts";
import { MessageBatcher } from "./message-batcher.ts";
import { RelayPool } from "./relay-pool.ts";
import { saltSeedOf } from "../nodes/prefix-cache.ts";
import type { Opening, RelayOrder, RelayReport, Reported } from "./relays.ts";
import { TokenCounter } from "../tokens/counter.ts";
import { TokenCounts } from "../tokens/node-count.ts";
import { AnswerChecker } from "../tools/format/answer-checker.ts";
import { ModelHabits } from "../tools/model-habits.ts";

declare const self: Worker;

class RelayThread {
  readonly #mainThread: MainThreadClient;
  readonly #pool: RelayPool;
  readonly #catalog: LiveCatalog;
  readonly #metrics = new Metrics();
  readonly #counter: TokenCounter;
  readonly #counts: TokenCounts;
  readonly #checker: AnswerChecker;
  readonly #opening: Opening;
  readonly #log;
  #rules: RelayRules;
  readonly #tracing: Tracing;
  #server: Omit<RunningServer, "url"> | null = null;

  constructor(opening: Opening) {
    const { fixed, rules, keysVersion } = opening;
    const versions = new Int32Array(keysVersion);
    this.#opening = opening;
    this.#rules = rules;
    const levelNow = () => this.#rules.options.logLevel; // another one after a reload
    this.#log = openLog({
      get level() {
        return levelNow();
      },
      format: fixed.logFormat ?? usualLogFormat(),
      time: () => systemClock.wall(),
      secrets: () => this.#rules.secrets,
    });
    this.#tracing = new Tracing(this.#log);
    const batcher = new MessageBatcher<RelayOperation>((json) => self.postMessage(json));
    this.#mainThread = new MainThreadClient(batcher, () => Atomics.load(versions, 0));
    this.#catalog = new LiveCatalog(catalogOf(rules));
    this.#pool = new RelayPool(
      this.#mainThread,
      systemClock,
      (ask, account, cancelSignal) => this.#counts.ofUncounted(ask, account, cancelSignal),
      this.#catalog.nodeModelOf,
      saltSeedOf(opening.sealingKey),
    );
    this.#counter = new TokenCounter({ log: this.#log });
    this.#counts = new TokenCounts(this.#counter, this.#pool, systemClock);
    this.#checker = new AnswerChecker({ log: this.#log });
  }

  async listen(): Promise<void> {
    const { fixed, port, unix, sealingKey } = this.#opening;
    const { options } = this.#rules;
    const log = this.#log;
    const clock = systemClock;
    const counts = this.#counts;
    const parts: GatewayParts = {
      keys: this.#mainThread,
      admission: this.#mainThread,
      catalog: this.#catalog,
      isForOthers: (ask) => mainServes(ask, this.#rules.options),
      pool: this.#pool,
      habits: new ModelHabits(),
      countInput: (ask, account) => counts.ofUnreported(ask, account),
      storedResponses:
        options.storedResponses === null
          ? null
          : {
              keep:
                fixed.databaseUrl === null
                  ? (account, response) => this.#mainThread.keep(account, response)
                  : (account, response) => this.#mainThread.keepAwaited(account, response),
              find: () => Promise.reject(new Error("what refers to stored responses is passed on")),
            },
      checker: this.#checker,
      clock,
      log,
      endUserHeader: () => this.#rules.options.endUserHeader,
    };
    // Loaded only where traces are wanted.
    await this.#tracing.follow(options);
    try {
      this.#server = startRelayServer(parts, {
        host: fixed.host,
        port,
        unix,
        addressHeader: fixed.addressHeader,
        sealingKey,
        counts,
        metrics: this.#metrics,
        tracing: this.#tracing,
        logsRequests: () => this.#rules.options.logLevel === "debug",
        corsOrigins: () => this.#rules.options.corsOrigins,
        decided: () => this.#mainThread.decided(),
      });
      report({ report: "listening" });
    } catch (error) {
      const { code = "", message } = error as Error & { code?: string };
      report({ report: "cannot listen", code, message });
    }
  }

  said(message: ToRelay): void {
    if ("answer" in message) return this.#mainThread.answered(message);
    switch (message.news) {
      case "nodes":
        return this.#pool.nodesChanged(message.nodes);
      case "engine":
        return this.#pool.engineFound(message.node, message.engine);
      case "health":
        return this.#pool.healthChanged(message.node, message.health);
      case "drained":
        return this.#pool.drainedChanged(message.nodes);
      case "rules":
        this.#rules = message.rules;
        void this.#tracing.follow(message.rules.options);
        return this.#catalog.replace(catalogOf(message.rules));
    }
  }

  tellSoFar(number: number, of: Reported): void {
    const { activity, failed } = this.#metrics;
    const counted = of === "metrics" ? this.#metrics.counted() : of === "activity" ? activity.take() : [failed.take()];
    report({ report: "so far", number, counted });
  }

  async stop(graceMs: number): Promise<void> {
    const stopped = this.#server?.stop(graceMs);
    report({ report: "refusing" });
    await stopped;
    await this.#counter.close();
    await this.#checker.close();
    this.#pool.nodesChanged([]);
    await this.#tracing.close();
    const { activity, failed } = this.#metrics;
    report({ report: "stopped", last: { activity: activity.take(), failed: failed.take() } });
    endWorker(self);
  }
}

const catalogOf = ({ models, plans, creditPacksTokens }: RelayRules) => ({
  models: modelsByName(models),
  plans,
  creditPacksTokens,
});

let relay: RelayThread | null = null;

// Installed before anything is awaited, because an earlier message would be lost.
self.onmessage = ({ data }: MessageEvent<string | RelayOrder>) => {
  if (typeof data !== "string") return obey(data);
  assert(relay !== null, "a relay is opened first");
  for (const message of JSON.parse(data) as readonly ToRelay[]) relay.said(message);
};

function obey(order: RelayOrder): void {
  switch (order.order) {
    case "open":
      relay = new RelayThread(order.opening);
      return;
    case "listen":
      return void relay!.listen();
    case "report":
      return relay!.tellSoFar(order.number, order.of);
    case "stop":
      return void relay!.stop(order.graceMs);
  }
}

function report(message: RelayReport): void {
  self.postMessage(message);
}
