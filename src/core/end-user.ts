// What the end users of a program are called: one line of at most 128 characters, whatever the program sent.

/** A longer name of an end user is cut and distinguished by a digest. */
export const endUserNameMaxLength = 128;

/** Of requests whose program names nobody, where it may. */
export const nobodyNamed = "";
/** All that came beyond the names that an account may bring new in a day. */
export const otherEndUsers = "(others)";

const odd = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** 96 bits: nobody finds two names that become one. */
const digestLength = 24;

/**
 * What a name is known by. One that is too long, or has characters that no line may have (controls, changes of direction),
 * is cut and shown without them; a digest of all of it keeps it apart from its like. `given` may be anything.
 */
export function endUserName(given: unknown): string {
  if (typeof given !== "string") return nobodyNamed;
  const name = given.trim();
  const shown = name.slice(0, endUserNameMaxLength).replace(odd, "\ufffd");
  if (shown === name) return name;
  const digest = Bun.SHA256.hash(name, "hex").slice(0, digestLength);
  return `${shown.slice(0, endUserNameMaxLength - digestLength - 1).toWellFormed()}~${digest}`;
}

/** In messages to people. */
export function endUserInWords(name: string): string {
  return name === nobodyNamed ? "(nobody named)" : name;
}
