// How to point each kind of client at this server: only the base address and the key change.
import { agentSettings } from "../../../core/agent-settings.ts";
import type { Snippet } from "../parts/code-block.tsx";
import { rich } from "../texts.ts";

type QuickStart = Readonly<{
  /** Without /v1. */
  baseUrl: string;
  /** Examples read it from an environment variable, so that people can keep them in files. */
  key: string;
  model: string;
  contextTokens: number;
}>;

export const quickStart = (given: QuickStart): readonly Snippet[] => [...libraries(given), ...agents(given)];

function libraries({ baseUrl, key, model }: QuickStart): readonly Snippet[] {
  return [
    {
      name: "curl",
      language: "bash",
      code: `export TOLLGATE_KEY=${key}
curl -N ${baseUrl}/v1/chat/completions \\
  -H "authorization: Bearer $TOLLGATE_KEY" \\
  -H "content-type: application/json" \\
  -d '{"model":"${model}","stream":true,"messages":[{"role":"user","content":"Say hello"}]}'`,
    },
    {
      name: "OpenAI JS",
      language: "javascript",
      code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${baseUrl}/v1", apiKey: process.env.TOLLGATE_KEY });
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(reply.choices[0].message.content);`,
    },
    {
      name: "OpenAI Python",
      language: "python",
      code: `import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}/v1", api_key=os.environ["TOLLGATE_KEY"])
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Say hello"}],
)
print(reply.choices[0].message.content)`,
    },
    {
      name: "Anthropic JS",
      language: "javascript",
      code: `import Anthropic from "@anthropic-ai/sdk"; // its base address has no /v1

const client = new Anthropic({ baseURL: "${baseUrl}", apiKey: process.env.TOLLGATE_KEY });
const message = await client.messages.create({
  model: "${model}",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(message.content);`,
    },
    {
      name: "Anthropic Python",
      language: "python",
      code: `import os
from anthropic import Anthropic

client = Anthropic(base_url="${baseUrl}", api_key=os.environ["TOLLGATE_KEY"])
message = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Say hello"}],
)
print(message.content)`,
    },
  ];
}

const agents = (given: QuickStart): readonly Snippet[] =>
  agentSettings(given).map(({ name, file, language, code }) => ({
    name,
    language,
    code,
    ...(file === null
      ? {}
      : {
          note: <>{rich("key.in_file", { file: <code>{file}</code>, variable: <code>TOLLGATE_KEY</code> })}</>,
        }),
  }));
