// Mints request ids: the billing key of a charge, the x-request-id of a reply and the stem of its object id. Never
// taken from a client (a client-chosen billing key is how peers charge twice or not at all).
import type { Ms } from "./types.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomCharacters = 16; // 95 bits: unique also across gateways that share one journal
const pool = new Uint8Array(4096);
let used = pool.length;

/** `req_` + 8 characters of time + 16 random ones. Later ids sort later, which keeps the journal's unique index warm. */
export function mintRequestId(now: Ms): string {
  let time = "";
  for (let rest = Math.max(0, Math.floor(now)), place = 0; place < 8; place++, rest = Math.floor(rest / 62)) {
    time = alphabet[rest % 62]! + time;
  }
  let random = "";
  while (random.length < randomCharacters) {
    if (used === pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    const byte = pool[used++]!;
    if (byte < 248) random += alphabet[byte % 62]!; // 248 = 4 * 62: a higher byte would favour the first letters
  }
  return `req_${time}${random}`;
}
