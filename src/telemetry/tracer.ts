// Traces over OTLP/HTTP to a configured collector: one span per request, and below it the wait for a node, each
// generation, each call of our own tools and the settling. Spans are built from the request's record when it is over,
// so that serving a request knows nothing about them. They contain numbers and names, never a prompt, an answer or a
// key.
//
// The packages are loaded only when traces are wanted: without them a start takes no longer and no more memory.
import type { Attributes, Context, Span as OpenSpan, Tracer as OpenTelemetryTracer } from "@opentelemetry/api";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { Ms } from "../core/types.ts";
import type { RequestRecord, RoundRecord, Span } from "./request-record.ts";

export interface Tracer {
  /** Takes a finished request; never throws and never waits. */
  trace(record: RequestRecord): void;
  /** Sends what is left, for a few seconds at most. */
  close(): Promise<void>;
}

export type TracerOptions = Readonly<{
  /** Base address of the collector, like OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is added. */
  endpoint: string;
  /** The part of the traces beginning here to send, 0 to 1; callers' own choices are kept. */
  sampleRatio: number;
  version: string;
  clock: Pick<Clock, "monotonic">;
  log: Log;
}>;

const sendIntervalMs = 1_000;
/** How often the log reports a collector that is away. */
const logIntervalMs = 60_000;
/** A collector that is away must not delay a stop. */
const closeMs = 3_000;

/** Loads the packages and starts to send in the background. */
export async function openTracer({ endpoint, sampleRatio, version, clock, log }: TracerOptions): Promise<Tracer> {
  const [api, sdk, resources, otlp] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-trace-otlp-http"),
  ]);
  const quiet = () => {};
  const failed = failureLog(clock, log);
  api.diag.setLogger(
    { error: failed, warn: failed, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ "service.name": "tollgate", "service.version": version }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new otlp.OTLPTraceExporter({ url: `${endpoint}/v1/traces` }),
        scheduledDelayMillis: sendIntervalMs,
      }),
    ],
  });
  const spans = new RequestSpans(api, provider.getTracer("tollgate", version));
  return {
    trace: (record) => spans.add(record),
    async close() {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closeMs);
      await Promise.race([provider.shutdown().catch((error: Error) => failed(error.message)), late]);
      clearTimeout(timer);
    },
  };
}

function failureLog(clock: Pick<Clock, "monotonic">, log: Log): (message: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = clock.monotonic();
    if (now - loggedAt < logIntervalMs) return;
    loggedAt = now;
    const reason = /"message":"([^"]+)"/.exec(message)?.[1] ?? message; // it comes with a stack, as JSON
    log("warn", "traces could not be sent", { reason: reason.slice(0, 200) });
  };
}

/** Builds the spans of requests that are over. */
class RequestSpans {
  readonly #api: typeof import("@opentelemetry/api");
  readonly #tracer: OpenTelemetryTracer;

  constructor(api: typeof import("@opentelemetry/api"), tracer: OpenTelemetryTracer) {
    this.#api = api;
    this.#tracer = tracer;
  }

  add(record: RequestRecord): void {
    const { SpanKind, ROOT_CONTEXT, trace } = this.#api;
    const wallOf = (at: Ms): Ms => record.arrivedWall + (at - record.arrivedAt);
    const root = this.#tracer.startSpan(
      `POST ${record.endpoint}`,
      { kind: SpanKind.SERVER, startTime: record.arrivedWall, attributes: requestAttributes(record) },
      this.#callersContext(record.traceparent),
    );
    if (root.isRecording()) this.#addChildren(record, trace.setSpan(ROOT_CONTEXT, root), wallOf);
    if (record.refusal !== null) this.#fail(root, record.refusal);
    root.end(wallOf(record.endedAt ?? record.arrivedAt));
  }

  #addChildren(record: RequestRecord, context: Context, wallOf: (at: Ms) => Ms): void {
    const child = (name: string, { from, to }: Span, attributes: Attributes = {}): void => {
      this.#tracer.startSpan(name, { startTime: wallOf(from), attributes }, context).end(wallOf(to));
    };
    if (record.media !== null) child("media", record.media);
    for (const round of record.rounds) {
      const { queuedAt, startedAt, endedAt } = round;
      child("queue", { from: queuedAt, to: startedAt ?? endedAt });
      if (startedAt !== null) this.#addGeneration(record, round, startedAt, context, wallOf);
    }
    for (const call of record.toolCalls) {
      const name = call.isSearch ? "web_search" : "mcp";
      child(`execute_tool ${name}`, call, {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        ...(call.failed ? { "error.type": "tool_failed" } : {}),
      });
    }
    const { settling } = record;
    if (settling !== null && settling.to !== null) child("settle", { from: settling.from, to: settling.to });
  }

  #addGeneration(
    record: RequestRecord,
    round: RoundRecord,
    startedAt: Ms,
    context: Context,
    wallOf: (at: Ms) => Ms,
  ): void {
    const attributes = generationAttributes(record, round);
    const startTime = wallOf(startedAt);
    const name = `chat ${record.model?.id ?? ""}`;
    const span = this.#tracer.startSpan(name, { kind: this.#api.SpanKind.CLIENT, startTime, attributes }, context);
    if (round.firstPieceAt !== null) span.addEvent("gen_ai.first_token", wallOf(round.firstPieceAt));
    if (round.ending === "failed") this.#fail(span, "generation_failed");
    span.end(wallOf(round.endedAt));
  }

  #fail(span: OpenSpan, reason: string): void {
    span.setAttribute("error.type", reason);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
  }

  /** The request joins its caller's trace where the caller names one. */
  #callersContext(traceparent: string | null): Context {
    const { TraceFlags, ROOT_CONTEXT, trace } = this.#api;
    const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? "") ?? [];
    if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
    const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  }
}

/** Names follow OpenTelemetry's semantic conventions for HTTP and generative AI. */
function requestAttributes(record: RequestRecord): Attributes {
  const { model, usage, finishReason } = record;
  return {
    "http.request.method": "POST",
    "http.route": record.endpoint,
    "http.response.status_code": record.status ?? 0,
    "tollgate.request.id": record.requestId,
    "tollgate.stream": record.streamed,
    ...(record.account === null ? {} : { "tollgate.account.id": record.account }),
    ...(record.key === null ? {} : { "tollgate.key.id": record.key }),
    ...(record.ending === null ? {} : { "tollgate.ending": record.ending }),
    ...(model === null ? {} : { "gen_ai.operation.name": "chat", "gen_ai.request.model": model.id }),
    ...(record.outputTokensMax === null ? {} : { "gen_ai.request.max_tokens": record.outputTokensMax }),
    ...(finishReason === null ? {} : { "gen_ai.response.finish_reasons": [finishReason] }),
    ...(usage === null ? {} : usageAttributes(usage)),
  };
}

/** The node appears under its configured name, never its address. */
function generationAttributes(record: RequestRecord, { node, usage }: RoundRecord): Attributes {
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": record.model?.id ?? "",
    "tollgate.node": node ?? "",
    ...(usage === null ? {} : usageAttributes(usage)),
  };
}

const usageAttributes = (usage: NonNullable<RequestRecord["usage"]>): Attributes => ({
  "gen_ai.usage.input_tokens": usage.inputFresh + usage.inputCached,
  "gen_ai.usage.cache_read.input_tokens": usage.inputCached,
  "gen_ai.usage.output_tokens": usage.output,
});
