// The teams of the signed-in account: what members see, and what admins and operators change. What they may is the verbs' to
// say; here is only who is told of a team.
import { Teams } from "../../account/people/teams.ts";
import type { Unit } from "../../account/office.ts";
import type { AccountRecord } from "../../account/records.ts";
import type { AccountId } from "../../core/types.ts";
import type { Verb } from "../../office/verb.ts";
import { create, revoke } from "../../office/verbs/keys.ts";
import { invite, membersRemove, membersUpdate, withdraw } from "../../office/verbs/teams.ts";
import type { Invitation } from "../api/teams.ts";
import { ask } from "../ask.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { noteOwn } from "./entering.ts";
import { keyOf, orRefused } from "./key-routes.ts";
import { type Call, done, fail, type Failure, isFailure, type Route, route } from "./route.ts";

const invitationsShownMax = 200;

type TeamCall = Call<"account", unknown, unknown>;

export function teamRoutes(parts: ConsoleParts): Route[] {
  const { office } = parts;
  return [
    route("GET /teams", async ({ visitor: { account } }) => {
      return office.read(async (unit) => {
        const teams = new Teams(unit.teams);
        const own = await teams.of(account.id);
        const roles = new Map(own.map(([{ id }, { role }]) => [id, role]));
        const shown = account.operator ? await teams.all() : own.map(([team]) => team);
        return {
          teams: shown.map(({ id, email: name, plan, disabledAt }) => {
            return { id, name, role: roles.get(id) ?? null, plan, disabled: disabledAt !== null };
          }),
        };
      });
    }),

    route("POST /teams/join", (call) =>
      office.change(async (unit) => {
        const { account } = call.visitor;
        const link = await unit.links.find(call.body.token);
        if (link.team === null) return fail("conflict", "This invitation is for who has no account yet.");
        if (link.email !== null && link.email.toLowerCase() !== account.email.toLowerCase()) {
          return fail("forbidden", "This invitation is for another address.");
        }
        await unit.links.use(link.id, account.id);
        await new Teams(unit.teams).join(link, account.id);
        noteOwn(unit, call, "team.member", account.id, `of account ${link.team}, by invitation ${link.id}`);
        return done;
      }),
    ),

    route("GET /teams/:id", async (call) => {
      const { account } = call.visitor;
      return office.read(async (unit) => {
        const team = await teamFor(unit, call);
        if (isFailure(team)) return team;
        const teams = new Teams(unit.teams);
        const { members, allowance, ...view } = await teams.show(team);
        const own = members.find(({ id }) => id === account.id) ?? null;
        const { accountKeys } = unit;
        const keys = own === null ? [] : await accountKeys.list(team.id, account.id);
        const manages = account.operator || own?.role === "admin";
        const services = manages
          ? (await accountKeys.list(team.id)).filter(({ id, member }) => id > 1 && member === null)
          : [];
        return {
          id: team.id,
          name: view.name,
          plan: view.plan,
          disabled: view.disabled,
          allowance: { granted: allowance.granted, left: allowance.left },
          credit: view.credit,
          spendable: view.spendable,
          own: own === null ? null : { member: own, keys: keys.map(keyOf) },
          managed: manages
            ? { members: [...members], keys: services.map(keyOf), invitations: await invitationsInto(unit, team.id) }
            : null,
        };
      });
    }),

    ...changeRoutes(parts),
  ];
}

function changeRoutes(parts: ConsoleParts): Route[] {
  const { office } = parts;
  const asked = <Input, Result>(call: TeamCall, verb: Verb<Input, Result>, input: Input) =>
    ask(parts, call.visitor.account.operator ? "operator" : "account", call, verb, input);
  /**
   * Nothing is done where the account is not told of the team. `member`: only members have addresses here, so that nobody
   * learns who else there is.
   */
  const inTeam = <Reply>(call: TeamCall, work: (team: string, email: string) => Promise<Reply>, member?: AccountId) =>
    orRefused(async () => {
      const found = await office.read(async (unit) => {
        const team = await teamFor(unit, call);
        if (isFailure(team) || member === undefined) return [team, ""] as const;
        const isIn = (await unit.accounts.member(team.id, member)) !== null;
        return [isIn ? team : noMember, (await unit.accounts.record(member))?.email ?? ""] as const;
      });
      const [team, email] = found;
      return isFailure(team) ? team : work(team.email, email);
    });
  const holderOf = ({ visitor }: TeamCall, team: string, service: boolean) =>
    service ? { email: team } : { email: visitor.account.email, team };

  return [
    route("POST /teams/:id/invite", (call) =>
      inTeam(call, async (team) => {
        const { link, expires_at, mailed } = await asked(call, invite, { ...call.body, team });
        const { pathname, hash } = new URL(link);
        return { path: pathname + hash, expires_at, mailed };
      }),
    ),

    route("POST /teams/:id/withdraw", (call) =>
      inTeam(call, (team) => asked(call, withdraw, { team, id: call.body.invitation }).then(() => done)),
    ),

    route("POST /teams/:id/change", (call) => {
      const { account, ...terms } = call.body;
      const change = async (team: string, email: string) => {
        await asked(call, membersUpdate, { team, email, ...terms });
        return done;
      };
      return inTeam(call, change, account);
    }),

    route("POST /teams/:id/remove", (call) => {
      const remove = async (team: string, email: string) => {
        await asked(call, membersRemove, { team, email });
        return done;
      };
      return inTeam(call, remove, call.body.account);
    }),

    route("POST /teams/:id/keys", (call) =>
      inTeam(call, async (team) => {
        const { service, ...wanted } = call.body;
        const { api_key, ...key } = await asked(call, create, { ...holderOf(call, team, service), ...wanted });
        return { ...keyOf(key), api_key };
      }),
    ),

    route("POST /teams/:id/revoke", (call) =>
      inTeam(call, async (team) => {
        const { service, key } = call.body;
        await asked(call, revoke, { ...holderOf(call, team, service), id: key });
        return done;
      }),
    ),
  ];
}

const invitationsInto = async ({ links }: Unit, team: AccountId): Promise<Invitation[]> =>
  (await links.invitations(invitationsShownMax, team)).map(
    ({ id, email, tokensPerDay: limit_day, tokensPerMonth: limit_month, expiresAt }) => {
      return { id, email, limit_day, limit_month, expires_at: timeOf(expiresAt) };
    },
  );

/** Members and operators are told of it. */
async function teamFor({ accounts }: Unit, { id, visitor: { account } }: TeamCall): Promise<AccountRecord | Failure> {
  const team = await accounts.record(id);
  const isTold = team?.team === true && (account.operator || (await accounts.member(id, account.id)) !== null);
  return isTold ? team : fail("not_found", "There is no such team.");
}

const noMember = fail("not_found", "This person is not in the team.");
