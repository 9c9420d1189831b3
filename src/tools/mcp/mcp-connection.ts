// One connection to an MCP server through the official client, which loads with the first one: it takes 28 MB.
import type { CallToolResult, Client, StreamableHTTPClientTransport, Tool } from "@modelcontextprotocol/client";
import type { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { version } from "../../../package.json" with { type: "json" };
import { logLines } from "../../core/child-log.ts";
import type { McpConfig } from "../../config/config.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { JsonScan } from "../../core/outside-json.ts";

/** npx may have to fetch the server first. */
const mcpConnectTimeoutMs = 30_000;
/** Bounds an answer on the wire; a model reads far less of it. */
const mcpAnswerMaxBytes = 16 * 1024 * 1024;
/** A server that leaves a ping unanswered for this long is gone. */
const mcpProbeTimeoutMs = 5_000;
const mcpFarewellMs = 1_000;

export type ListedTool = Readonly<{ name: string; description: string | null; parameters: Record<string, unknown> }>;

type Library = typeof import("@modelcontextprotocol/client");
type HttpTransport = StreamableHTTPClientTransport;

/** The server returned no result for the call; the message is for the model. */
export class CallFailed extends Error {
  override readonly name = "CallFailed";
}

export class McpConnection {
  readonly #library: Library;
  readonly #client: Client;
  readonly #transport: HttpTransport | StdioClientTransport;
  readonly #ended = Promise.withResolvers<string>();
  readonly #onTools: (tools: readonly ListedTool[]) => void;
  #isProbed = false;

  private constructor(
    library: Library,
    transport: HttpTransport | StdioClientTransport,
    onTools: (tools: readonly ListedTool[]) => void,
  ) {
    this.#library = library;
    this.#transport = transport;
    this.#onTools = onTools;
    this.#client = new library.Client(
      { name: "tollgate", version },
      {
        // The model judges results; compiling the schemas of all tools would gain little.
        jsonSchemaValidator: {
          getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
        },
        listChanged: {
          tools: {
            onChanged: (error, tools) => {
              if (error === null) this.#onTools((tools ?? []).map(listedTool));
              else this.#probe(error);
            },
          },
        },
      },
    );
    this.#client.onclose = () => this.#ended.resolve("it closed the connection");
    this.#client.onerror = (error) => this.#probe(error);
  }

  /**
   * Connects, shakes hands and lists the tools, which `onTools` gets now and at every change. Rejects when that fails,
   * takes too long or `closing` aborts, which also ends the connection later.
   */
  static async open(
    config: McpConfig,
    log: Log,
    closing: AbortSignal,
    onTools: (tools: readonly ListedTool[]) => void,
  ): Promise<McpConnection> {
    const library = await import("@modelcontextprotocol/client");
    const { reached } = config;
    const transport =
      reached.by === "http" ? httpTransport(reached, library) : await stdioTransport(reached, config.name, log);
    const connection = new McpConnection(library, transport, onTools);
    try {
      await connection.#client.connect(transport, { timeout: mcpConnectTimeoutMs, signal: closing });
      const { tools } = await connection.#client.listTools(undefined, {
        timeout: mcpConnectTimeoutMs,
        signal: closing,
      });
      onTools(tools.map(listedTool));
    } catch (error) {
      await connection.close();
      throw error;
    }
    closing.addEventListener("abort", () => connection.#ended.resolve("it is not needed any more"), { once: true });
    return connection;
  }

  /** Resolves with the reason once the connection is no longer usable; it must still be closed. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /**
   * Rejects with CallFailed for the server's own errors, after `timeoutMs`, and at once when `cancelSignal` aborts: in
   * the last two cases the server is asked to stop. Rejects with other errors for a broken connection.
   */
  async call(
    tool: string,
    given: Record<string, unknown>,
    timeoutMs: Ms,
    cancelSignal: AbortSignal,
  ): Promise<CallToolResult> {
    try {
      return await this.#client.callTool(
        { name: tool, arguments: given },
        { timeout: timeoutMs, signal: cancelSignal },
      );
    } catch (error) {
      const { ProtocolError, SdkError, SdkErrorCode } = this.#library;
      if (cancelSignal.aborted) throw new CallFailed("The call was cancelled.", { cause: error });
      if (error instanceof ProtocolError) throw new CallFailed(error.message, { cause: error });
      if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
        throw new CallFailed(`The call took longer than ${timeoutMs / 1000} seconds.`, { cause: error });
      }
      this.#probe(error as Error);
      throw error;
    }
  }

  /** Ends the session, and a child process by force if needed. */
  async close(): Promise<void> {
    if ("terminateSession" in this.#transport) {
      // A courtesy to a server that may be gone: neither its failure nor its silence matters.
      await Promise.race([this.#transport.terminateSession().catch(() => undefined), Bun.sleep(mcpFarewellMs)]);
    }
    await this.#client.close();
  }

  /** After a broken stream or an invalid line, only a ping shows whether the server is still there. */
  #probe(error: Error): void {
    if (this.#isProbed) return;
    this.#isProbed = true;
    this.#client
      .ping({ timeout: mcpProbeTimeoutMs })
      .catch(() => this.#ended.resolve(error.message))
      .finally(() => {
        this.#isProbed = false;
      });
  }
}

const listedTool = ({ name, description, inputSchema }: Tool): ListedTool => ({
  name,
  description: description ?? null,
  parameters: inputSchema,
});

type Reached<By> = Extract<McpConfig["reached"], { by: By }>;

function httpTransport({ url, apiKey }: Reached<"http">, { StreamableHTTPClientTransport }: Library): HttpTransport {
  const requestInit = apiKey === null ? {} : { headers: { authorization: `Bearer ${apiKey}` } };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit, fetch: boundedFetch });
}

/** Fetches the operator's address without a proxy from the environment, and breaks off an answer that is too long. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, proxy: false });
  // The stream of a server's own messages stays open for days. The client reads and drops each of its events.
  if (response.body === null || init?.method !== "POST") return response;
  let bytes = 0;
  const scan = new JsonScan();
  const decoder = new TextDecoder("latin1"); // for the scan: the JSON syntax is ASCII
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      const excess = scan.push(decoder.decode(chunk));
      if (bytes > mcpAnswerMaxBytes)
        controller.error(new Error(`its answer is larger than ${mcpAnswerMaxBytes} bytes`));
      else if (excess !== null) controller.error(new Error(`its answer ${excess}`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

async function stdioTransport(reached: Reached<"stdio">, server: string, log: Log): Promise<StdioClientTransport> {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const { command, args, environment } = reached;
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...environment }, // with PATH, HOME and the like; nothing else of ours, which may be secret
    stderr: "pipe",
    maxBufferSize: mcpAnswerMaxBytes,
  });
  if (transport.stderr !== null)
    logLines(
      transport.stderr,
      { says: "an MCP server says", saidMore: "an MCP server said more", fields: { server: server } },
      log,
    );
  return transport;
}
