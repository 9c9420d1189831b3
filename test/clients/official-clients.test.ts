// What every official JavaScript client must get from the gateway, with nothing changed but its base address and key:
// each version in each dialect that it speaks. Version 1 of Anthropic's sends its key as `Authorization: Bearer`, the
// older ones as `x-api-key`.
import { describe, expect, test } from "bun:test";
import { firstParty, hosted, toolsOf, weather } from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import { longForm } from "../fixtures/optional.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import type { NodeBody } from "../fixtures/requests.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";
import { clientsOf, failure, type NewClient, served } from "./official-clients.ts";

type Json = Record<string, any>;

const stack = useStack({ search: true });

const rows = clientsOf("chat", "messages", "responses");

describe.each(rows)("%s", (_, client) => {
  const { dialect, module } = client;
  const { newClient, ask, told } = served(stack, client);
  const nodeBody = async (marker: string): Promise<NodeBody> => (await stack.node.request(marker)).body as NodeBody;
  const refused = async (of: NewClient, body: Json, kind: string, error: Json, code?: string): Promise<Json> => {
    const raised = await failure(of.create(body));
    expect(raised).toBeInstanceOf(module![kind]);
    const { status, ...fields } = error;
    expect(raised).toMatchObject({ status });
    const found = dialect.name === "messages" ? raised["error"].error : raised["error"];
    expect(found).toMatchObject(dialect.error(fields, code));
    if (dialect.name !== "messages") expect(raised).toMatchObject({ type: fields["type"], code: code ?? null });
    expect(String(raised)).not.toMatch(/10\.1\.2\.3/);
    return raised;
  };

  test("plain text, with usage and a request id", async () => {
    for (const model of [hosted, firstParty]) {
      const reply = await (await newClient()).create(ask("text", { model }));
      expect(reply["model"]).toBe(model);
      expect(told(reply)).toMatchObject({ text: "Hi there!", ending: dialect.endings.stop });
      expect(reply["usage"]).toEqual(dialect.usage[model === hosted ? "hosted" : "firstParty"]);
      expect(reply["_request_id"]).toBeString();
    }
  });

  test("a stream read event by event, and what the helper makes of one, are what the reply is that is not streamed", async () => {
    const { create, helped, textOf } = await newClient();
    let text = "";
    for await (const event of await create(ask("reasoning-text", { stream: true }))) text += textOf(event);
    const whole = await create(ask("reasoning-text"));
    expect(told(whole)).toMatchObject({ text, thought: "Let me think." });
    expect(text).toBe("Hi there!");
    // of chat-completions the clients do not know the field of thoughts, and do not join its parts
    const thought = dialect.name === "chat" ? expect.anything() : "Let me think.";
    expect(told(await helped(ask("reasoning-text")))).toEqual({ ...told(whole), thought });
  });

  test.each([false, true])("two parallel tools whose fragments interleave, streamed: %p", async (streamed) => {
    const { create, helped } = await newClient();
    const body = ask("parallel-tools", toolsOf(dialect, weather));
    const reply = streamed ? await helped(body) : await create(body);
    const calls = ["London", "Tokyo"].map((city) => ({ name: "get_weather", given: { city } }));
    expect(told(reply)).toMatchObject({ calls, ending: dialect.endings.calls });
    const ids = [...JSON.stringify(reply).matchAll(/"(?:call_id|id)":"((?:call|toolu)_[^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(2);
  });

  test("a forced tool comes back as a call though the node said stop", async () => {
    const marker = stack.node.marker("forced-tool");
    const tools = toolsOf(dialect, weather, { ...weather, name: "other" });
    const reply = await (
      await newClient()
    ).create(ask(marker, { ...tools, ...dialect.choice({ only: "get_weather" }) }));
    const calls = [{ name: "get_weather", given: { city: "Paris" } }];
    expect(told(reply)).toMatchObject({ text: "", calls, ending: dialect.endings.calls });
    expect(JSON.stringify((await nodeBody(marker)).tools)).not.toContain("other");
  });

  test("a tool's result goes back, and the answer comes", async () => {
    const { create } = await newClient();
    const marker = stack.node.marker("one-tool");
    const calls = [{ id: "call_1", name: "get_weather", given: { city: "Paris" } }];
    const turns = [
      { by: "assistant", calls },
      { by: "tool", of: "call_1", gives: "sunny, 21 C" },
    ] as const;
    const question = { by: "user", says: `hello [[${marker}]]` } as const;
    const tools = { model: hosted, [dialect.budgets[0]!]: 2_100, ...toolsOf(dialect, weather) };
    const reply = await create({ ...tools, ...dialect.conversation([question, ...turns]) });
    expect(told(reply).text).toBe("It is sunny in Paris.");
  });

  test("a web search is cited, streamed and not", async () => {
    const { create, helped } = await newClient();
    for (const reply of [
      await create(ask("web-search", dialect.searches[0])),
      await helped(ask("web-search", dialect.searches[0])),
    ]) {
      const { text, cited } = told(reply);
      expect(text.replace("\n\n", "")).toBe("I look. Bun is fast [1]. Elysia runs on it [2].");
      expect(cited).toEqual(foundPages.map(({ url }) => url));
    }
  });

  test("an answer that hits the budget says so", async () => {
    const reply = await (await newClient()).create(ask("length"));
    expect(told(reply)).toMatchObject({ text: "Hi there!", ending: dialect.endings.length });
  });

  test("an answer in the shape of a JSON schema, and what parse() makes of it", async () => {
    const { create, parsed } = await newClient();
    const schema = {
      type: "object",
      properties: { title: { type: "string" }, year: { type: "integer" } },
      required: ["title", "year"],
      additionalProperties: false,
    };
    const book = { title: "Dune", year: 1965 };
    for (const format of [dialect.schema(schema), dialect.object]) {
      if (format !== null) expect(JSON.parse(told(await create(ask("json", format))).text)).toEqual(book);
    }
    expect([book, null]).toContainEqual(await parsed(ask("json"), schema));
  });

  test("a refusal in place of that shape is told as one: nothing to parse, no second try, paid for", async () => {
    const { create, helped, parsed, email } = await newClient();
    const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
    const marker = stack.node.marker("refused");
    const asked = ask(marker, dialect.schema(schema));
    for (const reply of [await create(asked), await helped(asked)]) {
      const told = reply["choices"]?.[0].message.refusal ?? reply["output"]?.[0].content[0].refusal;
      // the helper of anthropic 0.60 keeps the reason alone
      expect(told ?? reply["stop_details"]?.explanation ?? reply["stop_reason"]).toMatch(
        /^(I cannot do that\.|refusal)$/,
      );
    }
    expect(await stack.node.requests(marker)).toHaveLength(2);
    expect((await stack.gateway.usage(email)).map(({ output }) => output)).toEqual([20, 20]);
    expect(await parsed(ask("refused"), schema)).toBeNull();
  });

  test("the conversation, its images and stop sequences reach the node, whole and in order", async () => {
    const { create } = await newClient();
    const marker = stack.node.marker("text");
    const turns = Array.from({ length: 100 }, (_, turn) => {
      const said = `turn ${turn}: ${"word ".repeat(400)}`;
      // clients change from one form to the other between two turns
      if (turn % 2 === 1) return { by: "assistant", says: said } as const;
      return {
        by: "user",
        says: turn === 0 ? [said, { image: pixelBase64 }] : turn % 4 === 0 ? [said] : said,
      } as const;
    });
    const stop = dialect.stop?.(["END", "", "STOP"]) ?? {};
    expect(told(await create(ask(marker, { ...stop }, ...turns))).text).toBe("Hi there!");
    const body = await nodeBody(marker);
    if (dialect.stop !== null) expect(body).toMatchObject({ stop: ["END", "STOP"] });
    expect(body.messages.map(({ role }) => role)).toEqual([...turns.map(({ by }) => by), "user"]);
    const numbers = body.messages.map(({ content }) => /turn (\d+):/.exec(JSON.stringify(content))?.[1]);
    expect(numbers.slice(0, 100)).toEqual(turns.map((_, turn) => String(turn)));
    expect(JSON.stringify(body.messages[0])).toContain(pixelUrl);
  });

  test("a wrong key, a malformed request and an unknown model are the client's own errors, each asked once", async () => {
    const stranger = await newClient(0, `sk-tg-${"x".repeat(43)}`);
    const unauthorized = { status: 401, type: "authentication_error", message: "Invalid API key provided" };
    await refused(stranger, ask("text"), "AuthenticationError", unauthorized, "invalid_api_key");
    const known = await newClient();
    const wrong = { status: 400, type: "invalid_request_error" };
    await refused(
      known,
      { ...ask("text"), [dialect.conversationField]: dialect.name === "responses" ? 42 : "hi" },
      "BadRequestError",
      wrong,
    );
    await refused(known, ask("text", { model: "core-99" }), "BadRequestError", wrong, "model_not_found");
    expect([stranger.sent(), known.sent()]).toEqual([1, 2]);
  });

  test("an empty balance is a RateLimitError with the plan page's address and what is left, asked once", async () => {
    const poor = await newClient(0);
    const facts = { spendable: 30_000, requested: 60_000, resets_at: expect.any(Number) };
    const message = expect.stringMatching(/^Quota exceeded\. Upgrade your plan at http\S+\/plan$/);
    const error = { status: 429, type: "rate_limit_error", message, ...facts };
    // Anthropic's client sends so large a budget only with a stream
    const body = ask("text", { [dialect.budgets[0]!]: 60_000, stream: true });
    await refused(poor, body, "RateLimitError", error, "insufficient_quota");
    expect(await failure(poor.helped({ ...body, stream: undefined }))).toBeInstanceOf(module!["RateLimitError"]);
    expect(poor.sent()).toBe(2);
  });

  test("a prompt beyond the context window says so in the words that agents compact on, asked once", async () => {
    const known = await newClient();
    const message = "prompt is too long: 5000 tokens > 4096 maximum";
    const error = { status: 400, type: "invalid_request_error", message };
    await refused(known, ask("prompt-too-long"), "BadRequestError", error, "context_length_exceeded");
    expect(known.sent()).toBe(1);
  });

  test("a body over 32 MiB is refused with its reason, asked once", async () => {
    const known = await newClient();
    const message = "Request body larger than 32 MiB";
    const error = { status: 413, type: "invalid_request_error", message };
    await refused(known, ask(`text#${"a".repeat(33_554_432)}`), "APIError", error, "request_too_large");
    expect(known.sent()).toBe(1);
  });

  test("a node's failure is tried again by the client and then answered", async () => {
    const { create, sent } = await newClient();
    expect(told(await create(ask("second-try"))).text).toBe("Hi there!");
    expect(sent()).toBe(2);
  });

  test("a node that keeps failing is an InternalServerError after the client's own two retries", async () => {
    const known = await newClient();
    const error = { status: 500, type: "api_error", message: "The model stopped answering. Please retry." };
    const raised = await refused(known, ask("status-500"), "InternalServerError", error);
    expect(raised["requestID"] ?? raised["request_id"]).toBeString();
    expect(known.sent()).toBe(3);
    expect(await stack.gateway.usage(known.email)).toEqual([]);
  });

  test("a node that dies mid-stream leaves the text so far, and an error that shows nothing of the node", async () => {
    const { create, textOf } = await newClient();
    let text = "";
    let last: unknown = null;
    const read = async (): Promise<void> => {
      for await (const event of await create(ask("dies-rst", { stream: true }))) {
        text += textOf(event);
        last = event;
      }
    };
    // of a response the last event says that it failed, and that is all
    if (dialect.name === "responses") await read();
    else expect((last = await failure(read()))).toBeInstanceOf(module!["APIError"]);
    expect(text).toBe("Hi there");
    expect(`${String(last)}${JSON.stringify(last)}`).not.toContain("127.0.0.1");
    if (dialect.name === "responses")
      expect(last).toEqual(dialect.failed("The model stopped answering. Please retry."));
  });

  test.each(["abort", "left loop"])("an %s stops the node, is charged, and frees the reservation", async (way) => {
    const { create, textOf, email } = await newClient();
    const marker = stack.node.marker("endless");
    const controller = new AbortController();
    const stream = await create(ask(marker, { stream: true }), { signal: controller.signal });
    let deltas = 0;
    let abortedAt = 0;
    await failure(
      (async () => {
        for await (const event of stream) {
          if (textOf(event) !== "" && ++deltas === 5) {
            abortedAt = Date.now();
            if (way === "left loop") break; // the client aborts when its iteration is left
            controller.abort();
          }
        }
        throw new Error("ended after the abort"); // the iteration of some versions ends instead of throwing
      })(),
    );
    // milliseconds, where nothing else runs
    expect((await stack.node.closedAt(marker)) - abortedAt).toBeLessThan(5_000);
    const row = await eventually("the abort is charged", async () => (await stack.gateway.usage(email))[0] ?? null);
    expect(row).toMatchObject({ endpoint: dialect.endpoint, estimated: true });
    expect(row.output).toBeGreaterThanOrEqual(5);
    expect(row.billed_tokens).toBeGreaterThan(0);
    expect((await stack.gateway.show(email)).reserved).toBe(0);
  });

  test("models can be listed to the end, page by page too, and retrieved", async () => {
    const { sdk } = await newClient();
    const listed = async (query?: object): Promise<string[]> => {
      const ids: string[] = [];
      for await (const model of sdk["models"].list(query)) ids.push(model.id);
      return ids;
    };
    const ids = await listed();
    expect(ids).toHaveLength(21);
    expect(ids).toContain("open-12-W8A16");
    if (dialect.name === "messages") expect(await listed({ limit: 5 })).toEqual(ids);
    expect(await sdk["models"].retrieve("core-coder-1")).toMatchObject({
      id: "core-coder-1",
      display_name: "core-coder-1",
      context_window: 131_072,
      capabilities:
        dialect.name === "messages"
          ? { image_input: { supported: false }, thinking: { supported: true } }
          : { vision: false, tools: true },
    });
    expect(await failure(sdk["models"].retrieve("core-99"))).toBeInstanceOf(module!["NotFoundError"]);
  });
});

// once in each dialect, beside each other: it takes up to a minute
const newest = rows.filter(([, { name }]) => ["openai", "@anthropic-ai/sdk"].includes(name));
if (longForm)
  test("the request after a full flood window waits for its end by itself", async () => {
    const waits = newest.map(async ([, client]) => {
      const { newClient, ask, told } = served(stack, client);
      const { create, sent } = await newClient();
      for (let request = 0; request < 120; request++) await create(ask("text"));
      expect(told(await create(ask("text"))).text).toBe("Hi there!");
      expect(sent()).toBe(122); // one 429, whose retry-after was kept
    });
    await Promise.all(waits);
  });
