// The tools of a responses request as a model sees them: functions with unique flat names. Namespaces become
// `<namespace>__<name>`, custom tools functions with one string parameter.
import { isRefusal } from "../../core/refusals.ts";
import { toolNameMaxLength } from "../../core/server-tool-name.ts";
import type { Refusal, Tool, ToolChoice, WebSearch } from "../../core/types.ts";
import { inputParameter } from "./custom-tool-input.ts";
import { malformed } from "../request/field.ts";
import { hostedToolNotRun, nothingToCall } from "../request/not-served.ts";
import { readSearchTool } from "../request/search-request.ts";

export type ToolOrigin = Readonly<{ kind: "function" | "custom"; namespace: string | null; name: string }>;

/** The tools that `tool_choice` leaves. */
export type ToolSelection = Readonly<{
  tools: readonly Tool[];
  toolChoice: ToolChoice;
  /** The hosted web search, if it is left. */
  webSearch: WebSearch | null;
  forcesSearch?: boolean;
}>;

type Definition = Readonly<Record<string, unknown>>;

/** OpenAI accepts 64, Anthropic 128. A namespace's name repeats for each tool: 200,000 characters took 30 s. */
const givenNameMaxLength = 256;
/** `_9999999`: no body has room for more tools. */
const suffixMaxLength = 8;
type Entry = Readonly<{ origin: ToolOrigin; tool: Omit<Tool, "name"> }>;
/** Tools after reading, as plain data. `anyGiven`: true even if all of them are left out. */
type GivenTools = Readonly<{ entries: readonly Entry[]; webSearch: WebSearch | null; anyGiven: boolean }>;

export class OfferedTools {
  static readonly none = new OfferedTools({ entries: [], webSearch: null, anyGiven: false });
  /** Function tools with flat names, in the client's order. */
  readonly tools: readonly Tool[];
  /** The hosted web search among them if it may go online, or null. */
  readonly webSearch: WebSearch | null;
  /** What another thread builds the same tools from. */
  readonly given: GivenTools;
  readonly #anyGiven: boolean;
  readonly #origins = new Map<string, ToolOrigin>();
  readonly #flatNames = new Map<string, string>();
  readonly #lastNumbers = new Map<string, number>();

  /** For tools after reading; see `read`. */
  constructor(given: GivenTools) {
    const { entries, webSearch, anyGiven } = given;
    this.given = given;
    this.webSearch = webSearch;
    this.#anyGiven = anyGiven;
    // Tools outside namespaces keep their names; those in namespaces give way.
    for (const namespaced of [false, true]) {
      for (const { origin } of entries) if ((origin.namespace !== null) === namespaced) this.#name(origin);
    }
    this.tools = entries.map(({ origin, tool }) => ({ name: this.flatName(origin), ...tool }));
  }

  /** Reads definitions, with positions for errors. Drops hosted tools that agents always send; the last one wins. */
  static read(given: readonly Readonly<{ at: string; definition: Definition }>[]): OfferedTools | Refusal {
    const entries = new Map<string, Entry>();
    let webSearch: WebSearch | null = null;
    for (const { at, definition } of given) {
      const { type } = definition;
      if (isWebSearch(definition)) {
        webSearch = definition.external_web_access === false ? null : readSearchTool(definition);
        continue;
      }
      const read = type === "namespace" ? readNamespace(definition, at) : readTool(definition, at, null);
      if (isRefusal(read)) return read;
      for (const entry of read) entries.set(keyOf(entry.origin), entry);
    }
    return new OfferedTools({ entries: [...entries.values()], webSearch, anyGiven: given.length > 0 });
  }

  /** The tool that the model called; an unknown name counts as a function. */
  origin(flatName: string): ToolOrigin {
    return this.#origins.get(flatName) ?? { kind: "function", namespace: null, name: flatName };
  }

  /** The model's name for the tool, even if it is no longer offered. */
  flatName(origin: ToolOrigin): string {
    return this.#flatNames.get(keyOf(origin)) ?? safeName(joinedName(origin));
  }

  /** Applies `tool_choice`. `allowed_tools` is a hard limit: the model does not see the others. */
  select(choice: unknown): ToolSelection | Refusal {
    const { tools, webSearch } = this;
    if (choice === "auto" || choice === "none") return { tools, webSearch, toolChoice: choice };
    if (choice === "required" && !this.#anyGiven) return malformed("tool_choice required needs tools");
    if (choice === "required") return this.#required(tools, webSearch, choice);
    if (typeof choice !== "object" || choice === null) return unknownChoice();
    const chosen = choice as Record<string, unknown>;
    if (chosen.type === "function" || chosen.type === "custom") return this.#named(chosen);
    if (chosen.type === "allowed_tools") return this.#allowed(chosen);
    if (typeof chosen.type !== "string") return unknownChoice();
    // A hosted tool: only the web search is offered to the model.
    if (webSearch === null || !isWebSearch(chosen)) return nothingToCall(JSON.stringify(chosen.type));
    return { tools, webSearch, toolChoice: "auto", forcesSearch: true };
  }

  #required(tools: readonly Tool[], webSearch: WebSearch | null, choice: string): ToolSelection | Refusal {
    if (tools.length > 0) return { tools, webSearch, toolChoice: "required" };
    // Without functions only hosted tools can be meant, and of those only the web search can be forced.
    return webSearch === null ? nothingToCall(choice) : { tools, webSearch, toolChoice: "auto", forcesSearch: true };
  }

  #named(chosen: Definition): ToolSelection | Refusal {
    if (typeof chosen.name !== "string") return malformed("tool_choice.name must be a string");
    const named = this.#find(chosen);
    if (named === null) return malformed(`tool_choice.name: there is no tool named ${chosen.name} in tools`);
    return { tools: this.tools, webSearch: this.webSearch, toolChoice: { named } };
  }

  #allowed(chosen: Definition): ToolSelection | Refusal {
    if (!Array.isArray(chosen.tools)) return malformed("tool_choice.tools must be an array");
    const names = new Set(chosen.tools.map((tool: unknown) => this.#find((tool ?? {}) as Definition)));
    const tools = this.tools.filter((tool) => names.has(tool.name));
    const searches = chosen.tools.some((tool: unknown) => isWebSearch((tool ?? {}) as Definition));
    const webSearch = searches ? this.webSearch : null;
    if (chosen.mode === "required") return this.#required(tools, webSearch, "allowed_tools");
    return { tools, webSearch, toolChoice: "auto" };
  }

  /** The flat name of the tool that `{type, name, namespace?}` refers to, or null. */
  #find({ type, name, namespace }: Definition): string | null {
    if (typeof name !== "string") return null;
    const kind = type === "custom" ? "custom" : "function";
    return this.#flatNames.get(keyOf({ kind, namespace: nullable(namespace), name })) ?? null;
  }

  #name(origin: ToolOrigin): void {
    const wanted = safeName(joinedName(origin));
    let name = wanted;
    while (this.#origins.has(name)) {
      const suffix = `_${this.#nextNumber(wanted.slice(0, toolNameMaxLength - suffixMaxLength))}`;
      name = wanted.slice(0, toolNameMaxLength - suffix.length) + suffix;
    }
    this.#origins.set(name, origin);
    this.#flatNames.set(keyOf(origin), name);
  }

  /** The next number of a name wanted more than once, by its beginning: naming n equal ones takes n steps. */
  #nextNumber(beginning: string): number {
    const number = (this.#lastNumbers.get(beginning) ?? 1) + 1;
    this.#lastNumbers.set(beginning, number);
    return number;
  }
}

const isWebSearch = ({ type }: Definition): boolean => typeof type === "string" && type.startsWith("web_search");
const keyOf = ({ kind, namespace, name }: ToolOrigin): string => JSON.stringify([kind, namespace, name]);
const joinedName = ({ namespace, name }: ToolOrigin): string => (namespace === null ? name : `${namespace}__${name}`);
const safeName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, toolNameMaxLength);
const nullable = (value: unknown): string | null => (typeof value === "string" ? value : null);

const unknownChoice = (): Refusal =>
  malformed(
    'tool_choice must be "none", "auto", "required" or an object with a type, such as {"type":"function","name":...}',
  );

const nameExpected = `must be a string of 1 to ${givenNameMaxLength} characters`;
const isName = (name: unknown): name is string =>
  typeof name === "string" && name !== "" && name.length <= givenNameMaxLength;

function readNamespace(definition: Definition, at: string): readonly Entry[] | Refusal {
  if (!isName(definition.name)) return malformed(`${at}.name ${nameExpected}`);
  if (!Array.isArray(definition.tools)) return malformed(`${at}.tools must be an array`);
  const entries: Entry[] = [];
  for (const [index, tool] of definition.tools.entries()) {
    if (typeof tool !== "object" || tool === null) return malformed(`${at}.tools[${index}] must be an object`);
    const read = readTool(tool as Definition, `${at}.tools[${index}]`, definition.name);
    if (isRefusal(read)) return read;
    entries.push(...read);
  }
  return entries;
}

/** One entry, or none for a hosted tool that an answer does not depend on. */
function readTool(definition: Definition, at: string, namespace: string | null): readonly Entry[] | Refusal {
  const { type, name } = definition;
  if (type !== "function" && type !== "custom") return hostedToolNotRun(definition, at) ?? [];
  if (!isName(name)) return malformed(`${at}.name ${nameExpected}`);
  const origin: ToolOrigin = { kind: type, namespace, name };
  if (type === "custom") return [{ origin, tool: customTool(definition) }];
  const parameters = definition.parameters ?? { type: "object", properties: {} };
  if (typeof parameters !== "object" || Array.isArray(parameters))
    return malformed(`${at}.parameters must be a JSON Schema object`);
  const tool = {
    description: nullable(definition.description),
    parameters: parameters as Record<string, unknown>,
    strict: typeof definition.strict === "boolean" ? definition.strict : null,
  };
  return [{ origin, tool }];
}

/** Nodes cannot hold a model to a grammar inside a string, so the grammar is described to the model. */
function customTool({ description, format }: Definition): Omit<Tool, "name"> {
  const { type, syntax, definition } = (format ?? {}) as Definition;
  const paragraphs = [
    ...(typeof description === "string" && description !== "" ? [description] : []),
    `Give the tool's whole input as plain text in the string \`${inputParameter}\`.`,
    ...(type === "grammar" && typeof definition === "string"
      ? [`The input must match this ${syntax === "regex" ? "regular expression" : "Lark grammar"}:\n${definition}`]
      : []),
  ];
  return {
    description: paragraphs.join("\n\n"),
    parameters: {
      type: "object",
      properties: { [inputParameter]: { type: "string" } },
      required: [inputParameter],
      additionalProperties: false,
    },
    strict: null,
  };
}
