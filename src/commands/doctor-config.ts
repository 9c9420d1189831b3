// Finds settings that a server accepts but that are probably mistakes.
import type { Config } from "../config/config.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { type Finding, ok, warning } from "./finding.ts";

const what = "configuration";
const secretInFile = /^\s*(?:api_key|client_secret|secret_key|webhook_secret|token)\s*=/m;

/** `text` and `mode` of the file; neither matters if there is none. */
export function configFindings(config: Config, text: string, mode: number): Finding[] {
  const { file, host, baseUrl, siteUrl, nodes, addressHeader, metricsToken, search, plans } = config;
  const found: Finding[] = [];
  if (file !== null && secretInFile.test(text) && (mode & 0o044) !== 0) {
    found.push(
      warning(what, `${file} holds a secret and others may read it: chmod 600, or name a variable (api_key_env)`),
    );
  }
  if (!namesThisMachine(host)) {
    if (baseUrl === null) {
      found.push(warning(what, `base_url is missing: refusals and the console name ${host} as this server's address`));
    }
    if (metricsToken === null) {
      found.push(
        warning(what, "/metrics answers this machine alone: set token_env in [metrics] to scrape it from another"),
      );
    }
  }
  const address = siteUrl ?? baseUrl;
  if (address?.startsWith("http://") === true && !namesThisMachine(new URL(address).hostname)) {
    found.push(warning(what, `${address} is not https: keys and passwords can be read on the way`));
  }
  if (address?.startsWith("https://") === true && addressHeader === null) {
    found.push(
      warning(
        what,
        "address_header of [console] is missing: behind a proxy all browsers count as one for sign-in tries",
      ),
    );
  }
  if (search !== null && plans.length > 0 && plans.every(({ searchesPerDay }) => searchesPerDay === 0)) {
    found.push(warning(what, "[search] is unused: no plan has searches_per_day"));
  }
  if (nodes.length === 0) {
    found.push(warning(what, "no nodes: serve looks for an engine on this machine, then starts the demo node"));
  }
  return found.length > 0 ? found : [ok(what, file ?? "no file, defaults")];
}
