// The request log: all requests for operators, and its own refused or failed requests for each account.
import { namesOf } from "../../account/people/account-names.ts";
import { defaultKeyName, keyNumberOf } from "../../account/people/key-names.ts";
import {
  logFilterOf,
  logPlaceOf,
  type RequestRow,
  type RequestRows,
  requestRowsOf,
} from "../../account/request-row.ts";
import { distinctModels } from "../../core/catalog.ts";
import { csvLine } from "../../core/csv.ts";
import {
  anyRequest,
  type LogFilter as Filter,
  type LogPage as StoredPage,
  type LogPlace,
} from "../../core/request-log.ts";
import type { AccountId, KeyId } from "../../core/types.ts";
import { refusals } from "../../core/refusals.ts";
import type { LogFilter } from "../api/request-log.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { csvReply, fileReply } from "../reply.ts";
import { limitOf } from "./paging.ts";
import { fail, type Failure, isFailure, type Route, route, sentence } from "./route.ts";

const nobody = "nobody";

type Parts = Pick<ConsoleParts, "requestLog" | "office" | "catalog" | "nodes" | "clock">;

const exportPageRows = 1_000;

/** As `tollgate requests --json` names them. */
const columns = [
  ...(["time", "request_id", "account", "key", "address", "endpoint", "model", "asked_model", "node"] as const),
  ...(["priority", "status", "reason", "cause", "wait_ms", "sent_ms", "first_token_ms", "duration_ms"] as const),
  ...([
    "input",
    "cached_input",
    "output",
    "reasoning",
    "billed_tokens",
    "cost_usd",
    "tags",
    "cost_center",
    "more",
  ] as const),
];

export function logRoutes(parts: Parts): Route[] {
  const { requestLog, office, catalog, nodes } = parts;
  const rowsOf = (page: StoredPage) => namedRows(office, page);

  return [
    route("GET /operator/log", async ({ query }) => {
      const { after, limit, ...words } = query;
      const filter = await filterOf(words);
      if (isFailure(filter)) return filter;
      const page = await requestLog.page(filter, logPlaceOf(after), limitOf(limit));
      return {
        ...(await rowsOf(page)),
        models: distinctModels(catalog).map(({ id }) => id),
        nodes: (await nodes.states()).map(({ name }) => name),
        reasons: [...Object.keys(refusals), "left"],
      };
    }),

    ...exportRoutes(parts, filterOf),

    route("GET /refusals", async ({ visitor, query }) => {
      const filter = { ...anyRequest, account: visitor.account.id, reason: "failed" };
      const { rows, next } = await rowsOf(await requestLog.page(filter, logPlaceOf(query.after), limitOf(query.limit)));
      return {
        rows: rows.map(({ time, request_id, endpoint, model, key, status, reason, why, more }) => ({
          time,
          request_id,
          endpoint,
          model,
          key: key ?? defaultKeyName,
          status,
          reason: reason ?? "",
          why: why ?? "",
          more,
        })),
        next,
      };
    }),
  ];

  async function filterOf({ account, key, ...words }: LogFilter): Promise<Filter | Failure> {
    const filter = logFilterOf(words);
    if (typeof filter === "string") return fail("invalid_request", sentence({ message: filter }));
    const asker = await askerOf(account?.trim() ?? "", key?.trim() ?? "");
    return isFailure(asker) ? asker : { ...filter, ...asker };
  }

  /** The account and key to filter by; the name of a key needs an account. */
  async function askerOf(
    email: string,
    key: string,
  ): Promise<Readonly<{ account: AccountId | null; key: KeyId | null }> | Failure> {
    if (email === "") {
      const id = key === "" ? null : keyNumberOf(key);
      if (id === undefined) return fail("invalid_request", "Name the account that the key belongs to.");
      return { account: null, key: id };
    }
    if (email === nobody) return { account: 0, key: null };
    const [account, names] = await office.read(async ({ accounts, accountKeys }) => {
      const found = await accounts.recordOf(email);
      return [found, found === null ? [] : await accountKeys.namesOf(found.id)] as const;
    });
    if (account === null) return fail("not_found", `There is no account ${email}.`);
    if (key === "") return { account: account.id, key: null };
    const named = names.find(({ name }) => name === key)?.id ?? keyNumberOf(key);
    return named === undefined
      ? fail("not_found", `${account.email} has no key ${key}.`)
      : { account: account.id, key: named };
  }
}

async function namedRows(office: Parts["office"], page: StoredPage): Promise<RequestRows> {
  const named = page.rows.map(({ account }) => account);
  return requestRowsOf(page, await namesOf(office, named));
}

function exportRoutes(
  { requestLog, office, clock }: Parts,
  filterOf: (query: LogFilter) => Promise<Filter | Failure>,
): Route[] {
  return [
    route("GET /operator/log.csv", ({ query }) =>
      exported(query, "csv", csvLine(columns), (row) => csvLine(columns.map((column) => row[column]))),
    ),

    route("GET /operator/log.json", ({ query }) =>
      exported(query, "json", "[", (row, isFirst) => `${isFirst ? "" : ","}\n${JSON.stringify(row)}`, "\n]\n"),
    ),
  ];

  /** Reads page by page as the browser takes it, so that millions of rows need no memory. */
  async function exported(
    query: LogFilter,
    form: "csv" | "json",
    head: string,
    textOf: (row: RequestRow, isFirst: boolean) => string,
    end = "",
  ): Promise<Response | Failure> {
    const filter = await filterOf(query);
    if (isFailure(filter)) return filter;
    const encoder = new TextEncoder();
    let place: LogPlace | null = null;
    let isFirst = true;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(head)),
      async pull(controller) {
        // A search that gives up after a while goes on with the next page.
        for (let taken = false; !taken;) {
          const page = await requestLog.page(filter, place, exportPageRows);
          const { rows } = await namedRows(office, page);
          const text = rows.map((row, at) => textOf(row, isFirst && at === 0)).join("");
          if (rows.length > 0) isFirst = false;
          taken = rows.length > 0 || page.next === null;
          if (taken) controller.enqueue(encoder.encode(page.next === null ? text + end : text));
          if (page.next === null) controller.close();
          place = page.next;
        }
      },
    });
    const name = `requests-${timeOf(clock.wall()).slice(0, 10)}`;
    return form === "csv" ? csvReply(body, name) : fileReply(body, `${name}.json`, "application/json");
  }
}
