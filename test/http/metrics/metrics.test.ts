// The text that Prometheus scrapes, and who may scrape it.
import { describe, expect, test } from "bun:test";
import { Counter, gaugeLines, Histogram } from "../../../src/http/metrics/metric.ts";
import { mayReadMetrics } from "../../../src/http/metrics/metrics-access.ts";
import { Metrics } from "../../../src/http/metrics/metrics.ts";
import { RequestRecord } from "../../../src/telemetry/request-record.ts";

describe("the text format", () => {
  test("a counter sums up by its labels", () => {
    const counter = new Counter("a_total", "Help.", ["one", "two"]);
    counter.add(1, "x", "y");
    counter.add(2, "x", "y");
    counter.add(1, "x", "z");
    expect([...counter.lines()]).toEqual([
      "# HELP a_total Help.",
      "# TYPE a_total counter",
      'a_total{one="x",two="y"} 3',
      'a_total{one="x",two="z"} 1',
    ]);
  });

  test("a histogram's buckets cumulate, and a value on a bound belongs below it", () => {
    const histogram = new Histogram("b_seconds", "Help.", [1, 2], "one");
    for (const value of [0.5, 1, 1.5, 9]) histogram.add(value, "x");
    expect([...histogram.lines()].slice(2)).toEqual([
      'b_seconds_bucket{one="x",le="1"} 2',
      'b_seconds_bucket{one="x",le="2"} 3',
      'b_seconds_bucket{one="x",le="+Inf"} 4',
      'b_seconds_sum{one="x"} 12',
      'b_seconds_count{one="x"} 4',
    ]);
  });

  test("what was never counted is there as 0", () => {
    expect([...new Counter("a_total", "Help.").lines()]).toContain("a_total 0");
    expect([...new Histogram("b", "Help.", [1]).lines()]).toContain('b_bucket{le="+Inf"} 0');
  });

  test("gauges of one name follow each other under one heading, and label values are escaped", () => {
    const help = "Help.";
    const gauges = [
      { name: "a", help, value: 1, labels: { node: 'q"\\\n' } },
      { name: "b", help, value: 2 },
      { name: "a", help, value: 3, labels: { node: "r" } },
    ];
    expect([...gaugeLines(gauges)]).toEqual([
      "# HELP a Help.",
      "# TYPE a gauge",
      'a{node="q\\"\\\\\\n"} 1',
      'a{node="r"} 3',
      "# HELP b Help.",
      "# TYPE b gauge",
      "b 2",
    ]);
  });
});

test("a request of a model that there is not is counted under other", () => {
  const metrics = new Metrics();
  const record = new RequestRecord("req_1", "/v1/messages", 0, 0);
  record.status = 400;
  record.refusal = "unknown_model";
  metrics.count(record);
  expect(metrics.text([])).toContain('tollgate_requests_total{endpoint="/v1/messages",model="other",status="400"} 1');
});

describe("metrics may be read", () => {
  const asked = (
    address: string | null,
    token: string | null,
    headers: Record<string, string> = {},
    behindProxy = false,
  ) => mayReadMetrics(new Headers(headers), { address, token, behindProxy });

  test.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["10.0.0.1", false],
    ["::ffff:10.0.0.1", false],
    [null, false],
  ])("without a token from %s: %p", (address, may) => {
    expect(asked(address, null)).toBe(may);
  });

  test.each([
    "x-forwarded-for",
    "X-Forwarded-Host",
    "x-forwarded-proto",
    "forwarded",
    "via",
    "x-real-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ray",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "fly-client-ip",
    "fastly-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-original-host",
    "x-azure-clientip",
    "x-appengine-remote-addr",
    "x-amzn-trace-id",
    "x-vercel-id",
    "x-nf-client-connection-ip",
    "do-connecting-ip",
    "cdn-loop",
  ])("without a token not through a proxy on this machine that sends %s", (name) => {
    expect(asked("127.0.0.1", null, { host: "127.0.0.1:8400", [name]: "203.0.113.7" })).toBe(false);
  });

  test("without a token by a scraper on this machine, whatever else it sends", () => {
    const headers = {
      host: "localhost:8400",
      "user-agent": "Prometheus/3.0",
      accept: "text/plain;version=0.0.4",
      "accept-encoding": "gzip",
      "x-prometheus-scrape-timeout-seconds": "10",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      authorization: "Bearer of-another",
    };
    expect(asked("127.0.0.1", null, headers)).toBe(true);
  });

  test.each([
    ["127.0.0.1:8400", true],
    ["127.0.1.1", true],
    ["[::1]:8400", true],
    ["LOCALHOST", true],
    ["llm.example.org", false],
    ["127.example.org", false],
    ["localhost.example.org", false],
    ["10.0.0.1:8400", false],
    ["a b", false],
    ["", false],
  ])("without a token where it was asked as %s: %p", (host, may) => {
    expect(asked("127.0.0.1", null, { host })).toBe(may);
  });

  test("without a token not at all where the configuration has a proxy, which need not say that it is one", () => {
    expect(asked("127.0.0.1", null, {}, true)).toBe(false);
    expect(asked("127.0.0.1", "secret", { authorization: "Bearer secret" }, true)).toBe(true);
  });

  test("with a token from anywhere by whoever brings it, and by nobody else", () => {
    expect(asked("203.0.113.7", "secret", { authorization: "Bearer secret" })).toBe(true);
    expect(asked("127.0.0.1", "secret")).toBe(false);
    expect(asked("127.0.0.1", "secret", { authorization: "Bearer secre" })).toBe(false);
    expect(asked("127.0.0.1", "secret", { authorization: "secret" })).toBe(false);
  });
});
