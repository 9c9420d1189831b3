// Reads a request's images and files. Inline ones are checked here where that is quick; addresses are fetched later.
import { fileAsText, isPdf, storedFileScheme, textOf } from "../../core/file-text.ts";
import { inlineImageHeader } from "../../core/image-header.ts";
import { isRecord } from "../../core/is-record.ts";
import { imagePixelsMax } from "../../core/limits.ts";
import type { MediaPart, Model, Part, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

const inline = /^data:/i;
/** A data URL whose data is text, not base64. */
const dataText = /^data:(?![^,]*;\s*base64\s*,)[^,]*,/i;
const address = /^\s*https?:/i;
/** Base64 characters that must contain a PDF's signature. */
const pdfStartLength = 2_048;
const otherScheme = /^\s*[a-z][a-z0-9+.-]*:/i;

export const refusesImages = (at: string, model: Pick<Model, "id" | "readsImages">): Refusal =>
  malformed(`${at}: the model ${model.id} reads text only, not images`);

/** An image from its address or data URL; a data URL that is none is refused. Null: an address never fetched. */
export function readImage(
  url: string,
  detail: string | null,
  at: string,
  model: Pick<Model, "id" | "readsImages">,
): Part | null | Refusal {
  if (!model.readsImages) return refusesImages(at, model);
  if (!inline.test(url)) return address.test(url) ? { kind: "image", url, detail } : null;
  const header = inlineImageHeader(url);
  if (header === null) return malformed(`${at} must be a PNG, JPEG, GIF or WebP image in base64`);
  const { mediaType, width, height } = header;
  if (width * height > imagePixelsMax) {
    return malformed(
      `${at}: an image may have ${imagePixelsMax / 1e6} megapixels, this has ${width} x ${height} pixels`,
    );
  }
  // Its own header is right where the sender's type is wrong; only then a copy is made.
  const start = `data:${mediaType};base64,`;
  return { kind: "image", url: url.startsWith(start) ? url : start + url.slice(url.indexOf(",") + 1), detail };
}

/** Audio as OpenAI's clients send it: in base64, and its format. */
export function readAudio(
  given: unknown,
  at: string,
  { id, readsAudio }: Pick<Model, "id" | "readsAudio">,
): Part | Refusal {
  if (readsAudio !== true) return malformed(`${at}: the model ${id} does not read audio`);
  const { data, format } = isRecord(given) ? given : {};
  if (typeof data !== "string" || data === "" || !isBase64(data))
    return malformed(`${at}.data must be audio in base64`);
  if (typeof format !== "string" || !/^[a-z0-9]{1,16}$/.test(format)) {
    return malformed(`${at}.format must be the name of a format, such as wav or mp3`);
  }
  return { kind: "audio", url: `data:audio/${format};base64,${data}`, format };
}

/** Searched in linear time. */
const isBase64 = (text: string): boolean => !/[^A-Za-z0-9+/=_-]/.test(text);

/** A file from its address, data URL or base64: text at once, a PDF when served. Null: an address never fetched. */
export function readFile(given: string, name: string | null, at: string): Part | null | Refusal {
  if (address.test(given)) return { kind: "file", url: given, name };
  if (!inline.test(given) && otherScheme.test(given)) return null;
  const base64 = inline.test(given) ? given.slice(given.indexOf(",") + 1) : given;
  if (isPdf(Buffer.from(base64.slice(0, pdfStartLength), "base64"))) {
    return { kind: "file", url: `data:application/pdf;base64,${base64}`, name };
  }
  const bytes = dataText.test(given) ? plainBytes(base64) : Buffer.from(base64, "base64");
  if (bytes.length === 0) return malformed(`${at} must be a file in base64, or an http or https address`);
  const text = textOf(bytes);
  return text === null
    ? malformed(`${at} must be a PDF or a text file`)
    : { kind: "text", text: fileAsText(name, text) };
}

/** An uploaded file by its id: whether the account has it is seen when the request is served. */
export function readStored(
  kind: MediaPart["kind"],
  id: unknown,
  more: string | null,
  at: string,
  model: Pick<Model, "id" | "readsImages">,
): Part | Refusal {
  if (typeof id !== "string" || id === "") return malformed(`${at} must be the id of an uploaded file`);
  const url = `${storedFileScheme}${id}`;
  if (kind === "file") return { kind, url, name: more };
  return model.readsImages ? { kind, url, detail: more } : refusesImages(at, model);
}

const percent = 0x25;

/** The bytes of a data URL without base64; a percent sign that begins no escape stands for itself, as in browsers. */
function plainBytes(data: string): Buffer {
  const bytes = Buffer.from(data);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const escape = bytes[at] === percent ? bytes.toString("latin1", at + 1, at + 3) : "";
    const isEscape = /^[0-9a-f]{2}$/i.test(escape);
    bytes[length++] = isEscape ? Number.parseInt(escape, 16) : bytes[at]!;
    if (isEscape) at += 2;
  }
  return bytes.subarray(0, length);
}
