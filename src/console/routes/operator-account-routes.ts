// Accounts as operators see and change them.
import { isErased } from "../../account/people/accounts.ts";
import { Teams } from "../../account/people/teams.ts";
import type { AccountRecord } from "../../account/records.ts";
import { dayName, dayOf } from "../../account/money/quota.ts";
import type { AccountLine, AccountsAsked } from "../../account/accounts-page.ts";
import type { AccountSort } from "../../core/account-columns.ts";
import { csvLine } from "../../core/csv.ts";
import type { AccountId } from "../../core/types.ts";
import type { Verb } from "../../office/verb.ts";
import {
  address,
  changePassword,
  costCenter,
  create,
  credit,
  disable,
  enable,
  erase,
  exportAccount,
  plan,
  sessions,
  show as showAccount,
  signOut,
} from "../../office/verbs/accounts.ts";
import * as keys from "../../office/verbs/keys.ts";
import { exportReply } from "../account-data.ts";
import { csvReply } from "../reply.ts";
import { AccountRow, type AccountsFilter, type OperatorAccount } from "../api/accounts.ts";
import { ask } from "../ask.ts";
import type { Live } from "../live.ts";
import { numbersOf, timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { withoutPasswords } from "./entering.ts";
import { keyOf, listedKeys, orRefused } from "./key-routes.ts";
import { limitOf } from "./paging.ts";
import { type Call, type CallOf, done, fail, type Failure, isFailure, type Route, route } from "./route.ts";
import { accountUse } from "./usage-routes.ts";

const exportPageRows = 10_000;

const noAccount = fail("not_found", "There is no such account.");

export function operatorAccountRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { office } = parts;
  const recordOf = (id: AccountId) => office.read(({ accounts }) => accounts.record(id));
  const show = async (id: AccountId): Promise<OperatorAccount | Failure> => {
    const record = await recordOf(id);
    return record === null ? noAccount : operatorAccount(parts, live, record);
  };
  const asked: AskedOf = async (call, verb, input, reply) => {
    const record = await recordOf(call.id);
    if (record === null) return noAccount;
    return reply(await ask(parts, "operator", call, verb, { ...input, email: record.email }));
  };
  const changed = <Input>(call: OperatorCall, verb: AccountVerb<Input, unknown>, input: Input) =>
    asked(call, verb, input, () => show(call.id));

  return [
    route("GET /operator/accounts", async ({ query: { page = "1", limit, ...filter } }) => {
      const asked = askedOf(parts, filter, Math.max(1, Number(page)), limitOf(limit));
      const { rows, ...found } = await parts.usage.accounts(asked);
      return { accounts: rows.map(rowOf), ...found };
    }),

    route("GET /operator/accounts.csv", ({ query }) => {
      const name = `accounts-${dayName(dayOf(parts.clock.wall()))}`;
      return csvReply(csvOf(parts, query), name);
    }),

    route("POST /operator/accounts", (call) => ask(parts, "operator", call, create, call.body)),

    route("GET /operator/account", async ({ query }) => {
      const record = await office.read(({ accounts }) => accounts.recordOf(query.name));
      return record === null ? noAccount : operatorAccount(parts, live, record);
    }),

    route("GET /operator/accounts/:id", ({ id }) => show(id)),

    ...sheetRoutes(parts, asked),

    route("POST /operator/accounts/:id/plan", (call) => changed(call, plan, call.body)),

    route("POST /operator/accounts/:id/address", (call) => changed(call, address, call.body)),

    route("POST /operator/accounts/:id/credit", (call) => changed(call, credit, call.body)),

    route("POST /operator/accounts/:id/state", (call) => {
      const { disabled } = call.body;
      if (disabled && isOwn(call)) return fail("conflict", "Operators cannot disable their own account.");
      return changed(call, disabled ? disable : enable, {});
    }),

    route("POST /operator/accounts/:id/password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      const shown = await changed(call, changePassword, call.body);
      return isFailure(shown) ? shown : done;
    }),

    route("POST /operator/accounts/:id/export", async (call) => {
      const record = await recordOf(call.id);
      return record === null ? noAccount : exportFor(parts, call, record);
    }),

    route("POST /operator/accounts/:id/delete", async (call) => {
      const record = await recordOf(call.id);
      if (record === null) return noAccount;
      return (await deletionRefused(parts, call, record)) ?? changed(call, erase, {});
    }),

    route("POST /operator/accounts/:id/cost-center", (call) => changed(call, costCenter, call.body)),
  ];
}

type AccountVerb<Input, Result> = Verb<Input & Readonly<{ email: string }>, Result>;

/** What a verb says of the account that the address names. */
type AskedOf = <Input, Result, Reply>(
  call: OperatorCall,
  verb: AccountVerb<Input, Result>,
  input: Input,
  reply: (result: Result) => Reply | Promise<Reply>,
) => Promise<Reply | Failure>;

/** The account's use, keys and sessions. */
function sheetRoutes(parts: ConsoleParts, asked: AskedOf): Route[] {
  return [
    route("GET /operator/accounts/:id/use", (call) => asked(call, showAccount, {}, ({ id }) => accountUse(parts, id))),

    route("GET /operator/accounts/:id/keys", (call) =>
      asked(call, keys.list, {}, (views) => listedKeys(parts, call.id, views)),
    ),

    route("POST /operator/accounts/:id/keys", (call) =>
      orRefused(() => asked(call, keys.create, call.body, ({ api_key, ...key }) => ({ ...keyOf(key), api_key }))),
    ),

    route("POST /operator/accounts/:id/keys/rotate", (call) => {
      const created_at = timeOf(parts.clock.wall());
      return asked(call, keys.rotate, {}, ({ api_key }) => ({ api_key, created_at }));
    }),

    route("POST /operator/accounts/:id/keys/name", (call) => {
      const { key: id, name } = call.body;
      return orRefused(() => asked(call, keys.rename, { id, name }, keyOf));
    }),

    route("POST /operator/accounts/:id/keys/limits", (call) => {
      const { key: id, ...wanted } = call.body;
      return orRefused(() => asked(call, keys.limit, { id, ...wanted }, keyOf));
    }),

    route("POST /operator/accounts/:id/keys/revoke", (call) =>
      orRefused(() => asked(call, keys.revoke, { id: call.body.key }, () => done)),
    ),

    route("GET /operator/accounts/:id/sessions", (call) =>
      asked(call, sessions, {}, (open) => {
        const own = call.visitor.session.id;
        return { sessions: open.map((each) => ({ ...each, current: each.id === own })) };
      }),
    ),

    route("POST /operator/accounts/:id/sessions/end", (call) => {
      const { session } = call.body;
      return orRefused(() => asked(call, signOut, session === undefined ? {} : { id: session }, () => done));
    }),
  ];
}

/** In the audit log before the first byte leaves. */
async function exportFor(parts: ConsoleParts, call: OperatorCall, record: AccountRecord): Promise<Response | Failure> {
  const reply = await exportReply(parts.accountData, record, call.visitor.account.id, parts.clock.wall());
  if (isFailure(reply)) return reply;
  try {
    await ask(parts, "operator", call, exportAccount, { email: record.email });
  } catch (thrown) {
    await reply.body?.cancel(); // it is not sent
    throw thrown;
  }
  return reply;
}

/** Null: the account may be deleted. */
async function deletionRefused(
  { office }: ConsoleParts,
  call: CallOf<"POST /operator/accounts/:id/delete">,
  record: AccountRecord,
): Promise<Failure | null> {
  const { email } = record;
  if (isOwn(call)) return fail("conflict", "Operators cannot delete their own account.");
  if (isErased(record)) return fail("conflict", "This account is already deleted.");
  if (call.body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
  const { openReservations: open } = await office.read(({ accounts }) => accounts.numbers(call.id));
  if (open === 0) return null;
  const requests = open === 1 ? "a request that is" : `${open} requests that are`;
  return fail("conflict", `${email} has ${requests} open. Disable it, and delete it when they have ended.`);
}

type OperatorCall = Call<"operator", unknown, unknown>;
const isOwn = ({ id, visitor }: OperatorCall): boolean => id === visitor.account.id;

function askedOf(
  { catalog, clock }: ConsoleParts,
  { search = "", plan, state, team, used, sort = "-month" }: AccountsFilter,
  page: number,
  pageRows: number,
): AccountsAsked {
  const today = dayOf(clock.wall());
  const begin = new Date(clock.wall());
  return {
    text: search,
    plan: plan || null,
    state: state ?? null,
    team: team || null,
    usedLeast: used === undefined ? null : Math.min(1_000_000, Number(used)) * 10,
    allowances: Object.entries(catalog.plans).flatMap(([id, { tokensPerDay, unlimited }]) =>
      unlimited || tokensPerDay === 0 ? [] : [[id, tokensPerDay] as const],
    ),
    today,
    monthStart: dayOf(Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth())),
    sort: sort.replace("-", "") as AccountSort,
    isDown: sort.startsWith("-"),
    page,
    pageRows,
  };
}

const rowOf = ({ costCenter, activeAt, todayTokens, monthTokens, ...line }: AccountLine): AccountRow => ({
  ...line,
  cost_center: costCenter,
  active_at: activeAt === null ? null : timeOf(activeAt),
  today_tokens: todayTokens,
  month_tokens: monthTokens,
});

/** Reads page by page as the browser takes it. */
function csvOf(parts: ConsoleParts, filter: AccountsFilter): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const columns = Object.keys(AccountRow.properties) as (keyof AccountRow)[];
  let next = 1;
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(csvLine(columns))),
    async pull(controller) {
      const { rows, total } = await parts.usage.accounts(askedOf(parts, filter, next, exportPageRows));
      const lines = rows.map((row) => csvLine(columns.map((column) => rowOf(row)[column])));
      if (lines.length > 0) controller.enqueue(encoder.encode(lines.join("")));
      if (next * exportPageRows >= total) controller.close();
      next += 1;
    },
  });
}

async function operatorAccount(parts: ConsoleParts, live: Live, record: AccountRecord): Promise<OperatorAccount> {
  const { id, email, plan, credit, operator, team, disabledAt, createdAt, keyCreatedAt, passwordHash } = record;
  return {
    id,
    email,
    plan,
    credit,
    operator,
    team,
    disabled: disabledAt !== null,
    created_at: timeOf(createdAt),
    key_created_at: timeOf(keyCreatedAt),
    has_password: passwordHash !== null,
    cost_center: record.costCenter,
    teams: await parts.office.read(async (unit) =>
      (await new Teams(unit.teams).of(id)).map(([team, { role }]) => ({ id: team.id, name: team.email, role })),
    ),
    mail_address: record.mailAddress,
    providers: (await parts.office.read(({ identities }) => identities.of(id))).map(({ issuer }) => issuer),
    numbers: await numbersOf(parts, id, live.requests.openRequestsOf(id)),
  };
}
