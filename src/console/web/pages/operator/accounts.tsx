// All accounts, with a search by e-mail address; each has a page where operators change it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AccountRow } from "../../../api/accounts.ts";
import { count } from "../../format.ts";
import { Icon } from "../../parts/icons.tsx";
import { Page } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Empty, isFirstLoad, Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { sells } from "../../session.ts";
import { useWish } from "../../wish.ts";
import { AccountLink, accountsPath } from "../../parts/account-link.tsx";
import { rowOf } from "../../route.ts";
import { AccountSheet } from "./account-sheet.tsx";
import { DeletionRequests } from "./deletion-requests.tsx";
import { InviteDialog, OpenInvitations } from "./invitations.tsx";
import { NewAccountDialog } from "./new-account.tsx";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { figures, Table } from "../../parts/table.tsx";

const pageRows = 50;

export function AccountsPage(): VNode {
  const name = rowOf(accountsPath);
  return name === null ? <Accounts /> : <AccountSheet key={name} name={name} />;
}

function Accounts(): VNode {
  const [search, setSearch] = useState("");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [making, setMaking] = useState(false);
  const [inviting, setInviting] = useState(false);
  useWish({
    new: () => setMaking(true),
    invite: () => setInviting(true),
  });
  const after = cursors.at(-1);
  const page = useResource(() => get("/operator/accounts", { search, after, limit: pageRows }), `${search} ${after}`);
  const deletions = useResource(() => get("/operator/requests", { state: "pending", kind: "deletion" }), "deletions");
  const invitations = useResource(() => get("/operator/invitations"), "invitations");
  return (
    <Page
      title="Accounts"
      actions={
        <>
          <Button caption="Invite" onClick={() => setInviting(true)} />
          <button type="button" class="button primary" onClick={() => setMaking(true)}>
            <Icon name="plus" size={16} /> New account
          </button>
        </>
      }
    >
      <div class="stack-large">
        <DeletionRequests page={deletions} onDeleted={page.reload} />
        {/* Loads meanwhile, but is hidden until the requests above it have their height. */}
        <section class="card flush" aria-label="Accounts" hidden={isFirstLoad(deletions)}>
          <div class="filters" role="search">
            <input
              class="grow"
              type="search"
              aria-label="Part of an e-mail address"
              placeholder="Search by e-mail"
              value={search}
              onInput={(event) => {
                setCursors([]);
                setSearch(event.currentTarget.value.trim());
              }}
            />
          </div>
          <Loaded resource={page} lines={8}>
            {({ accounts, next }) => (
              <>
                <AccountTable accounts={accounts} />
                <Pager
                  label="Pages of accounts"
                  cursors={cursors}
                  next={next}
                  onMove={setCursors}
                  names={["Previous", "Next"]}
                />
              </>
            )}
          </Loaded>
        </section>
        <OpenInvitations resource={invitations} />
      </div>
      {inviting && <InviteDialog onClose={() => setInviting(false)} onMade={invitations.reload} />}
      {making && <NewAccountDialog onClose={() => setMaking(false)} onMade={page.reload} />}
    </Page>
  );
}

function AccountTable({ accounts }: { accounts: readonly AccountRow[] }): VNode {
  if (accounts.length === 0) return <Empty icon="accounts" title="No account matches" />;
  const hasCredit = sells.value || accounts.some(({ credit }) => credit !== 0);
  return (
    <Table
      caption="Accounts, oldest first"
      columns={["E-mail", "Plan", "State", ...figures(...(hasCredit ? ["Credit"] : [])), "Made"]}
    >
      {accounts.map((account) => (
        <tr key={account.id}>
          <td>
            <AccountLink name={account.email} class="row-button" />
          </td>
          <td class="capital">{account.plan}</td>
          <td>
            {account.disabled ? <span class="badge bad">Disabled</span> : <span class="badge good">Active</span>}{" "}
            {account.operator && <span class="badge accent">Operator</span>}
            {account.team && <span class="badge">Team</span>}
          </td>
          {hasCredit && (
            <td class="number" data-name="Credit">
              {count(account.credit)}
            </td>
          )}
          <td class="quiet nowrap wide-only">
            <Time at={account.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
