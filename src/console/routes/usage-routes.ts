// The usage page: replies by filter, sums by day and model, and all of it as CSV.
import { keyNameOf } from "../../account/people/key-names.ts";
import { costUsd } from "../../account/money/price.ts";
import { dayName, dayOf } from "../../account/money/quota.ts";
import {
  type DayUsage,
  noUsage,
  plus,
  type UsageFilter as Filter,
  type UsagePlace,
  type UsageSum as Sum,
  type UsageSummary,
} from "../../account/usage-queries.ts";
import { dayMs } from "../../core/units.ts";
import type { AccountId } from "../../core/types.ts";
import type { AccountUse } from "../api/accounts.ts";
import { usagePageMax } from "../api/shapes.ts";
import { UsageFilter, type UsagePage, UsageQuery, type UsageSum } from "../api/usage.ts";
import { csvHead, csvLineOf } from "../csv.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { csvReply } from "../reply.ts";
import { limitOf } from "./paging.ts";
import { fail, type Failure, isFailure, type Route, route } from "./route.ts";

const usageExportPageRows = 1_000;

const summaryDays = 30;

/** The filter that every reply matches. */
export const everything: Filter = { model: null, endpoint: null, key: null, from: null, to: null, text: "" };

export function usageRoutes(parts: ConsoleParts): Route[] {
  const { usage, clock } = parts;

  return [
    route("GET /usage", ({ visitor: { account }, query }) => usagePage(parts, account.id, query)),

    route("GET /usage/summary", async ({ visitor: { account } }) => {
      const fromDay = dayOf(clock.wall()) - (summaryDays - 1);
      const { days, total, models, endpoints, keys, endUsers } = await usage.summary(account.id, fromDay);
      const named = await parts.office.read(({ accountKeys }) => accountKeys.namesOf(account.id));
      const names = new Map(named.map(({ id, name }) => [id, name]));
      const endings = new Map(named.map(({ id, ending }) => [id, ending]));
      return {
        from: timeOf(fromDay * dayMs),
        days: days.map(({ day, model, ...sum }) => ({ day: dayName(day), model, ...sumOf(sum) })),
        days30: sumOf(days.reduce(plus, noUsage)),
        all_time: sumOf(total),
        models: [...models],
        endpoints: [...endpoints],
        keys: keys.map((id) => ({
          id,
          name: keyNameOf(id, names.get(id) ?? null),
          ending: endings.get(id) ?? null,
        })),
        end_users: endUsersOf(endUsers, names),
      };
    }),

    route("GET /usage.csv", ({ visitor: { account }, query }) => {
      const filter = filterOf(query);
      if (isFailure(filter)) return filter;
      return csvReply(csvOf(parts, account.id, filter), `usage-${dayName(dayOf(clock.wall()))}`);
    }),
  ];
}

const endUsersOf = (endUsers: UsageSummary["endUsers"], names: ReadonlyMap<number, string>) =>
  endUsers.map(({ name, key, ...sum }) => ({ name, key: keyNameOf(key, names.get(key) ?? null), ...sumOf(sum) }));

/** What operators see of it. */
export async function accountUse({ usage, office, clock }: ConsoleParts, account: AccountId): Promise<AccountUse> {
  const today = dayOf(clock.wall());
  const first = today - (summaryDays - 1);
  const month = dayOf(Date.parse(`${dayName(today).slice(0, 7)}-01`));
  const { days, endUsers } = await usage.summary(account, first);
  // The month's first day is older on the 31st.
  const ofMonth = month < first ? (await usage.summary(account, month)).days : days;
  const [named, keys] = await office.read(({ accountKeys }) =>
    Promise.all([accountKeys.namesOf(account), accountKeys.list(account)]),
  );
  const limits = new Map(keys.map((key) => [key.id, key.limit_end_user_day]));
  const sumSince = (since: number, of: readonly DayUsage[]) =>
    sumOf(of.filter(({ day }) => day >= since).reduce<Sum>(plus, noUsage));
  const models = Map.groupBy(days, ({ model }) => model);
  return {
    today: sumSince(today, days),
    month: sumSince(month, ofMonth),
    models: [...models]
      .map(([model, of]) => ({ model, today: sumSince(today, of), days30: sumSince(first, of) }))
      .sort((one, other) => other.days30.billed_tokens - one.days30.billed_tokens),
    end_users: endUsersOf(endUsers, new Map(named.map(({ id, name }) => [id, name]))).map((each, at) => ({
      ...each,
      limit_day: limits.get(endUsers[at]!.key) ?? null,
    })),
  };
}

async function usagePage(
  { usage }: Pick<ConsoleParts, "usage">,
  account: AccountId,
  { after, limit, ...query }: UsageQuery,
): Promise<UsagePage | Failure> {
  const filter = filterOf(query);
  if (isFailure(filter)) return filter;
  const place = after === undefined ? null : placeOf(after);
  const page = await usage.page(account, filter, place, limitOf(limit, usagePageMax));
  return { rows: [...page.rows], next: page.next === null ? null : `${page.next.at}-${page.next.sequence}` };
}

function placeOf(after: string): UsagePlace {
  const [at = "0", sequence = "0"] = after.split("-");
  return { at: Number(at), sequence };
}

export function filterOf({ model, endpoint, key, end_user, from, to, text }: UsageFilter): Filter | Failure {
  const moments = [from, to].map((time) => (time === undefined || time === "" ? null : Date.parse(time)));
  if (moments.some((moment) => Number.isNaN(moment))) {
    return fail("invalid_request", "from and to must be times such as 2026-03-28 or 2026-03-28T12:00:00Z.");
  }
  const [fromMs = null, toMs = null] = moments;
  const ofKey = key === undefined || key === "" ? null : Number(key);
  return {
    model: model ?? null,
    endpoint: endpoint ?? null,
    key: ofKey,
    endUser: end_user || null,
    from: fromMs,
    to: toMs,
    text: text ?? "",
  };
}

/** Reads page by page as the browser takes it, so that millions of rows need no memory. */
function csvOf({ usage }: Pick<ConsoleParts, "usage">, account: AccountId, filter: Filter): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let place: UsagePlace | null = null;
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(csvHead)),
    async pull(controller) {
      const page = await usage.page(account, filter, place, usageExportPageRows);
      if (page.rows.length > 0) controller.enqueue(encoder.encode(page.rows.map(csvLineOf).join("")));
      if (page.next === null) controller.close();
      place = page.next;
    },
  });
}

export const sumOf = ({ requests, input, cachedInput, output, reasoning, billedTokens }: Sum): UsageSum => ({
  requests,
  input,
  cached_input: cachedInput,
  output,
  reasoning,
  billed_tokens: billedTokens,
  cost_usd: costUsd(billedTokens),
});
