// How the work of the last hour was shared: a bar for each account, class, model or node, with a mark at its fair share.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { OperatorLine, WorkShare } from "../../../api/line.ts";
import { compact, percentage, shortTime } from "../../format.ts";
import { Choice } from "../../parts/choice.tsx";
import { Empty } from "../../parts/states.tsx";
import { classes } from "./line-lanes.tsx";
import { t } from "../../texts.ts";

const height = 14;

const splits = ["account", "class", "model", "node"] as const;
type Split = (typeof splits)[number];

const fairWords = { account: "line.fair_account", class: null, model: null, node: "line.fair_node" } as const;

export function Shares({ served }: { served: OperatorLine["served"] }): VNode {
  const [split, setSplit] = useState<Split>("account");
  const rows = served[split].map((row) => ({ ...row, sum: workOf(row) }));
  const all = rows.reduce((sum, row) => sum + row.sum, 0);
  const most = 1.08 * Math.max(0, ...rows.flatMap(({ sum, fair }) => [all === 0 ? 0 : sum / all, fair ?? 0]));
  const fair = fairWords[split];
  const percent = (share: number): number => (most === 0 ? 0 : (100 * share) / most);
  return (
    <figure class="card stack">
      <figcaption>
        <h2>{t("line.shares")}</h2>
        <p class="quiet small-text">{t("line.shares_about")}</p>
      </figcaption>
      <Choice
        name={t("line.split")}
        options={Object.fromEntries(splits.map((each) => [each, t(`common.by_${each}`)])) as Record<Split, string>}
        chosen={split}
        onChoose={setSplit}
      />
      {all === 0 ? (
        <Empty icon="activity" title={t("line.nothing_ended")} />
      ) : (
        <ul class="share-list">
          {rows.map((row) => (
            <li key={row.name}>
              <div class="names">
                <span class="break">{row.name}</span>
                <span class="number">{inPercent(row.sum / all)}</span>
              </div>
              <ShareBar row={row} all={all} percent={percent} />
              <p class="quiet small-text">{aboutOf(row)}</p>
            </li>
          ))}
        </ul>
      )}
      <ul class="legend">
        {classes.map((priority) => (
          <li key={priority}>
            <span class={`swatch priority-${priority}`} />
            {t(`class.${priority}`)}
          </li>
        ))}
        {fair !== null && (
          <li>
            <span class="swatch fair" />
            {t(fair)}
          </li>
        )}
      </ul>
    </figure>
  );
}

const workOf = ({ work }: WorkShare): number => classes.reduce((sum, priority) => sum + work[priority], 0);

export const inPercent = (share: number): string => percentage(share, share < 0.1 ? 1 : 0);

type ShareBarProps = Readonly<{ row: WorkShare; all: number; percent: (share: number) => number }>;

function ShareBar({ row: { work, fair }, all, percent }: ShareBarProps): VNode {
  let before = 0;
  return (
    <svg height={height} aria-hidden="true">
      <rect class="share-track" width="100%" height={height} />
      {classes.map((priority) => {
        const x = percent(before / all);
        before += work[priority];
        return (
          work[priority] > 0 && (
            <rect
              key={priority}
              class={`share-part priority-${priority}`}
              x={`${x}%`}
              width={`${percent(work[priority] / all)}%`}
              height={height}
            />
          )
        );
      })}
      {fair !== null && (
        <line class="fair-mark" x1={`${percent(fair)}%`} x2={`${percent(fair)}%`} y1={-3} y2={height + 3} />
      )}
    </svg>
  );
}

function aboutOf(row: WorkShare & Readonly<{ sum: number }>): string {
  const { weight, fair, requests, wait_ms: wait } = row;
  return [
    ...(fair === null ? [] : [t("line.fair", { fair: inPercent(fair), weight: weight ?? 0 })]),
    t("line.work", { work: compact(row.sum) }),
    t("common.requests_counted", { requests }),
    wait === 0 ? t("line.no_wait") : t("line.mean_wait", { time: shortTime(wait) }),
  ].join(" · ");
}
