// Takes the form of a transcription: its fields to memory and its file to the disk, where it stays until its request is over.
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Refusal, SpooledFile } from "../core/types.ts";
import type { AudioForm } from "../dialects/audio/transcriptions.ts";
import { audioLength } from "../files/audio-length.ts";
import type { Files, Upload } from "../files/files.ts";
import type { Body } from "../gateway.ts";
import { unreadBodies } from "./arriving-bodies.ts";
import { boundaryOf, takeForm } from "./multipart.ts";

const audioFileMaxBytes = 200 * 1024 * 1024;
/** Of one field. */
const valueMaxBytes = 16 * 1024;
/** Of a body beside its file. */
const fieldsMaxBytes = 64 * 1024;
const tooLarge = refuse("file_too_large", { reason: `A file may have ${audioFileMaxBytes / 1024 / 1024} MiB` });

export async function readAudioForm(
  request: Request,
  account: AccountId,
  files: Pick<Files, "upload"> | null,
): Promise<Body | Refusal> {
  const boundary = boundaryOf(request.headers.get("content-type"));
  if (boundary === null || request.body === null) {
    return refuse("unreadable", { reason: "Audio is uploaded as multipart/form-data" });
  }
  if (Number(request.headers.get("content-length") ?? 0) > audioFileMaxBytes + fieldsMaxBytes) return tooLarge;
  const upload = (await files?.upload(account)) ?? refuse("not_found", { reason: "Files are not taken here" });
  if (isRefusal(upload)) return upload;
  const file = new Spooled(upload);
  unreadBodies.count += 1;
  try {
    const form = await takeForm(request.body, boundary, file, valueMaxBytes);
    if (isRefusal(form)) {
      file[Symbol.dispose]();
      return form;
    }
    file.name = form.filename ?? "";
    const length = form.filename === null ? { seconds: 0, isGuessed: true } : await audioLength(file);
    const json: AudioForm = { fields: form.fields, file: form.filename === null ? null : file, ...length };
    return { json, bytes: file.bytes, upload: file };
  } catch (thrown) {
    file[Symbol.dispose]();
    throw thrown;
  } finally {
    unreadBodies.count -= 1;
  }
}

class Spooled implements SpooledFile {
  name = "";
  bytes = 0;
  readonly #upload: Upload;

  constructor(upload: Upload) {
    this.#upload = upload;
  }

  async write(content: Uint8Array): Promise<Refusal | null> {
    this.bytes += content.length;
    return this.bytes > audioFileMaxBytes ? tooLarge : this.#upload.write(content);
  }

  read(at: number, bytes: number): Promise<Buffer> {
    return this.#upload.read(at, bytes);
  }

  [Symbol.dispose](): void {
    void this.#upload[Symbol.asyncDispose]();
  }
}
