// What each of the 21 models accepts and refuses in each dialect: images, structured output, reasoning depth.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { post } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 60_000;
let stack: Stack;
beforeAll(async () => {
  const depths = ["off", "low", "medium", "high"].map((effort) => `${effort} = { depth_was = "${effort}" }`);
  stack = await Stack.start({ config: `[nodes.depth]\n${depths.join("\n")}\n` });
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

/** The specification's table: images, structured output, and whether the depth is read (by hosted models). */
const models = `
core-1.6-lite                 image  json_schema  -
core-1.6-pro                  image  json_schema  -
core-2-lite                   image  json_schema  -
core-2-pro                    image  json_schema  -
core-3                        image  json_schema  -
core-3-pro                    image  json_schema  -
core-3.1                      image  json_schema  -
core-3.1-pro                  image  json_schema  -
core-coder-1                  text   json_schema  -
open-01-3BIT-REAP             text   json_schema  depth
open-02-3BIT-REAP             text   json_schema  depth
open-03-3BIT-REAP             image  json_schema  depth
open-04-3BIT-REAP             text   json_schema  depth
open-05-3BIT-REAP             image  json_schema  depth
open-06-W4A16-AUTOROUND-REAP  text   json_schema  depth
open-07-W4A16-AUTOROUND-REAP  image  json_schema  depth
open-08-W4A16-AUTOROUND-REAP  text   none         depth
open-09-W4A16-AUTOROUND-REAP  image  json_object  depth
open-10-W8A16                 text   json_schema  depth
open-11-W8A16                 image  json_schema  depth
open-12-W8A16                 text   json_schema  depth`
  .trim()
  .split("\n")
  .map((line) => line.trim().split(/ +/) as [id: string, input: string, output: string, depth: string]);

const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

type Body = Record<string, unknown>;

/** How a dialect asks for the same thing; null where it has no form for it. */
const dialects = {
  "/v1/chat/completions": {
    says: (text: string): Body => ({ messages: [{ role: "user", content: text }] }),
    image: (text: string): Body => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text },
            { type: "image_url", image_url: { url: `data:image/png;base64,${picture}` } },
          ],
        },
      ],
    }),
    json_schema: { response_format: { type: "json_schema", json_schema: { name: "book", schema } } },
    json_object: { response_format: { type: "json_object" } },
    depth: (effort: string): Body => ({ reasoning_effort: effort }),
  },
  "/v1/messages": {
    says: (text: string): Body => ({ max_tokens: 100, messages: [{ role: "user", content: text }] }),
    image: (text: string): Body => ({
      max_tokens: 100,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text },
            { type: "image", source: { type: "base64", media_type: "image/png", data: picture } },
          ],
        },
      ],
    }),
    json_schema: { output_config: { format: { type: "json_schema", schema } } },
    json_object: null,
    depth: (effort: string): Body =>
      effort === "off" ? { thinking: { type: "disabled" } } : { output_config: { effort } },
  },
  "/v1/responses": {
    says: (text: string): Body => ({ input: text }),
    image: (text: string): Body => ({
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text },
            { type: "input_image", image_url: `data:image/png;base64,${picture}` },
          ],
        },
      ],
    }),
    json_schema: { text: { format: { type: "json_schema", name: "book", schema } } },
    json_object: { text: { format: { type: "json_object" } } },
    depth: (effort: string): Body => ({ reasoning: { effort } }),
  },
} as const;

type Path = keyof typeof dialects;

test("the table has every model of the catalogue", () => {
  expect(models.map(([id]) => id)).toEqual([...embeddedCatalog().models.keys()]);
});

describe.each(Object.keys(dialects) as Path[])("%s", (path) => {
  const dialect = dialects[path];

  /** The status, the message of a refusal, and what the node was asked. */
  async function send(model: string, script: string, request: (text: string) => Body) {
    const marker = stack.node.marker(script);
    const reply = await post(
      stack,
      await stack.gateway.account(),
      { model, ...request(`hello [[${marker}]]`) },
      { path },
    );
    const body = (await reply.json()) as { error?: { type: string; message: string } };
    const [recorded] = await stack.node.requests(marker);
    return { status: reply.status, error: body.error ?? null, node: recorded?.body as Body | undefined };
  }

  test.each(models)(
    "%s: %s, %s, %s",
    async (model, input, output, depth) => {
      type Result = Awaited<ReturnType<typeof send>>;
      const expectRefused = (result: Result, what: string): void => {
        expect(result).toMatchObject({ status: 400, error: { type: "invalid_request_error" } });
        expect(result.error?.message).toContain(`the model ${model} ${what}`);
        expect(result.node).toBeUndefined();
      };
      const served = { status: 200, error: null };

      const image = await send(model, "text", dialect.image);
      if (input === "image") expect(image).toMatchObject(served);
      else expectRefused(image, "reads text only, not images");

      for (const kind of ["json_schema", "json_object"] as const) {
        const fields = dialect[kind];
        if (fields === null) continue;
        const result = await send(model, "json", (text) => ({ ...dialect.says(text), ...fields }));
        if (output === "json_schema" || output === kind) {
          expect(result).toMatchObject({ ...served, node: { response_format: { type: kind } } });
        } else expectRefused(result, `does not support ${kind}`);
      }

      // The scripted node is of no known engine, so its depth is what the configuration says.
      for (const effort of ["off", "low", "medium", "high"]) {
        const result = await send(model, "text", (text) => ({ ...dialect.says(text), ...dialect.depth(effort) }));
        expect(result).toMatchObject(served);
        expect(result.node?.["depth_was"] ?? null).toBe(depth === "depth" ? effort : null);
      }
    },
    timeLimit,
  );
});
