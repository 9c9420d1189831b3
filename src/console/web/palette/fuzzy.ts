// Matches some letters in order: "plg" finds "Playground". Takes linear time in the name for each word.

/** Higher scores are better; `at` holds the positions of the matching letters. */
type Fit = Readonly<{ score: number; at: readonly number[] }>;

const atStart = 8;
const atWordStart = 5;
const inARow = 4;
/** Penalty for each letter of the name, so that the shorter of two equal matches wins. */
const perOther = 0.05;

/** Every word of the query must match, else null. An empty query matches everything. */
export function fit(query: string, name: string): Fit | null {
  const lower = name.toLowerCase();
  // A letter whose lowercase form is longer would shift the positions.
  const text = lower.length === name.length ? lower : name;
  let score = 0;
  const at: number[] = [];
  for (const word of query.toLowerCase().split(/\s+/)) {
    if (word === "") continue;
    const found = fitWord(word, text);
    if (found === null) return null;
    score += found.score;
    at.push(...found.at);
  }
  return { score: score - perOther * text.length, at };
}

function fitWord(word: string, text: string): Fit | null {
  const whole = wholeAt(word, text);
  if (whole >= 0) {
    const places = Array.from(word, (_, index) => whole + index);
    return { score: scoreOf(places, text) + inARow, at: places };
  }
  const places: number[] = [];
  let from = 0;
  for (const letter of word) {
    const next = text.indexOf(letter, from);
    if (next === -1) return null;
    places.push(next);
    from = next + letter.length;
  }
  return { score: scoreOf(places, text), at: places };
}

/** Preferably at the start of a word, else anywhere. */
function wholeAt(word: string, text: string): number {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) if (startsWord(text, at)) return at;
  return text.indexOf(word);
}

const startsWord = (text: string, at: number): boolean => at === 0 || " -_./:@+".includes(text.charAt(at - 1));

function scoreOf(places: readonly number[], text: string): number {
  let score = 0;
  for (const [index, place] of places.entries()) {
    if (place === 0) score += atStart;
    else if (startsWord(text, place)) score += atWordStart;
    score += index > 0 && places[index - 1] === place - 1 ? inARow : 1;
  }
  return score;
}
