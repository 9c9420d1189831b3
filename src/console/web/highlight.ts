// Colors code. The highlighter is loaded with the first code; its tokens become elements, never HTML.
import type { LanguageFn } from "highlight.js";

export type Token = string | Readonly<{ scope: string; children: readonly Token[] }>;

export type Highlighter = (code: string, language: string) => readonly Token[] | null;

/** highlight.js keeps its result as a tree under this name; `value`, the same as HTML, is not used here. */
type TokenNode = string | Readonly<{ scope?: string; children: readonly TokenNode[] }>;
type WithTree = Readonly<{ _emitter: Readonly<{ rootNode: TokenNode }> }>;

/** Code with such a word stays plain: the highlighter takes quadratic time for 20,000 digits without a space. */
const longWord = /\S{200}/;
/** The same for very long lines, and for unclosed brackets, since it scans ahead from each. */
const longLine = /[^\n]{1000}/;
const bracketsMax = 400;
const isUsual = (code: string): boolean =>
  !longWord.test(code) && !longLine.test(code) && code.split(/[([{<]/, bracketsMax + 2).length <= bracketsMax;

let loading: Promise<Highlighter> | null = null;

export function loadHighlighter(): Promise<Highlighter> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Highlighter> {
  const [{ default: core }, ...languages] = await Promise.all([
    import("highlight.js/lib/core"),
    import("highlight.js/lib/languages/bash"),
    import("highlight.js/lib/languages/javascript"),
    import("highlight.js/lib/languages/json"),
    import("highlight.js/lib/languages/python"),
    import("highlight.js/lib/languages/ini"),
  ]);
  const names = ["bash", "javascript", "json", "python", "ini"];
  for (const [index, { default: language }] of languages.entries()) {
    core.registerLanguage(names[index] ?? "", language as LanguageFn);
  }
  core.registerAliases(["typescript", "ts", "jsx", "tsx"], { languageName: "javascript" });
  core.registerAliases(["sh", "shell", "zsh", "console"], { languageName: "bash" });
  return (code, language) => {
    if (!isUsual(code) || core.getLanguage(language) === undefined) return null;
    const { _emitter } = core.highlight(code, { language, ignoreIllegals: true }) as unknown as WithTree;
    return tokensOf(_emitter.rootNode);
  };
}

const tokensOf = (node: TokenNode): readonly Token[] =>
  typeof node === "string"
    ? [node]
    : node.children.map((child) =>
        typeof child === "string" ? child : { scope: child.scope ?? "", children: tokensOf(child) },
      );
