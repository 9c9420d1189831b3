// Every sample of the API reference, taken from a running server and run as it stands: curl by sh, JavaScript by Node
// with the official libraries, Python with them too.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import type { CodeSample, OpenApiDocument, Operation } from "../../src/docs/openapi-document.ts";
import { describeApi } from "../../src/http/openapi/description.ts";
import { type Finished, runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { InputsNode, inputsConfig } from "../fixtures/inputs-node.ts";
import { missing } from "../fixtures/optional.ts";
import { recording, VoicesNode, voicesConfig } from "../fixtures/voices-node.ts";

setDefaultTimeout(120_000);

const clients = join(import.meta.dir, "../clients");
const python = process.env["TOLLGATE_PYTHON"] ?? join(clients, ".venv/bin/python");
const without: Readonly<Record<CodeSample["lang"], boolean>> = {
  Shell: missing("curl", Bun.which("curl") !== null, "install it"),
  JavaScript: missing(
    "the JavaScript clients",
    Bun.which("node") !== null && existsSync(join(clients, "node_modules/openai")),
    "npm ci --prefix test/clients",
  ),
  Python: missing("the Python clients", existsSync(python), "make test/clients/.venv with requirements.txt"),
};

const commands: Readonly<Record<CodeSample["lang"], (source: string) => string[]>> = {
  Shell: (source) => ["sh", "-euc", source],
  JavaScript: (source) => ["node", "--input-type=module", "-e", source],
  Python: (source) => [python, "-c", source],
};

const operationsOf = ({ paths }: OpenApiDocument): Operation[] =>
  Object.values(paths).flatMap((methods) => Object.values(methods) as Operation[]);

let gateway: GatewayProcess;
let served: OpenApiDocument;
/** The demo node has no models for these. */
const ofVoices = ["createTranscription", "createTranslation", "createSpeech"];
const ofInputs = new Set(["createEmbedding", "rerank", "rerankV2", ...ofVoices]);
const voices = new VoicesNode();
/** The recording of the samples. */
const talk = join(clients, "talk.wav");
const node = new InputsNode({ lists: ["bge-m3", "bge-reranker-v2-m3"] });
let withInputs: GatewayProcess;
let servedWithInputs: OpenApiDocument;
const descriptionOf = async ({ url }: GatewayProcess): Promise<OpenApiDocument> =>
  (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: "" });
  withInputs = await GatewayProcess.start({
    config: inputsConfig(
      node,
      [
        ["bge-m3", "embedding"],
        ["bge-reranker-v2-m3", "rerank"],
      ],
      voicesConfig(voices),
    ),
  });
  for (const path of [talk, join(withInputs.folder, "talk.wav")]) await Bun.write(path, recording("short.mp3"));
  served = await descriptionOf(gateway);
  servedWithInputs = await descriptionOf(withInputs);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await withInputs[Symbol.asyncDispose]();
  node[Symbol.dispose]();
  voices[Symbol.dispose]();
  await Bun.file(talk).delete();
});

/** A stored response of its own for each sample, because one of them deletes it. */
async function storedResponse(): Promise<string> {
  const reply = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.operatorKey}` },
    body: JSON.stringify({ model: "core-3", input: "Keep this", max_output_tokens: 1 }),
  });
  return ((await reply.json()) as { id: string }).id;
}

async function conversation(): Promise<Readonly<{ CONVERSATION_ID: string; ITEM_ID: string }>> {
  const post = async <Reply>(path: string, body: object): Promise<Reply> => {
    const headers = { authorization: `Bearer ${gateway.operatorKey}` };
    const reply = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await reply.json()) as Reply;
  };
  const { id } = await post<{ id: string }>("/v1/conversations", {});
  const items = [{ role: "user", content: "Keep this" }];
  const { first_id: item } = await post<{ first_id: string }>(`/v1/conversations/${id}/items`, { items });
  return { CONVERSATION_ID: id, ITEM_ID: item };
}

async function file(): Promise<string> {
  const body = new FormData();
  body.append("purpose", "user_data");
  body.append("file", new Blob(["Keep this"]), "kept.txt");
  const headers = { authorization: `Bearer ${gateway.operatorKey}` };
  const reply = await fetch(`${gateway.url}/v1/files`, { method: "POST", headers, body });
  return ((await reply.json()) as { id: string }).id;
}

let keys = 0;

/** A batch that waits, one that has ended, and a file for another. */
async function batches(): Promise<Readonly<Record<string, string>>> {
  const [{ email } = { email: "" }] = await gateway.cli<{ email: string }[]>("accounts", "list");
  const { api_key: poor } = await gateway.makeKey(email, { name: `poor ${++keys}`, limit_day: 1 });
  const ask = async (path: string, body?: string | FormData, key = gateway.operatorKey): Promise<Json> => {
    const headers = { authorization: `Bearer ${key}` };
    const init = body === undefined ? { headers } : { method: "POST", headers, body };
    return (await (await fetch(gateway.url + path, init)).json()) as Json;
  };
  type Json = Record<string, string>;
  const params = { model: "core-3", max_tokens: 5, messages: [{ role: "user", content: "Keep this" }] };
  const body = new FormData();
  body.append("purpose", "batch");
  const at = "/v1/chat/completions";
  body.append(
    "file",
    new Blob([JSON.stringify({ custom_id: "one", method: "POST", url: at, body: params })]),
    "in.jsonl",
  );
  const { id: file } = await ask("/v1/files", body);
  const given = { input_file_id: file, endpoint: at, completion_window: "24h" };
  const { id: batch } = await ask("/v1/batches", JSON.stringify(given), poor);
  const requests = JSON.stringify({ requests: [{ custom_id: "one", params }] });
  const { id: ended } = await ask("/v1/messages/batches", requests);
  const isOver = async () => (await ask(`/v1/messages/batches/${ended}`))["processing_status"] === "ended";
  await eventually("the batch of messages ends", isOver);
  return { INPUT_FILE_ID: file!, BATCH_ID: batch!, MESSAGE_BATCH_ID: ended! };
}

async function run(sample: CodeSample, { folder, operatorKey }: GatewayProcess): Promise<Finished> {
  return runToEnd(commands[sample.lang](sample.source), {
    cwd: sample.lang === "JavaScript" ? clients : folder, // where the libraries are
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      TOLLGATE_KEY: operatorKey,
      PYTHONWARNINGS: "ignore::DeprecationWarning", // OpenAI's of its translations
      RESPONSE_ID: await storedResponse(),
      FILE_ID: await file(),
      ...(await conversation()),
      ...(/BATCH_ID|INPUT_FILE/.test(sample.source) ? await batches() : {}),
    },
  });
}

/** The only call that can never succeed; its samples show the refusal. */
const refused = new Set(["cancelResponse"]);

const planned = operationsOf(describeApi({ catalog: embeddedCatalog(), baseUrl: "" }));

describe.each(planned.map(({ operationId }) => operationId))("the samples of %s", (operationId) => {
  test.concurrent.each(Object.keys(without) as CodeSample["lang"][])("%s", async (language) => {
    if (without[language]) return;
    const [asked, described] = ofInputs.has(operationId) ? [withInputs, servedWithInputs] : [gateway, served];
    const operation = operationsOf(described).find((each) => each.operationId === operationId)!;
    const sample = operation["x-codeSamples"]!.find(({ lang }) => lang === language)!;
    expect(sample.source).toContain(asked.url);
    const { code, stdout, stderr } = await run(sample, asked);
    expect([code, stderr]).toEqual([0, ""]);
    if (operationId !== "deleteResponse") expect(stdout).not.toBe("");
    expect(/"error"|'error'|error:/.test(stdout.replaceAll(/["']?error["']?: ?(?:null|None)/g, ""))).toBe(
      refused.has(operationId),
    );
  });
});
