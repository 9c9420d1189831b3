// Turns a file's bytes into text for a model: decides which files are text, and how one appears in a prompt.

/** Begins the address of a part whose content is a file that the account uploaded; its id follows. */
export const storedFileScheme = "file-id:";

const pdfStart = Buffer.from("%PDF-");
/** Readers look for it in the first KiB, because some writers put something before it. */
export const pdfStartWithinBytes = 1_024;

export const isPdf = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, pdfStartWithinBytes)).includes(pdfStart);

/** Characters that no text contains: those below the space, except tab, line feed, form feed and carriage return. */
const controlCharacter = /[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/;

/**
 * The text of any kind of text file: UTF-8, the encoding of its byte order mark, or `charset`. Null for all others.
 * Media types are ignored, because senders use octet-stream for what they do not know.
 */
export function textOf(bytes: Uint8Array, charset: string | null = null): string | null {
  const marked =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : null;
  for (const encoding of new Set([marked ?? "utf-8", charset])) {
    const text = encoding === null ? null : decoded(bytes, encoding);
    if (text !== null) return text;
  }
  return null;
}

function decoded(bytes: Uint8Array, encoding: string): string | null {
  try {
    const text = new TextDecoder(encoding as Bun.Encoding, { fatal: true }).decode(bytes);
    return controlCharacter.test(text) ? null : text;
  } catch (error) {
    // wrong bytes, or no encoding of that name
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

/** A file in a prompt, set off from what the user says about it. */
export const fileAsText = (name: string | null, text: string): string =>
  `<document${name === null ? "" : ` name=${JSON.stringify(name)}`}>\n${text}\n</document>`;
