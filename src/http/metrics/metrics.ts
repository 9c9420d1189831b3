// What the process reports to Prometheus. Labels are bounded: our routes, the catalog's models, the first named keys.
import { ActivityCounts } from "../../telemetry/activity-counts.ts";
import { FailedRequests } from "../../telemetry/failed-requests.ts";
import type { RequestRecord } from "../../telemetry/request-record.ts";
import { defaultKey, type Ms } from "../../core/types.ts";
import { type Cell, type Counted, Counter, type Gauge, gaugeLines, Histogram } from "./metric.ts";

/** Named keys that a thread's metrics distinguish. */
const metricKeysMax = 200;

const waitSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const quickSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const gapSeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];
const requestSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
const batchEntries = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

export type SearchResult = "found" | "nothing" | "failed";
export type FetchResult = "read" | "refused";

type TokenCells = Readonly<{ input: Cell; cachedInput: Cell; output: Cell }>;

export class Metrics {
  /** The same by minute, for the operators' charts. */
  readonly activity = new ActivityCounts();
  /** Requests of the log that are in no journal. */
  readonly failed = new FailedRequests();
  readonly #all: (Counter | Histogram)[] = [];
  readonly #requests = this.#counter("tollgate_requests_total", "Requests by the status that their headers carried.", [
    "endpoint",
    "model",
    "status",
  ]);
  readonly #refusals = this.#counter("tollgate_refusals_total", "Refused and failed requests, by reason.", ["reason"]);
  readonly #endings = this.#counter(
    "tollgate_answers_total",
    "Answers by their ending: end, gone (the client left), failed.",
    ["ending"],
  );
  readonly #tokens = this.#counter("tollgate_tokens_total", "Charged tokens: input, cached input and output.", [
    "model",
    "kind",
  ]);
  readonly #tokenCells = new Map<string, TokenCells>();
  readonly #keyTokens = this.#counter(
    "tollgate_key_tokens_total",
    "Charged tokens of named keys, input and output, by the numbers of account and key.",
    ["account", "key"],
  );
  readonly #keyCells = new Map<string, Cell>();
  readonly #estimated = this.#counter(
    "tollgate_estimated_answers_total",
    "Answers whose usage the gateway counted, because no node reported it.",
  );
  readonly #firstToken = this.#histogram(
    "tollgate_time_to_first_token_seconds",
    "From the request's arrival to the first piece of its answer.",
    waitSeconds,
    "model",
  );
  readonly #queueWait = this.#histogram(
    "tollgate_queue_wait_seconds",
    "Time that requests wait for a slot on a node.",
    waitSeconds,
    "priority",
  );
  readonly #gaps = this.#histogram(
    "tollgate_token_gap_seconds",
    "Time between two reads of an answer, measured in one of 64 streams.",
    gapSeconds,
  );
  readonly #duration = this.#histogram(
    "tollgate_request_duration_seconds",
    "From the request's arrival to the end of its answer.",
    requestSeconds,
    "endpoint",
  );
  readonly #settle = this.#histogram(
    "tollgate_settle_duration_seconds",
    "Time that the end of an answer waits until its charge is on disk.",
    quickSeconds,
  );
  readonly #batches = this.#histogram(
    "tollgate_journal_batch_entries",
    "Journal lines and changes in one commit.",
    batchEntries,
  );
  readonly #commits = this.#histogram(
    "tollgate_journal_commit_duration_seconds",
    "Duration of a commit, from the main thread and back.",
    quickSeconds,
  );
  readonly #loopDelay = this.#histogram(
    "tollgate_event_loop_delay_seconds",
    "Delay of an event loop timer, measured five times a second.",
    quickSeconds,
  );
  readonly #rounds = this.#counter("tollgate_tool_rounds_total", "Rounds after an answer's first, for tool calls.");
  readonly #toolCalls = this.#counter("tollgate_tool_calls_total", "Tool calls that the gateway ran itself.", [
    "kind",
    "result",
  ]);
  readonly #searches = this.#counter("tollgate_searches_total", "Searches by result.", ["result"]);
  readonly #repeats = this.#counter(
    "tollgate_structured_output_repeats_total",
    "Answers that missed their format and were requested again.",
  );
  readonly #unlisted = this.#counter(
    "tollgate_request_log_dropped_total",
    "Refused or failed requests without a row of their own in the request log, because there were too many in a minute.",
  );
  readonly #fetches = this.#counter("tollgate_media_fetches_total", "Images and files fetched for requests.", [
    "result",
  ]);
  readonly #fetchedBytes = this.#counter("tollgate_media_fetched_bytes_total", "Bytes of images and files fetched.");

  #counter(...given: ConstructorParameters<typeof Counter>): Counter {
    const counter = new Counter(...given);
    this.#all.push(counter);
    return counter;
  }

  #histogram(...given: ConstructorParameters<typeof Histogram>): Histogram {
    const histogram = new Histogram(...given);
    this.#all.push(histogram);
    return histogram;
  }

  count(record: RequestRecord): void {
    this.activity.count(record);
    const model = record.model?.id ?? "other";
    this.#requests.add(1, record.endpoint, model, String(record.status ?? 0));
    if (record.refusal !== null) this.#refusals.add(1, record.refusal);
    // A client that left and was charged is in the journal, like one that was served.
    const isListed = record.refusal !== null || (record.ending === "cancelled" && record.usage === null);
    if (!isListed) this.failed.served(record);
    else if (!this.failed.add(record)) this.#unlisted.add(1);
    if (record.ending === null) return;
    this.#endings.add(1, record.ending);
    this.#duration.add(((record.endedAt ?? record.arrivedAt) - record.arrivedAt) / 1000, record.endpoint);
    this.#countAnswer(record, model);
  }

  #countAnswer(record: RequestRecord, model: string): void {
    const { usage, firstPieceAt, settling, rounds, toolCalls } = record;
    if (usage !== null) {
      const { input, cachedInput, output } = this.#tokensOf(model);
      input.value += usage.inputFresh;
      cachedInput.value += usage.inputCached;
      output.value += usage.output;
      if (record.key !== null && record.key > defaultKey) {
        this.#keyCell(`${record.account}`, `${record.key}`).value +=
          usage.inputFresh + usage.inputCached + usage.output;
      }
    }
    if (record.estimated) this.#estimated.add(1);
    if (firstPieceAt !== null) this.#firstToken.add((firstPieceAt - record.arrivedAt) / 1000, model);
    if (settling !== null && settling.to !== null) this.#settle.add((settling.to - settling.from) / 1000);
    for (const { queuedAt, startedAt, endedAt } of rounds) {
      this.#queueWait.add(((startedAt ?? endedAt) - queuedAt) / 1000, record.priority);
    }
    for (const { isSearch, failed } of toolCalls) {
      this.#toolCalls.add(1, isSearch ? "search" : "mcp", failed ? "failed" : "done");
    }
    if (record.toolRounds > 1) this.#rounds.add(record.toolRounds - 1);
    if (record.repeats > 0) this.#repeats.add(record.repeats);
  }

  /** Accounts and keys are unbounded: all after the first ones share one cell. */
  #keyCell(account: string, key: string): Cell {
    const name = `${account} ${key}`;
    const known = this.#keyCells.get(name);
    if (known !== undefined) return known;
    if (this.#keyCells.size >= metricKeysMax) return this.#keyTokens.cell("other", "other");
    const cell = this.#keyTokens.cell(account, key);
    this.#keyCells.set(name, cell);
    return cell;
  }

  #tokensOf(model: string): TokenCells {
    let cells = this.#tokenCells.get(model);
    if (cells === undefined) {
      const cell = (kind: string) => this.#tokens.cell(model, kind);
      this.#tokenCells.set(
        model,
        (cells = { input: cell("input"), cachedInput: cell("cached_input"), output: cell("output") }),
      );
    }
    return cells;
  }

  readonly countGap = (gapMs: Ms): void => this.#gaps.add(gapMs / 1000);

  readonly countCommit = (entries: number, durationMs: Ms): void => {
    this.#batches.add(entries);
    this.#commits.add(durationMs / 1000);
  };

  countLoopDelay(delayMs: Ms): void {
    this.#loopDelay.add(delayMs / 1000);
  }

  countSearch(result: SearchResult): void {
    this.#searches.add(1, result);
  }

  countFetch(result: FetchResult, bytes: number): void {
    this.#fetches.add(1, result);
    this.#fetchedBytes.add(bytes);
  }

  /** All counts, for `addCounted` on another thread. */
  counted(): readonly Counted[] {
    return this.#all.map((metric) => metric.counted());
  }

  addCounted(counted: readonly Counted[]): void {
    for (const [place, metric] of this.#all.entries()) metric.addCounted(counted[place] ?? []);
  }

  text(gauges: Iterable<Gauge>): string {
    const lines: string[] = [];
    for (const metric of this.#all) lines.push(...metric.lines());
    lines.push(...gaugeLines(gauges));
    return `${lines.join("\n")}\n`;
  }
}
