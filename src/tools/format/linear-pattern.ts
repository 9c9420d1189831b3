// Runs a client's pattern in time linear in the text, however the pattern was made: it follows all ways through the
// pattern at once and never backtracks. It only says whether there is a match, which needs no captures; a separate walk
// first finds where look-arounds hold. Patterns without a linear way have no LinearPattern: back references, flag
// changes in the middle, and patterns that are too large when written out.
import { type AST, RegExpParser } from "@eslint-community/regexpp";

/** Steps of a pattern with its repeats written out: each may be active at each character of the text. */
const patternStepsMax = 20_000;

/** As Unicode, or as browsers have always read patterns. */
type Flags = "u" | "";

/** A step of the pattern. `next` and `other` are the numbers of the steps that may follow. */
type Step =
  | Readonly<{ step: "character"; code: number; next: number }>
  | Readonly<{ step: "class"; class: CharacterClass; next: number }>
  | Readonly<{ step: "place"; holds: Place; next: number }>
  | { step: "either"; next: number; other: number }
  | Readonly<{ step: "match" }>;

/** Whether a condition holds between two characters. */
type Place = (run: Run, at: number) => boolean;

const parser = new RegExpParser({ ecmaVersion: 2025 });

/** Throws SyntaxError where it is no pattern; null where it has no linear way. */
export function linearPattern(source: string, flags: Flags): LinearPattern | null {
  const { alternatives } = parser.parsePattern(source, 0, source.length, { unicode: flags === "u" });
  try {
    return new LinearPattern(source, alternatives, flags);
  } catch (thrown) {
    if (thrown instanceof NotLinear) return null;
    throw thrown;
  }
}

class NotLinear extends Error {}

export class LinearPattern {
  readonly #source: string;
  readonly #flags: Flags;
  readonly #steps: Step[] = [];
  readonly #table: StepTable;
  readonly #first: number;
  /** Inner ones first. */
  readonly #lookArounds: { first: number; isForward: boolean }[] = [];
  readonly #lookAroundNumbers = new Map<AST.LookaroundAssertion, number>();
  readonly #classes = new Map<string, CharacterClass>();
  #room = patternStepsMax;

  constructor(source: string, alternatives: readonly AST.Alternative[], flags: Flags) {
    this.#source = source;
    this.#flags = flags;
    this.#first = this.#any(alternatives, this.#add({ step: "match" }), true);
    this.#table = new StepTable(this.#steps);
  }

  test(text: string): boolean {
    const run = new Run(this.#table, this.#flags === "u" ? codePointsOf(text) : codeUnitsOf(text));
    for (const { first, isForward } of this.#lookArounds) run.found.push(run.placesOf(first, isForward));
    return run.matches(this.#first);
  }

  /** Validators distinguish patterns by it. */
  toString(): string {
    return `/${this.#source}/${this.#flags}`;
  }

  #add(step: Step): number {
    this.#take();
    return this.#steps.push(step) - 1;
  }

  /** Counts even what adds no step: an empty group may be repeated a billion times. */
  #take(): void {
    if (--this.#room < 0) throw new NotLinear();
  }

  /** Each returns the number of the first step of a part that continues at `next`. */
  #any(alternatives: readonly AST.Alternative[], next: number, isForward: boolean): number {
    const firsts = alternatives.map(({ elements }) => {
      const inOrder = isForward ? elements.toReversed() : elements;
      return inOrder.reduce((after, element) => this.#element(element, after, isForward), next);
    });
    return firsts.reduceRight((other, first) => this.#add({ step: "either", next: first, other }));
  }

  #element(element: AST.Element, next: number, isForward: boolean): number {
    this.#take();
    switch (element.type) {
      case "Character":
        return this.#add({ step: "character", code: element.value, next });
      case "CharacterClass":
      case "CharacterSet":
        return this.#add({ step: "class", class: this.#class(element.raw), next });
      case "CapturingGroup":
        return this.#any(element.alternatives, next, isForward);
      case "Group":
        if (element.modifiers !== null) throw new NotLinear();
        return this.#any(element.alternatives, next, isForward);
      case "Quantifier":
        return this.#repeated(element, next, isForward);
      case "Assertion":
        return this.#add({ step: "place", holds: this.#place(element), next });
      case "Backreference":
      case "ExpressionCharacterClass":
        throw new NotLinear();
      default:
        return element satisfies never;
    }
  }

  #repeated({ element, min, max }: AST.Quantifier, next: number, isForward: boolean): number {
    let first = next;
    if (max === Number.POSITIVE_INFINITY) {
      const again: Step = { step: "either", next, other: next };
      first = this.#add(again);
      again.next = this.#element(element, first, isForward);
    } else {
      for (let more = max - min; more > 0; more--) {
        first = this.#add({ step: "either", next: this.#element(element, first, isForward), other: next });
      }
    }
    for (let needed = min; needed > 0; needed--) first = this.#element(element, first, isForward);
    return first;
  }

  #place(assertion: AST.Assertion): Place {
    switch (assertion.kind) {
      case "start":
        return (_run, at) => at === 0;
      case "end":
        return ({ codes }, at) => at === codes.length;
      case "word": {
        const { negate } = assertion;
        return ({ codes }, at) => (isWord(codes[at - 1]) !== isWord(codes[at])) !== negate;
      }
      case "lookahead":
      case "lookbehind": {
        const number = this.#lookAround(assertion);
        const wanted = assertion.negate ? 0 : 1;
        return ({ found }, at) => found[number]![at] === wanted;
      }
      default:
        return assertion satisfies never;
    }
  }

  /** A backward walk from every possible end finds where a look-ahead holds. */
  #lookAround(assertion: AST.LookaroundAssertion): number {
    const known = this.#lookAroundNumbers.get(assertion);
    if (known !== undefined) return known;
    const isForward = assertion.kind === "lookbehind";
    const first = this.#any(assertion.alternatives, this.#add({ step: "match" }), isForward);
    const number = this.#lookArounds.push({ first, isForward }) - 1;
    this.#lookAroundNumbers.set(assertion, number);
    return number;
  }

  #class(raw: string): CharacterClass {
    const known = this.#classes.get(raw);
    if (known !== undefined) return known;
    const made = new CharacterClass(raw, this.#flags);
    this.#classes.set(raw, made);
    return made;
  }
}

/** Which characters a class contains, according to the engine, one by one. */
class CharacterClass {
  readonly #expression: RegExp;
  /** For the first characters: 0 unknown, 1 no, 2 yes. */
  readonly #known = new Uint8Array(256);

  constructor(raw: string, flags: Flags) {
    this.#expression = new RegExp(`^(?:${raw})$`, flags);
  }

  has(code: number): boolean {
    const known = this.#known[code]; // undefined beyond its end
    if (known === 1 || known === 2) return known === 2;
    const has = this.#expression.test(String.fromCodePoint(code));
    if (known === 0) this.#known[code] = has ? 2 : 1;
    return has;
  }
}

/** The steps as numbers, because each is read for each character. */
class StepTable {
  readonly kinds: Uint8Array;
  /** The character, or the index in `classes` or `places`. */
  readonly values: Uint32Array;
  readonly nexts: Uint32Array;
  readonly others: Uint32Array;
  readonly classes: CharacterClass[] = [];
  readonly places: Place[] = [];

  constructor(steps: readonly Step[]) {
    this.kinds = new Uint8Array(steps.length);
    this.values = new Uint32Array(steps.length);
    this.nexts = new Uint32Array(steps.length);
    this.others = new Uint32Array(steps.length);
    for (const [number, step] of steps.entries()) {
      this.kinds[number] = kinds[step.step];
      if (step.step !== "match") this.nexts[number] = step.next;
      if (step.step === "either") this.others[number] = step.other;
      if (step.step === "character") this.values[number] = step.code;
      if (step.step === "class") this.values[number] = this.classes.push(step.class) - 1;
      if (step.step === "place") this.values[number] = this.places.push(step.holds) - 1;
    }
  }
}

const kinds = { match: 0, character: 1, class: 2, either: 3, place: 4 } as const;

/** One text, and the steps that are active at each of its places. */
class Run {
  /** For each look-around: 1 at the places where it holds. */
  readonly found: Uint8Array[] = [];
  readonly #table: StepTable;
  /** For each step, the place (from 1 on) where it was last reached, and last queued. */
  readonly #reachedAt: Uint32Array;
  readonly #waitsAt: Uint32Array;
  /** Steps to continue from at this place, and at the next. */
  #waiting: Uint32Array;
  #waitingCount = 0;
  #next: Uint32Array;
  readonly #open: Uint32Array;

  constructor(
    table: StepTable,
    readonly codes: Uint32Array,
  ) {
    const { length } = table.kinds;
    this.#table = table;
    this.#reachedAt = new Uint32Array(length);
    this.#waitsAt = new Uint32Array(length);
    this.#waiting = new Uint32Array(length + 1);
    this.#next = new Uint32Array(length + 1);
    this.#open = new Uint32Array(2 * length + 1);
  }

  /** Whether there is a match anywhere. */
  matches(first: number): boolean {
    this.#begin();
    for (let at = 0; at <= this.codes.length; at++) if (this.#advance(first, at, this.codes[at])) return true;
    return false;
  }

  /** Where matches may end, from any beginning; backward, where they may begin. */
  placesOf(first: number, isForward: boolean): Uint8Array {
    this.#begin();
    const { length } = this.codes;
    const places = new Uint8Array(length + 1);
    for (let walked = 0; walked <= length; walked++) {
      const at = isForward ? walked : length - walked;
      if (this.#advance(first, at, isForward ? this.codes[at] : this.codes[at - 1])) places[at] = 1;
    }
    return places;
  }

  #begin(): void {
    this.#reachedAt.fill(0);
    this.#waitsAt.fill(0);
    this.#waitingCount = 0;
  }

  /** Follows the steps that wait at a place, and the first, over `code` to their successors; true at a match. */
  #advance(first: number, at: number, code: number | undefined): boolean {
    const { kinds: kindOf, values, nexts, others, classes, places } = this.#table;
    const [open, waiting, next, reachedAt, waitsAt] = [
      this.#open,
      this.#waiting,
      this.#next,
      this.#reachedAt,
      this.#waitsAt,
    ];
    const mark = at + 1;
    let nextCount = 0;
    let isMatch = false;
    waiting[this.#waitingCount] = first;
    for (let index = 0; index <= this.#waitingCount; index++) {
      let openCount = 1;
      open[0] = waiting[index]!;
      while (openCount > 0) {
        const number = open[--openCount]!;
        if (reachedAt[number] === mark) continue;
        reachedAt[number] = mark;
        const kind = kindOf[number]!;
        if (kind === kinds.either) {
          open[openCount++] = others[number]!;
          open[openCount++] = nexts[number]!;
        } else if (kind === kinds.match) isMatch = true;
        else if (kind === kinds.place) {
          if (places[values[number]!]!(this, at)) open[openCount++] = nexts[number]!;
        } else if (code !== undefined) {
          const goesOn = kind === kinds.character ? values[number] === code : classes[values[number]!]!.has(code);
          const after = nexts[number]!;
          if (goesOn && waitsAt[after] !== mark) {
            waitsAt[after] = mark;
            next[nextCount++] = after;
          }
        }
      }
    }
    [this.#waiting, this.#next] = [next, waiting];
    this.#waitingCount = nextCount;
    return isMatch;
  }
}

function isWord(code: number | undefined): boolean {
  if (code === undefined) return false;
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122);
}

function codeUnitsOf(text: string): Uint32Array {
  const units = new Uint32Array(text.length);
  for (let index = 0; index < text.length; index++) units[index] = text.charCodeAt(index);
  return units;
}

function codePointsOf(text: string): Uint32Array {
  const points = new Uint32Array(text.length);
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    const point = text.codePointAt(index)!;
    if (point > 0xffff) index++;
    points[length++] = point;
  }
  return points.subarray(0, length);
}
