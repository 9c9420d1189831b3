// Request fields that change an answer and that only some inference engines know, each under one name, although engines
// have several. nodes/engine-fields.ts says which engine knows which.

const engineFieldNames = [
  "chat_template_kwargs",
  "continue_final_message",
  "add_generation_prompt",
  "add_special_tokens",
  "documents",
  "thinking_token_budget",
  "include_reasoning",
  // what the answer must be
  "json_schema",
  "regex",
  "grammar",
  "choice",
  // where it ends
  "ignore_eos",
  "min_tokens",
  "stop_token_ids",
  "stop_regex",
  "include_stop_str_in_output",
  "repetition_detection",
  // how its tokens are picked and written
  "repetition_penalty",
  "typical_p",
  "repeat_last_n",
  "top_n_sigma",
  "xtc_probability",
  "xtc_threshold",
  "dynatemp_range",
  "dynatemp_exponent",
  "mirostat",
  "mirostat_tau",
  "mirostat_eta",
  "dry_multiplier",
  "dry_base",
  "dry_allowed_length",
  "dry_penalty_last_n",
  "dry_sequence_breakers",
  "samplers",
  "bad_words",
  "allowed_token_ids",
  "skip_special_tokens",
  "spaces_between_special_tokens",
  "truncate_prompt_tokens",
  "truncation_side",
  "echo",
  // Fields that end an engine, give it a program, or come back in a form that is not passed on: no engine gets these.
  "chat_template",
  "custom_logit_processor",
  "logits_processors",
  "lora",
  "lora_path",
  "n_predict",
  "prompt_logprobs",
  "return_hidden_states",
  "return_token_ids",
  "use_beam_search",
] as const;
export type EngineFieldName = (typeof engineFieldNames)[number];

export type EngineField = Readonly<{
  name: EngineFieldName;
  /** As the client wrote it, for errors. */
  at: string;
  value: unknown;
  /** The client's value, where it has another form. */
  given?: unknown;
}>;
