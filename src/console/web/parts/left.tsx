// What is left to an account, and until when it lasts at the pace of now.
import type { VNode } from "preact";
import type { AccountNumbers } from "../../api/live.ts";
import type { OverTime } from "../../api/over-time.ts";
import type { UsageSummary } from "../../api/usage.ts";
import { now } from "../clock.ts";
import { clockTime, count, date, dollars, worth } from "../format.ts";
import { numbers, sells } from "../session.ts";
import { t } from "../texts.ts";
import { Figure } from "./figure.tsx";

const dayMs = 86_400_000;
/** Whole days, whose mean is the pace of credit. */
const paceDays = 7;
/** Further ahead a pace says nothing. */
const aheadDays = 400;

type LeftProps = Readonly<{
  summary: UsageSummary;
  /** Until newer ones come. */
  before: AccountNumbers;
  /** From its begin on. */
  month: OverTime;
}>;

export function Left({ summary, before, month }: LeftProps): VNode | null {
  const today = Math.floor(now() / dayMs) * dayMs;
  const current = numbers.value ?? before;
  const { granted, left } = current.allowance;
  const spent = month.total;
  const begun = Date.parse(month.from);
  const ends = new Date(begun);
  const wholeMonth = ends.setUTCMonth(ends.getUTCMonth() + 1) - begun;
  const monthly = Math.round((spent.billed_tokens * wholeMonth) / (now() - begun));
  if (!sells.value && summary.all_time.billed_tokens === 0) return null;
  return (
    <section class="grid-4" aria-label={t("left.label")}>
      {current.spendable !== null && (
        <>
          <Figure name={t("left.to_spend")} value={count(current.spendable)}>
            {sells.value && worth(current.spendable)}
          </Figure>
          {granted !== null && granted > 0 && (
            <Figure name={t("left.allowance")} value={count(left ?? 0)}>
              {untilEmpty(left ?? 0, granted, today)}
            </Figure>
          )}
          <Figure name={t("left.credit")} value={count(current.credit)}>
            {creditLasts(current.credit, granted ?? 0, summary, today)}
          </Figure>
        </>
      )}
      <Figure name={t("left.month")} value={sells.value ? dollars(spent.cost_usd) : count(spent.billed_tokens)}>
        {spent.billed_tokens > 0 &&
          t("left.month_pace", {
            amount: sells.value ? worth(monthly) : count(monthly),
            day: date(ends.getTime() - 1),
          })}
      </Figure>
    </section>
  );
}

/** At the pace of today so far. */
function untilEmpty(left: number, granted: number, today: number): string {
  const used = granted - left;
  const emptyAt = now() + (left * (now() - today)) / Math.max(1, used);
  const of = t("left.of_granted", { granted });
  if (left <= 0) return `${of}. ${t("left.allowance_empty")}`;
  if (used <= 0) return of;
  const forecast =
    emptyAt < today + dayMs ? t("left.allowance_until", { time: clockTime(emptyAt) }) : t("left.allowance_enough");
  return `${of}. ${forecast}`;
}

/** Credit pays what goes beyond the allowance of a day. */
function creditLasts(credit: number, granted: number, { days }: UsageSummary, today: number): string {
  if (credit <= 0) return t("left.credit_none");
  const billed = new Map<number, number>();
  for (const { day, billed_tokens: tokens } of days) {
    const at = Date.parse(day);
    if (at < today && at >= today - paceDays * dayMs) billed.set(at, (billed.get(at) ?? 0) + tokens);
  }
  const beyond = [...billed.values()].reduce((sum, tokens) => sum + Math.max(0, tokens - granted), 0) / paceDays;
  if (beyond === 0) return t(granted > 0 ? "left.credit_unused" : "left.credit_unused_free", { days: paceDays });
  const lasts = Math.floor(credit / beyond);
  if (lasts > aheadDays) return t("left.credit_long");
  return t("left.credit_until", { days: lasts, day: date(today + lasts * dayMs) });
}
