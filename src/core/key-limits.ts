// What a key's own limits refuse before a request is read: an expired key, and a client at an address that is not
// allowed.
import { noCounts } from "./count-limits.ts";
import { isAmong } from "./address.ts";
import { refuse } from "./refusals.ts";
import type { KeyLimits, Ms, Refusal } from "./types.ts";

/** A key without limits is unrestricted, like the first one. */
export const hasLimits = (limits: KeyLimits): boolean =>
  Object.values(limits).some((limit) => limit !== null && limit !== false);

export const noLimits: KeyLimits = {
  expiresAt: null,
  tokensPerDay: null,
  tokensPerMonth: null,
  models: null,
  addresses: null,
  forwardsUsers: false,
  endUserTokensPerDay: null,
  priority: null,
  priorityMax: null,
  costCenter: null,
  member: null,
  ...noCounts,
};

/** A key's limits after a change of them; null: it has none. */
export function changedLimits(had: KeyLimits | null, changed: Partial<KeyLimits>): KeyLimits | null {
  const limits = { ...(had ?? noLimits), ...changed };
  return hasLimits(limits) ? limits : null;
}

export const isExpired = ({ expiresAt }: Pick<KeyLimits, "expiresAt">, now: Ms): boolean =>
  expiresAt !== null && expiresAt <= now;

/** Null where nothing is refused. `address`: the client's, where known. */
export function refusedByLimits(limits: KeyLimits, now: Ms, address: string | null): Refusal | null {
  if (isExpired(limits, now)) return refuse("invalid_api_key");
  if (limits.addresses === null) return null;
  return isAmong(limits.addresses, address) ? null : refuse("address_not_allowed", { address: address ?? "there" });
}
