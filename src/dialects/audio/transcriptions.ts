// POST /v1/audio/transcriptions and /v1/audio/translations: an uploaded file written down, whole or as events.
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, Piece, Refusal, SpooledFile, Voice } from "../../core/types.ts";
import { type AnswerEnd, type Dialect, type DialectRequest, defineDialect, type Encoder } from "../dialect.ts";
import { errorBody } from "../reply/error-object.ts";
import { malformed } from "../request/field.ts";
import { askOfInputs, coderBilling } from "../request/inputs.ts";
import { namedModel } from "../request/named-model.ts";
import { voiceFields } from "../request/preset.ts";

/** A form as it came, with its file on the disk. */
export type AudioForm = Readonly<{
  fields: readonly (readonly [name: string, value: string])[];
  file: SpooledFile | null;
  seconds: number;
  isGuessed: boolean;
}>;

const formats = ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"];
/** Events are parts of a text, which a caption file cannot be made of. */
const captions = ["srt", "vtt"];
const fieldName = /^[\w.[\]-]{1,64}$/;

type Form = Readonly<Record<string, string>>;

function read({ body, catalog, head }: DialectRequest): Ask | Refusal {
  const { fields, file, seconds, isGuessed } = body as AudioForm;
  const { model: name, ...given } = Object.fromEntries(fields) as Form;
  if (name === undefined) return malformed("model is required");
  const model = namedModel(catalog, name, "transcription");
  if (isRefusal(model)) return model;
  if (file === null || file.bytes === 0) return malformed("file is required: a part with the content of an audio file");
  const odd = fields.find(([field]) => !fieldName.test(field));
  if (odd !== undefined) return malformed(`${JSON.stringify(odd[0].slice(0, 64))} is not a field of this form`);
  const { stream, temperature } = given;
  if (stream !== undefined && !/^(?:true|false|1|0)$/i.test(stream)) return malformed("stream must be true or false");
  if (
    temperature !== undefined &&
    !(temperature.trim() !== "" && Number(temperature) >= 0 && Number(temperature) <= 1)
  ) {
    return malformed("temperature must be a number from 0 to 1");
  }
  const said = voiceFields(model.preset, given);
  const format = said["response_format"] ?? "json";
  if (typeof format !== "string" || !formats.includes(format)) {
    return malformed(`response_format must be one of ${formats.join(", ")}`);
  }
  const streams = /^(?:true|1)$/i.test(stream ?? "");
  if (streams && captions.includes(format)) return malformed(`stream must be false with response_format ${format}`);
  // A list comes as several fields of one name.
  const kept = fields.filter(([field, value]) => said[field] === value || (field.endsWith("[]") && field in said));
  const ours = Object.entries(said).filter(([field, value]) => given[field] !== value);
  const voice: Voice = {
    kind: "heard",
    translates: head.route === "/v1/audio/translations",
    file,
    seconds,
    isGuessed,
    fields: [...kept, ...ours.map(([field, value]) => [field, String(value)] as const)],
    isJson: format.endsWith("json"),
  };
  const bytes = seconds * secondBytes;
  return { ...askOfInputs(head.route, model, { voice }, [], bytes), stream: streams };
}

/** A node's line counts work by bytes: a second of audio is about as much as this much text. */
const secondBytes = 100;

const dialectAt = (name: "transcriptions" | "translations"): Dialect =>
  defineDialect<Ask>({
    name,
    endpoint: `/v1/audio/${name}`,
    routes: [{ path: `/v1/audio/${name}` }],
    modelKind: "transcription",
    coderBilling,
    bodyFields: [],
    replyIdPrefix: "transcript-",
    endUser: (body) => (body as AudioForm).fields.find(([field]) => field === "user")?.[1],
    read,
    encoder: (ask, _, form) => (form === "events" ? new TranscriptEvents() : new Transcript(ask)),
    errorBody,
  });
export const transcriptions = dialectAt("transcriptions");
export const translations = dialectAt("translations");

const usageOf = ({ usage }: AnswerEnd): string => JSON.stringify({ type: "duration", seconds: usage.inputFresh });

class Transcript implements Encoder {
  readonly #isJson: boolean;
  #text = "";
  #lacksUsage = false;

  constructor({ voice }: Ask) {
    this.#isJson = (voice as Extract<Voice, { kind: "heard" }>).isJson;
  }

  contentType(): string {
    return this.#isJson ? "application/json; charset=utf-8" : "text/plain; charset=utf-8";
  }

  piece(piece: Piece): string {
    if (piece.kind !== "voice") return "";
    this.#text += Buffer.from(piece.bytes).toString();
    this.#lacksUsage = piece.lacksUsage === true;
    return "";
  }

  keepAlive(): string {
    return "";
  }

  /** As the node wrote it; what was charged is added where it says nothing. */
  end(end: AnswerEnd): string {
    if (!this.#lacksUsage) return this.#text;
    return `{"usage":${usageOf(end)},${this.#text.slice(this.#text.indexOf("{") + 1)}`;
  }

  failure(): string {
    return "";
  }
}

class TranscriptEvents implements Encoder {
  /** What JSON strings are made of, without their quotes. */
  #text = "";

  piece(piece: Piece): string {
    if (piece.kind === "voice") return `data: ${Buffer.from(piece.bytes).toString()}\n\n`;
    if (piece.kind !== "text") return "";
    this.#text += piece.literal.slice(1, -1);
    return `data: {"type":"transcript.text.delta","delta":${piece.literal}}\n\n`;
  }

  keepAlive(): string {
    return ":\n\n";
  }

  end(end: AnswerEnd): string {
    return `data: {"type":"transcript.text.done","text":"${this.#text}","usage":${usageOf(end)}}\n\n`;
  }

  failure(refusal: Refusal): string {
    return `data: ${errorBody(refusal)}\n\n`;
  }
}
