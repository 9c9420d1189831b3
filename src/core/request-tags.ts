// What clients call their requests, so that reports can sum up by it: the header `x-tags` and `metadata.tags` of bodies.
import { endUserName } from "./end-user.ts";
import { isRecord } from "./is-record.ts";

/** Further ones are left out. */
const requestTagsMax = 10;
/** A longer one is cut and distinguished by a digest. */
const requestTagMaxLength = 64;
/** Nobody writes more between commas; the rest is not looked at. */
const readMaxLength = 4_000;

/** `metadata.tags` of a body: a list of texts, or one with commas. Anything else is no tag, and no fault. */
export function tagsIn(body: unknown): string | undefined {
  const metadata = isRecord(body) ? body["metadata"] : null;
  const given = isRecord(metadata) ? metadata["tags"] : null;
  if (typeof given === "string") return joined(given);
  if (!Array.isArray(given)) return undefined;
  const texts = given.slice(0, 10 * requestTagsMax).filter((tag) => typeof tag === "string");
  return joined(texts.map((tag) => tag.slice(0, readMaxLength)).join(","));
}

/** The same of a header, together with those of the body. */
export const withTagsOf = (header: string | null, tags: string | undefined): string | undefined =>
  header === null ? tags : joined(tags === undefined ? header : `${tags},${header}`);

/** Sorted and each once, so that the same tags are the same text in whatever order they came. */
function joined(given: string): string | undefined {
  const tags = new Set<string>();
  for (const part of given.slice(0, 10 * requestTagsMax * readMaxLength).split(",", 10 * requestTagsMax)) {
    const tag = endUserName(part.slice(0, readMaxLength), requestTagMaxLength);
    if (tag !== "") tags.add(tag);
    if (tags.size === requestTagsMax) break;
  }
  return tags.size === 0 ? undefined : [...tags].sort().join(",");
}
