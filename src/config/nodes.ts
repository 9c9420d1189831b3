// [[nodes]]: one inference node each, and the nodes that flags name.
import { resolve } from "node:path";
import { Type } from "@sinclair/typebox";
import { ggufSlots, nodeSlotsDefault, nodeSlotsMax } from "../core/limits.ts";
import { show } from "../core/schema-errors.ts";
import type { Effort } from "../core/types.ts";
import type { Faults, FaultPlace } from "./faults.ts";
import {
  address,
  type Kind,
  listOf,
  ofMachine,
  path,
  plainAddress,
  readAddress,
  seconds,
  text,
  textLike,
  variables,
  webAddress,
  wholeOr,
  yesOrNo,
  yesOrNoOr,
} from "./kinds.ts";
import { apiKey, type FileTable, key, required, table } from "./rows.ts";

/** Loading a large model from a cold disk takes minutes. */
const managedStartTimeoutMs = 10 * 60_000;

/** What a request is about is not for a depth to change. */
const notDepth: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
]);
const DepthFields = Type.Record(Type.String(), Type.Unknown(), {
  description: "a table of fields of the node's request",
});
const depths = {
  off: DepthFields,
  minimal: DepthFields,
  low: DepthFields,
  medium: DepthFields,
  high: DepthFields,
  max: DepthFields,
} as const satisfies Record<Effort, typeof DepthFields>;

const depthTable: Kind<Readonly<Partial<Record<Effort, Readonly<Record<string, unknown>>>>>> = {
  schema: Type.Partial(Type.Object(depths, { additionalProperties: false }), {
    description: "a table such as off = { chat_template_kwargs = { enable_thinking = false } }",
  }),
  read(written: Record<string, object>, place) {
    for (const [effort, fields] of Object.entries(written)) {
      for (const field of Object.keys(fields).filter((field) => notDepth.has(field))) {
        place.at(effort, field).fault("must be absent: it is not for a depth to set");
      }
    }
    return written;
  },
};

const nodeModels: Kind<Readonly<Record<string, string>>> = {
  schema: Type.Record(Type.String(), text("the name the node knows the model by").schema, {
    minProperties: 1,
    description: 'a table of one or more models such as "core-3" = "qwen3-8b"',
  }),
  read: (written) => written,
};

/** True: all accounts share engines' prompt caches. "plan", "team": those of one do. "account", false: none do, at any price. */
export const sharePrefixCache = () => yesOrNoOr(["plan", "team", "account"]);
export type SharePrefixCache = boolean | "plan" | "team" | "account";

const everyModel: Readonly<Record<string, string>> = { "*": "*" };

/** Of a node that the gateway starts without saying where: a port that is free then. */
const managedAddress = "http://127.0.0.1:{port}/v1";

export const nodeTable = table(
  {
    name: required(
      "name",
      textLike("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "a name of up to 64 letters, digits, dots and dashes"),
      "Its name in the log, the metrics and the console.",
    ),
    /** OpenAI-compatible base address, without a trailing slash, e.g. http://127.0.0.1:8000/v1 */
    url: key("url", address(), {
      about: "An OpenAI-compatible address. Required, unless `command` is given.",
      otherwise: undefined,
    }),
    apiKey: apiKey("the node"),
    /** Null: by its load where its engine tells that, else the usual number. */
    slots: key("slots", wholeOr("auto", 1, nodeSlotsMax), {
      about:
        'Requests that it runs at once; the others wait in line. `"auto"`: as many as its engine runs without making them wait.',
      otherwise: null,
      shown: `\`"auto"\` if vLLM, SGLang or llama.cpp reports its load, else ${nodeSlotsDefault}`,
    }),
    /** Absent: as `[server]` says. */
    sharePrefixCache: key("share_prefix_cache", sharePrefixCache(), {
      about: "Which accounts share its engine's prompt cache; see Your own nodes.",
      otherwise: undefined,
      shown: "that of `[server]`",
    }),
    /** Absent: as its engine reports. */
    priorityScheduling: key("priority_scheduling", yesOrNo(), {
      about: "Whether its engine is sent how urgent requests are; see Your own nodes.",
      otherwise: undefined,
      shown: "as SGLang reports; else false",
    }),
    /**
     * Public model id -> the name the node knows it by; "*" = any id not named on this or another node. The name "*"
     * stands for the public id itself where the node lists that, else for the first model that the node lists.
     */
    models: key("models", nodeModels, {
      about: 'Model id = its name on the node; `"*"`: any id that no node names.',
      otherwise: everyModel,
      shown: '`{ "*" = "*" }`',
    }),
    /** Reasoning depth -> the fields of the node's request that set it, in place of those usual for its engine. */
    depth: key("depth", depthTable, {
      about: "Reasoning depth = fields of the node's request that set it.",
      otherwise: undefined,
      shown: "those of its engine",
    }),
    /** Names of fields, which pass as they come. */
    fields: key("fields", listOf(text("the name of a field"), "a list of one or more names of fields", 1), {
      about: "Further fields of requests that its engine knows.",
      otherwise: undefined,
      shown: "none",
    }),
    /** The node's names of models whose template opens a thought (`<think>`) that the node does not split off itself. */
    thinkTagOpened: key(
      "think_tag_opened",
      listOf(
        text("the name the node knows a model by"),
        'a list of models as the node names them, or ["*"] for all',
        1,
      ),
      { about: 'The node\'s names of models whose template opens `<think>`; `["*"]`: all.', otherwise: undefined },
    ),
    command: key("command", ofMachine(listOf(text("a text"), "a program and its arguments, as a list of texts", 1)), {
      about: 'The command that starts the node; `"{port}"` in it becomes a free port.',
      otherwise: undefined,
    }),
    environment: key("env", variables(), {
      about: "Variables of the program.",
      otherwise: {} as Readonly<Record<string, string>>,
      shown: "the gateway's, without its keys",
    }),
    folder: key("cwd", path("folder"), {
      about: "Working folder of `command`, from the file's folder.",
      otherwise: null,
      shown: "the gateway's",
    }),
    startTimeoutMs: key("start_timeout_seconds", seconds(1, 86_400), {
      about: "A node that does not answer within this time is restarted.",
      otherwise: managedStartTimeoutMs,
    }),
  },
  ({ url, command, environment, folder, startTimeoutMs, ...node }, place, given) => {
    checkManaged(given, place);
    return {
      ...node,
      url: url === undefined ? managedAddress : nodeAddress(url),
      /** How the gateway starts it; absent: somebody else does. Then the port in `url` may be "{port}": any free one. */
      ...(command === undefined ? {} : { managed: { command, environment, folder, startTimeoutMs } }),
    };
  },
);

/** One inference node. */
export type NodeConfig = Readonly<ReturnType<typeof nodeTable.read>>;
type ManagedConfig = Readonly<NonNullable<NodeConfig["managed"]>>;
/** A node that the gateway starts itself. */
export type ManagedNodeConfig = NodeConfig & Readonly<{ managed: ManagedConfig }>;

function checkManaged({ url, command, ...given }: FileTable, place: FaultPlace): void {
  const hasPort = Array.isArray(command) && command.some((word: string) => word.includes("{port}"));
  if (command === undefined) {
    if (url === undefined) place.at("url").fault(`is missing: must be ${webAddress}`);
    for (const key of ["env", "cwd", "start_timeout_seconds"].filter((key) => given[key] !== undefined)) {
      place.at(key).fault("must be absent where no command is given");
    }
  } else if (url === undefined && !hasPort) {
    place.at("command").fault('must have "{port}" where the port belongs, because there is no url');
  } else if (url !== undefined && hasPort) place.at("url").fault('must be absent where command has "{port}"');
}

/** Engines serve their API under /v1: an address without any path means that. */
function nodeAddress(address: string): string {
  return address !== "" && new URL(address).pathname === "/" ? `${address}/v1` : address;
}

// ---------------------------------------------------------------- flags

export type NodeFlags = Readonly<{
  node?: readonly string[];
  /** A model file that llama.cpp's server is started with. */
  gguf?: string;
  /** The built-in demo node, which the server starts, in the place of all others. */
  demo?: boolean;
}>;

/** Nodes of the command line stand in for those of the file; null: it names none. */
export function nodesOfFlags({ node = [], gguf, demo = false }: NodeFlags, faults: Faults): NodeConfig[] | null {
  if (demo) return [];
  const given = node.map((url, index) => nodeOfFlag(url, index, faults));
  if (gguf !== undefined) given.push(ggufNode(gguf));
  return given.length > 0 ? given : null;
}

/** `--node URL`: takes every model id that the file does not speak of, under whatever name the node serves. */
function nodeOfFlag(url: string, index: number, faults: Faults): NodeConfig {
  const address = readAddress(url);
  if (address === null) faults.addOfFlag(`--node must be ${plainAddress}, is ${show(url)}`);
  return {
    name: `node-${index + 1}`,
    url: nodeAddress(address ?? ""),
    apiKey: null,
    slots: null,
    models: everyModel,
  };
}

/** `--gguf FILE`: llama.cpp's own server on this machine, for every model id that no other node names. */
const ggufNode = (file: string): NodeConfig => ({
  name: "llama-server",
  url: managedAddress,
  apiKey: null,
  slots: ggufSlots,
  models: everyModel,
  managed: {
    command: ["llama-server", "--model", resolve(file), "--host", "127.0.0.1", "--port", "{port}", "--jinja"],
    environment: {},
    folder: null,
    startTimeoutMs: managedStartTimeoutMs,
  },
});
