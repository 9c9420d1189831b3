// What was used over time, by what one chooses: sums from the journal, and waits and failures as they were counted.
import { namesOf } from "../../account/people/account-names.ts";
import { keyNameOf } from "../../account/people/key-names.ts";
import { everyAccount, noUsage, plus, type UsageStep, type UsageSum } from "../../account/usage-queries.ts";
import {
  type Activity,
  type ActivityFigures,
  activitySplits,
  type Span,
  spanBetween,
  spanOf,
  stepsOf,
} from "../../core/activity.ts";
import type { RangeName } from "../../core/over-time.ts";
import { dayMs } from "../../core/units.ts";
import { type RefusalName, refusals } from "../../core/refusals.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { reportSubject } from "../../office/verbs/report.ts";
import type { OverTime, OverTimeQuery } from "../api/over-time.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { explained } from "./report-routes.ts";
import { fail, type Failure, isFailure, type Route, route } from "./route.ts";
import { filterOf, sumOf } from "./usage-routes.ts";

/** With the one that sums up the others. */
const seriesMax = 6;
const longestMs = 3_660 * dayMs;
const allAccounts = "*";

type Parts = Pick<ConsoleParts, "activity" | "usage" | "office" | "clock">;
type By = NonNullable<OverTimeQuery["by"]>;
type Asked = Readonly<{ account: AccountId; by: By; node: string | null; filter: ReturnType<typeof ownFilter> }>;

export function overTimeRoute(parts: Parts): Route {
  const { office, clock } = parts;
  return route("GET /over-time", async ({ visitor, query }) => {
    const { account: wanted = "", by = "model", range, node = null, text: _, ...rest } = { text: "", ...query };
    const filter = filterOf(rest);
    if (isFailure(filter)) return filter;
    const span = spanIn(filter, range ?? "30d", clock.wall());
    if (isFailure(span)) return span;
    const { operator } = visitor.account;
    const subject = await explained(async () => {
      if (operator && wanted === allAccounts) return { id: everyAccount };
      return wanted === "" ? visitor.account : office.read(async (unit) => {
        return (await reportSubject(unit, operator ? null : visitor.account, wanted))!;
      }); // prettier-ignore
    });
    if (isFailure(subject)) return subject;
    const asked = { account: subject.id, by, node, filter: ownFilter(filter) };
    const isFiltered = Object.values(asked.filter).some((value) => value !== null);
    if (node !== null && (subject.id !== everyAccount || by !== "node" || isFiltered))
      return fail("invalid_request", "node needs account * and by node, and no other filter.");
    if (subject.id === everyAccount && by === "end_user")
      return fail("invalid_request", "by end_user needs an account.");
    const answer = await shown(parts, asked, span);
    if (filter.from !== null || filter.to !== null) return { ...answer, range: null };
    if (range !== undefined) return { ...answer, range };
    // Who began today sees hours, and not a month of nothing.
    const first =
      answer.series[0]?.requests.findIndex((_, at) => answer.series.some(({ requests }) => requests[at]! > 0)) ?? 0;
    const closer = first === 29 ? "24h" : first > 22 ? "7d" : null;
    return closer === null
      ? { ...answer, range: "30d" as const }
      : { ...(await shown(parts, asked, spanOf(closer, clock.wall()))), range: closer };
  });
}

async function shown(parts: Parts, asked: Asked, span: Span): Promise<Omit<OverTime, "range">> {
  const { account, by, node, filter } = asked;
  const isOfAll = account === everyAccount;
  const of = { account, filter, by: by === "node" ? ("model" as const) : by };
  const ms = span.until - span.from;
  const before = { from: span.from - ms, until: span.from };
  const [found, past, course] = await Promise.all([
    node === null ? parts.usage.overTime({ ...of, ...span }) : ofNode(parts, node, span),
    node === null
      ? parts.usage.overTime({ ...of, ...before, stepMs: ms })
      : ofNode(parts, node, { ...before, stepMs: span.stepMs }),
    courseOf(parts, asked, span),
  ]);
  // Shorter steps would lack what is left of it.
  if (found.onlyDays) return shown(parts, asked, { ...spanBetween(Math.floor(span.from / dayMs) * dayMs, Math.ceil(span.until / dayMs) * dayMs), stepMs: dayMs }); // prettier-ignore
  const reasons = isOfAll ? await parts.activity.reasons(span.from, span.until) : [];
  const names = new Map<string | null, UsageStep[]>();
  const steps = by === "node" && node === null ? nodeSteps(course?.series, span) : found.steps;
  for (const step of steps) names.set(step.name, [...(names.get(step.name) ?? []), step]);
  const ranked = [...names]
    .map(([name, steps]) => ({ name, steps, sum: steps.reduce(plus, noUsage) }))
    .sort((one, other) => Number(one.name === null) - Number(other.name === null) || more(one.sum, other.sum));
  const many = ranked.length > seriesMax;
  const own = ranked.slice(0, many ? seriesMax - 1 : seriesMax);
  const drawn = many ? [...own, { name: null, steps: ranked.slice(own.length).flatMap(({ steps }) => steps) }] : own;
  const labelOf = await labelsOf(parts, asked, [
    ...ranked.map(({ name }) => name),
    ...(course?.series ?? []).map(({ name }) => name),
  ]);
  const labeled = (name: string | null, steps: readonly UsageStep[]) => ({
    name,
    label: by === "end_user" ? (name === "0" || name === null ? null : (steps[0]?.label ?? null)) : labelOf(name),
  });
  return {
    from: timeOf(span.from),
    until: timeOf(span.until),
    step_ms: span.stepMs,
    total: sumOf(found.steps.reduce(plus, noUsage)),
    before: sumOf(past.steps.reduce(plus, noUsage)),
    parts: ranked.map(({ name, steps, sum }) => ({ ...labeled(name, steps), ...sumOf(sum) })),
    series: drawn.map(({ name, steps }) => ({ ...labeled(name, steps), ...columnsOf(steps, span) })),
    course: course && {
      steps: figuresOf(course.all.steps),
      total: figuresOf(course.all.total),
      series: course.series.map(({ name, steps }) => ({ label: labelOf(name), steps: figuresOf(steps) })),
    },
    reasons: reasons.map(({ reason, requests }) => ({ reason, requests, status: statusOf(reason) })),
  };
}

/** Counts are kept of accounts, models, nodes and keys, and not of what they have in common. */
async function courseOf(
  { activity }: Parts,
  { account, by, node, filter }: Asked,
  span: Span,
): Promise<Activity | null> {
  const { model, key, endpoint, endUser } = filter;
  if (endpoint !== null || endUser !== null) return null;
  if (account !== everyAccount) {
    if (model !== null) return null;
    return key === null
      ? activity.read(span, "account", `${account}`)
      : activity.read(span, "key", `${account} ${key}`);
  }
  if (key !== null) return null;
  if (node !== null) return activity.read(span, "node", node);
  const split = activitySplits.find((split) => split === by) ?? "model";
  return model === null ? activity.read(span, split, null) : activity.read(span, "model", model);
}

/** Revoked keys have names, too. */
async function labelsOf({ office }: Parts, { account, by }: Asked, names: readonly (string | null)[]) {
  const isOfAccounts = by === "account" || (by === "key" && account === everyAccount);
  const known = [...new Set(names.filter((name) => name !== null && name !== ""))] as string[];
  const ids = isOfAccounts ? known.map((name) => Number(name.split(" ")[0])) : [];
  const emailOf = await namesOf(office, ids);
  const owners = by !== "key" ? [] : isOfAccounts ? [...new Set(ids)] : [account];
  const keys = new Map<string, string>();
  for (const owner of owners) {
    const named = await office.read(({ accountKeys }) => accountKeys.namesOf(owner));
    for (const { id, name } of named) keys.set(`${owner} ${id}`, keyNameOf(id, name));
  }
  return (name: string | null): string | null => {
    if (name === null || name === "") return null;
    const [owner, key] = isOfAccounts ? name.split(" ").map(Number) : [account, Number(name)];
    if (by === "account") return emailOf(owner!);
    if (by !== "key") return name;
    const ofKey = keys.get(`${owner} ${key}`) ?? keyNameOf(key!, null);
    return isOfAccounts ? `${emailOf(owner!)}, ${ofKey}` : ofKey;
  };
}

const ownFilter = ({ model, endpoint, key, endUser = null }: Exclude<ReturnType<typeof filterOf>, Failure>) => ({
  model: model || null,
  endpoint: endpoint || null,
  key,
  endUser,
});

function spanIn({ from, to }: Readonly<{ from: Ms | null; to: Ms | null }>, range: RangeName, now: Ms): Span | Failure {
  const usual = spanOf(range, now);
  if (from === null && to === null) return usual;
  const end = to ?? usual.until;
  const begin = from ?? end - (usual.until - usual.from);
  if (begin >= end) return fail("invalid_request", "from must be before to.");
  if (end - begin > longestMs) return fail("invalid_request", "from may be at most ten years before to.");
  return spanBetween(begin, end);
}

/** As the sums have their order. */
const more = (one: UsageSum, other: UsageSum): number =>
  other.billedTokens - one.billedTokens ||
  other.input + other.output - one.input - one.output ||
  other.requests - one.requests;

function columnsOf(steps: readonly UsageStep[], span: Span) {
  const column = (of: (step: UsageStep) => number): number[] => {
    const values = Array.from({ length: stepsOf(span) }, () => 0);
    for (const step of steps) values[(step.at - span.from) / span.stepMs]! += of(step);
    return values;
  };
  return {
    requests: column(({ requests }) => requests),
    input: column(({ input }) => input),
    output: column(({ output }) => output),
    billed_tokens: column(({ billedTokens }) => billedTokens),
  };
}

async function ofNode({ activity }: Parts, name: string, span: Span) {
  const { all } = await activity.read(span, "node", name);
  return { steps: nodeSteps([{ ...all, name }], span), onlyDays: false };
}

/** Sums by day do not know of nodes; what was counted does. */
const nodeSteps = (series: Activity["series"] = [], { from, stepMs }: Span): UsageStep[] =>
  series.flatMap(({ name, steps: { answered, input, cachedInput, output } }) =>
    answered.flatMap((requests, at) => {
      const sums = { input: input[at]!, cachedInput: cachedInput[at]!, output: output[at]!, reasoning: 0 };
      return requests + sums.input === 0
        ? []
        : [{ at: from + at * stepMs, name, requests, ...sums, billedTokens: 0 } satisfies UsageStep];
    }),
  );

/** An older version may have had other reasons; 0 for those. */
const statusOf = (reason: string): number =>
  Object.hasOwn(refusals, reason) ? refusals[reason as RefusalName].status : 0;

const figuresOf = (figures: ActivityFigures) => ({
  requests: [...figures.requests],
  answered: [...figures.answered],
  refused: [...figures.refused],
  failed: [...figures.failed],
  left: [...figures.left],
  input: [...figures.input],
  cached_input: [...figures.cachedInput],
  output: [...figures.output],
  wait_p50_ms: [...figures.waitP50],
  wait_p95_ms: [...figures.waitP95],
  first_token_p50_ms: [...figures.firstTokenP50],
  first_token_p95_ms: [...figures.firstTokenP95],
});
