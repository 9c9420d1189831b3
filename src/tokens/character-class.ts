// Decides which code points are letters, marks, numbers and white space for tiktoken. Its regular expression uses
// Unicode 16.0. Changes of later versions (the runtime's is 17.0) are undone, because one letter more or less moves the
// border of a piece and changes counts. A test compares all 1,112,064 code points with tiktoken's own.

/** One bit each, so that a set of classes is one test. */
export const CharacterClass = {
  /** Lu, Lt */
  Upper: 1,
  /** Ll */
  Lower: 2,
  /** Lm, Lo: letters without case */
  Caseless: 4,
  /** M */
  Mark: 8,
  /** N */
  Number: 16,
  /** White_Space except line feed and carriage return */
  Space: 32,
  /** Line feed, carriage return */
  Newline: 64,
  /** Everything else: punctuation, symbols, controls, unassigned */
  Other: 128,
} as const;

const classProperties: readonly (readonly [RegExp, number])[] = [
  [/\p{White_Space}+/gu, CharacterClass.Space],
  [/[\n\r]+/gu, CharacterClass.Newline],
  [/[\p{Lu}\p{Lt}]+/gu, CharacterClass.Upper],
  [/\p{Ll}+/gu, CharacterClass.Lower],
  [/[\p{Lm}\p{Lo}]+/gu, CharacterClass.Caseless],
  [/\p{M}+/gu, CharacterClass.Mark],
  [/\p{N}+/gu, CharacterClass.Number],
];

/** First and last code point of what Unicode 17.0 added to the classes above. */
const addedIn17: readonly (readonly [number, number])[] = [
  [0x88f, 0x88f],
  [0xc5c, 0xc5c],
  [0xcdc, 0xcdc],
  [0x1acf, 0x1add],
  [0x1ae0, 0x1aeb],
  [0xa7ce, 0xa7cf],
  [0xa7d2, 0xa7d2],
  [0xa7d4, 0xa7d4],
  [0xa7f1, 0xa7f1],
  [0x10940, 0x10959],
  [0x10ec5, 0x10ec7],
  [0x10efa, 0x10efb],
  [0x11b60, 0x11b67],
  [0x11db0, 0x11ddb],
  [0x11de0, 0x11de9],
  [0x16ea0, 0x16eb8],
  [0x16ebb, 0x16ed3],
  [0x16ff2, 0x16ff6],
  [0x187f8, 0x187ff],
  [0x18d09, 0x18d1e],
  [0x18d80, 0x18df2],
  [0x1e6c0, 0x1e6de],
  [0x1e6e0, 0x1e6f5],
  [0x1e6fe, 0x1e6ff],
  [0x2b73a, 0x2b73f],
  [0x2cea2, 0x2cead],
  [0x323b0, 0x33479],
];
/** LATIN LETTER PHARYNGEAL VOICED FRICATIVE became caseless in 17.0. */
const lowerIn16 = 0x295;

const codePoints = 0x110000;
const blockCodePoints = 0x10000;
const surrogatesStart = 0xd800;
const surrogatesEnd = 0xe000;

/** The class of every code point, one byte each. */
export function classifyCodePoints(): Uint8Array {
  const classes = new Uint8Array(codePoints).fill(CharacterClass.Other);
  for (let block = 0; block < codePoints; block += blockCodePoints) {
    const text = textOfCodePoints(block, block + blockCodePoints);
    for (const [pattern, characterClass] of classProperties) {
      for (const [run] of text.matchAll(pattern)) {
        const first = run.codePointAt(0)!;
        const last = run.codePointAt(run.length - (run.charCodeAt(run.length - 1) >>> 10 === 0x37 ? 2 : 1))!;
        // A run skips the surrogates, which no property above contains.
        for (let codePoint = first; codePoint <= last; codePoint++) classes[codePoint] = characterClass;
      }
    }
  }
  for (const [first, last] of addedIn17) classes.fill(CharacterClass.Other, first, last + 1);
  classes[lowerIn16] = CharacterClass.Lower;
  return classes;
}

/** The characters from `first` to before `end`, without surrogates. */
function textOfCodePoints(first: number, end: number): string {
  const points: number[] = [];
  for (let point = first; point < end; point++) {
    if (point < surrogatesStart || point >= surrogatesEnd) points.push(point);
  }
  const parts: string[] = [];
  // 4,096 at a time: more arguments would exceed the stack and throw.
  for (let at = 0; at < points.length; at += 4_096) parts.push(String.fromCodePoint(...points.slice(at, at + 4_096)));
  return parts.join("");
}
