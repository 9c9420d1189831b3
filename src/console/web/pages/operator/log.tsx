// The request log: all requests, including refused and failed ones, live or by filter.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { inputUnitAt } from "../../../../core/model-kinds.ts";
import type { LogPage as Log, RequestRow } from "../../../api/request-log.ts";
import { compact, count, exactDollars, fullMoment, moment, shortTime, utc } from "../../format.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Page } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Phases } from "../../parts/phases.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get, search } from "../../request.ts";
import { useEvery, useResource } from "../../resource.ts";
import { navigate, place } from "../../route.ts";
import { isFreeOfCharge, sells } from "../../session.ts";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";
import { figures, Table } from "../../parts/table.tsx";
import { Select, type SelectOptions } from "../../parts/select.tsx";

/** How often the visible page looks for new rows. */
const liveMs = 2_000;
const pageRows = 50;

const texts = ["request_id", "account", "key", "model", "node", "status", "reason", "from", "to"] as const;
const minima = ["wait_min_ms", "first_token_min_ms", "tokens_min", "billed_min"] as const;
type Name = (typeof texts)[number] | (typeof minima)[number];
type Filter = Readonly<Record<Name, string>>;

/** The filter is part of the page's address, so that people can bookmark and share it. */
const filterOf = (query: URLSearchParams): Filter =>
  Object.fromEntries([...texts, ...minima].map((name) => [name, query.get(name) ?? ""])) as Filter;

/** People choose times in their own time zone. */
const timeOf = (local: string): string => {
  const at = Date.parse(local);
  return Number.isNaN(at) ? local : new Date(at).toISOString();
};

export function LogPage(): VNode {
  const filter = filterOf(place.value.query);
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [live, setLive] = useState(true);
  const [shown, setShown] = useState<RequestRow | null>(null);
  const after = cursors.at(-1);
  const query = { ...filter, from: timeOf(filter.from), to: timeOf(filter.to), after, limit: pageRows };
  const log = useResource(() => get("/operator/log", query), search(query));
  const follows = live && after === undefined;
  useEvery(follows ? liveMs : null, () => document.visibilityState === "visible" && log.reload());
  const change = (more: Partial<Filter>): void => {
    setCursors([]);
    navigate(`/operator/log${search({ ...filter, ...more })}`, { replace: true });
  };
  const filtered = Object.values(filter).some((value) => value !== "");
  return (
    <Page
      title="Request log"
      lead="All requests, including refused and failed ones, without the text of prompts and answers."
      actions={
        <>
          {filtered && <Button caption="Clear filters" onClick={() => change(filterOf(new URLSearchParams()))} />}
          <Button
            caption={follows ? "Pause" : "Follow"}
            aria-pressed={follows}
            onClick={() => {
              setLive(!follows);
              if (!follows) setCursors([]);
            }}
          />
        </>
      }
    >
      <section class="card flush" aria-label="Requests">
        <Filters filter={filter} choices={log.value} change={change} />
        <Loaded resource={log} lines={10}>
          {({ rows, next, searched_to: searchedTo, gone }) => (
            <>
              {rows.length === 0 ? (
                <Empty icon="search" title={filtered ? "No request matches these filters" : "No requests yet"} />
              ) : (
                <Rows rows={rows} onChoose={setShown} />
              )}
              {searchedTo !== null && (
                <p class="log-note quiet small-text">
                  Searched back to {moment(searchedTo)}. “Older” continues from there.
                </p>
              )}
              {gone > 0 && (
                <p class="log-note quiet small-text">
                  {count(gone)} older refused or failed requests were too many to keep.
                </p>
              )}
              <Pager label="Pages of requests" cursors={cursors} next={next} onMove={setCursors} />
            </>
          )}
        </Loaded>
      </section>
      {shown !== null && <Details row={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

type FiltersProps = Readonly<{ filter: Filter; choices: Log | null; change: (more: Partial<Filter>) => void }>;

function Filters({ filter, choices, change }: FiltersProps): VNode {
  const input = (name: Name, label: string, more: Record<string, unknown> = {}): VNode => (
    <input
      key={name}
      aria-label={label}
      placeholder={label}
      value={filter[name]}
      onChange={(event) => change({ [name]: event.currentTarget.value.trim() })}
      {...more}
    />
  );
  const select = (name: Name, all: string, options: SelectOptions): VNode => (
    <Select
      aria-label={all}
      value={filter[name]}
      onValue={(value) => change({ [name]: value })}
      all={all}
      options={options}
    />
  );
  const reasons = (choices?.reasons ?? []).map((reason) => [reason, inWords(reason)] as const);
  const least = { inputMode: "numeric", pattern: "[0-9]*" };
  const hasMinima = minima.some((name) => filter[name] !== "") || filter.from !== "" || filter.to !== "";
  return (
    <div role="search" aria-label="Filter requests">
      <div class="filters">
        {input("request_id", "Request id", { type: "search" })}
        {input("account", "Account: e-mail, or nobody", { type: "search", placeholder: "Account" })}
        {input("key", "Name of the account's key", { type: "search", placeholder: "Key" })}
        {select("model", "All models", choices?.models ?? [])}
        {select("node", "All nodes", choices?.nodes ?? [])}
        {select("reason", "All results", [["served", "Served"], ["failed", "Refused or failed"], ...reasons])}
        {select("status", "All statuses", ["200", "4xx", "400", "401", "403", "413", "429", "5xx", "500", "503"])}
      </div>
      <details class="log-more" open={hasMinima}>
        <summary class="quiet small-text">Times and amounts</summary>
        <div class="filters">
          <label>From {input("from", "From", { type: "datetime-local", placeholder: undefined })}</label>
          <label>To {input("to", "To", { type: "datetime-local", placeholder: undefined })}</label>
          {input("wait_min_ms", "Wait, ms at least", least)}
          {input("first_token_min_ms", "First token, ms at least", least)}
          {input("tokens_min", "Tokens, at least", least)}
          {sells.value && input("billed_min", "Balance tokens, at least", least)}
        </div>
      </details>
    </div>
  );
}

const inWords = (reason: string): string => (reason === "left" ? "client left" : reason.replaceAll("_", " "));

const time = (ms: number | null): string => (ms === null ? "–" : shortTime(ms));

function Rows({ rows, onChoose }: { rows: readonly RequestRow[]; onChoose: (row: RequestRow) => void }): VNode {
  const isFree = isFreeOfCharge(rows);
  return (
    <Table
      caption="Requests, newest first"
      columns={[
        "Time",
        "Result",
        "Account",
        "Model",
        "Node",
        ...figures("Wait", "First token", "End", "Tokens", ...(isFree ? [] : ["Cost"])),
      ]}
      widestOnly={["Node", "Wait"]}
      look="cards log"
    >
      {rows.map((row) => (
        <tr key={row.request_id}>
          <td>
            <button type="button" class="row-button nowrap" onClick={() => onChoose(row)}>
              <Time at={row.time} shown={moment} />
            </button>
          </td>
          <td>
            <Result row={row} />
          </td>
          <td class="clip-cell">
            {row.account ?? <span class="quiet">none</span>}
            {row.key !== null && row.key !== "default" && (
              <div class="quiet small-text clipped" title={row.key}>
                {row.key}
              </div>
            )}
          </td>
          <td class="clip-cell">
            {row.model === "" ? <span class="quiet">–</span> : row.model}
            {row.asked_model !== null && <div class="quiet small-text clipped">for {row.asked_model}</div>}
          </td>
          <td class="clip-cell wide-only widest-only quiet">{row.node ?? "–"}</td>
          <td class="number wide-only widest-only">{time(row.wait_ms)}</td>
          <td class="number wide-only">{time(row.first_token_ms)}</td>
          <td class={isFree ? "number sentence" : "number"} data-name="End">
            {time(row.duration_ms)}
          </td>
          <td class="number wide-only" title={`${count(row.input)} in, ${count(row.output)} out`}>
            {compact(row.input + row.output)}
          </td>
          {!isFree && <td class="number">{exactDollars(row.cost_usd)}</td>}
        </tr>
      ))}
    </Table>
  );
}

const Result = ({ row: { status, reason, more } }: { row: RequestRow }): VNode =>
  reason === null ? (
    <span class="badge good">{status}</span>
  ) : (
    <>
      <span class={`badge ${status >= 500 || status === 200 ? "bad" : "warn"}`}>
        {status} {inWords(reason)}
      </span>
      {more > 0 && <span class="quiet small-text"> and {count(more)} more like this</span>}
    </>
  );

const Details = ({ row, onClose }: { row: RequestRow; onClose: () => void }): VNode => (
  <Dialog title="Request" onClose={onClose}>
    {row.why !== null && <p>{row.why}</p>}
    {row.cause !== null && (
      <p class="break">
        {row.node ?? "The node"}: <code>{row.cause}</code>
      </p>
    )}
    {row.more > 0 && (
      <p class="quiet">{count(row.more)} similar requests of the same minute have no row of their own.</p>
    )}
    <Phases row={row} />
    <dl class="facts">
      <Fact name="Request id">
        <code>{row.request_id}</code> <CopyButton text={row.request_id} label="Copy the request id" />
      </Fact>
      <Fact name="Ended" title={utc(row.time)} value={fullMoment(row.time)} />
      <Fact name="Result" value={<Result row={{ ...row, more: 0 }} />} />
      <Fact name="Account" class="break" value={row.account ?? "none: the key was unknown"} />
      <Fact name="Key" class="break" value={row.key ?? "–"} />
      <Fact name="Endpoint" value={row.endpoint} />
      {row.asked_model !== null && <Fact name="Asked for" class="break" value={row.asked_model} />}
      {row.tags !== null && <Fact name="Tags" class="break" value={row.tags.replaceAll(",", ", ")} />}
      {row.cost_center !== null && <Fact name="Cost center" class="break" value={row.cost_center} />}
      <Fact name="Model" class="break" value={row.model === "" ? "unknown: the body was not read" : row.model} />
      <Fact name="Node" class="break" value={row.node ?? "none"} />
      <Fact
        name="Input"
        class="number"
        value={`${count(row.input)} ${inputUnitAt(row.endpoint)}, ${count(row.cached_input)} cached`}
      />
      <Fact name="Output" class="number" value={`${count(row.output)} tokens, ${count(row.reasoning)} reasoning`} />
      {!isFreeOfCharge([row]) && (
        <Fact
          name="Billed"
          class="number"
          value={`${count(row.billed_tokens)} balance tokens, ${exactDollars(row.cost_usd)}`}
        />
      )}
      {row.sum !== null && <Fact name="Calculation" class="break" value={row.sum} />}
    </dl>
  </Dialog>
);
