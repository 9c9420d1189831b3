// What is asked for of keys: of the signed-in account's, or by an operator of another account's.
import type { KeyLimits } from "../../api/keys.ts";
import { get, post } from "../request.ts";

type NewKey = Readonly<{ name: string }> & KeyLimits;

const own = {
  list: () => get("/keys"),
  create: (key: NewKey) => post("/keys", key as { name: string }),
  rename: (id: number, name: string) => post(`/keys/${id}/name`, { name }),
  limit: (id: number, limits: KeyLimits) => post(`/keys/${id}/limits`, limits),
  revoke: (id: number) => post(`/keys/${id}/revoke`),
};
export type KeyActs = typeof own;

/** Null: the signed-in account's. */
export const keyActs = (account: number | null): KeyActs =>
  account === null
    ? own
    : {
        list: () => get(`/operator/accounts/${account}/keys`),
        create: (key) => post(`/operator/accounts/${account}/keys`, key as { name: string }),
        rename: (key, name) => post(`/operator/accounts/${account}/keys/name`, { key, name }),
        limit: (key, limits) => post(`/operator/accounts/${account}/keys/limits`, { key, ...limits }),
        revoke: (key) => post(`/operator/accounts/${account}/keys/revoke`, { key }),
      };
