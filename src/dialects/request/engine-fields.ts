// Fields beyond the dialect's own that change an answer and that only some inference engines know. Only a shop's own
// models read them: for the specification's models, fields that a dialect does not name are ignored. Fields with an
// equivalent of ours become that: a schema is a format, which the gateway checks, and a switch for thoughts is the
// reasoning depth.
import { type TSchema, Type } from "@sinclair/typebox";
import type { EngineField, EngineFieldName } from "../../core/engine-fields.ts";
import { isRecord } from "../../core/is-record.ts";
import { outputTokensMax } from "../../core/limits.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";
import { isRefusal } from "../../core/refusals.ts";
import { firstSchemaErrorOf, formatPath } from "../../core/schema-errors.ts";
import type { Ask, Effort, Format, Model, Refusal, Sampling } from "../../core/types.ts";
import { checkedFormat } from "./answer-format.ts";
import { flag, malformed, numberBetween, oneOf, record, text, tooDeep, whole, wholeBetween } from "./field.ts";
import { samplingFields, samplingNames } from "./sampling.ts";
import { effortOfBudget } from "./settings.ts";

/** Characters of a grammar, a regular expression, or all choices. */
const engineGrammarMaxLength = 16 * 1024;
/** llama.cpp crashes on brackets nested 100,000 deep. */
const grammarNestingMax = 256;
/** vLLM takes 8 s to compile 20,000. */
const engineChoicesMax = 1_000;
/** Values in a list of tokens or words. */
const engineListMax = 10_000;
/** JSON characters of the settings for a chat template. */
const templateSettingsMaxLength = 64 * 1024;

/** What a body has in such fields. */
export type EngineFieldsRead = Readonly<{
  fields: readonly EngineField[];
  format: Format | null;
  effort: Effort | null;
  /** Sampling fields under names that the dialect lacks. */
  sampling: Sampling;
}>;

const token = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, description: "a token's number" });
const listOf = (item: TSchema, what: string) =>
  Type.Array(item, { maxItems: engineListMax, description: `a list of up to ${engineListMax} ${what}` });
const words = listOf(text, "texts");
const some = numberBetween(-1_000_000, 1_000_000);
const grammar = Type.String({
  maxLength: engineGrammarMaxLength,
  description: `a text of up to ${engineGrammarMaxLength} characters`,
});
const choices = Type.Array(grammar, {
  minItems: 1,
  maxItems: engineChoicesMax,
  description: `a list of 1 to ${engineChoicesMax} texts`,
});

/** `usual`: the value that changes nothing, so no engine must know the field. `as`: its name here, if another. */
type Row = Readonly<{ schema: TSchema; usual?: unknown; as?: EngineFieldName; chatOnly?: true }>;

const refused: Row = { schema: Type.Unknown(), usual: false };
const rows: Readonly<Record<string, Row>> = {
  continue_final_message: { schema: flag, chatOnly: true },
  add_generation_prompt: { schema: flag, chatOnly: true },
  add_special_tokens: { schema: flag },
  documents: { schema: listOf(record, "objects"), chatOnly: true },
  thinking_token_budget: { schema: wholeBetween(1, outputTokensMax) },
  thinking_budget: { schema: wholeBetween(1, outputTokensMax), as: "thinking_token_budget" },
  thinking_budget_tokens: { schema: wholeBetween(1, outputTokensMax), as: "thinking_token_budget" },
  reasoning_budget_tokens: { schema: wholeBetween(1, outputTokensMax), as: "thinking_token_budget" },
  include_reasoning: { schema: flag, usual: true, chatOnly: true },
  ignore_eos: { schema: flag, usual: false },
  min_tokens: { schema: wholeBetween(0, outputTokensMax), usual: 0 },
  stop_token_ids: { schema: listOf(token, "tokens"), usual: [] },
  stop_regex: { schema: Type.Union([grammar, Type.Array(grammar, { maxItems: 16 })]) },
  include_stop_str_in_output: { schema: flag, usual: false },
  no_stop_trim: { schema: flag, usual: false, as: "include_stop_str_in_output" },
  repetition_detection: { schema: record },
  repeat_penalty: { schema: numberBetween(0, 10), usual: 1, as: "repetition_penalty" },
  typical_p: { schema: numberBetween(0, 1), usual: 1 },
  repeat_last_n: { schema: whole },
  top_n_sigma: { schema: some },
  xtc_probability: { schema: numberBetween(0, 1), usual: 0 },
  xtc_threshold: { schema: numberBetween(0, 1) },
  dynatemp_range: { schema: some, usual: 0 },
  dynatemp_exponent: { schema: some },
  mirostat: { schema: wholeBetween(0, 2), usual: 0 },
  mirostat_tau: { schema: some },
  mirostat_eta: { schema: some },
  dry_multiplier: { schema: some, usual: 0 },
  dry_base: { schema: some },
  dry_allowed_length: { schema: whole },
  dry_penalty_last_n: { schema: whole },
  dry_sequence_breakers: { schema: words },
  samplers: { schema: words },
  bad_words: { schema: words, usual: [] },
  allowed_token_ids: { schema: listOf(token, "tokens") },
  skip_special_tokens: { schema: flag, usual: true },
  spaces_between_special_tokens: { schema: flag, usual: true },
  truncate_prompt_tokens: { schema: whole },
  truncation_side: { schema: oneOf("left", "right") },
  echo: { schema: flag, usual: false },
  chat_template: refused,
  custom_logit_processor: refused,
  logits_processors: refused,
  lora: refused,
  lora_path: refused,
  prompt_logprobs: refused,
  return_hidden_states: refused,
  n_predict: refused,
  return_token_ids: refused,
  use_beam_search: refused,
};

/** Constraints on an answer, and their names where they stand alone. */
const constraints: Readonly<Record<string, EngineFieldName>> = {
  json_schema: "json_schema",
  guided_json: "json_schema",
  regex: "regex",
  guided_regex: "regex",
  ebnf: "grammar",
  grammar: "grammar",
  guided_grammar: "grammar",
  guided_choice: "choice",
};
/** The same within vLLM's `structured_outputs`. */
const structured: Readonly<Record<string, EngineFieldName>> = {
  json: "json_schema",
  regex: "regex",
  grammar: "grammar",
  choice: "choice",
};

/** What engines set in a template themselves, or would take as their own arguments. */
const reservedSettings: ReadonlySet<string> = new Set([
  "chat_template",
  "conversation",
  "messages",
  "model",
  "tools",
  "tokenize",
  "tokenizer_kwargs",
  "add_generation_prompt",
  "continue_final_message",
  "documents",
  "max_length",
  "padding",
  "truncation",
  "return_tensors",
  "return_dict",
  "return_assistant_tokens_mask",
]);

const nothing: EngineFieldsRead = { fields: [], format: null, effort: null, sampling: {} };

/** What of a model says how its requests' fields are read. */
export type FieldReader = Pick<Model, "id" | "tier" | "readsDepth" | "structuredOutput">;

/** Names of fields that are no format of the answer, and that some engine gets. */
export const readableEngineFields: readonly string[] = [
  ...Object.keys(rows).filter((name) => rows[name] !== refused),
  ...["chat_template_kwargs", "enable_thinking", "thinking"],
];

/** `own`: names that the dialect reads itself. `formats`: it has formats. `effort` null: these fields do not say. */
export function readEngineFields(
  body: object,
  model: FieldReader,
  own: ReadonlySet<string>,
  formats: boolean,
): EngineFieldsRead | Refusal {
  if (model.tier !== "own") return nothing;
  const fields: EngineField[] = [];
  const given = body as Readonly<Record<string, unknown>>;
  for (const at in given) {
    const value = given[at];
    if (value === null || own.has(at) || !Object.hasOwn(rows, at)) continue;
    const { schema, usual, as = at as EngineFieldName, chatOnly } = rows[at]!;
    if ((chatOnly === true && !formats) || Bun.deepEquals(value, usual)) continue;
    const wrong = misfit(schema, value, at);
    if (wrong !== null) return wrong;
    fields.push({ name: as, at, value });
  }
  const depth = formats ? readDepth(given, model, own) : null;
  if (isRefusal(depth)) return depth;
  if (depth !== null && Object.keys(depth.settings).length > 0) {
    fields.push({ name: "chat_template_kwargs", at: depth.at, value: depth.settings });
  }
  const sampling = readSampling(given, own);
  if (isRefusal(sampling)) return sampling;
  const held = readConstraint(given, own, formats);
  if (isRefusal(held)) return held;
  let format: Format | null = null;
  if (held !== null && formats && held.name === "json_schema") {
    const { at, value: schema } = held;
    const checked = checkedFormat({ at, kind: "json_schema", schemaAt: at, schema, name: null, strict: null }, model);
    if (isRefusal(checked)) return checked;
    format = checked;
  } else if (held !== null) fields.push(held);
  if (held === null && formats && isRecord(given.structured_outputs) && given.structured_outputs.json_object === true) {
    const checked = checkedFormat({ at: "structured_outputs.json_object", kind: "json_object" }, model);
    if (isRefusal(checked)) return checked;
    format = checked;
  }
  return { fields, format, effort: depth?.effort ?? null, sampling };
}

function readSampling(given: Readonly<Record<string, unknown>>, own: ReadonlySet<string>): Sampling | Refusal {
  const sampling: Record<string, unknown> = {};
  for (const name of samplingNames) {
    if (given[name] == null || own.has(name)) continue;
    const wrong = misfit(samplingFields[name], given[name], name);
    if (wrong !== null) return wrong;
    sampling[name] = given[name];
  }
  return sampling as Sampling;
}

export const noOthers: ReadonlySet<string> = new Set();

export const engineFieldsOf = ({ fields }: EngineFieldsRead): Pick<Ask, "engineFields"> =>
  fields.length === 0 ? {} : { engineFields: fields };

/** The format of the dialect's own field, or the one in an engine's fields: a request may have only one. */
export const oneFormat = (own: Format | null, { format, fields }: EngineFieldsRead): Format | null | Refusal => {
  const held = format !== null || fields.some(({ name }) => isConstraint(name));
  if (own !== null && held) return malformed("an answer has one format: send it once, in one field");
  return own ?? format;
};

const isConstraint = (name: EngineFieldName): boolean => Object.values(structured).includes(name);

function misfit(schema: TSchema, value: unknown, at: string): Refusal | null {
  if (tooDeep(value)) return malformed(`${at} nests too deep`);
  const error = firstSchemaErrorOf(schema, value);
  return error === null ? null : malformed(`${formatPath([at, ...error.path])} ${error.problem}`);
}

// ---------------------------------------------------------------- Reasoning depth

type Depth = Readonly<{ at: string; settings: Readonly<Record<string, unknown>>; effort: Effort | null }>;

/** Template settings, with the switches beside them; null where there are none. */
function readDepth(
  given: Readonly<Record<string, unknown>>,
  model: FieldReader,
  own: ReadonlySet<string>,
): Depth | Refusal | null {
  const kwargs = given.chat_template_kwargs ?? null;
  const wrong = kwargs === null ? null : settingsFault(kwargs);
  if (wrong !== null) return wrong;
  let settings: Record<string, unknown> = { ...(kwargs as Record<string, unknown> | null) };
  let at = "chat_template_kwargs";
  let effort: Effort | null = null;
  const switched = (name: string, on: boolean): void => {
    if (Object.keys(settings).length === 0) at = name;
    settings = { enable_thinking: on, thinking: on, ...settings };
  };
  const { enable_thinking: flagGiven = null, thinking: object = null } = given;
  if (flagGiven !== null) {
    if (typeof flagGiven !== "boolean") return malformed("enable_thinking must be true or false");
    switched("enable_thinking", flagGiven);
  }
  if (object !== null && !own.has("thinking")) {
    const type = isRecord(object) ? object.type : object;
    if (type === true || type === "enabled") switched("thinking", true);
    else if (type === false || type === "disabled") switched("thinking", false);
    else if (type !== "adaptive") {
      return malformed('thinking must be {"type":"enabled"}, {"type":"disabled"}, true or false');
    }
    const tokens = isRecord(object) && type === "enabled" ? object.budget_tokens : null;
    if (typeof tokens === "number") effort = effortOfBudget(tokens);
  }
  const isOff =
    settings.enable_thinking === false || (settings.enable_thinking === undefined && settings.thinking === false);
  if (isOff) effort = "off";
  // Their requests may not set it in any field.
  if (!model.readsDepth) {
    const { enable_thinking: _, thinking: __, ...others } = settings;
    settings = others;
  }
  return { at, settings, effort };
}

function settingsFault(settings: unknown): Refusal | null {
  const at = "chat_template_kwargs";
  const wrong = misfit(record, settings, at);
  if (wrong !== null) return wrong;
  const reserved = Object.keys(settings as object).find((name) => reservedSettings.has(name));
  if (reserved !== undefined) return malformed(`${at}.${reserved} must be left out: the gateway and the engine set it`);
  const { enable_thinking: on = null } = settings as { enable_thinking?: unknown };
  if (on !== null && typeof on !== "boolean") return malformed(`${at}.enable_thinking must be true or false`);
  if (JSON.stringify(settings).length <= templateSettingsMaxLength) return null;
  return malformed(`${at} must have at most ${templateSettingsMaxLength / 1024} KiB as JSON`);
}

// ---------------------------------------------------------------- What the answer must be

function readConstraint(
  given: Readonly<Record<string, unknown>>,
  own: ReadonlySet<string>,
  formats: boolean,
): EngineField | Refusal | null {
  const found = formats ? [] : formatsAsSchemas(given);
  if (isRefusal(found)) return found;
  for (const at in constraints) {
    const value = given[at] ?? null;
    if (value !== null && !own.has(at)) found.push({ name: constraints[at]!, at, value });
  }
  const params = given.structured_outputs ?? null;
  if (params !== null && !isRecord(params)) return malformed("structured_outputs must be an object");
  for (const key in params) {
    const value = params[key] ?? null;
    const name = Object.hasOwn(structured, key) ? structured[key] : undefined;
    const at = `structured_outputs.${key}`;
    if (value === null || value === false || key === "json_object") continue;
    if (name === undefined) return malformed(`${at} must be left out: it is none of json, regex, grammar, choice`);
    found.push({ name, at, value });
  }
  const [field, another] = found;
  if (field === undefined) return null;
  if (another !== undefined)
    return malformed(`${another.at} must be left out beside ${field.at}: an answer has one format`);
  return checkedConstraint(field);
}

const anyObject = { type: "object" };

/** Where the dialect has no formats of its own, engines still hold an answer to a chat format, as to a schema. */
function formatsAsSchemas(given: Readonly<Record<string, unknown>>): EngineField[] | Refusal {
  const found: EngineField[] = [];
  const { response_format: format = null, structured_outputs: params } = given;
  if (format !== null) {
    const at = "response_format";
    const type = isRecord(format) ? format.type : null;
    const held = isRecord(format) && isRecord(format.json_schema) ? format.json_schema.schema : null;
    if (type === "json_object") found.push({ name: "json_schema", at, value: anyObject, given: format });
    else if (type === "json_schema") found.push({ name: "json_schema", at, value: held, given: format });
    else if (type !== "text") return malformed(`${at}.type must be one of text, json_object, json_schema`);
  }
  if (isRecord(params) && params.json_object === true) {
    found.push({ name: "json_schema", at: "structured_outputs.json_object", value: anyObject, given: true });
  }
  return found;
}

function checkedConstraint(field: EngineField): EngineField | Refusal {
  const { name, at, value } = field;
  if (name === "json_schema") {
    const schema = typeof value === "string" ? jsonOf(value) : value;
    return isRecord(schema) ? { ...field, value: schema } : malformed(`${at} must be a JSON Schema object`);
  }
  const wrong = misfit(name === "choice" ? choices : grammar, value, at);
  if (wrong !== null) return wrong;
  if (name === "choice") {
    const length = (value as readonly string[]).reduce((sum, choice) => sum + choice.length, 0);
    if (length > engineGrammarMaxLength)
      return malformed(`${at} must have at most ${engineGrammarMaxLength} characters`);
  } else if (nestsBeyond(value as string, grammarNestingMax)) return malformed(`${at} nests too deep`);
  return { name, at, value };
}

function jsonOf(text: string): unknown {
  try {
    return parseOutsideJson(text);
  } catch {
    return null;
  }
}

/** Whether its brackets nest too deep, counting those in a grammar's texts. */
function nestsBeyond(text: string, depthMax: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "(" || text[at] === "[") depth++;
    else if (text[at] === ")" || text[at] === "]") depth = Math.max(0, depth - 1);
    if (depth > depthMax) return true;
  }
  return false;
}
