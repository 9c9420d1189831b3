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
import { NumberField, TextField } from "../parts/field.tsx";
import { Figure } from "../parts/figure.tsx";
import { Meter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { FreshInvitation, FreshKey } from "../parts/secret.tsx";
import { Select } from "../parts/select.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { buttonColumn, figures, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { toast } from "../parts/toasts.tsx";
import { get, post } from "../request.ts";
import { useResource } from "../resource.ts";
import { account, loadSession } from "../session.ts";
import { TeamInvitations } from "./team-invitations.tsx";

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
            <Page title="Team">
              <Empty icon="accounts" title="You are in no team">
                Admins of a team send links by which one joins.
              </Empty>
            </Page>
          );
        }
        const choice =
          teams.length < 2 ? undefined : (
            <Select
              aria-label="Team"
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
      title={team?.name ?? "Team"}
      lead={
        team === null ? undefined : team.disabled ? "This team is disabled: its keys are refused." : `Plan ${team.plan}`
      }
      actions={choice}
    >
      <Loaded resource={resource} lines={6}>
        {(shown) => (
          <div class="stack-large">
            <Balance team={shown} />
            {shown.own !== null && <Own team={shown} own={shown.own} onChanged={reload} onLeft={onLeft} />}
            {shown.managed !== null && (
              <>
                <Members team={shown} members={shown.managed.members} onChanged={reload} />
                <TeamInvitations team={shown.id} open={shown.managed.invitations} onChanged={reload} />
                <Keys team={shown} title="Service keys" keys={shown.managed.keys} isService onChanged={reload}>
                  A service key belongs to the team and to no person: for programs that stay when people go.
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
  <div class="grid-2">
    <Figure name="Left for the team" value={spendable === null ? "Unlimited" : count(spendable)}>
      {allowance.granted !== null && allowance.left !== null
        ? `${count(allowance.left)} of today's ${count(allowance.granted)}, and ${count(credit)} of credit`
        : "balance tokens"}
    </Figure>
  </div>
);

type OwnProps = Readonly<{
  team: Team;
  own: NonNullable<Team["own"]>;
  onChanged: () => void;
  onLeft: () => void;
}>;

const Own = ({ team, own: { member, keys }, onChanged, onLeft }: OwnProps): VNode => (
  <>
    <Card
      title="What you may use"
      class="card stack"
      side={
        <AskButton
          caption="Leave the team"
          class="button small"
          title={`Leave ${team.name}?`}
          confirm="Leave the team"
          onConfirm={async () => {
            await post(`/teams/${team.id}/remove`, { account: member.id });
            onLeft();
          }}
        >
          <p>Your keys in the team are void at once. An admin can invite you again.</p>
        </AskButton>
      }
    >
      <Use name="Today" used={member.used_day} limit={member.limit_day} />
      <Use name="This month" used={member.used_month} limit={member.limit_month} />
    </Card>
    <Keys team={team} title="Your keys" keys={keys} onChanged={onChanged}>
      What your keys spend here, the team pays. {account.value?.email} keeps its own balance and keys.
    </Keys>
  </>
);

type UseProps = Readonly<{ name: string; used: number; limit: number | null }>;

const Use = ({ name, used, limit }: UseProps): VNode =>
  limit === null ? (
    <p>
      <span class="figure-name">{name}</span> {count(used)} <span class="quiet">balance tokens, without a limit</span>
    </p>
  ) : (
    <Meter name={name} label={`Used ${name.toLowerCase()}`} value={used} of={limit} isLow={used >= 0.85 * limit} />
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
  const caption = service ? "New service key" : "New key";
  return (
    <Card
      title={title}
      aria-label={title}
      side={<Button caption={caption} class="button small" onClick={() => setMaking(true)} />}
    >
      {made !== null && (
        <FreshKey title={`The key “${made.name}”.`} apiKey={made.api_key} label={`Copy the key ${made.name}`} />
      )}
      {keys.length === 0 ? (
        <Empty icon="key" title="No keys yet">
          {children}
        </Empty>
      ) : (
        <Table caption={title} columns={["Name", "Last used", ...figures("Today", "This month"), buttonColumn()]}>
          {keys.map((key) => (
            <KeyRow key={key.id} shown={key} team={team} isService={service} onRevoked={onChanged} />
          ))}
        </Table>
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

type KeyRowProps = Readonly<{ shown: AccountKey; team: Team; isService: boolean; onRevoked: () => void }>;

const KeyRow = ({ shown: key, team, isService: service, onRevoked }: KeyRowProps): VNode => (
  <tr>
    <td class="break">
      {key.name} {key.ending !== null && <code class="quiet">…{key.ending}</code>}
    </td>
    <td class="nowrap quiet">{key.last_used_at === null ? "never used" : <Time at={key.last_used_at} />}</td>
    <td class="number nowrap" data-name="Today">
      {usedOf(key.used_day, key.limit_day)}
    </td>
    <td class="number nowrap" data-name="Month">
      {usedOf(key.used_month, key.limit_month)}
    </td>
    <td class="nowrap">
      <AskButton
        caption="Revoke"
        label={`Revoke ${key.name}`}
        class="button small"
        title="Revoke the key?"
        confirm="Revoke key"
        onConfirm={async () => {
          await post(`/teams/${team.id}/revoke`, { key: key.id, service });
          onRevoked();
        }}
      >
        <p>
          <strong>{key.name}</strong> is void at once and for good.
        </p>
      </AskButton>
    </td>
  </tr>
);

const usedOf = (used: number | null, limit: number | null): string =>
  limit === null ? count(used ?? 0) : `${count(used ?? 0)} of ${count(limit)}`;

/** Null: no limit. */
type Limits = Readonly<{ limit_day: number | null; limit_month: number | null }>;

const useLimits = (of: Limits) => {
  const [limits, setLimits] = useState(of);
  const field = (name: keyof Limits, label: string): VNode => (
    <NumberField
      label={label}
      hint="Balance tokens; empty: no limit"
      min={1}
      step={1}
      value={limits[name]}
      onValue={(value) => setLimits({ ...limits, [name]: Number.isNaN(value) ? null : value })}
    />
  );
  const fields = (
    <div class="grid-2">
      {field("limit_day", "Most of a day")}
      {field("limit_month", "Most of a month")}
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
    <FormDialog title={title} submit="Make the key" onSubmit={() => onName(name, given(limits))} onClose={onClose}>
      <TextField label="Name" value={name} onValue={setName} maxLength={keyNameMaxLength} required autofocus />
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
    <Card title="Members" side={<Button caption="Invite" class="button small" onClick={() => setInviting(true)} />}>
      {members.length === 0 ? (
        <Empty icon="accounts" title="Nobody is in the team yet">
          Invite people by links, each with what they may use.
        </Empty>
      ) : (
        <Table caption="Members" columns={["E-mail", ...figures("Today", "This month"), buttonColumn()]}>
          {members.map((member) => (
            <MemberRow
              key={member.id}
              team={team}
              member={member}
              onChange={setLimiting}
              onRemoved={onChanged}
              leadsToSheets={leadsToSheets}
            />
          ))}
        </Table>
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

type MemberRowProps = Readonly<{
  team: Team;
  member: Member;
  onChange: (member: Member) => void;
  onRemoved: () => void;
  leadsToSheets: boolean;
}>;

const MemberRow = ({ team, member, onChange, onRemoved, leadsToSheets }: MemberRowProps): VNode => (
  <tr>
    <td class="break">
      {leadsToSheets ? <AccountLink name={member.email} /> : member.email}{" "}
      {member.role === "admin" && <span class="badge accent">Admin</span>}
    </td>
    <td class="number nowrap" data-name="Today">
      {usedOf(member.used_day, member.limit_day)}
    </td>
    <td class="number nowrap" data-name="Month">
      {usedOf(member.used_month, member.limit_month)}
    </td>
    <td class="nowrap sentence">
      <Button
        caption="Change"
        class="button small"
        aria-label={`Change ${member.email}`}
        onClick={() => onChange(member)}
      />{" "}
      <AskButton
        caption="Remove"
        label={`Remove ${member.email}`}
        class="button small"
        title="Remove from the team?"
        confirm="Remove"
        onConfirm={async () => {
          await post(`/teams/${team.id}/remove`, { account: member.id });
          toast(`${member.email} is not in the team anymore.`);
          onRemoved();
        }}
      >
        <p>
          The keys of <strong>{member.email}</strong> in the team are void at once. Replies in progress finish.
        </p>
      </AskButton>
    </td>
  </tr>
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
    <FormDialog title={member.email} submit="Save" onSubmit={change} onClose={onClose}>
      {fields}
      <label class="check">
        <input type="checkbox" checked={isAdmin} onChange={(event) => setAdmin(event.currentTarget.checked)} />
        Admin: invites, limits and removes members
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
        One person joins {team.name} by this link, until {fullMoment(made.expires_at)}.
      </FreshInvitation>
    );
  }
  const invite = async (): Promise<void> => {
    setMade(await post(`/teams/${team.id}/invite`, { ...given(limits), ...(email === "" ? {} : { email }) }));
  };
  return (
    <FormDialog title={`Invite into ${team.name}`} submit="Make the link" onSubmit={invite} onClose={onClose}>
      <EmailField
        value={email}
        onValue={(value) => setEmail(value.trim())}
        hint="Leave empty to let whoever opens the link join"
        isOptional
        hasFocus
      />
      {fields}
    </FormDialog>
  );
}
