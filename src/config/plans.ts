// [[plans]]: a shop's own plans, one each, in the order in which they are offered.
import { priorities, type Priority } from "../core/priority.ts";
import { countLimits, type CountName } from "../core/count-limits.ts";
import { amountMax, floodRequestsMax, perMinuteMax, weightMax } from "../core/limits.ts";
import type { Plan } from "../core/types.ts";
import { type Kind, listOf, mapped, number, oneOf, textLike, whole, yesOrNo } from "./kinds.ts";
import { key, required, table } from "./rows.ts";

const dailyAllowanceMaxTokens = 1_000_000_000_000;
const planNameMaxLength = 60;

/** It begins with a letter: an object keeps such keys in their order. */
export const planId = (): Kind<string> =>
  textLike("^[A-Za-z][A-Za-z0-9_-]{0,31}$", "the id of a plan: up to 32 letters, digits, dashes and underscores");

const priority = mapped(oneOf(priorities), (word): Priority | null => word);

const notNull = <Of extends object>(of: Of) =>
  Object.fromEntries(Object.entries(of).filter(([, value]) => value !== null)) as {
    readonly [Name in keyof Of]?: NonNullable<Of[Name]>;
  };

const orNull = (value: number): number | null => value;

/** Null: nothing is said. */
const amount = (most: number): Kind<number | null> => mapped(whole(0, most), orNull);

const countTo = (most: number): Kind<number | null> => mapped(whole(1, most), orNull);

const count = (name: CountName, about: string = countLimits[name].about) =>
  key(name, countTo(countLimits[name].most), { about, otherwise: null, shown: "any number" });

export const planTable = table(
  {
    id: required("id", planId(), "The name that accounts and commands use."),
    name: key("name", textLike(`^\\S(?:.{0,${planNameMaxLength - 2}}\\S)?$`, "a name"), {
      about: "Its name in the console.",
      otherwise: null,
      shown: "the id, with a capital",
    }),
    tokensPerDay: key("tokens_per_day", amount(dailyAllowanceMaxTokens), {
      about: "Balance tokens a day; credit pays for the rest.",
      otherwise: null,
      shown: "0",
    }),
    requestsPerMinute: key("requests_per_minute", countTo(perMinuteMax), {
      about: "Flood protection: the most requests in a minute.",
      otherwise: null,
      shown: `${floodRequestsMax}; of an unlimited plan any number`,
    }),
    tokensPerMinute: count(
      "tokens_per_minute",
      "The most tokens read and written within 60 seconds; more are refused.",
    ),
    parallel: count("parallel", "The most requests of an account at once; others wait in line."),
    endUserRequestsPerMinute: count("end_user_requests_per_minute"),
    endUserTokensPerMinute: count("end_user_tokens_per_minute"),
    endUserParallel: count("end_user_parallel"),
    searchesPerDay: key("searches_per_day", amount(1_000_000), {
      about: "Web searches that found something.",
      otherwise: null,
      shown: "0; of an unlimited plan any number",
    }),
    coderCallsPerWindow: key("coder_calls", amount(1_000_000), {
      about: "Calls of the coder tier in 4 hours.",
      otherwise: null,
      shown: "0; of an unlimited plan any number",
    }),
    weight: key("weight", whole(1, weightMax), {
      about: "Its share where accounts wait for each other, as a multiple of a plan of weight 1.",
      otherwise: 1,
    }),
    priority: key("priority", priority, {
      about: "How urgent a request is that does not say so (`x-priority`, `service_tier`).",
      otherwise: null,
      shown: "standard",
    }),
    priorityMax: key("priority_max", priority, {
      about: "The most urgent level that a request may ask for.",
      otherwise: null,
      shown: "standard",
    }),
    batchDiscount: key("batch_discount", mapped(number(0, 0.99), orNull), {
      about: "The part of models' prices that lines of batches do not cost, such as 0.5.",
      otherwise: null,
      shown: "0",
    }),
    /** Null = all. */
    models: key("models", listOf(textLike("^\\S+$", "the name of a model"), "a list of one or more models", 1), {
      about: "Models that it may use.",
      otherwise: null,
      shown: "all",
    }),
    unlimited: key("unlimited", yesOrNo(), {
      about: "No balance at all: usage is recorded, and nothing is refused.",
      otherwise: false,
    }),
  },
  (row, place): Plan => {
    const { id, name, weight, models, unlimited, tokensPerDay, requestsPerMinute, ...others } = row;
    const { searchesPerDay, coderCallsPerWindow, ...said } = others;
    if (unlimited && tokensPerDay !== null) {
      place.at("tokens_per_day").fault("must be absent: an unlimited plan has no balance");
    }
    const unsaid = unlimited ? amountMax : 0;
    return {
      id,
      as: id,
      name: name ?? id.charAt(0).toUpperCase() + id.slice(1),
      tokensPerDay: tokensPerDay ?? unsaid,
      coderCallsPerWindow: coderCallsPerWindow ?? unsaid,
      searchesPerDay: searchesPerDay ?? unsaid,
      ...(requestsPerMinute === null ? {} : { saysRequests: true }),
      requestsPerMinute: requestsPerMinute ?? (unlimited ? amountMax : floodRequestsMax),
      ...(weight === 1 ? {} : { weight }),
      ...notNull(said),
      models,
      unlimited,
    };
  },
);
