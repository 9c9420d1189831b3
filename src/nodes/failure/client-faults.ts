// Recognizes by a node's words that its model or engine cannot take a request: the status differs between engines, and
// several answer 500. The table holds words observed from engines; test/nodes/failure/client-faults.test.ts has the
// recordings. A row applies only if the request has what it is about, so that a node's own fault stays one.
import { hasImages } from "../../core/images.ts";
import type { Ask } from "../../core/types.ts";

export type ClientFault = Readonly<{
  /** What the client reads. */
  reason: string;
  /** Another model or engine may take the request. */
  unlike: boolean;
  /** It is about a JSON schema. */
  ofSchema: boolean;
}>;

type Row = Readonly<{
  /** Any of these, in lower case. Plain texts, which are searched in linear time whatever the node sent. */
  words: readonly string[];
  /** Whether the request has what the words are about. */
  concerns: (ask: Ask) => boolean;
  reason: (model: string) => string;
  unlike: boolean;
  ofSchema?: true;
}>;

export const noSuffix = (model: string): string =>
  `suffix: the model \`${model}\` takes none here; write the prompt in its own form for filling in the middle.`;

const rows: readonly Row[] = [
  {
    words: [
      "suffix is only supported", // vLLM
      "suffix is not currently supported", // vLLM before 0.32
      "does not support insert", // Ollama
    ],
    concerns: ({ plain }) => plain !== undefined && plain.suffix !== null,
    reason: noSuffix,
    unlike: true,
  },
  {
    words: ["array into go struct field completionrequest.prompt"], // Ollama
    concerns: ({ plain }) => plain !== undefined,
    reason: (model) => `prompt: the model \`${model}\` reads no tokens here: send a text.`,
    unlike: true,
  },
  {
    words: ["either prompt or prompt_embeds must be provided"], // vLLM
    concerns: ({ plain }) => plain !== undefined,
    reason: (model) => `prompt: the model \`${model}\` has to read something: an empty one is not taken here.`,
    unlike: true,
  },
  {
    words: [
      "image input is not supported", // llama-server without a projector
      "is not a multimodal model", // vLLM, its router, LiteLLM
      "only supports text input", // SGLang
      "missing data required for image input", // Ollama
      "does not support image", // LM Studio, Ollama
      "does not support vision",
      "does not support multimodal",
      "images are not supported",
      "image inputs are not supported",
      "at most 0 image(s)", // vLLM with images switched off
      "'list object' has no attribute 'startswith'", // llama-cpp-python, whose template expects a text
    ],
    concerns: hasImages,
    reason: (model) => `The model \`${model}\` cannot read images here: leave the image parts of messages out.`,
    unlike: true,
  },
  {
    words: [
      "failed to load image", // llama-server
      "cannot identify image file", // vLLM, SGLang: Pillow
      "failed to decode image",
      "invalid image",
      "image: unknown format", // Ollama
    ],
    concerns: hasImages,
    reason: (model) => `The model \`${model}\` cannot read an image of the messages: send it as PNG or JPEG.`,
    unlike: false,
  },
  {
    words: [
      "does not support tools", // Ollama
      "tool use is not supported",
      "tools are not supported",
      "tools param requires --jinja", // llama-server
      "tool choice requires --enable-auto-tool-choice", // vLLM
    ],
    concerns: ({ tools }) => tools.length > 0,
    reason: (model) => `The model \`${model}\` takes no tools here: leave tools out.`,
    unlike: true,
  },
  {
    words: [
      "does not support thinking", // Ollama
      "is not supported for this model", // Ollama: think value "high"
    ],
    concerns: ({ effort }) => effort !== null,
    reason: (model) => `The model \`${model}\` does not take this reasoning effort here: leave it out.`,
    unlike: true,
  },
  {
    words: [
      "grammar error", // vLLM, LiteLLM
      "json grammar", // SGLang
      "json schema", // llama-server, Ollama
      "failed to parse grammar", // llama-server
      "failed to initialize samplers", // llama-server
      "'text' or 'json_object'", // llama-cpp-python
    ],
    concerns: ({ format, tools }) => format !== null || tools.length > 0,
    reason: (model) => `The model \`${model}\` cannot be held to this JSON schema here: use a simpler one.`,
    unlike: true,
    ofSchema: true,
  },
  {
    words: ["internal server error"], // vLLM, for a grammar that begins by referring to itself
    concerns: ({ engineFields = [] }) => engineFields.some(({ name }) => name === "grammar" || name === "regex"),
    reason: (model) => `The model \`${model}\` cannot be held to this grammar or regular expression here.`,
    unlike: true,
  },
  {
    words: ["sequence_bias"], // transformers, for an integer bias, or for a token that does not exist
    concerns: ({ sampling }) => sampling.logit_bias !== undefined,
    reason: (model) => `The model \`${model}\` does not take this logit_bias here: leave it out.`,
    unlike: true,
  },
  {
    words: ["matryoshka", "dimensions"], // vLLM, SGLang
    concerns: ({ inputs }) => inputs?.kind === "vectors" && inputs.dimensions !== null,
    reason: (model) => `The model \`${model}\` does not make vectors of other dimensions: leave dimensions out.`,
    unlike: true,
  },
  {
    // llama-server, whose vocabulary lacks such tokens; Ollama, which takes only texts
    words: ["invalid tokens", "invalid input type", "out of vocabulary", "out-of-vocab"],
    concerns: ({ inputs }) => inputs?.kind === "vectors" && inputs.tokens !== null,
    reason: (model) => `The model \`${model}\` does not take these tokens here: send input as texts.`,
    unlike: true,
  },
  {
    words: ["response_format", "response format"], // faster-whisper-server, vLLM, local-tts-studio
    concerns: ({ voice }) => voice !== undefined,
    reason: (model) => `response_format: the model \`${model}\` does not give this form here.`,
    unlike: true,
  },
  {
    words: ["voice"], // Kokoro-FastAPI, openedai-speech
    concerns: ({ voice }) => voice?.kind === "spoken",
    reason: (model) => `voice: the model \`${model}\` has no such voice here.`,
    unlike: true,
  },
  {
    words: [
      "invalid or unsupported audio file", // vLLM
      "no audio stream found",
      "failed to read audio", // whisper.cpp
      "invalid data found", // FFmpeg's
      "error opening",
      "could not decode",
    ],
    concerns: ({ voice }) => voice?.kind === "heard",
    reason: (model) => `file: the model \`${model}\` cannot read this audio.`,
    unlike: false,
  },
  {
    words: ["internal server error"], // faster-whisper-server
    concerns: ({ voice }) => voice?.kind === "heard" && voice.isGuessed,
    reason: (model) => `file: the model \`${model}\` cannot read it, and it has no length: is it audio?`,
    unlike: false,
  },
  {
    words: ["validation error"], // llama-cpp-python, for what other engines take
    concerns: () => true,
    reason: () => "The model does not accept this combination of parameters or messages.",
    unlike: true,
  },
  {
    words: ["failed to parse tool call arguments"], // llama-server
    concerns: ({ turns, prepared }) =>
      prepared !== undefined || turns.some((turn) => turn.role === "assistant" && turn.calls.length > 0),
    reason: () => "The arguments of an earlier tool call in the messages are not a JSON object.",
    unlike: false,
  },
  {
    words: [
      "chat template", // vLLM
      "jinja", // llama-server
      "for this template", // llama-server
      "templateerror", // Hugging Face
      "conversation roles must alternate",
      "system role not supported",
      "messages cannot be empty", // SGLang
      "'list object' has no", // llama-cpp-python
      "list object has no element",
    ],
    concerns: () => true,
    reason: (model) =>
      `The chat template of the model \`${model}\` does not take these messages in this order and form.`,
    unlike: true,
  },
];

/** The part of the request that the node cannot take, by its words in lower case; null where they do not show it. */
export function clientFaultOf(ask: Ask, words: string): ClientFault | null {
  const row = rows.find((each) => each.concerns(ask) && each.words.some((said) => words.includes(said)));
  return row === undefined
    ? null
    : { reason: row.reason(ask.model.id), unlike: row.unlike, ofSchema: row.ofSchema ?? false };
}
