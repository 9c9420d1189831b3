// What of its configuration a running server looks up whenever it needs it, and what must stay secret of all that it had.
import type { Config, Environment } from "../config/config.ts";
import type { LiveValues } from "../config/running.ts";

export class LiveConfig {
  readonly values: LiveValues;
  #secrets: readonly string[];
  #keys: readonly string[];

  constructor(config: Config) {
    const { stopGraceMs, corsOrigins, logLevel, metricsToken, endUserHeader, lowBalanceTokens, managedSettings } =
      config;
    const notices = { lowBalanceTokens, managedSettings };
    this.values = { stopGraceMs, corsOrigins, logLevel, metricsToken, endUserHeader, ...notices };
    this.#secrets = secretsOf(config);
    this.#keys = config.keys;
  }

  /** What the log must never say, whatever the text of an error holds: keys, and addresses of nodes. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  /** To be called before anything of another configuration is used. Requests to the nodes of before may still run. */
  adopting(next: Config): void {
    this.#secrets = [...new Set([...this.#secrets, ...secretsOf(next)])];
    this.#keys = [...new Set([...this.#keys, ...next.keys])];
  }

  /** For the nodes' programs: engines read many variables, but none of them is to see the gateway's keys. */
  withoutKeys(environment: Environment): Readonly<Record<string, string>> {
    const given = Object.entries(environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !this.#keys.includes(entry[1]),
    );
    return Object.fromEntries(given);
  }
}

const secretsOf = ({ keys, nodes }: Config): readonly string[] => [
  ...keys,
  ...nodes.flatMap(({ url }) => [url, URL.parse(url)?.host ?? url]),
];
