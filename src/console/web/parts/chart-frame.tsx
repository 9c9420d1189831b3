// What charts share: how wide they are, the lines of their grid, and where the box with the figures of a place stands.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const tipWidth = 230;

/** Beside the step, on the side with more room. */
export function tipLeft(stepLeft: number, step: number, width: number): number {
  const beside = stepLeft > width / 2 ? stepLeft - tipWidth - 8 : stepLeft + step + 8;
  return Math.max(0, Math.min(beside, width - tipWidth));
}

type GridLineProps = Readonly<{ left: number; width: number; y: number; text: string }>;

/** With its value at the axis. */
export const GridLine = ({ left, width, y, text }: GridLineProps): VNode => (
  <g>
    <line class="grid" x1={left} x2={width} y1={y} y2={y} />
    <text class="axis" x={left - 8} y={y + 4} text-anchor="end">
      {text}
    </text>
  </g>
);

/** The width of an element, kept up to date. */
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
