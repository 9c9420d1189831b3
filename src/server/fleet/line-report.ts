// The line for the nodes as the console shows it, with the names of accounts and keys.
import { namesOf } from "../../account/people/account-names.ts";
import { keyNameOf } from "../../account/people/key-names.ts";
import type { Office } from "../../account/office.ts";
import type { OperatorLine, WorkShare } from "../../console/api/line.ts";
import { endUserInWords } from "../../core/end-user.ts";
import type { Priority } from "../../core/priority.ts";
import { personPrefix } from "../../core/standing.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import {
  lineView,
  type LineView,
  nodeLines,
  type RunningGroup,
  type WaitingUser,
} from "../../nodes/queue/line-view.ts";
import type { NodePool } from "../../nodes/queue/pool.ts";
import { noneServed, plusServed, type Served } from "../../nodes/queue/served-work.ts";

/** Users of those that wait, groups of what runs, and shares that operators see by name; the others are summed up. */
const usersShownMax = 50;
const groupsShownMax = 50;
const sharesShownMax = 20;

const timeOf = (at: Ms): string => new Date(at).toISOString();

export async function lineReport(
  pool: Pick<NodePool, "seen" | "states">,
  office: Pick<Office, "read">,
  gateway: string | null,
): Promise<OperatorLine> {
  const seen = pool.seen();
  const line = lineView(seen, usersShownMax);
  const states = pool.states();
  const outlooks = nodeLines(seen, 0);
  const running = line.running.slice(0, groupsShownMax);
  const accounts = shared(line.accounts, sharesShownMax);
  const named = [...line.next, ...running].map(({ account }) => account);
  const emailOf = await namesOf(office, [...named, ...accounts.flatMap(({ key }) => key ?? [])]);
  const userOf = await userNames(office, line.next);
  const accountOf = (id: AccountId) => ({ id, email: emailOf(id) });
  const weights = line.accounts.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
  const slots = states.reduce((sum, node) => sum + node.slots, 0);
  return {
    gateway,
    waiting: line.waiting,
    next: line.next.map((user) => ({
      account: accountOf(user.account),
      user: user.weight === 1 ? userOf(user) : `${userOf(user)}, weight ${user.weight}`,
      priority: user.priority,
      models: [...user.models],
      requests: user.requests,
      since: timeOf(user.since),
      position: user.forecast?.position ?? null,
      expected_first_token_ms: user.forecast === null ? null : Math.round(user.forecast.firstTokenMs),
    })),
    nodes: states.map(({ name, health, drainedAt, slots }) => {
      const expected = outlooks.get(name)?.firstTokenMs ?? null;
      const there = line.running.filter(({ node }) => node === name);
      return {
        name,
        health,
        drained: drainedAt !== null,
        slots,
        expected_first_token_ms: expected === null ? null : Math.round(expected),
        running: inClasses(there, "requests"),
        reading: inClasses(there, "reading"),
        cache: cacheOf(line, name),
      };
    }),
    running: running.map(({ account, priority, modelId, node, requests, reading, since }) => {
      return { account: accountOf(account), priority, model: modelId, node, requests, reading, since: timeOf(since) };
    }),
    served: {
      account: accounts.map((row) => {
        const { key, weight = null } = row;
        return share(key === null ? null : emailOf(key), row, {
          weight,
          fair: weight === null ? null : weight / weights,
        });
      }),
      class: line.classes.map((row) => share(row.key, row)),
      model: shared(line.models, sharesShownMax).map((row) => share(row.key, row)),
      node: shared(line.nodes, sharesShownMax).map((row) => {
        const own = states.find(({ name }) => name === row.key);
        return share(row.key, row, { fair: own === undefined || slots === 0 ? null : own.slots / slots });
      }),
    },
  };
}

type Row<Key> = Served & Readonly<{ key: Key | null; weight?: number | null }>;

/** With those beyond the most as one row without a key, whose weight is the sum of theirs. */
function shared<Key>(rows: readonly Row<Key>[], most: number): readonly Row<Key>[] {
  const known = rows.filter(({ key }) => key !== null);
  const rest = [...known.slice(most), ...rows.filter(({ key }) => key === null)];
  if (rest.length === 0) return known;
  const others = noneServed();
  for (const row of rest) plusServed(others, row);
  const weight = rest.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
  return [...known.slice(0, most), { ...others, key: null, weight: weight || null }];
}

type Fair = Readonly<{ weight?: number | null; fair?: number | null }>;

const share = (
  name: string | null,
  { work, requests, waitedMs }: Served,
  { weight = null, fair = null }: Fair = {},
): WorkShare => ({
  name: name ?? "others",
  work: { ...work },
  requests,
  wait_ms: requests === 0 ? 0 : Math.round(waitedMs / requests),
  weight,
  fair,
});

function inClasses(groups: readonly RunningGroup[], of: "requests" | "reading"): Record<Priority, number> {
  const sums = { interactive: 0, standard: 0, bulk: 0 };
  for (const group of groups) sums[group.priority] += group[of];
  return sums;
}

function cacheOf({ caches }: LineView, node: string): OperatorLine["nodes"][number]["cache"] {
  const hour = caches.get(node);
  if (hour === undefined) return null;
  const { inputTokens, expectedTokens, reportedTokens } = hour;
  return { input: inputTokens, expected: Math.round(expectedTokens), reported: reportedTokens };
}

/** What to call a user of an account: see Standing. */
async function userNames(
  office: Pick<Office, "read">,
  users: readonly WaitingUser[],
): Promise<(user: WaitingUser) => string> {
  const ids = [...new Set(users.flatMap(({ account, member }) => (member.startsWith(keyMember) ? [account] : [])))];
  const keys = await office.read(({ accountKeys }) => Promise.all(ids.map((id) => accountKeys.namesOf(id))));
  const keysOf = new Map(ids.map((id, at) => [id, keys[at]!]));
  const people = users.flatMap(({ member }) => (member.startsWith(personPrefix) ? personIn(member) : []));
  const emailOf = await namesOf(office, people);
  return ({ account, member }) => {
    if (member.startsWith(personPrefix)) return emailOf(personIn(member));
    if (!member.startsWith(keyMember)) return endUserInWords(member.slice("user ".length));
    const key = Number(member.slice(keyMember.length));
    return keyNameOf(key, keysOf.get(account)?.find(({ id }) => id === key)?.name ?? null);
  };
}

const keyMember = "key ";
const personIn = (member: string): AccountId => Number(member.slice(personPrefix.length));
