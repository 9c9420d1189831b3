// Checks whether a call's arguments are complete: clients would run half a call, so none must reach them.
import { parseOutsideJson } from "../../core/outside-json.ts";

/** The arguments' JSON text if it is an object, as `input` must be; null if it is not, or incomplete. */
export function argumentsObject(literal: string): string | null {
  const text = JSON.parse(literal) as string;
  if (!text.trimEnd().endsWith("}")) return null; // only objects end like this
  try {
    parseOutsideJson(text);
    return text;
  } catch {
    return null; // a model may write anything as arguments: invalid JSON is the result, not an error
  }
}
