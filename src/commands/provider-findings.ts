// Checks the configured identity provider, as a sign-in would.
import { addressesOf, type Config } from "../config/config.ts";
import { IdentityProvider, ProviderAway } from "../console/oidc/identity-provider.ts";
import { redirectUrlOf } from "../console/oidc/open-provider.ts";
import { systemClock } from "../core/clock.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const what = "sign-in";

export async function providerFindings(config: Config): Promise<readonly Finding[]> {
  const { oidc, baseUrl } = config;
  if (oidc === null) return [];
  const { name, issuer, allowedDomains, allowedGroups, clientSecret } = oidc;
  const redirectUrl = redirectUrlOf(addressesOf(config, config.port).baseUrl);
  const found: Finding[] = [];
  try {
    await new IdentityProvider({ ...oidc, redirectUrl }, systemClock).look();
    const client = clientSecret === null ? ", a public client" : "";
    found.push(ok(what, `${name} at ${issuer}${client}; registered there must be ${redirectUrl}`));
  } catch (thrown) {
    if (!(thrown instanceof ProviderAway)) throw thrown;
    found.push(problem(what, `${name} at ${issuer}: ${thrown.message}`));
  }
  if (allowedDomains.length + allowedGroups.length === 0) {
    found.push(warning(what, "allowed_domains and allowed_groups are missing: everyone at the provider may sign in"));
  }
  if (issuer.startsWith("http:") && !namesThisMachine(new URL(issuer).hostname)) {
    found.push(warning(what, `${issuer} is not https: an attacker on the network can sign in as anyone`));
  }
  if (baseUrl === null) {
    found.push(warning(what, `base_url is missing: the provider sends people back to ${redirectUrl}`));
  }
  return found;
}
