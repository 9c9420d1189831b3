// How soon is the first token there where several nodes keep prompts in their caches? In virtual time: Tollgate's line and
// placement, the rules of other routers, and an oracle that sees the caches. Over HTTP: Tollgate, other routers and nginx
// before simulated engines that take time instead of processor time.
//
//   bun bench/routing.ts --virtual [--seconds 120] [--seed 1] [--only chats,agents]
//   bun bench/routing.ts [--seconds 60] [--runs 1] [--only chats-one-key] [--ways tollgate,smg,nginx]
//   bun bench/routing.ts --virtual --only mooncake --file conversation_trace.jsonl     kvcache-ai/Mooncake's own trace
import { loadavg } from "node:os";
import { readFlags } from "./flags.ts";
import { setPlacement } from "./placement.ts";
import { keepResult } from "./result.ts";
import { policies, quietOracle, tollgate } from "./routing/policies.ts";
import { type Measured, keepPicture, rowsOf, routingColumns } from "./routing/picture.ts";
import { summaryOf } from "./routing/summary.ts";
import { alone, type Trace, traceNamed, traceNames, usualModel } from "./routing/traces.ts";
import { runOver, ways } from "./routing/ways.ts";
import { type PolicyOf, type Row, World } from "./routing/world.ts";

export const routingDefaults = {
  virtual: false,
  seconds: 120,
  warmUpSeconds: 15,
  seed: 1,
  runs: 1,
  only: traceNames.join(","),
  ways: "",
  file: "",
};
type Flags = typeof routingDefaults;

/** Of those who are not judged, while the trace lasts. */
function runIn(trace: Trace, policyOf: PolicyOf): Readonly<{ world: World; othersWork: number }> {
  const world = new World(trace, policyOf);
  world.run(trace.endMs);
  const othersWork = world.work(({ session }) => trace.judged !== null && !trace.judged(session));
  world.runToEnd();
  return { world, othersWork };
}

/** Each policy on each trace, in the order of the names. */
export function measureVirtual(flags: Flags, tell: (line: string) => void): Measured[] {
  const wanted = flags.ways === "" ? Object.keys(policies) : flags.ways.split(",");
  const measured: Measured[] = [];
  for (const name of flags.only.split(",")) {
    const trace = traceNamed(name, flags.seed, flags.seconds, flags.file);
    const add = (way: string, of: Trace, policyOf: PolicyOf): void => {
      const beganAt = performance.now();
      const { world, othersWork } = runIn(of, policyOf);
      const summary = summaryOf(world.rows, of.judged, 1_000 * flags.warmUpSeconds);
      measured.push({ trace: name, way, othersWork, ...summary });
      const { meanMs, p99Ms } = summary;
      const tookS = ((performance.now() - beganAt) / 1_000).toFixed(1);
      tell(`  ${name}, ${way}: mean ${meanMs.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms (${tookS} s)`);
    };
    if (trace.judged !== null) add("alone", alone(trace), tollgate());
    for (const way of wanted) {
      const policyOf = way === "oracle" && trace.judged !== null ? quietOracle : policies[way];
      if (policyOf === undefined) throw new Error(`the policies are ${Object.keys(policies).join(", ")}, not "${way}"`);
      add(way, trace, policyOf);
    }
  }
  return measured;
}

/** Each way over HTTP on each trace, and how busy the machine was. */
async function measureWays(flags: Flags, lateMs: number[], tell: (line: string) => void): Promise<Measured[]> {
  const wanted = flags.ways === "" ? Object.keys(ways) : flags.ways.split(",");
  for (const name of wanted) {
    const missing = ways[name]?.missing();
    if (missing === undefined) throw new Error(`the ways are ${Object.keys(ways).join(", ")}, not "${name}"`);
    if (missing !== null) tell(`  ${name} skipped: ${missing}`);
  }
  const present = wanted.filter((name) => ways[name]!.missing() === null);
  const measured: Measured[] = [];
  for (const name of flags.only.split(",")) {
    const { judged, nodes } = traceNamed(name, flags.seed, flags.seconds, flags.file);
    if (nodes.some(({ models }) => !models.includes(usualModel))) {
      tell(`  ${name} skipped: the engines over HTTP have one model`);
      continue;
    }
    const add = async (label: string, way: string, isAlone: boolean): Promise<void> => {
      const rows: Row[] = [];
      for (let run = 0; run < flags.runs; run++) {
        const replay = { trace: name, seed: flags.seed + run, seconds: flags.seconds, file: flags.file, isAlone };
        const { rows: more, latenessMs } = await runOver(ways[way]!, replay);
        rows.push(...more);
        lateMs.push(latenessMs);
      }
      const summary = summaryOf(rows, isAlone ? null : judged, 1_000 * flags.warmUpSeconds);
      // What the others did is only known in virtual time: most of their answers are incomplete at the end.
      measured.push({ trace: name, way: label, othersWork: 0, ...summary });
      const failures = new Map<string, number>();
      for (const { failure } of rows) if (failure !== null) failures.set(failure, (failures.get(failure) ?? 0) + 1);
      tell(
        `  ${name}, ${label}: mean ${summary.meanMs.toFixed(0)} ms, p99 ${summary.p99Ms.toFixed(0)} ms of ${summary.requests}, ` +
          `${summary.failed} failed; steps ${lateMs.at(-1)!.toFixed(1)} ms late, load ${loadavg()[0]!.toFixed(1)}`,
      );
      for (const [failure, count] of failures) tell(`    ${count} x ${failure}`);
    };
    if (judged !== null) await add("alone", present[0]!, true);
    for (const way of present) await add(way, way, false);
  }
  return measured;
}

const columnNotes =
  "`times`: the mean as a multiple of the oracle's, or of what the same users wait without the others. `beside`: work of " +
  "those others, as a part of the most in this table.";
const virtualNotes =
  "Tollgate's line and placement are the program's own; `cache_aware rule`, `by session` and `round robin` are other routers' " +
  "rules as published. The oracle sees the engines' caches and takes the node where the first token is soonest; it does " +
  "not plan ahead, so that a gateway can do better, and it knows no accounts. Beside others it is another one: it sees every " +
  "step of the engines, and lets the others' prompts in one by one while another node reads nothing. No gateway sees that. " +
  "Accounts share the caches.";
const wayNotes =
  "SMG and vllm-router go by `cache_aware`, `by session` is vllm-router's `consistent_hash` with the conversation in a header, " +
  "nginx takes nodes in turn; Tollgate does all of its accounting.";

if (import.meta.main) {
  const flags = readFlags(routingDefaults, { seconds: 10, warmUpSeconds: 2 });
  if (!flags.virtual) setPlacement("free");
  const lateMs: number[] = [];
  const measured = flags.virtual ? measureVirtual(flags, console.log) : await measureWays(flags, lateMs, console.log);
  const business =
    `The engines' steps ended ${Math.min(...lateMs).toFixed(1)} to ${Math.max(...lateMs).toFixed(1)} ms late on average; ` +
    `the machine's load was ${loadavg()[2]!.toFixed(1)} in the last 15 minutes.`;
  const where = flags.virtual ? "in virtual time" : "over HTTP";
  const variant = flags.virtual ? "virtual" : "";
  const title = `Mean time to the first token, ${flags.seconds} s of load ${where}`;
  const picture = keepPicture(measured, variant === "" ? "routing" : "routing-virtual", title);
  await keepResult({
    bench: "routing",
    variant,
    question: `How soon is the first token there from several nodes with prefix caches, ${where}?`,
    columns: routingColumns,
    rows: rowsOf(measured),
    chart: null,
    failures: 0,
    notes: [picture, columnNotes, flags.virtual ? virtualNotes : `${wayNotes} ${business}`],
  });
}
