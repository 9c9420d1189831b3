// The text of PDFs, read by a process of its own; and files made to exhaust it.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pdfPagesMax, pdfReadersMax } from "../../../src/core/limits.ts";
import { PdfReader } from "../../../src/tools/media/pdf-reader.ts";
import { temporaryFolder } from "../../commands/program.ts";
import { pdf } from "../../fixtures/pdf.ts";

const timeLimit = 120_000;
const program = [process.execPath, join(import.meta.dir, "../../../src/main.ts"), "pdf-text"];
const reader = new PdfReader(program, timeLimit);
const stays = new AbortController().signal;
const read = (bytes: Uint8Array, cancelSignal = stays) => reader.read(bytes, 1, cancelSignal);

describe("PDFs", () => {
  test("their text, page by page", async () => expect(await read(pdf("Hello", "page two"))).toBe("Hello\n\npage two"));

  test.each([
    ["no PDF", Buffer.from("%PDF-1.4 and no more")],
    ["cut off", pdf("Hello").subarray(0, 300)],
    ["without text", pdf(Buffer.from("0 0 100 100 re f"))],
    ["empty", Buffer.alloc(0)],
  ])(
    "%s: none, and nothing of what the reader says about it",
    async (_, bytes) => expect(["Hello", null]).toContain(await read(bytes)),
    timeLimit,
  );

  test(
    "of thousands of pages the first are read",
    async () => {
      const text = await read(pdf(...Array.from({ length: pdfPagesMax + 100 }, (_, index) => `p${index}`)));
      expect(text).toEndWith(`p${pdfPagesMax - 1}`);
    },
    timeLimit,
  );

  test(
    "a page of 240 MB in a file of 1 MB ends its process and not ours",
    async () => {
      const bomb = pdf(Buffer.alloc(240_000_000, "(a) Tj "));
      expect(bomb.length).toBeLessThan(1_100_000);
      const before = process.memoryUsage.rss();
      expect(await read(bomb)).toBeNull();
      expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000);
    },
    timeLimit,
  );

  test(
    "a client that leaves ends it",
    async () => {
      const cancelSignal = new AbortController();
      const result = read(pdf(...Array.from({ length: pdfPagesMax }, () => "page")), cancelSignal.signal);
      cancelSignal.abort();
      expect(await result).toBeNull();
      expect(await read(pdf("Hello"), AbortSignal.abort())).toBeNull();
    },
    timeLimit,
  );

  test(
    "no account has all turns",
    async () => {
      using folder = temporaryFolder();
      const goOn = join(folder.path, "go-on");
      // Says what it reads: "quick" at once, all else when the file is there.
      const script = `read -r said; [ "$said" = quick ] || until [ -e ${goOn} ]; do sleep 0.02; done; echo "$said"`;
      const gated = new PdfReader(["/bin/sh", "-c", script], timeLimit);
      const ask = (said: string, account: number) => gated.read(Buffer.from(`${said}\n`), account, stays);
      const busy = Promise.all(Array.from({ length: pdfReadersMax }, () => ask("slow", 1)));
      expect(await ask("quick", 2)).toBe("quick\n");
      writeFileSync(goOn, "");
      expect(await busy).toEqual(Array.from({ length: pdfReadersMax }, () => "slow\n"));
    },
    timeLimit,
  );

  test(
    "one that takes too long is ended",
    async () =>
      expect(await new PdfReader(["/bin/sh", "-c", "exec sleep 1000"], 50).read(pdf("Hello"), 1, stays)).toBeNull(),
    timeLimit,
  );
});
