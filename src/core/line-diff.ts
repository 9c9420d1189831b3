// What a text has that another one has not, by lines, as `diff -u` shows it.

/** `sign`: "-", "+", or " " for both; null: lines between were left out. */
export type DiffLine = Readonly<{ sign: string | null; text: string }>;

const contextLines = 2;
/** Beyond it, all between the first and the last difference counts as changed. */
const cellsMax = 4_000_000;

export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, next] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < Math.min(old.length, next.length) && old[start] === next[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, next.length) - start && old.at(-1 - end) === next.at(-1 - end)) end += 1;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ sign: " ", text }));
  const lines = [
    ...same(old.slice(0, start)),
    ...changed(old.slice(start, old.length - end), next.slice(start, next.length - end)),
    ...same(old.slice(old.length - end)),
  ];
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - contextLines), at + contextLines + 1).some(({ sign }) => sign !== " ");
  const near = lines.map((line, at): DiffLine => (isNear(at) ? line : { sign: null, text: "" }));
  return near.filter(({ sign }, at) => sign !== null || near[at - 1]?.sign !== null);
}

/** By the longest common subsequence. */
function changed(old: readonly string[], next: readonly string[]): DiffLine[] {
  const width = next.length + 1;
  if (old.length * width > cellsMax) return [...signed("-", old), ...signed("+", next)];
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = next.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] = old[i] === next[j] ? common[at + width + 1]! + 1 : Math.max(common[at + width]!, common[at + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < next.length) {
    const at = i * width + j;
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push({ sign: " ", text: old[i++]! });
      j += 1;
    } else if (j === next.length || (i < old.length && common[at + width]! >= common[at + 1]!)) {
      lines.push({ sign: "-", text: old[i++]! });
    } else lines.push({ sign: "+", text: next[j++]! });
  }
  return lines;
}

const signed = (sign: "-" | "+", lines: readonly string[]): DiffLine[] => lines.map((text) => ({ sign, text }));

export const diffInWords = (lines: readonly DiffLine[]): string =>
  lines.map(({ sign, text }) => (sign === null ? "..." : `${sign} ${text}`.trimEnd())).join("\n");
