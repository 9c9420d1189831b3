// Follows each request from arrival to end, then reports it to the metrics, the log and the traces.
import type { Clock } from "../../core/clock.ts";
import type { Log, LogFields } from "../../core/log.ts";
import { refusals } from "../../core/refusals.ts";
import { ActiveSet, type ActiveHandle } from "../../core/active-set.ts";
import { RequestRecord } from "../../telemetry/request-record.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { Refused } from "../../gateway.ts";
import type { Ask, Endpoint, Ms, Principal } from "../../core/types.ts";
import { mintRequestId } from "../../core/request-id.ts";
import type { Metrics } from "./metrics.ts";

/** Gaps between the reads of an answer are measured in one of this many requests. */
const gapStreamsPerSample = 64;

export type RequestWatchParts = Readonly<{
  metrics: Metrics;
  clock: Clock;
  log: Log;
  /** True: each request is a line of the log at debug level. */
  logsRequests: boolean;
  /** Null where tracing is off. */
  tracer: Pick<Tracer, "begin" | "trace"> | null;
}>;

export class RequestWatch {
  readonly #parts: RequestWatchParts;
  readonly #open = new ActiveSet<RequestRecord>();
  #arrivals = 0;

  constructor(parts: RequestWatchParts) {
    this.#parts = parts;
  }

  /** A request came; its id is minted here. */
  arrived(endpoint: Endpoint, headers: Headers, address: string | null): RequestRecord {
    const { clock, metrics, tracer } = this.#parts;
    const now = clock.wall();
    this.#arrivals += 1;
    const record = new RequestRecord(
      mintRequestId(now),
      endpoint,
      now,
      clock.monotonic(),
      tracer?.begin(headers) ?? null,
      this.#arrivals % gapStreamsPerSample === 1 ? metrics.countGap : null,
    );
    record.address = address;
    return record;
  }

  /** Its reply is the refusal, which ends it. */
  refused(record: RequestRecord, { refused, ask, by }: Refused): void {
    if (ask !== null) this.#describe(record, ask);
    if (by !== null) this.#isBy(record, by);
    record.refusal = refused.refusal;
    record.endedAt = this.#parts.clock.monotonic();
  }

  /** Pass the result to `ended`. */
  admitted(
    record: RequestRecord,
    principal: Principal,
    ask: Ask,
    endUser: string | null = null,
  ): ActiveHandle<RequestRecord> {
    this.#describe(record, ask);
    this.#isBy(record, principal);
    record.endUser = endUser;
    return this.#open.join(record);
  }

  replied(record: RequestRecord, status: number): void {
    record.status = status;
    if (record.endedAt !== null) this.#tell(record);
  }

  ended(record: RequestRecord, handle: ActiveHandle<RequestRecord>): void {
    this.#open.leave(handle);
    record.endedAt = this.#parts.clock.monotonic();
    if (record.status !== null) this.#tell(record);
  }

  /** Complete answers whose ends wait for their charge to reach the disk. */
  get heldEnds(): number {
    let held = 0;
    for (const { settling } of this.#open.members()) if (settling !== null && settling.to === null) held += 1;
    return held;
  }

  #isBy(record: RequestRecord, { account, key }: Principal): void {
    record.account = account;
    record.key = key;
  }

  #describe(record: RequestRecord, ask: Ask): void {
    const { model, outputTokensMax, stream, tags } = ask;
    if (record.trace !== null) record.ask = ask;
    record.model = model;
    record.outputTokensMax = outputTokensMax;
    record.streamed = stream;
    record.tags = tags;
  }

  #tell(record: RequestRecord): void {
    const { metrics, log, logsRequests, tracer } = this.#parts;
    metrics.count(record);
    tracer?.trace(record);
    const isOurFault = record.refusal !== null && refusals[record.refusal].status >= 500;
    if (isOurFault) log("warn", "request failed", fieldsOf(record));
    else if (logsRequests) log("debug", "request", fieldsOf(record));
  }
}

function fieldsOf(record: RequestRecord): LogFields {
  const { usage, rounds, arrivedAt, endedAt, firstPieceAt, settling } = record;
  const since = (at: Ms | null): number | null => (at === null ? null : Math.round(at - arrivedAt));
  const last = rounds.at(-1);
  return {
    requestId: record.requestId,
    endpoint: record.endpoint,
    model: record.model?.id ?? null,
    ...(record.model?.standsFor === undefined ? {} : { askedModel: record.model.standsFor }),
    account: record.account,
    key: record.key,
    ...(record.endUser === null ? {} : { endUser: record.endUser }),
    status: record.status,
    ending: record.ending,
    refusal: record.refusal,
    ...(record.cause === null ? {} : { cause: record.cause }),
    node: last?.node ?? null,
    rounds: rounds.length,
    firstTokenMs: since(firstPieceAt),
    durationMs: since(endedAt),
    settleMs: settling?.to == null ? null : Math.round(settling.to - settling.from),
    input: usage === null ? null : usage.inputFresh + usage.inputCached,
    cachedInput: usage?.inputCached ?? null,
    output: usage?.output ?? null,
  };
}
