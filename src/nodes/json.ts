// Reads fields of JSON that a node sent; any field may be missing or of another type.
import { isRecord } from "../core/is-record.ts";
import { jsonExcess, jsonStringEnd } from "../core/outside-json.ts";

/** The value as an object with unknown fields, or null. */
export const record = (value: unknown): Record<string, unknown> | null => (isRecord(value) ? value : null);

/** Parses JSON from a node; undefined: none, or too large. Reads the NaN and Infinity that Python writes as null. */
export function parseNodeJson(text: string): unknown {
  if (jsonExcess(text) !== null) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // not JSON as it stands
  }
  const readable = withoutPythonNumbers(text);
  if (readable === null) return undefined;
  try {
    return JSON.parse(readable);
  } catch {
    return undefined;
  }
}

const pythonNumber = /-?(?:NaN|Infinity)/g;

/** Null where there is nothing to replace, or where a string does not end. */
function withoutPythonNumbers(text: string): string | null {
  if (!text.includes("NaN") && !text.includes("Infinity")) return null;
  let readable = "";
  for (let at = 0; ;) {
    const quote = text.indexOf('"', at);
    readable += text.slice(at, quote < 0 ? text.length : quote).replace(pythonNumber, "null");
    if (quote < 0) return readable;
    at = jsonStringEnd(text, quote + 1) + 1;
    if (at === 0) return null;
    readable += text.slice(quote, at);
  }
}
