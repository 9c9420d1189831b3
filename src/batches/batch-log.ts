// What became of a batch's lines: a file that only grows. Each record is a line of it: a checksum of what follows, a head in JSON,
// and behind a tab what the client gets.
//
//   {"model":0,...}             a model and its price, which answers after it name by its place
//   {"answered":7,...}\t{...}   an answer, on disk before it is charged
//   {"charged":7,"billed":12}   and its charge was made; this may be lost: then the ledger says so
//   {"failed":8}\t{...}         no answer, and no charge
//
// A kill between the second and the third leaves an answer without a charge, or one that nobody knows of. So a start asks the
// ledger for the charges of such answers, and makes those that are missing. Damage costs the records that it hit, and no others.
import { constants } from "node:fs";
import { copyFile, type FileHandle, open, rename } from "node:fs/promises";
import type { Usage } from "../core/types.ts";
import { linesOf } from "./lines.ts";

/** What a charge is made from, if it is not made at once. `model`: the place of its model in the log. */
export type Answered = Readonly<{
  answered: number;
  model: number;
  usage: Usage;
  estimated: boolean;
  endUser?: string;
}>;
export type Head =
  | Answered
  | Readonly<{ model: number; as: unknown; answered?: undefined }>
  | Readonly<{ charged: number; billed: number }>
  | Readonly<{ failed: number }>;

const tab = 9;
/** In hexadecimal digits. */
const sumLength = 8;

const sumOf = (record: string | Buffer): string => Bun.hash.crc32(record).toString(16).padStart(sumLength, "0");
const lineOf = (record: string): string => `${sumOf(record)}${record}\n`;

/** The records of a log that are whole: what a kill cut off, or a disk damaged, is none. `end`: where the next one begins. */
export async function* recordsOf(path: string): AsyncGenerator<Readonly<{ head: Head; shown: Buffer; end: number }>> {
  const { size } = Bun.file(path);
  if (size === 0) return; // or there is none
  for await (const { bytes, start } of linesOf(path)) {
    const end = start + bytes.length + 1;
    const record = bytes.subarray(sumLength);
    if (end > size || sumOf(record) !== bytes.toString("latin1", 0, sumLength)) continue;
    const cut = record.indexOf(tab);
    const head = JSON.parse(record.toString("utf8", 0, cut === -1 ? record.length : cut)) as Head;
    yield { head, shown: cut === -1 ? Buffer.alloc(0) : record.subarray(cut + 1), end };
  }
}

type Waiter = Readonly<{ resolve(): void; reject(error: unknown): void }>;

/** Writes of one moment share a flush. After one that failed, what it wrote of is taken back before the next. */
export class BatchLog {
  readonly #file: FileHandle;
  #end: number;
  #next: string[] = [];
  /** They stay until they are on disk. */
  #notes = "";
  #waiting: Waiter[] = [];
  #flushing: Promise<void> | null = null;
  #isTorn = false;

  private constructor(file: FileHandle, end: number) {
    this.#file = file;
    this.#end = end;
  }

  /**
   * `end`: of its last whole record; what is behind that is taken away. `isShared`: a copy takes its place, because another gateway
   * that had stopped may go on with a write that it had begun.
   */
  static async open(path: string, end: number, isShared: boolean): Promise<BatchLog> {
    const at = isShared && end > 0 ? `${path}.new` : path;
    if (at !== path) await copyFile(path, at);
    const file = await open(at, constants.O_RDWR | constants.O_CREAT, 0o600);
    await file.truncate(end);
    if (at !== path) {
      await file.datasync();
      await rename(at, path);
    }
    return new BatchLog(file, end);
  }

  /** Goes to disk with what is written next. */
  note(head: Head): void {
    this.#notes += lineOf(JSON.stringify(head));
  }

  /** Resolves when it is on disk; rejects where the disk is full or fails. */
  write(head: Head, shown: string): Promise<void> {
    this.#next.push(lineOf(`${JSON.stringify(head)}\t${shown}`));
    return this.flush();
  }

  flush(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ resolve, reject });
    this.#flushing ??= this.#flush().finally(() => (this.#flushing = null));
    return promise;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      const notes = this.#notes;
      const bytes = Buffer.from(notes + this.#next.join(""));
      this.#waiting = [];
      this.#next = [];
      try {
        if (this.#isTorn) await this.#file.truncate(this.#end);
        this.#isTorn = true;
        for (let at = 0; at < bytes.length;) {
          at += (await this.#file.write(bytes, at, bytes.length - at, this.#end + at)).bytesWritten;
        }
        await this.#file.datasync();
        this.#isTorn = false;
        this.#end += bytes.length;
        this.#notes = this.#notes.slice(notes.length);
        for (const { resolve } of waiting) resolve();
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
  }

  async close(): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }
}
