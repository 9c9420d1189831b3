// MCP servers over both transports: the protocol's reference server if it is installed, and a scripted one for what
// servers do wrong.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { McpConfig } from "../../../src/config/config.ts";
import { mcpCallsAccountMax, mcpCallsAtOnceMax } from "../../../src/tools/mcp/mcp-server.ts";
import { mcpResultTextMaxLength } from "../../../src/tools/mcp/mcp-result.ts";
import { freePort } from "../../../src/http/free-port.ts";
import { McpTools } from "../../../src/tools/mcp/mcp.ts";
import type { OwnedTool, ToolOutcome } from "../../../src/tools/owned-tool.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { missing } from "../../fixtures/optional.ts";
import { type Message, ScriptedMcpServer } from "./scripted-mcp-server.ts";

setDefaultTimeout(120_000);

const model = embeddedCatalog().models.get("core-3")!;
const other = embeddedCatalog().models.get("core-2-lite")!;
const config: McpConfig = {
  name: "srv",
  reached: { by: "http", url: "http://127.0.0.1:9/mcp", apiKey: null },
  models: null,
  plans: null,
  tools: null,
  timeoutMs: 300_000, // longer than any test: what ends a call is not this
};

type Line = Readonly<{ event: string; fields: Readonly<Record<string, unknown>> }>;
let folder: string;
let lines: Line[];
let opened: McpTools[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-mcp-"));
  lines = [];
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((tools) => tools.close()));
  await rm(folder, { recursive: true, force: true });
});

function open(configs: readonly McpConfig[], clock: Clock = systemClock): McpTools {
  const tools = new McpTools(configs, { clock, log: (_, event, fields = {}) => void lines.push({ event, fields }) });
  opened.push(tools);
  return tools;
}
const names = (tools: McpTools): string[] => tools.toolsFor(model, "free").map(({ tool }) => tool.name);
const offered = (tools: McpTools, name: string): Promise<OwnedTool> =>
  eventually(
    `${name} is offered`,
    async () => {
      return tools.toolsFor(model, "free").find(({ tool }) => tool.name === name) ?? null;
    },
    30_000,
  );
/** Signal 0 asks whether the process is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
const never = new AbortController().signal;
const run = (tool: OwnedTool, given: unknown, cancelSignal: AbortSignal = never, account = 1): Promise<ToolOutcome> =>
  tool.run(
    { id: "call_1", name: tool.tool.name, arguments: typeof given === "string" ? given : JSON.stringify(given) },
    {
      account,
      cancelSignal,
    },
  );

// ---------------------------------------------------------------- the reference server

const everything = join(
  import.meta.dir,
  "../../clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js",
);
const isMissing = missing(
  "@modelcontextprotocol/server-everything",
  existsSync(everything),
  "run npm ci in test/clients",
);

describe.skipIf(isMissing)("the protocol's reference server", () => {
  const stdio = { by: "stdio", command: process.execPath, args: [everything, "stdio"], environment: {} } as const;

  for (const transport of ["stdio", "streamable HTTP"] as const) {
    test(`is listed, called and cancelled over ${transport}`, async () => {
      const port = freePort("127.0.0.1");
      const child =
        transport === "stdio"
          ? null
          : Bun.spawn([process.execPath, everything, "streamableHttp"], {
              env: { ...process.env, PORT: String(port) },
              stdout: "ignore",
              stderr: "ignore",
            });
      try {
        const reached =
          child === null ? stdio : ({ by: "http", url: `http://127.0.0.1:${port}/mcp`, apiKey: null } as const);
        const tools = open([{ ...config, reached }]);
        const echo = await offered(tools, "srv__echo");
        expect(echo.serverTool).toEqual({ server: "srv", name: "echo" });
        expect(echo.tool.parameters).toMatchObject({ type: "object", required: ["message"] });
        expect(await run(echo, { message: "grüß dich" })).toEqual({
          text: "Echo: grüß dich",
          failed: false,
          sources: [],
        });
        // what the server's own schema refuses is told to the model
        expect(await run(echo, { message: 5 })).toMatchObject({
          failed: true,
          text: expect.stringContaining("message"),
        });

        const image = await run(await offered(tools, "srv__get-tiny-image"), {});
        expect(image.text).toMatch(/\[image image\/png, \d+ bytes, is not shown\]/);
        const links = await run(await offered(tools, "srv__get-resource-links"), {});
        expect(links.text).toMatch(/\[resource .+: demo:\/\/resource\/.+\]/);

        const client = new AbortController();
        const long = await offered(tools, "srv__trigger-long-running-operation");
        const cancelled = run(long, { duration: 3_000, steps: 3 }, client.signal);
        client.abort();
        expect(await cancelled).toEqual({ text: "The call was cancelled.", failed: true, sources: [] });
      } finally {
        child?.kill();
        await child?.exited;
      }
    });
  }
});

// ---------------------------------------------------------------- a scripted one as a child

describe("a server that runs as a child", () => {
  let notesFile: string;
  beforeEach(() => {
    notesFile = join(folder, "notes");
  });
  const notes = (): string[] => (existsSync(notesFile) ? readFileSync(notesFile, "utf8").trim().split("\n") : []);
  const child = (...args: string[]): McpConfig => ({
    ...config,
    reached: {
      by: "stdio",
      command: process.execPath,
      args: [join(import.meta.dir, "scripted-mcp-server.ts"), notesFile, ...args],
      environment: { GREETING: "hello" },
    },
  });
  const pids = (): number[] => notes().flatMap((note) => /^started (\d+)/.exec(note)?.slice(1).map(Number) ?? []);

  test("gets its own variables and none of ours, and its standard error is in the log, cut", async () => {
    process.env["SECRET_OF_THE_GATEWAY"] = "sesame";
    try {
      await offered(open([child()]), "srv__echo");
      expect(notes()[0]).toMatch(/^started \d+ hello $/m);
      const said = lines.filter(({ event }) => event === "an MCP server says").map(({ fields }) => fields["line"]);
      expect(said[0]).toBe("it starts");
      expect(String(said[1]).length).toBeLessThanOrEqual(1_000);
    } finally {
      delete process.env["SECRET_OF_THE_GATEWAY"];
    }
  });

  test("is told when a call's client leaves, and other calls go on", async () => {
    const tools = open([child()]);
    const hang = await offered(tools, "srv__hang");
    const client = new AbortController();
    const hanging = run(hang, {}, client.signal);
    await eventually("the call arrives", async () => notes().includes("tools/call hang"));
    client.abort();
    expect((await hanging).text).toBe("The call was cancelled.");
    await eventually("the cancellation arrives", async () => notes().includes("notifications/cancelled"));
    expect((await run(await offered(tools, "srv__wrong"), {})).text).toContain("No such city");
  });

  test("that takes too long for a call is told, and so is the model", async () => {
    const hang = await offered(open([{ ...child(), timeoutMs: 1_000 }]), "srv__hang");
    expect(await run(hang, {})).toMatchObject({ text: "The call took longer than 1 seconds.", failed: true });
    await eventually("the cancellation arrives", async () => notes().includes("notifications/cancelled"));
  });

  test("that changes its tools is listed again", async () => {
    const tools = open([child()]);
    await run(await offered(tools, "srv__echo"), {});
    await offered(tools, "srv__later");
    expect(names(tools)).toEqual(["srv__echo", "srv__hang", "srv__later"]);
  });

  test("that dies in a call fails that call alone, and is started again", async () => {
    const tools = open([child()]);
    const outcome = await run(await offered(tools, "srv__die"), {});
    expect(outcome).toEqual({ text: 'The server "srv" failed to answer.', failed: true, sources: [] });
    await eventually("its tools are withdrawn", async () => names(tools).length === 0);
    expect(await run(await offered(tools, "srv__echo"), { a: 1 })).toMatchObject({ text: '{"a":1}', failed: false });
    expect(pids()).toHaveLength(2);
  });

  test("ends with the gateway, with force if it must", async () => {
    const tools = open([child("stubborn")]);
    await offered(tools, "srv__echo");
    await tools.close();
    const [pid] = pids();
    await eventually("the process is gone", async () => !isAlive(pid!));
    expect(notes()).toEqual(expect.arrayContaining(["end of input", "SIGTERM"]));
    expect(names(tools)).toEqual([]);
  });

  test("that cannot be started is tried again, and costs nobody anything", async () => {
    const missing: McpConfig = {
      ...config,
      reached: { by: "stdio", command: join(folder, "nowhere"), args: [], environment: {} },
    };
    const tools = open([missing]);
    await eventually("it is tried twice", async () => {
      return lines.filter(({ event }) => event === "an MCP server is not reachable").length >= 2;
    });
    const pauses = lines.map(({ fields }) => fields["retrySeconds"]).filter((seconds) => seconds !== undefined);
    expect(pauses.slice(0, 2)).toEqual([1, 2]);
    expect(names(tools)).toEqual([]);
    await tools.close();
  });
});

// ---------------------------------------------------------------- a scripted one over HTTP

describe("a server over HTTP", () => {
  let server: ScriptedMcpServer;
  let listening: Bun.Server<undefined>;
  let headers: Headers[];
  let session = "first";

  const listen = (port: number) =>
    Bun.serve({
      port,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      async fetch(request) {
        headers.push(request.headers);
        if (request.method === "DELETE") server.notes.push("DELETE");
        if (request.method !== "POST") return new Response(null, { status: 405 });
        const message = (await request.json()) as Message;
        // As the protocol says: a session of before is not found.
        const theirs = request.headers.get("mcp-session-id");
        if (message.method !== "initialize" && theirs !== session) return new Response("no session", { status: 404 });
        const reply = server.answer(message);
        if (reply === null) {
          return message.id === undefined
            ? new Response(null, { status: 202 })
            : new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });
        }
        return Response.json(reply, { headers: { "mcp-session-id": session } });
      },
    });

  beforeEach(() => {
    server = new ScriptedMcpServer();
    headers = [];
    session = "first";
    listening = listen(0);
  });
  afterEach(() => listening.stop(true));
  const web = (more: Partial<McpConfig> = {}): McpConfig => ({
    ...config,
    reached: { by: "http", url: `${listening.url}mcp`, apiKey: "sesame" },
    ...more,
  });

  test("gets the key, and a farewell", async () => {
    const tools = open([web()]);
    await offered(tools, "srv__echo");
    expect(headers.every((sent) => sent.get("authorization") === "Bearer sesame")).toBe(true);
    await tools.close();
    expect(server.notes).toContain("DELETE");
  });

  test("is for the models and plans that the operator allows, with the tools that they allow", async () => {
    const tools = open([web({ models: ["core-3"], plans: ["free", "pro"], tools: ["echo", "absent"] })]);
    await offered(tools, "srv__echo");
    expect(names(tools)).toEqual(["srv__echo"]);
    expect(tools.toolsFor(model, "pro")).toHaveLength(1);
    expect(tools.toolsFor(model, "plus")).toEqual([]);
    expect(tools.toolsFor(other, "free")).toEqual([]);
    expect(lines).toContainEqual({
      event: "an MCP server lacks a tool that the configuration names",
      fields: { server: "srv", tool: '"absent"' },
    });
  });

  test("has tools by names that engines take, each once, and called by their own", async () => {
    server.tools = ["odd.name/v1", "odd_name_v1", "x".repeat(100)];
    const tools = open([web()]);
    const odd = await offered(tools, "srv__odd_name_v1");
    expect(names(tools)).toEqual(["srv__odd_name_v1", `srv__${"x".repeat(59)}`]);
    expect(await run(odd, {})).toEqual({ text: "it has no city", failed: true, sources: [] });
    expect(server.notes).toContain("tools/call odd.name/v1");
  });

  test("whose result is long has it cut", async () => {
    const { text } = await run(await offered(open([web()]), "srv__huge"), {});
    expect(text.slice(0, mcpResultTextMaxLength)).toBe("x".repeat(mcpResultTextMaxLength));
    expect(text.slice(mcpResultTextMaxLength)).toBe("\n[cut off: 300000 characters in all]");
  });

  test.each(["[1]", "null", '"text"', "{", "5"])(
    "is not asked with arguments that are no object: %s",
    async (given) => {
      const echo = await offered(open([web()]), "srv__echo");
      expect(await run(echo, given)).toMatchObject({ failed: true, text: expect.stringContaining("JSON object") });
      expect(server.notes).not.toContain("tools/call echo");
    },
  );

  test("is asked by an account for its share at once, and by another at once", async () => {
    const tools = open([web()]);
    const [hang, echo] = [await offered(tools, "srv__hang"), await offered(tools, "srv__echo")];
    const client = new AbortController();
    const hanging = Array.from({ length: mcpCallsAtOnceMax }, () => run(hang, {}, client.signal));
    const waiting = run(echo, { of: "the same account" });
    expect(await run(echo, { of: "another" }, never, 2)).toMatchObject({ text: '{"of":"another"}', failed: false });
    expect(server.notes.filter((note) => note === "tools/call hang")).toHaveLength(mcpCallsAccountMax);
    client.abort();
    await Promise.all(hanging);
    expect(await waiting).toMatchObject({ failed: false });
  });

  test("is busy for an account whose calls take all the time that one may take", async () => {
    const hang = await offered(open([{ ...web(), timeoutMs: 500 }]), "srv__hang");
    const hanging = Array.from({ length: 2 * mcpCallsAccountMax }, () => run(hang, {}));
    expect(await run(hang, {})).toMatchObject({ failed: true, text: expect.stringContaining("busy") });
    await Promise.all(hanging);
  });

  test("that was started anew is connected to anew, and the model is told of the call that was lost", async () => {
    const tools = open([web()]);
    const echo = await offered(tools, "srv__echo");
    session = "second";
    expect(await run(echo, {})).toMatchObject({ failed: true, text: 'The server "srv" failed to answer.' });
    await eventually("it is back", async () => server.notes.filter((note) => note === "initialize").length === 2);
    expect(await run(await offered(tools, "srv__echo"), { b: 2 })).toMatchObject({ text: '{"b":2}', failed: false });
  });

  test("that is away has no tools, and its address is told to nobody", async () => {
    const tools = open([web()]);
    const echo = await offered(tools, "srv__echo");
    const { port } = listening;
    await listening.stop(true);
    expect((await run(echo, {})).text).toBe('The server "srv" failed to answer.');
    await eventually("its tools are withdrawn", async () => names(tools).length === 0);
    expect((await run(echo, {})).text).toBe('The server "srv" cannot be reached now.');
    listening = listen(port!);
    await offered(tools, "srv__echo");
  });
});
