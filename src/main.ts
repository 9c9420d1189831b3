// The program: finds the requested command, runs it and ends the process with its exit code.
// 0 done, 1 it could not be done (one line on standard error), 2 the command line is wrong.
import { version } from "../package.json" with { type: "json" };
import { readArguments, UsageError } from "./commands/command.ts";
import { findCommand, printHelp } from "./commands/commands.ts";
import { guardTerminal } from "./commands/terminal.ts";
import { isExpected } from "./core/expected-error.ts";

async function main(argv: readonly string[]): Promise<number> {
  const [first] = argv;
  if (first === "--version" || first === "-v") {
    console.log(version);
    return 0;
  }
  const isHelp = (word: string): boolean => word === "--help" || word === "-h";
  if (first === undefined || (first !== "complete" && argv.some(isHelp))) {
    return printHelp(argv.slice(first === "help" ? 1 : 0).filter((word) => !isHelp(word)));
  }
  const command = await findCommand(argv);
  return command.run(readArguments(command, argv.slice(command.name.split(" ").length), process.env));
}

guardTerminal();
try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  // What an operator can put right is one line; anything else is a fault of the program, and its stack helps to find it.
  const isUsage = error instanceof UsageError || isWrongFlag(error);
  const isLine = isUsage || isExpected(error);
  console.error(isLine ? (error as Error).message.replace(/^/gm, "tollgate: ") : error);
  if (isUsage) console.error("See: tollgate help");
  process.exit(isUsage ? 2 : 1);
}

/** The configuration reads the values of its flags by itself. */
function isWrongFlag(error: unknown): boolean {
  return error instanceof Error && "isOfCommandLine" in error && error.isOfCommandLine === true;
}
