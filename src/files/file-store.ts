// Files in a folder, and their rows. A content is written beside its place, flushed, renamed, and only then gets its row; it
// loses its row before it is removed. So whatever is in the folder without a row is left over, and `sweep` removes it.
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { diskReserveBytes } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import { hourMs } from "../core/units.ts";
import type { ConversationRows } from "../core/conversations.ts";
import type { FileBounds, FileMeta, FilePage, FileRows, Files, FileWriter, StoredFile, Upload } from "./files.ts";

/** Files of an account, whatever they hold: their rows and places cost, too. */
const accountFilesMax = 10_000;
/** Uploads of an account at once. */
const accountUploadsMax = 16;
/** How often the room of the disk is looked at while a file is written. */
const roomLookBytes = 16 * 1024 * 1024;
/** What is not written for so long, and has no row, is left over: a gateway that shares the folder may be writing it. */
const leftOverMs = hourMs;
const sweptAtOnce = 1_000;
/** Ends the names of uploads that are under way. */
const unfinished = ".new";

export type FileLimits = Omit<FileBounds, "accountFilesMax"> & Readonly<{ fileBytesMax: number; keepMs: Ms }>;

export type FileStoreOptions = Readonly<{
  folder: string;
  /** Whether other gateways write to the folder. */
  isShared: boolean;
  limits: FileLimits;
  rows: FileRows;
  /** Of the folder's disk; null where the system does not say. */
  freeBytes: () => number | null;
  clock: Clock;
  log: Log;
}>;

type InFlight = { uploads: number; bytes: number };

export class FileStore implements Files {
  limits: FileLimits;
  readonly #options: FileStoreOptions;
  /** Of uploads that are no rows yet; accounts without any are absent. */
  readonly #inFlight = new Map<AccountId, InFlight>();
  #allInFlight = 0;
  readonly #upkeep: Timer;

  private constructor(options: FileStoreOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.#upkeep = setInterval(() => void this.#keepUp(leftOverMs), hourMs);
    this.#upkeep.unref();
  }

  /** Makes the folder if there is none, and removes what a kill left in it. */
  static async open(options: FileStoreOptions): Promise<FileStore> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    const files = new FileStore(options);
    await files.#keepUp(options.isShared ? leftOverMs : 0);
    return files;
  }

  /** What is kept of batches, in a folder for each account. */
  get batchesFolder(): string {
    return join(this.#options.folder, "batches");
  }

  get fileBytesMax(): number {
    return this.limits.fileBytesMax;
  }

  get accountBytesMax(): number {
    return this.limits.accountBytesMax;
  }

  usualExpiry(): Ms {
    return this.#options.clock.wall() + this.limits.keepMs;
  }

  async upload(account: AccountId): Promise<Upload | Refusal> {
    const inFlight = this.#inFlight.get(account) ?? { uploads: 0, bytes: 0 };
    if (inFlight.uploads >= accountUploadsMax) return refuse("busy", { seconds: 5 });
    inFlight.uploads += 1;
    this.#inFlight.set(account, inFlight);
    const left = (bytes: number): void => {
      this.#allInFlight -= bytes;
      inFlight.bytes -= bytes;
      inFlight.uploads -= 1;
      if (inFlight.uploads === 0) this.#inFlight.delete(account);
    };
    try {
      const use = await this.#options.rows.use(account);
      const id = this.#mintId();
      const place = await this.#makePlace(id);
      const handle = await open(`${place}${unfinished}`, "wx+", 0o600);
      let bytes = 0;
      let isOpen = true;
      let isKept = false;
      const close = async (): Promise<void> => {
        if (isOpen) await handle.close();
        isOpen = false;
      };
      return {
        write: async (content) => {
          const looked = Math.floor(bytes / roomLookBytes);
          bytes += content.length;
          inFlight.bytes += content.length;
          this.#allInFlight += content.length;
          const refusal =
            this.#overBounds(bytes, {
              files: use.files + inFlight.uploads,
              bytes: use.bytes + inFlight.bytes,
              allBytes: use.allBytes + this.#allInFlight,
            }) ??
            ((looked === Math.floor(bytes / roomLookBytes) && looked > 0) || this.hasRoom()
              ? null
              : refuse("storage_full"));
          return refusal ?? (await fullOrNull(() => writeAll(handle, content)));
        },
        read: async (at, length) => {
          const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, at);
          return buffer.subarray(0, bytesRead);
        },
        keep: async (meta) => {
          const unflushed = await fullOrNull(() => handle.sync());
          if (unflushed !== null) return unflushed;
          await close();
          const file = { ...meta, id, accountId: account, bytes, createdAt: this.#options.clock.wall() };
          await rename(`${place}${unfinished}`, place);
          await flushFolder(dirname(place));
          isKept = await this.#options.rows.add(file, true, { ...this.limits, accountFilesMax });
          if (isKept) return file;
          await rm(place, { force: true });
          const { files, bytes: used, allBytes } = await this.#options.rows.use(account);
          const whole = { files: files + 1, bytes: used + bytes, allBytes: allBytes + bytes };
          return this.#overBounds(bytes, whole) ?? refuse("storage_full");
        },
        [Symbol.asyncDispose]: async () => {
          left(bytes);
          await close();
          if (!isKept) await rm(`${place}${unfinished}`, { force: true });
        },
      };
    } catch (thrown) {
      left(0);
      if (isFull(thrown)) return refuse("storage_full");
      throw thrown;
    }
  }

  async create(account: AccountId, meta: FileMeta, content: AsyncIterable<Uint8Array>): Promise<StoredFile | Refusal> {
    const opened = await this.upload(account);
    if (isRefusal(opened)) return opened;
    await using upload = opened;
    for await (const piece of content) {
      const refusal = await upload.write(piece);
      if (refusal !== null) return refusal;
    }
    return await upload.keep(meta); // before the upload is disposed
  }

  async writer(account: AccountId, meta: FileMeta): Promise<FileWriter> {
    const file = { ...meta, id: this.#mintId(), accountId: account, bytes: 0, createdAt: this.#options.clock.wall() };
    const place = await this.#makePlace(file.id);
    await this.#options.rows.add(file, false, null);
    return this.#writing(file, await open(place, "wx", 0o600));
  }

  async resumeWriter(account: AccountId, id: string, bytes: number): Promise<FileWriter | null> {
    const file = await this.#options.rows.find(account, id, false);
    if (file === null) return null;
    const handle = await open(this.#placeOf(id), constants.O_RDWR | constants.O_CREAT, 0o600);
    const { size } = await handle.stat();
    if (size < bytes) {
      await handle.close();
      throw new Error(`${this.#placeOf(id)} has ${size} bytes of ${bytes}`);
    }
    await handle.truncate(bytes);
    return this.#writing({ ...file, bytes }, handle);
  }

  #writing(begun: StoredFile, handle: FileHandle): FileWriter {
    const { rows } = this.#options;
    let { bytes } = begun;
    let last: Promise<unknown> = Promise.resolve();
    const inOrder = <Result>(act: () => Promise<Result>): Promise<Result> => {
      const done = last.then(act);
      last = done.catch(() => {});
      return done;
    };
    return {
      get file() {
        return { ...begun, bytes };
      },
      get bytes() {
        return bytes;
      },
      append: (content) =>
        inOrder(async () => {
          await writeAll(handle, content, bytes);
          bytes += content.length;
        }),
      flush: () =>
        inOrder(async () => {
          await handle.datasync();
          await rows.grow(begun.id, bytes, false);
        }),
      finish: () =>
        inOrder(async () => {
          await handle.sync();
          await handle.close();
          await flushFolder(dirname(this.#placeOf(begun.id)));
          await rows.grow(begun.id, bytes, true);
          return { ...begun, bytes };
        }),
      close: () => inOrder(() => handle.close()),
    };
  }

  async get(account: AccountId, id: string): Promise<StoredFile | null> {
    const file = await this.#options.rows.find(account, id, true);
    return file === null || (file.expiresAt ?? Infinity) <= this.#options.clock.wall() ? null : file;
  }

  list(account: AccountId, page: FilePage): Promise<readonly StoredFile[]> {
    return this.#options.rows.list(account, page, this.#options.clock.wall());
  }

  read({ id }: StoredFile): Bun.BunFile {
    return Bun.file(this.#placeOf(id));
  }

  async remove(account: AccountId, id: string): Promise<boolean> {
    const isRemoved = await this.#options.rows.remove(account, id);
    if (isRemoved) await this.#removeContents([id]);
    return isRemoved;
  }

  async removeExpired(now: Ms): Promise<void> {
    await this.#removeContents(await this.#options.rows.removeExpired(now));
  }

  async eraseAccount(account: AccountId): Promise<void> {
    await this.#removeContents(await this.#options.rows.removeAll(account));
    await rm(join(this.batchesFolder, String(account)), { recursive: true, force: true });
  }

  get conversations(): ConversationRows {
    return this.#options.rows;
  }

  async close(): Promise<void> {
    clearInterval(this.#upkeep);
    await this.#options.rows.close();
  }

  async #keepUp(idleMs: Ms): Promise<void> {
    const { clock, log } = this.#options;
    try {
      await this.removeExpired(clock.wall());
      await this.#sweep(clock.wall() - idleMs);
    } catch (thrown) {
      log("error", "files that expired could not be removed", { reason: (thrown as Error).message });
    }
  }

  /** Removes what has no row and was not written since. */
  async #sweep(since: Ms): Promise<void> {
    const { folder } = this.#options;
    let names: string[] = [];
    for (const ending of await readdir(folder)) {
      if (!/^[0-9A-Za-z]{2}$/.test(ending)) continue;
      names.push(...(await readdir(join(folder, ending))).filter((name) => name.startsWith("file-")));
      if (names.length < sweptAtOnce) continue;
      await this.#removeUnknown(names, since);
      names = [];
    }
    await this.#removeUnknown(names, since);
  }

  async #removeUnknown(names: readonly string[], since: Ms): Promise<void> {
    const known = new Set(await this.#options.rows.known(names));
    for (const name of names) {
      if (known.has(name)) continue;
      const path = this.#placeOf(name);
      const found = await stat(path).catch(() => null);
      if (found !== null && found.mtimeMs <= since) await rm(path, { force: true });
    }
  }

  async #removeContents(ids: readonly string[]): Promise<void> {
    for (const id of ids) await rm(this.#placeOf(id), { force: true });
  }

  #mintId(): string {
    return `file-${mintRequestId(this.#options.clock.wall()).slice("req_".length)}`;
  }

  /** By the id's last characters, which are random; `name` may have an ending. */
  #placeOf(name: string): string {
    return join(this.#options.folder, name.replace(unfinished, "").slice(-2), name);
  }

  async #makePlace(id: string): Promise<string> {
    const place = this.#placeOf(id);
    const made = await mkdir(dirname(place), { recursive: true, mode: 0o700 });
    if (made !== undefined) await flushFolder(this.#options.folder);
    return place;
  }

  #overBounds(bytes: number, use: Readonly<{ files: number; bytes: number; allBytes: number }>): Refusal | null {
    const { fileBytesMax, accountBytesMax, totalBytesMax } = this.limits;
    const tooLarge = (reason: string): Refusal => refuse("file_too_large", { reason });
    if (bytes > fileBytesMax) return tooLarge(`A file may have ${fileBytesMax} bytes`);
    if (use.files > accountFilesMax) return tooLarge(`An account may have ${accountFilesMax} files: delete some`);
    if (use.bytes > accountBytesMax) {
      return tooLarge(`The files of an account may have ${accountBytesMax} bytes together: delete some`);
    }
    return use.allBytes > totalBytesMax ? refuse("storage_full") : null;
  }

  hasRoom(): boolean {
    const free = this.#options.freeBytes();
    return free === null || free >= diskReserveBytes;
  }
}

/** At `position`; absent: at the end of what was written. */
async function writeAll(handle: FileHandle, content: Uint8Array, position: number | null = null): Promise<void> {
  for (let at = 0; at < content.length;) {
    const place = position === null ? null : position + at;
    at += (await handle.write(content, at, content.length - at, place)).bytesWritten;
  }
}

const isFull = (thrown: unknown): boolean =>
  ["ENOSPC", "EDQUOT", "EFBIG"].includes(String((thrown as { code?: unknown }).code));

async function fullOrNull(act: () => Promise<unknown>): Promise<Refusal | null> {
  try {
    await act();
    return null;
  } catch (thrown) {
    if (isFull(thrown)) return refuse("storage_full");
    throw thrown;
  }
}

async function flushFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
