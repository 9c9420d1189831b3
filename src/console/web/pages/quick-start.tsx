// How to point each kind of client at this server: only the base address and the key change.
import type { Snippet } from "../parts/code-block.tsx";

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

function agents({ baseUrl, key, model, contextTokens }: QuickStart): readonly Snippet[] {
  return [
    {
      name: "Claude Code",
      language: "bash",
      code: `export ANTHROPIC_BASE_URL=${baseUrl}
export ANTHROPIC_API_KEY=${key}
export ANTHROPIC_MODEL=${model}
export CLAUDE_CODE_MAX_CONTEXT_TOKENS=${contextTokens}
claude`,
    },
    {
      name: "Codex",
      language: "ini",
      note: (
        <>
          In <code>~/.codex/config.toml</code>, with the key in the environment variable <code>TOLLGATE_KEY</code>:
        </>
      ),
      code: `model = "${model}"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${baseUrl}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"`,
    },
    {
      name: "opencode",
      language: "json",
      note: (
        <>
          In <code>opencode.json</code>, with the key in the environment variable <code>TOLLGATE_KEY</code>:
        </>
      ),
      code: JSON.stringify(
        {
          $schema: "https://opencode.ai/config.json",
          model: `tollgate/${model}`,
          provider: {
            tollgate: {
              npm: "@ai-sdk/openai-compatible",
              options: { baseURL: `${baseUrl}/v1`, apiKey: "{env:TOLLGATE_KEY}" },
              models: { [model]: {} },
            },
          },
        },
        null,
        2,
      ),
    },
  ];
}
