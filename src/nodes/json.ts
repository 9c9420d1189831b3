// Looking into JSON that a node sent, where any field may be missing or of another type.

/** The value as an object with unknown fields, or null. */
export function record(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/**
 * Parses an event or a body of a node; undefined when it is not JSON. Python nodes write NaN and Infinity, which JSON
 * does not have: they are read as null, outside of strings only.
 */
export function parseNodeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // not JSON as it stands
  }
  try {
    return JSON.parse(
      text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (token) => (token[0] === '"' ? token : "null")),
    );
  } catch {
    return undefined;
  }
}
