// A verb of a gateway: its name, its input, who may ask for it, what it does, its line in the audit log and its output. The
// command line, the control socket and the console are made from these values.
import type { AuditAction } from "../core/audit-actions.ts";
import { type Static, type TObject, type TProperties, Type } from "@sinclair/typebox";
import { auditDetailMaxLength, byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import type { Unit } from "../account/office.ts";
import {
  type AccountRecord,
  type AuditEntry,
  type SessionRecord,
  type TokenScope,
  tokenScopes,
} from "../account/records.ts";
import { assert } from "../core/assert.ts";
import { CommandError } from "../core/expected-error.ts";
import { firstSchemaErrorOf, type SchemaError } from "../core/schema-errors.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId, Ms } from "../core/types.ts";
import { accountEmail, teamName } from "./fields.ts";
import type { Fleet, Progress, Work } from "./work.ts";

export type Actor =
  /** A user of this machine: access to the data folder allows everything there. */
  | Readonly<{ kind: "shell"; user: string }>
  /** A console session: an operator's, or an owner's for the own account. */
  | Readonly<{ kind: "operator" | "account"; account: AccountRecord; session: SessionRecord; address: string }>
  /** `address`: of the program that sends it; null where it is unknown. */
  | Readonly<{ kind: "token"; name: string; scope: TokenScope; address: string | null }>;

export const operatorsApiPath = "/api/v1";

/** The command line prints these itself, or they are files on the server's disk. */
const ofShell: ReadonlySet<string> = new Set(["accounts export", "end-users export", "backup"]);

export const isForApi = ({ name, scope }: Pick<Verb, "name" | "scope">): boolean =>
  scope !== null && !ofShell.has(name);

/** The token's scope does not cover what it asks for. */
export class ScopeTooSmall extends CommandError {}

/** An operator may do everything, so making or changing one takes the scope `all`. */
export function checkMayTouchOperators(actor: Actor): void {
  if (actor.kind !== "token" || actor.scope === "all") return;
  throw new ScopeTooSmall(`accounts of operators need a token of the scope all; this one has ${actor.scope}`);
}

/** `needed` null: only the shell may ask. */
export const allows = (scope: TokenScope, needed: TokenScope | null): boolean =>
  needed !== null && tokenScopes.indexOf(needed) <= tokenScopes.indexOf(scope);

export type Asked<Input> = Readonly<{ actor: Actor; input: Input; progress: Progress }>;

export interface Verb<Input = unknown, Result = unknown> {
  readonly name: string;
  /** One line that says what it does, as an imperative. */
  readonly summary: string;
  /** More, for its own page of help. */
  readonly details?: string;
  readonly input: TObject;
  /** Fields that a command line takes as words, in this order; the others are flags. */
  readonly words: readonly string[];
  /** Null: only the shell may ask for it. */
  readonly scope: TokenScope | null;
  /** Owners may ask for it, for their own accounts. */
  readonly owner?: true;
  readonly makesFolder?: true;
  readonly needsServer?: true;
  /** What is wrong with the input beyond its schema, or null. */
  problem?(input: Input): SchemaError | null;
  /** What is lost for good: the command line asks for --yes. */
  warning?(input: Input): string;
  /** Does it, with its audit line. Rejects with what is wrong. */
  run(work: Work, asked: Asked<Input>): Promise<Result>;
  /** What `--json` prints; absent: the result. */
  json?(result: Result): unknown;
  print(result: Result, input: Input): string;
}

/** What is wrong with an input, at whatever door it comes in; null: nothing. */
export const problemWith = <Input>(verb: Verb<Input>, input: Input): SchemaError | null =>
  firstSchemaErrorOf(verb.input, input) ?? verb.problem?.(input) ?? null;

/** How a verb is done. What changes the books is one unit of the office, with the audit line. */
type Way<Given, Result> =
  | Readonly<{ read(unit: Unit, given: Given): Promise<Result> }>
  | Readonly<{ change(unit: Unit, given: Given, work: Work): Promise<Result> }>
  | Readonly<{
      /** Slow work before the unit, such as hashing a password. */
      prepare(work: Work, given: Given): Promise<(unit: Unit) => Promise<Result>>;
      /** Once that is committed. */
      finish?(work: Work, given: Given, result: Result): Promise<void>;
    }>
  /** What is not in the books; the audit line comes after it. */
  | Readonly<{ run(work: Work, given: Given): Promise<Result> }>;

type Spec<Fields, Input, Given, Result> = Words<Fields, Input, Given, Result> & Way<Given, Result>;
type Words<Fields, Input, Given, Result> = Omit<Verb<Input, NoInfer<Result>>, "input" | "words" | "run"> &
  Readonly<{
    /** Absent: empty, or the e-mail of the account. */
    fields?: Fields;
    words?: readonly (keyof Input & string)[];
    /** Absent: it changes nothing. */
    audit?: Readonly<{
      action: AuditAction;
      /** A sentence without secrets; null: nothing changed, and there is no line. Absent: the action says all. */
      detail?(given: Given, result: NoInfer<Result>, work: Work): string | null;
      /** Absent: the account that the verb is about, or the server. */
      subject?(result: NoInfer<Result>): AccountId;
      /** Also log owners who are not operators. */
      ofOwners?: true;
      /** The work stays done if the line cannot be written. */
      isOptional?: true;
    }>;
    /** Why it was not done; null: it was. */
    refusal?(result: NoInfer<Result>): string | null;
  }>;

type Of<Fields extends TProperties> = Static<TObject<Fields>>;

export function verb<Result, Fields extends TProperties = {}>(
  spec: Spec<Fields, Of<Fields>, Asked<Of<Fields>>, Result>,
): Verb<Of<Fields>, Result> {
  return { ...published(spec), run: (work, asked) => perform(work, spec, asked, asked, () => theServer) };
}

/** Needs a running server. */
export function fleetVerb<Result, Fields extends TProperties = {}>({
  run,
  ...spec
}: FleetSpec<Fields, Of<Fields>, Result>): Verb<Of<Fields>, Result> {
  const onFleet: Spec<Fields, Of<Fields>, Asked<Of<Fields>>, Result> = {
    ...spec,
    async run({ fleet }, asked) {
      if (fleet === null) throw new CommandError("no server runs here");
      return run(fleet, asked);
    },
  };
  return { ...verb(onFleet), needsServer: true };
}

type FleetSpec<Fields, Input, Result> = Words<Fields, Input, Asked<Input>, Result> & {
  run(fleet: Fleet, asked: Asked<Input>): Soon<Result>;
};

type Named = Readonly<{ email: string }>;
type OnAccount<Input> = Asked<Input> & Readonly<{ account: AccountRecord }>;

/** About the account that its first word names. */
export function accountVerb<Result, Fields extends TProperties = {}>(
  spec: Spec<Fields, Of<Fields> & Named, OnAccount<Of<Fields> & Named>, Result>,
): Verb<Of<Fields> & Named, Result> {
  const { fields, words = [] } = spec;
  return {
    ...published({ ...spec, fields: { email: accountEmail, ...fields }, words: ["email", ...words] }),
    run(work, asked) {
      const { actor, input } = asked;
      const given = async ({ accounts }: Unit) => {
        const account = await accounts.ofEmail(input.email);
        if (account.team) await checkAdmin(accounts, actor, account);
        else assert(actor.kind !== "account" || actor.account.id === account.id, "owners ask for their own accounts");
        if (account.operator && spec.scope !== "read") checkMayTouchOperators(actor);
        return { ...asked, account };
      };
      return perform(work, spec, asked, given, ({ account }) => account.id);
    },
  };
}

type OfTeam<Input> = Asked<Input> & Readonly<{ team: AccountRecord }>;

/**
 * About the team that its first word names. What owners may ask for of an account, a team's admins may of the team.
 * `ofSelf`: whether a member asks for what members may do themselves.
 */
export function teamVerb<Result, Fields extends TProperties = {}>(
  spec: Spec<Fields, Of<Fields> & InTeam, OfTeam<Of<Fields> & InTeam>, Result> & {
    ofSelf?(input: Of<Fields>, account: AccountRecord): boolean;
  },
): Verb<Of<Fields> & InTeam, Result> {
  const { fields, words = [], ofSelf, ...rest } = spec;
  return {
    ...published({ ...rest, fields: { team: teamName, ...fields }, words: ["team", ...words] }),
    run(work, asked) {
      const { actor, input } = asked;
      const given = async ({ accounts }: Unit) => {
        const team = await accounts.recordOf(input.team);
        if (team?.team !== true) throw new CommandError(`no team is called ${input.team}`);
        const isOwn = actor.kind === "account" && ofSelf?.(input, actor.account) === true;
        if (!isOwn) await checkAdmin(accounts, actor, team);
        return { ...asked, team };
      };
      return perform(work, spec, asked, given, ({ team }) => team.id);
    },
  };
}
type InTeam = Readonly<{ team: string }>;

/** Read in the unit that does what they ask for: who is no admin anymore changes nothing. */
async function checkAdmin(accounts: Unit["accounts"], actor: Actor, team: AccountRecord): Promise<void> {
  if (actor.kind !== "account") return;
  const member = await accounts.member(team.id, actor.account.id);
  if (member?.role !== "admin") throw new CommandError(`${actor.account.email} is no admin of ${team.email}`);
}

function published<Fields extends TProperties, Input, Given, Result>({
  fields,
  audit,
  words = [],
  refusal: _,
  ...rest
}: Words<Fields, Input, Given, Result>) {
  assert(audit === undefined || rest.scope !== "read", `${rest.name} only reads, and has no audit line`);
  return { ...rest, words, input: Type.Object(fields ?? {}, { additionalProperties: false }) };
}

/** `find` looks up the subject in the unit. */
async function perform<Fields, Input, Given extends Asked<Input>, Result>(
  work: Work,
  spec: Spec<Fields, Input, Given, Result>,
  { actor, progress }: Asked<Input>,
  find: Given | ((unit: Unit) => Promise<Given>),
  about: (given: Given) => AccountId,
): Promise<Result> {
  const { office } = work;
  const { name, scope, owner, audit } = spec;
  assert(may(actor, scope, owner === true), `${actor.kind} may ask for ${name}`);
  const isAudited = audit !== undefined && (actor.kind !== "account" || actor.account.operator || audit.ofOwners);
  const noted = (unit: Unit, given: Given, result: Result): Result => {
    if (!isAudited) return result;
    const { action, subject = () => about(given), detail = () => "" } = audit;
    const text = detail(given, result, work);
    if (text !== null) unit.auditLog.append(entryBy(actor, unit.now, action, subject(result), text));
    return result;
  };
  const givenIn = async (unit: Unit): Promise<Given> => (typeof find === "function" ? find(unit) : find);
  if ("read" in spec) return office.read(async (unit) => spec.read(unit, await givenIn(unit)));
  if ("change" in spec) {
    return office.change(async (unit) => {
      const given = await givenIn(unit);
      return noted(unit, given, await spec.change(unit, given, work));
    });
  }
  const given = typeof find === "function" ? await office.read(find) : find;
  if ("prepare" in spec) {
    const change = await spec.prepare(work, given);
    const result = await office.change(async (unit) => noted(unit, given, await change(unit)));
    await spec.finish?.(work, given, result);
    return result;
  }
  const result = await spec.run(work, given);
  if (isAudited) {
    const noting = office.change(async (unit) => noted(unit, given, result));
    await (audit.isOptional ? noting.catch(({ message }: Error) => progress(notNoted(name, message))) : noting);
  }
  const refused = spec.refusal?.(result) ?? null;
  if (refused !== null) throw new CommandError(refused);
  return result;
}

/** For a copy that is made without the books. */
export const notNoted = (name: string, reason: string): string => `the ${name} is not in the audit log: ${reason}`;

function may(actor: Actor, scope: TokenScope | null, isForOwners: boolean): boolean {
  switch (actor.kind) {
    case "shell":
      return true;
    case "token":
      return allows(actor.scope, scope);
    case "operator":
      return scope !== null;
    case "account":
      return isForOwners;
  }
}

export function entryBy(
  actor: Actor,
  at: Ms,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): Omit<AuditEntry, "id"> {
  switch (actor.kind) {
    case "shell":
      return serverEntry(at, byCommandOf(actor.user), action, subject, detail);
    case "token":
      return serverEntry(at, `token ${actor.name} (${actor.address ?? "unknown"})`, action, subject, detail);
    case "operator":
    case "account":
      return {
        at,
        operator: actor.account.id,
        address: actor.address,
        action,
        subject,
        detail: detail.slice(0, auditDetailMaxLength),
      };
  }
}
