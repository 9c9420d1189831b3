// Figures over time: stacked bars, or lines with a dashed one for the lower figure. A table below has the same figures.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { clockTime, count, day as dayName, dayAndTime, localDay, roundUp } from "../format.ts";
import { t } from "../texts.ts";
import { ChartFrame, type Plot } from "./chart-frame.tsx";
import { type DataColumn, DataTable, figureColumn } from "./data-table.tsx";

const left = 52;
const dayMs = 86_400_000;

export type TimeSeries = Readonly<{
  label: string;
  /** One for each step; null where nothing was measured. */
  values: readonly (number | null)[];
  /** Drawn dashed below them. */
  lower?: readonly (number | null)[];
}>;

type TimeChartProps = Readonly<{
  title: string;
  kind: "bars" | "lines";
  /** When the first step begins. */
  from: number;
  stepMs: number;
  series: readonly TimeSeries[];
  short: (value: number) => string;
  /** A step's value in words; `lower` is undefined where the series has none. */
  words?: (value: number | null, lower: number | null | undefined) => string;
  /** A time is to be shown closer. */
  onZoom?: ((from: number, until: number) => void) | undefined;
}>;

const inWords = (value: number | null): string => (value === null ? "–" : count(value));

export function TimeChart(props: TimeChartProps): VNode {
  const { title, kind, from, stepMs, series, short, words = inWords, onZoom } = props;
  const steps = series[0]?.values.length ?? 0;
  const timeOf = (step: number): string => stepTime(from + step * stepMs, stepMs);
  const hasTotal = kind === "bars" && series.length > 1;
  const figures = (step: number): readonly Figure[] => [
    ...series.map(({ label, values, lower }) => ({ label, text: words(values[step] ?? null, lower?.[step]) })),
    ...(hasTotal ? [{ label: t("chart.total"), text: words(sumOf(series, step), undefined) }] : []),
  ];
  const labels = series.map(({ label }) => label);
  return (
    <figure class="stack" aria-label={title}>
      <ChartFrame
        label={title}
        height={230}
        left={left}
        steps={steps}
        most={mostOf(series, steps, kind)}
        axisText={short}
        ticks={(width) => tickSteps(steps, width)}
        tickText={(step) => tickTime(from + step * stepMs, stepMs, steps)}
        draw={(plot) => (kind === "bars" ? bars(series, steps, plot) : lines(series, plot))}
        tip={(step) => <Tip time={timeOf(step)} figures={figures(step)} colors={series.length} />}
        status={(step) =>
          `${timeOf(step)}: ${figures(step)
            .map(({ label, text }) => `${label} ${text}`)
            .join(", ")}`
        }
        legend={labels}
        onZoom={onZoom && ((first, last) => onZoom(from + first * stepMs, from + (last + 1) * stepMs))}
      />
      <FiguresTable
        title={title}
        series={series}
        labels={hasTotal ? [...labels, t("chart.total")] : labels}
        steps={steps}
        {...{ timeOf, figures }}
      />
    </figure>
  );
}

type Figure = Readonly<{ label: string; text: string }>;

const sumOf = (series: readonly TimeSeries[], step: number): number =>
  series.reduce((sum, { values }) => sum + (values[step] ?? 0), 0);

function mostOf(series: readonly TimeSeries[], steps: number, kind: TimeChartProps["kind"]): number {
  const sums = Array.from({ length: steps }, (_, step) => {
    const values = series.map(({ values }) => values[step] ?? 0);
    return kind === "bars" ? sumOf(series, step) : Math.max(0, ...values);
  });
  return roundUp(Math.max(kind === "bars" ? 1 : 10, ...sums));
}

type TipProps = Readonly<{ time: string; figures: readonly Figure[]; colors: number }>;

const Tip = ({ time, figures, colors }: TipProps): VNode => (
  <>
    <strong>{time}</strong>
    <dl>
      {figures.map(({ label, text }, place) => (
        <>
          <dt>
            {place < colors && <span class={`swatch series-${place + 1}`} />}
            <span class="clip">{label}</span>
          </dt>
          <dd class="number">{text}</dd>
        </>
      ))}
    </dl>
  </>
);

type FiguresTableProps = Readonly<{
  title: string;
  series: readonly TimeSeries[];
  labels: readonly string[];
  steps: number;
  timeOf: (step: number) => string;
  figures: (step: number) => readonly Figure[];
}>;

/** Newest first; drawn only while it is open. */
function FiguresTable({ title, series, labels, steps, timeOf, figures }: FiguresTableProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const columns: readonly DataColumn<number>[] = [
    { id: "time", name: "chart.time", look: "nowrap", sort: (step) => step, cell: timeOf },
    ...labels.map((said, at) =>
      figureColumn<number>(`${at}`, { said }, (step) => valueOf(series, at, step), count, {
        cell: (step) => figures(step)[at]?.text,
      }),
    ),
  ];
  return (
    <details class="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="quiet small-text">{t("chart.as_table")}</summary>
      {isOpen && (
        <DataTable
          caption={t("chart.table_of", { title })}
          columns={columns}
          rows={Array.from({ length: steps }, (_, step) => step)}
          rowKey={(step) => step}
          first="-time"
          prefix="chart-"
        />
      )}
    </details>
  );
}

/** Behind the last of several series stand their sums. */
const valueOf = (series: readonly TimeSeries[], at: number, step: number): number | null =>
  at < series.length ? (series[at]!.values[step] ?? null) : sumOf(series, step);

const bars = (series: readonly TimeSeries[], steps: number, { x, y, stepWidth }: Plot): VNode[] =>
  Array.from({ length: steps }, (_, at) => {
    let below = 0;
    return series.map(({ label, values }, place) => {
      const value = values[at] ?? 0;
      if (value === 0) return null;
      const from = below;
      below += value;
      return (
        <rect
          key={label}
          class={`series-${place + 1}`}
          fill="currentColor"
          x={x(at) + stepWidth * 0.14}
          y={y(below)}
          width={Math.max(1, stepWidth * 0.72)}
          height={Math.max(1, y(from) - y(below))}
        />
      );
    });
  })
    .flat()
    .filter((bar) => bar !== null);

const lines = (series: readonly TimeSeries[], { x, y, stepWidth }: Plot): VNode[] =>
  series.flatMap(({ label, values, lower }, place) => {
    const path = (of: readonly (number | null)[], dashed: boolean): VNode => (
      <path
        key={`${label} ${dashed}`}
        class={`line series-${place + 1}${dashed ? " dashed" : ""}`}
        d={pathOf(of, (at) => x(at) + stepWidth / 2, y)}
      />
    );
    return lower === undefined ? [path(values, false)] : [path(lower, true), path(values, false)];
  });

/** A ring with a line as wide as its hole, so that it looks filled. */
const dot = "m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0 -3 0";

/** A step without a value is a gap, and a single value a dot. */
function pathOf(values: readonly (number | null)[], x: Plot["x"], y: Plot["y"]): string {
  let path = "";
  let isOpen = false;
  for (const [at, value] of values.entries()) {
    if (value !== null) path += `${isOpen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    const isAlone = value !== null && !isOpen && (values[at + 1] ?? null) === null;
    if (isAlone) path += dot;
    isOpen = value !== null;
  }
  return path;
}

/** The last step, and as many before it as have room. */
function tickSteps(steps: number, width: number): number[] {
  const every = Math.max(1, Math.ceil(steps / Math.max(2, Math.floor((width - left) / 90))));
  return Array.from({ length: steps }, (_, at) => at).filter((at) => (steps - 1 - at) % every === 0 && at * every > 0);
}

const weekMs = 7 * dayMs;

/** Days are in UTC, times in the time zone of the browser. */
const stepTime = (time: number, stepMs: number): string =>
  stepMs >= weekMs
    ? t("chart.days", { from: dayName(time), to: dayName(time + stepMs - dayMs) })
    : (stepMs === dayMs ? dayName : dayAndTime)(time);

const tickTime = (time: number, stepMs: number, steps: number): string =>
  (stepMs >= dayMs ? dayName : stepMs * steps > 2 * dayMs ? localDay : clockTime)(time);
