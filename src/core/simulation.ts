// What `tollgate simulate` is asked and answers, in the words of its JSON. Times are milliseconds, shares from 0 to 1.
import type { Priority } from "./priority.ts";

/** From arrival to the first token, in line included. Null where no request had one. */
export type FirstTokens = Readonly<{
  requests: number;
  refused: number;
  mean_ms: number | null;
  p50_ms: number | null;
  p90_ms: number | null;
  p99_ms: number | null;
  /** The part of it in line. */
  line_mean_ms: number | null;
  line_p90_ms: number | null;
}>;

export type SimulatedRun = Readonly<{
  /** "one more node": of today's configuration, to compare. */
  configuration: "today" | "changed" | "one more node";
  all: FirstTokens;
  classes: readonly (FirstTokens & Readonly<{ class: Priority }>)[];
  /** Those with the most work. */
  accounts: readonly (FirstTokens & Readonly<{ account: string; plan: string; weight: number; work: number }>)[];
  /** The other accounts together. */
  others: (FirstTokens & Readonly<{ accounts: number; work: number }>) | null;
  /** `busy`: the part of the time in which it had any request. */
  nodes: readonly Readonly<{
    node: string;
    slots: number;
    requests: number;
    busy: number;
    cached_input: number | null;
  }>[];
  /** Mean first tokens of equal parts of the time. */
  over_time_ms: readonly (number | null)[];
}>;

/** Today's configuration as it was simulated, beside what the journal recorded of the same requests. */
export type Calibration = Readonly<{
  requests: number;
  recorded: Spread;
  simulated: Spread;
  /** Simulated less recorded, as a part of what was recorded. */
  error: Spread;
  cached_input_recorded: number;
  cached_input_simulated: number;
}>;
export type Spread = Readonly<Record<"mean_ms" | "p50_ms" | "p90_ms" | "p99_ms", number>>;

export type Simulation = Readonly<{
  since: string;
  until: string;
  requests: number;
  accounts: number;
  changes: readonly string[];
  runs: readonly SimulatedRun[];
  /** Null where the journal recorded no first tokens. */
  calibration: Calibration | null;
  verdict: string;
}>;

export type SimulationAsked = Readonly<{
  since?: string | undefined;
  nodes?: string | undefined;
  set?: readonly string[] | undefined;
  slots?: readonly string[] | undefined;
  top?: number | undefined;
}>;
