// The line as a picture: a square for each request in line, and a lane of slots for each node.
import type { VNode } from "preact";
import type { OperatorLine } from "../../../api/line.ts";
import { count, list, shortTime } from "../../format.ts";
import { useWidth } from "../../parts/chart-frame.tsx";
import { t } from "../../texts.ts";

type ByClass = OperatorLine["waiting"];
type Priority = keyof ByClass;
export const classes: readonly Priority[] = ["interactive", "standard", "bulk"];

const height = 22;
const gap = 3;
/** Narrower slots than this are drawn as one bar for each class. */
const slotMin = 5;
const slotMax = 34;

export function Lanes({ line: { waiting, nodes } }: { line: OperatorLine }): VNode {
  const waits = classes.reduce((sum, priority) => sum + waiting[priority], 0);
  return (
    <figure class="card stack">
      <figcaption>
        <h2>{t("line.now")}</h2>
      </figcaption>
      <ol class="lane-list">
        <Lane name={t("line.in_line")} words={waits === 0 ? t("line.none_waits") : inClasses(waiting)}>
          <Slots runs={runsOf(waiting)} slots={waits} />
        </Lane>
        {nodes.map((node) => (
          <Lane key={node.name} name={node.name} words={inWords(node)} side={newcomerOf(node)}>
            <Slots runs={runsOf(node.running, node.reading)} slots={isOpen(node) ? node.slots : 0} />
          </Lane>
        ))}
      </ol>
      <ul class="legend">
        {classes.map((priority) => (
          <li key={priority}>
            <span class={`swatch priority-${priority}`} />
            {t(`class.${priority}`)}
          </li>
        ))}
        <li>
          <span class="swatch reading" />
          {t("line.reads")}
        </li>
        <li>
          <span class="swatch free" />
          {t("line.free")}
        </li>
      </ul>
    </figure>
  );
}

type LaneProps = Readonly<{ name: string; words: string; side?: string | null; children: VNode }>;

const Lane = ({ name, words, side = null, children }: LaneProps): VNode => (
  <li>
    <div class="names">
      <p>
        <strong class="break">{name}</strong> <span class="quiet small-text">{words}</span>
      </p>
      {side !== null && <span class="quiet small-text">{side}</span>}
    </div>
    {children}
  </li>
);

const inClasses = (counts: ByClass): string =>
  list(
    classes
      .filter((priority) => counts[priority] > 0)
      .map((priority) => `${count(counts[priority])} ${t(`class.${priority}`)}`),
  );

type LineNode = OperatorLine["nodes"][number];

/** Others give none of their free slots. */
const isOpen = ({ health, drained }: Pick<LineNode, "health" | "drained">): boolean => health === "well" && !drained;

function inWords({ health, drained, slots, running, reading }: LineNode): string {
  const runs = classes.reduce((sum, priority) => sum + running[priority], 0);
  const reads = classes.reduce((sum, priority) => sum + reading[priority], 0);
  const parts = [
    ...(isOpen({ health, drained }) ? [] : [t(drained ? "health.drained" : `health.${health}`)]),
    `${t("line.slots", { runs, slots })}${runs === 0 ? "" : `: ${inClasses(running)}`}`,
    ...(reads === 0 ? [] : [t("line.reading_prompts", { reads })]),
  ];
  return parts.join(" · ");
}

const newcomerOf = ({ expected_first_token_ms: ms }: LineNode): string | null =>
  ms === null ? null : t("line.newcomer", { time: shortTime(ms) });

type Run = Readonly<{ priority: Priority; isReading: boolean; requests: number }>;

/** What writes comes before what still reads. */
const runsOf = (counts: ByClass, reading: ByClass = { interactive: 0, standard: 0, bulk: 0 }): readonly Run[] =>
  classes
    .flatMap((priority) => [
      { priority, isReading: false, requests: counts[priority] - reading[priority] },
      { priority, isReading: true, requests: reading[priority] },
    ])
    .filter(({ requests }) => requests > 0);

function Slots({ runs, slots }: Readonly<{ runs: readonly Run[]; slots: number }>): VNode {
  const [frame, width] = useWidth();
  const busy = runs.reduce((sum, { requests }) => sum + requests, 0);
  const all = Math.max(slots, busy, 1);
  const step = Math.min(width / all, slotMax + gap);
  const isBar = step < slotMin + gap;
  const cells = isBar
    ? runs
    : runs.flatMap((run) => Array.from({ length: run.requests }, () => ({ ...run, requests: 1 })));
  let at = 0;
  return (
    <div ref={frame}>
      <svg height={height} aria-hidden="true">
        {isBar && <rect class="slot free" width={width} height={height} rx={4} />}
        {!isBar &&
          Array.from({ length: Math.max(0, slots - busy) }, (_, free) => (
            <rect
              key={`free ${free}`}
              class="slot free"
              x={(busy + free) * step}
              width={step - gap}
              height={height}
              rx={4}
            />
          ))}
        {width > 0 &&
          cells.map(({ priority, isReading, requests }, index) => {
            const x = at * step;
            at += requests;
            const inset = isReading ? 0.75 : 0;
            return (
              <rect
                key={index}
                class={`slot priority-${priority}${isReading ? " reading" : ""}`}
                x={x + inset}
                y={inset}
                width={Math.max(1, requests * step - (isBar ? 1 : gap) - 2 * inset)}
                height={height - 2 * inset}
                rx={4}
              />
            );
          })}
      </svg>
    </div>
  );
}
