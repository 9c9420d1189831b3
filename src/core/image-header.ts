// Reads format, width and height of a PNG, GIF, WebP or JPEG from its header, using as few bytes as possible.

export type ImageSize = Readonly<{ width: number; height: number }>;
export type ImageHeader = ImageSize & Readonly<{ mediaType: "image/png" | "image/gif" | "image/webp" | "image/jpeg" }>;

/** Enough for a JPEG's metadata before its frame header (a color profile and an EXIF block with a preview). */
const headerMaxBytes = 256 * 1024;

/** The header of an inline image (`data:image/...;base64,...`); null for an address, and where there is none. */
export function inlineImageHeader(url: string): ImageHeader | null {
  if (!/^data:/i.test(url)) return null;
  const comma = url.indexOf(",");
  if (comma < 0 || comma > 200 || !/;base64$/i.test(url.slice(0, comma))) return null;
  return imageHeader(Buffer.from(url.slice(comma + 1, comma + 1 + Math.ceil((headerMaxBytes * 4) / 3)), "base64"));
}

/** The header's facts; null where it is no known image or is cut off before them. */
export function imageHeader(bytes: Uint8Array): ImageHeader | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    for (const [mediaType, sizeOf] of formats) {
      const size = sizeOf(view);
      if (size !== null) return size.width > 0 && size.height > 0 ? { mediaType, ...size } : null;
    }
    return null;
  } catch (thrown) {
    if (thrown instanceof RangeError) return null; // read past the end: the header is cut off
    throw thrown;
  }
}

const formats = [
  ["image/png", pngSize],
  ["image/gif", gifSize],
  ["image/webp", webpSize],
  ["image/jpeg", jpegSize],
] as const;

function pngSize(view: DataView): ImageSize | null {
  if (view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a) return null;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function gifSize(view: DataView): ImageSize | null {
  if (fourLetters(view, 0) !== "GIF8") return null;
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

function webpSize(view: DataView): ImageSize | null {
  if (fourLetters(view, 0) !== "RIFF" || fourLetters(view, 8) !== "WEBP") return null;
  switch (fourLetters(view, 12)) {
    case "VP8 ": // lossy: 14 bits each, after the key frame's start code
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    case "VP8L": {
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return {
        width: (view.getUint16(24, true) | (view.getUint8(26) << 16)) + 1,
        height: (view.getUint16(27, true) | (view.getUint8(29) << 16)) + 1,
      };
    default:
      return null;
  }
}

/** Goes from segment to segment to the frame header (SOF0 to SOF15, without DHT, JPG and DAC, which share its numbers). */
function jpegSize(view: DataView): ImageSize | null {
  if (view.getUint16(0) !== 0xffd8) return null;
  for (let at = 2; view.getUint8(at) === 0xff;) {
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at++; // fill byte
    } else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    } else {
      at += 2 + view.getUint16(at + 2);
    }
  }
  return null;
}

const fourLetters = (view: DataView, at: number): string =>
  String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));
