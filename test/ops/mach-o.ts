// Reads programs for macOS as its loader does: which processor they are for, and which pages do not match their
// signature.
import { createHash } from "node:crypto";

export type MachO = Readonly<{
  processor: "arm64" | "x64";
  /** Whether the signature goes exactly up to the end of the file, and the last segment with it. */
  signedToItsEnd: boolean;
  pages: number;
  /** Pages whose hash is another than the signature's. */
  changedPages: number;
}>;

const processors: Readonly<Record<number, MachO["processor"]>> = { 0x0100000c: "arm64", 0x01000007: "x64" };

/** Throws on what is no program for macOS with a signature. */
export function readMachO(program: Buffer): MachO {
  const processor = processors[program.readUInt32LE(4)];
  if (program.readUInt32LE(0) !== 0xfeedfacf || program.readUInt32LE(12) !== 2 || processor === undefined)
    throw new Error("not a program for macOS");
  let at = 32;
  let signature = program.subarray(0, 0);
  let signatureAt = 0;
  let lastSegmentEnd = 0;
  for (let left = program.readUInt32LE(16); left > 0; left--) {
    const command = program.readUInt32LE(at);
    if (command === 0x19) {
      const end = Number(program.readBigUInt64LE(at + 40) + program.readBigUInt64LE(at + 48));
      lastSegmentEnd = Math.max(lastSegmentEnd, end);
    }
    if (command === 0x1d) {
      signatureAt = program.readUInt32LE(at + 8);
      signature = program.subarray(signatureAt, signatureAt + program.readUInt32LE(at + 12));
    }
    at += program.readUInt32LE(at + 4);
  }
  const directory = directoryOf(signature);
  const limit = directory.readUInt32BE(32);
  const pageSize = 2 ** directory.readUInt8(39);
  const pages = directory.readUInt32BE(28);
  let changedPages = Math.ceil(limit / pageSize) - pages;
  for (let page = 0; page < pages; page++) {
    const hashAt = directory.readUInt32BE(16) + page * 32;
    const bytes = program.subarray(page * pageSize, Math.min((page + 1) * pageSize, limit));
    const hash = createHash("sha256").update(bytes).digest();
    if (!hash.equals(directory.subarray(hashAt, hashAt + 32))) changedPages++;
  }
  const signedToItsEnd =
    limit === signatureAt && signatureAt + signature.length === program.length && lastSegmentEnd === program.length;
  return { processor, signedToItsEnd, pages, changedPages };
}

function directoryOf(signature: Buffer): Buffer {
  if (signature.length === 0 || signature.readUInt32BE(0) !== 0xfade0cc0) throw new Error("no signature");
  for (let index = 0; index < signature.readUInt32BE(8); index++) {
    const at = signature.readUInt32BE(16 + 8 * index);
    if (signature.readUInt32BE(at) === 0xfade0c02) return signature.subarray(at, at + signature.readUInt32BE(at + 4));
  }
  throw new Error("a signature without pages");
}
