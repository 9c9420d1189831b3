// Creates the parts that sign people in with the configured identity provider.
import type { Clock } from "../../core/clock.ts";
import type { ProviderParts } from "../parts.ts";
import { BegunSignIns } from "./begun-sign-ins.ts";
import { IdentityProvider, type ProviderOptions } from "./identity-provider.ts";
import type { EntryRules } from "./person.ts";

export type OidcOptions = EntryRules & Omit<ProviderOptions, "redirectUrl"> & Readonly<{ name: string }>;

/** The address to register at the provider. */
export const redirectUrlOf = (baseUrl: string): string => `${baseUrl}/sign-in/callback`;

export const openProvider = (
  options: OidcOptions,
  baseUrl: string,
  secret: Uint8Array,
  clock: Clock,
): ProviderParts => ({
  name: options.name,
  provider: new IdentityProvider({ ...options, redirectUrl: redirectUrlOf(baseUrl) }, clock),
  rules: options,
  begun: new BegunSignIns(secret),
});
