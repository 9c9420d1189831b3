// What the address asks for of what was used over time: a range or days, a split, a figure to draw, and filters.
import type { OverTimeQuery } from "../api/over-time.ts";
import { rangeNames } from "../../core/over-time.ts";
import { changeQuery, place } from "./route.ts";

export type Split = NonNullable<OverTimeQuery["by"]>;
export const measures = ["tokens", "requests", "cost", "wait", "first_token", "failed"] as const;
export type Measure = (typeof measures)[number];

const dayMs = 86_400_000;
export const filterNames = ["model", "endpoint", "key", "end_user"] as const;
export type Filters = Readonly<Record<(typeof filterNames)[number] | "from" | "to", string>>;

const oneOf = <Word extends string>(words: readonly Word[], word: string): Word | null =>
  words.find((each) => each === word) ?? null;

/** An address may say anything: what is unknown is ignored. */
export function askedIn(query: URLSearchParams, splits: readonly Split[]) {
  const given = (name: string): string => query.get(name) ?? "";
  // A page does not filter by what it does not split by.
  const [model = "", endpoint = "", key = "", end_user = "", account = ""] = ([...filterNames, "account"] as const).map(
    (name) => (splits.includes(name) ? given(name) : ""),
  );
  const [from, to] = [given("from"), given("to")];
  const filters: Filters = { model, endpoint, key, end_user, from, to };
  // What is filtered says all of it already.
  const usual = splits.find((split) => ({ ...filters, account, node: "" })[split] === "") ?? splits[0]!;
  return {
    filters,
    account,
    range: oneOf(rangeNames, given("range")) ?? undefined,
    by: oneOf(splits, given("by")) ?? usual,
    measure: oneOf(measures, given("show")) ?? "tokens",
  };
}
export type AskedOverTime = ReturnType<typeof askedIn>;

/** The API's `to` is exclusive; people mean to include the last day. */
export const exclusive = <Of extends Readonly<{ to: string }>>(filters: Of): Of => {
  const last = /^\d{4}-\d\d-\d\d$/.test(filters.to) ? Date.parse(filters.to) : Number.NaN;
  return Number.isNaN(last) ? filters : { ...filters, to: dayOf(last + dayMs) };
};

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** As a step back for the browser: its button shows the longer time again. */
export function zoomTo(from: number, until: number, stepMs: number): void {
  const isOfDays = stepMs >= dayMs;
  const minute = (time: number): string => `${new Date(time).toISOString().slice(0, 16)}Z`;
  changeQuery({
    from: isOfDays ? dayOf(from) : minute(from),
    to: isOfDays ? dayOf(until - dayMs) : minute(until),
  });
}

export const showRange = (range: string): void => changeQuery({ range, from: null, to: null });
export const isZoomed = (): boolean => (place.value.query.get("from") ?? place.value.query.get("to")) !== null;
