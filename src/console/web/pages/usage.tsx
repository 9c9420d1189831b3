// Usage: sums and a chart of the last 30 days, and all requests with filters.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { inputUnitAt } from "../../../core/model-kinds.ts";
import type { UsageRow, UsageSummary } from "../../api/usage.ts";
import { count, dollars, exactDollars, fullMoment, plural, utc, worth } from "../format.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Figure } from "../parts/figure.tsx";
import { Icon } from "../parts/icons.tsx";
import { Page } from "../parts/page.tsx";
import { Pager } from "../parts/pager.tsx";
import { Empty, isFirstLoad, Loaded } from "../parts/states.tsx";
import { UsageChart } from "../parts/usage-chart.tsx";
import { isFree } from "../usage-columns.ts";
import { UsageTable } from "../parts/usage-table.tsx";
import { address, get, search } from "../request.ts";
import { useResource } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { isFreeOfCharge, numbers } from "../session.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Fact } from "../parts/fact.tsx";
import { Card } from "../parts/card.tsx";
import { figures, Table } from "../parts/table.tsx";
import { Select, type SelectOptions } from "../parts/select.tsx";

const filterNames = ["text", "model", "endpoint", "key", "end_user", "from", "to"] as const;
type Filter = Readonly<Record<(typeof filterNames)[number], string>>;

const pageRows = 25;
const refusalRows = 10;
const dayMs = 86_400_000;

/** The filter is part of the page's address, so that people can bookmark and share it. */
function filterOf(query: URLSearchParams): Filter {
  const [text = "", model = "", endpoint = "", key = "", end_user = "", from = "", to = ""] = filterNames.map(
    (name) => query.get(name) ?? "",
  );
  return { text, model, endpoint, key, end_user, from, to };
}

/** The API's `to` is exclusive; people mean to include the last day. */
function queryOf(filter: Filter): Filter {
  const last = Date.parse(filter.to);
  const to = Number.isNaN(last) ? "" : new Date(last + dayMs).toISOString().slice(0, 10);
  return { ...filter, to };
}

export function UsagePage(): VNode {
  const summary = useResource(() => get("/usage/summary"), "summary");
  const filter = filterOf(place.value.query);
  return (
    <Page
      title="Usage"
      actions={
        <a class="button" data-leaves download href={address("/usage.csv", queryOf(filter))}>
          <Icon name="download" size={16} /> Download CSV
        </a>
      }
    >
      <div class="stack-large">
        <Loaded resource={summary} lines={8}>
          {(value) => <Summary summary={value} />}
        </Loaded>
        {/* Loads meanwhile, but is hidden until the summary above it has its height. */}
        <div hidden={isFirstLoad(summary)}>
          <Requests filter={filter} summary={summary.value} />
        </div>
        <div hidden={isFirstLoad(summary)}>
          <Refusals />
        </div>
      </div>
    </Page>
  );
}

const Summary = ({ summary }: { summary: UsageSummary }): VNode => (
  <div class="stack-large">
    <Sums summary={summary} />
    <Card
      title={`${isFree(summary) ? "Tokens" : "Balance tokens"} by model, last 30 days`}
      class="card"
      side={<span class="quiet small-text">Days in UTC</span>}
    >
      {summary.days.length === 0 ? (
        <Empty icon="usage" title="Nothing in the last 30 days" />
      ) : (
        <UsageChart summary={summary} />
      )}
    </Card>
    {summary.end_users.length > 0 && <EndUsers endUsers={summary.end_users} />}
  </div>
);

function EndUsers({ endUsers }: { endUsers: UsageSummary["end_users"] }): VNode {
  const isFree = isFreeOfCharge(endUsers);
  const amountOf = ({ billed_tokens, input, output }: UsageSummary["end_users"][number]): number =>
    isFree ? input + output : billed_tokens;
  const most = Math.max(1, ...endUsers.map(amountOf));
  return (
    <Card
      title="End users, last 30 days"
      aria-label="End users"
      side={<span class="quiet small-text">As named by your programs</span>}
    >
      <Table
        class="table-scroll end-users"
        tabIndex={0}
        role="region"
        aria-label="End users, scrollable"
        caption="End users by key, most expensive first"
        columns={["End user", "Key", ...figures("Requests", ...(isFree ? ["Tokens"] : ["Balance tokens", "Cost"]))]}
      >
        {endUsers.map((endUser, index) => {
          const { name, key, requests, cost_usd } = endUser;
          return (
            <tr key={index}>
              <td class="break">
                {name === null || name === "" ? (
                  <span class="quiet">{name === null ? "erased" : "not named"}</span>
                ) : (
                  <a href={`/usage${search({ end_user: name })}`}>{name}</a>
                )}
                <span class="meter share" aria-hidden="true">
                  <span style={{ transform: `scaleX(${amountOf(endUser) / most})` }} />
                </span>
              </td>
              <td class="break quiet">{key}</td>
              <td class="number" data-name="Requests">
                {count(requests)}
              </td>
              <td class="number" data-name={isFree ? "Tokens" : "Billed"}>
                {count(amountOf(endUser))}
              </td>
              {!isFree && <td class="number">{dollars(cost_usd)}</td>}
            </tr>
          );
        })}
      </Table>
    </Card>
  );
}

const Sums = ({ summary }: { summary: UsageSummary }): VNode =>
  isFreeOfCharge([summary.days30]) ? <Amounts summary={summary} /> : <Spend summary={summary} />;

/** For servers where nothing costs money. */
const Amounts = ({ summary: { days30, all_time } }: { summary: UsageSummary }): VNode => (
  <section class="grid-4" aria-label="Use">
    <Figure name="Requests, 30 days" value={count(days30.requests)}>
      {count(all_time.requests)} in total
    </Figure>
    <Figure name="Input tokens, 30 days" value={count(days30.input)}>
      {count(days30.cached_input)} cached
    </Figure>
    <Figure name="Output tokens, 30 days" value={count(days30.output)}>
      {count(days30.reasoning)} reasoning
    </Figure>
  </section>
);

function Spend({ summary }: { summary: UsageSummary }): VNode {
  const overview = useResource(() => get("/overview"), "overview");
  const current = numbers.value ?? overview.value?.numbers ?? null;
  return (
    <section class="grid-4" aria-label="Balance and spend">
      {current?.spendable !== null && (
        <>
          <Figure name="To spend now" value={current && count(current.spendable)}>
            {current && worth(current.spendable)}
          </Figure>
          {current?.allowance.granted !== 0 && (
            <Figure name="Today's allowance" value={current && count(current.allowance.left ?? 0)}>
              {current && `of ${count(current.allowance.granted ?? 0)} a day`}
            </Figure>
          )}
          <Figure name="Purchased credit" value={current && count(current.credit)}>
            {current && worth(current.credit)}
          </Figure>
        </>
      )}
      <Figure name="API spend, 30 days" value={dollars(summary.days30.cost_usd)}>
        {plural(summary.days30.requests, "request")}, {count(summary.days30.billed_tokens)} balance tokens
      </Figure>
    </section>
  );
}

function Requests({ filter, summary }: { filter: Filter; summary: UsageSummary | null }): VNode {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [shown, setShown] = useState<UsageRow | null>(null);
  const query = queryOf(filter);
  const after = cursors.at(-1);
  const key = search({ ...query, after });
  const page = useResource(() => get("/usage", { ...query, after, limit: pageRows }), key);
  const change = (name: keyof Filter, value: string): void => {
    setCursors([]);
    navigate(`/usage${search({ ...filter, [name]: value })}`, { replace: true });
  };
  const filtered = filterNames.some((name) => filter[name] !== "");
  return (
    <Card
      title="Requests"
      aria-label="Requests"
      side={
        filtered && (
          <Button
            caption="Clear filters"
            class="link-button"
            onClick={() => {
              setCursors([]);
              navigate("/usage", { replace: true });
            }}
          />
        )
      }
    >
      <Filters filter={filter} summary={summary} change={change} />
      <Loaded resource={page} lines={6}>
        {({ rows, next }) => (
          <>
            {rows.length === 0 ? (
              <Empty icon="search" title={filtered ? "No request matches these filters" : "No requests yet"} />
            ) : (
              <UsageTable
                rows={rows}
                caption="Requests, newest first"
                showsKeys={hasSeveralKeys(summary)}
                onChoose={setShown}
              />
            )}
            <Pager label="Pages of requests" cursors={cursors} next={next} onMove={setCursors} />
          </>
        )}
      </Loaded>
      {shown !== null && <Details row={shown} onClose={() => setShown(null)} />}
    </Card>
  );
}

/** Why the account's own requests were refused, in plain words; nothing if none was. */
function Refusals(): VNode | null {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const after = cursors.at(-1);
  const page = useResource(() => get("/refusals", { after, limit: refusalRows }), `${after}`);
  if (page.error === null && (page.value === null || (page.value.rows.length === 0 && after === undefined)))
    return null;
  return (
    <Card
      title="Refused or failed"
      aria-label="Refused and failed requests"
      side={
        <span class="quiet small-text">
          Recent ones. They are free, except for streamed parts of an answer that missed its format.
        </span>
      }
    >
      <Loaded resource={page} lines={3}>
        {({ rows, next }) => (
          <>
            <ul class="item-list">
              {rows.map((row) => (
                <li key={row.request_id}>
                  <div class="grow">
                    <p>{row.why}</p>
                    <p class="quiet small-text break">
                      <Time at={row.time} />
                      {[
                        row.model,
                        row.endpoint.replace("/v1", ""),
                        row.key === "default" ? "" : `key ${row.key}`,
                        row.request_id,
                        row.more === 0 ? "" : `and ${count(row.more)} more like this`,
                      ]
                        .filter((part) => part !== "")
                        .map((part) => ` · ${part}`)}
                    </p>
                  </div>
                  <span class={`badge ${row.status >= 500 || row.status === 200 ? "bad" : "warn"}`}>
                    {row.status} {row.reason.replaceAll("_", " ")}
                  </span>
                </li>
              ))}
            </ul>
            <Pager label="Pages of refused requests" cursors={cursors} next={next} onMove={setCursors} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

type FiltersProps = Readonly<{
  filter: Filter;
  summary: UsageSummary | null;
  change: (name: keyof Filter, value: string) => void;
}>;

function Filters({ filter, summary, change }: FiltersProps): VNode {
  const select = (name: keyof Filter, label: string, options: SelectOptions = [], other?: string): VNode => (
    <Select
      aria-label={label}
      value={filter[name]}
      onValue={(value) => change(name, value)}
      all={`All ${label.toLowerCase()}s`}
      options={options}
      other={other}
    />
  );
  const day = (name: "from" | "to"): VNode => (
    <input type="date" value={filter[name]} onChange={(event) => change(name, event.currentTarget.value)} />
  );
  const keys = (summary?.keys ?? []).map(
    ({ id, name, ending }) => [id, ending === null ? name : `${name} …${ending}`] as const,
  );
  return (
    <div class="filters" role="search" aria-label="Filter requests">
      <input
        class="grow"
        type="search"
        aria-label="Part of a model's id, or the start of a request id"
        placeholder="Model or request id"
        value={filter.text}
        onChange={(event) => change("text", event.currentTarget.value.trim())}
      />
      {select("model", "Model", summary?.models)}
      {select("endpoint", "Endpoint", summary?.endpoints)}
      {(hasSeveralKeys(summary) || filter.key !== "") && select("key", "Key", keys, `Key ${filter.key}`)}
      {(filter.end_user !== "" || (summary?.end_users.length ?? 0) > 0) &&
        select("end_user", "End user", namesOf(summary?.end_users))}
      <label>From {day("from")}</label>
      <label>To {day("to")}</label>
    </div>
  );
}

/** Without duplicates: several keys may have named the same end user. */
const namesOf = (endUsers: UsageSummary["end_users"] = []): readonly string[] => [
  ...new Set(endUsers.flatMap(({ name }) => (name === null || name === "" ? [] : [name]))),
];

/** With a single key, pages do not mention keys. The playground counts as one. */
const hasSeveralKeys = (summary: UsageSummary | null): boolean => (summary?.keys.length ?? 0) > 1;

const Details = ({ row, onClose }: { row: UsageRow; onClose: () => void }): VNode => (
  <Dialog title="Request" onClose={onClose}>
    <dl class="facts">
      <Fact name="Request id">
        <code>{row.request_id}</code> <CopyButton text={row.request_id} label="Copy the request id" />
      </Fact>
      <Fact name="Time" title={utc(row.time)} value={fullMoment(row.time)} />
      <Fact name="Model" value={row.model} />
      <Fact name="Endpoint" value={row.endpoint} />
      <Fact name="Key" class="break" value={row.key} />
      {row.end_user !== null && <Fact name="End user" class="break" value={row.end_user} />}
      <Fact name="Input" class="number" value={`${count(row.input)} ${inputUnitAt(row.endpoint)}`} />
      <Fact name="Cached input" class="number" value={`${count(row.cached_input)} tokens`} />
      <Fact name="Output" class="number" value={`${count(row.output)} tokens`} />
      <Fact name="Reasoning" class="number" value={`${count(row.reasoning)} tokens`} />
      {!isFreeOfCharge([row]) && (
        <>
          <Fact name="Billed" class="number" value={`${count(row.billed_tokens)} balance tokens`} />
          <Fact name="Cost" class="number" value={exactDollars(row.cost_usd)} />
        </>
      )}
    </dl>
    {row.estimated && <p class="quiet">The node reported no usable usage, so the gateway counted the tokens itself.</p>}
  </Dialog>
);
