// The official OpenAI clients ask for embeddings, in all versions that are in use: they want base64 unless told otherwise,
// and turn it into numbers themselves.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { InputsNode, inputsConfig, vectorOf } from "../fixtures/inputs-node.ts";
import { missing } from "../fixtures/optional.ts";
import { clientsOf } from "./official-clients.ts";

setDefaultTimeout(120_000);

const node = new InputsNode();
let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: inputsConfig(node, [["bge-tiny", "embedding", "price = 5"]]) });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node[Symbol.dispose]();
});

const texts = ["one", "two é"];
const vectors = texts.map((text) => [...vectorOf(text)]);

describe.each(clientsOf("chat"))("%s", (_, { module }) => {
  test("vectors, usage and errors are as from OpenAI", async () => {
    const { email, api_key } = await gateway.account();
    const OpenAI = module!["default"];
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: api_key, maxRetries: 0 });
    const create = (more: object) => client.embeddings.create({ model: "bge-tiny", input: texts, ...more });
    for (const more of [{}, { encoding_format: "float" }]) {
      const { data, usage, model } = await create(more);
      expect(data.map(({ embedding }: { embedding: number[] }) => [...embedding])).toEqual(vectors);
      expect([model, usage]).toEqual(["bge-tiny", { prompt_tokens: 9, total_tokens: 9 }]);
    }
    expect((await gateway.usage(email)).map(({ input }) => input)).toEqual([9, 9]);
    const refused = await create({ input: "" }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.BadRequestError);
    expect(refused.message).toContain("input must not be empty");
  });
});

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const has = existsSync(python) && Bun.spawnSync([python, "-c", "import openai"]).exitCode === 0;
const absent = missing("the Python client openai", has, "make test/clients/.venv with requirements.txt");

const program = `
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
reply = client.embeddings.create(model="bge-tiny", input=["one", "two é"])
try:
    client.embeddings.create(model="bge-tiny", input="a", dimensions=3)
    refused = None
except openai.BadRequestError as error:
    refused = error.body["message"]
print(json.dumps([[item.embedding for item in reply.data], reply.usage.prompt_tokens, refused]))
`;

test.skipIf(absent)("the Python client reads the same", async () => {
  const { api_key } = await gateway.account();
  const { code, stdout, stderr } = await runToEnd([python, "-c", program, `${gateway.url}/v1`, api_key]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toEqual([
    vectors,
    9,
    "dimensions must be left out: the model makes vectors of 8 numbers here",
  ]);
});
