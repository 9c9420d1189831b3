// Sample requests of each endpoint in curl, JavaScript and Python, as shown in the reference. Each runs as it is, with a key
// in TOLLGATE_KEY and, where it names them, ids in RESPONSE_ID, CONVERSATION_ID and ITEM_ID. The tests run them all.
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
  const lines = [`curl -sSN ${address}`, ...headers, '-H "content-type: application/json"', `-d '${json}'`];
  return lines.join(" \\\n  ");
}

const curlGet = (address: string): string => `curl -sS ${address} \\\n  ${auth}`;
const curlWith = (method: string, address: string): string => `curl -sS -X ${method} ${address} \\\n  ${auth}`;

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

const ranked = {
  model: "bge-reranker-v2-m3",
  query: "What is a toll gate?",
  documents: ["A gate where a fee is paid.", "A kind of bread."],
};
const rankingSamples = (address: string): Samples => ({
  shell: curlPost(address, ranked),
  javaScript: fetchJs(address, "POST", JSON.stringify(ranked, null, 2)),
  python: pythonRequest(address, "POST", JSON.stringify(ranked)),
});

const oneConversation = (base: string, below = ""): string => `"${base}/v1/conversations/$CONVERSATION_ID${below}"`;
/** Calls of `client.conversations`. */
const conversationSamples = (base: string, { shell, javaScript, python }: Samples): Samples => ({
  shell,
  javaScript: openaiJs(base, `console.log(await client.conversations.${javaScript});`),
  python: openaiPython(base, `print(client.conversations.${python})`),
});

const between = { model: "core-3", prompt: "def add(a, b):", suffix: "print(add(1, 2))", max_tokens: 32 };

const postSamples = (address: string, body: object): Samples => ({
  shell: curlPost(address, body),
  javaScript: fetchJs(address, "POST", JSON.stringify(body)),
  python: pythonRequest(address, "POST", JSON.stringify(body)),
});

const completions = (base: string): SamplesById => ({
  createChatCompletion: {
    shell: curlPost(`${base}/v1/chat/completions`, {
      model: "core-3",
      messages: [{ role: "user", content: "Say hello" }],
      stream: true,
    }),
    javaScript: openaiJs(
      base,
      `const stream = await client.chat.completions.create({
  model: "core-3",
  messages: [{ role: "user", content: "Say hello" }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`,
    ),
    python: openaiPython(
      base,
      `stream = client.chat.completions.create(
    model="core-3",
    messages=[{"role": "user", "content": "Say hello"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")`,
    ),
  },
  createCompletion: {
    shell: curlPost(`${base}/v1/completions`, { model: "core-3", prompt: "Once upon a time", max_tokens: 32 }),
    javaScript: openaiJs(
      base,
      `const completion = await client.completions.create({
  model: "core-3",
  prompt: "Once upon a time",
  max_tokens: 32,
});
console.log(completion.choices[0].text);`,
    ),
    python: openaiPython(
      base,
      `completion = client.completions.create(model="core-3", prompt="Once upon a time", max_tokens=32)
print(completion.choices[0].text)`,
    ),
  },
  createFimCompletion: {
    shell: curlPost(`${base}/v1/fim/completions`, between),
    javaScript: fetchJs(`${base}/v1/fim/completions`, "POST", JSON.stringify(between)),
    python: pythonRequest(`${base}/v1/fim/completions`, "POST", JSON.stringify(between)),
  },
});

const answers = (base: string): SamplesById => ({
  createMessage: {
    shell: curlPost(
      `${base}/v1/messages`,
      { model: "core-3", max_tokens: 1024, messages: [{ role: "user", content: "Say hello" }] },
      ['-H "x-api-key: $TOLLGATE_KEY"', '-H "anthropic-version: 2023-06-01"'],
    ),
    javaScript: anthropicJs(
      base,
      `const message = await client.messages.create({
  model: "core-3",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(message.content, message.usage);`,
    ),
    python: anthropicPython(
      base,
      `with client.messages.stream(
    model="core-3",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Say hello"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="")`,
    ),
  },
  createResponse: {
    shell: curlPost(`${base}/v1/responses`, { model: "core-3", input: "Say hello" }),
    javaScript: openaiJs(
      base,
      `const response = await client.responses.create({ model: "core-3", input: "Say hello" });
const next = await client.responses.create({
  model: "core-3",
  previous_response_id: response.id,
  input: "And again",
});
console.log(response.output_text, next.output_text);`,
    ),
    python: openaiPython(
      base,
      `with client.responses.stream(model="core-3", input="Say hello") as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="")`,
    ),
  },
  compactResponse: {
    shell: curlPost(`${base}/v1/responses/compact`, {
      model: "core-3",
      input: [{ role: "user", content: "Remember the word gate." }],
    }),
    javaScript: fetchJs(
      `${base}/v1/responses/compact`,
      "POST",
      '{ model: "core-3", input: [{ role: "user", content: "Remember the word gate." }] }',
    ),
    python: pythonRequest(
      `${base}/v1/responses/compact`,
      "POST",
      '{"model": "core-3", "input": [{"role": "user", "content": "Remember the word gate."}]}',
    ),
  },
});

const storedResponses = (base: string): SamplesById => ({
  getResponse: {
    shell: curlGet(`"${base}/v1/responses/$RESPONSE_ID"`),
    javaScript: openaiJs(
      base,
      `const response = await client.responses.retrieve(process.env.RESPONSE_ID);
console.log(response.output_text);`,
    ),
    python: openaiPython(
      base,
      `response = client.responses.retrieve(os.environ["RESPONSE_ID"])
print(response.output_text)`,
    ),
  },
  listInputItems: {
    shell: curlGet(`"${base}/v1/responses/$RESPONSE_ID/input_items"`),
    javaScript: openaiJs(
      base,
      "for await (const item of client.responses.inputItems.list(process.env.RESPONSE_ID)) console.log(item);",
    ),
    python: openaiPython(
      base,
      `for item in client.responses.input_items.list(os.environ["RESPONSE_ID"]):
    print(item)`,
    ),
  },
  cancelResponse: {
    shell: curlWith("POST", `"${base}/v1/responses/$RESPONSE_ID/cancel"`),
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
  deleteResponse: {
    shell: curlWith("DELETE", `"${base}/v1/responses/$RESPONSE_ID"`),
    javaScript: openaiJs(base, "await client.responses.delete(process.env.RESPONSE_ID);"),
    python: openaiPython(base, 'client.responses.delete(os.environ["RESPONSE_ID"])'),
  },
});

const conversations = (base: string): SamplesById => ({
  createConversation: conversationSamples(base, {
    shell: curlPost(`${base}/v1/conversations`, { items: [{ role: "user", content: "Say hello" }] }),
    javaScript: 'create({ items: [{ role: "user", content: "Say hello" }] })',
    python: 'create(items=[{"role": "user", "content": "Say hello"}])',
  }),
  getConversation: conversationSamples(base, {
    shell: curlGet(oneConversation(base)),
    javaScript: "retrieve(process.env.CONVERSATION_ID)",
    python: 'retrieve(os.environ["CONVERSATION_ID"])',
  }),
  updateConversation: conversationSamples(base, {
    shell: curlPost(oneConversation(base), { metadata: { topic: "other" } }),
    javaScript: 'update(process.env.CONVERSATION_ID, { metadata: { topic: "other" } })',
    python: 'update(os.environ["CONVERSATION_ID"], metadata={"topic": "other"})',
  }),
  deleteConversation: conversationSamples(base, {
    shell: curlWith("DELETE", oneConversation(base)),
    javaScript: "delete(process.env.CONVERSATION_ID)",
    python: 'delete(os.environ["CONVERSATION_ID"])',
  }),
  listConversationItems: conversationSamples(base, {
    shell: curlGet(oneConversation(base, "/items")),
    javaScript: "items.list(process.env.CONVERSATION_ID)",
    python: 'items.list(os.environ["CONVERSATION_ID"])',
  }),
  createConversationItems: conversationSamples(base, {
    shell: curlPost(oneConversation(base, "/items"), { items: [{ role: "user", content: "And again" }] }),
    javaScript: 'items.create(process.env.CONVERSATION_ID, { items: [{ role: "user", content: "And again" }] })',
    python: 'items.create(os.environ["CONVERSATION_ID"], items=[{"role": "user", "content": "And again"}])',
  }),
  getConversationItem: conversationSamples(base, {
    shell: curlGet(oneConversation(base, "/items/$ITEM_ID")),
    javaScript: "items.retrieve(process.env.ITEM_ID, { conversation_id: process.env.CONVERSATION_ID })",
    python: 'items.retrieve(os.environ["ITEM_ID"], conversation_id=os.environ["CONVERSATION_ID"])',
  }),
  deleteConversationItem: conversationSamples(base, {
    shell: curlWith("DELETE", oneConversation(base, "/items/$ITEM_ID")),
    javaScript: "items.delete(process.env.ITEM_ID, { conversation_id: process.env.CONVERSATION_ID })",
    python: 'items.delete(os.environ["ITEM_ID"], conversation_id=os.environ["CONVERSATION_ID"])',
  }),
});

const inputs = (base: string): SamplesById => ({
  createEmbedding: {
    shell: curlPost(`${base}/v1/embeddings`, { model: "bge-m3", input: ["What is a toll gate?"] }),
    javaScript: openaiJs(
      base,
      `const { data } = await client.embeddings.create({ model: "bge-m3", input: ["What is a toll gate?"] });
console.log(data[0].embedding.length);`,
    ),
    python: openaiPython(
      base,
      `reply = client.embeddings.create(model="bge-m3", input=["What is a toll gate?"])
print(len(reply.data[0].embedding))`,
    ),
  },
  rerank: rankingSamples(`${base}/v1/rerank`),
  rerankV2: rankingSamples(`${base}/v2/rerank`),
  quote: postSamples(`${base}/v1/quote`, { model: "core-3", messages: [{ role: "user", content: "Say hello" }] }),
  tokenize: postSamples(`${base}/v1/tokenize`, { model: "core-3", text: "How many tokens is this?" }),
});

const counts = (base: string): SamplesById => ({
  countMessageTokens: {
    shell: curlPost(`${base}/v1/messages/count_tokens`, {
      model: "core-3",
      messages: [{ role: "user", content: "Say hello" }],
    }),
    javaScript: anthropicJs(
      base,
      `const count = await client.messages.countTokens({
  model: "core-3",
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(count.input_tokens);`,
    ),
    python: anthropicPython(
      base,
      `count = client.messages.count_tokens(
    model="core-3",
    messages=[{"role": "user", "content": "Say hello"}],
)
print(count.input_tokens)`,
    ),
  },
  countResponseTokens: {
    shell: curlPost(`${base}/v1/responses/input_tokens`, { model: "core-3", input: "Say hello" }),
    javaScript: openaiJs(
      base,
      `const count = await client.responses.inputTokens.count({ model: "core-3", input: "Say hello" });
console.log(count.input_tokens);`,
    ),
    python: openaiPython(
      base,
      `count = client.responses.input_tokens.count(model="core-3", input="Say hello")
print(count.input_tokens)`,
    ),
  },
});

const site = (base: string): SamplesById => ({
  listModels: {
    shell: curlGet(`${base}/v1/models`),
    javaScript: openaiJs(base, "for await (const model of client.models.list()) console.log(model.id);"),
    python: openaiPython(base, "for model in client.models.list():\n    print(model.id)"),
  },
  getModel: {
    shell: curlGet(`${base}/v1/models/core-3`),
    javaScript: openaiJs(base, 'console.log(await client.models.retrieve("core-3"));'),
    python: openaiPython(base, 'print(client.models.retrieve("core-3"))'),
  },
  health: plainGet(`${base}/healthz`),
  readiness: plainGet(`${base}/readyz`),
});

/** By operation id; `base` is {base_url}. */
export const codeSamples = (base: string): Readonly<Record<string, readonly CodeSample[]>> =>
  Object.fromEntries(
    [completions, answers, storedResponses, conversations, inputs, counts, site]
      .flatMap((samples) => Object.entries(samples(base)))
      .map(([id, each]) => [id, samplesOf(each)]),
  );
