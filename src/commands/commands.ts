// All commands of the program: the verbs, and commands that serve or work on the machine instead of the books. The code of a
// command is loaded when it is asked for.
import { nearest } from "../core/nearest.ts";
import { type Command, folderFlags, nodeFlag, type Section, UsageError } from "./command.ts";

const query = { name: "QUERY", help: "What to look for." };
const serving: readonly Command[] = [
  {
    name: "init",
    summary: "Find your engines, ask a few questions and write the configuration",
    details:
      "It looks for engines on this machine and where you say, lists their models, and asks about plans, addresses and people. " +
      "Then it writes a commented file, has doctor check it, and starts the server.",
    words: [],
    flags: {
      yes: { type: "boolean", help: "Ask nothing: take the defaults where no flag says otherwise." },
      node: {
        type: "string",
        multiple: true,
        placeholder: "URL",
        help: "Use the engines there, and do not look on this machine: an address, a host, or a network such as 10.0.0.0/24; may be repeated.",
      },
      "api-key-env": {
        type: "string",
        placeholder: "NAME",
        help: "The variable that holds the key of the engines of --node.",
      },
      models: { type: "string", placeholder: "NAMES", help: "The models to serve, with commas; without it all." },
      plan: { type: "string", placeholder: "PLAN", help: "unlimited, or the tokens of an account in a day." },
      address: { type: "string", placeholder: "ADDRESS", help: "here, network, or the address of a proxy in front." },
      people: { type: "string", placeholder: "EMAILS", help: "Whom to make invitations for, with commas." },
      replace: { type: "boolean", help: "Write over the file if it is there." },
      start: { type: "boolean", help: "Start the server then." },
      config: { type: "string", placeholder: "FILE", help: "The file to write; without it tollgate.toml." },
      data: folderFlags.data,
    },
    async run(invocation) {
      const next = await (await import("./init.ts")).default(invocation);
      return typeof next === "number" ? next : (await import("./serve.ts")).default(next);
    },
  },
  {
    name: "serve",
    summary: "Start the gateway",
    details:
      "It serves on http://127.0.0.1:8400 with the data in ./data/var, unless you say otherwise. Without nodes it looks for an " +
      "engine on this machine; if there is none, it starts a demo node with synthetic answers. SIGTERM stops it when the " +
      "open requests have ended. SIGHUP reloads the configuration.",
    words: [],
    flags: {
      config: folderFlags.config,
      host: { type: "string", placeholder: "HOST", help: "The address to listen on." },
      port: { type: "string", placeholder: "N", help: "The port to listen on." },
      data: folderFlags.data,
      node: nodeFlag.node,
      gguf: {
        type: "string",
        placeholder: "FILE",
        help: "Start llama.cpp's llama-server with this model file and serve with that.",
      },
      demo: {
        type: "boolean",
        help: "Serve only the demo node, and ignore local engines and configured nodes.",
      },
      threads: {
        type: "string",
        placeholder: "N",
        help: "How many threads serve clients, beside the one that keeps the books.",
      },
    },
    run: async (invocation) => (await import("./serve.ts")).default(invocation),
  },
];

const others: readonly Command[] = [
  {
    name: "check",
    summary: "Check the configuration and ask each node",
    details: "Exit code 1 if something is wrong. It opens no data folder.",
    words: [],
    flags: { ...nodeFlag, ...folderFlags },
    run: async (invocation) => (await import("./check.ts")).default(invocation),
  },
  {
    name: "doctor",
    summary: "Look at disk, clock, limits, database, configuration and nodes",
    details: "Exit code 1 if something is wrong.",
    words: [],
    flags: { ...nodeFlag, ...folderFlags },
    run: async (invocation) => (await import("./doctor.ts")).default(invocation),
  },
  {
    name: "models suggest",
    summary: "Print [[models]] for the nodes' models, to paste into the configuration",
    words: [],
    flags: { ...nodeFlag, ...folderFlags },
    run: async (invocation) => (await import("./models-suggest.ts")).default(invocation),
  },
  {
    name: "search",
    summary: "Run the configured web search and print the results as a model reads them",
    words: [query],
    flags: { results: { type: "string", placeholder: "N", help: "How many at most." }, ...folderFlags },
    run: async (invocation) => (await import("./search.ts")).default(invocation),
  },
  {
    name: "search index",
    summary: "Update the index of the search folder and summarize it",
    words: [],
    flags: folderFlags,
    run: async (invocation) => (await import("./search-index.ts")).default(invocation),
  },
  {
    name: "restore",
    summary: "Replace a stopped server's database with a backup",
    details:
      "The replaced database is kept under another name. The backup is checked first; one that is damaged, or whose books " +
      "contradict themselves, is refused.",
    words: [{ name: "FILE", help: "The backup." }],
    flags: {
      "accept-violations": { type: "boolean", help: "Accept books that contradict themselves." },
      ...folderFlags,
    },
    run: async (invocation) => (await import("./restore.ts")).default(invocation),
  },
  {
    name: "move",
    summary: "Move the books of a stopped server to PostgreSQL, or back",
    details:
      "--to URL fills an empty database, for several gateways, and closes the data folder. --from URL --to-data DIR moves " +
      "them back. The URL `env` stands for TOLLGATE_DATABASE_URL, so that process lists show no password.",
    words: [],
    flags: {
      to: { type: "string", placeholder: "URL", help: "The database to move to." },
      from: { type: "string", placeholder: "URL", help: "The database to move back from." },
      "to-data": { type: "string", placeholder: "DIR", help: "The data folder to move back to." },
      ...folderFlags,
    },
    run: async (invocation) => (await import("./move.ts")).default(invocation),
  },
];

/** For colleagues of an operator, on their own machines. */
const signingIn: readonly Command[] = [
  {
    name: "login",
    summary: "Sign this machine in to a gateway and print settings for coding agents",
    details:
      "It prints an address and a code, and waits until you approve them in the console. The token is in a file that only you " +
      "may read (~/.config/tollgate/login.json). --token prints it, after renewing it where that is due: " +
      'export TOLLGATE_KEY="$(tollgate login --token)".',
    words: [],
    flags: {
      gateway: { type: "string", placeholder: "URL", help: "The gateway; without it the one of the last sign-in." },
      name: { type: "string", placeholder: "NAME", help: "What this machine is called; without it its host name." },
      token: { type: "boolean", help: "Print the token of this machine and nothing else." },
      json: folderFlags.json,
    },
    run: async (invocation) => (await import("./login.ts")).login(invocation),
  },
  {
    name: "logout",
    summary: "Sign this machine out: its token is void at once",
    words: [],
    flags: { json: folderFlags.json },
    run: async (invocation) => (await import("./login.ts")).logout(invocation),
  },
];

const words: readonly Command[] = [
  {
    name: "help",
    summary: "List the commands, or show the page of one",
    details: "help config lists every key of the configuration file, help commands prints this list in Markdown.",
    words: [],
    takesMore: true,
    flags: {},
    run: ({ words }) => printHelp(words),
  },
  {
    name: "completion",
    summary: "Print the completion script for bash, zsh or fish",
    details:
      "bash: source <(tollgate completion bash) in ~/.bashrc. zsh: source <(tollgate completion zsh) in ~/.zshrc, after compinit. " +
      "fish: tollgate completion fish > ~/.config/fish/completions/tollgate.fish.",
    words: [{ name: "SHELL", help: "bash, zsh or fish." }],
    flags: {},
    run: async (invocation) => (await import("./completion.ts")).default(invocation),
  },
];

/** Commands that a server or a shell starts. */
const internal: readonly Command[] = [
  {
    name: "check-answers",
    summary: "Check answers against JSON Schemas, for a server",
    words: [],
    flags: { quick: { type: "boolean", help: "For schemas that are quick to check." } },
    run: async (invocation) => (await import("./check-answers.ts")).default(invocation),
  },
  {
    name: "pdf-text",
    summary: "Print the text of a PDF on standard input, as models receive it",
    words: [],
    flags: {},
    run: async () => (await import("./pdf-text.ts")).default(),
  },
  {
    name: "complete",
    summary: "Print completions of the last word, for a shell",
    words: [],
    takesMore: true,
    flags: {},
    run: async (invocation) => (await import("./complete.ts")).complete(invocation, await listed()),
  },
];

export const sections = async (): Promise<readonly Section[]> => [
  ...(await listed()),
  ["Started by other programs", internal],
];

export async function listed(): Promise<readonly Section[]> {
  const [{ allVerbs }, { commandOf }] = await Promise.all([
    import("../office/registry.ts"),
    import("./verb-command.ts"),
  ]);
  const ofVerbs = (await allVerbs()).map(([heading, verbs]): Section => [heading, verbs.map(commandOf)]);
  return [
    ["Serving", serving],
    ...ofVerbs,
    ["Checks, search and the ledger", others],
    ["Your own machine", signingIn],
    ["Help", words],
  ];
}

/** `names` is nothing, "config", "commands" or a command; gives the exit code. Throws UsageError for a command that is none. */
export async function printHelp(names: readonly string[]): Promise<number> {
  if (names[0] === "config" && names.length === 1) {
    const { configReference } = await import("../config/reference.ts");
    console.log(configReference());
    return 0;
  }
  const { commandReference, helpText, pageOf } = await import("./help.ts");
  if (names[0] === "commands") console.log(commandReference(await listed()));
  else console.log(names.length === 0 ? helpText(await sections()) : pageOf(await findCommand(names)));
  return 0;
}

/** `accounts create a@b.c` asks for "accounts create"; throws UsageError naming the nearest command. */
export async function findCommand(argv: readonly string[]): Promise<Command> {
  const [first = "", second = ""] = argv;
  const wanted = [3, 2, 1].map((count) => argv.slice(0, count).join(" "));
  const local = [...serving, ...others, ...signingIn, ...words, ...internal];
  const isWanted = ({ name }: Command): boolean => wanted.includes(name);
  let found = local.findLast(isWanted) ?? null;
  for (const name of wanted) found ??= await verbCommand(name);
  if (found !== null) return found;
  const names = (await sections()).flatMap(([, commands]) => commands.map(({ name }) => name));
  const verbs = names.filter((name) => name.startsWith(`${first} `));
  const typed = verbs.length > 0 && second !== "" ? wanted[1]! : first;
  const meant = nearest(typed, verbs.length > 0 ? verbs : names);
  const hint =
    meant === null ? `commands: ${(verbs.length > 0 ? verbs : names).join(", ")}` : `did you mean "${meant}"?`;
  throw new UsageError(`there is no command ${JSON.stringify(typed)}; ${hint}`);
}

async function verbCommand(name: string): Promise<Command | null> {
  const { findVerb } = await import("../office/registry.ts");
  const verb = await findVerb(name);
  return verb === null ? null : (await import("./verb-command.ts")).commandOf(verb);
}
