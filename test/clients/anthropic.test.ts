// What the official clients add to the messages dialect: its blocks that go back as they came, the tool runner, the count.
import { describe, expect, test } from "bun:test";
import { dialectOf, toolsOf, weather } from "../fixtures/dialects.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";
import { clientsOf, served } from "./official-clients.ts";

const stack = useStack({ search: true });
const dialect = dialectOf.messages;
const thinking = { type: "enabled", budget_tokens: 2_000 };

describe.each(clientsOf("messages"))("%s", (_, client) => {
  const { newClient, ask } = served(stack, client);

  test("thinking comes first with its signature, and only where it was asked for; the helper puts the same together", async () => {
    const { create, helped } = await newClient();
    const [streamed, whole] = [
      await helped(ask("reasoning-text", { thinking })),
      await create(ask("reasoning-text", { thinking })),
    ];
    for (const field of ["content", "stop_reason", "stop_sequence", "usage"])
      expect(streamed[field]).toEqual(whole[field]);
    expect(whole["content"].map(({ type }: { type: string }) => type)).toEqual(["thinking", "text"]);
    expect(whole["content"][0]["signature"]).toMatch(/./);
    const hidden = await create(ask("reasoning-text", { thinking: undefined }));
    expect(hidden["content"]).toEqual([{ type: "text", text: "Hi there!" }]);
  });

  test("a web search gives its blocks and citations, streamed and not, and goes back as it came", async () => {
    const { create, helped } = await newClient();
    const tools = [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }];
    const whole = await create(ask("web-search", { tools }));
    const streamed = await helped(ask("web-search", { tools }));
    const withoutIds = ({ content }: Record<string, any>) =>
      JSON.parse(JSON.stringify(content).replaceAll(/srvtoolu_\w+/g, "x"));
    expect(withoutIds(streamed)).toEqual(withoutIds(whole));
    expect(whole.content).toMatchObject([
      { type: "text", text: "I look. " },
      { type: "server_tool_use", name: "web_search", input: { query: "bun runtime" } },
      { type: "web_search_tool_result", content: foundPages.map(({ url, title }) => ({ url, title })) },
      { type: "text", text: "Bun is fast [1]", citations: [{ url: foundPages[0].url }] },
      { type: "text", text: ". Elysia runs on it [2]", citations: [{ url: foundPages[1].url }] },
      { type: "text", text: "." },
    ]);
    expect([whole.usage["server_tool_use"], streamed.usage["server_tool_use"]] as unknown[]).toEqual([
      { web_search_requests: 1, web_fetch_requests: 0 },
      { web_search_requests: 1, web_fetch_requests: 0 },
    ]);
    const marker = stack.node.marker("text");
    const next = { role: "user", content: `and? [[${marker}]]` };
    const history = [{ role: "user", content: "hello" }, { role: "assistant", content: streamed.content }, next];
    await create(ask(marker, { tools, messages: history }));
    const seen = (await stack.node.request(marker)).body!["messages"] as { role: string; content: string }[];
    expect(seen.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(seen[2]!.content).toContain(foundPages[0].content);
  });

  test("a tool loop: the answer goes back as it came, with the result", async () => {
    const { create, helped } = await newClient();
    const marker = stack.node.marker("one-tool");
    const first = await helped(ask(marker, { ...toolsOf(dialect, weather) }));
    expect(first.stop_reason).toBe("tool_use");
    const use = first.content.find(({ type }: { type: string }) => type === "tool_use");
    expect(use).toMatchObject({ name: "get_weather", input: { city: "Paris" } });
    const second = await create(
      ask(marker, {
        ...toolsOf(dialect, weather),
        messages: [
          { role: "user", content: `hello [[${marker}]]` },
          { role: "assistant", content: first.content },
          { role: "user", content: [{ type: "tool_result", tool_use_id: use?.["id"], content: "sunny, 21 C" }] },
        ],
      }),
    );
    expect(second.content).toMatchObject([{ type: "text", text: "It is sunny in Paris." }]);
  });

  test("arguments that are no JSON end neither the stream nor the other calls, and run nothing", async () => {
    const { create, helped } = await newClient();
    const asked = ask("spoiled-arguments", toolsOf(dialect, weather));
    const INVALID_JSON = '{"city": Paris}';
    const inputs = async (reply: Promise<Record<string, any>>) =>
      (await reply)["content"].map(({ input }: { input: object }) => input);
    const sound = { city: "Lon\n\u00e9" };
    expect(await inputs(helped(asked))).toEqual([{ city: null, INVALID_JSON }, sound]);
    expect(await inputs(create(asked))).toEqual([{ INVALID_JSON }, sound]);
  });

  if (client.name !== "anthropic-0.60") {
    test("the tool runner runs the tool and returns the final answer", async () => {
      const { sdk, sent } = await newClient();
      const asked: string[] = [];
      const run = ({ city }: { city: string }): string => (asked.push(city), "sunny, 21 C");
      const tool = { ...dialect.tool(weather), type: "custom", parse: (input: unknown) => input, run };
      const reply = await sdk.beta.messages.toolRunner!(ask("one-tool", { tools: [tool] }));
      expect(reply.content).toMatchObject([{ type: "text", text: "It is sunny in Paris." }]);
      expect(asked).toEqual(["Paris"]);
      // version 1 first asks for a conversation that the server keeps, and goes on without
      expect(sent()).toBe(client.name === "@anthropic-ai/sdk" ? 3 : 2);
    });
  }

  test.each(["summarized", "omitted"])(
    "thinking goes back with its signature and reaches the model, display: %s",
    async (display) => {
      const { create, helped } = await newClient();
      const asking = { model: "core-3", thinking: { ...thinking, display } };
      const first = await helped(ask("reasoning-text", asking));
      const [thought] = first.content;
      expect(thought?.thinking).toBe(display === "omitted" ? "" : "Let me think.");
      const marker = stack.node.marker("text");
      const messages = [
        { role: "user", content: "hello" },
        { role: "assistant", content: first.content },
        { role: "user", content: `and now? [[${marker}]]` },
      ];
      await create(ask(marker, { ...asking, messages }));
      expect((await stack.node.request(marker)).body?.["messages"]).toMatchObject([
        { role: "user" },
        { role: "assistant", content: "Hi there!", reasoning_content: "Let me think." },
        { role: "user" },
      ]);
    },
  );

  test("tokens are counted for free, many requests at once", async () => {
    const { sdk, email } = await newClient();
    const { max_tokens: _, ...body } = ask("text", { ...toolsOf(dialect, weather), system: "Be brief." });
    const counts = await Promise.all(Array.from({ length: 24 }, () => sdk.messages.countTokens(body)));
    expect(counts[0]?.input_tokens).toBeWithin(10, 1_000);
    expect(new Set(counts.map(({ input_tokens }) => input_tokens)).size).toBe(1);
    expect(await stack.gateway.usage(email)).toEqual([]);
  });
});
