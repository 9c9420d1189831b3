// tollgate complete -- WORD...: candidates for the last word, one a line, each with a tab and its meaning; or ":files" or
// ":folders", which shells complete themselves.
import { type Environment, loadConfig } from "../config/config.ts";
import { catalogOf, offeredPlans } from "../config/configured-catalog.ts";
import type { Command, Invocation, Section } from "./command.ts";

type Candidate = readonly [word: string, meaning: string];

export async function complete(invocation: Invocation, all: readonly Section[]): Promise<number> {
  const { words, environment } = invocation;
  for (const line of await candidates(
    words,
    all.flatMap(([, commands]) => commands),
    environment,
  ))
    console.log(line);
  return 0;
}

export async function candidates(
  words: readonly string[],
  commands: readonly Command[],
  environment: Environment,
): Promise<readonly string[]> {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const found = await wordsAfter(before, typed, commands, environment);
  if (typeof found === "string") return [found];
  return found
    .filter(([word]) => word.startsWith(typed))
    .map(([word, meaning]) => (meaning === "" ? word : `${word}\t${meaning}`));
}

async function wordsAfter(
  before: readonly string[],
  typed: string,
  commands: readonly Command[],
  environment: Environment,
): Promise<readonly Candidate[] | ":files" | ":folders"> {
  const names = [3, 2, 1].map((count) => before.slice(0, count).join(" "));
  const command = names.flatMap((wanted) => commands.find(({ name }) => name === wanted) ?? [])[0];
  const further = before.length < 3 ? nextWords(before, commands) : [];
  if (command === undefined) return further;
  if (command.name === "help") {
    const next = nextWords(before.slice(1), commands);
    return before.length === 1 ? [...next.filter(([word]) => word !== configHelp[0]), configHelp] : next;
  }
  const given = before.slice(command.name.split(" ").length);
  const flag = /^--(.*)/.exec(given.at(-1) ?? "")?.[1];
  if (flag !== undefined && command.flags[flag]?.type === "string") {
    return valuesOf(command.flags[flag].placeholder ?? "", given, environment);
  }
  if (typed.startsWith("-")) {
    return Object.entries(command.flags)
      .filter(([name, { multiple }]) => multiple === true || !given.includes(`--${name}`))
      .map(([name, { help }]) => [`--${name}`, help]);
  }
  const place = given.filter((word, at) => !word.startsWith("-") && !takesValue(command, given[at - 1])).length;
  const word = command.words[place];
  const values = word === undefined ? [] : await valuesOf(word.name, given, environment);
  return typeof values === "string" ? values : [...further, ...values];
}

const configHelp: Candidate = ["config", "Every key of the configuration file"];

const takesValue = ({ flags }: Command, word: string | undefined): boolean =>
  word?.startsWith("--") === true && flags[word.slice(2)]?.type === "string";

function nextWords(before: readonly string[], commands: readonly Command[]): readonly Candidate[] {
  const found = new Map<string, string>();
  for (const { name, summary } of commands) {
    const words = name.split(" ");
    const next = words[before.length];
    if (next === undefined || before.some((word, at) => word !== words[at])) continue;
    // A shared first word has a meaning only if it is a command itself.
    found.set(next, words.length === before.length + 1 ? summary : (found.get(next) ?? ""));
  }
  return [...found];
}

/** For the placeholder of a value. */
async function valuesOf(
  placeholder: string,
  given: readonly string[],
  environment: Environment,
): Promise<readonly Candidate[] | ":files" | ":folders"> {
  if (placeholder === "FILE") return ":files";
  if (placeholder === "DIR") return ":folders";
  if (placeholder === "SHELL") return ["bash", "zsh", "fish"].map((shell) => [shell, ""]);
  if (!["PLAN", "NODE", "WEBHOOK"].includes(placeholder)) return [];
  try {
    const flag = (name: string) => given[given.indexOf(`--${name}`) + 1 || given.length];
    const config = await loadConfig({ config: flag("config"), data: flag("data") }, environment);
    if (placeholder === "NODE") return config.nodes.map(({ name, url }) => [name, url]);
    if (placeholder === "WEBHOOK") return config.webhooks.map(({ name }) => [name, ""]);
    return Object.values(offeredPlans(config.plans, await catalogOf(config))).map(({ id, name }) => [id, name]);
  } catch {
    return []; // the command itself reports a wrong configuration
  }
}
