// What keys are called: the one that every account has, named ones, and requests that came without a key.
import { defaultKey, type KeyId, noKey } from "../../core/types.ts";

export const defaultKeyName = "default";
/** Requests from the console's playground. */
const noKeyName = "playground";

/** `given` is the name of a named key. */
export function keyNameOf(key: KeyId, given: string | null): string {
  if (key === defaultKey) return defaultKeyName;
  return key === noKey ? noKeyName : (given ?? `key ${key}`);
}

/** Of those that every account has, by its name; undefined for others. */
export function keyNumberOf(name: string): KeyId | undefined {
  return name === defaultKeyName ? defaultKey : name === noKeyName ? noKey : undefined;
}

export const isReservedName = (name: string): boolean => [defaultKeyName, noKeyName].includes(name.toLowerCase());
