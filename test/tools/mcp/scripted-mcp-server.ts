// An MCP server that does what a test tells it, in JSON-RPC written out by hand: the protocol's own library would mend
// what is meant to be wrong. It notes what it was asked. As a program it speaks over standard input and output and
// writes its notes to the file that it is given.
import { appendFileSync } from "node:fs";

export type Message = Readonly<{
  id?: number | string;
  method?: string;
  params?: Readonly<Record<string, unknown>>;
}>;
type Reply = Readonly<Record<string, unknown>>;

export class ScriptedMcpServer {
  /** Methods in the order in which they came; a call with its tool. */
  readonly notes: string[] = [];
  tools: string[] = ["echo", "hang", "huge", "wrong", "odd.name/v1", "die"];
  readonly #note: (note: string) => void;

  constructor(note: (note: string) => void = () => {}) {
    this.#note = note;
  }

  /** What is sent back; null: nothing. */
  answer({ id, method = "", params = {} }: Message): Reply | null {
    const { name, arguments: given } = params as { name?: string; arguments?: Record<string, unknown> };
    const note = name === undefined ? method : `${method} ${name}`;
    this.notes.push(note);
    this.#note(note);
    if (id === undefined) return null;
    const result = this.#result(method, name, given ?? {}, params);
    if (result === null) return null;
    return "code" in result ? { jsonrpc: "2.0", id, error: result } : { jsonrpc: "2.0", id, result };
  }

  #result(method: string, tool: string | undefined, given: Reply, params: Reply): Reply | null {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: params["protocolVersion"],
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "scripted", version: "1" },
        };
      case "ping":
        return {};
      case "tools/list":
        return {
          tools: this.tools.map((name) => ({ name, description: `Does ${name}`, inputSchema: { type: "object" } })),
        };
      case "tools/call":
        return this.#called(tool, given);
      default:
        return { code: -32_601, message: "Method not found" };
    }
  }

  #called(tool: string | undefined, given: Reply): Reply | null {
    switch (tool) {
      case "hang":
        return null;
      case "huge":
        return { content: [{ type: "text", text: "x".repeat(300_000) }] };
      case "wrong":
        return { code: -32_602, message: "No such city" };
      case "odd.name/v1":
        return { content: [{ type: "text", text: "it has no city" }], isError: true };
      case "die":
        process.exit(3);
      default:
        return { content: [{ type: "text", text: JSON.stringify(given) }] };
    }
  }
}

/** The notification that makes clients list the tools again. */
const toolsChanged = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });

if (import.meta.main) {
  const notesFile = process.argv[2]!;
  const isStubborn = process.argv.includes("stubborn");
  const note = (text: string) => appendFileSync(notesFile, `${text}\n`);
  if (isStubborn) process.on("SIGTERM", () => note("SIGTERM"));
  note(`started ${process.pid} ${process.env["GREETING"] ?? ""} ${process.env["SECRET_OF_THE_GATEWAY"] ?? ""}`);
  process.stderr.write(`it starts\n${"long ".repeat(1_000)}\n`);
  process.stdout.write("this line is no message\n");
  const server = new ScriptedMcpServer(note);
  let rest = "";
  for await (const chunk of process.stdin) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const message = JSON.parse(line) as Message;
      if (message.method === "tools/call" && message.params?.["name"] === "echo") {
        server.tools = ["echo", "hang", "later"];
        process.stdout.write(`${toolsChanged}\n`);
      }
      const reply = server.answer(message);
      if (reply !== null) process.stdout.write(`${JSON.stringify(reply)}\n`);
    }
  }
  note("end of input");
  if (isStubborn) setInterval(() => {}, 1_000);
}
