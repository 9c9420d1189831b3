// Mints request ids: the billing key of a charge, the x-request-id of a reply and the stem of its object id. Never
// taken from a client (client-chosen billing keys are how peers charge twice or not at all).
import { base62Digits } from "./base62.ts";
import type { Ms } from "./types.ts";

const prefix = "req_";
const alphabet = Buffer.from(base62Digits);
const timeCharacters = 8;
const randomCharacters = 16; // 95 bits: unique even across gateways that share one journal
const pool = new Uint8Array(4096);
let used = pool.length;
/** The id in the making: one string from all its bytes costs a third of joining characters. */
const id = Buffer.alloc(prefix.length + timeCharacters + randomCharacters, prefix);

/** `req_` + 8 characters of time + 16 random ones. Later ids sort later, which keeps the journal's unique index warm. */
export function mintRequestId(now: Ms): string {
  let rest = Math.max(0, Math.floor(now));
  for (let place = prefix.length + timeCharacters - 1; place >= prefix.length; place--) {
    id[place] = alphabet[rest % 62]!;
    rest = Math.floor(rest / 62);
  }
  for (let place = prefix.length + timeCharacters; place < id.length;) {
    if (used === pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    const byte = pool[used++]!;
    if (byte < 248) id[place++] = alphabet[byte % 62]!; // 248 = 4 * 62: a higher byte would favor the first letters
  }
  return id.toString("latin1");
}
