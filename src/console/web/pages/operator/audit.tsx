// The changes that operators made, by who, what, account and time; the server filters and pages them.
import type { VNode } from "preact";
import { auditActions } from "../../../../core/audit-actions.ts";
import type { AuditPage as AuditPageReply, AuditQuery } from "../../../api/server.ts";
import { moment } from "../../format.ts";
import { Button } from "../../parts/button.tsx";
import { type DataColumn, DataTable, tableAsked, tableRows } from "../../parts/data-table.tsx";
import { AccountLink } from "../../parts/account-link.tsx";
import { Page } from "../../parts/page.tsx";
import { Select } from "../../parts/select.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { saidEach } from "../../phrases.ts";
import { get, search } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { changeQuery, place } from "../../route.ts";
import { t } from "../../texts.ts";

type Entry = AuditPageReply["entries"][number];

const filters = ["operator", "account", "action", "from", "to"] as const;
type Filter = Readonly<Record<(typeof filters)[number], string>>;

/** An address may say anything: what is no action or day is left out. */
function filterIn(query: URLSearchParams): Filter {
  const filter = Object.fromEntries(filters.map((name) => [name, (query.get(name) ?? "").slice(0, 254)])) as Filter;
  const dayOf = (text: string): string => (Number.isNaN(Date.parse(text)) ? "" : text.slice(0, 10));
  const isAction = auditActions.some((action) => action === filter.action);
  return { ...filter, action: isAction ? filter.action : "", from: dayOf(filter.from), to: dayOf(filter.to) };
}

/** Days are those of the browser's time zone, and the last one counts. */
const timeOf = (day: string, more: number): string => {
  if (day === "") return "";
  const at = new Date(`${day}T00:00`);
  at.setDate(at.getDate() + more);
  return at.toISOString();
};

export function AuditPage(): VNode {
  const filter = filterIn(place.value.query);
  const { sort, page } = tableAsked(columns, "-time");
  const asked = { ...filter, from: timeOf(filter.from, 0), to: timeOf(filter.to, 1), sort } as AuditQuery;
  const found = useResource(
    () => get("/operator/audit", { ...asked, page, limit: tableRows }),
    search({ ...asked, page }),
  );
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <Page title={t("menu.audit")} lead={t("audit.about")}>
      <section class="card flush" aria-label={t("audit.title")}>
        <Filters filter={filter} />
        <Loaded resource={found} lines={8}>
          {({ entries, ...server }) =>
            entries.length === 0 ? (
              <Empty icon="audit" title={t(isFiltered ? "audit.no_match" : "audit.none")}>
                {isFiltered && (
                  <Button caption={t("common.clear_filters")} onClick={() => change(filterIn(new URLSearchParams()))} />
                )}
              </Empty>
            ) : (
              <DataTable
                name="audit"
                caption={t("audit.title")}
                columns={columns}
                rows={entries}
                rowKey={({ id }) => id}
                first="-time"
                server={server}
              />
            )
          }
        </Loaded>
      </section>
    </Page>
  );
}

const change = (more: Partial<Filter>): void => changeQuery(more);

function Filters({ filter }: { filter: Filter }): VNode {
  const input = (name: "operator" | "account", label: string): VNode => (
    <input
      type="search"
      aria-label={label}
      title={label}
      placeholder={t(name === "operator" ? "accounts.operator" : "common.account")}
      value={filter[name]}
      onChange={(event) => change({ [name]: event.currentTarget.value.trim() })}
    />
  );
  const day = (name: "from" | "to", label: string): VNode => (
    <label>
      {label}{" "}
      <input type="date" value={filter[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} />
    </label>
  );
  return (
    <div class="filters" role="search">
      {input("operator", t("audit.operator_filter"))}
      {input("account", t("audit.account_filter"))}
      <Select
        aria-label={t("audit.all_actions")}
        all={t("audit.all_actions")}
        value={filter.action}
        options={auditActions}
        onValue={(action) => change({ action })}
      />
      {day("from", t("common.from"))}
      {day("to", t("common.to"))}
    </div>
  );
}

const columns: readonly DataColumn<Entry>[] = [
  { id: "action", name: "audit.action", cell: ({ action }) => <span class="badge">{action}</span> },
  {
    id: "time",
    name: "common.time",
    sort: "server",
    look: "nowrap quiet",
    cell: ({ time }) => <Time at={time} shown={moment} />,
  },
  {
    id: "account",
    name: "common.account",
    look: "parted",
    cell: ({ subject }) =>
      subject === "" ? <span class="quiet">{t("audit.server")}</span> : <AccountLink name={subject} />,
  },
  { id: "detail", name: "audit.detail", look: "parted sentence", cell: ({ detail }) => saidEach(detail) },
  {
    id: "by",
    name: "audit.by",
    look: "parted",
    cell: ({ operator, address }) => (
      <>
        {operator !== "" && <AccountLink name={operator} />}
        <p class="quiet small-text">{address}</p>
      </>
    ),
  },
];
