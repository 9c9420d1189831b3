// Figures over time as SVG: stacked bars, or lines with a dashed one for the lower figure. The step below the pointer, or
// chosen by arrow keys, shows its figures; all of them stand in a table too.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { clockTime, count, day as dayName, dayAndTime, localDay } from "../format.ts";
import { roundUp } from "../usage-columns.ts";
import { GridLine, tipLeft, useWidth } from "./chart-frame.tsx";
import { TableHead } from "./table-head.tsx";

const height = 190;
const top = 10;
const bottom = 24;
const left = 50;
const dayMs = 86_400_000;

export type TimeSeries = Readonly<{
  label: string;
  /** Of each step; null where nothing was measured. */
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
  /** Of the axis. */
  short: (value: number) => string;
  /** Of one place; `lower` is undefined where the series has none. */
  words?: (value: number | null, lower: number | null | undefined) => string;
}>;

const inWords = (value: number | null): string => (value === null ? "–" : count(value));

export function TimeChart({ title, kind, from, stepMs, series, short, words = inWords }: TimeChartProps): VNode {
  const [frame, width] = useWidth();
  const [chosen, setChosen] = useState<number | null>(null);
  const [isTableOpen, setTableOpen] = useState(false);
  const steps = series[0]?.values.length ?? 0;
  const sums = Array.from({ length: steps }, (_, at) => {
    const values = series.map(({ values }) => values[at] ?? 0);
    return kind === "bars" ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values);
  });
  const most = roundUp(Math.max(kind === "bars" ? 1 : 10, ...sums));
  const step = Math.max(0, width - left) / Math.max(1, steps);
  const x = (at: number): number => left + at * step;
  const y = (value: number): number => top + (height - top - bottom) * (1 - value / most);
  const shown = chosen !== null && chosen < steps ? chosen : null;
  const timeOf = (at: number): string => stepTime(from + at * stepMs, stepMs);
  const figures = (at: number) =>
    series.map(({ label, values, lower }, place) => ({
      label,
      place,
      value: values[at] ?? null,
      text: words(values[at] ?? null, lower?.[at]),
    }));
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = shown ?? steps;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: steps - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setChosen(Math.min(steps - 1, Math.max(0, to)));
  };
  const onPointer = (event: PointerEvent): void => {
    const at = Math.floor((event.clientX - frame.current!.getBoundingClientRect().left - left) / step);
    setChosen(at >= 0 && at < steps ? at : null);
  };
  const ticks = tickSteps(steps, width);
  return (
    <figure class="card stack">
      <figcaption>
        <h2>{title}</h2>
      </figcaption>
      <div
        ref={frame}
        class="chart"
        role="group"
        tabIndex={0}
        aria-label={`${title}. Arrow keys go from step to step.`}
        onKeyDown={onKeyDown}
        onBlur={() => setChosen(null)}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onPointerLeave={() => setChosen(null)}
      >
        <svg height={height} aria-hidden="true">
          {[0, 0.5, 1].map((part) => (
            <GridLine key={part} left={left} width={width} y={y(most * part)} text={short(most * part)} />
          ))}
          {shown !== null && (
            <rect class="hit chosen" x={x(shown)} y={top} width={step} height={height - top - bottom} />
          )}
          {width > left && (kind === "bars" ? bars(series, steps, x, y, step) : lines(series, x, y, step))}
          {ticks.map((at) => (
            <text
              key={at}
              class="axis"
              x={at === steps - 1 ? width : x(at + 0.5)}
              y={height - 4}
              text-anchor={at === steps - 1 ? "end" : "middle"}
            >
              {tickTime(from + at * stepMs, stepMs, steps)}
            </text>
          ))}
        </svg>
        {shown !== null && (
          <div class="chart-tip" style={{ left: `${tipLeft(x(shown), step, width)}px` }} aria-hidden="true">
            <strong>{timeOf(shown)}</strong>
            <dl>
              {figures(shown).map(({ label, place, text }) => (
                <>
                  <dt>
                    <span class={`swatch series-${place + 1}`} />
                    <span class="clip">{label}</span>
                  </dt>
                  <dd class="number">{text}</dd>
                </>
              ))}
            </dl>
          </div>
        )}
        <p class="for-readers" role="status">
          {shown === null
            ? ""
            : `${timeOf(shown)}: ${figures(shown)
                .map((each) => `${each.label} ${each.text}`)
                .join(", ")}`}
        </p>
      </div>
      <ul class="legend">
        {series.map(({ label }, place) => (
          <li key={label}>
            <span class={`swatch series-${place + 1}`} />
            {label}
          </li>
        ))}
      </ul>
      <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
        <summary class="quiet small-text">Figures as a table</summary>
        {isTableOpen && (
          <div class="table-scroll chart-table" role="region" aria-label={`${title}, as a table`} tabIndex={0}>
            <table>
              <TableHead texts={["Time"]} figures={series.map(({ label }) => label)} />
              <tbody>
                {Array.from({ length: steps }, (_, back) => steps - 1 - back).map((at) => (
                  <tr key={at}>
                    <th scope="row">{timeOf(at)}</th>
                    {figures(at).map(({ label, text }) => (
                      <td key={label} class="number">
                        {text}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </details>
    </figure>
  );
}

type Scale = (value: number) => number;

const bars = (series: readonly TimeSeries[], steps: number, x: Scale, y: Scale, step: number): VNode[] =>
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
          x={x(at) + step * 0.14}
          y={y(below)}
          width={Math.max(1, step * 0.72)}
          height={Math.max(1, y(from) - y(below))}
        />
      );
    });
  })
    .flat()
    .filter((bar) => bar !== null);

const lines = (series: readonly TimeSeries[], x: Scale, y: Scale, step: number): VNode[] =>
  series.flatMap(({ label, values, lower }, place) => {
    const path = (of: readonly (number | null)[], dashed: boolean): VNode => (
      <path
        key={`${label} ${dashed}`}
        class={`line series-${place + 1}${dashed ? " dashed" : ""}`}
        d={pathOf(of, (at) => x(at) + step / 2, y)}
      />
    );
    return lower === undefined ? [path(values, false)] : [path(lower, true), path(values, false)];
  });

/** A ring as wide as its line: nearly filled. */
const dot = "m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0 -3 0";

/** A step without a figure is a gap, and a figure alone a dot. */
function pathOf(values: readonly (number | null)[], x: Scale, y: Scale): string {
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

/** The last step and some before it, as many as have room. */
function tickSteps(steps: number, width: number): number[] {
  const every = Math.max(1, Math.ceil(steps / Math.max(2, Math.floor((width - left) / 90))));
  return Array.from({ length: steps }, (_, at) => at).filter((at) => (steps - 1 - at) % every === 0 && at * every > 0);
}

/** Days are those of UTC, times those of who looks. */
const stepTime = (time: number, stepMs: number): string => (stepMs === dayMs ? dayName : dayAndTime)(time);

const tickTime = (time: number, stepMs: number, steps: number): string =>
  (stepMs === dayMs ? dayName : stepMs * steps > dayMs ? localDay : clockTime)(time);
