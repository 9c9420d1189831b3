// What engines say where a prompt exceeds their context; test/nodes/failure/overflow.test.ts has the recordings.

/** The numbers in the message; null where it has none. */
export type Overflow = Readonly<{
  promptTokens: number | null;
  /** A lower bound: an engine stops counting where the prompt does not fit. */
  promptTokensMin: number | null;
  /** Prompt and answer together. */
  totalTokens: number | null;
  contextTokens: number | null;
}>;

/** Most informative first. Each repeat is bounded, because a node may write anything. */
const wordings: readonly RegExp[] = [
  /request \((?<prompt>\d{1,15}) tokens\) exceeds the available context size \((?<context>\d{1,15}) tokens\)/, // llama-server
  /maximum context length is (?<context>\d{1,15}) tokens.{0,60}prompt contains at least (?<least>\d{1,15}) input tokens/s, // vLLM
  /maximum context length is (?<context>\d{1,15}) tokens and your request has (?<prompt>\d{1,15}) input tokens/, // vLLM 0.9 to 0.11
  /passed (?<prompt>\d{1,15}) input tokens and requested (?<output>\d{1,15}) output tokens.{0,200}context length is only (?<context>\d{1,15})/s, // vLLM
  /passed \d{1,15} input characters and requested (?<output>\d{1,15}) output tokens.{0,200}context length is only (?<context>\d{1,15})/s, // vLLM
  /max_(?:completion_)?tokens=(?<output>\d{1,15})\s{0,9}cannot be greater than max_model_len=(?<context>\d{1,15})/, // vLLM
  /max_(?:completion_)?tokens=\d{1,15}\s{0,9}cannot be greater than/, // vLLM
  // vLLM, llama-cpp-python, SGLang
  /maximum context length (?:is|of) (?<context>\d{1,15}) tokens.{0,40}requested (?:about |a total of )?(?<total>\d{1,15}) tokens[:,]? \(?(?<prompt>\d{1,15}) (?:tokens )?(?:in|from) the /s,
  /maximum context length is (?<context>\d{1,15}) tokens.{0,40}requested (?<prompt>\d{1,15}) tokens in the messages/s,
  /maximum context length is (?<context>\d{1,15}) tokens.{0,200}?requested (?:about )?(?<total>\d{1,15}) tokens/s,
  /maximum context length is (?<context>\d{1,15})/,
  // llama-server, for embeddings
  /input \((?<prompt>\d{1,15}) tokens\) is too large to process.{0,80}batch size: (?<context>\d{1,15})/s,
  /input \((?<prompt>\d{1,15}) tokens\) is longer than the model's context length \((?<context>\d{1,15})/, // SGLang
  /token count exceeds the model's maximum context length of (?<context>\d{1,15})/, // SGLang
  /max_(?:completion_)?tokens is too large: (?<output>\d{1,15})\.\s?This model supports at most (?<context>\d{1,15}) completion tokens/, // SGLang
  /requested tokens \((?<prompt>\d{1,15})\) exceed context window of (?<context>\d{1,15})/i, // llama-cpp-python
  /prompt is longer than the context length/, // Ollama
  /tokens to keep from the initial prompt is greater than the context length/, // LM Studio
  // TGI
  /tokens \+ .max_new_tokens. must be <= (?<context>\d{1,15})\. Given: (?<prompt>\d{1,15}) .inputs. tokens and (?<output>\d{1,15})/s,
  /tokens \+ .max_new_tokens. must be <= (?<context>\d{1,15})\. Given: (?<total>\d{1,15})/s,
  /must have less than (?<context>\d{1,15}) tokens\. Given: (?<prompt>\d{1,15})/, // TGI
  /prompt length \((?<prompt>\d{1,15})(?:\.\d{1,15})?\).{0,200}should not exceed max_\w{1,40} \((?<context>\d{1,15})\)/s, // TensorRT-LLM
  /ContextWindowExceededError/, // LiteLLM
  /context (?:length|size|window)|longer than the model|max_(?:seq_len|num_tokens|model_len)/i,
];

/** Null where the words say something else. `text` is short: see nodeErrorTextMaxLength. */
export function overflowOf(text: string): Overflow | null {
  for (const wording of wordings) {
    const match = wording.exec(text);
    if (match === null) continue;
    const said = (name: string): number | null => {
      const digits = match.groups?.[name];
      return digits === undefined ? null : Number(digits);
    };
    const [prompt, output] = [said("prompt"), said("output")];
    const total = said("total") ?? (prompt === null || output === null ? null : prompt + output);
    return { promptTokens: prompt, promptTokensMin: said("least"), totalTokens: total, contextTokens: said("context") };
  }
  return null;
}
