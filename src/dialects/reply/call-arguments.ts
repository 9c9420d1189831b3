// Checks whether the arguments of a call are complete: half a call must not reach a client, which would run it.
import { parseOutsideJson } from "../../core/outside-json.ts";

/** The arguments' JSON text if it is an object, as `input` must be one; null if it is not, or not complete. */
export function argumentsObject(literal: string): string | null {
  const text = JSON.parse(literal) as string;
  if (!text.trimEnd().endsWith("}")) return null; // JSON that ends like this is an object
  try {
    parseOutsideJson(text);
    return text;
  } catch {
    return null; // what a model writes as arguments may be anything; that it does not parse is the answer
  }
}
