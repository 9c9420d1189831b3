// How much room the disk of a folder has, for what operators read.
import { statfsSync } from "node:fs";

/** Null where the system does not say. */
export function freeBytesIn(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null; // the disk is gone: the caller's writes report it
  }
}

/** "4,096 bytes are free"; below what a write of the ledger takes, that is why it failed. */
export const roomInWords = (bytes: number): string =>
  `${bytes < fullBelowBytes ? "the disk is full: " : ""}${bytes.toLocaleString("en-US")} bytes are free`;

/** A commit makes its log longer by some pages, and SQLite's memory beside it grows in 32 KiB. */
const fullBelowBytes = 256 * 1024;
