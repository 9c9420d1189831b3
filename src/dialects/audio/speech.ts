// POST /v1/audio/speech: a text read aloud, as bytes of audio while it is spoken, or as events.
import { type Static, Type } from "@sinclair/typebox";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, Endpoint, Piece, Refusal, Voice } from "../../core/types.ts";
import { type AnswerEnd, type DialectRequest, defineDialect, type Encoder } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { openAiEndUser } from "../request/end-user.ts";
import { BodySchema, malformed, numberBetween, oneOf, optional, text } from "../request/field.ts";
import { askOfInputs, coderBilling } from "../request/inputs.ts";
import { namedModel } from "../request/named-model.ts";
import { voiceFields } from "../request/preset.ts";

const endpoint: Endpoint = "/v1/audio/speech";
/** OpenAI takes 4,096, engines more. */
const charactersMax = 100_000;

/** What engines send where the client names no format, and the type of each. */
const usualFormat = "mp3";
const types: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
};
const audioType = /^audio\/[\w.+-]{1,40}(?:; ?[\w-]{1,20}=[\w-]{1,20}){0,4}$/;

const Body = Type.Object({
  model: text,
  input: Type.String({
    minLength: 1,
    maxLength: 2 * charactersMax,
    description: `a text of 1 to ${charactersMax} characters`,
  }),
  voice: Type.Optional(Type.Unknown()),
  response_format: optional(oneOf(...Object.keys(types))),
  stream_format: optional(oneOf("audio", "sse")),
  speed: optional(numberBetween(0.25, 4)),
  instructions: optional(text),
});
export const speechBody = Body;
const schema = new BodySchema(Body);

type SpeechAsk = Ask & Readonly<{ areEvents: boolean }>;

function read({ body, bodyBytes, catalog }: DialectRequest): SpeechAsk | Refusal {
  const wrong = schema.refusal(body);
  if (wrong !== null) return wrong;
  const { model: name, input, ...rest } = body as Static<typeof Body>;
  const model = namedModel(catalog, name, "speech");
  if (isRefusal(model)) return model;
  let characters = 0;
  for (const _ of input) characters += 1;
  if (characters > charactersMax) return malformed(`input must have at most ${charactersMax} characters`);
  const areEvents = rest.stream_format === "sse";
  const said = voiceFields(model.preset, rest);
  const format = typeof said["response_format"] === "string" ? said["response_format"] : usualFormat;
  const voice: Voice = { kind: "spoken", characters, format, fields: { ...said, input } };
  return { ...askOfInputs(endpoint, model, { voice }, [], bodyBytes), stream: true, areEvents };
}

export const speech = defineDialect<SpeechAsk>({
  name: "speech",
  endpoint,
  routes: [{ path: endpoint }],
  modelKind: "speech",
  coderBilling,
  bodyFields: ["voice"],
  replyIdPrefix: "speech-",
  endUser: openAiEndUser,
  read,
  encoder: (ask) => (ask.areEvents ? new SpeechEvents() : new SpeechBytes(ask)),
  errorBody,
});

/** The outlet writes the pieces' bytes as they are. */
class SpeechBytes implements Encoder {
  #type: string;

  constructor({ voice }: Ask) {
    this.#type = types[(voice as Extract<Voice, { kind: "spoken" }>).format] ?? "application/octet-stream";
  }

  contentType(): string {
    return this.#type;
  }

  piece(piece: Piece): string {
    if (piece.kind === "voice" && audioType.test(piece.type)) this.#type = piece.type;
    return "";
  }

  keepAlive(): string {
    return "";
  }

  end(): string {
    return "";
  }

  failure(): string {
    return "";
  }
}

class SpeechEvents implements Encoder {
  piece(piece: Piece): string {
    if (piece.kind !== "voice") return "";
    return `data: {"type":"speech.audio.delta","audio":"${Buffer.from(piece.bytes).toString("base64")}"}\n\n`;
  }

  keepAlive(): string {
    return ":\n\n";
  }

  end({ usage: { inputFresh } }: AnswerEnd): string {
    const usage = JSON.stringify({ input_tokens: inputFresh, output_tokens: 0, total_tokens: inputFresh });
    return `data: {"type":"speech.audio.done","usage":${usage}}\n\n`;
  }

  failure(refusal: Refusal): string {
    return `data: ${errorBody(refusal)}\n\n`;
  }
}
