// All accounts: sorted, filtered and paged by the server. Each has a page where operators change it, and those that are
// marked change together.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AccountRow, AccountsFilter } from "../../../api/accounts.ts";
import { count, percentage } from "../../format.ts";
import { AccountLink, accountsPath } from "../../parts/account-link.tsx";
import { Button } from "../../parts/button.tsx";
import { type DataColumn, DataTable, figureColumn, tableAsked, tableRows } from "../../parts/data-table.tsx";
import { FileLink } from "../../parts/file-link.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Page } from "../../parts/page.tsx";
import { Select, type SelectOptions } from "../../parts/select.tsx";
import { Empty, isFirstLoad, Loaded } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { address, get, search } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { changeQuery, place, rowOf } from "../../route.ts";
import { planChoices, sells } from "../../session.ts";
import { t } from "../../texts.ts";
import { useWish } from "../../wish.ts";
import { AccountSheet } from "./account-sheet.tsx";
import { MarkedAccounts } from "./marked-accounts.tsx";
import { DeletionRequests } from "./deletion-requests.tsx";
import { InviteDialog, OpenInvitations } from "./invitations.tsx";
import { NewAccountDialog } from "./new-account.tsx";

const filters = ["search", "plan", "state", "team", "used"] as const;
type Filter = Readonly<Record<(typeof filters)[number], string>>;
const states = ["active", "disabled", "operator", "team"] as const;
const limits = [0.8, 0.95] as const;

/** An address may say anything: what the server would refuse is left out. */
function filterIn(query: URLSearchParams): Filter {
  const filter = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ""])) as Filter;
  const isState = states.some((state) => state === filter.state);
  return {
    ...filter,
    search: filter.search.trim().slice(0, 254),
    plan: filter.plan.slice(0, 64),
    team: filter.team.slice(0, 254),
    state: isState ? filter.state : "",
    used: /^\d{1,3}$/.test(filter.used) ? filter.used : "",
  };
}

export function AccountsPage(): VNode {
  const name = rowOf(accountsPath);
  return name === null ? <Accounts /> : <AccountSheet key={name} name={name} />;
}

function Accounts(): VNode {
  const [making, setMaking] = useState(false);
  const [inviting, setInviting] = useState(false);
  useWish({
    new: () => setMaking(true),
    invite: () => setInviting(true),
  });
  const filter = filterIn(place.value.query);
  const { sort, page } = tableAsked(columns, "-month");
  const asked = { ...filter, sort } as AccountsFilter;
  const found = useResource(
    () => get("/operator/accounts", { ...asked, page, limit: tableRows }),
    search({ ...asked, page }),
  );
  const deletions = useResource(() => get("/operator/requests", { state: "pending", kind: "deletion" }), "deletions");
  const invitations = useResource(() => get("/operator/invitations"), "invitations");
  return (
    <Page
      title={t("menu.accounts")}
      actions={
        <>
          <FileLink caption="CSV" href={address("/operator/accounts.csv", asked)} />
          <Button caption={t("accounts.invite")} onClick={() => setInviting(true)} />
          <button type="button" class="button primary" onClick={() => setMaking(true)}>
            <Icon name="plus" size={16} /> {t("new_account.title")}
          </button>
        </>
      }
    >
      <div class="stack-large">
        <DeletionRequests page={deletions} onDeleted={found.reload} />
        {/* Loads meanwhile, but is hidden until the requests above it have their height. */}
        <section class="card flush" aria-label={t("menu.accounts")} hidden={isFirstLoad(deletions)}>
          <Filters filter={filter} />
          <Loaded resource={found} lines={8}>
            {({ accounts, ...server }) =>
              accounts.length === 0 ? (
                <Empty icon="accounts" title={t("accounts.none")}>
                  <Button caption={t("common.clear_filters")} onClick={() => change(filterIn(new URLSearchParams()))} />
                </Empty>
              ) : (
                <AccountTable {...{ accounts, columns, server }} onChanged={found.reload} />
              )
            }
          </Loaded>
        </section>
        <OpenInvitations resource={invitations} />
      </div>
      {inviting && <InviteDialog onClose={() => setInviting(false)} onMade={invitations.reload} />}
      {making && <NewAccountDialog onClose={() => setMaking(false)} onMade={found.reload} />}
    </Page>
  );
}

const change = (more: Partial<Filter>, replace = false): void => changeQuery(more, { replace });

function Filters({ filter }: { filter: Filter }): VNode {
  const teams = useResource(() => get("/teams"), "teams").value?.teams ?? [];
  const select = (name: keyof Filter, all: string, options: SelectOptions): VNode => (
    <Select
      aria-label={all}
      all={all}
      value={filter[name]}
      options={options}
      onValue={(value) => change({ [name]: value })}
    />
  );
  return (
    <div class="filters" role="search">
      <input
        class="grow"
        type="search"
        aria-label={t("accounts.search_about")}
        placeholder={t("accounts.search")}
        value={filter.search}
        onInput={(event) => change({ search: event.currentTarget.value }, true)}
      />
      {planChoices().length > 1 && select("plan", t("common.all_plans"), planChoices())}
      {select(
        "state",
        t("accounts.any_state"),
        states.map((state) => [state, t(`accounts.state_${state}`)]),
      )}
      {teams.length > 0 &&
        select(
          "team",
          t("accounts.any_team"),
          teams.map(({ name }) => name),
        )}
      {select(
        "used",
        t("accounts.any_limit"),
        limits.map((share) => [share * 100, t("accounts.at_least", { percent: percentage(share) })]),
      )}
    </div>
  );
}

const emailColumn: DataColumn<AccountRow> = {
  id: "email",
  name: "account_fields.email",
  sort: "server",
  cell: ({ email, operator, team }) => (
    <>
      <AccountLink name={email} class="row-button" />{" "}
      {operator && <span class="badge accent">{t("accounts.operator")}</span>}
      {team && <span class="badge">{t("accounts.team")}</span>}
    </>
  ),
};

const byServer = { sort: "server" } as const;
const otherColumns: readonly DataColumn<AccountRow>[] = [
  { id: "plan", name: "account_fields.plan", sort: "server", look: "capital", cell: ({ plan }) => plan },
  {
    id: "state",
    name: "common.state",
    sort: "server",
    cell: ({ disabled }) => (
      <span class={`badge ${disabled ? "bad" : "good"}`}>
        {t(disabled ? "accounts.state_disabled" : "accounts.state_active")}
      </span>
    ),
  },
  {
    id: "active",
    name: "accounts.active",
    sort: "server",
    look: "quiet nowrap",
    cell: ({ active_at: at }) => (at === null ? t("accounts.never") : <Time at={at} />),
  },
  figureColumn("today", "accounts.today", (row) => (sells.value ? row.today : row.today_tokens), count, byServer),
  figureColumn("month", "accounts.month", (row) => (sells.value ? row.month : row.month_tokens), count, byServer),
  figureColumn("credit", "accounts.credit", ({ credit }) => credit, count, byServer),
  {
    id: "limit",
    name: "accounts.limit",
    sort: "server",
    isFigure: true,
    isOptional: true,
    cell: ({ limit }) =>
      limit === null ? "–" : <span class={limit < 800 ? "" : "badge warn"}>{percentage(limit / 1000)}</span>,
  },
  { id: "cost_center", name: "accounts.cost_center", sort: "server", isOptional: true, cell: (row) => row.cost_center },
  { id: "team", name: "accounts.team", look: "break", isOptional: true, cell: ({ teams }) => teams },
  {
    id: "created",
    name: "common.made",
    sort: "server",
    look: "quiet nowrap",
    isOptional: true,
    cell: ({ created_at: at }) => <Time at={at} />,
  },
];
const columns = [emailColumn, ...otherColumns];

type AccountTableProps = Readonly<{
  accounts: readonly AccountRow[];
  columns: readonly DataColumn<AccountRow>[];
  server: Readonly<{ total: number; page: number }>;
  onChanged: () => void;
}>;

function AccountTable({ accounts, columns, server, onChanged }: AccountTableProps): VNode {
  const [marked, setMarked] = useState<ReadonlyMap<number, string>>(new Map());
  const mark = (ids: ReadonlySet<string | number>): void => {
    const emails = new Map([...marked, ...accounts.map(({ id, email }) => [id, email] as const)]);
    setMarked(new Map([...emails].filter(([id]) => ids.has(id))));
  };
  const clear = (): void => setMarked(new Map());
  const hasCredit = sells.value || accounts.some(({ credit }) => credit !== 0);
  return (
    <DataTable
      name="accounts"
      caption={t("menu.accounts")}
      columns={columns.filter(({ id }) => id !== "credit" || hasCredit)}
      rows={accounts}
      rowKey={({ id }) => id}
      first="-month"
      server={server}
      marks={{ marked: new Set(marked.keys()), onMark: mark, labelOf: ({ email }) => email }}
      tools={marked.size > 0 && <MarkedAccounts marked={marked} onChanged={onChanged} onClear={clear} />}
    />
  );
}
