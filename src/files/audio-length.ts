// How long an uploaded recording is, from its container: a few reads of the disk, whatever the file is. (A library that was
// tried, mediabunny, never came back from some damaged files.) A head alone proves nothing: no file is shorter than its size
// allows.
import type { SpooledFile } from "../core/types.ts";

export type AudioLength = Readonly<{ seconds: number; isGuessed: boolean }>;
type AudioFile = Pick<SpooledFile, "bytes" | "read">;

const headBytes = 64 * 1024;
/** Where the last page or cluster begins: one of 32 seconds at the most that browsers record. */
const tailBytes = 1024 * 1024;
/** Within which WebM tells of itself. */
const infoBytes = 4_096;
const boxesMax = 1_000;
/** The most that a second of compressed audio has. */
const compressedBytesPerSecond = 64_000;
/** Where the container does not tell: speech at a low rate, so rather too long than too short. */
const guessedBytesPerSecond = 4_000;
const secondsMax = 1_000_000;

export async function audioLength(file: AudioFile): Promise<AudioLength> {
  const head = Buffer.from(await file.read(0, headBytes));
  const told = await secondsOf(file, head).catch((thrown: unknown) => {
    if (thrown instanceof RangeError) return null; // it ends within what it begins
    throw thrown;
  });
  const isGuessed = told === null || !Number.isFinite(told) || told <= 0;
  const least = /^(?:RIFF|RF64|fLaC)/.test(head.toString("latin1", 0, 4)) ? 0 : file.bytes / compressedBytesPerSecond;
  const seconds = isGuessed ? file.bytes / guessedBytesPerSecond : Math.max(told, least);
  return { seconds: Math.min(secondsMax, Math.max(1, Math.ceil(seconds))), isGuessed };
}

async function secondsOf(file: AudioFile, head: Buffer): Promise<number | null> {
  const sign = head.toString("latin1", 0, 4);
  if (sign === "RIFF" || sign === "RF64") return ofWave(head, file.bytes);
  if (sign === "fLaC") return ofFlac(head, 4);
  if (sign === "OggS") return ofOgg(head, await tailOf(file));
  if (sign === "\x1a\x45\xdf\xa3") return ofWebm(head.subarray(0, infoBytes), await tailOf(file));
  if (head.toString("latin1", 4, 8) === "ftyp") return ofMp4(file);
  const start = head.toString("latin1", 0, 3) === "ID3" ? 10 + syncSafe(head, 6) : 0;
  const frames = start < head.length / 2 ? head.subarray(start) : Buffer.from(await file.read(start, headBytes));
  return ofFrames(frames, file.bytes - start);
}

const tailOf = async (file: AudioFile): Promise<Buffer> =>
  Buffer.from(await file.read(Math.max(0, file.bytes - tailBytes), tailBytes));

/** By the bytes of a second, which its decoder reads in any case; a recording that was piped does not know its size. */
function ofWave(head: Buffer, bytes: number): number | null {
  let perSecond = 0;
  for (let at = 12, chunks = 0; chunks < 100; chunks++) {
    const [name, size] = [head.toString("latin1", at, at + 4), head.readUInt32LE(at + 4)];
    if (name === "fmt ") perSecond = head.readUInt32LE(at + 16);
    if (name === "data") return (size === 0 ? bytes - at - 8 : Math.min(size, bytes - at - 8)) / perSecond;
    at += 8 + size + (size % 2);
  }
  return null;
}

function ofFlac(head: Buffer, at: number): number | null {
  const rate = head.readUIntBE(at + 14, 3) >> 4;
  return ((head[at + 17]! & 15) * 2 ** 32 + head.readUInt32BE(at + 18)) / rate;
}

/** The last page tells the last sample. */
function ofOgg(head: Buffer, tail: Buffer): number | null {
  const last = tail.lastIndexOf("OggS");
  const samples = Number(tail.readBigInt64LE(last + 6));
  const first = head.subarray(27 + head[26]!);
  if (first.toString("latin1", 0, 8) === "OpusHead") return (samples - first.readUInt16LE(10)) / 48_000;
  if (first.toString("latin1", 1, 7) === "vorbis") return samples / first.readUInt32LE(12);
  if (first.toString("latin1", 1, 5) === "FLAC") return samples / (first.readUIntBE(27, 3) >> 4);
  return first.toString("latin1", 0, 8) === "Speex   " ? samples / first.readUInt32LE(36) : null;
}

async function ofMp4(file: AudioFile): Promise<number | null> {
  for (let at = 0, end = file.bytes, boxes = 0; at < end && boxes < boxesMax; boxes++) {
    const box = Buffer.from(await file.read(at, 48));
    const name = box.toString("latin1", 4, 8);
    const isLong = box.readUInt32BE(0) === 1;
    const size = isLong ? Number(box.readBigUInt64BE(8)) : box.readUInt32BE(0);
    if (name === "mvhd") {
      return box[8] === 1
        ? Number(box.readBigUInt64BE(32)) / box.readUInt32BE(28)
        : box.readUInt32BE(24) / box.readUInt32BE(20);
    }
    if (name === "moov") at += isLong ? 16 : 8;
    else at += Math.max(8, size);
  }
  return null;
}

/** Its head tells the duration; browsers record without, and then the last block of the last cluster does. */
function ofWebm(head: Buffer, tail: Buffer): number | null {
  const scale = elementAfter(head, "2ad7b1");
  const nanoseconds = scale === null ? 1_000_000 : uintOf(scale);
  const duration = elementAfter(head, "4489");
  if (duration !== null)
    return ((duration.length === 8 ? duration.readDoubleBE() : duration.readFloatBE()) * nanoseconds) / 1e9;
  const cluster = tail.lastIndexOf(Buffer.from("1f43b675", "hex"));
  if (cluster < 0) return null;
  let [time, latest] = [0, 0];
  const [, start] = vint(tail, cluster + 4);
  for (let at = start; at + 4 < tail.length;) {
    const [size, content] = vint(tail, at + 1);
    if (tail[at] === 0xe7) time = uintOf(tail.subarray(content, content + size));
    else if (tail[at] === 0xa3) latest = Math.max(latest, tail.readInt16BE(content + 1));
    at = content + size;
  }
  return ((time + latest) * nanoseconds) / 1e9;
}

function elementAfter(head: Buffer, id: string): Buffer | null {
  const at = head.indexOf(id, 0, "hex");
  if (at < 0) return null;
  const [size, content] = vint(head, at + id.length / 2);
  return size > 8 ? null : head.subarray(content, content + size);
}

/** A number of EBML, at least one byte long, and where it ends. */
function vint(bytes: Buffer, at: number): [value: number, end: number] {
  const length = Math.clz32(bytes.readUInt8(at)) - 23;
  if (length > 8) throw new RangeError("no number");
  let value = bytes[at]! & (0xff >> length);
  for (let next = 1; next < length; next++) value = value * 256 + bytes.readUInt8(at + next);
  return [value, at + length];
}

const uintOf = (bytes: Buffer): number => bytes.reduce((value, byte) => value * 256 + byte, 0);

const syncSafe = (bytes: Buffer, at: number): number =>
  [0, 1, 2, 3].reduce((value, place) => value * 128 + (bytes.readUInt8(at + place) & 127), 0);

// ---------------------------------------------------------------- MPEG frames

const layer3Rates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const layer3RatesLow = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const mp3Samples = [44_100, 48_000, 32_000];
const aacSamples = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];

function ofFrames(bytes: Buffer, fileBytes: number): number | null {
  const at = bytes.indexOf(0xff);
  if (at < 0 || at + 4 > bytes.length || (bytes[at + 1]! & 0xe0) !== 0xe0) return null;
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!];
  if ((second & 0xf6) === 0xf0) return ofAac(bytes.subarray(at), fileBytes - at);
  const isFirst = (second & 0x18) === 0x18; // MPEG 1, else 2 or 2.5
  const rate = mp3Samples[(third >> 2) & 3]! / (isFirst ? 1 : (second & 0x18) === 0x10 ? 2 : 4);
  const kilobits = (isFirst ? layer3Rates : layer3RatesLow)[third >> 4];
  if ((second & 0x06) !== 0x02 || !(kilobits! > 0) || !(rate > 0)) return null;
  const frame = bytes.toString("latin1", at, at + 200);
  const told = Math.max(frame.indexOf("Xing"), frame.indexOf("Info"));
  const samples = isFirst ? 1_152 : 576;
  if (told > 0 && (bytes[at + told + 7]! & 1) === 1) return (bytes.readUInt32BE(at + told + 8) * samples) / rate;
  const vbri = frame.indexOf("VBRI");
  if (vbri > 0) return (bytes.readUInt32BE(at + vbri + 14) * samples) / rate;
  return (fileBytes - at) / (kilobits! * 125);
}

/** As long as its first frames are. */
function ofAac(bytes: Buffer, fileBytes: number): number | null {
  const rate = aacSamples[(bytes[2]! >> 2) & 15];
  let [at, frames] = [0, 0];
  for (; at + 6 < bytes.length && bytes[at] === 0xff; frames++) {
    at += Math.max(7, ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5));
  }
  return rate === undefined ? null : ((fileBytes / (at / frames)) * 1_024) / rate;
}
