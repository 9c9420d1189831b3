// How each coding agent is pointed at a server: what the console's key page shows and `tollgate login` prints. All but Claude
// Code read the key from the environment variable TOLLGATE_KEY.

export type AgentSettings = Readonly<{
  name: string;
  /** Where the text belongs; null: into a shell. */
  file: string | null;
  language: "bash" | "ini" | "json" | "yaml";
  code: string;
}>;

/** `baseUrl` has no /v1; `key` is as a shell reads it. */
type Given = Readonly<{ baseUrl: string; key: string; model: string; contextTokens: number }>;

export const agentSettings = (given: Given): readonly AgentSettings[] => [...inShells(given), ...inFiles(given)];

const inShells = ({ baseUrl, key, model, contextTokens }: Given): readonly AgentSettings[] => [
  {
    name: "Claude Code",
    file: null,
    language: "bash",
    code: `export ANTHROPIC_BASE_URL=${baseUrl}
export ANTHROPIC_API_KEY=${key}
export ANTHROPIC_MODEL=${model}
export CLAUDE_CODE_MAX_CONTEXT_TOKENS=${contextTokens}
claude`,
  },
  {
    name: "aider",
    file: null,
    language: "bash",
    code: `export OPENAI_API_BASE=${baseUrl}/v1
export OPENAI_API_KEY=${key}
aider --model openai/${model}`,
  },
];

const inFiles = ({ baseUrl, model }: Given): readonly AgentSettings[] => [
  {
    name: "Codex",
    file: "~/.codex/config.toml",
    language: "ini",
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
    file: "opencode.json",
    language: "json",
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
  {
    name: "Continue",
    file: "~/.continue/config.yaml",
    language: "yaml",
    code: `name: Tollgate
version: 0.0.1
schema: v1
models:
  - name: ${model}
    provider: openai
    model: ${model}
    apiBase: ${baseUrl}/v1
    apiKey: \${{ secrets.TOLLGATE_KEY }}
    roles: [chat, edit, apply]`,
  },
];
