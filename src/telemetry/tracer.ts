// Traces over OTLP/HTTP to a configured collector: one span per request, and below it the wait for a node, each
// generation, each call of our own tools and the settling. Spans are built from the request's record when it is over,
// so that serving a request knows nothing about them. They contain numbers and names, never a key, and a prompt or an
// answer only where the operator allows it, and the account opted in or the request asks for it. Names follow the semantic conventions for
// generative AI, which Phoenix and Langfuse read; beside them stand these two's names for tags and kinds of spans.
//
// The packages are loaded only when traces are wanted: without them a start takes no longer and no more memory.
import type {
  Attributes,
  Context,
  Histogram,
  Span as OpenSpan,
  Tracer as OpenTelemetryTracer,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { PushMetricExporter } from "@opentelemetry/sdk-metrics";
import type { Clock } from "../core/clock.ts";
import type { TelemetryConfig } from "../config/telemetry.ts";
import type { Log } from "../core/log.ts";
import type { Ms } from "../core/types.ts";
import type { RequestRecord, RoundRecord, Span, Trace } from "./request-record.ts";
import { TracedContent } from "./traced-content.ts";

export interface Tracer {
  /** What its trace takes from a request's headers. */
  begin(headers: Headers): Trace;
  /** Takes a finished request; never throws and never waits. */
  trace(record: RequestRecord): void;
  /** Sends what is left, for a few seconds at most. */
  close(): Promise<void>;
}

export type TracerOptions = Readonly<{
  telemetry: TelemetryConfig;
  version: string;
  clock: Pick<Clock, "monotonic">;
  log: Log;
}>;

/** Where coding agents and other programs name their session, the first that is there. */
const sessionHeaders = ["x-session-id", "session_id", "session-id", "x-claude-code-session-id", "langfuse_session_id"];
const wordMaxLength = 200;
const tagsMax = 20;
/** Spans that wait for a collector: a fifth of them may have contents. */
const spansMax = 2_048;
const spansMaxWithContent = 512;
const sendIntervalMs = 1_000;
/** How often the log reports a collector that is away. */
const logIntervalMs = 60_000;
/** A collector that is away must not delay a stop. */
const closeMs = 3_000;

/** Loads the packages and starts to send in the background. */
export async function openTracer({ telemetry, version, clock, log }: TracerOptions): Promise<Tracer> {
  const [api, sdk, resources, exporters] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    exportersTo(telemetry),
  ]);
  const quiet = () => {};
  const failed = failureLog(clock, log);
  api.diag.setLogger(
    { error: failed, warn: failed, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const resource = resources.resourceFromAttributes({
    "service.name": "tollgate",
    "service.version": version,
    "service.instance.id": crypto.randomUUID(), // each thread counts for itself
  });
  const provider = new sdk.TracerProvider({
    resource,
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(telemetry.sampleRatio) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: exporters.traces(),
        maxQueueSize: telemetry.content ? spansMaxWithContent : spansMax,
        scheduledDelayMillis: sendIntervalMs,
      }),
    ],
  });
  const meters = telemetry.otlpMetrics ? await openMeters(exporters.metrics(), resource, version) : null;
  const spans = new RequestSpans(api, provider.getTracer("tollgate", version), telemetry.users);
  return {
    begin: (headers) => begun(headers, telemetry),
    trace(record) {
      try {
        spans.add(record);
        meters?.add(record);
      } catch (error) {
        failed(String(error)); // the request itself went well
      }
    },
    async close() {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closeMs);
      const ended = Promise.all([provider.shutdown(), meters?.provider.shutdown()]);
      await Promise.race([ended.catch((error: Error) => failed(error.message)), late]);
      clearTimeout(timer);
    },
  };
}

function begun(headers: Headers, { content, contentAccounts, redact }: TelemetryConfig): Trace {
  const asked = headers.get("x-trace-content");
  const mayHaveContent = content && (contentAccounts === null ? asked === "true" : asked !== "false");
  const tags = (headers.get("x-tags") ?? "").split(",", tagsMax).map((tag) => tag.trim().slice(0, wordMaxLength));
  const session = sessionHeaders.map((name) => headers.get(name)).find((named) => named);
  return {
    traceparent: headers.get("traceparent"),
    session: session?.slice(0, wordMaxLength) ?? null,
    tags: tags.filter((tag) => tag !== ""),
    content: mayHaveContent ? new TracedContent(redact, contentAccounts) : null,
  };
}

async function exportersTo({ otlpEndpoint, otlpHeaders, otlpProtocol }: TelemetryConfig) {
  const [{ OTLPExporterBase }, http, forms] = await Promise.all([
    import("@opentelemetry/otlp-exporter-base"),
    import("@opentelemetry/otlp-exporter-base/node-http"),
    import("@opentelemetry/otlp-transformer"),
  ]);
  const isJson = otlpProtocol === "http/json";
  const type = { "Content-Type": isJson ? "application/json" : "application/x-protobuf" };
  const to = (signal: "traces" | "metrics") => {
    const url = `${otlpEndpoint}/v1/${signal}`;
    return http.convertLegacyHttpOptions({ url, headers: otlpHeaders }, signal.toUpperCase(), `v1/${signal}`, type);
  };
  const { createOtlpHttpExportDelegate: sending } = http;
  return {
    traces() {
      const form = isJson ? forms.JsonTraceSerializer : forms.ProtobufTraceSerializer;
      const name = "otlp_http_span_exporter";
      return new OTLPExporterBase(sending(to("traces"), form, name, forms.TraceExporterMetricsHelper, undefined));
    },
    metrics() {
      const form = isJson ? forms.JsonMetricsSerializer : forms.ProtobufMetricsSerializer;
      const name = "otlp_http_metric_exporter";
      return new OTLPExporterBase(sending(to("metrics"), form, name, forms.MetricsExporterMetricsHelper, undefined));
    },
  };
}

async function openMeters(exporter: PushMetricExporter, resource: Resource, version: string) {
  const { MeterProvider, PeriodicExportingMetricReader } = await import("@opentelemetry/sdk-metrics");
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: metricsIntervalMs });
  const provider = new MeterProvider({ resource, readers: [reader] });
  const meter = provider.getMeter("tollgate", version);
  const histogram = (name: string, unit: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit, advice: { explicitBucketBoundaries } });
  return { provider, add: measuring(histogram) };
}

const metricsIntervalMs = 60_000;
const doubling = (from: number, factor: number) => Array.from({ length: 14 }, (_, place) => from * factor ** place);

const firstTokenSeconds = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const perTokenSeconds = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

/** Counts what requests take and use, in the buckets of the conventions. */
function measuring(histogram: (name: string, unit: string, bounds: number[]) => Histogram) {
  const tokens = histogram("gen_ai.client.token.usage", "{token}", doubling(1, 4));
  const duration = histogram("gen_ai.server.request.duration", "s", doubling(0.01, 2));
  const firstToken = histogram("gen_ai.server.time_to_first_token", "s", firstTokenSeconds);
  const perToken = histogram("gen_ai.server.time_per_output_token", "s", perTokenSeconds);
  return (record: RequestRecord): void => {
    const { model, usage, firstPieceAt, arrivedAt, endedAt, refusal, rounds } = record;
    if (model === null || endedAt === null) return;
    const attributes: Attributes = {
      "gen_ai.operation.name": operationOf(record),
      "gen_ai.provider.name": "tollgate",
      "gen_ai.request.model": model.standsFor ?? model.id,
      "gen_ai.response.model": model.id,
    };
    duration.record(
      (endedAt - arrivedAt) / 1_000,
      refusal === null ? attributes : { ...attributes, "error.type": refusal },
    );
    if (firstPieceAt !== null) firstToken.record((firstPieceAt - arrivedAt) / 1_000, attributes);
    if (usage === null) return;
    tokens.record(usage.inputFresh + usage.inputCached, { ...attributes, "gen_ai.token.type": "input" });
    tokens.record(usage.output, { ...attributes, "gen_ai.token.type": "output" });
    const lastAt = rounds.at(-1)?.endedAt ?? endedAt;
    if (firstPieceAt !== null && usage.output > 1)
      perToken.record((lastAt - firstPieceAt) / 1_000 / (usage.output - 1), attributes);
  };
}

function failureLog(clock: Pick<Clock, "monotonic">, log: Log): (message: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = clock.monotonic();
    if (now - loggedAt < logIntervalMs) return;
    loggedAt = now;
    const reason = /"message":"([^"]+)"/.exec(message)?.[1] ?? message; // it comes with a stack, as JSON
    log("warn", "traces or metrics could not be sent", { reason: reason.slice(0, 200) });
  };
}

/** Builds the spans of requests that are over. */
class RequestSpans {
  readonly #api: typeof import("@opentelemetry/api");
  readonly #tracer: OpenTelemetryTracer;

  readonly #users: TelemetryConfig["users"];

  constructor(api: typeof import("@opentelemetry/api"), tracer: OpenTelemetryTracer, users: TelemetryConfig["users"]) {
    this.#api = api;
    this.#tracer = tracer;
    this.#users = users;
  }

  add(record: RequestRecord): void {
    const { SpanKind, ROOT_CONTEXT, trace } = this.#api;
    const wallOf = (at: Ms): Ms => record.arrivedWall + (at - record.arrivedAt);
    const root = this.#tracer.startSpan(
      `POST ${record.endpoint}`,
      { kind: SpanKind.SERVER, startTime: record.arrivedWall, attributes: requestAttributes(record, this.#users) },
      this.#callersContext(record.trace?.traceparent ?? null),
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
    const last = record.rounds.findLast(({ startedAt }) => startedAt !== null);
    for (const round of record.rounds) {
      const { queuedAt, startedAt, endedAt } = round;
      child("queue", { from: queuedAt, to: startedAt ?? endedAt });
      const more = round === last ? contentOf(record) : {};
      if (startedAt !== null) this.#addGeneration(record, round, startedAt, context, wallOf, more);
    }
    for (const call of record.toolCalls) {
      const name = call.isSearch ? "web_search" : "mcp";
      child(`execute_tool ${name}`, call, {
        "openinference.span.kind": "TOOL",
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
    more: Attributes,
  ): void {
    const attributes = { ...generationAttributes(record, round, this.#users), ...more };
    const startTime = wallOf(startedAt);
    const name = `${operationOf(record)} ${record.model?.id ?? ""}`;
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

function requestAttributes(record: RequestRecord, users: TelemetryConfig["users"]): Attributes {
  const { model, usage } = record;
  const { tags = [] } = record.trace ?? {};
  return {
    "http.request.method": "POST",
    "http.route": record.endpoint,
    "http.response.status_code": record.status ?? 0,
    "openinference.span.kind": "CHAIN",
    "tollgate.request.id": record.requestId,
    "tollgate.stream": record.streamed,
    "tollgate.priority": record.priority,
    ...whose(record, users),
    ...(tags.length === 0 ? {} : { "langfuse.trace.tags": [...tags], "tag.tags": [...tags] }),
    ...(record.account === null ? {} : { "tollgate.account.id": record.account }),
    ...(record.key === null ? {} : { "tollgate.key.id": record.key }),
    ...(record.ending === null ? {} : { "tollgate.ending": record.ending }),
    ...(model?.standsFor === undefined ? {} : { "tollgate.asked_model": model.standsFor }),
    ...(model === null ? {} : { "gen_ai.operation.name": operationOf(record), "gen_ai.request.model": model.id }),
    ...(record.outputTokensMax === null ? {} : { "gen_ai.request.max_tokens": record.outputTokensMax }),
    // Under names of our own: readers add the usage of all spans up, and the generations have theirs.
    ...(usage === null
      ? {}
      : {
          "tollgate.charged.input_tokens": usage.inputFresh + usage.inputCached,
          "tollgate.charged.output_tokens": usage.output,
        }),
  };
}

/** For the last generation, with which the whole answer ends. */
const contentOf = ({ trace, account, ask, finishReason }: RequestRecord): Attributes =>
  ask !== null && trace?.content?.isOf(account) === true ? trace.content.attributes(ask, finishReason ?? "error") : {};

/** The session and the user, on each span, as Langfuse and Phoenix look for them. */
function whose({ trace, account, endUser }: RequestRecord, users: TelemetryConfig["users"]): Attributes {
  const session = trace?.session ?? null;
  const user = endUser === null || endUser === "" ? (account === null ? null : `account ${account}`) : endUser;
  const shown = users === "hashed" && user !== null ? Bun.SHA256.hash(user, "hex").slice(0, 32) : user;
  return {
    ...(session === null ? {} : { "session.id": session, "gen_ai.conversation.id": session }),
    ...(users === "none" || shown === null ? {} : { "user.id": shown }),
  };
}

function operationOf({ model, ask }: RequestRecord): string {
  if (model?.kind === "embedding") return "embeddings";
  if (model?.kind === "rerank") return "rerank";
  return ask?.plain === undefined ? "chat" : "text_completion";
}

/** The node appears under its configured name, never its address. */
function generationAttributes(
  record: RequestRecord,
  { node, usage, startedAt, firstPieceAt }: RoundRecord,
  users: TelemetryConfig["users"],
): Attributes {
  const { model, ask, finishReason } = record;
  const { temperature, top_p, top_k, presence_penalty, frequency_penalty, seed } = ask?.sampling ?? {};
  return {
    ...whose(record, users),
    "openinference.span.kind":
      model?.kind === "embedding" ? "EMBEDDING" : model?.kind === "rerank" ? "RERANKER" : "LLM",
    "gen_ai.operation.name": operationOf(record),
    "gen_ai.provider.name": "tollgate",
    "gen_ai.request.model": model?.standsFor ?? model?.id ?? "",
    "gen_ai.request.stream": record.streamed,
    "gen_ai.request.max_tokens": record.outputTokensMax ?? undefined,
    "gen_ai.request.temperature": temperature,
    "gen_ai.request.top_p": top_p,
    "gen_ai.request.top_k": top_k,
    "gen_ai.request.presence_penalty": presence_penalty,
    "gen_ai.request.frequency_penalty": frequency_penalty,
    "gen_ai.request.seed": seed,
    "gen_ai.request.stop_sequences": ask === null || ask.stop.length === 0 ? undefined : [...ask.stop],
    "gen_ai.request.reasoning.level": ask?.effort ?? undefined,
    "gen_ai.request.choice.count": ask?.answers?.each,
    "gen_ai.output.type": ask === null || ask.format === null ? undefined : "json",
    "gen_ai.response.id": record.requestId,
    "gen_ai.response.model": model?.id,
    "gen_ai.response.finish_reasons": finishReason === null ? undefined : [finishReason],
    "gen_ai.response.time_to_first_chunk":
      firstPieceAt === null || startedAt === null ? undefined : (firstPieceAt - startedAt) / 1_000,
    "tollgate.node": node ?? "",
    ...(usage === null ? {} : usageAttributes(usage)),
  };
}

const usageAttributes = (usage: NonNullable<RequestRecord["usage"]>): Attributes => ({
  "gen_ai.usage.input_tokens": usage.inputFresh + usage.inputCached,
  "gen_ai.usage.cache_read.input_tokens": usage.inputCached,
  "gen_ai.usage.cache_write.input_tokens": usage.cacheWritten,
  "gen_ai.usage.output_tokens": usage.output,
  "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
});
