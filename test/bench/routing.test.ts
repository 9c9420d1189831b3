// The simulated engines and the traces of the routing benchmark, and what the program's own line must reach on them.
import { describe, expect, test } from "bun:test";
import { measureVirtual, routingDefaults } from "../../bench/routing.ts";
import { Engine, enginesOfSpeed, Job } from "../../bench/routing/engine.ts";
import type { Measured } from "../../bench/routing/picture.ts";
import { GrowingText, textOf } from "../../bench/routing/text.ts";
import { traceNamed, traceNames } from "../../bench/routing/traces.ts";

/** Runs a prompt to its end: how much of it was cached, and how long its first token took. */
function runOn(engine: Engine, prompt: string, salt = ""): Readonly<{ cached: number; firstMs: number }> {
  const text = new GrowingText(salt).add(prompt);
  let now = 0;
  let firstMs = 0;
  const job = new Job(
    { tokens: text.tokens, blocks: text.blocks },
    2,
    () => (firstMs = now),
    () => {},
    () => {},
  );
  engine.take(job);
  for (let ms = engine.plan(); ms !== null; ms = engine.plan()) {
    now += ms;
    engine.apply();
  }
  return { cached: job.cached, firstMs };
}

describe("a simulated engine", () => {
  const [start, other] = [textOf("start", 4_096), textOf("other", 4_096)];

  test("finds the beginning of a prompt again, by salt, until it needs the room", () => {
    const engine = new Engine({ ...enginesOfSpeed(1), blocks: 600 });
    expect(runOn(engine, start)).toEqual({ cached: 0, firstMs: 2 * 12.15 + 4_096 / 8 });
    expect(runOn(engine, start + textOf("more", 100)).cached).toBe(4_096);
    expect(runOn(engine, start, "another account's").cached).toBe(0);
    expect(runOn(engine, other).cached).toBe(0);
    expect(runOn(engine, other).cached).toBe(4_080); // the last token is read in any case
    expect(runOn(engine, start).cached).toBeWithin(1, 2_000); // the end of a prompt goes first
  });

  test("forgets everything when it is cold", () => {
    const engine = new Engine(enginesOfSpeed(1));
    runOn(engine, start);
    engine.loseCache();
    expect(runOn(engine, start).cached).toBe(0);
    expect(engine.cacheUse).toBe(0);
  });
});

test("a seed gives the same trace again, and another seed another", () => {
  for (const name of traceNames) {
    expect(traceNamed(name, 1, 20)).toEqual(traceNamed(name, 1, 20));
    expect(traceNamed(name, 1, 20).sessions.length).toBeGreaterThan(0);
  }
  expect(traceNamed("chats", 1, 20)).not.toEqual(traceNamed("chats", 2, 20));
});

test("first tokens come about as soon as where the caches are known, on each load", () => {
  const only = traceNames.filter((name) => traceNamed(name, 7, 1).judged === null && name !== "rag-one-key");
  const flags = { ...routingDefaults, seconds: 60, seed: 7, only: only.join(","), ways: "oracle,tollgate" };
  const measured = measureVirtual(flags, () => {});
  const times = only.map((trace) => {
    const [oracle, tollgate] = measured.filter((one) => one.trace === trace);
    return { trace, times: tollgate!.meanMs / oracle!.meanMs };
  });
  expect(times.filter(({ times }) => times > 1.15)).toEqual([]);
}, 120_000);

test("light users beside a flood wait little longer than alone, and the flood uses most of what they leave", () => {
  for (const name of ["small-beside-greedy", "interactive-beside-bulk", "rare-beside-greedy"]) {
    const flags = { ...routingDefaults, seconds: 60, only: name, ways: "tollgate,round robin" };
    const [alone, tollgate, all] = measureVirtual(flags, () => {}) as [Measured, Measured, Measured];
    expect(tollgate.p99Ms / alone.p99Ms, name).toBeLessThan(1.3);
    expect(tollgate.othersWork / all.othersWork, name).toBeGreaterThan(0.82);
  }
}, 60_000);
