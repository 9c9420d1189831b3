// Requests as real clients send them: every shape is accepted, and reaches the node in the form that engines read.
import { describe, expect, test } from "bun:test";
import { captures } from "../fixtures/captures.ts";
import {
  type DialectName,
  eachDialect,
  firstParty,
  hosted,
  limited,
  type Part,
  toldIn,
  toolsOf,
  weather,
} from "../fixtures/dialects.ts";
import { messagesCaptures } from "../fixtures/messages-captures.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import { answered, type Asking, type NodeBody, post } from "../fixtures/requests.ts";
import { responsesCaptures } from "../fixtures/responses-captures.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();

type Sent = Readonly<{ name: string; body: Record<string, any>; url?: string; headers?: Record<string, string> }>;
const sentByClients: Readonly<Record<DialectName, readonly Sent[]>> = {
  chat: captures,
  messages: messagesCaptures.map(({ name, body }) => ({ name, body: { ...body, model: firstParty } })),
  responses: responsesCaptures.map(({ name, body }) => ({ name, body: { ...body, model: firstParty } })),
};

const other = { ...weather, name: "other" };
const calling = {
  by: "assistant",
  says: "Let me see.",
  calls: [{ id: "call_1", name: weather.name, given: { city: "Paris" } }],
} as const;
const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

const forcesCall = ({ tool_choice: choice }: Sent["body"]): boolean =>
  choice === "required" || ["any", "tool", "function"].includes(choice?.type);

describe.each(eachDialect)("%s", (name, dialect) => {
  const ask = (...[script, more, asked]: [string?, object?, Asking?]) =>
    answered(stack, dialect, script ?? "text", more, asked);
  const sent = async (more: object, turns: Asking["turns"] = []): Promise<NodeBody> =>
    (await ask("text", more, { turns })).sent;
  const names = ({ tools = [] }: NodeBody): string[] => tools.map((tool) => tool.function.name);

  test.each(sentByClients[name].map((capture) => [capture.name, capture] as const))(
    "as a client sent it: %s",
    async (_, capture) => {
      const { body, url = dialect.endpoint, headers = {} } = capture;
      const reply = await post(stack, await stack.gateway.account(), body, { path: url, headers });
      const written = await reply.text();
      expect(reply.status, written).toBe(200);
      const compacts = body["input"]?.at?.(-1)?.type === "compaction_trigger";
      const asksForJson = [body["response_format"], body["output_config"]?.format, body["text"]?.format].some(
        (format) => format?.type.startsWith("json"),
      );
      const { text, calls } = toldIn(dialect, written, body["stream"] === true, body);
      if (forcesCall(body)) return expect(calls).not.toEqual([]);
      if (asksForJson) expect(JSON.parse(text)).toBeObject();
      else expect(text).toBe(compacts ? "" : "Hi there!");
      if (compacts) expect(written).toContain('"type":"compaction"');
    },
  );

  test("system and developer turns stand anywhere, after the instructions", async () => {
    const { sent } = await ask(
      "text",
      {},
      {
        instructions: "first",
        turns: [
          { by: "user", says: ["hi"] },
          { by: "developer", says: "second" },
          { by: "assistant", says: "hello" },
          { by: "system", says: ["third ", "fourth"] },
        ],
      },
    );
    const all = JSON.stringify(sent.messages);
    const places = ["first", "hi", "second", "hello", "third", "fourth"].map((word) => all.indexOf(word));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    // templates take one system turn, at the start; what stands in the middle is said there in other words
    expect(sent.messages[0]).toMatchObject({ role: "system" });
    expect(sent.messages.map(({ role }) => role)).not.toContain("developer");
    expect(sent.messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining("hello [[") });
  });

  test.each([
    ["a string", "sunny, 21 C"],
    ["parts", ["sunny, ", "21 C"]],
  ] as const)("a tool's result that is %s", async (_, gives) => {
    const { messages } = await sent(toolsOf(dialect, weather), [
      { by: "user", says: "weather?" },
      calling,
      { by: "tool", of: "call_1", gives },
    ]);
    const call = { id: "call_1", function: { name: "get_weather", arguments: '{"city":"Paris"}' } };
    expect(messages[1]).toMatchObject({ role: "assistant", content: "Let me see.", tool_calls: [call] });
    expect(messages[2]).toMatchObject({ role: "tool", tool_call_id: "call_1" });
    // parts are joined; templates put a line end between them
    expect(String(messages[2]!["content"]).replace("\n", "")).toBe("sunny, 21 C");
  });

  test("reasoning that comes back reaches the node as reasoning", async () => {
    const { messages } = await sent({}, [
      { by: "user", says: "one" },
      { by: "assistant", thinks: "They count.", says: "two" },
    ]);
    expect(messages[1]).toMatchObject({ role: "assistant", content: "two", reasoning_content: "They count." });
  });

  test("conversations that differ in Claude Code's billing line or in the form of a turn are the same prompt", async () => {
    const prompt = async (hash: string, says: string | readonly string[]): Promise<object[]> => {
      const instructions = `x-anthropic-billing-header: cc_version=2.1.329.${hash}; cc_entrypoint=cli;\nbe brief`;
      const turns = [
        { by: "user", says },
        { by: "assistant", says: "yes?" },
      ] as const;
      return (await ask("text", {}, { instructions, turns })).sent.messages.slice(0, -1);
    };
    const messages = await prompt("a1b", ["hello"]);
    expect(messages).toEqual(await prompt("9f0", "hello"));
    expect(messages[0]).toEqual({ role: "system", content: "be brief" });
  });

  test("inline images reach the node from messages and from tools' results", async () => {
    const { sent } = await ask("text", toolsOf(dialect, weather), {
      turns: [
        { by: "user", says: ["look", { image: pixelBase64 }] },
        calling,
        { by: "tool", of: "call_1", gives: [{ image: pixelBase64 }] },
      ],
      says: [{ image: pixelBase64 }],
    });
    expect(JSON.stringify(sent.messages).split(pixelUrl)).toHaveLength(4);
  });

  test.each([
    ["a PDF", { file: "JVBERi0=", mediaType: "application/pdf", name: "a.pdf" }, ""],
    ["a text", { file: btoa("of a file"), mediaType: "text/plain", name: "a.txt" }, "of a file"],
  ] as const)("a file that is %s is accepted", async (_, file: Part, read) => {
    const { sent } = await ask("text", {}, { says: [file] });
    expect(JSON.stringify(sent.messages)).toContain(read);
  });

  test.each(dialect.depths)(
    "the depth %s is accepted on both kinds of model, and sent on for hosted ones only",
    async (effort) => {
      const depthOf = (body: NodeBody) => [body["reasoning_effort"] ?? null, body["chat_template_kwargs"] ?? null];
      expect(depthOf(await sent(dialect.depth(effort)))).toEqual([null, null]);
      expect(depthOf(await sent({ model: hosted, ...dialect.depth(effort) }))).not.toEqual([null, null]);
    },
  );

  const budgets = [
    [0, 1],
    [1, 1],
    [4_096, 4_096],
    [65_536, 65_536],
    [128_000, 65_536],
    [null, 4_096],
    [undefined, 4_096],
  ] as const;
  test.each(dialect.budgets.flatMap((field) => budgets.map((row) => [field, ...row] as const)))(
    "%s %p is moved to %p without an error, and sent where it limits the answer",
    async (field, given, moved) => {
      for (const model of [hosted, limited, firstParty]) {
        const { max_tokens } = await sent({ model, [field]: given });
        expect([model, max_tokens]).toEqual([model, model === firstParty ? undefined : moved]);
      }
    },
  );

  if (dialect.stop !== null) {
    const { stop } = dialect;
    test("hosted models get the first 4 stop sequences that are not empty", async () => {
      const given = stop(["", "a", "b", "", "c", "d", "e"]);
      expect(await sent({ model: hosted, ...given })).toMatchObject({ stop: ["a", "b", "c", "d"] });
    });
  }

  test("sampling is passed on, and fields that nobody knows are accepted and not", async () => {
    const unknown = {
      id_slot: 3,
      grammar: "root ::= x",
      n_predict: 9,
      priority: 1,
      chat_template: "x",
      metadata: { a: "b" },
      store: true,
      context_management: { edits: [] },
      diagnostics: {},
      safeguards: [{ type: "x" }],
      container: null,
      service_tier: "auto",
      speed: "fast",
    };
    const sampling = { temperature: 0.5, top_p: 0.9, ...(name === "responses" ? {} : { top_k: 40 }) };
    const body = await sent({ model: hosted, ...sampling, ...unknown });
    expect(body).toMatchObject(sampling);
    for (const field of Object.keys(unknown)) expect(body).not.toHaveProperty(field);
  });

  test("the node is always asked for a stream with usage, and gets no header and no key of the client", async () => {
    const account = await stack.gateway.account();
    const headers = { "x-conversation-id": "c", cookie: "a=b" };
    const { marker } = await ask("text", {}, { account, headers });
    const { body, headers: got } = await stack.node.request(marker);
    expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true }, model: "scripted" });
    expect(JSON.stringify(got)).not.toContain("sk-tg-");
    for (const header of Object.keys(headers)) expect(got).not.toHaveProperty(header);
  });

  test("a JSON schema, and JSON of any kind where it can be asked for, constrains the node's answer", async () => {
    const { sent: body } = await ask("json", { model: hosted, ...dialect.schema(schema) });
    expect(body["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema } });
    if (dialect.object === null) return;
    const any = await ask("json", { model: hosted, ...dialect.object });
    expect(any.sent["response_format"]).toEqual({ type: "json_object" });
  });

  test.each([
    ["auto", "text", ["get_weather", "other"], "auto"],
    ["none", "text", [], "auto"],
    ["required", "one-tool", ["get_weather", "other"], "required"],
    [{ only: "get_weather" }, "forced-tool", ["get_weather"], null],
    [{ allowed: "other" }, "text", ["other"], "auto"],
  ] as const)("of two tools the choice %j is obeyed", async (choice, script, offered, forced) => {
    const chosen = dialect.choice(choice);
    if (chosen === null) return; // this dialect has no form for it
    const { sent: body } = await ask(script, { ...toolsOf(dialect, weather, other), ...chosen });
    expect(names(body)).toEqual([...offered]);
    if (forced !== null) expect(body["tool_choice"] ?? "auto").toBe(forced);
  });

  test.each([true, false])("one call where parallel ones are switched off, streamed: %p", async (stream) => {
    const { told } = await ask("parallel-tools", { ...toolsOf(dialect, weather), ...dialect.oneCall, stream });
    expect(told.calls).toEqual([{ name: "get_weather", given: { city: "London" } }]);
  });

  test("tools that other servers run are left out without an error; those that are deferred are tools like the others", async () => {
    const deferred = dialect.tool({
      ...other,
      defer_loading: true,
      input_examples: [{}],
      cache_control: { type: "ephemeral" },
    });
    const tools = [dialect.tool(weather), deferred, ...dialect.foreignTools];
    expect(names(await sent({ tools }))).toEqual(["get_weather", "other"]);
  });

  test.each(dialect.searches.map((search) => [JSON.stringify(search), search] as const))(
    "%s is no error, and no search where none is configured",
    async (_, search) => {
      const { told, sent: body } = await ask("text", {
        ...search,
        tools: [dialect.tool(weather), ...(search["tools"] ?? [])],
      });
      expect(JSON.stringify(body)).not.toContain("web_search");
      expect(told.text).toBe("Hi there!");
    },
  );
});
