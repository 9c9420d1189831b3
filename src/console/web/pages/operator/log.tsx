// The request log: all requests, including refused and failed ones, live or by filter. A click on a cell filters by it.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { inputUnitAt } from "../../../../core/model-kinds.ts";
import { priorities } from "../../../../core/priority.ts";
import type { LogPage as Log, RequestRow } from "../../../api/request-log.ts";
import { compact, exactDollars, fullMoment, moment, shortTime, utc } from "../../format.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Button } from "../../parts/button.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { cursorAsked, type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Fact } from "../../parts/fact.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Page } from "../../parts/page.tsx";
import { Phases } from "../../parts/phases.tsx";
import { Select, type SelectOptions } from "../../parts/select.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { address, get, search } from "../../request.ts";
import { useEvery, useResource } from "../../resource.ts";
import { changeQuery, navigate, place } from "../../route.ts";
import { isFreeOfCharge, sells } from "../../session.ts";
import { t, type TextKey } from "../../texts.ts";

/** How often the visible page looks for new rows. */
const liveMs = 2_000;
const pageRows = 50;

const usual = ["request_id", "account", "key", "model", "node", "status", "reason"] as const;
const further = [
  ...(["from", "to", "address", "priority", "endpoint"] as const),
  ...(["wait_min_ms", "first_token_min_ms", "duration_min_ms", "tokens_min", "billed_min"] as const),
];
type Name = (typeof usual)[number] | (typeof further)[number];
type Filter = Readonly<Record<Name, string>>;

/** The filter is part of the page's address, so that people can bookmark and share it. */
const filterOf = (query: URLSearchParams): Filter =>
  Object.fromEntries([...usual, ...further].map((name) => [name, query.get(name) ?? ""])) as Filter;

const addressOf = (filter: Filter): string => `/operator/log${search(filter)}`;

export function LogPage(): VNode {
  const filter = filterOf(place.value.query);
  const [live, setLive] = useState(true);
  const [shown, setShown] = useState<RequestRow | null>(null);
  const after = cursorAsked();
  const query = { ...filter, after, limit: pageRows };
  const log = useResource(() => get("/operator/log", query), search(query));
  const follows = live && after === undefined;
  useEvery(follows ? liveMs : null, () => document.visibilityState === "visible" && log.reload());
  const change = (more: Partial<Filter>): void => navigate(addressOf({ ...filter, ...more }), { replace: true });
  const filtered = Object.values(filter).some((value) => value !== "");
  return (
    <Page
      title={t("menu.log")}
      lead={t("log.lead")}
      actions={
        <>
          {filtered && (
            <a class="button" href="/operator/log">
              {t("log.clear")}
            </a>
          )}
          <Button
            caption={t(follows ? "log.pause" : "log.follow")}
            aria-pressed={follows}
            onClick={() => {
              setLive(!follows);
              if (!follows) changeQuery({ after: null });
            }}
          />
        </>
      }
    >
      <section class="card flush" aria-label={t("common.requests")}>
        <Filters filter={filter} choices={log.value} change={change} />
        <Loaded resource={log} lines={10}>
          {({ rows, next, searched_to: searchedTo, gone }) => (
            <>
              {rows.length === 0 && after === undefined && next === null ? (
                <Empty icon="search" title={t(filtered ? "log.no_match" : "log.none")} />
              ) : (
                <Rows {...{ rows, next }} filter={filter} onChoose={setShown} />
              )}
              {searchedTo !== null && (
                <p class="log-note quiet small-text">{t("log.searched", { time: moment(searchedTo) })}</p>
              )}
              {gone > 0 && <p class="log-note quiet small-text">{t("log.gone", { gone })}</p>}
            </>
          )}
        </Loaded>
      </section>
      {shown !== null && <Details row={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

/** People choose times in their own time zone; the address has them in UTC. */
const utcOf = (local: string): string => {
  const at = Date.parse(local);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
};
function localOf(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

type FiltersProps = Readonly<{ filter: Filter; choices: Log | null; change: (more: Partial<Filter>) => void }>;

function Filters({ filter, choices, change }: FiltersProps): VNode {
  const input = (name: Name, more: Record<string, unknown> = {}): VNode => (
    <input
      key={name}
      aria-label={t(`log.filter_${name}`)}
      placeholder={t(`log.filter_${name}`)}
      value={filter[name]}
      onChange={(event) => change({ [name]: event.currentTarget.value.trim() })}
      {...more}
    />
  );
  const select = (name: Name, options: SelectOptions): VNode => (
    <Select
      aria-label={t(`log.filter_${name}`)}
      value={filter[name]}
      onValue={(value) => change({ [name]: value })}
      all={t(`log.filter_${name}`)}
      options={options}
    />
  );
  const time = (name: "from" | "to"): VNode => (
    <label>
      {t(`log.filter_${name}`)}{" "}
      <input
        type="datetime-local"
        value={localOf(filter[name])}
        onChange={(event) => change({ [name]: utcOf(event.currentTarget.value) })}
      />
    </label>
  );
  const results = ["served", "failed", "refused", "broken"] as const;
  const reasons = (choices?.reasons ?? []).map((reason) => [reason, inWords(reason)] as const);
  const least = { inputMode: "numeric", pattern: "[0-9]*" };
  return (
    <div role="search" aria-label={t("log.filters")}>
      <div class="filters">
        {input("request_id", { type: "search" })}
        {input("account", { type: "search", "aria-description": t("log.account_hint") })}
        {input("key", { type: "search" })}
        {select("model", choices?.models ?? [])}
        {select("node", choices?.nodes ?? [])}
        {select("reason", [...results.map((each) => [each, t(`log.${each}`)] as const), ...reasons])}
        {select("status", ["200", "4xx", "400", "401", "403", "413", "429", "5xx", "500", "503"])}
      </div>
      <details class="log-more" open={further.some((name) => filter[name] !== "")}>
        <summary class="quiet small-text">{t("log.more_filters")}</summary>
        <div class="filters">
          {time("from")}
          {time("to")}
          {input("address", { type: "search" })}
          {select("priority", priorities)}
          {input("endpoint", { type: "search" })}
          {input("wait_min_ms", least)}
          {input("first_token_min_ms", least)}
          {input("duration_min_ms", least)}
          {input("tokens_min", least)}
          {sells.value && input("billed_min", least)}
        </div>
      </details>
    </div>
  );
}

const inWords = (reason: string): string => (reason === "left" ? t("log.left") : reason.replaceAll("_", " "));

type RowsProps = Readonly<{
  rows: readonly RequestRow[];
  next: string | null;
  filter: Filter;
  onChoose: (row: RequestRow) => void;
}>;

const Rows = ({ rows, next, filter, onChoose }: RowsProps): VNode => (
  <DataTable
    name="log"
    caption={t("log.caption")}
    look="log"
    columns={columnsOf(filter, isFreeOfCharge(rows), onChoose)}
    {...{ rows, next }}
    rowKey={(row) => row.request_id}
    first=""
    tools={
      <>
        {(["csv", "json"] as const).map((form) => (
          <a key={form} class="button small" download href={address(`/operator/log.${form}`, filter)}>
            <Icon name="download" size={14} /> {t(`log.export_${form}`)}
          </a>
        ))}
      </>
    }
  />
);

type Column = DataColumn<RequestRow>;

/** A value that filters by itself when it is clicked. */
const by =
  (filter: Filter) =>
  (more: Partial<Filter>, children: ComponentChildren): VNode => (
    <a class="filter-link" href={addressOf({ ...filter, ...more })} title={t("log.only")}>
      {children}
    </a>
  );
type By = ReturnType<typeof by>;

const text = (only: By, name: Name & keyof RequestRow, column: TextKey, more: object = {}): Column => ({
  id: name,
  name: column,
  look: "clip-cell quiet",
  cell: (row) => {
    const value = row[name];
    return value === null || value === "" ? "–" : only({ [name]: String(value) }, value);
  },
  ...more,
});

const plain = (id: "cause" | "tags" | "cost_center", name: TextKey): Column => ({
  ...{ id, name, look: "clip-cell quiet", isOptional: true },
  cell: (row) => <span title={row[id] ?? undefined}>{row[id] ?? "–"}</span>,
});

const accountColumn = (only: By): Column => ({
  id: "account",
  name: "common.account",
  look: "clip-cell",
  cell: ({ account, key }) =>
    account === null ? (
      only({ account: "nobody", key: "" }, <span class="quiet">{t("log.nobody")}</span>)
    ) : (
      <>
        <AccountLink name={account} label={t("log.sheet", { account })}>
          <Icon name="account" size={14} />
        </AccountLink>{" "}
        {only({ account, key: "" }, account)}
        {key !== null && key !== "default" && <div class="quiet small-text clipped">{only({ account, key }, key)}</div>}
      </>
    ),
});

const modelColumn = (only: By): Column => ({
  id: "model",
  name: "common.model",
  look: "clip-cell",
  cell: ({ model, asked_model: asked }) => (
    <>
      {model === "" ? <span class="quiet">–</span> : only({ model }, model)}
      {asked !== null && <div class="quiet small-text clipped">{t("log.for", { model: asked })}</div>}
    </>
  ),
});

/** Newest first, as they come. */
const figure: typeof figureColumn<RequestRow> = (id, name, of, words, more) =>
  figureColumn(id, name, of, words, { ...more, sort: undefined });

function columnsOf(filter: Filter, isFree: boolean, onChoose: (row: RequestRow) => void): readonly Column[] {
  const only = by(filter);
  return [
    {
      id: "time",
      name: "log.time",
      cell: (row) => (
        <button type="button" class="row-button nowrap" onClick={() => onChoose(row)}>
          <Time at={row.time} shown={moment} />
        </button>
      ),
    },
    {
      id: "result",
      name: "common.result",
      cell: (row) => only({ reason: row.reason ?? "served" }, <Result row={row} />),
    },
    accountColumn(only),
    modelColumn(only),
    text(only, "node", "common.node", { room: "widest" }),
    text(only, "address", "common.address", { room: "widest" }),
    text(only, "priority", "common.class", { isOptional: true }),
    text(only, "endpoint", "log.endpoint", { isOptional: true }),
    plain("cause", "log.cause"),
    plain("tags", "log.tags"),
    plain("cost_center", "sheet.cost_center"),
    figure("wait", "log.wait", ({ wait_ms: ms }) => ms, shortTime, { room: "widest" }),
    figure("first_token", "models.first_token", (row) => row.first_token_ms, shortTime, { room: "wide" }),
    figure("end", "log.end", (row) => row.duration_ms, shortTime),
    figure("tokens", "log.tokens", () => null, undefined, {
      room: "wide",
      cell: ({ input, output }) => <span title={t("log.in_out", { input, output })}>{compact(input + output)}</span>,
    }),
    ...(isFree ? [] : [figure("cost", "log.cost", ({ cost_usd }) => cost_usd, exactDollars)]),
  ];
}

const Result = ({ row: { status, reason, more } }: { row: RequestRow }): VNode =>
  reason === null ? (
    <span class="badge good">{status}</span>
  ) : (
    <>
      <span class={`badge ${status >= 500 || status === 200 ? "bad" : "warn"}`}>
        {status} {inWords(reason)}
      </span>
      {more > 0 && <span class="quiet small-text"> {t("log.more_like_this", { more })}</span>}
    </>
  );

const Details = ({ row, onClose }: { row: RequestRow; onClose: () => void }): VNode => {
  const texts = (
    [
      ["log.endpoint", row.endpoint],
      ["common.address", row.address],
      ["common.class", row.priority],
      ["log.asked_for", row.asked_model],
      ["log.tags", row.tags?.replaceAll(",", ", ") ?? null],
      ["sheet.cost_center", row.cost_center],
      ["common.model", row.model === "" ? t("log.unknown_model") : row.model],
      ["common.node", row.node ?? t("log.none_of_it")],
    ] as const
  ).filter(([, value]) => value !== null);
  return (
    <Dialog title={t("log.request")} onClose={onClose}>
      {row.why !== null && <p>{row.why}</p>}
      {row.cause !== null && (
        <p class="break">
          {row.node ?? t("common.node")}: <code>{row.cause}</code>
        </p>
      )}
      {row.more > 0 && <p class="quiet">{t("log.similar", { more: row.more })}</p>}
      <Phases row={row} />
      <dl class="facts">
        <Fact name={t("log.filter_request_id")}>
          <code>{row.request_id}</code> <CopyButton text={row.request_id} label={t("log.copy_id")} />
        </Fact>
        <Fact name={t("log.ended")} title={utc(row.time)} value={fullMoment(row.time)} />
        <Fact name={t("common.result")} value={<Result row={{ ...row, more: 0 }} />} />
        <Fact
          name={t("common.account")}
          class="break"
          value={row.account === null ? t("log.unknown_key") : <AccountLink name={row.account} />}
        />
        <Fact name={t("log.key")} class="break" value={row.key ?? "–"} />
        {texts.map(([name, value]) => (
          <Fact key={name} name={t(name)} class="break" value={value} />
        ))}
        <Fact
          name={t("log.input")}
          class="number"
          value={t("log.input_of", {
            input: row.input,
            unit: t(`log.unit_${inputUnitAt(row.endpoint)}`),
            cached: row.cached_input,
          })}
        />
        <Fact
          name={t("log.output")}
          class="number"
          value={t("log.output_of", { output: row.output, reasoning: row.reasoning })}
        />
        {!isFreeOfCharge([row]) && (
          <Fact
            name={t("log.billed")}
            class="number"
            value={t("log.billed_of", { billed: row.billed_tokens, cost: exactDollars(row.cost_usd) })}
          />
        )}
        {row.sum !== null && <Fact name={t("log.calculation")} class="break" value={row.sum} />}
      </dl>
    </Dialog>
  );
};
