// Writes a text that matches a regular expression without compiling or running it, because a client's pattern may take
// years. Supported: literals, classes, escapes, groups, alternatives (the first one), quantifiers, anchors. Anything
// else (look-around, back references) is skipped, so the text may not match.

const lengthMax = 10_000;
/** Longer patterns are not read: brackets recurse, and the stack is finite. */
const patternLengthMax = 2_000;

/** A short text that matches `pattern` where it uses only the parts named above. */
export function textFitting(pattern: string): string {
  return pattern.length > patternLengthMax ? "" : alternatives(pattern, 0).text;
}

type Read = Readonly<{ text: string; next: number }>;

/** `a|b|c` up to the end or a closing bracket: the text of the first. */
function alternatives(pattern: string, start: number): Read {
  const first = sequence(pattern, start);
  let next = first.next;
  while (pattern[next] === "|") next = sequence(pattern, next + 1).next;
  return { text: first.text, next };
}

function sequence(pattern: string, start: number): Read {
  let text = "";
  let next = start;
  while (next < pattern.length && pattern[next] !== "|" && pattern[next] !== ")") {
    const atom = readAtom(pattern, next);
    const times = readTimes(pattern, atom.next);
    const room = Math.ceil((lengthMax - text.length) / Math.max(1, atom.text.length));
    text = (text + atom.text.repeat(Math.min(times.count, room))).slice(0, lengthMax);
    next = times.next;
  }
  return { text, next };
}

function readAtom(pattern: string, at: number): Read {
  const letter = pattern[at]!;
  if (letter === "^" || letter === "$") return { text: "", next: at + 1 };
  if (letter === ".") return { text: "a", next: at + 1 };
  if (letter === "[") return readClass(pattern, at + 1);
  if (letter === "\\") return readEscape(pattern, at + 1);
  if (letter !== "(") return { text: letter, next: at + 1 };
  const head = /^\?(?::|<[A-Za-z]\w*>|<?[=!])/.exec(pattern.slice(at + 1, at + 80))?.[0] ?? "";
  const inside = alternatives(pattern, at + 1 + head.length);
  const looksAround = head.endsWith("=") || head.endsWith("!");
  return { text: looksAround ? "" : inside.text, next: inside.next + 1 };
}

/** `{3,5}`, `+`, `*`, `?`: the fewest allowed, but one for a star. */
function readTimes(pattern: string, at: number): { count: number; next: number } {
  const quantifier = /^(?:[+*?]|\{(\d+)(?:,\d*)?\})/.exec(pattern.slice(at, at + 20));
  if (quantifier === null) return { count: 1, next: at };
  const count = quantifier[1] === undefined ? (quantifier[0] === "?" ? 0 : 1) : Number(quantifier[1]);
  const end = at + quantifier[0].length;
  return { count, next: pattern[end] === "?" ? end + 1 : end };
}

/** `[a-z]` gives its first letter; `[^...]` the first of a few letters that it does not exclude. */
function readClass(pattern: string, start: number): Read {
  const negated = pattern[start] === "^";
  const members: string[] = [];
  let next = negated ? start + 1 : start;
  while (next < pattern.length && pattern[next] !== "]") {
    const member = pattern[next] === "\\" ? readEscape(pattern, next + 1) : { text: pattern[next]!, next: next + 1 };
    members.push(member.text);
    next = member.next;
    if (pattern[next] === "-" && pattern[next + 1] !== "]" && next + 1 < pattern.length) {
      const end =
        pattern[next + 1] === "\\" ? readEscape(pattern, next + 2) : { text: pattern[next + 1]!, next: next + 2 };
      for (const letter of "a0A_- ") if (letter >= member.text && letter <= end.text) members.push(letter);
      next = end.next;
    }
  }
  const text = negated ? ([..."a0A_ -~"].find((letter) => !members.includes(letter)) ?? "") : (members[0] ?? "");
  return { text, next: next + 1 };
}

const escapes: Readonly<Record<string, string>> = {
  d: "0",
  D: "a",
  w: "a",
  W: "-",
  s: " ",
  S: "a",
  n: "\n",
  t: "\t",
  r: "\r",
  b: "",
  B: "",
};

function readEscape(pattern: string, at: number): Read {
  const code = /^(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))/.exec(pattern.slice(at, at + 5));
  if (code !== null) {
    return { text: String.fromCharCode(Number.parseInt(code[1] ?? code[2]!, 16)), next: at + code[0].length };
  }
  const property = /^[pP]\{[^}]*\}/.exec(pattern.slice(at, at + 60))?.[0];
  if (property !== undefined) return { text: "A", next: at + property.length };
  const letter = pattern[at] ?? "";
  return { text: escapes[letter] ?? letter, next: at + 1 };
}
