// [search]: what `web_search` finds with, a service or a folder of the operator's files.
import { searchTimeoutMs } from "../core/limits.ts";
import type { Ms } from "../core/types.ts";
import type { FaultPlace } from "./faults.ts";
import { address, mapped, oneOf, path, seconds, webAddress, whole } from "./kinds.ts";
import { apiKey, type FileTable, key, required, table, type TableKind } from "./rows.ts";

/** Results whose pages are read: snippets of 150 characters seldom hold the answer. Tavily sends excerpts itself. */
const searchPagesDefault = { searxng: 3, brave: 3, tavily: 0 } as const;
const searchPagesMax = 10;
const searchRescanIntervalMs = 60_000;

/** A service that searches the web. */
export type WebSearchConfig = Readonly<{
  provider: "searxng" | "brave" | "tavily";
  /** Null = the service's own public address; never null for searxng. */
  url: string | null;
  /** Never null for brave and tavily. */
  apiKey: string | null;
  timeoutMs: Ms;
  /** How many of the first results are read whole, so that a model sees more than a snippet. */
  pages: number;
}>;

/** A folder of the operator's files, searched by an index of our own. */
export type FolderSearchConfig = Readonly<{
  provider: "local";
  folder: string;
  /** A file's address is this and its path; citations need an http(s) address. */
  baseUrl: string;
  rescanIntervalMs: Ms;
}>;

export type SearchConfig = WebSearchConfig | FolderSearchConfig;

/** An address that resolves nowhere (RFC 6761), for who has none: a citation must have one. */
const folderUrlDefault = "https://files.invalid";

const services = ["searxng", "brave", "tavily"] as const satisfies readonly WebSearchConfig["provider"][];
const provider = mapped(oneOf([...services, "local", "none"]), (word) => word as Exclude<typeof word, "none">);

const providerTable = table(
  {
    provider: required("provider", provider, "The service that `web_search` uses."),
    url: key("url", address(), {
      about: "The address of your SearXNG, or another address of Brave or Tavily.",
      otherwise: null,
      shown: "the service's own",
    }),
    apiKey: apiKey("the service"),
    timeoutMs: key("timeout_seconds", seconds(1, 60), { about: "Limit of one search.", otherwise: searchTimeoutMs }),
    pages: key("fetch_pages", whole(0, searchPagesMax), {
      about: "How many of the first results Tollgate reads completely.",
      otherwise: null,
      shown: `${searchPagesDefault.searxng}; ${searchPagesDefault.tavily} with Tavily`,
    }),
    folder: key("folder", path("folder"), {
      about: 'For `"local"`: the folder whose files are searched.',
      otherwise: null,
    }),
    baseUrl: key("base_url", address(), {
      about: 'For `"local"`: the address under which files are cited.',
      otherwise: folderUrlDefault,
      shown: `\`${folderUrlDefault}\``,
    }),
    rescanIntervalMs: key("rescan_seconds", seconds(1, 86_400), {
      about: "Time between two scans for changed files.",
      otherwise: searchRescanIntervalMs,
    }),
  },
  ({ provider, url, apiKey, timeoutMs, pages, ...ofFolder }, place, given): SearchConfig => {
    for (const name of (provider === "local" ? keysOfWebSearch : keysOfFolderSearch).filter((name) => name in given)) {
      place.at(name).fault(`must be absent for provider "${provider}"`);
    }
    if (provider === "local") {
      const { folder, baseUrl, rescanIntervalMs } = ofFolder;
      if (folder === null) place.at("folder").fault('is missing: provider "local" searches a folder of files');
      return { provider, folder: folder ?? "", baseUrl, rescanIntervalMs };
    }
    checkService(provider, given, apiKey, place);
    return { provider, url, apiKey, timeoutMs, pages: pages ?? searchPagesDefault[provider] };
  },
);

/** With the provider "none" the other keys are ignored, so that search can be turned off for a while without removing them. */
export const searchTable: TableKind<SearchConfig | null> = {
  ...providerTable,
  read: (written, place) => (written["provider"] === "none" ? null : providerTable.read(written, place)),
};

/** Keys that mean nothing to the provider are a fault, since their author expects something of them. */
const keysOfWebSearch = ["url", "api_key", "api_key_env", "timeout_seconds", "fetch_pages"] as const;
const keysOfFolderSearch = ["folder", "base_url", "rescan_seconds"] as const;

function checkService(
  provider: WebSearchConfig["provider"],
  given: FileTable,
  apiKey: string | null,
  place: FaultPlace,
): void {
  if (provider === "searxng" && given["url"] === undefined) {
    place.at("url").fault(`is missing: must be ${webAddress} for provider "searxng"`);
  }
  if (provider !== "searxng" && apiKey === null) {
    place.at("api_key_env").fault(`is missing: provider "${provider}" needs api_key_env or api_key`);
  }
}
