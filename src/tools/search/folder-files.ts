// Lists the files below the operator's folder, without following links.
import { constants, type Dirent } from "node:fs";
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { kindOf } from "./file-text.ts";

export const searchFileMaxBytes = 32 * 1024 * 1024;
const searchFilesMax = 200_000;

export type FileState = Readonly<{ modifiedMs: number; bytes: number }>;

/** The folder cannot be read; the message is one line for the operator. */
export class SearchFolderUnusable extends Error {
  override readonly name = "SearchFolderUnusable";
}

const depthMax = 32;

export class FolderFiles {
  readonly #root: string;
  /** Folders below it, with slashes, that could not be read this time: files found there earlier stay. */
  readonly unreadable: string[] = [];

  private constructor(root: string) {
    this.#root = root;
  }

  /** Throws SearchFolderUnusable. */
  static async open(folder: string): Promise<FolderFiles> {
    try {
      const files = new FolderFiles(await realpath(folder));
      await readdir(files.#root);
      return files;
    } catch (error) {
      throw new SearchFolderUnusable(`the search folder cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Paths below the folder, with slashes, of files to search. Hidden files and links are left out. */
  async *paths(): AsyncGenerator<string> {
    const folders = [""];
    let files = 0;
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for (const entry of await this.#entries(folder)) {
        if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
        // A link is neither: a Dirent does not follow it.
        if (entry.isDirectory() && path.split("/").length < depthMax) folders.push(path);
        if (!entry.isFile() || kindOf(entry.name) === null) continue;
        if (++files > searchFilesMax) return;
        yield path;
      }
    }
  }

  async #entries(folder: string): Promise<Dirent[]> {
    const path = join(this.#root, folder);
    try {
      // It may have become a link since its parent was read.
      if ((await realpath(path)) !== path) return [];
      return (await readdir(path, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch {
      this.unreadable.push(folder); // gone or forbidden: the next scan tries again
      return [];
    }
  }

  /** What a scan compares; rejects if the file is gone. */
  async state(path: string): Promise<FileState> {
    const { mtimeMs, size } = await lstat(join(this.#root, path));
    return { modifiedMs: mtimeMs, bytes: size };
  }

  /** Opened once, without following a link, so that the checked file is the one read. Rejects where it is no file. */
  async open(path: string): Promise<OpenFile> {
    // Without O_NONBLOCK, a named pipe in its place would block forever.
    const handle = await open(join(this.#root, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const status = await handle.stat();
      if (!status.isFile()) throw new Error("it is no file");
      return new OpenFile(handle, { modifiedMs: status.mtimeMs, bytes: status.size });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
}

type Handle = Awaited<ReturnType<typeof open>>;

export class OpenFile implements AsyncDisposable {
  readonly #handle: Handle;
  readonly state: FileState;

  constructor(handle: Handle, state: FileState) {
    this.#handle = handle;
    this.state = state;
  }

  get isTooLarge(): boolean {
    return this.state.bytes > searchFileMaxBytes;
  }

  /** At most as many bytes as it had when it was opened. */
  async read(): Promise<Uint8Array> {
    const bytes = new Uint8Array(this.state.bytes);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
