// GET /metrics: the counts, and the values that other parts of the server report at each scrape.
import type { LiveRequests } from "../site.ts";
import type { OtherThreads } from "../other-threads.ts";
import { peerAddress } from "../peer-address.ts";
import type { Gauge } from "./metric.ts";
import type { Metrics } from "./metrics.ts";
import { mayReadMetrics } from "./metrics-access.ts";

type MetricsRouteParts = Readonly<{
  metrics: Metrics;
  others: OtherThreads | null;
  requests: LiveRequests;
  watch: Readonly<{ heldEnds: number }>;
  gauges: () => Promise<Iterable<Gauge>>;
  /** The current settings: see ServerOptions. */
  access: () => Readonly<{ token: string | null; behindProxy: boolean }>;
}>;

export async function metricsReply(
  request: Request,
  connection: Parameters<typeof peerAddress>[1],
  parts: MetricsRouteParts,
): Promise<Response> {
  const { metrics, others, access } = parts;
  const { token, behindProxy } = access();
  if (mayReadMetrics(request.headers, { address: peerAddress(request, connection), token, behindProxy })) {
    const all = others === null ? metrics : await others.withTheirs(metrics);
    return new Response(all.text(allGauges(parts, await parts.gauges())), {
      headers: { "content-type": "text/plain; version=0.0.4" },
    });
  }
  const wanted =
    token === null
      ? "Metrics without a token are for this machine alone, where no proxy is; set token_env in [metrics]"
      : "Metrics need the token of [metrics] as Authorization: Bearer";
  return new Response(`${wanted}\n`, { status: token === null ? 403 : 401 });
}

function* allGauges({ requests, watch, others }: MetricsRouteParts, gauges: Iterable<Gauge>): Iterable<Gauge> {
  const { openRequests } = requests;
  yield { name: "tollgate_open_requests", help: "Admitted requests that have not ended.", value: openRequests };
  yield {
    name: "tollgate_held_ends",
    help: "Answers whose end waits until their charge is on disk.",
    value: watch.heldEnds + (others?.heldEnds ?? 0),
  };
  const { user, system } = process.cpuUsage();
  yield {
    name: "tollgate_cpu_seconds_total",
    help: "CPU time of the process.",
    value: (user + system) / 1e6,
    type: "counter",
  };
  yield { name: "tollgate_resident_memory_bytes", help: "Resident memory.", value: process.memoryUsage.rss() };
  yield* gauges;
}
