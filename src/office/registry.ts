// All verbs, in the order in which help lists them. A file is loaded when one of its verbs is asked for.
import type { Verb } from "./verb.ts";

type Group = Readonly<{ heading: string; words: readonly string[]; load(): Promise<readonly Verb[]> }>;

/** `words` are the first words of its verbs' names. */
const groups: readonly Group[] = [
  {
    heading: "Accounts",
    words: ["accounts", "invitations", "sessions"],
    load: async () => (await import("./verbs/accounts.ts")).default,
  },
  { heading: "Teams", words: ["teams"], load: async () => (await import("./verbs/teams.ts")).default },
  { heading: "Keys", words: ["keys"], load: async () => (await import("./verbs/keys.ts")).default },
  {
    heading: "Requests for credit and plans",
    words: ["purchases"],
    load: async () => (await import("./verbs/purchases.ts")).default,
  },
  {
    heading: "End users and their requests",
    words: ["end-users", "usage", "requests"],
    load: async () => (await import("./verbs/people.ts")).default,
  },
  {
    heading: "The operators' API",
    words: ["tokens", "apply"],
    load: async () => (await import("./verbs/api.ts")).default,
  },
  {
    heading: "The running server",
    words: ["nodes", "gateways", "models", "webhooks", "mail", "reload", "health", "backup"],
    load: async () => (await import("./verbs/server.ts")).default,
  },
  {
    heading: "The configuration file",
    words: ["config"],
    load: async () => (await import("./verbs/config.ts")).default,
  },
  { heading: "Batches", words: ["batches"], load: async () => (await import("./verbs/batches.ts")).default },
  {
    heading: "Reports",
    words: ["report", "statement"],
    load: async () => [
      ...(await import("./verbs/report.ts")).default,
      ...(await import("./verbs/statement.ts")).default,
    ],
  },
  {
    heading: "What if",
    words: ["simulate"],
    load: async () => (await import("./verbs/simulation.ts")).default,
  },
];

export async function findVerb(name: string): Promise<Verb | null> {
  const first = name.split(" ", 1)[0]!;
  const verbs = await groups.find(({ words }) => words.includes(first))?.load();
  return verbs?.find((each) => each.name === name) ?? null;
}

export const allVerbs = (): Promise<readonly (readonly [heading: string, verbs: readonly Verb[]])[]> =>
  Promise.all(groups.map(async ({ heading, load }) => [heading, await load()] as const));
