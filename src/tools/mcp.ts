// The tools of the operator's MCP servers, as tools that the gateway runs itself.
import type { Clock } from "../clock.ts";
import type { McpConfig } from "../config.ts";
import type { Log } from "../log.ts";
import type { Model, PlanId } from "../types.ts";
import { McpServer } from "./mcp-server.ts";
import type { OwnedTool } from "./owned-tool.ts";

/** All servers of the configuration. One that is away has no tools until it is back. */
export class McpTools {
  readonly #servers: readonly McpServer[];

  /** Connects in the background: no server keeps the gateway from starting. */
  constructor(configs: readonly McpConfig[], parts: Readonly<{ clock: Clock; log: Log }>) {
    this.#servers = configs.map((config) => new McpServer(config, parts));
  }

  /** The tools that a request for this model may use on this plan, named `server__tool`. */
  toolsFor(model: Model, plan: PlanId): readonly OwnedTool[] {
    return this.#servers.flatMap((server) => (server.isFor(model.id, plan) ? server.tools : []));
  }

  /** Ends all connections and the servers that run as our children; calls that are under way fail. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }
}
