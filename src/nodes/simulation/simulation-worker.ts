// The Worker of a simulation: neither a server's streams nor its journal wait for it.
import type { ArrivalPage } from "../../core/arrivals.ts";
import type { Calibration } from "../../core/simulation.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { observe, type Observed, usualAmong } from "./observed.ts";
import { replay, type Setup } from "./replay.ts";
import { calibrationOf, type Summary, summaryOf, workOf } from "./summary.ts";
import { type Trace, TraceReader } from "./trace.ts";
import type { EngineRates } from "./virtual-engine.ts";

/** What the Worker is called for; the result depends on it. */
export type SimulationCall =
  /** `from`: what came before is left out. */
  | Readonly<{ order: "add"; page: ArrivalPage; from: Ms }>
  /** No more pages come: a TraceFacts. */
  | Readonly<{ order: "trace" }>
  /** A RunResult. `shown`: accounts to list, by their places; its progress is the part that is done. */
  | Readonly<{ order: "run"; setup: Setup; shown: readonly number[] }>
  | Readonly<{ order: "close" }>;

/** `work`: of each account. `rates`: for nodes that have shown none. */
export type TraceFacts = Readonly<{
  requests: number;
  until: Ms;
  accounts: readonly AccountId[];
  work: Float64Array;
  models: readonly string[];
  nodes: readonly Observed[];
  rates: EngineRates;
}>;

export type RunResult = Readonly<{ summary: Summary; calibration: Calibration | null }>;

declare const self: Worker;

const reader = new TraceReader();
let trace: Trace;

answerCalls<SimulationCall>(self, (order, progress) => {
  switch (order.order) {
    case "add":
      reader.add(order.page, order.from);
      return null;
    case "trace":
      trace = reader.trace();
      return factsOf(trace);
    case "run": {
      const replayed = replay(trace, order.setup, (part) => {
        Bun.gc(true); // the blocks of prompts are freed late otherwise: 300 MB more for a million requests
        progress(part);
      });
      const summary = summaryOf(trace, order.setup, replayed, order.shown);
      return { summary, calibration: calibrationOf(trace, replayed) } satisfies RunResult;
    }
    case "close":
      endWorker(self);
      return null;
    default:
      return order satisfies never;
  }
});

function factsOf(trace: Trace): TraceFacts {
  const { length: requests, accounts, models, lineAt } = trace;
  const nodes = observe(trace);
  return {
    requests,
    until: lineAt.at(-1) ?? 0,
    accounts,
    work: workOf(trace),
    models,
    nodes,
    rates: usualAmong(nodes),
  };
}
