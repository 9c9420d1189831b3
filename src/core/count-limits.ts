// Limits that are whole numbers, of keys and of plans. From this table come the columns of keys, the options of plans, the
// flags, the fields of the console, and the words that show them.
import { type Camel, camel } from "./camel.ts";
import { perMinuteMax, weightMax } from "./limits.ts";

/** `about`: of a key, for people, with what becomes of the rest. `words`: with the number in the place of N. */
export type CountRow = Readonly<{ most: number; about: string; words: string }>;

const tokensPerMinuteMax = 1_000_000_000_000;
const each = "for each end user";

export const countLimits = {
  weight: {
    most: weightMax,
    about: "Its share where keys of the account wait for each other; without it 1.",
    words: "weight N",
  },
  parallel: {
    most: perMinuteMax,
    about: "Requests at once; others wait in line.",
    words: "N requests at once",
  },
  requests_per_minute: {
    most: perMinuteMax,
    about: "Requests within 60 seconds; others are refused.",
    words: "N requests a minute",
  },
  tokens_per_minute: {
    most: tokensPerMinuteMax,
    about: "Tokens read and written within 60 seconds; others are refused.",
    words: "N tokens a minute",
  },
  end_user_parallel: {
    most: perMinuteMax,
    about: `Requests at once ${each}; others wait in line.`,
    words: "N requests at once per person",
  },
  end_user_requests_per_minute: {
    most: perMinuteMax,
    about: `Requests within 60 seconds ${each}; others are refused.`,
    words: "N requests a minute per person",
  },
  end_user_tokens_per_minute: {
    most: tokensPerMinuteMax,
    about: `Tokens read and written within 60 seconds ${each}; others are refused.`,
    words: "N tokens a minute per person",
  },
} as const satisfies Readonly<Record<string, CountRow>>;

export type CountName = keyof typeof countLimits;
export type CountField = Camel<CountName>;
/** Of keys, as records have them; null: any number. */
export type Counts = Readonly<Record<CountField, number | null>>;

/** Each by its name, and as records call it. */
export const countNames = Object.keys(countLimits).map(
  (name) => [name as CountName, camel(name) as CountField] as const,
);

export const noCounts = Object.fromEntries(countNames.map(([, field]) => [field, null])) as Counts;

export const isOfEndUsers = (name: string): boolean => name.startsWith("end_user_");

/** One value for each. */
export const eachCount = <Value>(of: (row: CountRow, field: CountField) => Value) =>
  Object.fromEntries(countNames.map(([name, field]) => [name, of(countLimits[name], field)])) as Readonly<
    Record<CountName, Value>
  >;

/** In words, of those that are not null. */
export const countsInWords = (
  of: Readonly<Record<CountName, number | null>>,
  shown: (value: number) => string = String,
): readonly string[] =>
  countNames.flatMap(([name]) => (of[name] === null ? [] : [countLimits[name].words.replace("N", shown(of[name]))]));
