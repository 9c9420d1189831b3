// The request log: all requests for operators, and its own refused or failed requests for each account.
import { namesOf } from "../../account/people/account-names.ts";
import { defaultKeyName, keyNumberOf } from "../../account/people/key-names.ts";
import { logFilterOf, logPlaceOf, requestRowsOf } from "../../account/request-row.ts";
import { distinctModels } from "../../core/catalog.ts";
import { anyRequest, type LogPage as StoredPage } from "../../core/request-log.ts";
import type { AccountId, KeyId } from "../../core/types.ts";
import { refusals } from "../../core/refusals.ts";
import type { ConsoleParts } from "../parts.ts";
import { limitOf } from "./paging.ts";
import { fail, type Failure, isFailure, type Route, route, sentence } from "./route.ts";

const nobody = "nobody";

type Parts = Pick<ConsoleParts, "requestLog" | "office" | "catalog" | "nodes">;

export function logRoutes(parts: Parts): Route[] {
  const { requestLog, office, catalog, nodes } = parts;
  const rowsOf = async (page: StoredPage) => {
    const named = page.rows.map(({ account }) => account);
    return requestRowsOf(page, await namesOf(office, named));
  };

  return [
    route("GET /operator/log", async ({ query }) => {
      const { account, key, after, limit, ...words } = query;
      const filter = logFilterOf(words);
      if (typeof filter === "string") return fail("invalid_request", sentence({ message: filter }));
      const asker = await askerOf(account?.trim() ?? "", key?.trim() ?? "");
      if (isFailure(asker)) return asker;
      const page = await requestLog.page({ ...filter, ...asker }, logPlaceOf(after), limitOf(limit));
      return {
        ...(await rowsOf(page)),
        models: distinctModels(catalog).map(({ id }) => id),
        nodes: (await nodes.states()).map(({ name }) => name),
        reasons: [...Object.keys(refusals), "left"],
      };
    }),

    route("GET /refusals", async ({ visitor, query }) => {
      const filter = { ...anyRequest, account: visitor.account.id, reason: "failed" };
      const page = await requestLog.page(filter, logPlaceOf(query.after), limitOf(query.limit));
      const { rows, next } = await rowsOf(page);
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
