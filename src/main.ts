// The program: finds the requested command, runs it and ends the process with its exit code.
// 0 done, 1 it could not be done (one line on standard error), 2 the command line is wrong.
import { version } from "../package.json" with { type: "json" };
import { type Command, readArguments, UsageError } from "./commands/command.ts";
import { isExpected } from "./core/expected-error.ts";
import { helpText } from "./commands/help.ts";
import { guardTerminal } from "./commands/terminal.ts";
import { nearest } from "./core/nearest.ts";

/** Loaded when it is asked for: a command on accounts starts without the HTTP server, and the server without it. */
const commands: Readonly<Record<string, () => Promise<{ default: Command }>>> = {
  serve: () => import("./commands/serve.ts"),
  "accounts create": () => import("./commands/accounts-create.ts"),
  "accounts invite": () => import("./commands/accounts-invite.ts"),
  "accounts list": () => import("./commands/accounts-list.ts"),
  "accounts show": () => import("./commands/accounts-show.ts"),
  "accounts plan": () => import("./commands/accounts-plan.ts"),
  "accounts credit": () => import("./commands/accounts-credit.ts"),
  "accounts password": () => import("./commands/accounts-password.ts"),
  "accounts disable": () => import("./commands/accounts-disable.ts"),
  "accounts enable": () => import("./commands/accounts-enable.ts"),
  "accounts export": () => import("./commands/accounts-export.ts"),
  "accounts delete": () => import("./commands/accounts-delete.ts"),
  "keys create": () => import("./commands/keys-create.ts"),
  "keys list": () => import("./commands/keys-list.ts"),
  "keys limits": () => import("./commands/keys-limits.ts"),
  "keys revoke": () => import("./commands/keys-revoke.ts"),
  "keys rotate": () => import("./commands/keys-rotate.ts"),
  "end-users list": () => import("./commands/end-users-list.ts"),
  "end-users export": () => import("./commands/end-users-export.ts"),
  "end-users erase": () => import("./commands/end-users-erase.ts"),
  usage: () => import("./commands/usage.ts"),
  requests: () => import("./commands/requests.ts"),
  nodes: () => import("./commands/nodes.ts"),
  "nodes drain": () => import("./commands/nodes-drain.ts"),
  "nodes resume": () => import("./commands/nodes-resume.ts"),
  gateways: () => import("./commands/gateways.ts"),
  models: () => import("./commands/models.ts"),
  "models suggest": () => import("./commands/models-suggest.ts"),
  "webhooks test": () => import("./commands/webhooks-test.ts"),
  reload: () => import("./commands/reload-command.ts"),
  health: () => import("./commands/health.ts"),
  backup: () => import("./commands/backup.ts"),
  move: () => import("./commands/move.ts"),
  restore: () => import("./commands/restore.ts"),
  search: () => import("./commands/search.ts"),
  "search index": () => import("./commands/search-index.ts"),
  check: () => import("./commands/check.ts"),
  doctor: () => import("./commands/doctor.ts"),
  "check-answers": () => import("./commands/check-answers.ts"),
  "pdf-text": () => import("./commands/pdf-text.ts"),
};

async function main(argv: readonly string[]): Promise<number> {
  const [first] = argv;
  if (first === "--version" || first === "-v") {
    console.log(version);
    return 0;
  }
  if (first === "help" && argv[1] === "config") {
    const { configReference } = await import("./config/reference.ts");
    console.log(configReference());
    return 0;
  }
  if (first === undefined || first === "help" || argv.includes("--help") || argv.includes("-h")) {
    console.log(helpText);
    return 0;
  }
  const name = commandName(argv);
  const { default: command } = await commands[name]!();
  return command.run(readArguments(name, command, argv.slice(name.split(" ").length), process.env));
}

/** `accounts create a@b.c` asks for "accounts create"; throws UsageError naming the nearest command. */
function commandName(argv: readonly string[]): string {
  const [first = "", second = ""] = argv;
  for (const name of [`${first} ${second}`, first]) if (Object.hasOwn(commands, name)) return name;
  const names = Object.keys(commands);
  const verbs = names.filter((name) => name.startsWith(`${first} `));
  const typed = verbs.length > 0 && second !== "" ? `${first} ${second}` : first;
  const meant = nearest(typed, verbs.length > 0 ? verbs : names);
  const hint =
    meant === null ? `commands: ${(verbs.length > 0 ? verbs : names).join(", ")}` : `did you mean "${meant}"?`;
  throw new UsageError(`there is no command ${JSON.stringify(typed)}; ${hint}`);
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
