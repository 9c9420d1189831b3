// `tollgate help`: the list of commands, and a page for each.
import { version } from "../../package.json" with { type: "json" };
import type { Command, Flag, Section } from "./command.ts";

const width = 100;
const indent = "  ";

export function helpText(all: readonly Section[]): string {
  const usages = all.flatMap(([, commands]) => commands.map(shortUsage));
  const column = Math.max(...usages.map(({ length }) => length)) + 2;
  const lists = all.map(([heading, commands]) =>
    [`${heading}:`, ...commands.map((each) => shortUsage(each).padEnd(column) + each.summary)].join("\n"),
  );
  return `Tollgate ${version}: a gateway for language-model inference. One address, one key, three dialects.

${lists.join("\n\n")}

tollgate help COMMAND shows the words and flags of a command; tollgate help config lists every key of the configuration file.
Commands work on a running and on a stopped server alike, except that reload, health, nodes drain and nodes resume need a
running one, restore and move a stopped one.
Environment: TOLLGATE_CONFIG, TOLLGATE_HOST, TOLLGATE_PORT (or PORT), TOLLGATE_DATA, TOLLGATE_DATABASE_URL, TOLLGATE_LOG_LEVEL
and TOLLGATE_LOG_FORMAT; flags override the environment, which overrides the file.
Exit codes: 0 done, 1 not done, 2 the command line is wrong.`;
}

/** In Markdown, for the guide. */
export function commandReference(all: readonly Section[]): string {
  const lists = all.map(([heading, commands]) => {
    const rows = commands.map((each) => `| \`${shortUsage(each).slice("tollgate ".length)}\` | ${each.summary} |`);
    return [`### ${heading}`, "", "| Command | What it does |", "| --- | --- |", ...rows].join("\n");
  });
  return lists.join("\n\n");
}

export function pageOf(command: Command): string {
  const { summary, details, words, flags } = command;
  const rows = [
    ...words.map(({ name, help }) => [name, help] as const),
    ...Object.entries(flags).map(([flag, each]) => [flagInWords(flag, each), each.help] as const),
  ];
  const column = Math.max(0, ...rows.map(([name]) => name.length)) + 2;
  const lines = rows.map(([name, help]) => `${indent}${name.padEnd(column)}${folded(help, column + indent.length)}`);
  const paragraphs = [`Usage: ${usageOf(command)}`, `${summary}.`];
  if (details !== undefined) paragraphs.push(folded(details, 0));
  return [...paragraphs, ...(lines.length === 0 ? [] : [lines.join("\n")])].join("\n\n");
}

const shortUsage = ({ name, words }: Command): string =>
  ["tollgate", name, ...words.map((word) => word.name)].join(" ");

function usageOf(command: Command): string {
  const flags = Object.entries(command.flags).map(([flag, each]) => {
    const words = flagInWords(flag, each);
    return each.isRequired === true ? words : `[${words}]${each.multiple === true ? "..." : ""}`;
  });
  return folded([shortUsage(command), ...flags].join(" "), "Usage: tollgate ".length);
}

const flagInWords = (flag: string, { placeholder }: Flag): string =>
  `--${flag}${placeholder === undefined ? "" : ` ${placeholder}`}`;

/** In lines of the page's width, the later ones under the first, which begins at a column. A flag and its value stay together. */
function folded(text: string, column: number): string {
  let line = column;
  let folds = "";
  for (const word of text.split(/ (?![^[]*\])/)) {
    if (line > column && line + word.length > width) {
      folds += `\n${" ".repeat(column)}`;
      line = column;
    } else if (folds !== "") folds += " ";
    folds += word;
    line += word.length + 1;
  }
  return folds;
}
