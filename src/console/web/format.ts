// Formats numbers, money and times for people.
import { now } from "./clock.ts";
import { language, languages } from "./language.ts";

const { numbers, dates } = languages[language];

/** 1,000,000 balance tokens are worth $5.00. */
const dollarsPerMillionTokens = 5;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const whole = new Intl.NumberFormat(numbers);
const short = new Intl.NumberFormat(numbers, { notation: "compact", maximumFractionDigits: 1 });
const dayMonth = { day: "numeric", month: "short" } as const;
const dayMonthYear = { ...dayMonth, year: "numeric" } as const;
const hourMinute = { hour: "2-digit", minute: "2-digit" } as const;
const toSecond = { ...hourMinute, second: "2-digit" } as const;
const dateTime = new Intl.DateTimeFormat(dates, { ...dayMonth, ...toSecond });
const fullDateTime = new Intl.DateTimeFormat(dates, { ...dayMonthYear, ...toSecond, timeZoneName: "short" });
const utcDateTime = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: "UTC" });
const monthAndYear = new Intl.DateTimeFormat(dates, { month: "long", year: "numeric", timeZone: "UTC" });
const clockTimeOnly = new Intl.DateTimeFormat(dates, hourMinute);
const dayAndTimeOnly = new Intl.DateTimeFormat(dates, { ...dayMonth, ...hourMinute });
const localDayOnly = new Intl.DateTimeFormat(dates, dayMonth);
const localDateOnly = new Intl.DateTimeFormat(dates, dayMonthYear);
const tenths = new Intl.NumberFormat(numbers, { maximumFractionDigits: 1 });
const dateOnly = new Intl.DateTimeFormat(dates, { ...dayMonthYear, timeZone: "UTC" });
const dayOnly = new Intl.DateTimeFormat(dates, { ...dayMonth, timeZone: "UTC" });

export const count = (value: number): string => whole.format(value);
/** `42 %`, or `4.2%` as the language writes it. */
export const percentage = (share: number, digits = 0): string =>
  share.toLocaleString(numbers, { style: "percent", maximumFractionDigits: digits });

/** `a, b, c`, with the language's own commas. */
export const list = (words: readonly string[]): string => listed.format(words);
const listed = new Intl.ListFormat(language, { type: "unit", style: "short" });

/** 1.2K, 3.4M: for axes and small places. */
export const compact = (value: number): string => short.format(value);

/** What balance tokens are worth: `$0.15`, or `$0.0004` where cents would hide it. */
export const worth = (tokens: number): string => dollars((tokens / 1_000_000) * dollarsPerMillionTokens);

export function dollars(amount: number): string {
  const size = Math.abs(amount);
  return money(amount, 2, size === 0 || size >= 0.995 ? 2 : size >= 0.01 ? 3 : 6);
}

/** Exact to one balance token, $0.000005, with fixed digits, so that amounts in a column align. */
export const exactDollars = (amount: number): string => money(amount, 6, 6);

/** `$3.325`: prices have all their digits. */
export const price = (amount: number): string => money(amount, 2, 3);

function money(amount: number, digitsMin: number, digitsMax: number): string {
  const text = Math.abs(amount).toLocaleString(numbers, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: digitsMin,
    maximumFractionDigits: digitsMax,
  });
  return `${amount < 0 ? "−" : ""}${text}`;
}

const byteUnits = ["bytes", "kB", "MB", "GB", "TB"];

/** `512 bytes`, `1.4 MB`: decimal units, as for disks. */
export function bytes(size: number): string {
  const power = Math.min(byteUnits.length - 1, Math.floor(Math.log10(Math.max(1, size)) / 3));
  const scaled = size / 1000 ** power;
  const digits = power > 0 && scaled < 99.95 ? 1 : 0;
  return `${scaled.toLocaleString(numbers, { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${byteUnits[power]}`;
}

export const cents = (amount: number): string => money(amount / 100, 2, 6);

/** In the time zone of the browser, like all times of day. */
export const moment = (time: number | string): string => dateTime.format(new Date(time));
/** With year and time zone, for a time that stands alone. */
export const fullMoment = (time: number | string): string => fullDateTime.format(new Date(time));
export const date = (time: number | string): string => dateOnly.format(new Date(time));
export const day = (time: number | string): string => dayOnly.format(new Date(time));
export const utc = (time: number | string): string => `${utcDateTime.format(new Date(time))} UTC`;
/** `October 2026`. */
export const monthOf = (time: number): string => monthAndYear.format(time);
export const clockTime = (time: number): string => clockTimeOnly.format(time);
export const dayAndTime = (time: number): string => dayAndTimeOnly.format(time);
export const localDay = (time: number): string => localDayOnly.format(time);
/** With the year, where it is another one. */
export const localDate = (time: number): string =>
  (new Date(time).getFullYear() === new Date(now()).getFullYear() ? localDayOnly : localDateOnly).format(time);

/** `120 ms`, `1.5 s`, `2.1 min`. */
export const shortTime = (ms: number): string =>
  ms < 1_000
    ? `${whole.format(Math.round(ms))} ms`
    : ms < minuteMs
      ? `${tenths.format(ms / 1_000)} s`
      : `${tenths.format(ms / minuteMs)} min`;

const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });

/** `now`, `4 min. ago`, `3 hr. ago`, then the date. */
export function ago(time: number | string): string {
  const passed = now() - new Date(time).getTime();
  if (passed < minuteMs) return relative.format(0, "second");
  if (passed < hourMs) return relative.format(-Math.floor(passed / minuteMs), "minute");
  if (passed < dayMs) return relative.format(-Math.floor(passed / hourMs), "hour");
  return date(time);
}

const toMinute = new Intl.DurationFormat(language, { style: "short", minutesDisplay: "always" });
const toSeconds = new Intl.DurationFormat(language, {
  style: "short",
  minutesDisplay: "always",
  secondsDisplay: "always",
});

/** `5 hr, 12 min`, and seconds in the last hour. */
export function duration(ms: number): string {
  const left = Math.max(0, ms);
  const hours = Math.floor(left / hourMs);
  const minutes = Math.floor((left % hourMs) / minuteMs);
  return hours > 0
    ? toMinute.format({ hours, minutes })
    : toSeconds.format({ minutes, seconds: Math.floor((left % minuteMs) / 1000) });
}

const percent = new Intl.NumberFormat(numbers, { style: "percent", maximumFractionDigits: 0 });
const signedPercent = new Intl.NumberFormat(numbers, {
  style: "percent",
  maximumFractionDigits: 0,
  signDisplay: "exceptZero",
});

export const share = (part: number, of: number): string => percent.format(of === 0 ? 0 : part / of);
/** `+12%`; null where there was nothing before. */
export const change = (value: number, before: number): string | null =>
  before === 0 ? null : signedPercent.format(value / before - 1);

/** The next round number that is not below the value and is easily halved. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(value));
  return magnitude * ([1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((step) => step * magnitude >= value) ?? 10);
}
