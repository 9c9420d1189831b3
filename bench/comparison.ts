// What do a stream and a short request cost through each gateway, and how long do streams wait for their first token that
// all begin in the same moment, in one run? The page that the README shows is made from it.
//
//   bun bench/comparison.ts [--only nginx,tollgate,vllm-router] [--rounds 4] [--many 1000] [--quick]
import { type AnswerShape, answerText, tokenBytesMin } from "./answer.ts";
import { bestFirst, type Comparison, type ComparedWay, comparisonResult, keepComparison } from "./comparison-report.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { benchModel, clientDialects, type DialectName } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { loadShareNote } from "./load-share.ts";
import { nginxVersion } from "./nginx.ts";
import { isPeer, peerNames, peerProfile, type PeerProfile } from "./peers.ts";
import { placeClient } from "./placement.ts";
import { runClosedLoop } from "./request-client.ts";
import { machineLine, textTable } from "./result.ts";
import { median } from "./statistics.ts";
import { noTerminator, runBurst, StreamCheck } from "./stream-client.ts";
import { shuffled, type Subject, type SubjectName } from "./subject.ts";
import tollgatePackage from "../package.json" with { type: "json" };

export const comparisonDefaults = {
  /** Streams that begin in the same moment, and those of the larger burst, which 0 leaves out. */
  streams: 200,
  many: 1_000,
  tokens: 100,
  intervalMs: 20,
  /** The second so many after the start tell what is slow. */
  firstStreams: 30,
  connections: 64,
  /** So many tell how many make a run. */
  firstRequests: 200,
  /** A run of requests takes about so long, and has so many at most. */
  requestsMs: 1_000,
  requestsMax: 10_000,
  rounds: 8,
  warmUps: 4,
  /** Runtimes that compile while they run throw much away in their first rest: so there is one between the runs to warm up. */
  restMs: 6_000,
  only: ["nginx", "tollgate", ...peerNames].join(","),
};
export type ComparisonFlags = typeof comparisonDefaults;

/** Ten minutes for all of them on two cores. */
const quick = { many: 0, rounds: 4, warmUps: 3 };

/** A stream that costs more than this is measured in fewer and shorter runs. */
const slowStreamUs = 25_000;
const slowRounds = 2;
const manyRounds = 2;
const requestsMin = 100;
const shortReply = { tokens: 8, tokenBytes: 100 };
const promptBytes = 900;
/** A gateway that says nothing to what it does not know is taken to not speak it. */
const probeLimitMs = 20_000;
/** A run of a stranger's program that takes longer has failed. */
const runLimitMs = 90_000;

type Way = Readonly<{ name: string; subject: Subject; profile: PeerProfile }>;
type Streams = { us: number[]; firstTokenMs: number[]; manyFirstTokenMs: number[]; failed: number };
type Requests = { us: number[]; perSecond: number[]; nodeShare: number[]; clientShare: number[]; failed: number };
type Abilities = Readonly<{ dialects: readonly DialectName[]; refusesUnknownKeys: boolean }>;

export async function compare(flags: ComparisonFlags): Promise<Comparison> {
  const streams = await compareStreams(flags);
  const requests = await compareRequests(flags);
  const nginxStream = medianOf(streams.measured.get("nginx")?.us ?? []);
  const nginxRequest = medianOf(requests.measured.get("nginx")?.us ?? []);
  const ways = [...streams.measured].map(([name, stream]): ComparedWay => {
    const request = requests.measured.get(name);
    const streamUs = medianOf(stream.us);
    const requestUs = medianOf(request?.us ?? []);
    return {
      name,
      ...streams.profiles.get(name)!,
      ...(requests.abilities.get(name) ?? { dialects: [], refusesUnknownKeys: false }),
      streamUs,
      streamTimesNginx: ratio(streamUs, nginxStream),
      firstTokenMs: medianOf(stream.firstTokenMs),
      manyFirstTokenMs: medianOf(stream.manyFirstTokenMs),
      requestUs,
      requestTimesNginx: ratio(requestUs, nginxRequest),
      perSecond: medianOf(request?.perSecond ?? []),
      failed: stream.failed + (request?.failed ?? 0),
    };
  });
  const shares = [...requests.measured].flatMap(([way, { nodeShare, clientShare }]) =>
    nodeShare.length === 0 ? [] : [{ way, node: median(nodeShare), client: median(clientShare) }],
  );
  return {
    command: ["bun", "bench/comparison.ts", ...Bun.argv.slice(2)].join(" "),
    tollgate: `Tollgate ${tollgatePackage.version}`,
    machine: machineLine(),
    date: new Date().toISOString().slice(0, 10),
    streams: flags.streams,
    many: flags.many,
    tokens: flags.tokens,
    intervalMs: flags.intervalMs,
    connections: flags.connections,
    rounds: flags.rounds,
    ways: bestFirst(ways, "streamUs"),
    skipped: [...new Set([...streams.skipped, ...requests.skipped])],
    loadShares: loadShareNote(shares),
  };
}

const medianOf = (values: readonly number[]): number | null => (values.length === 0 ? null : median(values));
const ratio = (value: number | null, baseline: number | null): number | null =>
  value === null || baseline === null ? null : value / baseline;

/** Tollgate in each dialect, the others in the node's own. */
function waysOf(subjects: readonly Subject[]): Way[] {
  return subjects.flatMap((subject) => {
    const profile = profileOf(subject.name);
    if (subject.name !== "tollgate") return [{ name: subject.name, subject, profile }];
    return (["chat", "messages", "responses"] as const).map((dialect) => ({
      name: `tollgate ${dialect}`,
      subject: { ...subject, dialect: clientDialects[dialect] },
      profile: { ...profile, label: `Tollgate, ${dialect}` },
    }));
  });
}

function profileOf(name: SubjectName): PeerProfile {
  if (isPeer(name)) return peerProfile(name);
  if (name === "nginx") return { label: nginxVersion(), writtenIn: "C", keys: "keys", books: "no books" };
  return { label: "Tollgate", writtenIn: "TypeScript, on Bun", keys: "keys", books: "exact books" };
}

async function compareStreams(flags: ComparisonFlags) {
  const { streams, many, tokens, intervalMs, rounds, warmUps, only, firstStreams } = flags;
  const answer = { tokens, tokenBytes: tokenBytesMin };
  // In each dialect: the first ones, the bursts to warm up, two for each round, and the large ones.
  const requests = 1.5 * 3 * (2 * firstStreams + (warmUps + rounds) * 2 * streams + 2 * many);
  const lineup = await startLineup({ node: { ...answer, intervalMs }, only, dialect: "chat", requests });
  const ways = waysOf(lineup.subjects);
  const measured = new Map<string, Streams>(
    ways.map(({ name }) => [name, { us: [], firstTokenMs: [], manyFirstTokenMs: [], failed: 0 }]),
  );
  const burst = (way: Way, count: number, bursts: number) =>
    orFailed(way, async ({ subject }) => {
      let timer = startCpuTimer(subject.pids);
      const run = await runBurst(subject, count, answer, bursts, () => (timer = startCpuTimer(subject.pids)));
      return { ...run, us: timer.elapsedMicroseconds() / (count * bursts) };
    });
  try {
    const slow = new Set<string>();
    for (const way of ways.filter(({ subject }) => isPeer(subject.name))) {
      await burst(way, firstStreams, 1);
      const run = await burst(way, firstStreams, 1);
      if (run === null) continue;
      if (run.us > slowStreamUs) slow.add(way.name);
      console.log(`  second ${firstStreams} streams ${way.name}: ${run.us.toFixed(0)} us each${failureText(run)}`);
    }
    for (const way of ways) {
      if (!slow.has(way.name)) for (let warmUp = 0; warmUp < warmUps; warmUp++) await burst(way, 2 * streams, 1);
    }
    for (let round = 1; round <= rounds; round++) {
      for (const way of shuffled(ways)) {
        const isSlow = slow.has(way.name);
        if (isSlow && round > slowRounds) continue;
        const run = await burst(way, streams, isSlow ? 1 : 2);
        const of = measured.get(way.name)!;
        if (run === null || run.complete === 0) {
          of.failed += streams;
          continue;
        }
        of.us.push(run.us);
        of.firstTokenMs.push(...run.firstTokenMs);
        of.failed += run.failures.length;
        const p50 = median(run.firstTokenMs).toFixed(1);
        console.log(
          `  streams ${round}/${rounds} ${way.name}: ${run.us.toFixed(0)} us each, first token p50 ${p50} ms${failureText(run)}`,
        );
      }
    }
    for (let round = 1; many > 0 && round <= manyRounds; round++) {
      for (const way of shuffled(ways).filter(({ name }) => !slow.has(name))) {
        const run = await burst(way, many, 1);
        const of = measured.get(way.name)!;
        if (run === null || run.complete === 0) {
          of.failed += many;
          continue;
        }
        of.manyFirstTokenMs.push(...run.firstTokenMs);
        of.failed += run.failures.length;
        const p50 = median(run.firstTokenMs).toFixed(1);
        console.log(
          `  ${many} at once ${round}/${manyRounds} ${way.name}: first token p50 ${p50} ms${failureText(run)}`,
        );
      }
    }
    return { measured, skipped: lineup.skipped, profiles: new Map(ways.map(({ name, profile }) => [name, profile])) };
  } finally {
    await lineup.stop();
  }
}

function failureText({ failures }: Readonly<{ failures: readonly string[] }>): string {
  return failures.length === 0 ? "" : `, ${failures.length} FAILED, first: ${failures[0]}`;
}

/** Null when a stranger's program hangs or has gone: the others can be compared all the same. */
async function orFailed<Run>(way: Way, measure: (way: Way) => Promise<Run>): Promise<Run | null> {
  if (!isPeer(way.subject.name)) return measure(way);
  const hung = Promise.withResolvers<never>();
  const timer = setTimeout(() => hung.reject(new Error(`no end within ${runLimitMs / 1_000} s`)), runLimitMs);
  try {
    return await Promise.race([measure(way), hung.promise]);
  } catch (thrown) {
    console.log(`  ${way.name} FAILED: ${String(thrown)}`);
    return null;
  } finally {
    clearTimeout(timer);
  }
}

async function compareRequests(flags: ComparisonFlags) {
  const { connections, requestsMs, requestsMax, rounds, warmUps, restMs, only, firstRequests } = flags;
  // Half more than there will be, because runs do not use all accounts equally.
  const requests = 1.5 * 3 * (firstRequests + (2 * warmUps + rounds) * requestsMax);
  const lineup = await startLineup({ node: { ...shortReply, intervalMs: 0 }, only, dialect: "chat", requests });
  const ways = waysOf(lineup.subjects);
  const measured = new Map<string, Requests>(
    ways.map(({ name }) => [name, { us: [], perSecond: [], nodeShare: [], clientShare: [], failed: 0 }]),
  );
  const load = (way: Way, count: number) =>
    orFailed(way, async ({ subject }) => {
      const timers = [subject.pids, [lineup.node.pid], [process.pid]].map(startCpuTimer);
      const run = await runClosedLoop(subject, { requests: count, answer: shortReply, promptBytes }, connections);
      const [proxy, node, client] = timers.map((timer) => timer.elapsedMicroseconds());
      const share = (us: number) => us / (run.elapsedMs * 1_000);
      const perSecond = (run.complete * 1_000) / run.elapsedMs;
      return { ...run, us: proxy! / Math.max(1, run.complete), perSecond, node: share(node!), client: share(client!) };
    });
  try {
    const counts = new Map<string, number>();
    for (const way of ways) {
      let count = firstRequests;
      for (let warmUp = 0; warmUp <= warmUps; warmUp++) {
        const perSecond = (await load(way, count))?.perSecond ?? 0;
        count = Math.ceil(Math.min(requestsMax, Math.max(requestsMin, (perSecond * requestsMs) / 1_000)));
      }
      counts.set(way.name, count);
    }
    await Bun.sleep(restMs);
    for (const way of ways) {
      for (let warmUp = 0; warmUp < warmUps; warmUp++) await load(way, counts.get(way.name)!);
    }
    for (let round = 1; round <= rounds; round++) {
      for (const way of shuffled(ways)) {
        const count = counts.get(way.name)!;
        const run = await load(way, count);
        const of = measured.get(way.name)!;
        if (run === null || run.complete === 0) {
          of.failed += count;
          continue;
        }
        of.us.push(run.us);
        of.perSecond.push(run.perSecond);
        of.nodeShare.push(run.node);
        of.clientShare.push(run.client);
        of.failed += run.failures.length;
        console.log(
          `  requests ${round}/${rounds} ${way.name}: ${run.us.toFixed(1)} us each, ${run.perSecond.toFixed(0)} a second` +
            failureText(run),
        );
      }
    }
    // Last, because routers take a node that refuses what it does not know for a broken one.
    const abilities = new Map<string, Abilities>();
    for (const { name, subject } of ways) abilities.set(name, await abilitiesOf(subject));
    return { measured, abilities, skipped: lineup.skipped };
  } finally {
    await lineup.stop();
  }
}

/** Found out by asking, in front of a node that speaks chat-completions alone; its answer is `shape`. */
async function abilitiesOf(subject: Subject, shape: AnswerShape = shortReply): Promise<Abilities> {
  const dialects: DialectName[] = [];
  // An unknown key first: what follows makes routers take the node for a broken one.
  const refused = await asked({ ...subject, keys: ["sk-of-nobody"] }, shape);
  for (const [name, dialect] of Object.entries(clientDialects)) {
    if ((await asked({ ...subject, dialect }, shape)) === null) dialects.push(name as DialectName);
  }
  return { dialects, refusesUnknownKeys: refused !== null };
}

/** Why a stream did not arrive whole, or null. */
async function asked(
  { port, dialect, headers = [], keys, model }: Subject,
  shape: AnswerShape,
): Promise<string | null> {
  const ask = { model: model ?? benchModel, prompt: "Count.", outputTokensMax: shape.tokens, stream: true };
  const lines = headers.map((line) => line.split(": ", 2) as [string, string]);
  try {
    const reply = await fetch(`http://127.0.0.1:${port}${dialect.path}`, {
      method: "POST",
      headers: [...lines, ["authorization", `Bearer ${keys[0]}`], ["content-type", "application/json"]],
      body: JSON.stringify(dialect.body(ask)),
      signal: AbortSignal.timeout(probeLimitMs),
    });
    const check = new StreamCheck(dialect, answerText(shape));
    const text = await reply.text();
    // Some write JSON as Python does, with spaces; some name events only within their JSON, which SDKs read as well.
    check.read(text.replaceAll('": ', '":'));
    const failure = check.failure(reply.status);
    const named = text.includes(dialect.terminator.split(": ")[1]!);
    return failure === noTerminator && named ? null : failure;
  } catch (thrown) {
    return String(thrown);
  }
}

if (import.meta.main) {
  const flags = readFlags(comparisonDefaults, quick);
  placeClient();
  const startedMs = performance.now();
  const comparison = await compare(flags);
  const { columns, rows, notes } = comparisonResult(comparison);
  console.log(`\n${textTable(columns, rows)}`);
  for (const note of notes) console.log(note);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0);
  console.log(`${comparison.machine}, ${comparison.tollgate}; ${comparison.date}; ${seconds} s`);
  const failed = comparison.ways.filter(({ name, failed }) => failed > 0 && !isPeer(name));
  if (failed.length > 0) throw new Error(`replies failed: ${failed.map(({ name }) => name).join(", ")}`);
  // A run of a few of them leaves the page of all alone.
  if (flags.only === comparisonDefaults.only) keepComparison(comparison);
}
