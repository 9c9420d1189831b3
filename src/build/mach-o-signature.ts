// Signs a program for macOS on Intel ad hoc, that is with hashes of its pages and no name, as Apple's linker does.
// macOS kills a program whose signature does not fit. Bun 1.4.5 signs what it compiles for arm64 (oven-sh/bun #39764, fixed
// by #39772), but a program for x64 keeps the signature of Bun itself, which no longer fits: 75 of 23,797 pages differ, and
// 9 MB follow its end. Others see the same (deepcoldy/botmux #1287, which names oven-sh/bun #39837). A packaging test fails
// as soon as Bun signs both; then this file goes.
//
//   header | load commands | ... | __LINKEDIT ... | signature: SuperBlob { CodeDirectory { identifier, page hashes } }
//
// Numbers of the program are little-endian, those of the signature big-endian. Names are those of Apple's
// <mach-o/loader.h> and <kern/cs_blobs.h>.

import { createHash } from "node:crypto";

const machO64Magic = 0xfeedfacf;
const headerSize = 32;
const segment64Command = 0x19;
const codeSignatureCommand = 0x1d;

const superBlobMagic = 0xfade0cc0;
const superBlobSize = 20; // with an index of one entry
const codeDirectoryMagic = 0xfade0c02;
const codeDirectorySize = 88; // as of version 0x20400, the oldest that says where the main program's code lies
const codeDirectoryVersion = 0x20400;
const adHocAndByLinker = 0x20002;
const hashTypeSha256 = 2;
const hashSize = 32;
const pageSizeLog2 = 12;
const pageSize = 1 << pageSizeLog2;
const mainProgram = 1n;
/** What Bun and Go write; it names no one. */
const identifier = "a.out\0";

type Layout = Readonly<{
  /** Where the load commands stand in the file. */
  linkEdit: number;
  codeSignature: number;
  text: Readonly<{ offset: bigint; size: bigint }>;
  /** The first byte of the signature, up to which everything is signed. */
  codeLimit: number;
}>;

/** The program with a signature that fits it, in place of the one that it has. Throws on what is no such program. */
export function signAdHoc(program: Uint8Array): Uint8Array {
  const layout = layoutOf(program);
  const pages = Math.ceil(layout.codeLimit / pageSize);
  const size = superBlobSize + codeDirectorySize + identifier.length + pages * hashSize;
  const signed = new Uint8Array(layout.codeLimit + size);
  signed.set(program.subarray(0, layout.codeLimit));
  announce(signed, layout, size); // before the hashes: the first page holds it
  const signature = new DataView(signed.buffer, layout.codeLimit);
  writeDirectory(signature, layout, pages, size);
  for (let page = 0; page < pages; page++) {
    const bytes = signed.subarray(page * pageSize, Math.min((page + 1) * pageSize, layout.codeLimit));
    signed.set(createHash("sha256").update(bytes).digest(), signed.length - (pages - page) * hashSize);
  }
  return signed;
}

function layoutOf(program: Uint8Array): Layout {
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  if (view.getUint32(0, true) !== machO64Magic) throw new Error("not a program for macOS");
  const commands = view.getUint32(16, true);
  let linkEdit: number | null = null;
  let codeSignature: number | null = null;
  let text: Layout["text"] | null = null;
  for (let index = 0, at = headerSize; index < commands; index++, at += view.getUint32(at + 4, true)) {
    const command = view.getUint32(at, true);
    if (command === codeSignatureCommand) codeSignature = at;
    if (command !== segment64Command) continue;
    const name = new TextDecoder().decode(program.subarray(at + 8, at + 24)).replace(/\0.*$/s, "");
    if (name === "__LINKEDIT") linkEdit = at;
    if (name === "__TEXT") text = { offset: view.getBigUint64(at + 40, true), size: view.getBigUint64(at + 48, true) };
  }
  if (linkEdit === null || codeSignature === null || text === null) throw new Error("a program without a signature");
  return { linkEdit, codeSignature, text, codeLimit: view.getUint32(codeSignature + 8, true) };
}

/** Tells the new size of the signature, and of the segment that it ends. */
function announce(program: Uint8Array, { linkEdit, codeSignature, codeLimit }: Layout, size: number): void {
  const view = new DataView(program.buffer);
  view.setUint32(codeSignature + 12, size, true);
  const fileSize = codeLimit + size - Number(view.getBigUint64(linkEdit + 40, true));
  const memorySize = Math.ceil(fileSize / pageSize) * pageSize;
  view.setBigUint64(linkEdit + 32, BigInt(memorySize), true);
  view.setBigUint64(linkEdit + 48, BigInt(fileSize), true);
}

/** All but the hashes. */
function writeDirectory(view: DataView, { text, codeLimit }: Layout, pages: number, size: number): void {
  const directory = superBlobSize;
  const numbers: readonly (readonly [at: number, value: number])[] = [
    [0, superBlobMagic],
    [4, size],
    [8, 1], // blobs
    [12, 0], // the first is the CodeDirectory
    [16, directory],
    [directory, codeDirectoryMagic],
    [directory + 4, size - superBlobSize],
    [directory + 8, codeDirectoryVersion],
    [directory + 12, adHocAndByLinker],
    [directory + 16, codeDirectorySize + identifier.length], // the hashes
    [directory + 20, codeDirectorySize], // the identifier
    [directory + 24, 0], // hashes of other things than pages
    [directory + 28, pages],
    [directory + 32, codeLimit],
  ];
  for (const [at, value] of numbers) view.setUint32(at, value);
  view.setUint8(directory + 36, hashSize);
  view.setUint8(directory + 37, hashTypeSha256);
  view.setUint8(directory + 39, pageSizeLog2);
  view.setBigUint64(directory + 64, text.offset);
  view.setBigUint64(directory + 72, text.size);
  view.setBigUint64(directory + 80, mainProgram);
  for (const [index, letter] of [...identifier].entries())
    view.setUint8(directory + codeDirectorySize + index, letter.charCodeAt(0));
}
