// The API keys of the signed-in account.
import { KeyNotFound, type KeyView } from "../../account/people/account-keys.ts";
import { AccountError } from "../../account/people/accounts.ts";
import { apiKeyPrefix } from "../../account/people/keys.ts";
import { CommandError } from "../../core/expected-error.ts";
import type { Verb } from "../../office/verb.ts";
import { create, limit, list, rename, revoke, rotate } from "../../office/verbs/keys.ts";
import type { AccountId } from "../../core/types.ts";
import type { AccountKey, AccountKeys } from "../api/keys.ts";
import { ask } from "../ask.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { type Call, done, fail, type Failure, type Route, route, sentence } from "./route.ts";

export function keyRoutes(parts: ConsoleParts): Route[] {
  const asked = <Input, Result>(
    call: Call<"account", unknown, unknown>,
    verb: Verb<Input & Readonly<{ email: string }>, Result>,
    input: Input,
  ) => ask(parts, "account", call, verb, { ...input, email: call.visitor.account.email });

  return [
    route("GET /key", ({ visitor: { account } }) => {
      return { prefix: apiKeyPrefix, ending: account.keyEnding, created_at: timeOf(account.keyCreatedAt) };
    }),

    route("POST /key/regenerate", async (call) => {
      const created_at = timeOf(parts.clock.wall());
      const { api_key } = await asked(call, rotate, {});
      return { api_key, created_at };
    }),

    route("GET /keys", async (call) => listedKeys(parts, call.visitor.account.id, await asked(call, list, {}))),

    route("POST /keys", (call) =>
      orRefused(async () => {
        const { api_key, ...key } = await asked(call, create, call.body);
        return { ...keyOf(key), api_key };
      }),
    ),

    route("POST /keys/:id/name", (call) =>
      orRefused(async () => keyOf(await asked(call, rename, { ...call.body, id: call.id }))),
    ),

    route("POST /keys/:id/limits", (call) =>
      orRefused(async () => keyOf(await asked(call, limit, { ...call.body, id: call.id }))),
    ),

    route("POST /keys/:id/revoke", (call) =>
      orRefused(async () => {
        await asked(call, revoke, { id: call.id });
        return done;
      }),
    ),
  ];
}

/** With the addresses that they were used from last. */
export async function listedKeys(
  { requestLog }: Pick<ConsoleParts, "requestLog">,
  account: AccountId,
  keys: readonly KeyView[],
): Promise<AccountKeys> {
  const ids = keys.map(({ id }) => id);
  const addresses = await requestLog.lastAddresses(account, ids).catch(() => new Map<number, string>());
  return {
    keys: keys.map((key) => ({ ...keyOf(key), last_address: addresses.get(key.id) ?? null })),
    prefix: apiKeyPrefix,
  };
}

export const keyOf = ({ models, addresses, ...key }: KeyView): AccountKey => ({
  ...key,
  models: models === null ? null : [...models],
  addresses: addresses === null ? null : [...addresses],
});

export async function orRefused<Reply>(work: () => Promise<Reply>): Promise<Reply | Failure> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof KeyNotFound) return fail("not_found", "There is no such key.");
    if (thrown instanceof AccountError || thrown instanceof CommandError) return fail("conflict", sentence(thrown));
    throw thrown;
  }
}
