// Usage: what is left and how long it lasts, what was used over time, and each request.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { inputUnitAt } from "../../../core/model-kinds.ts";
import type { RefusalsPage } from "../../api/request-log.ts";
import type { UsageRow, UsageSummary } from "../../api/usage.ts";
import { count, exactDollars, fullMoment, utc } from "../format.ts";
import { askedIn, exclusive, type filterNames, type Filters } from "../over-time.ts";
import { now } from "../clock.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { cursorAsked, type DataColumn, DataTable } from "../parts/data-table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { Left } from "../parts/left.tsx";
import { OverTime } from "../parts/over-time.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, isFirstLoad, Loaded } from "../parts/states.tsx";
import { UsageTable } from "../parts/usage-table.tsx";
import { address, get, search } from "../request.ts";
import { useResource } from "../resource.ts";
import { changeQuery, navigate, place } from "../route.ts";
import { isFreeOfCharge } from "../session.ts";
import { t } from "../texts.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Fact } from "../parts/fact.tsx";
import { Card } from "../parts/card.tsx";
import { Select, type SelectOptions } from "../parts/select.tsx";

type Refusal = RefusalsPage["rows"][number];
type Filter = Filters & Readonly<{ text: string }>;

const pageRows = 25;
const refusalRows = 10;
/** Of the table of refusals in the address. */
const refusals = "refused-";
const splits = ["model", "key", "end_user", "endpoint"] as const;

/** The filter is part of the page's address, so that people can bookmark and share it. */
function filterOf(): Filter {
  const { query } = place.value;
  return exclusive({ ...askedIn(query, splits).filters, text: query.get("text") ?? "" });
}

export function UsagePage(): VNode {
  const month = `${new Date(now()).toISOString().slice(0, 7)}-01`;
  const known = useResource(
    () => Promise.all([get("/usage/summary"), get("/overview"), get("/over-time", { from: month })]),
    month,
  );
  const summary = known.value?.[0] ?? null;
  const filter = filterOf();
  return (
    <Page
      title={t("menu.usage")}
      actions={
        <a class="button" data-leaves download href={address("/usage.csv", filter)}>
          <Icon name="download" size={16} /> {t("usage.csv")}
        </a>
      }
    >
      <div class="stack-large">
        <Loaded resource={known} lines={8}>
          {([summary, { numbers }, month]) => <Left summary={summary} before={numbers} month={month} />}
        </Loaded>
        {/* Loads meanwhile, but is hidden until what is above it has its height. */}
        <div class="stack-large" hidden={isFirstLoad(known)}>
          <OverTime splits={splits}>
            <Choices filter={filter} summary={summary} />
          </OverTime>
          <Requests filter={filter} summary={summary} />
          <Refusals />
        </div>
      </div>
    </Page>
  );
}

function Requests({ filter, summary }: { filter: Filter; summary: UsageSummary | null }): VNode {
  const [shown, setShown] = useState<UsageRow | null>(null);
  const query = { ...filter, after: cursorAsked(), limit: pageRows };
  const page = useResource(() => get("/usage", query), search(query));
  const filtered = Object.values(filter).some((value) => value !== "");
  return (
    <Card
      title={t("common.requests")}
      aria-label={t("common.requests")}
      side={
        filtered && <Button caption={t("usage.clear_filters")} class="link-button" onClick={() => navigate("/usage")} />
      }
    >
      <div class="filters">
        <input
          class="grow"
          type="search"
          aria-label={t("usage.text_about")}
          placeholder={t("usage.text")}
          value={filter.text}
          onChange={(event) => changeQuery({ text: event.currentTarget.value.trim() }, { replace: true })}
        />
      </div>
      <Loaded resource={page} lines={6}>
        {({ rows, next }) =>
          rows.length === 0 && query.after === undefined ? (
            <Empty icon="search" title={t(filtered ? "usage.none_fits" : "usage.none")} />
          ) : (
            <UsageTable
              {...{ rows, next }}
              caption={t("usage.newest_first")}
              showsKeys={hasSeveralKeys(summary)}
              onChoose={setShown}
            />
          )
        }
      </Loaded>
      {shown !== null && <Details row={shown} onClose={() => setShown(null)} />}
    </Card>
  );
}

/** Why the account's own requests were refused, in plain words; nothing if none was. */
function Refusals(): VNode | null {
  const query = { after: cursorAsked(refusals), limit: refusalRows };
  const page = useResource(() => get("/refusals", query), search(query));
  if (page.error === null && (page.value === null || (page.value.rows.length === 0 && query.after === undefined)))
    return null;
  return (
    <Card
      title={t("usage.refused")}
      aria-label={t("usage.refused_label")}
      side={<span class="quiet small-text">{t("usage.refused_about")}</span>}
    >
      <Loaded resource={page} lines={3}>
        {({ rows, next }) => (
          <DataTable
            caption={t("usage.refused_label")}
            columns={refusalColumns}
            {...{ rows, next }}
            rowKey={({ request_id: id }) => id}
            first=""
            prefix={refusals}
          />
        )}
      </Loaded>
    </Card>
  );
}

const refusalColumns: readonly DataColumn<Refusal>[] = [
  {
    ...{ id: "result", name: "common.result", look: "sentence" },
    cell: ({ request_id: id, status, reason, why, more }) => (
      <>
        <span class={`badge ${status >= 500 || status === 200 ? "bad" : "warn"}`}>
          {status} {reason.replaceAll("_", " ")}
        </span>{" "}
        {why} {more > 0 && <span class="quiet">{t("usage.more_like_this", { more })}</span>}
        <p class="quiet small-text break">{id}</p>
      </>
    ),
  },
  { id: "time", name: "chart.time", look: "nowrap quiet", cell: ({ time }) => <Time at={time} /> },
  { id: "model", name: "common.model", look: "quiet parted", cell: ({ model }) => model },
  {
    ...{ id: "endpoint", name: "over_time.split_endpoint", look: "quiet nowrap" },
    cell: ({ endpoint }) => endpoint.replace("/v1", ""),
  },
  { id: "key", name: "over_time.split_key", look: "quiet parted", cell: ({ key }) => key },
];

type ChoicesProps = Readonly<{ filter: Filter; summary: UsageSummary | null }>;

function Choices({ filter, summary }: ChoicesProps): VNode {
  const select = (name: (typeof filterNames)[number], options: SelectOptions = [], other?: string): VNode => (
    <Select
      aria-label={t(`over_time.split_${name}`)}
      value={filter[name]}
      onValue={(value) => changeQuery({ [name]: value })}
      all={t(`usage.all_${name}`)}
      options={options}
      other={other}
    />
  );
  const keys = (summary?.keys ?? []).map(
    ({ id, name, ending }) => [id, ending === null ? name : `${name} …${ending}`] as const,
  );
  return (
    <>
      {select("model", summary?.models)}
      {select("endpoint", summary?.endpoints)}
      {(hasSeveralKeys(summary) || filter.key !== "") && select("key", keys, t("usage.of_key", { key: filter.key }))}
      {(filter.end_user !== "" || (summary?.end_users.length ?? 0) > 0) &&
        select("end_user", namesOf(summary?.end_users))}
    </>
  );
}

/** Without duplicates: several keys may have named the same end user. */
const namesOf = (endUsers: UsageSummary["end_users"] = []): readonly string[] => [
  ...new Set(endUsers.flatMap(({ name }) => (name === null || name === "" ? [] : [name]))),
];

/** With a single key, pages do not mention keys. The playground counts as one. */
const hasSeveralKeys = (summary: UsageSummary | null): boolean => (summary?.keys.length ?? 0) > 1;

const Details = ({ row, onClose }: { row: UsageRow; onClose: () => void }): VNode => {
  const tokens = (value: number): string => t("usage.tokens", { tokens: value });
  return (
    <Dialog title={t("usage.request")} onClose={onClose}>
      <dl class="facts">
        <Fact name={t("usage.request_id")}>
          <code>{row.request_id}</code> <CopyButton text={row.request_id} label={t("usage.copy_id")} />
        </Fact>
        <Fact name={t("chart.time")} title={utc(row.time)} value={fullMoment(row.time)} />
        <Fact name={t("common.model")} value={row.model} />
        <Fact name={t("over_time.split_endpoint")} value={row.endpoint} />
        <Fact name={t("over_time.split_key")} class="break" value={row.key} />
        {row.end_user !== null && <Fact name={t("over_time.split_end_user")} class="break" value={row.end_user} />}
        <Fact name={t("over_time.input")} class="number" value={`${count(row.input)} ${inputUnitAt(row.endpoint)}`} />
        <Fact name={t("over_time.cached")} class="number" value={tokens(row.cached_input)} />
        <Fact name={t("over_time.output")} class="number" value={tokens(row.output)} />
        <Fact name={t("usage.reasoning")} class="number" value={tokens(row.reasoning)} />
        {!isFreeOfCharge([row]) && (
          <>
            <Fact name={t("over_time.billed")} class="number" value={count(row.billed_tokens)} />
            <Fact name={t("over_time.cost")} class="number" value={exactDollars(row.cost_usd)} />
          </>
        )}
      </dl>
      {row.estimated && <p class="quiet">{t("usage.estimated")}</p>}
    </Dialog>
  );
};
