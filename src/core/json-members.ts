// The values of an object's members as they stand in its text, so that a message of many megabytes need not be parsed to
// learn where it goes. The parser decides later whether it is JSON.
import { jsonStringEnd, parseOutsideJson } from "./outside-json.ts";

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = "\\";

/** The JSON texts of the members with these names, of each name the last. Null where the text is no object. */
export function jsonMembers(text: string, names: ReadonlySet<string>): Map<string, string> | null {
  const members = new Map<string, string>();
  let depth = 0;
  let name: string | null = null;
  let from = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const start = at;
      at = jsonStringEnd(text, at + 1);
      if (at < 0 || depth === 0) return null;
      if (depth === 1 && from < 0) name = nameOf(text.slice(start, at + 1));
    } else if (code === colon && depth === 1 && from < 0) from = at + 1;
    else if (code === 0x7b || code === 0x5b) {
      if (depth++ === 0 && code === 0x5b) return null;
    } else if ((code === comma && depth === 1) || ((code === 0x7d || code === 0x5d) && --depth === 0)) {
      if (name !== null && from >= 0 && names.has(name)) members.set(name, text.slice(from, at).trim());
      if (depth === 0) return members;
      name = null;
      from = -1;
    }
  }
  return null;
}

/** Null where it is none. */
function nameOf(literal: string): string | null {
  return literal.includes(backslash) ? stringOf(literal) : literal.slice(1, -1);
}

/** The value of a JSON text that is a string, or null. */
export function stringOf(json: string | undefined): string | null {
  if (json === undefined || !json.startsWith('"')) return null;
  try {
    return parseOutsideJson(json) as string;
  } catch {
    return null;
  }
}
