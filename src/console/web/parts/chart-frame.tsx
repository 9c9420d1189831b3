// The frame of a chart as SVG: grid, axes, legend, a box with the figures of the chosen step, and steps that are selected by a
// drag, a finger or Shift with the arrow keys.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../texts.ts";

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
  /** Steps from the first to the last are to be shown closer; absent: there is nothing closer. */
  onZoom?: ((first: number, last: number) => void) | undefined;
}>;

export function ChartFrame(props: ChartFrameProps): VNode {
  const { label, height, left, steps, most, axisText, ticks, tickText, draw, tip, status, legend, onZoom } = props;
  const [frame, width] = useWidth();
  const stepWidth = Math.max(0, width - left) / Math.max(1, steps);
  const { shown, begun, ends, handlers } = useSelection({ left, steps, stepWidth, onZoom });
  const x = (step: number): number => left + step * stepWidth;
  const y = (value: number): number => top + (height - top - bottom) * (1 - value / most);
  return (
    <>
      <div
        ref={frame}
        class="chart"
        role="group"
        tabIndex={0}
        aria-label={t(onZoom === undefined ? "chart.keys" : "chart.keys_zoom", { label })}
        {...handlers}
      >
        <svg height={height} viewBox={`0 0 ${Math.max(1, width)} ${height}`} aria-hidden="true">
          {[0, most / 2, most].map((value) => (
            <GridLine key={value} left={left} width={width} y={y(value)} text={axisText(value)} />
          ))}
          {shown !== null && (
            <rect
              class={begun === null ? "chosen" : "chosen selected"}
              x={x(ends[0])}
              y={top}
              width={stepWidth * (ends[1] - ends[0] + 1)}
              height={height - top - bottom}
            />
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
          {shown !== null && begun !== null && begun !== shown
            ? t("chart.selected", { from: tickText(ends[0]), to: tickText(ends[1]) })
            : shown !== null && status(shown)}
        </p>
      </div>
      <Legend names={legend} />
    </>
  );
}

type Selecting = Pick<ChartFrameProps, "left" | "steps" | "onZoom"> & Readonly<{ stepWidth: number }>;

/** The step that is chosen, and those that are selected up to it. */
function useSelection({ left, steps, stepWidth, onZoom }: Selecting) {
  const [chosen, setChosen] = useState<number | null>(null);
  /** Where a selection began; a ref as well, since events may come faster than drawings. */
  const [begun, setBegun] = useState<number | null>(null);
  const anchor = useRef<number | null>(null);
  const begin = (step: number | null): void => setBegun((anchor.current = step));
  const shown = chosen !== null && chosen < steps ? chosen : null;
  const ends = [shown ?? 0, begun ?? shown ?? 0].sort((one, other) => one - other) as [number, number];
  const clamped = (step: number): number => Math.min(steps - 1, Math.max(0, step));

  const zoom = (one: number, other: number): void => {
    begin(null);
    setChosen(null);
    onZoom?.(Math.min(one, other), Math.max(one, other));
  };
  const onGone = (): void => {
    begin(null);
    setChosen(null);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = shown ?? steps;
    if (event.key === "Escape") return onGone();
    if (event.key === "Enter" && shown !== null && onZoom !== undefined) {
      event.preventDefault();
      return zoom(anchor.current ?? shown, shown);
    }
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: steps - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    begin(event.shiftKey && onZoom !== undefined ? (anchor.current ?? clamped(now)) : null);
    setChosen(clamped(to));
  };
  const stepAt = ({ clientX, currentTarget }: PointerIn): number =>
    Math.floor((clientX - currentTarget.getBoundingClientRect().left - left) / stepWidth);
  const onPointerDown = (event: PointerIn): void => {
    const step = clamped(stepAt(event));
    setChosen(step);
    if (onZoom === undefined || event.button !== 0) return;
    begin(step);
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerIn): void => {
    const step = stepAt(event);
    setChosen(anchor.current !== null || (step >= 0 && step < steps) ? clamped(step) : null);
  };
  const onPointerUp = (event: PointerIn): void => {
    const from = anchor.current;
    const to = clamped(stepAt(event));
    begin(null);
    if (from !== null && from !== to) zoom(from, to);
  };
  return {
    shown,
    begun,
    ends,
    handlers: {
      onKeyDown,
      onBlur: onGone,
      onPointerDown,
      onPointerMove,
      onPointerUp,
      onPointerCancel: onGone,
      // A finger that is lifted leaves the figures that it asked for.
      onPointerLeave: ({ pointerType }: PointerEvent) => pointerType !== "touch" && onGone(),
      onDblClick: () => shown !== null && zoom(shown, shown),
    },
  };
}

type PointerIn = Readonly<{ clientX: number; button: number; pointerId: number; currentTarget: HTMLElement }>;

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
