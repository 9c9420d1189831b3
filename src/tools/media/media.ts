// Turns images and files into data and text before a node is asked. Parts that cannot be fetched are left out.
import { assert } from "../../core/assert.ts";
import { fileAsText, isPdf, storedFileScheme, textOf } from "../../core/file-text.ts";
import { imageHeader } from "../../core/image-header.ts";
import { busyRetrySeconds, imagePixelsMax } from "../../core/limits.ts";
import { mediaFetchesAtOnceMax } from "../limits.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { AccountId, Ask, MediaPart, Part, Refusal } from "../../core/types.ts";
import type { Files } from "../../files/files.ts";
import { sizeOf, unreadyParts, withParts } from "./media-parts.ts";
import type { PdfReader } from "./pdf-reader.ts";
import { type Fetched, FetchRefused, type PublicFetch } from "../fetch/public-fetch.ts";

export const mediaFetchBytesMax = 8 * 1024 * 1024;
const mediaFetchTimeoutMs = 20_000;
const mediaRedirectsMax = 5;
/** Fetches of one request in total. */
export const mediaFetchesMax = 100;
/** What one request may fetch: as much as a body may bring inline. */
export const mediaRequestBytesMax = 32 * 1024 * 1024;
/** After this long, a request's remaining media are left out. */
const mediaRequestTimeoutMs = 60_000;
/** Fetched bytes, and what they became, that open requests hold together. A part without room is left out. */
const mediaHeldBytesMax = 512 * 1024 * 1024;
export const mediaAccountHeldBytesMax = 128 * 1024 * 1024;
/** UTF-16 units of a request's base64 images, counted at each place: everything that may be fetched, once. */
export const mediaImagesMaxLength = 48 * 1024 * 1024;
/** UTF-16 units of a request's files as text: several of the largest contexts. More would stall the streams. */
export const mediaTextMaxLength = 10_000_000;

assert(mediaRequestBytesMax <= mediaAccountHeldBytesMax, "every allowed request finds room");
assert((mediaRequestBytesMax * 4) / 3 < mediaImagesMaxLength, "images that were fetched have their places");
assert(mediaFetchBytesMax < mediaTextMaxLength, "a file that was fetched has its place");
assert(mediaAccountHeldBytesMax < mediaHeldBytesMax, "an account leaves room to others: media");

/** Files of other purposes are not for models to read. */
const readPurposes: ReadonlySet<string> = new Set(["user_data", "vision"]);

/**
 * An Ask whose media are data and text. Disposing it frees the memory that was counted for them. `refusal`: an uploaded file
 * cannot be had, and unlike an address it was sent for this.
 */
export type ReadyAsk = Disposable & Readonly<{ ask: Ask; refusal: Refusal | null }>;

export class Media {
  readonly #fetch: PublicFetch;
  readonly #pdf: Pick<PdfReader, "read">;
  /** Null: no files are taken. */
  readonly #files: UploadedFiles | null;
  readonly #held = new Map<AccountId, number>();
  #heldBytes = 0;

  constructor(fetch: PublicFetch, pdf: Pick<PdfReader, "read">, files: UploadedFiles | null = null) {
    this.#fetch = fetch;
    this.#pdf = pdf;
    this.#files = files;
  }

  /** Bytes that were fetched for open requests, or the data that they became. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** At most four parts at a time, each address once. Ends when `cancelSignal` aborts; no failed part rejects. */
  async ready(ask: Ask, account: AccountId, cancelSignal: AbortSignal): Promise<ReadyAsk> {
    const hold = (bytes: number): boolean => this.#hold(account, bytes);
    const request = new MediaRequest(ask, account, this.#fetch, this.#pdf, this.#files, hold);
    const timer = setTimeout(() => request.stop(), mediaRequestTimeoutMs);
    const stop = () => request.stop();
    cancelSignal.addEventListener("abort", stop);
    if (cancelSignal.aborted) stop();
    try {
      const ready = await request.ready();
      const { refusal } = request;
      return { ask: ready, refusal, [Symbol.dispose]: () => this.#letGo(account, request.heldBytes) };
    } catch (error) {
      this.#letGo(account, request.heldBytes);
      throw error;
    } finally {
      clearTimeout(timer);
      cancelSignal.removeEventListener("abort", stop);
    }
  }

  /** Counts `bytes` more, or fewer, for the account; false where there is no room for them. */
  #hold(account: AccountId, bytes: number): boolean {
    const held = (this.#held.get(account) ?? 0) + bytes;
    if (bytes > 0 && (held > mediaAccountHeldBytesMax || this.#heldBytes + bytes > mediaHeldBytesMax)) return false;
    assert(held >= 0, "what is held is given back once");
    if (held === 0) this.#held.delete(account);
    else this.#held.set(account, held);
    this.#heldBytes += bytes;
    return true;
  }

  #letGo(account: AccountId, bytes: number): void {
    this.#hold(account, -bytes);
  }
}

class MediaRequest {
  readonly #ask: Ask;
  readonly #account: AccountId;
  readonly #fetch: PublicFetch;
  readonly #pdf: Pick<PdfReader, "read">;
  readonly #files: UploadedFiles | null;
  readonly #hold: (bytes: number) => boolean;
  readonly #over = new AbortController();
  #fetchesLeft = mediaFetchesMax;
  #keptBytes = 0;
  /** The bytes in `keptBytes`, the data made of them, and the running fetches. */
  #heldBytes = 0;
  #imagesLength = 0;
  #textLength = 0;
  refusal: Refusal | null = null;

  constructor(
    ask: Ask,
    account: AccountId,
    fetch: PublicFetch,
    pdf: Pick<PdfReader, "read">,
    files: UploadedFiles | null,
    hold: (bytes: number) => boolean,
  ) {
    this.#files = files;
    this.#ask = ask;
    this.#account = account;
    this.#fetch = fetch;
    this.#pdf = pdf;
    this.#hold = hold;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Parts that are not ready yet are left out. */
  stop(): void {
    this.#over.abort();
  }

  async ready(): Promise<Ask> {
    const { prepared } = this.#ask;
    const found = new Map<string, Part>();
    const next = unreadyParts(this.#ask.turns, prepared?.unready).entries();
    const work = async () => {
      for (const [key, { part, places }] of next) {
        const ready = this.#over.signal.aborted ? null : await this.#read(part);
        if (ready === null) continue;
        if (this.#hasRoom(ready, places)) found.set(key, ready);
        else if (isStored(part)) this.#refuse("The files that a request names are too large together");
      }
    };
    // After a fault of ours, the others continue: they free what they hold themselves.
    const works = await Promise.allSettled(Array.from({ length: mediaFetchesAtOnceMax }, work));
    for (const outcome of works) if (outcome.status === "rejected") throw outcome.reason;
    if (this.refusal !== null) return this.#ask;
    if (prepared === undefined) return withParts(this.#ask, found);
    const { turns, bodyBytes } = await prepared.withMedia(found);
    return withParts({ ...this.#ask, prepared: turns, bodyBytes }, found);
  }

  async #read(part: MediaPart): Promise<Part | null> {
    if (part.url.startsWith("data:")) {
      const bytes = Buffer.from(part.url.slice(part.url.indexOf(",") + 1), "base64");
      return part.kind === "file" ? this.#readFile(bytes, null, part.name) : null;
    }
    if (isStored(part)) return this.#readStored(part);
    const fetched = await this.#get(part);
    if (fetched === null) return null;
    if (part.kind === "file") {
      const file = await this.#readFile(fetched.bytes, fetched.charset, part.name ?? nameIn(fetched.url));
      this.#take(-fetched.bytes.length); // only its text is kept
      return file;
    }
    return asImage(part, fetched.bytes);
  }

  async #readStored(part: MediaPart): Promise<Part | null> {
    const id = part.url.slice(storedFileScheme.length);
    if (this.#fetchesLeft === 0) return this.#refuse(`A request may name ${mediaFetchesMax} files`);
    this.#fetchesLeft--;
    const file = (await this.#files?.get(this.#account, id)) ?? null;
    if (file === null) return this.#refuse(`No file with id '${id}' found`);
    if (!readPurposes.has(file.purpose)) {
      return this.#refuse(`The file '${id}' is for ${file.purpose}: upload it with the purpose user_data or vision`);
    }
    this.#keptBytes += file.bytes;
    if (this.#keptBytes > mediaRequestBytesMax) return this.#refuse("The files of a request may have 32 MiB together");
    if (!this.#take(file.bytes)) return this.#refuse(refuse("busy", { seconds: busyRetrySeconds }));
    const bytes = await this.#files!.read(file)
      .bytes()
      .catch(() => null);
    if (bytes === null) return this.#refuse(`The content of the file '${id}' is gone`);
    if (part.kind === "image") {
      return asImage(part, bytes) ?? this.#refuse(`The file '${id}' is no image that models read`);
    }
    const text = await this.#readFile(bytes, null, part.name ?? file.filename);
    this.#take(-bytes.length); // only its text is kept
    return text ?? this.#refuse(`The file '${id}' is no PDF or text file that can be read`);
  }

  /** The request is not served, and nothing more is read for it. The first reason counts. */
  #refuse(reason: string | Refusal): null {
    if (!this.#over.signal.aborted) this.refusal = isRefusal(reason) ? reason : refuse("malformed", { reason });
    this.stop();
    return null;
  }

  /** Reserves room for a part in all its places. The bytes of a fetched image already have theirs. */
  #hasRoom(part: Part, places: number): boolean {
    const length = sizeOf(part) * places;
    if (part.kind === "text") {
      if (this.#textLength + length > mediaTextMaxLength || !this.#take(length)) return false;
      this.#textLength += length;
    } else {
      if (this.#imagesLength + length > mediaImagesMaxLength || !this.#take(length - sizeOf(part))) return false;
      this.#imagesLength += length;
    }
    return true;
  }

  async #readFile(bytes: Uint8Array, charset: string | null, name: string | null): Promise<Part | null> {
    const text = isPdf(bytes) ? await this.#pdf.read(bytes, this.#account, this.#over.signal) : textOf(bytes, charset);
    return text === null ? null : { kind: "text", text: fileAsText(name, text) };
  }

  async #get({ url, kind }: MediaPart): Promise<Fetched | null> {
    if (this.#fetchesLeft === 0 || !this.#take(mediaFetchBytesMax)) return null;
    this.#fetchesLeft--;
    let kept = 0;
    try {
      const options = {
        account: this.#account,
        bytesMax: mediaFetchBytesMax,
        timeoutMs: mediaFetchTimeoutMs,
        redirectsMax: mediaRedirectsMax,
        accept: kind === "image" ? "image/*" : "*/*",
      };
      const fetched = await this.#fetch.get(url, options, this.#over.signal);
      if (this.#keptBytes + fetched.bytes.length > mediaRequestBytesMax) {
        this.#fetchesLeft = 0; // A smaller part might still fit, but the next may be as large and be fetched for nothing.
        return null;
      }
      kept = fetched.bytes.length;
      return fetched;
    } catch (error) {
      if (error instanceof FetchRefused) return null;
      throw error;
    } finally {
      this.#keptBytes += kept;
      this.#take(kept - mediaFetchBytesMax);
    }
  }

  #take(bytes: number): boolean {
    if (!this.#hold(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }
}

type UploadedFiles = Pick<Files, "get" | "read">;

const isStored = ({ url }: MediaPart): boolean => url.startsWith(storedFileScheme);

function asImage(part: MediaPart, bytes: Uint8Array): Part | null {
  const header = imageHeader(bytes);
  if (header === null || header.width * header.height > imagePixelsMax) return null;
  return { ...part, url: `data:${header.mediaType};base64,${bytes.toBase64()}` };
}

/** The last step of the path: "report.pdf"; null if there is none. */
function nameIn(url: string): string | null {
  const step = new URL(url).pathname.split("/").at(-1) ?? "";
  return step === "" ? null : step;
}
