// Another GPU, or another rule? One sentence, with how far it can be trusted.
//
//   (1) requests hardly wait today                        -> neither
//   (2) another node takes away much of the first tokens  -> a node, unless the change does nearly as much
//   (3) the change helps some and costs others little     -> the rule
//   (4) otherwise                                         -> neither of them helps
import type { Calibration, FirstTokens, SimulatedRun, Simulation } from "../../core/simulation.ts";

type Found = Pick<Simulation, "runs" | "calibration" | "changes">;

/** Nine of ten requests that wait no longer than this in line, and have their first token by then, do not need anything. */
const fineLineMs = 250;
const fineMs = 1_000;
/** A smaller part is not worth a node, or a change. */
const worthPart = 0.15;
/** What others may lose for it. */
const costPart = 0.1;

export function verdictOf(found: Found): string {
  const { runs, calibration } = found;
  return `${answerOf(found, runs)}; ${trustOf(calibration)}.`;
}

function answerOf({ changes }: Found, runs: readonly SimulatedRun[]): string {
  const today = runs.find(({ configuration }) => configuration === "today")!;
  const changed = runs.find(({ configuration }) => configuration === "changed");
  const node = runs.find(({ configuration }) => configuration === "one more node");
  const isAll = changed !== undefined && node === undefined; // the change is the other node
  const more = node ?? changed!;
  const lineP90 = today.all.line_p90_ms ?? 0;
  if (lineP90 <= fineLineMs && (today.all.p90_ms ?? 0) <= fineMs && today.all.refused === 0) {
    return `Neither: today nine of ten requests wait at most ${inWords(lineP90)} in line and have their first token within ${inWords(today.all.p90_ms)}; another node would change the mean from ${fromTo(today.all, more.all)}`;
  }
  const rule = isAll ? undefined : changed;
  const ofNode = gainOf(today.all, more.all);
  const ofRule = rule === undefined ? 0 : gainOf(today.all, rule.all);
  const named = changes.join(", ");
  if (rule !== undefined && ofRule >= worthPart && ofRule >= 0.8 * ofNode) {
    return `Another rule: ${named} changes the mean first token from ${fromTo(today.all, rule.all)}, another node would change it from ${fromTo(today.all, more.all)}`;
  }
  if (ofNode >= worthPart) {
    const beside = rule === undefined ? "" : `, where ${named} gives ${inWords(rule.all.mean_ms)}`;
    return `Another GPU: it changes the mean first token from ${fromTo(today.all, more.all)}${beside}`;
  }
  const helped = rule === undefined ? null : helpedBy(today, rule);
  if (helped !== null) return `Another rule: ${named} helps ${helped}`;
  return `Neither helps much: the mean first token is ${inWords(today.all.mean_ms)} today and ${inWords(more.all.mean_ms)} with another node, so the time goes into prompts that must be read`;
}

/** Who waits less, where nobody waits much more; null: no one. */
function helpedBy(today: SimulatedRun, rule: SimulatedRun): string | null {
  const pairs = [
    ...today.classes.map(
      (before) => [before.class, before, rule.classes.find((after) => after.class === before.class)] as const,
    ),
    ...today.accounts.map((before, place) => [before.account, before, rule.accounts[place]] as const),
  ];
  const known = pairs.flatMap(([name, before, after]) => (after === undefined ? [] : [{ name, before, after }]));
  const best = known.toSorted((one, other) => gainOf(other.before, other.after) - gainOf(one.before, one.after))[0];
  if (best === undefined || gainOf(best.before, best.after) < worthPart) return null;
  const worst = Math.max(...known.map(({ before, after }) => -gainOf(before, after)));
  const cost = worst <= costPart ? "and costs nobody else a tenth" : `and others wait up to ${percent(worst)} longer`;
  return `${best.name} (${fromTo(best.before, best.after)}) ${cost}`;
}

/** Of the mean, as a part; refused requests count as if they had waited for ever. */
function gainOf(before: FirstTokens, after: FirstTokens): number {
  if (before.refused !== after.refused)
    return (before.refused - after.refused) / Math.max(before.refused, after.refused);
  return 1 - (after.mean_ms ?? 0) / Math.max(1, before.mean_ms ?? 0);
}

function trustOf(calibration: Calibration | null): string {
  if (calibration === null) return "nothing says how far to trust it, since the journal recorded no first tokens";
  const { requests, error } = calibration;
  const off = (part: number): string => `${part < 0 ? "-" : "+"}${percent(Math.abs(part))}`;
  return `trust it as far as the simulation of today met what ${requests.toLocaleString("en-US")} requests recorded: mean ${off(error.mean_ms)}, p50 ${off(error.p50_ms)}, p90 ${off(error.p90_ms)}, p99 ${off(error.p99_ms)}`;
}

const percent = (part: number): string => `${Math.round(100 * part)} %`;
const fromTo = (before: FirstTokens, after: FirstTokens): string =>
  `${inWords(before.mean_ms)} to ${inWords(after.mean_ms)}`;
const inWords = (ms: number | null): string =>
  ms === null ? "nothing" : ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
