// How soon is the first token there where several nodes keep prompts in their caches? In virtual time: Tollgate's line and
// placement, the rules of other routers, and an oracle that sees the caches. Over HTTP: Tollgate, other routers and nginx
// before simulated engines that take time instead of processor time.
//
//   bun bench/routing.ts --virtual [--seconds 120] [--seed 1] [--only chats,agents]
//   bun bench/routing.ts [--seconds 60] [--runs 1] [--only chats-one-key] [--ways tollgate,smg,nginx]
//   bun bench/routing.ts --virtual --only mooncake --file conversation_trace.jsonl     kvcache-ai/Mooncake's own trace
import { readFlags } from "./flags.ts";
import { keepResult } from "./result.ts";
import { policies, tollgate } from "./routing/policies.ts";
import { type Measured, keepPicture, rowsOf, routingColumns } from "./routing/picture.ts";
import { summaryOf } from "./routing/summary.ts";
import { alone, others, type Trace, traceNamed, traceNames } from "./routing/traces.ts";
import { type PolicyOf, World } from "./routing/world.ts";

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
function run(trace: Trace, policyOf: PolicyOf): Readonly<{ world: World; othersWork: number }> {
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
    const add = (way: string, of: Trace, policyOf: PolicyOf, othersAlone: number | null): void => {
      const beganAt = performance.now();
      const { world, othersWork } = run(of, policyOf);
      const summary = summaryOf(world.rows, of.judged, 1_000 * flags.warmUpSeconds);
      const othersPart = othersAlone === null ? null : othersWork / othersAlone;
      measured.push({ trace: name, way, othersPart, ...summary });
      const { meanMs, p99Ms } = summary;
      const tookS = ((performance.now() - beganAt) / 1_000).toFixed(1);
      tell(`  ${name}, ${way}: mean ${meanMs.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms (${tookS} s)`);
    };
    let othersAlone: number | null = null;
    if (trace.judged !== null) {
      add("alone", alone(trace), tollgate(), null);
      // Whatever the engines can do.
      const world = new World(others(trace), policies["round robin"]!);
      world.run(trace.endMs);
      othersAlone = world.work(() => true);
    }
    for (const way of wanted) {
      if (way === "oracle" && trace.judged !== null) continue;
      const policyOf = policies[way];
      if (policyOf === undefined) throw new Error(`the policies are ${Object.keys(policies).join(", ")}, not "${way}"`);
      add(way, trace, policyOf, othersAlone);
    }
  }
  return measured;
}

if (import.meta.main) {
  const flags = readFlags(routingDefaults, { seconds: 10, warmUpSeconds: 2 });
  const measured = measureVirtual(flags, console.log);
  const picture = keepPicture(
    measured,
    "routing-virtual",
    `Mean time to the first token, ${flags.seconds} s of load in virtual time`,
  );
  await keepResult({
    bench: "routing",
    variant: "virtual",
    question: "How soon is the first token there from several nodes, in virtual time?",
    columns: routingColumns,
    rows: rowsOf(measured),
    chart: null,
    failures: 0,
    notes: [picture],
  });
}
