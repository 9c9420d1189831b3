// The last 30 days as stacked bars by model, drawn as SVG: sharp at any size, and each day can be reached by keyboard.
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { UsageSummary } from "../../api/usage.ts";
import { compact, count, day as dayName, dollars, plural } from "../format.ts";
import { sells } from "../session.ts";
import { GridLine, tipLeft, useWidth } from "./chart-frame.tsx";
import { type Column, columnsOf, days, isFree, roundUp } from "../usage-columns.ts";

const height = 210;
const top = 10;
const bottom = 26;
const left = 44;
export function UsageChart({ summary }: { summary: UsageSummary }): VNode {
  const { columns, models } = useMemo(() => columnsOf(summary), [summary]);
  const what = isFree(summary) ? "Tokens" : "Balance tokens";
  const [frame, width] = useWidth();
  const [chosen, setChosen] = useState<number | null>(null);
  const most = roundUp(Math.max(...columns.map(({ total }) => total)));
  const step = (width - left) / days;
  const daysPerLabel = width < 300 ? 10 : width < 560 ? 7 : 5;
  const y = (tokens: number): number => top + (height - top - bottom) * (1 - tokens / most);
  const column = chosen === null ? undefined : columns[chosen];
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (move === 0) return;
    event.preventDefault();
    setChosen(Math.min(days - 1, Math.max(0, (chosen ?? days) + move)));
  };
  return (
    <figure>
      <div
        ref={frame}
        class="chart"
        role="group"
        tabIndex={0}
        aria-label={`${what} of the last 30 days. Arrow keys go from day to day.`}
        onKeyDown={onKeyDown}
        onBlur={() => setChosen(null)}
        onPointerLeave={() => setChosen(null)}
      >
        <svg height={height} aria-hidden="true">
          {[0, 0.5, 1].map((part) => (
            <GridLine key={part} left={left} width={width} y={y(most * part)} text={compact(most * part)} />
          ))}
          {columns.map((shown, index) => (
            <g key={shown.day} onPointerEnter={() => setChosen(index)} onPointerDown={() => setChosen(index)}>
              <rect
                class={index === chosen ? "hit chosen" : "hit"}
                x={left + index * step}
                y={top}
                width={Math.max(0, step)}
                height={height - top - bottom}
              />
              <Bars column={shown} x={left + index * step + step * 0.16} width={Math.max(1, step * 0.68)} y={y} />
              {index % daysPerLabel === (days - 1) % daysPerLabel && (
                <text
                  class="axis"
                  x={index === days - 1 ? width : left + (index + 0.5) * step}
                  y={height - 6}
                  text-anchor={index === days - 1 ? "end" : "middle"}
                >
                  {dayName(shown.day)}
                </text>
              )}
            </g>
          ))}
        </svg>
        {column !== undefined && chosen !== null && (
          <Tip column={column} none={`No ${what.toLowerCase()}`} left={tipLeft(left + chosen * step, step, width)} />
        )}
        <p class="for-readers" role="status">
          {column === undefined
            ? ""
            : `${dayName(column.day)}: ${count(column.total)} ${what.toLowerCase()}, ${sells.value ? `${dollars(column.usd)}, ` : ""}${count(column.requests)} requests`}
        </p>
      </div>
      <ul class="legend">
        {models.map((model, series) => (
          <li key={model}>
            <span class={`swatch series-${series + 1}`} />
            {model}
          </li>
        ))}
      </ul>
    </figure>
  );
}

type BarsProps = Readonly<{ column: Column; x: number; width: number; y: (tokens: number) => number }>;

function Bars({ column, x, width, y }: BarsProps): VNode {
  let below = 0;
  return (
    <>
      {column.parts.map(({ model, series, tokens }) => {
        const from = below;
        below += tokens;
        return (
          <rect
            key={model}
            class={`series-${series + 1}`}
            fill="currentColor"
            x={x}
            y={y(below)}
            width={width}
            height={Math.max(1, y(from) - y(below))}
            rx={Math.min(2, width / 4)}
          />
        );
      })}
    </>
  );
}

const Tip = ({ column, none, left: x }: { column: Column; none: string; left: number }): VNode => (
  <div class="chart-tip" style={{ left: `${x}px` }} aria-hidden="true">
    <strong>{dayName(column.day)}</strong>{" "}
    <span class="quiet">{sells.value ? dollars(column.usd) : plural(column.requests, "request")}</span>
    <dl>
      {column.parts.map(({ model, series, tokens }) => (
        <>
          <dt>
            <span class={`swatch series-${series + 1}`} />
            {model}
          </dt>
          <dd class="number">{count(tokens)}</dd>
        </>
      ))}
      {column.parts.length === 0 && <dt class="quiet">{none}</dt>}
    </dl>
  </div>
);
