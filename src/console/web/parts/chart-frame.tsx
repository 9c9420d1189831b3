// The frame of a chart as SVG: grid, axes, legend, and a box with the figures of the chosen step.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const top = 10;
const bottom = 26;
const tipWidth = 230;

/** Where things are, in pixels. */
export type Plot = Readonly<{
  stepWidth: number;
  /** The left end of a step. */
  x: (step: number) => number;
  y: (value: number) => number;
}>;

type ChartFrameProps = Readonly<{
  /** For screen readers. */
  label: string;
  height: number;
  /** Room for the numbers of the axis. */
  left: number;
  steps: number;
  /** The highest value of the axis. */
  most: number;
  axisText: (value: number) => string;
  /** The steps with a text below them. */
  ticks: (width: number) => readonly number[];
  tickText: (step: number) => string;
  draw: (plot: Plot) => ComponentChildren;
  tip: (step: number) => ComponentChildren;
  /** A step's figures in one sentence, for screen readers. */
  status: (step: number) => string;
  /** The names of the series, in the order of their colors. */
  legend: readonly string[];
}>;

export function ChartFrame(props: ChartFrameProps): VNode {
  const { label, height, left, steps, most, axisText, ticks, tickText, draw, tip, status, legend } = props;
  const [frame, width] = useWidth();
  const [chosen, setChosen] = useState<number | null>(null);
  const stepWidth = Math.max(0, width - left) / Math.max(1, steps);
  const x = (step: number): number => left + step * stepWidth;
  const y = (value: number): number => top + (height - top - bottom) * (1 - value / most);
  const shown = chosen !== null && chosen < steps ? chosen : null;
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = shown ?? steps;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: steps - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setChosen(Math.min(steps - 1, Math.max(0, to)));
  };
  const onPointer = ({ clientX, currentTarget }: { clientX: number; currentTarget: HTMLElement }): void => {
    const step = Math.floor((clientX - currentTarget.getBoundingClientRect().left - left) / stepWidth);
    setChosen(step >= 0 && step < steps ? step : null);
  };
  return (
    <>
      <div
        ref={frame}
        class="chart"
        role="group"
        tabIndex={0}
        aria-label={`${label}. Arrow keys go from step to step.`}
        onKeyDown={onKeyDown}
        onBlur={() => setChosen(null)}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onPointerLeave={() => setChosen(null)}
      >
        <svg height={height} aria-hidden="true">
          {[0, most / 2, most].map((value) => (
            <GridLine key={value} left={left} width={width} y={y(value)} text={axisText(value)} />
          ))}
          {shown !== null && (
            <rect class="chosen" x={x(shown)} y={top} width={stepWidth} height={height - top - bottom} />
          )}
          {width > left && draw({ stepWidth, x, y })}
          {ticks(width).map((step) => (
            <text
              key={step}
              class="axis"
              x={step === steps - 1 ? width : x(step + 0.5)}
              y={height - 6}
              text-anchor={step === steps - 1 ? "end" : "middle"}
            >
              {tickText(step)}
            </text>
          ))}
        </svg>
        {shown !== null && (
          <div class="chart-tip" style={{ left: `${tipLeft(x(shown), stepWidth, width)}px` }} aria-hidden="true">
            {tip(shown)}
          </div>
        )}
        <p class="for-readers" role="status">
          {shown === null ? "" : status(shown)}
        </p>
      </div>
      <Legend names={legend} />
    </>
  );
}

type GridLineProps = Readonly<{ left: number; width: number; y: number; text: string }>;

const GridLine = ({ left, width, y, text }: GridLineProps): VNode => (
  <g>
    <line class="grid" x1={left} x2={width} y1={y} y2={y} />
    <text class="axis" x={left - 8} y={y + 4} text-anchor="end">
      {text}
    </text>
  </g>
);

type LegendProps = Readonly<{ names: readonly string[] }>;

const Legend = ({ names }: LegendProps): VNode => (
  <ul class="legend">
    {names.map((name, series) => (
      <li key={name}>
        <span class={`swatch series-${series + 1}`} />
        {name}
      </li>
    ))}
  </ul>
);

/** Beside the step, on the side with more room. */
function tipLeft(stepLeft: number, stepWidth: number, width: number): number {
  const beside = stepLeft > width / 2 ? stepLeft - tipWidth - 8 : stepLeft + stepWidth + 8;
  return Math.max(0, Math.min(beside, width - tipWidth));
}

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [frame, width];
}
