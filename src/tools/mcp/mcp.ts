// The tools of the operator's MCP servers, as tools that the gateway runs itself.
import type { Clock } from "../../core/clock.ts";
import type { McpConfig } from "../../config/config.ts";
import type { Log } from "../../core/log.ts";
import type { Model, PlanId } from "../../core/types.ts";
import { McpServer } from "./mcp-server.ts";
import type { OwnedTool } from "../owned-tool.ts";

type McpParts = Readonly<{ clock: Clock; log: Log }>;

/** All configured servers. One that is away has no tools until it is back. */
export class McpTools {
  readonly #parts: McpParts;
  /** By configuration, in the order of the file. */
  #servers = new Map<string, McpServer>();

  /** Connects in the background, so that no server delays the gateway's start. */
  constructor(configs: readonly McpConfig[], parts: McpParts) {
    this.#parts = parts;
    this.reconfigure(configs);
  }

  /** Connects to new and changed servers and ends the others; unchanged ones notice nothing. */
  reconfigure(configs: readonly McpConfig[]): void {
    const before = this.#servers;
    this.#servers = new Map();
    for (const config of configs) {
      const key = JSON.stringify(config);
      this.#servers.set(key, before.get(key) ?? new McpServer(config, this.#parts));
      before.delete(key);
    }
    for (const server of before.values()) void server.close();
  }

  /** The tools that a request for this model may use on this plan, named `server__tool`. */
  toolsFor(model: Model, plan: PlanId): readonly OwnedTool[] {
    return [...this.#servers.values()].flatMap((server) => (server.isFor(model.id, plan) ? server.tools : []));
  }

  /** Ends all connections and the servers that run as our children. Running calls fail. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
  }
}
