// The chart of what was used over time: its title, its sentence and its series. The overview shows the last days.
import type { ComponentProps, VNode } from "preact";
import type { ActivityFigures, OverTime as Answer } from "../../api/over-time.ts";
import { change, compact, count, date, dayAndTime, shortTime, worth } from "../format.ts";
import type { Measure, Split } from "../over-time.ts";
import { get } from "../request.ts";
import { useResource } from "../resource.ts";
import { sells } from "../session.ts";
import { rich, t } from "../texts.ts";
import { Empty, Loaded } from "./states.tsx";
import { TimeChart, type TimeSeries } from "./time-chart.tsx";

const dayMs = 86_400_000;

/** A look at the last time, for a page that is about more. */
export function RecentUse(): VNode {
  const answer = useResource(() => get("/over-time"), "recent");
  return (
    <>
      <header>
        <h2>{t("over_time.recent", { range: t(`over_time.range_${answer.value?.range ?? "30d"}`) })}</h2>
        <a href="/usage">{t("over_time.all_use")}</a>
      </header>
      <Loaded resource={answer} lines={7}>
        {(value) =>
          value.total.requests === 0 ? (
            <Nothing isFirst={value.before.requests === 0} />
          ) : (
            <>
              <p class="quiet chart-summary">{summaryOf(value)}</p>
              <Chart {...usual} answer={value} />
            </>
          )
        }
      </Loaded>
    </>
  );
}
export const usual = { by: "model", measure: "tokens" } as const;

export const nameOfMeasure = (measure: Measure): string =>
  t(measure === "cost" && !sells.value ? "over_time.show_billed" : `over_time.show_${measure}`);

const isOfTime = (measure: Measure): boolean => measure === "wait" || measure === "first_token";

export function titleOf(measure: Measure, by: Split, { course, parts }: Answer): string {
  const isWhole =
    measure === "failed" || (by === "node" && parts.length < 2) || (isOfTime(measure) && course?.series.length === 0);
  const name = nameOfMeasure(measure) + (isOfTime(measure) ? ` (${t("over_time.percentiles")})` : "");
  return isWhole ? name : `${name}, ${t(`over_time.by_${by}`)}`;
}

type ChartProps = Readonly<{ answer: Answer; measure: Measure; by: Split }> &
  Pick<ComponentProps<typeof TimeChart>, "onZoom">;

export const Chart = ({ answer, measure, by, onZoom }: ChartProps): VNode => (
  <TimeChart
    title={titleOf(measure, by, answer)}
    from={Date.parse(answer.from)}
    stepMs={answer.step_ms}
    {...seriesOf(measure, answer, by)}
    onZoom={onZoom}
  />
);

export const Nothing = ({ isFirst }: { isFirst: boolean }): VNode => (
  <Empty icon="usage" title={t(isFirst ? "over_time.none_yet" : "over_time.none")}>
    {isFirst
      ? rich("over_time.none_yet_about", { link: (inner) => <a href="/key">{inner}</a> })
      : t("over_time.none_about")}
  </Empty>
);

/** Days are the house's, hours those of the browser. */
export const zoneOf = (stepMs: number): string =>
  stepMs >= dayMs
    ? t(stepMs === dayMs ? "over_time.days_zone" : "over_time.weeks_zone")
    : t("over_time.hours_zone", { zone: new Intl.DateTimeFormat().resolvedOptions().timeZone });

/** In a sentence, what the chart shows: for those who do not see it, and for those in a hurry. */
export function summaryOf({ from, until, step_ms: stepMs, total, before, series }: Answer): string {
  const steps = series[0]?.requests.length ?? 0;
  const sums = Array.from({ length: steps }, (_, at) =>
    series.reduce((sum, { input, output }) => sum + input[at]! + output[at]!, 0),
  );
  const begin = Date.parse(from);
  const inWords = (time: number): string => (stepMs >= dayMs ? date : (at: number) => dayAndTime(at))(time);
  const span = { from: inWords(begin), to: inWords(Date.parse(until) - (stepMs >= dayMs ? dayMs : 0)) };
  const peak = begin + sums.indexOf(Math.max(...sums)) * stepMs;
  const said = t("over_time.summary", {
    ...span,
    requests: total.requests,
    tokens: count(total.input + total.output),
    peak: inWords(peak),
  });
  const changed = change(total.requests, before.requests);
  return changed === null
    ? said
    : `${said} ${t("over_time.summary_before", { change: changed, requests: before.requests })}`;
}

export const oneTime = (ms: number | null | undefined): string => (ms == null ? "–" : shortTime(ms));
const bothTimes = (upper: number | null | undefined, lower: number | null | undefined): string =>
  upper == null ? "–" : `${oneTime(lower)} / ${oneTime(upper)}`;

// ---------------------------------------------------------------- series

type Named = Readonly<{ name: string | null; label: string | null }>;

/** `name` null: the others together. */
export function labelOf({ name, label }: Named, by: Split): string {
  if (label !== null && label !== "") return label;
  if (name === null) return t("over_time.others");
  if (by === "end_user") return t(name === "0" || label === "" ? "over_time.not_named" : "over_time.erased");
  return name === "" ? t("over_time.no_name") : name;
}

type Drawing = Readonly<{
  kind: "bars" | "lines";
  series: TimeSeries[];
  short: (value: number) => string;
  words?: (value: number | null, lower: number | null | undefined) => string;
}>;

function seriesOf(measure: Measure, { series, course, step_ms: stepMs, until, from }: Answer, by: Split): Drawing {
  const figures = (of: (each: Answer["series"][number]) => number[]): TimeSeries[] =>
    series.map((each) => ({ label: labelOf(each, by), values: of(each) }));
  const steps = Math.ceil((Date.parse(until) - Date.parse(from)) / stepMs);
  const counted = (of: (steps: ActivityFigures) => TimeSeries["values"], lower: typeof of): TimeSeries[] =>
    course === null || course.series.length === 0
      ? [
          {
            label: t("over_time.all"),
            values: course === null ? [] : of(course.steps),
            lower: course === null ? [] : lower(course.steps),
          },
        ]
      : course.series.map(({ label, steps }) => ({
          label: label ?? t("over_time.others"),
          values: of(steps),
          lower: lower(steps),
        }));
  const none = Array.from({ length: steps }, () => 0);
  switch (measure) {
    case "tokens":
      return {
        kind: "bars",
        series: figures(({ input, output }) => input.map((sum, at) => sum + output[at]!)),
        short: compact,
      };
    case "requests":
      return { kind: "bars", series: figures(({ requests }) => requests), short: compact };
    case "cost":
      return {
        kind: "bars",
        series: figures(({ billed_tokens: billed }) => billed),
        short: sells.value ? worth : compact,
        ...(sells.value && { words: (value) => worth(value ?? 0) }),
      };
    case "failed":
      return {
        kind: "bars",
        series: (["refused", "failed", "left"] as const).map((kind) => ({
          label: t(`over_time.${kind}`),
          values: course?.steps[kind] ?? none,
        })),
        short: compact,
      };
    default: {
      const name = measure === "wait" ? "wait" : "first_token";
      const series = counted((of) => of[`${name}_p95_ms`], (of) => of[`${name}_p50_ms`]); // prettier-ignore
      return { kind: "lines", series, short: shortTime, words: bothTimes };
    }
  }
}
