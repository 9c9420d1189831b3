// What the placement expected in the nodes' prompt caches in the last hour, beside what their engines reported.
import type { VNode } from "preact";
import type { OperatorLine } from "../../../api/line.ts";
import { compact } from "../../format.ts";
import { Empty } from "../../parts/states.tsx";
import { inPercent } from "./line-shares.tsx";
import { t } from "../../texts.ts";

const height = 8;

export function Caches({ nodes }: { nodes: OperatorLine["nodes"] }): VNode {
  const shown = nodes.filter(({ cache }) => cache !== null && cache.input > 0);
  return (
    <figure class="card stack">
      <figcaption>
        <h2>{t("line.caches")}</h2>
        <p class="quiet small-text">{t("line.caches_about")}</p>
      </figcaption>
      {shown.length === 0 ? (
        <Empty icon="nodes" title={t("line.caches_none")} />
      ) : (
        <ul class="share-list">
          {shown.map(({ name, cache }) => (
            <li key={name}>
              <CacheBars name={name} cache={cache!} />
            </li>
          ))}
        </ul>
      )}
      <ul class="legend">
        <li>
          <span class="swatch series-5" />
          {t("line.expected")}
        </li>
        <li>
          <span class="swatch series-2" />
          {t("line.reported")}
        </li>
      </ul>
    </figure>
  );
}

type CacheBarsProps = Readonly<{ name: string; cache: NonNullable<OperatorLine["nodes"][number]["cache"]> }>;

const CacheBars = ({ name, cache: { input, expected, reported } }: CacheBarsProps): VNode => (
  <>
    <div class="names">
      <span class="break">{name}</span>
      <span class="quiet small-text number">
        {t("line.cache_counts", {
          expected: inPercent(expected / input),
          reported: inPercent(reported / input),
          input: compact(input),
        })}
      </span>
    </div>
    <svg height={2 * height + 3} aria-hidden="true">
      {[expected, reported].map((tokens, at) => (
        <g key={at}>
          <rect class="share-track" y={at * (height + 3)} width="100%" height={height} rx={3} />
          <rect
            class={`slot series-${at === 0 ? 5 : 2}`}
            y={at * (height + 3)}
            width={`${Math.min(100, (100 * tokens) / input)}%`}
            height={height}
            rx={3}
          />
        </g>
      ))}
    </svg>
  </>
);
