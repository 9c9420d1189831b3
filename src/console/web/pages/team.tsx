// A team: what is left of its balance, what the account may use of it and by which keys; for its admins and operators its
// members, what they may use, and its service keys.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { AccountKey, CreatedAccountKey } from "../../api/keys.ts";
import type { Member, Team } from "../../api/teams.ts";
import { count, fullMoment } from "../format.ts";
import { AccountLink } from "../parts/account-link.tsx";
import { EmailField } from "../parts/account-fields.tsx";
import { AskButton, FormDialog } from "../parts/asking-dialogs.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { type DataColumn, DataTable } from "../parts/data-table.tsx";
import { NumberField, TextField } from "../parts/field.tsx";
import { Figure } from "../parts/figure.tsx";
import { Meter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { FreshInvitation, FreshKey } from "../parts/secret.tsx";
import { Select } from "../parts/select.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { UndoButton } from "../parts/undo-button.tsx";
import { get, post } from "../request.ts";
import { useResource } from "../resource.ts";
import { account, loadSession } from "../session.ts";
import { keyColumns, usedColumns } from "./named-keys.tsx";
import { TeamInvitations } from "./team-invitations.tsx";
import { rich, t } from "../texts.ts";

const keyNameMaxLength = 64;

export function TeamPage(): VNode {
  const [chosen, choose] = useState<number | null>(null);
  const list = useResource(() => get("/teams"), "teams");
  return (
    <Loaded resource={list} lines={6}>
      {({ teams }) => {
        const id = chosen ?? teams[0]?.id ?? null;
        if (id === null) {
          return (
            <Page title={t("menu.team")}>
              <Empty icon="accounts" title={t("team.none")}>
                {t("team.none_about")}
              </Empty>
            </Page>
          );
        }
        const choice =
          teams.length < 2 ? undefined : (
            <Select
              aria-label={t("menu.team")}
              value={String(id)}
              options={teams.map(({ id: each, name }) => [each, name] as const)}
              onValue={(value) => choose(Number(value))}
            />
          );
        const left = (): void => {
          choose(null);
          list.reload();
          void loadSession();
        };
        return <OneTeam key={id} id={id} choice={choice} onLeft={left} />;
      }}
    </Loaded>
  );
}

type OneTeamProps = Readonly<{ id: number; choice: ComponentChildren; onLeft: () => void }>;

function OneTeam({ id, choice, onLeft }: OneTeamProps): VNode {
  const resource = useResource(() => get(`/teams/${id}`), `team ${id}`);
  const { value: team, reload } = resource;
  return (
    <Page
      title={team?.name ?? t("menu.team")}
      lead={team === null ? undefined : team.disabled ? t("team.disabled") : t("team.plan", { plan: team.plan })}
      actions={choice}
    >
      <Loaded resource={resource} lines={6}>
        {(shown) => (
          <div class="stack-large">
            <div class="grid-2">
              <Balance team={shown} />
              {shown.own !== null && <Own team={shown} member={shown.own.member} onLeft={onLeft} />}
            </div>
            {shown.own !== null && (
              <Keys team={shown} title={t("team.your_keys")} keys={shown.own.keys} onChanged={reload}>
                {t("team.keys_about", { email: account.value?.email ?? "" })}
              </Keys>
            )}
            {shown.managed !== null && (
              <>
                <Members team={shown} members={shown.managed.members} onChanged={reload} />
                <TeamInvitations team={shown.id} open={shown.managed.invitations} onChanged={reload} />
                <Keys
                  team={shown}
                  title={t("team.service_keys")}
                  keys={shown.managed.keys}
                  isService
                  onChanged={reload}
                >
                  {t("team.service_about")}
                </Keys>
              </>
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

const Balance = ({ team: { allowance, credit, spendable } }: { team: Team }): VNode => (
  <Figure name={t("team.left")} value={spendable === null ? t("plan.unlimited") : count(spendable)}>
    {allowance.granted !== null && allowance.left !== null
      ? t("team.left_about", { left: allowance.left, granted: allowance.granted, credit })
      : t("team.balance_tokens")}
  </Figure>
);

type OwnProps = Readonly<{
  team: Team;
  member: NonNullable<Team["own"]>["member"];
  onLeft: () => void;
}>;

const Own = ({ team, member, onLeft }: OwnProps): VNode => (
  <Card
    title={t("team.own")}
    class="card stack"
    side={
      <UndoButton
        caption={t("team.leave")}
        class="button small"
        done={t("team.left_done", { name: team.name })}
        act={() => post(`/teams/${team.id}/remove`, { account: member.id })}
        onChanged={onLeft}
      />
    }
  >
    <Use name={t("common.today")} used={member.used_day} limit={member.limit_day} />
    <Use name={t("common.this_month")} used={member.used_month} limit={member.limit_month} />
  </Card>
);

type UseProps = Readonly<{ name: string; used: number; limit: number | null }>;

const Use = ({ name, used, limit }: UseProps): VNode =>
  limit === null ? (
    <p>
      <span class="figure-name">{name}</span> {count(used)} <span class="quiet">{t("team.no_limit")}</span>
    </p>
  ) : (
    <Meter name={name} label={t("team.used", { name })} value={used} of={limit} isLow={used >= 0.85 * limit} />
  );

type KeysProps = Readonly<{
  team: Team;
  title: string;
  keys: readonly AccountKey[];
  isService?: boolean;
  onChanged: () => void;
  children: ComponentChildren;
}>;

function Keys({ team, title, keys, isService: service = false, onChanged, children }: KeysProps): VNode {
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedAccountKey | null>(null);
  const caption = t(service ? "team.new_service_key" : "keys.new");
  return (
    <Card
      title={title}
      aria-label={title}
      side={<Button caption={caption} class="button small" onClick={() => setMaking(true)} />}
    >
      {made !== null && (
        <FreshKey
          title={t("keys.made", { name: made.name })}
          apiKey={made.api_key}
          label={t("keys.copy", { name: made.name })}
        />
      )}
      {keys.length === 0 ? (
        <Empty icon="key" title={t("keys.none")}>
          {children}
        </Empty>
      ) : (
        <DataTable
          caption={title}
          columns={[...keyColumns, ...usedColumns, revokeColumn(team, service, onChanged)]}
          rows={keys}
          rowKey={({ id }) => id}
          first=""
          prefix={service ? "service-" : "key-"}
        />
      )}
      {making && (
        <NewKey
          title={caption}
          onClose={() => setMaking(false)}
          onName={async (name, limits) => {
            setMade(await post(`/teams/${team.id}/keys`, { name, service, ...limits }));
            setMaking(false);
            onChanged();
          }}
        />
      )}
    </Card>
  );
}

const revokeColumn = (team: Team, service: boolean, onRevoked: () => void): DataColumn<AccountKey> => ({
  ...{ id: "actions", name: "common.actions", isActions: true },
  cell: (key) => (
    <AskButton
      caption={t("keys.revoke")}
      label={t("keys.revoke_of", { name: key.name })}
      class="button small"
      title={t("keys.revoke_ask")}
      confirm={t("keys.revoke_do")}
      onConfirm={async () => {
        await post(`/teams/${team.id}/revoke`, { key: key.id, service });
        onRevoked();
      }}
    >
      <p>{rich("keys.revoke_team_about", { name: <strong>{key.name}</strong> })}</p>
    </AskButton>
  ),
});

/** Null: no limit. */
type Limits = Readonly<{ limit_day: number | null; limit_month: number | null }>;

const useLimits = (of: Limits) => {
  const [limits, setLimits] = useState(of);
  const field = (name: keyof Limits, label: string): VNode => (
    <NumberField
      label={label}
      hint={t("team.limit_hint")}
      min={1}
      step={1}
      value={limits[name]}
      onValue={(value) => setLimits({ ...limits, [name]: Number.isNaN(value) ? null : value })}
    />
  );
  const fields = (
    <div class="grid-2">
      {field("limit_day", t("team.limit_day"))}
      {field("limit_month", t("team.limit_month"))}
    </div>
  );
  return [limits, fields] as const;
};
const noLimits: Limits = { limit_day: null, limit_month: null };
const given = ({ limit_day, limit_month }: Limits) => ({
  ...(limit_day === null ? {} : { limit_day }),
  ...(limit_month === null ? {} : { limit_month }),
});

type NewKeyProps = Readonly<{
  title: string;
  onClose: () => void;
  onName: (name: string, limits: ReturnType<typeof given>) => Promise<void>;
}>;

function NewKey({ title, onClose, onName }: NewKeyProps): VNode {
  const [name, setName] = useState("");
  const [limits, fields] = useLimits(noLimits);
  return (
    <FormDialog title={title} submit={t("keys.make")} onSubmit={() => onName(name, given(limits))} onClose={onClose}>
      <TextField
        label={t("common.name")}
        value={name}
        onValue={setName}
        maxLength={keyNameMaxLength}
        required
        autofocus
      />
      {fields}
    </FormDialog>
  );
}

type MembersProps = Readonly<{
  team: Team;
  members: readonly Member[];
  onChanged: () => void;
  /** For operators. */
  leadsToSheets?: boolean;
}>;

export function Members({ team, members, onChanged, leadsToSheets = false }: MembersProps): VNode {
  const [inviting, setInviting] = useState(false);
  const [limiting, setLimiting] = useState<Member | null>(null);
  return (
    <Card
      title={t("team.members")}
      side={<Button caption={t("team.invite")} class="button small" onClick={() => setInviting(true)} />}
    >
      {members.length === 0 ? (
        <Empty icon="accounts" title={t("team.nobody")}>
          {t("team.nobody_about")}
        </Empty>
      ) : (
        <DataTable
          name="members"
          caption={t("team.members")}
          columns={[
            emailColumn(leadsToSheets),
            ...usedColumns,
            {
              ...{ id: "actions", name: "common.actions", isActions: true },
              cell: (member) => <Actions {...{ team, member }} onChange={setLimiting} onRemoved={onChanged} />,
            },
          ]}
          rows={members}
          rowKey={({ id }) => id}
          first=""
          prefix="member-"
        />
      )}
      {inviting && (
        <InviteDialog
          team={team}
          onClose={() => {
            setInviting(false);
            onChanged();
          }}
        />
      )}
      {limiting !== null && (
        <ChangeDialog
          team={team}
          member={limiting}
          onClose={() => setLimiting(null)}
          onDone={() => {
            setLimiting(null);
            onChanged();
          }}
        />
      )}
    </Card>
  );
}

const emailColumn = (leadsToSheets: boolean): DataColumn<Member> => ({
  ...{ id: "email", name: "account_fields.email", look: "break" },
  sort: ({ email }) => email,
  cell: ({ email, role }) => (
    <>
      {leadsToSheets ? <AccountLink name={email} /> : email}{" "}
      {role === "admin" && <span class="badge accent">{t("team.admin")}</span>}
    </>
  ),
});

type ActionsProps = Readonly<{
  team: Team;
  member: Member;
  onChange: (member: Member) => void;
  onRemoved: () => void;
}>;

const Actions = ({ team, member, onChange, onRemoved }: ActionsProps): VNode => (
  <>
    <Button
      caption={t("team.change")}
      class="button small"
      aria-label={t("team.change_of", { email: member.email })}
      onClick={() => onChange(member)}
    />{" "}
    <UndoButton
      caption={t("team.remove")}
      label={t("team.remove_of", { email: member.email })}
      class="button small"
      done={t("team.removed", { email: member.email })}
      act={() => post(`/teams/${team.id}/remove`, { account: member.id })}
      onChanged={onRemoved}
    />
  </>
);

type ChangeDialogProps = Readonly<{ team: Team; member: Member; onClose: () => void; onDone: () => void }>;

function ChangeDialog({ team, member, onClose, onDone }: ChangeDialogProps): VNode {
  const [limits, fields] = useLimits(member);
  const [isAdmin, setAdmin] = useState(member.role === "admin");
  const change = async (): Promise<void> => {
    const { limit_day, limit_month } = limits;
    const role = isAdmin ? "admin" : "member";
    await post(`/teams/${team.id}/change`, { account: member.id, role, limit_day, limit_month });
    onDone();
  };
  return (
    <FormDialog title={member.email} submit={t("common.save")} onSubmit={change} onClose={onClose}>
      {fields}
      <label class="check">
        <input type="checkbox" checked={isAdmin} onChange={(event) => setAdmin(event.currentTarget.checked)} />
        {t("team.admin_about")}
      </label>
    </FormDialog>
  );
}

function InviteDialog({ team, onClose }: { team: Team; onClose: () => void }): VNode {
  const [email, setEmail] = useState("");
  const [limits, fields] = useLimits(noLimits);
  const [made, setMade] = useState<Readonly<{ path: string; expires_at: string; mailed: boolean }> | null>(null);
  if (made !== null) {
    return (
      <FreshInvitation path={made.path} mailedTo={made.mailed ? email : null} onClose={onClose}>
        {t("team.link", { name: team.name, time: fullMoment(made.expires_at) })}
      </FreshInvitation>
    );
  }
  const invite = async (): Promise<void> => {
    setMade(await post(`/teams/${team.id}/invite`, { ...given(limits), ...(email === "" ? {} : { email }) }));
  };
  return (
    <FormDialog
      title={t("team.invite_into", { name: team.name })}
      submit={t("team.make_link")}
      onSubmit={invite}
      onClose={onClose}
    >
      <EmailField
        value={email}
        onValue={(value) => setEmail(value.trim())}
        hint={t("team.email_hint")}
        isOptional
        hasFocus
      />
      {fields}
    </FormDialog>
  );
}
