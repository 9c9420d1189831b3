// One MCP server: keeps the connection, with growing pauses between attempts, and offers its tools.
import { setTimeout } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import type { McpConfig } from "../../config/config.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import { assert } from "../../core/assert.ts";
import { isRecord } from "../../core/is-record.ts";
import type { Log } from "../../core/log.ts";
import { serverToolName } from "../../core/server-tool-name.ts";
import type { Call, PlanId } from "../../core/types.ts";
import { CallFailed, McpConnection, type ListedTool } from "./mcp-connection.ts";
import { outcomeOf } from "./mcp-result.ts";
import type { OwnedTool, RunContext, ToolOutcome } from "../owned-tool.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

/** Concurrent calls of one server; others wait their turn, at most as long as a call may take. */
export const mcpCallsAtOnceMax = 64;
export const mcpCallsAccountMax = 16;
/** Tools of one server: they are part of every prompt. */
const mcpToolsMax = 256;
const mcpToolMaxBytes = 64 * 1024;
const mcpReconnectMinMs = 1_000;
const mcpReconnectMaxMs = 60_000;

assert(mcpReconnectMinMs < mcpReconnectMaxMs, "waits before another connection grow");
assert(mcpCallsAccountMax < mcpCallsAtOnceMax, "an account leaves turns to others: calls of MCP servers");

export class McpServer {
  readonly #config: McpConfig;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;
  #connection: McpConnection | null = null;
  #tools: readonly OwnedTool[] = [];
  readonly #turns = new AccountTurns(mcpCallsAtOnceMax, mcpCallsAccountMax);

  /** Begins to connect; never throws. */
  constructor(config: McpConfig, { clock, log }: Readonly<{ clock: Clock; log: Log }>) {
    this.#config = config;
    this.#clock = clock;
    this.#log = (level, event, fields) => log(level, event, { server: config.name, ...fields });
    this.#ended = this.#stayConnected();
  }

  /** What it offers now; nothing while it is away. */
  get tools(): readonly OwnedTool[] {
    return this.#tools;
  }

  isFor(model: string, plan: PlanId): boolean {
    const { models, plans } = this.#config;
    return (models === null || models.includes(model)) && (plans === null || plans.includes(plan));
  }

  /** Resolves when the connection is closed and a child process has ended. */
  close(): Promise<void> {
    this.#closing.abort();
    return this.#ended;
  }

  async #stayConnected(): Promise<void> {
    const closing = this.#closing.signal;
    let pauseMs = mcpReconnectMinMs;
    while (!closing.aborted) {
      const since = this.#clock.monotonic();
      const reason = await this.#oneConnection();
      if (closing.aborted) return;
      // A server that ends right after its start must not be restarted every second forever.
      if (this.#clock.monotonic() - since > mcpReconnectMaxMs) pauseMs = mcpReconnectMinMs;
      this.#log("warn", "an MCP server is not reachable", { reason, retrySeconds: pauseMs / 1000 });
      await setTimeout(pauseMs, undefined, { signal: closing }).catch(() => {}); // aborted: it ends at once
      pauseMs = Math.min(2 * pauseMs, mcpReconnectMaxMs);
    }
  }

  /** From connecting to the end of the connection; resolves with the reason for the end. */
  async #oneConnection(): Promise<string> {
    let connection: McpConnection | null = null;
    try {
      connection = await McpConnection.open(this.#config, this.#log, this.#closing.signal, (tools) =>
        this.#offer(tools),
      );
      this.#connection = connection;
      return await connection.ended;
    } catch (error) {
      return (error as Error).message;
    } finally {
      this.#connection = null;
      this.#tools = [];
      await connection?.close();
    }
  }

  #offer(listed: readonly ListedTool[]): void {
    const { name: server, tools: allowed } = this.#config;
    const offered = new Map<string, OwnedTool>();
    for (const tool of listed) {
      if (allowed !== null && !allowed.includes(tool.name)) continue;
      const name = serverToolName({ server, name: tool.name });
      const reason = this.#whyNotOffered(tool, name, offered);
      if (reason === null) offered.set(name, this.#ownedTool(tool, name));
      else this.#log("warn", "a tool of an MCP server is left out", { tool: JSON.stringify(tool.name), reason });
    }
    for (const name of allowed ?? []) {
      if (listed.some((tool) => tool.name === name)) continue;
      this.#log("warn", "an MCP server lacks a tool that the configuration names", { tool: JSON.stringify(name) });
    }
    this.#tools = [...offered.values()];
    this.#log("info", "an MCP server offers its tools", { tools: this.#tools.length });
  }

  #whyNotOffered(tool: ListedTool, name: string, offered: ReadonlyMap<string, OwnedTool>): string | null {
    if (offered.size >= mcpToolsMax) return `only the first ${mcpToolsMax} are offered`;
    if (offered.has(name)) return `another tool is named ${name}`;
    if (JSON.stringify(tool).length > mcpToolMaxBytes) return `its description is longer than ${mcpToolMaxBytes} bytes`;
    return null;
  }

  #ownedTool({ name: ownName, description, parameters }: ListedTool, name: string): OwnedTool {
    return {
      tool: { name, description, parameters, strict: null },
      serverTool: { server: this.#config.name, name: ownName },
      run: (call, context) => this.#run(ownName, call, context),
    };
  }

  async #run(tool: string, call: Call, { account, cancelSignal }: RunContext): Promise<ToolOutcome> {
    const { name: server, timeoutMs } = this.#config;
    const given = readArguments(call.arguments);
    if (given === null) return failed("The arguments of the call are not a JSON object.");
    const over = AbortSignal.any([cancelSignal, AbortSignal.timeout(timeoutMs)]);
    const turn = this.#connection === null ? null : await this.#turns.enter(account, over).catch(() => null);
    using _turn = turn;
    const connection = this.#connection;
    if (connection === null) return failed(`The server "${server}" cannot be reached now.`);
    if (turn === null) return failed(`The server "${server}" is busy. Try again later.`);
    try {
      return outcomeOf(await connection.call(tool, given, timeoutMs, cancelSignal));
    } catch (error) {
      if (error instanceof CallFailed) return failed(error.message);
      // Not for the model: it may contain addresses of the operator's network.
      this.#log("warn", "a call of an MCP server failed", { tool, reason: (error as Error).message });
      return failed(`The server "${server}" failed to answer.`);
    }
  }
}

const failed = (text: string): ToolOutcome => ({ text, failed: true, sources: [] });

/** A call without arguments may have an empty text. */
function readArguments(json: string): Record<string, unknown> | null {
  if (json.trim() === "") return {};
  let value: unknown;
  try {
    value = parseOutsideJson(json);
  } catch {
    return null; // the model that wrote it gets the error as its result
  }
  return isRecord(value) ? value : null;
}
