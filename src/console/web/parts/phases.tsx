// The phases of a request as one bar: reading and checking, waiting for a node, the time to the first token, the answer.
import type { VNode } from "preact";
import type { RequestRow } from "../../api/request-log.ts";
import { shortTime } from "../format.ts";
import { t } from "../texts.ts";

type Phase = Readonly<{ name: string; from: number; to: number; series: number }>;
type Course = Pick<RequestRow, "wait_ms" | "sent_ms" | "first_token_ms" | "duration_ms">;

/** In order of time, without phases that were not reached. */
function phasesOf({ wait_ms, sent_ms, first_token_ms, duration_ms }: Course): Phase[] {
  if (duration_ms === null) return [];
  const sent = Math.min(sent_ms ?? duration_ms, duration_ms);
  // Waits of later rounds lie within the answer.
  const waitFrom = Math.max(0, sent - (wait_ms ?? 0));
  const first = sent_ms === null ? duration_ms : Math.min(Math.max(first_token_ms ?? duration_ms, sent), duration_ms);
  const phases = [
    { name: t("phases.received"), from: 0, to: waitFrom, series: 6 },
    { name: t("phases.waited"), from: waitFrom, to: sent, series: 3 },
    {
      name: t(first_token_ms === null ? "phases.no_token" : "phases.first_token"),
      from: sent,
      to: first,
      series: 5,
    },
    { name: t("phases.answer"), from: first, to: duration_ms, series: 2 },
  ];
  return phases.filter(({ from, to }) => to > from);
}

const width = 1_000;
const height = 26;

export function Phases({ row }: { row: Course }): VNode | null {
  const phases = phasesOf(row);
  const end = row.duration_ms ?? 0;
  if (phases.length === 0) {
    return <p class="quiet small-text">{t(row.duration_ms === null ? "phases.not_measured" : "phases.no_time")}</p>;
  }
  const x = (ms: number): number => (ms / end) * width;
  return (
    <figure class="phases">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" height={height} aria-hidden="true">
        {phases.map(({ name, from, to, series }) => (
          <rect
            key={name}
            class={`series-${series}`}
            fill="currentColor"
            x={x(from)}
            width={Math.max(2, x(to) - x(from))}
            height={height}
          />
        ))}
      </svg>
      <ol class="legend">
        {phases.map(({ name, from, to, series }) => (
          <li key={name}>
            <span class={`swatch series-${series}`} />
            {t("phases.phase", { name, time: shortTime(to - from) })}
          </li>
        ))}
        <li>{t("phases.total", { time: shortTime(end) })}</li>
      </ol>
    </figure>
  );
}
