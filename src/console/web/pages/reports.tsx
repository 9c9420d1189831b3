// Reports: what was served in a month or other days, summed up by what one chooses, with downloads and statements. Operators see
// all accounts, and everybody else the own one. The address has all of it, so that people can share it.
import type { VNode } from "preact";
import type { ReportColumn, ReportRow } from "../../api/reports.ts";
import { now } from "../clock.ts";
import { count, exactDollars, monthOf } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { DataTable, figureColumn } from "../parts/data-table.tsx";
import { FileLink } from "../parts/file-link.tsx";
import { Icon } from "../parts/icons.tsx";
import { Page } from "../parts/page.tsx";
import { Select } from "../parts/select.tsx";
import { Empty, Loaded } from "../parts/states.tsx";

import { address, get, search } from "../request.ts";
import { useResource } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, sells } from "../session.ts";
import { rich, t, type TextKey } from "../texts.ts";

const captions: Readonly<Record<ReportColumn, TextKey>> = {
  month: "reports.month",
  day: "reports.day",
  account: "common.account",
  team: "menu.team",
  member: "reports.member",
  cost_center: "reports.cost_center",
  model: "common.model",
  key: "reports.key",
  end_user: "reports.end_user",
  tag: "reports.tag",
  endpoint: "reports.endpoint",
};
const sums = {
  requests: "common.requests",
  input: "reports.input",
  cached: "reports.cached",
  output: "reports.output",
  billed: "reports.billed",
  cost_usd: "reports.cost_usd",
} as const satisfies Readonly<Record<string, TextKey>>;
type Sum = keyof typeof sums;
type Sums = Readonly<Record<Sum, number>>;

const months = 24;

const names = ["month", "from", "to", "by", "time_zone", "account", "tag", "cost_center", "sort"] as const;
type Asked = Readonly<Record<(typeof names)[number], string>>;

const isOperator = (): boolean => account.value?.operator === true;
/** What operators alone are told: others have one account, and perhaps teams of people. */
const isTold = (column: ReportColumn, { account: of }: Asked): boolean =>
  isOperator() || !(of === "" ? ["account", "team", "member"] : ["account", "team"]).includes(column);

const isColumn = (name: string): name is ReportColumn => Object.hasOwn(captions, name);
const isSum = (name: string): name is Sum => Object.hasOwn(sums, name);
const columnsIn = ({ by }: Asked): readonly ReportColumn[] => by.split(",").filter(isColumn);

function askedIn(query: URLSearchParams): Asked {
  const asked = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as Asked;
  const month = asked.month === "" && asked.from === "" ? monthBefore(0) : asked.month;
  return { ...asked, month, by: asked.by || (isOperator() ? "account" : "model") };
}

/** The one that was so many months ago. */
function monthBefore(back: number): string {
  const today = new Date(now());
  return new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - back)).toISOString().slice(0, 7);
}

function inWords({ month, from, to }: Asked): string {
  if (month === "") return t("reports.days", { from: from || t("reports.first_day"), to: to || t("reports.today") });
  const first = Date.parse(`${month}-01`); // an address may say anything
  return Number.isNaN(first) ? month : monthOf(first);
}

export function ReportsPage(): VNode {
  const asked = askedIn(place.value.query);
  const { sort: _, ...query } = asked;
  const report = useResource(() => get("/reports", query), search(query));
  const change = (more: Partial<Asked>): void =>
    navigate(`/reports${search({ ...asked, ...more })}`, { replace: true });
  return (
    <Page
      title={t("menu.reports")}
      lead={
        <>
          {inWords(asked)} ·{" "}
          {t("reports.lead", { whose: isOperator() ? t("reports.all") : asked.account || t("reports.own") })}
        </>
      }
      actions={
        <>
          <FileLink caption="CSV" href={address("/reports.csv", query)} />
          <FileLink caption="JSON" href={address("/reports", query)} name="report.json" />
        </>
      }
    >
      <section class="card flush" aria-label={t("reports.report")}>
        <Choices asked={asked} change={change} />
        <div class="filters">
          <Groups asked={asked} change={change} />
          {asked.month !== "" && <Statements asked={asked} />}
        </div>
        <Loaded resource={report} lines={8}>
          {(rows) => (rows.length === 0 ? <Nothing asked={asked} change={change} /> : <Rows {...{ rows, asked }} />)}
        </Loaded>
      </section>
    </Page>
  );
}

type Changing = Readonly<{ asked: Asked; change: (more: Partial<Asked>) => void }>;

function Choices({ asked, change }: Changing): VNode {
  const own = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const input = (name: "account" | "tag" | "cost_center", label: string): VNode => (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={asked[name]}
      onChange={(event) => change({ [name]: event.currentTarget.value.trim() })}
    />
  );
  const day = (name: "from" | "to"): VNode => (
    <input type="date" value={asked[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} />
  );
  const choices = Array.from({ length: months }, (_, back) => monthBefore(back));
  return (
    <div role="search" aria-label={t("reports.what")}>
      <div class="filters">
        <Select
          aria-label={t("reports.period")}
          value={asked.month === "" ? "days" : asked.month}
          options={[
            ...choices.map((month) => [month, inWords({ ...asked, month })] as const),
            ["days", t("reports.other_days")] as const,
          ]}
          onValue={(month) =>
            change(month === "days" ? { month: "", from: `${asked.month}-01` } : { month, from: "", to: "" })
          }
        />
        {asked.month === "" && (
          <>
            <label>
              {t("reports.from")} {day("from")}
            </label>
            <label>
              {t("reports.to")} {day("to")}
            </label>
          </>
        )}
        <Select
          aria-label={t("reports.time_zone")}
          value={asked.time_zone}
          all={t("reports.utc")}
          options={[...new Set([own, ...Intl.supportedValuesOf("timeZone")])].filter((zone) => zone !== "UTC")}
          onValue={(time_zone) => change({ time_zone })}
        />
        {isOperator() ? input("account", t("common.account")) : <OwnTeams asked={asked} change={change} />}
        {input("cost_center", t("reports.cost_center"))}
        {input("tag", t("reports.one_tag"))}
      </div>
    </div>
  );
}

function Groups({ asked, change }: Changing): VNode {
  const columns = columnsIn(asked);
  const shown = (Object.keys(captions) as ReportColumn[]).filter((column) => isTold(column, asked));
  return (
    <div class="actions">
      <span class="quiet small-text">{t("reports.sum_by")}</span>
      <div class="segments" role="group" aria-label={t("reports.sum_by")}>
        {shown.map((column) => (
          <button
            key={column}
            type="button"
            aria-pressed={columns.includes(column)}
            onClick={() => {
              const left = columns.filter((each) => each !== column);
              const by = left.length < columns.length ? left : [...columns, column];
              change({ by: by.join(","), sort: "" });
            }}
          >
            {t(captions[column])}
          </button>
        ))}
      </div>
    </div>
  );
}

/** The own account, and teams whose admin one is. */
function OwnTeams({ asked, change }: Changing): VNode | null {
  const teams = useResource(async () => (account.value?.team === true ? (await get("/teams")).teams : []), "teams");
  const administered = (teams.value ?? []).filter(({ role }) => role === "admin");
  if (administered.length === 0 && asked.account === "") return null;
  return (
    <Select
      aria-label={t("reports.whose")}
      value={asked.account}
      all={t("reports.own_account")}
      options={administered.map(({ name }) => name)}
      onValue={(name) => change({ account: name })}
    />
  );
}

/** Of the own account, or of the one that is asked for. */
function Statements({ asked: { month, account: of, time_zone } }: { asked: Asked }): VNode {
  const query = { month, time_zone, account: of };
  return (
    <div class="actions to-end">
      {of === "" ? t(isOperator() ? "reports.own_statement" : "reports.statement") : t("reports.statement_of", { of })}
      <a class="button small" href={address("/statement", { ...query, form: "html" })} target="_blank" rel="noopener">
        <Icon name="external" size={14} /> {t("reports.print")}
      </a>
      <a class="button small" data-leaves download href={address("/statement", { ...query, form: "csv" })}>
        <Icon name="download" size={14} /> {t("reports.statement_csv")}
      </a>
    </div>
  );
}

function Nothing({ asked, change }: Changing): VNode {
  const isFiltered = asked.account !== "" || asked.tag !== "" || asked.cost_center !== "";
  return (
    <Empty icon="usage" title={isFiltered ? t("reports.no_match") : t("reports.nothing", { period: inWords(asked) })}>
      {isFiltered ? (
        <Button caption={t("reports.clear")} onClick={() => change({ account: "", tag: "", cost_center: "" })} />
      ) : (
        rich("reports.nothing_about", { link: (inner) => <a href="/key">{inner}</a> })
      )}
    </Empty>
  );
}

function Rows({ rows, asked }: Readonly<{ rows: readonly ReportRow[]; asked: Asked }>): VNode {
  // With the account that a key or an end user belongs to, which only operators must be told.
  const columns = Object.keys(rows[0]!).filter((name): name is ReportColumn => isColumn(name) && isTold(name, asked));
  const isFree = !sells.value && rows.every(({ billed }) => billed === 0);
  const shownSums = (Object.keys(sums) as Sum[]).filter((sum) => !isFree || (sum !== "billed" && sum !== "cost_usd"));
  const total = Object.fromEntries(shownSums.map((sum) => [sum, rows.reduce((all, row) => all + row[sum], 0)])) as Sums;
  const figure = (of: Sums, sum: Sum): string => (sum === "cost_usd" ? exactDollars(of[sum]) : count(of[sum]));
  return (
    <DataTable
      name="reports"
      caption={t("reports.caption", { period: inWords(asked) })}
      columns={[
        ...columns.map((column) => ({
          id: column,
          name: captions[column],
          look: "break",
          sort: (row: ReportRow) => row[column] ?? "",
          cell: (row: ReportRow) => <Name column={column} name={row[column] ?? null} asked={asked} />,
        })),
        ...shownSums.map((sum) =>
          figureColumn<ReportRow>(sum, sums[sum], (row) => row[sum], count, { cell: (row) => figure(row, sum) }),
        ),
      ]}
      rows={rows}
      rowKey={(row) => columns.map((column) => row[column]).join("\n")}
      first={isFree ? "-requests" : "-billed"}
      sums={(id) => (isSum(id) ? figure(total, id) : id === columns[0] && t("reports.total"))}
    />
  );
}

/** Accounts and cost centers lead to what is theirs alone. */
function Name({ column, name, asked }: Readonly<{ column: ReportColumn; name: string | null; asked: Asked }>): VNode {
  if (name === null || name === "") return <span class="quiet">{t("reports.none")}</span>;
  if (column === "tag") return <>{name.replaceAll(",", ", ")}</>;
  if (column !== "account" && column !== "cost_center") return <>{name}</>;
  const by = column === "account" ? "model" : asked.by;
  return <a href={`/reports${search({ ...asked, [column]: name, by })}`}>{name}</a>;
}
