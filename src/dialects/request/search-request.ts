// Reads a request's wishes for web search, in all the forms that the dialects have.
import { isRecord } from "../../core/is-record.ts";
import { type Call, searchFunctionName, type Tool, type WebSearch } from "../../core/types.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

/** A search without further wishes: `web_search: true`. */
export const anySearch: WebSearch = {
  usesMax: null,
  allowedDomains: [],
  blockedDomains: [],
  location: null,
  asFunction: false,
  forced: false,
};

type Definition = Readonly<Record<string, unknown>>;

/** A hosted web search tool, or `web_search_options`. */
export function readSearchTool(definition: Definition): WebSearch {
  const filters = record(definition.filters);
  const { max_uses: usesMax } = definition;
  return {
    ...anySearch,
    usesMax: typeof usesMax === "number" && usesMax >= 0 ? Math.floor(usesMax) : null,
    allowedDomains: texts(definition.allowed_domains ?? filters?.allowed_domains),
    blockedDomains: texts(definition.blocked_domains ?? filters?.blocked_domains),
    location: readLocation(record(definition.user_location)),
  };
}

/** A function tool that our search answers: named web_search, with a required string `query`. */
export function isSearchFunction({ name, parameters }: Tool): boolean {
  if (name !== searchFunctionName) return false;
  const { properties, required } = parameters;
  const query = record(record(properties)?.query);
  return query?.type === "string" && Array.isArray(required) && required.includes("query");
}

/** `hosted` tools and switches ask for it. A function of the client's own in `tools` wins: it knows the calls' name. */
export function searchOf(hosted: WebSearch | null, tools: readonly Tool[], forced = false): WebSearch | null {
  const asFunction = tools.some(isSearchFunction);
  if (hosted === null && !asFunction) return null;
  return { ...(hosted ?? anySearch), asFunction, forced };
}

export function queryOf(call: Call): string {
  const { query } = parseOutsideJson(call.arguments) as Definition;
  return typeof query === "string" ? query : "";
}

/** City, region and country, which chat's options nest one level deeper. */
function readLocation(given: Definition | null): string | null {
  const place = record(given?.approximate) ?? given;
  const words = [place?.city, place?.region, place?.country].filter((word) => typeof word === "string" && word !== "");
  return words.length === 0 ? null : words.join(", ");
}

const record = (value: unknown): Definition | null => (isRecord(value) ? value : null);

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === "string" && entry !== "") : [];
