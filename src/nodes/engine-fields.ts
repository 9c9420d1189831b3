// Which fields beyond the common ones each engine knows, and what it calls them. An engine silently ignores fields that
// it does not know, so a request goes only to nodes that know every field it uses. Sources: vLLM 0.32
// (entrypoints/openai), SGLang 0.5 (srt/entrypoints/openai/protocol.py), TensorRT-LLM (serve/openai_protocol.py),
// llama.cpp (tools/server/README.md), Ollama 0.17 (openai/openai.go), and the documentation of LM Studio and TGI.
import type { NodeConfig } from "../config/config.ts";
import type { EngineField, EngineFieldName } from "../core/engine-fields.ts";
import { refuse } from "../core/refusals.ts";
import type { Ask, Refusal, Sampling } from "../core/types.ts";
import type { EngineKind } from "./engine-kind.ts";

/** Field -> its name there, which may be nested in another field; "" where the engine does it without being asked. */
type Known = Readonly<Partial<Record<EngineFieldName, string>>>;

const same = (...names: readonly EngineFieldName[]): Known => Object.fromEntries(names.map((name) => [name, name]));

const picking = same("ignore_eos", "min_tokens", "stop_token_ids", "skip_special_tokens");

const known: Readonly<Partial<Record<EngineKind, Known>>> = {
  vllm: {
    ...picking,
    ...same("chat_template_kwargs", "continue_final_message", "add_generation_prompt", "add_special_tokens"),
    ...same("documents", "thinking_token_budget", "include_reasoning", "include_stop_str_in_output", "echo"),
    ...same("repetition_detection", "repetition_penalty", "bad_words", "allowed_token_ids"),
    ...same("spaces_between_special_tokens", "truncate_prompt_tokens", "truncation_side"),
    json_schema: "structured_outputs.json",
    regex: "structured_outputs.regex",
    grammar: "structured_outputs.grammar",
    choice: "structured_outputs.choice",
  },
  sglang: {
    ...picking,
    ...same(
      "chat_template_kwargs",
      "continue_final_message",
      "json_schema",
      "regex",
      "stop_regex",
      "repetition_penalty",
    ),
    grammar: "ebnf",
    include_stop_str_in_output: "no_stop_trim",
  },
  "tensorrt-llm": {
    ...picking,
    ...same("chat_template_kwargs", "add_generation_prompt", "include_stop_str_in_output", "repetition_penalty"),
    ...same("spaces_between_special_tokens", "truncate_prompt_tokens", "thinking_token_budget"),
  },
  "llama.cpp": {
    ...same("chat_template_kwargs", "continue_final_message", "add_generation_prompt", "json_schema", "grammar"),
    ...same("ignore_eos", "typical_p", "repeat_last_n", "top_n_sigma", "xtc_probability", "xtc_threshold"),
    ...same("dynatemp_range", "dynatemp_exponent", "mirostat", "mirostat_tau", "mirostat_eta", "dry_multiplier"),
    ...same("dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "samplers"),
    repetition_penalty: "repeat_penalty",
    thinking_token_budget: "thinking_budget_tokens",
  },
  ollama: { continue_final_message: "", add_generation_prompt: "" },
  "lm-studio": { repetition_penalty: "repeat_penalty" },
  transformers: same("chat_template_kwargs"),
  "llama-cpp-python": { repetition_penalty: "repeat_penalty" },
  "sglang-router": { ...picking, ...same("chat_template_kwargs", "repetition_penalty") },
};

/** Sampling fields that every engine is sent and that these engines ignore. */
const unheard: Readonly<Partial<Record<EngineKind, ReadonlySet<keyof Sampling>>>> = {
  ollama: new Set(["logit_bias"]),
  tgi: new Set(["logit_bias"]),
};

/** Sampling fields that only some engines know, each with the value that changes nothing. */
const rareSampling = {
  top_k: [0, -1],
  min_p: [0],
  repetition_penalty: [1],
  logit_bias: [],
} as const satisfies Partial<Record<keyof Sampling, readonly number[]>>;

/** The parts of a node's configuration that say what it knows. */
export type KnowingNode = Pick<NodeConfig, "depth" | "fields">;
/** Sampling fields beyond the common ones: ours -> the engine's name. */
export type KnownSampling = Readonly<Partial<Record<keyof Sampling, string>>>;

/** The refusal that names a field which the engine would silently ignore; null where it knows every field of the request. */
export function unknownField(ask: Ask, engine: EngineKind, picks: KnownSampling, node: KnowingNode): Refusal | null {
  if (ask.model.tier !== "own" || ask.inputs !== undefined || ask.voice !== undefined) return null;
  const field =
    ask.engineFields?.find((each) => !knows(each, engine, node))?.at ?? unheardSampling(ask, engine, picks, node);
  if (field === undefined) return null;
  return refuse("malformed", { reason: `${field}: no engine that runs the model \`${ask.model.id}\` here knows it` });
}

function knows(field: EngineField, engine: EngineKind, { depth = {}, fields = [] }: KnowingNode): boolean {
  const { name } = field;
  if (known[engine]?.[name] !== undefined || fields.includes(outerName(field))) return true;
  if (name === "choice") return known[engine]?.grammar !== undefined;
  // This engine expects the switch for thoughts in another form.
  return name === "chat_template_kwargs" && isSwitch(field) && (engine === "ollama" || depth.off !== undefined);
}

const isSwitch = ({ value }: EngineField): boolean =>
  Object.keys(value as object).every((setting) => setting === "enable_thinking" || setting === "thinking");

/** `structured_outputs` of `structured_outputs.regex`. */
const outerName = ({ at }: EngineField): string => at.split(".", 1)[0]!;

function unheardSampling(
  { sampling }: Ask,
  engine: EngineKind,
  picks: KnownSampling,
  { fields = [] }: KnowingNode,
): keyof Sampling | undefined {
  return (Object.keys(rareSampling) as (keyof typeof rareSampling)[]).find((name) => {
    const given = sampling[name];
    if (given === undefined || rareSampling[name].some((usual) => usual === given) || fields.includes(name))
      return false;
    if (name === "logit_bias") return unheard[engine]?.has(name) === true && Object.keys(given).length > 0;
    return picks[name] === undefined;
  });
}

export function addEngineFields(
  body: Record<string, unknown>,
  ask: Ask,
  engine: EngineKind,
  passed: NodeConfig["fields"] = [],
): void {
  for (const name of Object.keys(rareSampling) as (keyof typeof rareSampling)[]) {
    if (passed.includes(name) && ask.sampling[name] !== undefined) body[name] = ask.sampling[name];
  }
  for (const field of ask.engineFields ?? []) {
    const { name, value } = field;
    const there = known[engine]?.[name];
    // What an operator names passes unchanged.
    if (passed.includes(outerName(field))) put(body, field.at, field.given ?? value);
    else if (name === "choice" && there === undefined)
      put(body, known[engine]?.grammar, grammarOf(value as readonly string[]));
    else put(body, there, value);
  }
  // Engines that know both refuse to begin a message when they are to continue one. Most begin one by default.
  if (body["continue_final_message"] === true && known[engine]?.add_generation_prompt !== undefined)
    body["add_generation_prompt"] ??= false;
}

function put(body: Record<string, unknown>, name: string | undefined, value: unknown): void {
  if (name === undefined || name === "") return;
  const [outer, inner] = name.split(".") as [string, string?];
  const settings = { ...(body[outer] as object | undefined) };
  if (inner !== undefined) body[outer] = { ...settings, [inner]: value };
  else body[outer] = outer === "chat_template_kwargs" ? { ...settings, ...(value as object) } : value;
}

/** In llama.cpp's grammar language, which SGLang also reads. */
const grammarOf = (choices: readonly string[]): string =>
  `root ::= ${choices.map((choice) => `"${escaped(choice)}"`).join(" | ")}`;

/** Writes each character that is not plain as its number. */
const escaped = (text: string): string =>
  Array.from(text, (character) => {
    const code = character.codePointAt(0)!;
    const isPlain = code >= 0x20 && character !== '"' && character !== "\\";
    return isPlain ? character : `\\x${code.toString(16).padStart(2, "0")}`;
  }).join("");
