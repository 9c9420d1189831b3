// The configuration of a running server: the one that is in force, and what must stay secret of all that were.
import type { Config, Environment } from "../config/config.ts";

export class LiveConfig {
  #current: Config;
  #secrets: readonly string[];
  #keys: readonly string[];

  constructor(config: Config) {
    this.#current = config;
    this.#secrets = secretsOf(config);
    this.#keys = keysOf(config);
  }

  get current(): Config {
    return this.#current;
  }

  /** What the log must never say, whatever the text of an error holds: keys, and addresses of nodes. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  /** To be called before anything of another configuration is used. Requests to the nodes of before may still run. */
  adopting(next: Config): void {
    this.#secrets = [...new Set([...this.#secrets, ...secretsOf(next)])];
    this.#keys = [...new Set([...this.#keys, ...keysOf(next)])];
  }

  adopt(next: Config): void {
    this.#current = next;
  }

  /** For the nodes' programs: engines read many variables, but none of them is to see the gateway's keys. */
  withoutKeys(environment: Environment): Readonly<Record<string, string>> {
    const given = Object.entries(environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !this.#keys.includes(entry[1]),
    );
    return Object.fromEntries(given);
  }
}

const secretsOf = (config: Config): readonly string[] => [
  ...keysOf(config),
  ...config.nodes.flatMap(({ url }) => [url, URL.parse(url)?.host ?? url]),
];

function keysOf({ nodes, search, mcp, stripe, metricsToken }: Config): readonly string[] {
  const keys = [
    metricsToken,
    stripe?.secretKey,
    stripe?.webhookSecret,
    search !== null && "apiKey" in search ? search.apiKey : null,
    ...mcp.map(({ reached }) => (reached.by === "http" ? reached.apiKey : null)),
    ...nodes.map(({ apiKey }) => apiKey),
  ];
  return keys.filter((text): text is string => text !== null && text !== undefined && text !== "");
}
