// The names of a program's end users: one line of at most 128 characters, whatever the program sent.

/** A longer name of an end user is cut and distinguished by a digest. */
export const endUserNameMaxLength = 128;

/** For requests whose program may name an end user and names none. */
export const nobodyNamed = "";
/** Stands for all names beyond those that an account may add in a day. */
export const otherEndUsers = "(others)";

const odd = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** 96 bits: finding two names with the same digest is infeasible. */
const digestLength = 24;

/**
 * The key of a name. A name that is too long, or has characters that do not fit one line (controls, changes of
 * direction), is cut and shown without them; a digest of the whole name keeps it distinct. `given` may be anything.
 */
export function endUserName(given: unknown, maxLength = endUserNameMaxLength): string {
  if (typeof given !== "string") return nobodyNamed;
  const name = given.trim();
  const shown = name.slice(0, maxLength).replace(odd, "\ufffd");
  if (shown === name) return name;
  const digest = Bun.SHA256.hash(name, "hex").slice(0, digestLength);
  return `${shown.slice(0, maxLength - digestLength - 1).toWellFormed()}~${digest}`;
}

export function endUserInWords(name: string): string {
  return name === nobodyNamed ? "(nobody named)" : name;
}
