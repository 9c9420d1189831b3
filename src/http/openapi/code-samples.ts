// Sample requests of each endpoint in curl, JavaScript and Python, as shown in the reference. Each runs as it is, with a key
// in TOLLGATE_KEY and, where it names them, ids in RESPONSE_ID, CONVERSATION_ID, ITEM_ID, FILE_ID, INPUT_FILE_ID, BATCH_ID and
// MESSAGE_BATCH_ID. The tests run them all.
import type { CodeSample } from "../../docs/openapi-document.ts";

type Samples = Readonly<{ shell: string; javaScript: string; python: string }>;
type SamplesById = Readonly<Record<string, Samples>>;

const samplesOf = ({ shell, javaScript, python }: Samples): readonly CodeSample[] => [
  { lang: "Shell", label: "curl", source: shell },
  { lang: "JavaScript", label: "JavaScript", source: javaScript },
  { lang: "Python", label: "Python", source: python },
];

const auth = '-H "authorization: Bearer $TOLLGATE_KEY"';

/** A POST with a JSON body over several lines. */
function curlPost(address: string, body: object, headers: readonly string[] = [auth]): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  const lines = [
    `curl -sSN ${address.includes("$") ? `"${address}"` : address}`,
    ...headers,
    '-H "content-type: application/json"',
    `-d '${json}'`,
  ];
  return lines.join(" \\\n  ");
}

const curlWith = (method: string, address: string): string => `curl -sS${method} ${address} \\\n  ${auth}`;

const openaiJs = (base: string, call: string): string => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.TOLLGATE_KEY });
${call}`;

const openaiPython = (base: string, call: string): string => `import os
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key=os.environ["TOLLGATE_KEY"])
${call}`;

const anthropicJs = (base: string, call: string): string => `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "${base}", apiKey: process.env.TOLLGATE_KEY });
${call}`;

const anthropicPython = (base: string, call: string): string => `import os
from anthropic import Anthropic

client = Anthropic(base_url="${base}", api_key=os.environ["TOLLGATE_KEY"])
${call}`;

const fetchJs = (address: string, method: string, body: string): string => `const reply = await fetch("${address}", {
  method: "${method}",
  headers: { authorization: \`Bearer \${process.env.TOLLGATE_KEY}\` },
  body: JSON.stringify(${body}),
});
console.log(await reply.json());`;

const pythonRequest = (address: string, method: string, body: string): string => `import json, os
from urllib.request import Request, urlopen

request = Request(
    "${address}",
    method="${method}",
    headers={"authorization": f"Bearer {os.environ['TOLLGATE_KEY']}"},
    data=json.dumps(${body}).encode(),
)
print(json.load(urlopen(request)))`;

const plainGet = (address: string): Samples => ({
  shell: `curl -sS ${address}`,
  javaScript: `const reply = await fetch("${address}");\nconsole.log(reply.status, await reply.text());`,
  python: `from urllib.request import urlopen\n\nreply = urlopen("${address}")\nprint(reply.status, reply.read().decode())`,
});

type Kit = ReturnType<typeof kitOf>;

/** How samples are written for one {base_url}. */
const kitOf = (base: string) => ({
  post: (path: string, body: object, headers?: readonly string[]): string => curlPost(`${base}${path}`, body, headers),
  get: (path: string): string => curlWith("", path.includes("$") ? `"${base}${path}"` : `${base}${path}`),
  without: (method: string, path: string): string => curlWith(` -X ${method}`, `"${base}${path}"`),
  openai: (shell: string, javaScript: string, python: string): Samples => ({
    shell,
    javaScript: openaiJs(base, javaScript),
    python: openaiPython(base, python),
  }),
  anthropic: (shell: string, javaScript: string, python: string): Samples => ({
    shell,
    javaScript: anthropicJs(base, javaScript),
    python: anthropicPython(base, python),
  }),
  /** Without a library; `javaScript` and `python`: the body as people write it there. */
  plain: (path: string, body: object, javaScript = JSON.stringify(body), python = javaScript): Samples => ({
    shell: curlPost(`${base}${path}`, body),
    javaScript: fetchJs(`${base}${path}`, "POST", javaScript),
    python: pythonRequest(`${base}${path}`, "POST", python),
  }),
  open: (path: string): Samples => plainGet(`${base}${path}`),
});

/** Calls of `client.conversations`. */
const conversation = (kit: Kit, shell: string, javaScript: string, python: string): Samples =>
  kit.openai(shell, `console.log(await client.conversations.${javaScript});`, `print(client.conversations.${python})`);

const hello = [{ role: "user", content: "Say hello" }];
const between = { model: "core-3", prompt: "def add(a, b):", suffix: "print(add(1, 2))", max_tokens: 32 };
const ranked = {
  model: "bge-reranker-v2-m3",
  query: "What is a toll gate?",
  documents: ["A gate where a fee is paid.", "A kind of bread."],
};
const ranking = [ranked, JSON.stringify(ranked, null, 2), JSON.stringify(ranked)] as const;

const completions = ({ post, openai, plain }: Kit): SamplesById => ({
  createChatCompletion: openai(
    post("/v1/chat/completions", { model: "core-3", messages: hello, stream: true }),
    `const stream = await client.chat.completions.create({
  model: "core-3",
  messages: [{ role: "user", content: "Say hello" }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`,
    `stream = client.chat.completions.create(
    model="core-3",
    messages=[{"role": "user", "content": "Say hello"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")`,
  ),
  createCompletion: openai(
    post("/v1/completions", { model: "core-3", prompt: "Once upon a time", max_tokens: 32 }),
    `const completion = await client.completions.create({
  model: "core-3",
  prompt: "Once upon a time",
  max_tokens: 32,
});
console.log(completion.choices[0].text);`,
    `completion = client.completions.create(model="core-3", prompt="Once upon a time", max_tokens=32)
print(completion.choices[0].text)`,
  ),
  createFimCompletion: plain("/v1/fim/completions", between),
});

const answers = ({ post, openai, anthropic, plain }: Kit): SamplesById => ({
  createMessage: anthropic(
    post("/v1/messages", { model: "core-3", max_tokens: 1024, messages: hello }, [
      '-H "x-api-key: $TOLLGATE_KEY"',
      '-H "anthropic-version: 2023-06-01"',
    ]),
    `const message = await client.messages.create({
  model: "core-3",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(message.content, message.usage);`,
    `with client.messages.stream(
    model="core-3",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Say hello"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="")`,
  ),
  createResponse: openai(
    post("/v1/responses", { model: "core-3", input: "Say hello" }),
    `const response = await client.responses.create({ model: "core-3", input: "Say hello" });
const next = await client.responses.create({
  model: "core-3",
  previous_response_id: response.id,
  input: "And again",
});
console.log(response.output_text, next.output_text);`,
    `with client.responses.stream(model="core-3", input="Say hello") as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="")`,
  ),
  compactResponse: plain(
    "/v1/responses/compact",
    { model: "core-3", input: [{ role: "user", content: "Remember the word gate." }] },
    '{ model: "core-3", input: [{ role: "user", content: "Remember the word gate." }] }',
    '{"model": "core-3", "input": [{"role": "user", "content": "Remember the word gate."}]}',
  ),
});

const storedResponses = ({ get, without, openai }: Kit, base: string): SamplesById => ({
  getResponse: openai(
    get("/v1/responses/$RESPONSE_ID"),
    `const response = await client.responses.retrieve(process.env.RESPONSE_ID);
console.log(response.output_text);`,
    `response = client.responses.retrieve(os.environ["RESPONSE_ID"])
print(response.output_text)`,
  ),
  listInputItems: openai(
    get("/v1/responses/$RESPONSE_ID/input_items"),
    "for await (const item of client.responses.inputItems.list(process.env.RESPONSE_ID)) console.log(item);",
    `for item in client.responses.input_items.list(os.environ["RESPONSE_ID"]):
    print(item)`,
  ),
  cancelResponse: {
    shell: without("POST", "/v1/responses/$RESPONSE_ID/cancel"),
    javaScript: `const reply = await fetch(\`${base}/v1/responses/\${process.env.RESPONSE_ID}/cancel\`, {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.TOLLGATE_KEY}\` },
});
console.log(reply.status, await reply.json());`,
    python: `import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    f"${base}/v1/responses/{os.environ['RESPONSE_ID']}/cancel",
    method="POST",
    headers={"authorization": f"Bearer {os.environ['TOLLGATE_KEY']}"},
)
try:
    urlopen(request)
except HTTPError as refused:
    print(refused.code, json.load(refused))`,
  },
  deleteResponse: openai(
    without("DELETE", "/v1/responses/$RESPONSE_ID"),
    "await client.responses.delete(process.env.RESPONSE_ID);",
    'client.responses.delete(os.environ["RESPONSE_ID"])',
  ),
});

const files = ({ get, without, openai }: Kit, base: string): SamplesById => ({
  createFile: openai(
    `printf 'What a gate is for' > gate.txt\n${curlWith("", `${base}/v1/files`)} \\\n  -F purpose=user_data -F file=@gate.txt`,
    `const file = new File(["What a gate is for"], "gate.txt");
console.log(await client.files.create({ file, purpose: "user_data" }));`,
    `print(client.files.create(file=("gate.txt", b"What a gate is for"), purpose="user_data"))`,
  ),
  listFiles: openai(
    get("/v1/files"),
    "for await (const file of client.files.list()) console.log(file);",
    "for file in client.files.list():\n    print(file)",
  ),
  getFile: openai(
    get("/v1/files/$FILE_ID"),
    "console.log(await client.files.retrieve(process.env.FILE_ID));",
    'print(client.files.retrieve(os.environ["FILE_ID"]))',
  ),
  getFileContent: openai(
    get("/v1/files/$FILE_ID/content"),
    "console.log(await (await client.files.content(process.env.FILE_ID)).text());",
    'print(client.files.content(os.environ["FILE_ID"]).text)',
  ),
  deleteFile: openai(
    without("DELETE", "/v1/files/$FILE_ID"),
    "console.log(await client.files.delete(process.env.FILE_ID));",
    'print(client.files.delete(os.environ["FILE_ID"]))',
  ),
});

const batchGiven = { endpoint: "/v1/chat/completions", completion_window: "24h" };
const batchParams = { model: "core-3", max_tokens: 50, messages: hello };

/** Calls of one batch, which `id` names in the environment. */
const ofBatch = (
  { get, without, openai, anthropic }: Kit,
  method: "GET" | "POST" | "DELETE",
  call: string,
  isMessages = false,
): Samples => {
  const [id, at, write] = isMessages
    ? (["MESSAGE_BATCH_ID", "/v1/messages/batches", anthropic] as const)
    : (["BATCH_ID", "/v1/batches", openai] as const);
  const path = `${at}/$${id}${call === "cancel" ? "/cancel" : ""}`;
  const calls = isMessages ? "client.messages.batches" : "client.batches";
  return write(
    method === "GET" ? get(path) : without(method, path),
    `console.log(await ${calls}.${call}(process.env.${id}));`,
    `print(${calls}.${call}(os.environ["${id}"]))`,
  );
};

const batches = (kit: Kit, base: string): SamplesById => ({
  createBatch: kit.openai(
    `${curlWith("", `${base}/v1/batches`)} \\\n  -H "content-type: application/json" \\\n  -d "{\\"input_file_id\\":\\"$INPUT_FILE_ID\\",${JSON.stringify(batchGiven).slice(1).replaceAll('"', '\\"')}"`,
    `const request = {
  custom_id: "one",
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "core-3", max_tokens: 50, messages: [{ role: "user", content: "Say hello" }] },
};
const file = await client.files.create({
  file: new File([JSON.stringify(request)], "in.jsonl"),
  purpose: "batch",
});
console.log(
  await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  }),
);`,
    `import json

request = {
    "custom_id": "one",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {"model": "core-3", "max_tokens": 50, "messages": [{"role": "user", "content": "Say hello"}]},
}
file = client.files.create(file=("in.jsonl", json.dumps(request).encode()), purpose="batch")
print(
    client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
)`,
  ),
  listBatches: kit.openai(
    kit.get("/v1/batches"),
    "for await (const batch of client.batches.list()) console.log(batch);",
    "for batch in client.batches.list():\n    print(batch)",
  ),
  getBatch: ofBatch(kit, "GET", "retrieve"),
  cancelBatch: ofBatch(kit, "POST", "cancel"),
  createMessageBatch: kit.anthropic(
    kit.post("/v1/messages/batches", { requests: [{ custom_id: "one", params: batchParams }] }),
    `const params = { model: "core-3", max_tokens: 50, messages: [{ role: "user", content: "Say hello" }] };
console.log(await client.messages.batches.create({ requests: [{ custom_id: "one", params }] }));`,
    `params = {"model": "core-3", "max_tokens": 50, "messages": [{"role": "user", "content": "Say hello"}]}
print(client.messages.batches.create(requests=[{"custom_id": "one", "params": params}]))`,
  ),
  listMessageBatches: kit.anthropic(
    kit.get("/v1/messages/batches"),
    "for await (const batch of client.messages.batches.list()) console.log(batch);",
    "for batch in client.messages.batches.list():\n    print(batch)",
  ),
  getMessageBatch: ofBatch(kit, "GET", "retrieve", true),
  cancelMessageBatch: ofBatch(kit, "POST", "cancel", true),
  deleteMessageBatch: ofBatch(kit, "DELETE", "delete", true),
  getMessageBatchResults: kit.anthropic(
    kit.get("/v1/messages/batches/$MESSAGE_BATCH_ID/results"),
    "for await (const line of await client.messages.batches.results(process.env.MESSAGE_BATCH_ID)) console.log(line);",
    `for line in client.messages.batches.results(os.environ["MESSAGE_BATCH_ID"]):\n    print(line)`,
  ),
});

const conversations = (kit: Kit): SamplesById => ({
  createConversation: conversation(
    kit,
    kit.post("/v1/conversations", { items: hello }),
    'create({ items: [{ role: "user", content: "Say hello" }] })',
    'create(items=[{"role": "user", "content": "Say hello"}])',
  ),
  getConversation: conversation(
    kit,
    kit.get("/v1/conversations/$CONVERSATION_ID"),
    "retrieve(process.env.CONVERSATION_ID)",
    'retrieve(os.environ["CONVERSATION_ID"])',
  ),
  updateConversation: conversation(
    kit,
    kit.post("/v1/conversations/$CONVERSATION_ID", { metadata: { topic: "other" } }),
    'update(process.env.CONVERSATION_ID, { metadata: { topic: "other" } })',
    'update(os.environ["CONVERSATION_ID"], metadata={"topic": "other"})',
  ),
  deleteConversation: conversation(
    kit,
    kit.without("DELETE", "/v1/conversations/$CONVERSATION_ID"),
    "delete(process.env.CONVERSATION_ID)",
    'delete(os.environ["CONVERSATION_ID"])',
  ),
  listConversationItems: conversation(
    kit,
    kit.get("/v1/conversations/$CONVERSATION_ID/items"),
    "items.list(process.env.CONVERSATION_ID)",
    'items.list(os.environ["CONVERSATION_ID"])',
  ),
  createConversationItems: conversation(
    kit,
    kit.post("/v1/conversations/$CONVERSATION_ID/items", { items: [{ role: "user", content: "And again" }] }),
    'items.create(process.env.CONVERSATION_ID, { items: [{ role: "user", content: "And again" }] })',
    'items.create(os.environ["CONVERSATION_ID"], items=[{"role": "user", "content": "And again"}])',
  ),
  getConversationItem: conversation(
    kit,
    kit.get("/v1/conversations/$CONVERSATION_ID/items/$ITEM_ID"),
    "items.retrieve(process.env.ITEM_ID, { conversation_id: process.env.CONVERSATION_ID })",
    'items.retrieve(os.environ["ITEM_ID"], conversation_id=os.environ["CONVERSATION_ID"])',
  ),
  deleteConversationItem: conversation(
    kit,
    kit.without("DELETE", "/v1/conversations/$CONVERSATION_ID/items/$ITEM_ID"),
    "items.delete(process.env.ITEM_ID, { conversation_id: process.env.CONVERSATION_ID })",
    'items.delete(os.environ["ITEM_ID"], conversation_id=os.environ["CONVERSATION_ID"])',
  ),
});

function heard({ openai }: Kit, base: string, name: "transcriptions" | "translations"): Samples {
  const { javaScript, ...others } = openai(
    `${curlWith("", `${base}/v1/audio/${name}`)} \\\n  -F model=whisper-1 -F file=@talk.wav`,
    `const reply = await client.audio.${name}.create({ model: "whisper-1", file: createReadStream("talk.wav") });
console.log(reply.text);`,
    `reply = client.audio.${name}.create(model="whisper-1", file=open("talk.wav", "rb"))
print(reply.text)`,
  );
  return { ...others, javaScript: `import { createReadStream } from "node:fs";\n${javaScript}` };
}

const voices = (kit: Kit, base: string): SamplesById => ({
  createTranscription: heard(kit, base, "transcriptions"),
  createTranslation: heard(kit, base, "translations"),
  createSpeech: kit.openai(
    `${kit.post("/v1/audio/speech", spoken)} -o coin.wav && ls coin.wav`,
    `const speech = await client.audio.speech.create(${JSON.stringify(spoken)});
console.log((await speech.arrayBuffer()).byteLength, "bytes");`,
    `with client.audio.speech.with_streaming_response.create(
    model="tts-1", voice="alloy", input="A toll gate asks for a coin.", response_format="wav"
) as speech:
    speech.stream_to_file("coin.wav")
print(os.path.getsize("coin.wav"), "bytes")`,
  ),
});

const spoken = { model: "tts-1", voice: "alloy", input: "A toll gate asks for a coin.", response_format: "wav" };

const inputs = ({ post, openai, plain }: Kit): SamplesById => ({
  createEmbedding: openai(
    post("/v1/embeddings", { model: "bge-m3", input: ["What is a toll gate?"] }),
    `const { data } = await client.embeddings.create({ model: "bge-m3", input: ["What is a toll gate?"] });
console.log(data[0].embedding.length);`,
    `reply = client.embeddings.create(model="bge-m3", input=["What is a toll gate?"])
print(len(reply.data[0].embedding))`,
  ),
  rerank: plain("/v1/rerank", ...ranking),
  rerankV2: plain("/v2/rerank", ...ranking),
  quote: plain("/v1/quote", { model: "core-3", messages: hello }),
  tokenize: plain("/v1/tokenize", { model: "core-3", text: "How many tokens is this?" }),
});

const counts = ({ post, openai, anthropic }: Kit): SamplesById => ({
  countMessageTokens: anthropic(
    post("/v1/messages/count_tokens", { model: "core-3", messages: hello }),
    `const count = await client.messages.countTokens({
  model: "core-3",
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(count.input_tokens);`,
    `count = client.messages.count_tokens(
    model="core-3",
    messages=[{"role": "user", "content": "Say hello"}],
)
print(count.input_tokens)`,
  ),
  countResponseTokens: openai(
    post("/v1/responses/input_tokens", { model: "core-3", input: "Say hello" }),
    `const count = await client.responses.inputTokens.count({ model: "core-3", input: "Say hello" });
console.log(count.input_tokens);`,
    `count = client.responses.input_tokens.count(model="core-3", input="Say hello")
print(count.input_tokens)`,
  ),
});

const site = ({ get, openai, open }: Kit): SamplesById => ({
  listModels: openai(
    get("/v1/models"),
    "for await (const model of client.models.list()) console.log(model.id);",
    "for model in client.models.list():\n    print(model.id)",
  ),
  getModel: openai(
    get("/v1/models/core-3"),
    'console.log(await client.models.retrieve("core-3"));',
    'print(client.models.retrieve("core-3"))',
  ),
  health: open("/healthz"),
  readiness: open("/readyz"),
});

/** By operation id; `base` is {base_url}. */
export const codeSamples = (base: string): Readonly<Record<string, readonly CodeSample[]>> =>
  Object.fromEntries(
    [completions, answers, storedResponses, conversations, files, batches, inputs, voices, counts, site]
      .flatMap((samples) => Object.entries(samples(kitOf(base), base)))
      .map(([id, each]) => [id, samplesOf(each)]),
  );
