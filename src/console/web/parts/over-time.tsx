// What was used over time: figures that choose what the chart draws, the chart, and what it is made of. The page's address says
// of which time, by what, and which part of it.
import type { ComponentChildren, VNode } from "preact";
import { rangeNames } from "../../../core/over-time.ts";
import type { ActivityFigures, OverTime as Answer } from "../../api/over-time.ts";
import { change, compact, count, dollars, share, shortTime } from "../format.ts";
import {
  type AskedOverTime,
  askedIn,
  exclusive,
  filterNames,
  isZoomed,
  type Measure,
  measures,
  showRange,
  type Split,
  zoomTo,
} from "../over-time.ts";
import { get, search } from "../request.ts";
import { useEvery, useResource } from "../resource.ts";
import { changeQuery, place } from "../route.ts";
import { sells } from "../session.ts";
import { t } from "../texts.ts";
import { Card } from "./card.tsx";
import { Choice } from "./choice.tsx";
import { type DataColumn, DataTable, figureColumn } from "./data-table.tsx";
import { Icon } from "./icons.tsx";
import { Loaded } from "./states.tsx";
import { Chart, labelOf, nameOfMeasure, Nothing, oneTime, summaryOf, titleOf, usual, zoneOf } from "./use-chart.tsx";

const refreshMs = 15_000;

type OverTimeProps = Readonly<{
  /** "*": all accounts, or the one that the address names. Absent: the own one. */
  account?: string;
  splits: readonly Split[];
  /** What the page is about. */
  only?: Readonly<{ model?: string; node?: string }>;
  /** More filters of the page. */
  children?: ComponentChildren;
  /** What stands below, made of the same answer. */
  below?: (answer: Answer) => ComponentChildren;
}>;

export function OverTime({ account = "", splits, only = {}, children, below }: OverTimeProps): VNode {
  const asked = askedIn(place.value.query, splits);
  const { filters, range, by } = asked;
  const logged = { account: asked.account, model: filters.model, endpoint: filters.endpoint };
  const query = {
    ...exclusive(filters),
    ...only,
    ...(range && { range }),
    by,
    account: account === "*" ? asked.account || "*" : account,
  };
  const answer = useResource(() => get("/over-time", query), search(query));
  useEvery(refreshMs, () => document.visibilityState === "visible" && filters.to === "" && answer.reload());
  const shownDay = (end: "from" | "to"): string => {
    if (filters[end] !== "" || answer.value === null) return filters[end].slice(0, 10);
    const { from, until } = answer.value;
    return new Date(end === "from" ? from : Date.parse(until) - 1).toISOString().slice(0, 10);
  };
  const chosen = isZoomed() ? null : (range ?? answer.value?.range ?? "30d");
  return (
    <div class="stack-large over-time">
      <div class="filters" role="search" aria-label={t("over_time.what")}>
        <Choice
          name={t("over_time.range")}
          options={named(account === "*" ? rangeNames : rangeNames.slice(1), (range) => t(`over_time.range_${range}`))}
          chosen={chosen}
          onChoose={showRange}
        />
        {(["from", "to"] as const).map((end) => (
          <label key={end}>
            {t(`over_time.${end}`)}{" "}
            <input
              type="date"
              value={shownDay(end)}
              onChange={({ currentTarget }) => changeQuery({ [end]: currentTarget.value })}
            />
          </label>
        ))}
        {children}
        {isZoomed() && (
          <button type="button" class="button small" onClick={() => changeQuery({ from: null, to: null })}>
            <Icon name="back" size={14} /> {t("over_time.zoom_out")}
          </button>
        )}
      </div>
      <Chips asked={asked} />
      <Loaded resource={answer} lines={10}>
        {(value) => (
          <div class="stack-large">
            <Drawn answer={value} asked={asked} />
            {value.parts.length > 0 && splits.length > 1 && (
              <Parts answer={value} by={by} splits={splits} log={account === "*" ? { ...logged, ...only } : null} />
            )}
            {below?.(value)}
          </div>
        )}
      </Loaded>
    </div>
  );
}

const named = <Word extends string>(words: readonly Word[], nameOf: (word: Word) => string) =>
  Object.fromEntries(words.map((word) => [word, nameOf(word)])) as Record<Word, string>;

/** What the sums are limited to; a click takes it away. */
function Chips({ asked: { filters, account } }: { asked: AskedOverTime }): VNode | null {
  const set = [...filterNames.map((name) => [name, filters[name]] as const), ["account", account] as const];
  const given = set.filter(([, value]) => value !== "");
  if (given.length === 0) return null;
  return (
    <ul class="chips" aria-label={t("over_time.filters")}>
      {given.map(([name, value]) => (
        <li key={name}>
          <button type="button" class="button small" onClick={() => changeQuery({ [name]: null })}>
            <span class="quiet">{t(`over_time.split_${name}`)}</span> {value} <Icon name="close" size={12} />
            <span class="for-readers">{t("over_time.take_away")}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

// ---------------------------------------------------------------- figures

type Tile = Readonly<{ value: string; about: ComponentChildren; change?: string | null }>;

const first = (values: readonly (number | null)[] | undefined): number => values?.[0] ?? 0;
const withinTime = ([p95]: ActivityFigures["wait_p95_ms"]): string =>
  p95 == null ? t("over_time.not_measured") : t("over_time.p95", { time: shortTime(p95) });

/** Those that have a meaning: no money where nothing costs any, and no waits where none are known. */
function tilesOf({ total, before, course }: Answer, by: Split): Partial<Record<Measure, Tile>> {
  const isPaid = total.billed_tokens > 0 || before.billed_tokens > 0;
  const counted = course?.total;
  const bad = first(counted?.refused) + first(counted?.failed) + first(counted?.left);
  return {
    tokens: {
      value: compact(total.input + total.output),
      change: change(total.input + total.output, before.input + before.output),
      about: t("over_time.tokens_about", { input: compact(total.input), output: compact(total.output) }),
    },
    requests: {
      value: count(total.requests),
      change: change(total.requests, before.requests),
      about: t("over_time.requests_about"),
    },
    ...((sells.value || isPaid) &&
      by !== "node" && {
        cost: {
          value: sells.value ? dollars(total.cost_usd) : compact(total.billed_tokens),
          change: change(total.billed_tokens, before.billed_tokens),
          about: t("over_time.cost_about", { tokens: compact(total.billed_tokens) }),
        },
      }),
    ...(counted !== undefined && {
      wait: {
        value: oneTime(counted.wait_p50_ms[0]),
        about: withinTime(counted.wait_p95_ms),
      },
      first_token: {
        value: oneTime(counted.first_token_p50_ms[0]),
        about: withinTime(counted.first_token_p95_ms),
      },
      failed: {
        value: count(bad),
        about: t("over_time.failed_about", {
          refused: first(counted.refused),
          failed: first(counted.failed),
          left: first(counted.left),
        }),
      },
    }),
  };
}

function Drawn({ answer, asked: { measure: wanted, by } }: { answer: Answer; asked: AskedOverTime }): VNode {
  const { total, course, step_ms: stepMs } = answer;
  const tiles = tilesOf(answer, by);
  const measure = tiles[wanted] === undefined ? usual.measure : wanted;
  const counted = course?.total.requests[0] ?? 0;
  return (
    <>
      <div class="measures" role="group" aria-label={t("over_time.show")}>
        {measures.map((each) => {
          const tile = tiles[each];
          return (
            tile !== undefined && (
              <button
                key={each}
                type="button"
                class="card"
                aria-pressed={each === measure}
                onClick={() => changeQuery({ show: each === usual.measure ? null : each }, { replace: true })}
              >
                <span class="figure-name">{nameOfMeasure(each)}</span>
                <span class="figure">
                  {tile.value}
                  {tile.change != null && <span class="figure-unit">{tile.change}</span>}
                </span>
                <span class="quiet small-text">{tile.about}</span>
              </button>
            )
          );
        })}
      </div>
      <Card
        title={titleOf(measure, by, answer)}
        class="card"
        side={<span class="quiet small-text">{zoneOf(stepMs)}</span>}
      >
        {total.requests === 0 && counted === 0 ? (
          <Nothing isFirst={answer.before.requests === 0 && !isZoomed()} />
        ) : (
          <>
            <p class="quiet chart-summary">{summaryOf(answer)}</p>
            <Chart
              answer={answer}
              by={by}
              measure={measure}
              onZoom={
                stepMs > 60_000
                  ? (from, until) => zoomTo(from, Math.min(until, Date.parse(answer.until)), stepMs)
                  : undefined
              }
            />
          </>
        )}
      </Card>
    </>
  );
}

// ---------------------------------------------------------------- parts

type Part = Answer["parts"][number];

type Logged = Readonly<Record<string, string>> | null;
/** `log`: what it is limited to, for operators. */
type PartsProps = Readonly<{ answer: Answer; by: Split; splits: readonly Split[]; log: Logged }>;

/** Of what it is made: a click on a name shows that alone. */
function Parts({ answer, by, splits, log }: PartsProps): VNode {
  const columns = columnsOf(answer, by, log);
  const title = t("over_time.parts");
  return (
    <Card
      title={title}
      aria-label={title}
      side={
        <Choice
          name={t("over_time.split")}
          options={named(splits, (split) => t(`over_time.split_${split}`))}
          chosen={by}
          onChoose={(split) => changeQuery({ by: split, sort: null })}
        />
      }
    >
      <DataTable
        name="parts"
        caption={`${title}, ${t(`over_time.by_${by}`)}`}
        columns={columns}
        rows={answer.parts}
        rowKey={({ name }) => name ?? "others"}
        first="-share"
      />
    </Card>
  );
}

function columnsOf({ parts, total }: Answer, by: Split, logged: Logged): readonly DataColumn<Part>[] {
  // What is counted of nodes is not billed.
  const isPaid = by !== "node" && (sells.value || total.billed_tokens > 0);
  const amountOf = ({ billed_tokens, input, output }: Omit<Part, "name" | "label">): number =>
    isPaid && total.billed_tokens > 0 ? billed_tokens : input + output;
  const all = parts.reduce((sum, part) => sum + amountOf(part), 0);
  return [
    {
      id: "name",
      name: `over_time.split_${by}`,
      look: "break",
      sort: (part) => labelOf(part, by),
      cell: (part) => (
        <>
          <PartName part={part} by={by} />
          <span class="meter share" aria-hidden="true">
            <span style={{ transform: `scaleX(${all === 0 ? 0 : amountOf(part) / all})` }} />
          </span>
        </>
      ),
    },
    figureColumn("share", "over_time.share", amountOf, (amount) => share(amount, all)),
    figureColumn("requests", "common.requests", ({ requests }) => requests, count, {
      cell: (part) => {
        const log = logged && logOf(part, by, logged);
        return log === null ? count(part.requests) : <a href={log}>{count(part.requests)}</a>;
      },
    }),
    figureColumn("input", "over_time.input", ({ input }) => input),
    figureColumn("cached_input", "over_time.cached", (part) => part.cached_input, count, { room: "wide" }),
    figureColumn("output", "over_time.output", ({ output }) => output),
    ...(isPaid ? [figureColumn<Part>("billed_tokens", "over_time.billed", (part) => part.billed_tokens)] : []),
    ...(isPaid && sells.value ? [figureColumn<Part>("cost", "over_time.cost", (part) => part.cost_usd, dollars)] : []),
  ];
}

function PartName({ part, by }: { part: Part; by: Split }): VNode {
  const { name, label } = part;
  const shown = labelOf(part, by);
  // Of a key of any account the number says nothing without its account.
  const value = by === "account" || by === "end_user" ? label : by === "node" || name?.includes(" ") ? null : name;
  if (name === null || value === null || value === "") return <span class="quiet">{shown}</span>;
  const query = new URLSearchParams(place.value.query);
  for (const old of ["page", "sort", "by"]) query.delete(old);
  query.set(by, value);
  return <a href={`${place.value.path}?${query}`}>{shown}</a>;
}

/** Its requests one by one, for operators. */
function logOf({ name, label }: Part, by: Split, logged: Logged): string | null {
  if (name === null || name === "" || by === "key" || by === "end_user") return null;
  return `/operator/log${search({ ...logged, [by]: by === "account" ? label : name })}`;
}
