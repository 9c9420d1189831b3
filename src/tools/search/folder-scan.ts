// Updates the index from the folder: reads new and changed files, removes those that are gone, skips the rest.
import type { IndexedFile, SearchIndexWriter } from "../../store/search-index.ts";
import type { Ms } from "../../core/types.ts";
import { type FileText, fileText, type ReadPdf } from "./file-text.ts";
import { FolderFiles, type FileState } from "./folder-files.ts";

/** The result of a scan, in files. */
export type ScanResult = Readonly<{
  files: number;
  indexed: number;
  removed: number;
  /** In the folder, but search cannot find them. */
  skipped: number;
  /** The first of them. */
  skippedFiles: readonly SkippedFile[];
}>;

/** `isNew`: the previous scan did not report it so. */
type SkippedFile = Readonly<{ path: string; reason: string; isNew: boolean }>;

export type Scan = Readonly<{
  folder: string;
  index: SearchIndexWriter;
  readPdf: ReadPdf;
  now: Ms;
  /** Called after each batch with the files read so far. */
  progress(indexed: number): void;
  /** Called between files; true ends the scan and keeps its work. */
  isStopped(): boolean;
}>;

/** File systems store times in steps of up to 2 s: a file that has just changed may change again unnoticed. */
const settledAfterMs = 2_000;
/** Files that are written together: fewer commits, and not too much in memory. */
const batchFiles = 64;
const batchLength = 4_000_000;
const skippedFilesMax = 100;

/** Rejects with SearchFolderUnusable where the folder is unavailable: then the index stays unchanged. */
export async function scanFolder(scan: Scan): Promise<ScanResult> {
  const files = await FolderFiles.open(scan.folder);
  const known = new Map(scan.index.files().map((file) => [file.path, file]));
  const update = new Update(scan, files);
  const seen = new Set<string>();
  for await (const path of files.paths()) {
    if (scan.isStopped()) break;
    seen.add(path);
    await update.look(path, known.get(path) ?? null);
  }
  update.write();
  const gone = scan.isStopped() ? [] : [...known.keys()].filter((path) => !seen.has(path) && !isHidden(path, files));
  scan.index.remove(gone);
  return update.result(seen.size, gone.length);
}

/** True for a file that may still exist in an unreadable folder. */
const isHidden = (path: string, { unreadable }: FolderFiles): boolean =>
  unreadable.some((folder) => folder === "" || path.startsWith(`${folder}/`));

class Update {
  readonly #scan: Scan;
  readonly #files: FolderFiles;
  readonly #skippedFiles: SkippedFile[] = [];
  #batch: { file: IndexedFile; text: FileText | null }[] = [];
  #touched: IndexedFile[] = [];
  #batchLength = 0;
  #indexed = 0;
  #skipped = 0;

  constructor(scan: Scan, files: FolderFiles) {
    this.#scan = scan;
    this.#files = files;
  }

  async look(path: string, known: IndexedFile | null): Promise<void> {
    let read: Read;
    try {
      const state = await this.#files.state(path);
      if (known !== null && known.modifiedMs === state.modifiedMs && known.bytes === state.bytes) {
        return this.#countSkipped(known, known);
      }
      read = await this.#read(path, known);
    } catch (error) {
      // Gone, forbidden or replaced meanwhile: what was known about it is no longer true; the next scan tries again.
      read = { file: { path, modifiedMs: -1, bytes: 0, hash: null, skipped: (error as Error).message }, text: null };
    }
    this.#add(read, known);
  }

  #add({ file, text }: Read, known: IndexedFile | null): void {
    this.#countSkipped(file, known);
    if (text === "unchanged") this.#touched.push(file);
    else {
      this.#batch.push({ file, text });
      if (text !== null) this.#indexed++;
      for (const passage of text?.passages ?? []) this.#batchLength += passage.length;
    }
    if (this.#batch.length + this.#touched.length >= batchFiles || this.#batchLength >= batchLength) this.write();
  }

  #countSkipped({ path, skipped: reason }: IndexedFile, known: IndexedFile | null): void {
    if (reason === null) return;
    this.#skipped++;
    if (this.#skippedFiles.length === skippedFilesMax) return;
    this.#skippedFiles.push({ path, reason, isNew: known?.skipped !== reason });
  }

  write(): void {
    if (this.#touched.length > 0) this.#scan.index.touch(this.#touched);
    if (this.#batch.length > 0) {
      this.#scan.index.put(this.#batch);
      this.#scan.progress(this.#indexed);
    }
    this.#touched = [];
    this.#batch = [];
    this.#batchLength = 0;
  }

  result(files: number, removed: number): ScanResult {
    return { files, indexed: this.#indexed, removed, skipped: this.#skipped, skippedFiles: this.#skippedFiles };
  }

  async #read(path: string, known: IndexedFile | null): Promise<Read> {
    await using opened = await this.#files.open(path);
    const { bytes } = opened.state;
    const modifiedMs = this.#trusted(opened.state);
    if (opened.isTooLarge) {
      return { file: { path, modifiedMs, bytes, hash: null, skipped: "it is too large" }, text: null };
    }
    const content = await opened.read();
    const hash = new Uint8Array(new Bun.CryptoHasher("sha256").update(content).digest());
    const file = { path, modifiedMs, bytes, hash, skipped: null };
    if (known?.hash && Buffer.compare(known.hash, hash) === 0) {
      return { file: { ...file, skipped: known.skipped }, text: "unchanged" };
    }
    const text = await fileText(path, content, this.#scan.readPdf);
    return "skipped" in text ? { file: { ...file, skipped: text.skipped }, text: null } : { file, text };
  }

  /** A time that shows the next scan whether the file has changed; -1, which no file has, where it cannot. */
  #trusted({ modifiedMs }: FileState): Ms {
    return modifiedMs < this.#scan.now - settledAfterMs ? modifiedMs : -1;
  }
}

type Read = Readonly<{ file: IndexedFile; text: FileText | "unchanged" | null }>;
