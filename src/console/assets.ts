// The console's files in every encoding that browsers accept: embedded in the single binary, or bundled from source.
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliDecompress, gzip } from "node:zlib";
import type { BundledFile, EmbeddedFile } from "./bundle.ts";
import { embedded } from "./embedded.ts";

export type Asset = Readonly<{
  type: string;
  bytes: Uint8Array;
  brotli: Uint8Array;
  gzip: Uint8Array;
  /** A hash of the content, in quotes. */
  etag: string;
  /** The name contains a hash of the content, so that browsers may keep the file for a year. */
  immutable: boolean;
}>;

type Assets = ReadonlyMap<string, Asset>;

const inflate = promisify(brotliDecompress);
const deflate = promisify(gzip);
const quickBrotliQuality = 5;

let made: Promise<Assets> | null = null;

/**
 * All files by path below the site's root; `/index.html` is the page for all addresses of the console. The first call
 * creates them, mostly off the main thread (half a second from source, some milliseconds in the binary). Rejects with the
 * bundler's messages if the sources do not compile; the next call tries again.
 */
export function assets(): Promise<Assets> {
  made ??= make().catch((error: unknown) => {
    made = null;
    throw error;
  });
  return made;
}

async function make(): Promise<Assets> {
  const files = embedded === null ? await bundledNow() : await Promise.all(embedded.map(unpacked));
  const entries = await Promise.all(
    files.map(async ({ path, type, bytes, brotli }): Promise<[string, Asset]> => {
      const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
      const immutable = path.startsWith("/assets/");
      return [path, { type, bytes, brotli, gzip: await deflate(bytes), etag, immutable }];
    }),
  );
  return new Map(entries);
}

/** Imported only here, so that a start without the console does not even load the bundler's module. */
async function bundledNow(): Promise<readonly BundledFile[]> {
  const { bundleConsole } = await import("./bundle.ts");
  return bundleConsole({ brotliQuality: quickBrotliQuality });
}

async function unpacked({ path, type, brotliBase64 }: EmbeddedFile): Promise<BundledFile> {
  const brotli = Uint8Array.fromBase64(brotliBase64);
  return { path, type, brotli, bytes: await inflate(brotli) };
}
