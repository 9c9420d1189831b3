// One account as operators see it: what it has and does, its keys, sessions and end users, and what changes it. Each number leads to
// the requests that it counts.
import type { ComponentChildren, VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { AccountUse, OperatorAccount } from "../../../api/accounts.ts";
import { now } from "../../clock.ts";
import { compact, count, exactDollars, moment, worth } from "../../format.ts";
import { AccountLink, accountPath, accountsPath } from "../../parts/account-link.tsx";
import { AskButton } from "../../parts/asking-dialogs.tsx";
import { Card } from "../../parts/card.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { Figure } from "../../parts/figure.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post, search } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { navigate } from "../../route.ts";
import { sells } from "../../session.ts";
import { rich, t, type TextKey } from "../../texts.ts";
import { SessionTable } from "../account.tsx";
import { NamedKeys } from "../named-keys.tsx";
import { Members } from "../team.tsx";
import { AccountChanges } from "./account-changes.tsx";

const requestsShown = 8;
const dayMs = 86_400_000;

export function AccountSheet({ name }: { name: string }): VNode {
  const account = useResource(() => get("/operator/account", { name }), name);
  const { value } = account;
  const email = value?.email;
  useEffect(() => {
    // An account that was deleted has another name; the address follows it.
    if (email !== undefined && email !== name) navigate(accountPath(email), { replace: true });
  }, [email]);
  return (
    <Page
      title={email ?? name}
      lead={value === null ? undefined : <Badges account={value} />}
      back={{ href: accountsPath, name: t("menu.accounts") }}
      actions={
        <a class="button" href={logPath(name)}>
          {t("sheet.all_requests")}
        </a>
      }
    >
      <Loaded resource={account} lines={12}>
        {(shown) => <Sections account={shown} onChanged={account.replace} onReload={account.reload} />}
      </Loaded>
    </Page>
  );
}

type SectionsProps = Readonly<{
  account: OperatorAccount;
  onChanged: (next: OperatorAccount) => void;
  onReload: () => void;
}>;

function Sections({ account, onChanged, onReload }: SectionsProps): VNode {
  const { id, email, team } = account;
  const use = useResource(() => get(`/operator/accounts/${id}/use`), `use ${id}`);
  return (
    <div class="stack-large">
      <Figures account={account} use={use.value} />
      <NamedKeys of={id} />
      <Loaded resource={use} lines={4}>
        {(value) => <ModelUse email={email} use={value} />}
      </Loaded>
      <div class="grid-2">
        <LastRequests email={email} />
        <LastRequests email={email} isOfFailed />
      </div>
      {team ? <TeamMembers id={id} /> : <Sessions account={account} />}
      {(use.value?.end_users.length ?? 0) > 0 && <EndUsers email={email} use={use.value!} />}
      <AccountChanges account={account} onChanged={onChanged} onReload={onReload} />
    </div>
  );
}

const Badges = ({ account }: { account: OperatorAccount }): VNode => (
  <span class="row">
    <span class={`badge ${account.disabled ? "bad" : "good"}`}>
      {t(account.disabled ? "sheet.disabled" : "sheet.active")}
    </span>
    <span class="badge">{account.plan}</span>
    {account.operator && <span class="badge accent">{t("shell.operator")}</span>}
    {account.team && <span class="badge accent">{t("menu.team")}</span>}
    {!account.team && !account.has_password && <span class="badge">{t("sheet.no_password")}</span>}
    {account.providers.length > 0 && <span class="badge">{t("sheet.connected")}</span>}
    {account.cost_center !== null && <span class="badge">{account.cost_center}</span>}
    <span class="quiet small-text">{rich("sheet.made", { time: <Time at={account.created_at} /> })}</span>
    {account.teams.map(({ id, name, role }) => (
      <span key={id} class="small-text">
        {rich(`sheet.team_${role === "admin" ? "admin" : "member"}`, { team: <AccountLink name={name} /> })}
      </span>
    ))}
  </span>
);

/** The requests that a number counts. */
const logPath = (account: string, more: Readonly<Record<string, string>> = {}): string =>
  `/operator/log${search({ account, ...more })}`;
const servedSince = (from: string) => ({ reason: "served", from });

const startOfDay = (daysAgo: number): string => new Date((Math.floor(now() / dayMs) - daysAgo) * dayMs).toISOString();
const startOfMonth = (): string => `${new Date(now()).toISOString().slice(0, 7)}-01T00:00:00.000Z`;

function Figures({ account, use }: { account: OperatorAccount; use: AccountUse | null }): VNode {
  const { email, numbers, credit } = account;
  const { allowance, spendable, reserved, requests_in_flight: open } = numbers;
  const used = (of: AccountUse["today"] | undefined, from: string): ComponentChildren =>
    of === undefined ? (
      " "
    ) : (
      <>
        {t(sells.value ? "sheet.balance_tokens" : "sheet.model_tokens")},{" "}
        <a href={logPath(email, servedSince(from))}>{t("common.requests_counted", { requests: of.requests })}</a>
      </>
    );
  const amount = (of: AccountUse["today"] | undefined): string | null =>
    of === undefined ? null : compact(sells.value ? of.billed_tokens : of.input + of.output);
  return (
    <section class="grid-4" aria-label={t("menu.balance")}>
      {sells.value && (
        <Figure name={t("sheet.spendable")} value={spendable === null ? t("sheet.unlimited") : count(spendable)}>
          {allowance.granted !== null && allowance.granted > 0
            ? t("sheet.allowance", { left: allowance.left ?? 0, granted: allowance.granted })
            : t("sheet.balance_tokens")}
        </Figure>
      )}
      {(sells.value || credit !== 0) && (
        <Figure name={t("sheet.credit")} value={count(credit)}>
          {worth(credit)}
        </Figure>
      )}
      <Figure name={t("sheet.today")} value={amount(use?.today)}>
        {used(use?.today, startOfDay(0))}
      </Figure>
      <Figure name={t("sheet.month")} value={amount(use?.month)}>
        {used(use?.month, startOfMonth())}
      </Figure>
      {open > 0 && (
        <Figure name={t("sheet.in_flight")} value={count(open)}>
          <a href="/operator/line">{t("sheet.reserved", { tokens: reserved.tokens })}</a>
        </Figure>
      )}
    </section>
  );
}

type ModelRow = AccountUse["models"][number];

function ModelUse({ email, use: { models } }: { email: string; use: AccountUse }): VNode {
  const used = (of: "today" | "days30", name: TextKey, daysAgo: number): DataColumn<ModelRow> => ({
    ...{ id: of, name, isFigure: true },
    sort: (row) => row[of].requests,
    cell: ({ model, [of]: { requests, input, output } }) => (
      <>
        {requests === 0 ? (
          "0"
        ) : (
          <a href={logPath(email, { model, ...servedSince(startOfDay(daysAgo)) })}>{count(requests)}</a>
        )}
        <div class="quiet small-text">{t("sheet.tokens", { tokens: compact(input + output) })}</div>
      </>
    ),
  });
  const columns: readonly DataColumn<ModelRow>[] = [
    { id: "model", name: "common.model", sort: ({ model }) => model, look: "parted", cell: ({ model }) => model },
    used("today", "sheet.requests_today", 0),
    used("days30", "sheet.requests_days30", 29),
    figureColumn("cost", "sheet.cost_days30", ({ days30 }) => days30.cost_usd, exactDollars),
  ];
  return (
    <Card title={t("sheet.use")} aria-label={t("sheet.use")}>
      {models.length === 0 ? (
        <Empty icon="usage" title={t("sheet.no_use")} />
      ) : (
        <DataTable
          name="sheet-models"
          caption={t("sheet.use")}
          columns={columns.filter(({ id }) => sells.value || id !== "cost")}
          rows={models}
          rowKey={({ model }) => model}
          first="-days30"
          prefix="model-"
        />
      )}
    </Card>
  );
}

function LastRequests({ email, isOfFailed = false }: { email: string; isOfFailed?: boolean }): VNode {
  const filter: { reason?: string } = isOfFailed ? { reason: "failed" } : {};
  const log = useResource(
    () => get("/operator/log", { account: email, ...filter, limit: requestsShown }),
    `${email} ${isOfFailed}`,
  );
  const title = t(isOfFailed ? "sheet.failures" : "sheet.requests");
  return (
    <Card title={title} aria-label={title} side={<a href={logPath(email, filter)}>{t("sheet.in_log")}</a>}>
      <Loaded resource={log} lines={4}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty icon={isOfFailed ? "check" : "usage"} title={t(isOfFailed ? "sheet.no_failures" : "sheet.no_use")} />
          ) : (
            <ul class="item-list">
              {rows.map(({ request_id, time, model, endpoint, status, reason, why, address }) => (
                <li key={request_id}>
                  <div>
                    <p>
                      <a href={logPath(email, { request_id })}>{model === "" ? endpoint : model}</a>{" "}
                      {reason !== null && <span class={`badge ${status >= 500 ? "bad" : "warn"}`}>{status}</span>}
                    </p>
                    <p class="quiet small-text">
                      <Time at={time} shown={moment} />
                      {address !== null && ` · ${address}`}
                      {why !== null && ` · ${why}`}
                    </p>
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Browsers; machines are among the keys, and end with all browsers. */
function Sessions({ account: { id, email } }: { account: OperatorAccount }): VNode {
  const sessions = useResource(() => get(`/operator/accounts/${id}/sessions`), `sessions ${id}`);
  const endAll = async (): Promise<void> => {
    await post(`/operator/accounts/${id}/sessions/end`, {});
    toast(t("sheet.signed_out", { email }));
    sessions.reload();
  };
  return (
    <Card
      title={t("sheet.sessions")}
      aria-label={t("sheet.sessions")}
      side={
        <AskButton
          caption={t("sheet.sign_out_all")}
          class="button small"
          title={t("sheet.sign_out_ask")}
          confirm={t("sheet.sign_out_all")}
          onConfirm={endAll}
        >
          <p>{t("sheet.sign_out_about")}</p>
        </AskButton>
      }
    >
      <Loaded resource={sessions} lines={3}>
        {({ sessions: open }) =>
          open.length === 0 ? (
            <Empty icon="account" title={t("sheet.no_sessions")} />
          ) : (
            <SessionTable
              sessions={open}
              end={(session) => post(`/operator/accounts/${id}/sessions/end`, { session })}
              onEnded={sessions.reload}
            />
          )
        }
      </Loaded>
    </Card>
  );
}

function TeamMembers({ id }: { id: number }): VNode {
  const team = useResource(() => get(`/teams/${id}`), `team ${id}`);
  return (
    <Loaded resource={team} lines={4}>
      {(shown) =>
        shown.managed === null ? null : (
          <Members team={shown} members={shown.managed.members} onChanged={team.reload} leadsToSheets />
        )
      }
    </Loaded>
  );
}

type EndUser = AccountUse["end_users"][number];

function EndUsers({ email, use: { end_users: endUsers } }: { email: string; use: AccountUse }): VNode {
  const columns: readonly DataColumn<EndUser>[] = [
    {
      id: "name",
      name: "sheet.end_user",
      look: "break",
      sort: ({ name }) => name,
      cell: ({ name, key }) => (
        <>
          {name || <span class="quiet">{t(name === null ? "sheet.erased" : "sheet.unnamed")}</span>}
          <div class="small-text">
            <a href={logPath(email, { key, ...servedSince(startOfDay(29)) })}>{key}</a>
          </div>
        </>
      ),
    },
    figureColumn("requests", "common.requests", ({ requests }) => requests),
    figureColumn("tokens", "log.tokens", ({ input, output }) => input + output, compact),
    figureColumn("limit", "sheet.end_user_limit", (row) => row.limit_day, count, { look: "quiet" }),
  ];
  return (
    <Card title={t("sheet.end_users")} aria-label={t("sheet.end_users")}>
      <DataTable
        name="sheet-end-users"
        caption={t("sheet.end_users")}
        columns={columns}
        rows={endUsers}
        rowKey={({ key, name }) => `${key} ${name}`}
        first="-tokens"
        prefix="user-"
      />
    </Card>
  );
}
