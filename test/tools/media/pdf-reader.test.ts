// The text of PDFs, read by a process of its own; and files made to exhaust it.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pdfPagesMax } from "../../../src/tools/media/pdf-text.ts";
import { pdfExcessRememberedMs, PdfReader, pdfReadersMax } from "../../../src/tools/media/pdf-reader.ts";
import { temporaryFolder } from "../../commands/program.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { pdf } from "../../fixtures/pdf.ts";

const timeLimit = 120_000;
const program = [process.execPath, join(import.meta.dir, "../../../src/main.ts"), "pdf-text"];
const reader = new PdfReader(program, { timeoutMs: timeLimit });
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
      const gated = new PdfReader(["/bin/sh", "-c", script], { timeoutMs: timeLimit });
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
      expect(
        await new PdfReader(["/bin/sh", "-c", "exec sleep 1000"], { timeoutMs: 50 }).read(pdf("Hello"), 1, stays),
      ).toBeNull(),
    timeLimit,
  );

  test(
    "files made to take long go behind those that take a moment, whatever accounts send them",
    async () => {
      const leaving = new AbortController();
      const busy = new PdfReader(spinning, { timeoutMs: timeLimit, firstTryProcessorMs: 50 });
      const bombs = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((account) => [
        busy.read(Buffer.from("bomb\n"), account, leaving.signal),
        busy.read(Buffer.from("bomb\n"), account, leaving.signal),
      ]);
      expect(await busy.read(Buffer.from("quick\n"), 9, stays)).toBe("quick\n");
      leaving.abort();
      expect(await Promise.all(bombs)).toEqual(bombs.map(() => null));
    },
    timeLimit,
  );

  test(
    "an account has no first try beside a file of its that is tried again",
    async () => {
      using folder = temporaryFolder();
      const script = `read -r said; echo > ${folder.path}/$said.$$; while :; do :; done`;
      const busy = new PdfReader(["/bin/sh", "-c", script], { timeoutMs: timeLimit, firstTryProcessorMs: 50 });
      const started = (name: string) => readdirSync(folder.path).filter((file) => file.startsWith(name)).length;
      const leaving = new AbortController();
      const ask = (said: string, account: number) => busy.read(Buffer.from(`${said}\n`), account, leaving.signal);
      const asked = [ask("first", 1)];
      await eventually("it is tried again", async () => started("first") === 2);
      asked.push(ask("next", 1), ask("other", 2));
      await eventually("another account's is tried", async () => started("other") === 1);
      expect(started("next")).toBe(0);
      leaving.abort();
      expect(await Promise.all(asked)).toEqual([null, null, null]);
    },
    timeLimit,
  );

  test(
    "what goes beyond its first try is read with the whole time",
    async () => {
      const once = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo read";
      const patient = new PdfReader(["/bin/sh", "-c", once], { timeoutMs: timeLimit, firstTryProcessorMs: 20 });
      expect(await patient.read(Buffer.from("x"), 1, stays)).toBe("read\n");
    },
    timeLimit,
  );

  test.skipIf(process.platform !== "linux")(
    "an account whose file went beyond the limits has one reader, behind the others, until that is forgotten",
    async () => {
      using folder = temporaryFolder();
      let now = 0;
      const clock = { wall: () => 0, monotonic: () => now };
      const script = `read -r said; echo > ${folder.path}/$said.$$; [ "$said" = quick ] || while :; do :; done; echo "$said"`;
      const strict = new PdfReader(["/bin/sh", "-c", script], { timeoutMs: timeLimit, firstTryProcessorMs: 50, clock });
      const first = strict.read(Buffer.from("first\n"), 1, stays);
      const started = (name: string) => readdirSync(folder.path).filter((file) => file.startsWith(name)).length;
      await eventually("it is tried again", async () => started("first") === 2);
      const second = readdirSync(folder.path).map((file) => Number(file.slice("first.".length)));
      await eventually("it has used its share", async () => second.some((pid) => processorTicks(pid) > 10));
      now = timeLimit + 1;
      expect(await first).toBeNull();

      const leaving = new AbortController();
      const more = Array.from({ length: 4 }, () => strict.read(Buffer.from("more\n"), 1, leaving.signal));
      await eventually("one begins", async () => started("more") === 1);
      for (const account of [2, 3, 4])
        expect(await strict.read(Buffer.from("quick\n"), account, stays)).toBe("quick\n");
      expect(started("more")).toBe(1);
      leaving.abort();
      expect(await Promise.all(more)).toEqual([null, null, null, null]);
      now += pdfExcessRememberedMs;
      const forgiven = new AbortController();
      const later = [0, 1].map(() => strict.read(Buffer.from("later\n"), 1, forgiven.signal));
      await eventually("two at once", async () => started("later") >= 2);
      forgiven.abort();
      await Promise.all(later);
    },
    timeLimit,
  );
});

/** Says "quick" at once, and works for ever on all else. */
const spinning = ["/bin/sh", "-c", 'read -r said; [ "$said" = quick ] || while :; do :; done; echo "$said"'];

function processorTicks(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[11]);
  } catch {
    return 0; // it has ended
  }
}
