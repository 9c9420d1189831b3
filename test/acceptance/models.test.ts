// What each of the 21 models accepts and refuses in each dialect: images, structured output, reasoning depth.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { eachDialect } from "../fixtures/dialects.ts";
import { pixelBase64 } from "../fixtures/pictures.ts";
import { type Asking, exchange } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const depths = ["off", "low", "medium", "high"];
const stack = useStack({
  config: `[nodes.depth]\n${depths.map((effort) => `${effort} = { depth_was = "${effort}" }`).join("\n")}\n`,
});

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

const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

test("the table has every model of the catalog", () => {
  expect(models.map(([id]) => id)).toEqual([...embeddedCatalog().models.keys()]);
});

describe.each(eachDialect)("%s", (_, dialect) => {
  /** The status, the message of a refusal, and what the node was asked. */
  async function send(model: string, script: string, more: object, asked: Asking = {}) {
    const { reply, marker } = await exchange(stack, dialect, script, { model, ...more }, asked);
    const body = (await reply.json()) as { error?: { type: string; message: string } };
    const [recorded] = await stack.node.requests(marker);
    return { status: reply.status, error: body.error ?? null, node: recorded?.body };
  }

  test.each(models)("%s: %s, %s, %s", async (model, input, output, depth) => {
    type Result = Awaited<ReturnType<typeof send>>;
    const expectRefused = (result: Result, what: string): void => {
      expect(result).toMatchObject({ status: 400, error: { type: "invalid_request_error" } });
      expect(result.error?.message).toContain(`the model ${model} ${what}`);
      expect(result.node).toBeUndefined();
    };
    const served = { status: 200, error: null };

    const image = await send(model, "text", {}, { says: [{ image: pixelBase64 }] });
    if (input === "image") expect(image).toMatchObject(served);
    else expectRefused(image, "reads text only, not images");

    for (const [kind, fields] of [
      ["json_schema", dialect.schema(schema)],
      ["json_object", dialect.object],
    ] as const) {
      if (fields === null) continue;
      const result = await send(model, "json", fields);
      if (output === "json_schema" || output === kind) {
        expect(result).toMatchObject({ ...served, node: { response_format: { type: kind } } });
      } else expectRefused(result, `does not support ${kind}`);
    }

    // The scripted node is of no known engine, so its depth is what the configuration says.
    for (const effort of depths) {
      const result = await send(model, "text", dialect.depth(effort));
      expect(result).toMatchObject(served);
      expect(result.node?.["depth_was"] ?? null).toBe(depth === "depth" ? effort : null);
    }
  });
});
