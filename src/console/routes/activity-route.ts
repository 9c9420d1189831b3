// Activity over time, for operators: charts, the most expensive accounts and today's refusals.
import { namesOf } from "../../account/people/account-names.ts";
import { keyNameOf } from "../../account/people/key-names.ts";
import { costUsd } from "../../account/money/price.ts";
import { dayOf } from "../../account/money/quota.ts";
import {
  type ActivityFigures,
  activityRanges,
  type ActivitySeries,
  type ActivitySplit,
  startOf,
} from "../../core/activity.ts";
import { dayMs } from "../../core/units.ts";
import { type RefusalName, refusals } from "../../core/refusals.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { type Route, route } from "./route.ts";

const topAccountsMax = 10;
/** How long charts wait for what only the usage index knows. */
const usagePatienceMs = 300;

type Parts = Pick<ConsoleParts, "activity" | "usage" | "office" | "clock">;

export function activityRoute({ activity, usage, office, clock }: Parts): Route {
  return route("GET /operator/activity", async ({ query }) => {
    const today = dayOf(clock.wall());
    const began = (await activity.began(query.range)) ?? Number.POSITIVE_INFINITY;
    const first = startOf(query.range, clock.wall());
    const { stepMs } = activityRanges[query.range];
    // The journal has what happened before the counts began.
    const until = Math.min(Math.ceil(began / stepMs) * stepMs, clock.wall());
    const earlier = began <= first ? [] : await soon(usage.history(first, until, stepMs, query.by));
    const { from, all, series } = await activity.read(query.range, query.by, earlier ?? []);
    const reasons = await activity.reasons(today * dayMs);
    const top = await soon(usage.topAccounts(dayOf(from), topAccountsMax));
    const labels = await labelsOf(
      query.by,
      series.map(({ name }) => name),
    );
    const named = (top ?? []).map(({ account }) => account);
    const emailOf = await namesOf(office, named);
    return {
      from: timeOf(from),
      step_ms: activityRanges[query.range].stepMs,
      all: seriesOf("all", all),
      series: series.map(({ name: _, ...each }, at) => seriesOf(labels[at]!, each)),
      refusals_today: reasons.map(({ reason, requests }) => ({ reason, requests, status: statusOf(reason) })),
      is_complete: earlier !== null && top !== null,
      top_accounts: (top ?? []).map(({ account, requests, input, output, billedTokens }) => ({
        id: account,
        email: emailOf(account),
        requests,
        input,
        output,
        billed_tokens: billedTokens,
        cost_usd: costUsd(billedTokens),
      })),
    };
  });

  /** Revoked keys have names, too. */
  async function keyName(account: number, key: number): Promise<string> {
    const names = await office.read(({ accountKeys }) => accountKeys.namesOf(account));
    return keyNameOf(key, names.find(({ id }) => id === key)?.name ?? null);
  }

  async function labelsOf(split: ActivitySplit, names: readonly (string | null)[]): Promise<readonly string[]> {
    const isOfAccounts = split === "key" || split === "account";
    const ids = isOfAccounts ? names.flatMap((name) => (name ? [Number(name.split(" ")[0])] : [])) : [];
    const emailOf = await namesOf(office, ids);
    return Promise.all(names.map((name) => labelOf(split, name, emailOf)));
  }

  async function labelOf(
    split: ActivitySplit,
    name: string | null,
    emailOf: (account: number) => string,
  ): Promise<string> {
    if (name === null) return "others";
    if (name === "") return `no ${split}`;
    const [account = 0, key = 0] = name.split(" ").map(Number);
    if (split === "key") return `${emailOf(account)}, ${await keyName(account, key)}`;
    return split === "account" ? emailOf(account) : name;
  }
}

/** The usage index is built on first use, 5 s for a million replies; charts do not wait. Null: not ready yet. */
async function soon<Value>(value: Promise<Value>): Promise<Value | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), usagePatienceMs);
  value.catch(() => {}); // reported to the race below, if that still waits
  try {
    return await Promise.race([value, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** An older version may have had other reasons; 0 for those. */
const statusOf = (reason: string): number =>
  Object.hasOwn(refusals, reason) ? refusals[reason as RefusalName].status : 0;

const seriesOf = (label: string, { steps, total }: ActivitySeries) => ({
  label,
  steps: figuresOf(steps),
  total: figuresOf(total),
});

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
