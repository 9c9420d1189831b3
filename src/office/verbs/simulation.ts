// What the journal's requests would have met under another configuration.
import { Type } from "@sinclair/typebox";
import type { FirstTokens, Simulation, SimulatedRun } from "../../core/simulation.ts";
import { repeated } from "../fields.ts";
import { type Cell, formatTable } from "../table.ts";
import { verb } from "../verb.ts";

const text = (placeholder: string, description: string) => Type.Optional(Type.String({ placeholder, description }));

export const simulate = verb({
  name: "simulate",
  summary: "Replay the journal's requests with other nodes or rules, and compare the waits",
  details:
    "Says whether another node or another rule would help. It reads when requests came, whose they were and how long, in virtual time.",
  fields: {
    since: text("WHEN", "Requests since then: a time, or 90m, 24h, 7d, which is usual."),
    nodes: text("+N", "With N more nodes like the busiest, or with -1, one less."),
    set: Type.Optional(
      repeated("PATH=VALUE", "With another value in the configuration, such as plans.pro.weight=3; may be repeated."),
    ),
    slots: Type.Optional(repeated("N", "With N slots on each node, or NODE=N on one; may be repeated.")),
    top: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        placeholder: "N",
        description: "Accounts to list, 10 unless you say otherwise.",
      }),
    ),
  },
  scope: "read",
  run: ({ simulate }, { input, progress }) => simulate(input, progress),
  print: (simulation) => simulationInWords(simulation),
});

/** Draws a number, or numbers one after the other, to the scale of the greatest. */
export type Drawing = Readonly<{
  bar(value: number, most: number): string;
  line(values: readonly (number | null)[], most: number): string;
}>;

/** `drawing` null: words and numbers alone. */
export function simulationInWords(simulation: Simulation, drawing: Drawing | null = null): string {
  const { since, until, requests, accounts, changes, runs, calibration, verdict } = simulation;
  const what = changes.length === 0 ? "" : `, changed: ${changes.join(", ")}`;
  const of = `${requests.toLocaleString("en-US")} requests of ${accounts.toLocaleString("en-US")} accounts`;
  return [
    `${of}, ${since} to ${until}${what}`,
    tableOf(runs, drawing, "", ({ all }) => [["all requests", all]]),
    ...(drawing === null ? [] : [overTime(runs, drawing)]),
    tableOf(runs, drawing, "class", ({ classes }) => classes.map((each) => [each.class, each])),
    tableOf(runs, drawing, "account", accountsOf),
    nodesTable(runs),
    ...(calibration === null ? [] : [calibrationTable(calibration)]),
    verdict,
  ].join("\n\n");
}

function accountsOf({ accounts, others }: SimulatedRun): Named[] {
  const named = accounts.map((each): Named => [
    `${each.account} (${each.plan}, ${percent(each.work)} of the work)`,
    each,
  ]);
  return others === null
    ? named
    : [...named, [`${others.accounts} others (${percent(others.work)} of the work)`, others]];
}

function overTime(runs: readonly SimulatedRun[], { line }: Drawing): string {
  const most = Math.max(...runs.flatMap(({ over_time_ms }) => over_time_ms.map((ms) => ms ?? 0)));
  const lines = runs.map(({ configuration, over_time_ms }): Cell[] => [configuration, line(over_time_ms, most)]);
  return formatTable(["mean over time", ""], lines);
}

type Named = readonly [name: string, tokens: FirstTokens];

/** Each name with a line for each configuration. */
function tableOf(
  runs: readonly SimulatedRun[],
  drawing: Drawing | null,
  heading: string,
  rowsOf: (run: SimulatedRun) => readonly Named[],
): string {
  const most = Math.max(...runs.flatMap((run) => rowsOf(run).map(([, { p90_ms }]) => p90_ms ?? 0)));
  const names = [...new Set(runs.flatMap((run) => rowsOf(run).map(([name]) => name)))];
  const rows = names.flatMap((name) =>
    runs.flatMap((run): Cell[][] => {
      const tokens = rowsOf(run).find(([of]) => of === name)?.[1];
      if (tokens === undefined) return [];
      const { requests, refused, mean_ms, p50_ms, p90_ms, p99_ms, line_p90_ms } = tokens;
      const times = [mean_ms, p50_ms, p90_ms, p99_ms, line_p90_ms].map(rounded);
      return [[name, run.configuration, requests, refused, ...times, drawing?.bar(p90_ms ?? 0, most) ?? ""]];
    }),
  );
  const times = ["mean ms", "p50", "p90", "p99", "p90 in line"];
  return formatTable([heading, "first token", "requests", "refused", ...times, ""], rows);
}

const nodesTable = (runs: readonly SimulatedRun[]): string =>
  formatTable(
    ["node", "", "slots", "requests", "busy", "input cached"],
    runs.flatMap(({ configuration, nodes }) =>
      nodes.map(({ node, slots, requests, busy, cached_input }): Cell[] => [
        ...[node, configuration, slots, requests, percent(busy)],
        cached_input === null ? "" : percent(cached_input),
      ]),
    ),
  );

const calibrationTable = ({ recorded, simulated, ...cached }: NonNullable<Simulation["calibration"]>): string =>
  formatTable(
    ["today", "mean ms", "p50", "p90", "p99", "input cached"],
    [
      ["recorded", ...Object.values(recorded).map(rounded), percent(cached.cached_input_recorded)],
      ["simulated", ...Object.values(simulated).map(rounded), percent(cached.cached_input_simulated)],
    ],
  );

const rounded = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));
const percent = (part: number): string => `${Math.round(100 * part)} %`;

export default [simulate];
