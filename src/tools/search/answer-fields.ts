// Reads fields of a search service's answer, whose form is not guaranteed.
import type { ServiceResult } from "./search-service.ts";

/** The objects in a list; throws TypeError where there is no list. */
export function objectsOf(value: unknown): Readonly<Record<string, unknown>>[] {
  if (!Array.isArray(value)) throw new TypeError("the answer has no list of results");
  return value.filter((item) => typeof item === "object" && item !== null);
}

/** A text, or "" for anything else. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The results of services that give plain texts. */
export const plainResults = ({ results }: Readonly<Record<string, unknown>>): ServiceResult[] =>
  objectsOf(results).map(({ title, url, content }) => ({
    title: textOf(title),
    url: textOf(url),
    text: textOf(content),
  }));
