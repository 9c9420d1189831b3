// How long recordings are: of each container that programs upload, as FFmpeg's libraries wrote them, and of what is none.
import { expect, test } from "bun:test";
import { audioLength } from "../../src/files/audio-length.ts";
import { recording } from "../fixtures/voices-node.ts";

type Reads = { bytes: number; reads: number };

const fileOf = (content: Buffer, reads: Reads = { bytes: 0, reads: 0 }, size = content.length) => ({
  bytes: size,
  read(at: number, bytes: number) {
    reads.bytes += bytes;
    reads.reads += 1;
    const part = content.subarray(at, at + bytes);
    return Promise.resolve(size > content.length ? Buffer.concat([part, Buffer.alloc(bytes - part.length)]) : part);
  },
});

/** A wave file's head, whose data are told to have so many bytes. */
function wave(dataBytes: number, content: number): Buffer {
  const head = Buffer.from(
    "RIFF    WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\x00\x7d\0\0\x02\0\x10\0data    ",
    "latin1",
  );
  head.writeUInt32LE(36 + dataBytes, 4);
  head.writeUInt32LE(dataBytes, 40);
  return Buffer.concat([head, Buffer.alloc(content)]);
}

test.each(["short.mp3", "short.ogg", "short.flac", "short.m4a", "short.webm", "short.aac", "live.webm"])(
  "%s has 1.09 seconds, the last of them begun",
  async (name) => {
    expect(await audioLength(fileOf(recording(name)))).toEqual({ seconds: 2, isGuessed: false });
  },
);

test("a wave file is told by its head", async () => {
  const reads = { bytes: 0, reads: 0 };
  expect(await audioLength(fileOf(wave(32_000 * 61, 32_000 * 61), reads))).toEqual({ seconds: 61, isGuessed: false });
  expect(reads.bytes).toBeLessThan(100_000);
});

test("a file is no shorter than its size allows, whatever its head says", async () => {
  const xing = recording("short.mp3");
  const long = Buffer.concat([xing, Buffer.alloc(64_000 * 30)]);
  expect((await audioLength(fileOf(long))).seconds).toBeGreaterThanOrEqual(30);
});

test("what is no audio is guessed by its size, and costs few reads", async () => {
  const reads = { bytes: 0, reads: 0 };
  const size = 200 * 1024 * 1024;
  expect(await audioLength(fileOf(Buffer.from("no audio".repeat(100)), reads, size))).toEqual({
    seconds: Math.ceil(size / 4_000),
    isGuessed: true,
  });
  expect(reads.bytes).toBeLessThan(64 * 1024 * 1024);
  expect(await audioLength(fileOf(Buffer.alloc(0)))).toEqual({ seconds: 1, isGuessed: true });
  for (const name of ["short.ogg", "short.m4a", "short.webm", "short.flac"]) {
    const cut = recording(name);
    for (const length of [4, 5, 50, 1_000]) await audioLength(fileOf(cut.subarray(0, length)));
    for (let at = 0; at < 300; at += 7) {
      const broken = Buffer.from(cut);
      broken[at] = 0xff;
      expect((await audioLength(fileOf(broken))).seconds).toBeGreaterThanOrEqual(1);
    }
  }
});
