// The configuration file, environment and flags as one checked value.

/** One inference node. */
export type NodeConfig = Readonly<{
  name: string;
  /** OpenAI-compatible base address, without a trailing slash, e.g. http://127.0.0.1:8000/v1 */
  url: string;
  apiKey: string | null;
  /** Requests the node runs at once; more wait in the gateway's line. */
  slots: number;
  /** Public model id -> the name the node knows it by; "*" = any id not named on this or another node. */
  models: Readonly<Record<string, string>>;
}>;
