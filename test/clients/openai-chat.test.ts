// What the official clients add to chat-completions: the helper that runs tools, and where annotations stand.
import { describe, expect, test } from "bun:test";
import { weather } from "../fixtures/dialects.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";
import { clientsOf, served } from "./official-clients.ts";

const stack = useStack({ search: true });

describe.each(clientsOf("chat"))("%s", (_, client) => {
  const { newClient, ask } = served(stack, client);

  test("runTools runs the tool and returns the final answer", async () => {
    const { sdk, sent } = await newClient();
    const asked: string[] = [];
    const run = ({ city }: { city: string }): string => (asked.push(city), "sunny, 21 C");
    const tool = { type: "function", function: { ...weather, parse: JSON.parse, function: run } };
    const { runTools } = sdk["chat"].completions;
    const helpers = runTools === undefined ? sdk["beta"].chat.completions : sdk["chat"].completions;
    const runner = helpers.runTools({ ...ask("one-tool"), tools: [tool] });
    expect(await runner.finalContent()).toBe("It is sunny in Paris.");
    expect(asked).toEqual(["Paris"]);
    expect(sent()).toBe(2);
  });

  test("annotations name their sources and stand around their marks, streamed and not", async () => {
    const { create, helped } = await newClient();
    const messages = [
      await create(ask("web-search", { web_search: true })),
      await helped(ask("web-search", { web_search: true })),
    ];
    const [whole, streamed] = messages.map((reply) => reply["choices"][0].message);
    expect(streamed.annotations).toEqual(whole.annotations);
    expect(streamed.content).toBe(whole.content);
    expect(whole.annotations).toMatchObject(
      foundPages.map(({ url, title }) => ({ type: "url_citation", url_citation: { url, title } })),
    );
    for (const { url_citation: at } of whole.annotations) {
      expect(whole.content.slice(at.start_index, at.end_index)).toMatch(/^\[[12]\]$/);
    }
  });

  test("content is null beside calls, and reasoning stands beside a text", async () => {
    const { create } = await newClient();
    const [forced, thought] = [await create(ask("forced-tool")), await create(ask("reasoning-text"))];
    expect(forced["choices"][0].message.content).toBeNull();
    expect(thought["choices"][0].message).toMatchObject({ content: "Hi there!", reasoning_content: "Let me think." });
  });
});
