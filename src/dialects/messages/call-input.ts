// A call's arguments as this dialect's clients can read them. The official clients parse what has come after each event,
// and end the whole answer where it cannot become JSON. So what a model writes goes out only as long as it can still
// become an object, and what follows the object is dropped. An object that is spoiled, or never ends, is completed so
// that no client runs half of it: its members become null (the last of a name counts), and all that the model wrote
// stands beside them, under the key that Anthropic's documentation uses.
import { jsonDepthMax } from "../../core/limits.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

type Expected = "object" | "key" | "first key" | "colon" | "value" | "first value" | "next" | "nothing";

const blank = /[ \t\r\n]/;
const bareCharacter = /[-+.\w]/;
const bareRun = /[-+.\w]+/y;
const bareValue = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;
/** Half a pair of surrogates is none: it breaks clients in Python. */
const escaped =
  /\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[\da-fA-F]{4}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})/y;
const escapeMaxLength = 12;
/** Ends a run of plain characters in a string. Models forget to escape control characters. */
const special = /["\\\x00-\x1f]/g;
const numberMaxLength = 256;

export class CallInput {
  readonly #open: ("{" | "[")[] = [];
  #expects: Expected = "object";
  #inString = false;
  /** The beginning of an escape, a number or a word, which go out whole. */
  #held = "";
  #spoiled = false;

  /** The object has ended. */
  get complete(): boolean {
    return this.#expects === "nothing";
  }

  /** Takes more of what the model wrote; returns what may go out now. */
  push(more: string): string {
    const text = this.#held + (this.#expects === "object" ? more.trimStart() : more);
    let out = "";
    let from = 0;
    let at = 0;
    while (at < text.length && !this.#spoiled && !this.complete) {
      if (this.#inString) {
        special.lastIndex = at;
        at = special.exec(text)?.index ?? text.length;
        if (at < text.length && text[at]! < " ") {
          out += text.slice(from, at) + JSON.stringify(text[at]).slice(1, -1);
          from = ++at;
          continue;
        }
      }
      if (at === text.length) break;
      const end = this.#next(text, at);
      if (end < 0) break;
      at = end;
    }
    this.#held = this.#spoiled || this.complete ? "" : text.slice(at);
    return out + text.slice(from, at);
  }

  /** What completes an object that did not end. `literal`: all that the model wrote, as a JSON string literal. */
  rest(literal: string): string {
    if (this.complete) return "";
    if (this.#open.length === 0) return isNothing(literal) ? "" : `{"INVALID_JSON":${literal}}`;
    let end = this.#inString ? '"' : "";
    if (this.#expects === "colon") end += ":null";
    else if (this.#expects === "value") end += "null";
    else if (this.#expects === "key") end += '"":null';
    for (const bracket of this.#open.slice(1).reverse()) end += bracket === "{" ? "}" : "]";
    const sent = new CallInput().push(JSON.parse(literal) as string);
    const names = Object.keys(parseOutsideJson(`${sent}${end}}`) as object).map((name) => JSON.stringify(name));
    const comma = names.length === 0 ? "" : ",";
    return `${end}${comma}${names.map((name) => `${name}:null,`).join("")}"INVALID_JSON":${literal}}`;
  }

  /** The end of what stands at `at`; -1: more must come, or nothing may. */
  #next(text: string, at: number): number {
    const mark = text[at]!;
    if (this.#inString && mark === "\\") {
      escaped.lastIndex = at;
      if (escaped.test(text)) return escaped.lastIndex;
      return text.length - at < escapeMaxLength ? -1 : this.#spoil();
    }
    if (this.#inString || !bareCharacter.test(mark))
      return blank.test(mark) || this.#mark(mark) ? at + 1 : this.#spoil();
    bareRun.lastIndex = at;
    bareRun.test(text);
    const end = bareRun.lastIndex;
    if (!this.#takesValue || end - at > numberMaxLength) return this.#spoil();
    if (end === text.length) return -1;
    if (!bareValue.test(text.slice(at, end))) return this.#spoil();
    this.#expects = "next";
    return end;
  }

  get #takesValue(): boolean {
    return this.#expects.endsWith("value");
  }

  #spoil(): -1 {
    this.#spoiled = true;
    return -1;
  }

  /** Whether the mark may stand here. */
  #mark(mark: string): boolean {
    const isBrace = mark === "{" || mark === "}";
    switch (mark) {
      case '"':
        this.#inString = !this.#inString;
        if (!this.#inString) return true;
        if (this.#takesValue) this.#expects = "next";
        else if (this.#expects.endsWith("key")) this.#expects = "colon";
        else return (this.#inString = false);
        return true;
      case "{":
      case "[":
        if (!this.#takesValue && !(this.#expects === "object" && isBrace)) return false;
        if (this.#open.length === jsonDepthMax) return false;
        this.#open.push(mark);
        this.#expects = isBrace ? "first key" : "first value";
        return true;
      case "}":
      case "]":
        if (this.#open.at(-1) !== (isBrace ? "{" : "[")) return false;
        if (this.#expects !== "next" && !this.#expects.startsWith("first")) return false;
        this.#open.pop();
        this.#expects = this.#open.length === 0 ? "nothing" : "next";
        return true;
      case ":":
        if (this.#expects !== "colon") return false;
        this.#expects = "value";
        return true;
      case ",":
        if (this.#expects !== "next") return false;
        this.#expects = this.#open.at(-1) === "{" ? "key" : "value";
        return true;
      default:
        return false;
    }
  }
}

/** Models write nothing, or null, for a tool without parameters. */
const isNothing = (literal: string): boolean => /^(?:null)?$/.test((JSON.parse(literal) as string).trim());
