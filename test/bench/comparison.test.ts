// The page that compares gateways: what bench/README.md and the picture show is what the last run found, whoever is cheaper
// stands first and is named, and what each can do is found out by asking it.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { comparisonDefaults, compare } from "../../bench/comparison.ts";
import {
  bestFirst,
  type ComparedWay,
  type Comparison,
  comparisonPicture,
  comparisonResult,
  headline,
  keptComparison,
  withComparison,
} from "../../bench/comparison-report.ts";
import { comparisonSvg } from "../../bench/comparison-svg.ts";
import { nginxMissing } from "../../bench/nginx.ts";
import { withResults } from "../../bench/report.ts";

const root = join(import.meta.dir, "../..");
const kept = keptComparison()!;

/** Tables without the spaces that the formatter fills them up with. */
const unpadded = (text: string): string =>
  text.replaceAll(/ +\|/g, " |").replaceAll(/\| +/g, "| ").replaceAll(/-+/g, "-");

test("bench/README.md shows what the last run found (npm run bench -- report)", () => {
  const text = readFileSync(join(root, "bench/README.md"), "utf8");
  const results = new Map([["comparison", comparisonResult(kept)]]);
  expect(unpadded(text)).toBe(unpadded(withResults(withComparison(text, kept), results)));
});

test("the picture shows what the last run found (npm run bench -- report)", () => {
  expect(readFileSync(comparisonPicture, "utf8")).toBe(comparisonSvg(kept));
});

const way = (name: string, streamUs: number | null, requestUs: number): ComparedWay => ({
  name,
  label: `${name} 1.2.3`,
  writtenIn: "C",
  keys: "keys",
  books: "no books",
  dialects: ["chat"],
  refusesUnknownKeys: false,
  streamUs,
  streamTimesNginx: streamUs === null ? null : streamUs / 100,
  firstTokenMs: 4,
  manyFirstTokenMs: null,
  requestUs,
  requestTimesNginx: requestUs / 10,
  perSecond: 1_000,
  failed: 0,
});
const comparison = (ways: readonly ComparedWay[]): Comparison => ({ ...kept, ways: bestFirst(ways, "streamUs") });

test("a gateway that is cheaper than Tollgate stands before it, in the table, in the picture and in words", () => {
  const found = comparison([way("tollgate chat", 300, 50), way("swift", 200, 70), way("nginx", 100, 10)]);
  expect(headline(found)).toBe(
    "A stream takes 3.00 times nginx's CPU, a short request 5.0 times (chat), with keys and exact books. " +
      "Cheaper for a stream: nginx, swift; for a request: nginx.",
  );
  expect(comparisonResult(found).rows.map(([label]) => label)).toEqual([
    "nginx 1.2.3",
    "swift 1.2.3",
    "tollgate chat 1.2.3",
  ]);
  const labels = [...comparisonSvg(found).matchAll(/text-anchor="end">(.*) 1\.2\.3</g)].map(([, name]) => name);
  expect(labels).toEqual(["nginx", "swift", "tollgate chat", "nginx", "tollgate chat", "swift"]);
});

test("a bar far beyond Tollgate's is cut, and the others keep their lengths", () => {
  const found = comparison([way("tollgate chat", 200, 50), way("nginx", 100, 10), way("slow", 9_000, 9_000)]);
  const lengths = [
    ...comparisonSvg(found).matchAll(/<rect class="(?:nginx|tollgate|other)" x="196".*? width="([\d.]+)"/g),
  ];
  const [nginx, tollgate, slow] = lengths.map(([, length]) => Number(length));
  expect(tollgate).toBe(2 * nginx!);
  expect(slow).toBeLessThan(1.2 * tollgate!);
  expect(comparisonSvg(found).match(/class="cut" d=/g)).toHaveLength(2);
});

test("what could not be measured stands last and has no bar", () => {
  const found = comparison([way("broken", null, 70), way("tollgate chat", 300, 50), way("nginx", 100, 10)]);
  expect(comparisonResult(found).rows.map(([label]) => label)).toEqual([
    "nginx 1.2.3",
    "tollgate chat 1.2.3",
    "broken 1.2.3",
  ]);
  expect(comparisonSvg(found).match(/broken/g)).toHaveLength(1);
});

test("names in the picture are text, whatever they are", () => {
  const found = comparison([way("tollgate chat", 300, 50), way("<b>&", 100, 10)]);
  expect(comparisonSvg(found)).toContain("&lt;b&gt;&amp; 1.2.3");
});

test("a run at a tiny size measures every way, and finds out what each does", async () => {
  const missing = nginxMissing();
  if (missing !== null) console.log(`the comparison's nginx is not tested: ${missing}`);
  const only = missing === null ? "nginx,tollgate" : "tollgate";
  const sizes = { streams: 8, many: 12, tokens: 5, intervalMs: 5, connections: 4, restMs: 10, rounds: 1, warmUps: 1 };
  const firsts = { firstStreams: 2, firstRequests: 10, requestsMax: 20 };
  const { ways, skipped } = await compare({ ...comparisonDefaults, ...sizes, ...firsts, only });
  expect(skipped).toEqual([]);
  const tollgate = ways.filter(({ name }) => name.startsWith("tollgate"));
  expect(tollgate.map(({ name }) => name).sort()).toEqual(["tollgate chat", "tollgate messages", "tollgate responses"]);
  for (const { dialects, refusesUnknownKeys } of tollgate) {
    expect(dialects).toEqual(["chat", "messages", "responses"]);
    expect(refusesUnknownKeys).toBe(true);
  }
  const nginx = ways.filter(({ name }) => name === "nginx");
  for (const { dialects, refusesUnknownKeys } of nginx)
    expect([dialects, refusesUnknownKeys]).toEqual([["chat"], false]);
  expect(ways).toHaveLength(tollgate.length + (missing === null ? 1 : 0));
  for (const each of ways) {
    expect(each.failed).toBe(0);
    for (const figure of [each.streamUs, each.firstTokenMs, each.manyFirstTokenMs, each.requestUs, each.perSecond]) {
      expect(figure).toBeGreaterThan(0);
    }
  }
}, 60_000);
