// Do accounts share the nodes fairly: by weight, long prompts beside short ones, few requests beside a pile of somebody
// else's, people behind one key, the urgent beside bulk? In virtual time, as `routing.ts --virtual`.
//
//   bun bench/fairness.ts [--seconds 300] [--seed 1]
import { readFlags } from "./flags.ts";
import { policies, tollgate } from "./routing/policies.ts";
import { summaryOf } from "./routing/summary.ts";
import { alone, others, pile, type Trace, traceNamed } from "./routing/traces.ts";
import { World } from "./routing/world.ts";

export const fairnessDefaults = { seconds: 300, seed: 1 };

const fromMs = 15_000;
const windowMs = 60_000;
/** More than an engine takes in at once, so that weights decide. */
const slots = 128;

/** The work of each account within each minute: short chats, long prompts and long answers, with weights 1, 2 and 4. */
function* sharesByWeight(seconds: number, seed: number): Generator<number[]> {
  const { nodes } = traceNamed("chats", seed, 1);
  const count = 150 * nodes.length;
  const sessions = [
    ...pile(count, 600, 100, { account: "one" }),
    ...pile(count, 20_000, 400, { account: "two" }),
    ...pile(count, 100, 800, { account: "four" }),
  ];
  const trace: Trace = { name: "weights", nodes, sessions, faults: [], endMs: 1_000 * seconds, judged: null };
  const world = new World(trace, tollgate({ slots, weights: { one: 1, two: 2, four: 4 } }));
  const works = (): number[] =>
    ["one", "two", "four"].map((name) => world.work(({ session }) => session.account === name));
  // Until the engines are full, and answers have shown how long they are.
  world.run(2 * windowMs);
  for (let before = works(); world.now + windowMs <= trace.endMs; before = works()) {
    world.run(world.now + windowMs);
    yield works().map((work, at) => work - before[at]!);
  }
}

export function fairness({ seconds, seed }: typeof fairnessDefaults, print: (line: string) => void): void {
  for (const works of sharesByWeight(seconds, seed)) {
    const ratios = works.map((work) => (work / works[0]!).toFixed(2));
    print(`${"weights 1 : 2 : 4, a minute".padEnd(40)} work ${ratios.join(" : ")}`);
  }
  for (const name of ["small-beside-greedy", "interactive-beside-bulk", "fifty-users-one-key"]) {
    const trace = traceNamed(name, seed, seconds);
    const capacity = new World(others(trace), policies["round robin"]!);
    capacity.run(trace.endMs);
    for (const [words, of] of [
      ["alone", alone(trace)],
      ["", trace],
    ] as const) {
      const world = new World(of, tollgate({ slots }));
      world.run(of.endMs);
      const othersPart = world.work(({ session }) => session.id.startsWith("pile-")) / capacity.work(() => true);
      world.runToEnd();
      const { meanMs, p99Ms, requests } = summaryOf(world.rows, of.judged, fromMs);
      print(
        `${`${name} ${words}`.padEnd(40)} first token mean ${meanMs.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms of ${requests}` +
          (of === trace ? `; the others' work ${(100 * othersPart).toFixed(0)} % of what engines can do` : ""),
      );
    }
  }
}

if (import.meta.main) fairness(readFlags(fairnessDefaults), console.log);
