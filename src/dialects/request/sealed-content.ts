// Text that clients carry and only this service reads: reasoning and summaries in `encrypted_content`, never stored.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { assert } from "../../core/assert.ts";
import { sealingKeyBytes } from "../../core/limits.ts";

/** What a sealed text contains; one kind does not open as another. */
export type SealedKind = "reasoning" | "compaction";

const algorithm = "aes-256-gcm";
const nonceBytes = 12; // 96 bits, the size that GCM is defined for
const tagBytes = 16;
/** Distinguishes ours from foreign content without decrypting, and later formats from this one. */
const marker = "tg1.";

export class Sealer {
  readonly #key: Uint8Array;

  /** `key`: `sealingKeyBytes` random bytes, the same in every process that must open the content. */
  constructor(key: Uint8Array) {
    assert(key.length === sealingKeyBytes, `a sealing key has ${sealingKeyBytes} bytes`);
    this.#key = key;
  }

  seal(kind: SealedKind, text: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(kind));
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return marker + sealed.toString("base64url");
  }

  /** The text, or null for anything that this key did not seal as this kind. */
  open(kind: SealedKind, content: string): string | null {
    if (!content.startsWith(marker)) return null;
    const sealed = Buffer.from(content.slice(marker.length), "base64url");
    if (sealed.length < nonceBytes + tagBytes) return null;
    const decipher = createDecipheriv(algorithm, this.#key, sealed.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(Buffer.from(kind)).setAuthTag(sealed.subarray(-tagBytes));
    const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes));
    try {
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch {
      return null; // the tag does not match: altered, or sealed with another key
    }
  }
}
