// The last 30 days as stacked bars by model.
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { UsageSummary } from "../../api/usage.ts";
import { compact, count, day as dayName, dollars, plural } from "../format.ts";
import { sells } from "../session.ts";
import { ChartFrame, type Plot } from "./chart-frame.tsx";
import { type Column, columnsOf, days, isFree, roundUp } from "../usage-columns.ts";

export function UsageChart({ summary }: { summary: UsageSummary }): VNode {
  const { columns, models } = useMemo(() => columnsOf(summary), [summary]);
  const what = isFree(summary) ? "Tokens" : "Balance tokens";
  return (
    <figure>
      <ChartFrame
        label={`${what} of the last 30 days`}
        height={210}
        left={44}
        steps={days}
        most={roundUp(Math.max(...columns.map(({ total }) => total)))}
        axisText={compact}
        ticks={labeledDays}
        tickText={(step) => dayName(columns[step]!.day)}
        draw={(plot) =>
          columns.map((column, step) => <Bars key={column.day} column={column} step={step} plot={plot} />)
        }
        tip={(step) => <Tip column={columns[step]!} none={`No ${what.toLowerCase()}`} />}
        status={(step) => {
          const { day, total, usd, requests } = columns[step]!;
          const cost = sells.value ? `${dollars(usd)}, ` : "";
          return `${dayName(day)}: ${count(total)} ${what.toLowerCase()}, ${cost}${count(requests)} requests`;
        }}
        legend={models}
      />
    </figure>
  );
}

/** Today, and as many before it as have room. */
function labeledDays(width: number): readonly number[] {
  const every = width < 300 ? 10 : width < 560 ? 7 : 5;
  return Array.from({ length: days }, (_, step) => step).filter((step) => (days - 1 - step) % every === 0);
}

type BarsProps = Readonly<{ column: Column; step: number; plot: Plot }>;

function Bars({ column, step, plot: { stepWidth, x, y } }: BarsProps): VNode {
  const width = Math.max(1, stepWidth * 0.68);
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
            x={x(step) + stepWidth * 0.16}
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

const Tip = ({ column, none }: { column: Column; none: string }): VNode => (
  <>
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
  </>
);
