// How far to the left a merge can be felt. A token is merged with its left neighbor or not according to whether its
// right one took it before, that is with a lower rank; so the way to the left goes through merges of ever higher ranks.
import { hashAppend, type Vocabulary } from "../../src/tokens/vocabulary.ts";

export type MergeChains = Readonly<{
  /** No byte changes tokens that begin further to the left of it. */
  furthestBytes: number;
  /** Small letters, in which each two neighboring tokens would merge if the two on their right did not before. */
  longest: string;
}>;

/** A token's place in the longest chain of small letters that begins with it. */
type Link = Readonly<{ token: number; length: number; next: Link | null }>;

export function mergeChains(vocabulary: Vocabulary): MergeChains {
  const { size, bytes, starts } = vocabulary;
  /** By token: how many bytes on its right say whether it is left alone, and whether it comes to be. */
  const staysBytes = new Int32Array(size);
  const comesBytes = new Int32Array(size);
  const links: (Link | undefined)[] = [];
  let furthestBytes = 0;
  let longest: Link | null = null;
  for (let rank = 0; rank < size; rank++) {
    if (vocabulary.lengthOf(rank) < 2) continue;
    const [left, right] = lastMerge(vocabulary, rank);
    comesBytes[rank] = Math.max(staysBytes[right]!, comesBytes[right]!);
    staysBytes[left] = Math.max(staysBytes[left]!, vocabulary.lengthOf(right) + comesBytes[rank]!);
    furthestBytes = Math.max(furthestBytes, vocabulary.lengthOf(left) + staysBytes[left]!);
    if (!bytes.subarray(starts[rank]!, starts[rank + 1]!).every((byte) => byte >= 0x61 && byte <= 0x7a)) continue;
    const next = links[right] ?? { token: right, length: 1, next: null };
    if (next.length < (links[left]?.length ?? 1)) continue;
    links[left] = { token: left, length: next.length + 1, next };
    if (longest === null || links[left].length > longest.length) longest = links[left];
  }
  const tokens: Uint8Array[] = [];
  for (let link = longest; link !== null; link = link.next) {
    tokens.push(bytes.subarray(starts[link.token]!, starts[link.token + 1]!));
  }
  return { furthestBytes, longest: Buffer.concat(tokens).toString() };
}

/** The two tokens that are left of a token's bytes before the last merge, by looking through all pairs for each merge. */
function lastMerge(vocabulary: Vocabulary, token: number): readonly [left: number, right: number] {
  const ends: number[] = [];
  for (let at = vocabulary.starts[token]!; at <= vocabulary.starts[token + 1]!; at++) ends.push(at);
  while (ends.length > 3) {
    let lowest = vocabulary.size;
    let place = 0;
    for (let at = 0; at + 2 < ends.length; at++) {
      const rank = rankOf(vocabulary, ends[at]!, ends[at + 2]!);
      if (rank >= 0 && rank < lowest) [lowest, place] = [rank, at];
    }
    ends.splice(place + 1, 1);
  }
  return [rankOf(vocabulary, ends[0]!, ends[1]!), rankOf(vocabulary, ends[1]!, ends[2]!)];
}

function rankOf(vocabulary: Vocabulary, start: number, end: number): number {
  let hash = 0;
  for (let at = start; at < end; at++) hash = hashAppend(hash, vocabulary.bytes[at]!);
  return vocabulary.find(vocabulary.bytes, start, end, hash);
}
