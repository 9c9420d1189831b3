// The helpers with which official clients ask for structured output: zod schemas in, checked objects out.
import { beforeAll, describe, expect, test } from "bun:test";
import { installed, missing } from "../fixtures/optional.ts";
import { finish, once, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the packages' own types are not there in a plain checkout. */
type Zod = {
  z: {
    object(shape: object): unknown;
    string(): { regex(pattern: RegExp): unknown };
    int(): unknown;
    email(): unknown;
  };
};
type Client = new (options: object) => any;
type OpenAIModule = { default: Client };
type OpenAIHelpers = {
  zodResponseFormat(schema: unknown, name: string): object;
  zodTextFormat(schema: unknown, name: string): object;
};
type AnthropicHelpers = { zodOutputFormat(schema: unknown): object };
type AiModule = {
  generateObject(options: object): Promise<{ object: unknown }>;
  streamObject(options: object): { object: Promise<unknown>; partialObjectStream: AsyncIterable<unknown> };
};
type Provider = { createOpenAI(options: object): { chat(model: string): unknown; responses(model: string): unknown } };

const folder = import.meta.dir;
const zod = await installed<Zod>("zod", folder);
const openai = await installed<OpenAIModule>("openai", folder);
const openaiZod = await installed<OpenAIHelpers>("openai/helpers/zod", folder);
const anthropic = await installed<OpenAIModule>("@anthropic-ai/sdk", folder);
const anthropicZod = await installed<AnthropicHelpers>("@anthropic-ai/sdk/helpers/zod", folder);
const ai = await installed<AiModule>("ai-6", folder);
const aiOpenAI = await installed<Provider>("ai-sdk-openai-6", folder);
const all = [zod, openai, openaiZod, anthropic, anthropicZod, ai, aiOpenAI].every((module) => module !== null);
const absent = missing("the clients' structured output", all, "run npm ci in test/clients");
const model = "open-05-3BIT-REAP";

describe.skipIf(absent)("structured output through the clients' own helpers", () => {
  const stack = useStack();
  let key = "";
  beforeAll(async () => {
    key = (await stack.gateway.account()).api_key;
    const right = stream(text('{"title":"Dune","year":1965,"contact":"a@b.example"}'), finish("stop"));
    const wrong = stream(text('{"title":"Dune","year":"1965","contact":"a@b.example"}'), finish("stop"));
    await stack.node.define("book", { advance: "rounds", replies: [right] });
    await stack.node.define("wrong-book", { advance: "rounds", replies: [wrong, wrong, wrong] });
    await stack.node.define("wrong-then-right-book", { advance: "attempts", replies: [wrong, right] });
    await stack.node.define("no-book", once(text("I would rather not."), finish("stop")));
  });

  const book = { title: "Dune", year: 1965, contact: "a@b.example" };
  // with zod's own pattern of e-mail addresses, which has look-aheads
  const schema = () => {
    const { z } = zod!;
    return z.object({ title: z.string().regex(/^[A-Z]/), year: z.int(), contact: z.email() });
  };
  const openaiClient = () => new openai!.default({ apiKey: key, baseURL: `${stack.gateway.url}/v1` });

  type Parse = (prompt: string) => Promise<unknown>;
  const ways: Readonly<Record<string, Parse>> = {
    "openai chat.completions.parse": async (prompt) => {
      const reply = await openaiClient().chat.completions.parse({
        model,
        messages: [{ role: "user", content: prompt }],
        response_format: openaiZod!.zodResponseFormat(schema(), "book"),
      });
      return reply.choices[0].message.parsed;
    },
    "openai responses.parse": async (prompt) => {
      const format = openaiZod!.zodTextFormat(schema(), "book");
      return (await openaiClient().responses.parse({ model, input: prompt, text: { format } })).output_parsed;
    },
    "anthropic messages.parse": async (prompt) => {
      const client = new anthropic!.default({ apiKey: key, baseURL: stack.gateway.url });
      const format = anthropicZod!.zodOutputFormat(schema());
      const messages = [{ role: "user", content: prompt }];
      return (await client.messages.parse({ model, max_tokens: 200, messages, output_config: { format } }))
        .parsed_output;
    },
    "AI SDK generateObject": async (prompt) => {
      const provider = aiOpenAI!.createOpenAI({ apiKey: key, baseURL: `${stack.gateway.url}/v1` });
      return (await ai!.generateObject({ model: provider.chat(model), schema: schema(), prompt, maxRetries: 0 }))
        .object;
    },
    "AI SDK streamObject": async (prompt) => {
      const provider = aiOpenAI!.createOpenAI({ apiKey: key, baseURL: `${stack.gateway.url}/v1` });
      const settings = { model: provider.responses(model), schema: schema(), prompt, maxRetries: 0, onError: () => {} };
      const { partialObjectStream, object } = ai!.streamObject(settings);
      object.catch(() => {}); // it is awaited when the stream has been read, which is what makes it settle
      for await (const _ of partialObjectStream);
      return object;
    },
  };

  describe.each(Object.entries(ways))("%s", (name, parse) => {
    const streams = name.endsWith("streamObject");

    test("gives the object", async () => {
      expect(await parse(`[[${stack.node.marker("book")}]]`)).toEqual(book);
    });

    test.skipIf(streams)("gives the object of the second pass without the client knowing of the first", async () => {
      const marker = stack.node.marker("wrong-then-right-book");
      expect(await parse(`[[${marker}]]`)).toEqual(book);
      expect(await stack.node.requests(marker)).toHaveLength(2);
    });

    test.each(["wrong-book", "no-book"])("fails for %s, after one request of the client", async (script) => {
      const marker = stack.node.marker(script);
      const failure = await parse(`[[${marker}]]`).then(
        () => null,
        (error: unknown) => error,
      );
      expect(failure).toHaveProperty("message"); // an Error, or what the AI SDK makes of one in a stream
      expect(await stack.node.requests(marker)).toHaveLength(streams ? 1 : 3);
    });
  });
});
