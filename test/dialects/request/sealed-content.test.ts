// Sealed content: opening it gives what was sealed, and nothing else opens.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sealingKeyBytes } from "../../../src/core/limits.ts";
import { Sealer } from "../../../src/dialects/request/sealed-content.ts";

const key = new Uint8Array(sealingKeyBytes).fill(7);
const sealer = new Sealer(key);

describe("sealed content", () => {
  test("opens to the same text in any process with the key", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(new Sealer(key).open("reasoning", sealer.seal("reasoning", text))).toBe(text);
      }),
    );
  });

  test("shows nothing of the text and differs each time", () => {
    const sealed = sealer.seal("reasoning", "the secret plan");
    expect(sealed).toMatch(/^[A-Za-z0-9_.-]+$/);
    expect(Buffer.from(sealed.slice(4), "base64url").toString("latin1")).not.toContain("secret");
    expect(sealer.seal("reasoning", "the secret plan")).not.toBe(sealed);
  });

  test("does not open with another key, as another kind, cut or altered anywhere", () => {
    const sealed = sealer.seal("reasoning", "plan");
    expect(new Sealer(new Uint8Array(sealingKeyBytes)).open("reasoning", sealed)).toBeNull();
    expect(sealer.open("compaction", sealed)).toBeNull();
    for (let at = 0; at < sealed.length; at++) {
      expect(sealer.open("reasoning", sealed.slice(0, at))).toBeNull();
      const other = sealed[at] === "A" ? "Q" : "A"; // differs in a bit that every position of the encoding carries
      expect(sealer.open("reasoning", sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeNull();
    }
  });

  test("of another server, or garbage, is null and never an error", () => {
    for (const content of ["", "ZW5jcnlwdGVk", "gAAAAABo-xyz", "tg1.", "tg1.AAAA", "tg1.\u0000\uffff", "tg2.AAAA"]) {
      expect(sealer.open("reasoning", content)).toBeNull();
    }
    fc.assert(fc.property(fc.string(), (content) => expect(sealer.open("reasoning", `tg1.${content}`)).toBeNull()));
  });

  test("needs a key of the right size", () => {
    expect(() => new Sealer(new Uint8Array(16))).toThrow("a sealing key has 32 bytes");
  });
});
