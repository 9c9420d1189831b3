// [[mcp]]: one MCP server each, whose tools models may call.
import { planId } from "./plans.ts";
import type { FaultPlace } from "./faults.ts";
import { anyText, endpoint, listOf, names, seconds, text, textLike, variables } from "./kinds.ts";
import { apiKey, type FileTable, key, required, table } from "./rows.ts";

const mcpCallTimeoutMs = 60_000;

export const mcpTable = table(
  {
    // Its tools are named NAME__TOOL, and engines take at most 64 characters.
    name: required(
      "name",
      textLike("^[A-Za-z0-9](?:[A-Za-z0-9-]{0,22}[A-Za-z0-9])?$", "a name of up to 24 letters, digits and dashes"),
      "Its tools are called `name__tool`.",
    ),
    url: key("url", endpoint(), {
      about: "A server with streamable HTTP. Either this or `command`.",
      otherwise: null,
    }),
    apiKey: apiKey("the server"),
    command: key("command", text("a program"), {
      about: "A server that runs as a child, over its standard input and output.",
      otherwise: null,
    }),
    args: key("args", listOf(anyText(), "a list of texts"), {
      about: "Arguments of `command`.",
      otherwise: [] as readonly string[],
      shown: "none",
    }),
    environment: key("env", variables(), {
      about: "Variables of the program.",
      otherwise: {} as Readonly<Record<string, string>>,
      shown: "PATH and HOME",
    }),
    /** Who may use it: null = every model, every plan, every tool of the server. */
    models: key("models", names("model ids"), { about: "Models that may use it.", otherwise: null, shown: "all" }),
    plans: key("plans", listOf(planId(), "a list of one or more plans", 1), {
      about: "Plans that may use it.",
      otherwise: null,
      shown: "all",
    }),
    tools: key("tools", names("names of the server's tools"), {
      about: "Its tools that may be used.",
      otherwise: null,
      shown: "all",
    }),
    /** The longest that one call may take. */
    timeoutMs: key("timeout_seconds", seconds(1, 3_600), { about: "Limit of one call.", otherwise: mcpCallTimeoutMs }),
  },
  ({ url, apiKey, command, args, environment, ...server }, place, given) => {
    checkReached(given, place);
    const reached: Reached =
      command === null ? { by: "http", url: url ?? "", apiKey } : { by: "stdio", command, args, environment };
    return { ...server, reached };
  },
);

/** One MCP server. */
export type McpConfig = Readonly<ReturnType<typeof mcpTable.read>>;

type Reached =
  | Readonly<{ by: "http"; url: string; apiKey: string | null }>
  | Readonly<{ by: "stdio"; command: string; args: readonly string[]; environment: Readonly<Record<string, string>> }>;

function checkReached({ url, command, ...given }: FileTable, place: FaultPlace): void {
  if ((url === undefined) === (command === undefined)) place.fault("must have either url or command");
  for (const key of url === undefined ? ["api_key", "api_key_env"] : ["args", "env"]) {
    if (given[key] === undefined) continue;
    place.at(key).fault(`must be absent where ${url === undefined ? "command" : "url"} is given`);
  }
}
