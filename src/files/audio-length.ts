// How long an uploaded recording is, from its container. What the client says of it, and a header alone, prove nothing: no
// file is shorter than its size allows.
import type { SpooledFile } from "../core/types.ts";

/** A reading that needs more than this is given up: some formats are only told by their frames. */
const readBytesMax = 32 * 1024 * 1024;
const readsMax = 20_000;
/** The most that a second of compressed audio has, and of wave audio (192 kHz, 32 bits, stereo). */
const compressedBytesPerSecond = 64_000;
const waveBytesPerSecond = 1_536_000;
/** Where the container does not tell: speech as browsers and telephones record it, so rather too long than too short. */
const guessedBytesPerSecond = 4_000;
const secondsMax = 1_000_000;

export type AudioLength = Readonly<{ seconds: number; isGuessed: boolean }>;

export async function audioLength(file: Pick<SpooledFile, "bytes" | "read">): Promise<AudioLength> {
  const head = (await file.read(0, 4)).toString("latin1");
  const least = file.bytes / (["RIFF", "RF64", "fLaC"].includes(head) ? waveBytesPerSecond : compressedBytesPerSecond);
  const told = await toldSeconds(file);
  const seconds = told === null ? file.bytes / guessedBytesPerSecond : Math.max(told, least);
  return { seconds: Math.min(secondsMax, Math.max(1, Math.ceil(seconds))), isGuessed: told === null };
}

async function toldSeconds(file: Pick<SpooledFile, "bytes" | "read">): Promise<number | null> {
  const { ALL_FORMATS, Input, StreamSource } = await import("mediabunny");
  let bytes = 0;
  let reads = 0;
  const source = new StreamSource({
    getSize: () => file.bytes,
    prefetchProfile: "none",
    maxCacheSize: 1024 * 1024,
    async read(start, end) {
      bytes += end - start;
      reads += 1;
      if (bytes > readBytesMax || reads > readsMax) throw new Error("the length takes too long to find");
      return file.read(start, end - start);
    },
  });
  using input = new Input({ formats: ALL_FORMATS, source });
  try {
    const seconds = await input.computeDuration();
    return Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  } catch {
    return null; // no audio, or damaged: its model says so
  }
}
