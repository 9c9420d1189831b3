// The console's texts: complete in each language with the same values, used, and none of them in the code.
import { describe, expect, test } from "bun:test";
import { IntlMessageFormat } from "intl-messageformat";
import { parseSync } from "oxc-parser";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const web = join(root, "src/console/web");
const languages = ["en", "de", "zh"];
const parts = ["people", "operators", "alerts"];
const texts = new Map<string, Readonly<Record<string, string>>>();
for (const language of languages)
  for (const part of parts)
    texts.set(`${language}/${part}`, await Bun.file(`${root}/data/languages/${language}/${part}.json`).json());
const english: Readonly<Record<string, string>> = Object.assign({}, ...parts.map((part) => texts.get(`en/${part}`)));

/** The type of plain text among the elements of a message. */
const literal = 0;

/** The names of values and tags in a text, in order. Throws for one that is not in ICU's format. */
function namesIn(text: string): string[] {
  const names = new Set<string>();
  const look = (elements: ReturnType<IntlMessageFormat["getAst"]>): void => {
    for (const element of elements) {
      if (!("value" in element) || element.type === literal) continue;
      names.add("children" in element ? `<${element.value}>` : element.value);
      if ("children" in element) look(element.children);
      if ("options" in element) for (const { value } of Object.values(element.options)) look(value);
    }
  };
  look(new IntlMessageFormat(text, "en").getAst());
  return [...names].sort();
}

const sources = new Map<string, string>();
for await (const file of new Bun.Glob("**/*.{ts,tsx}").scan(web))
  sources.set(file, await Bun.file(join(web, file)).text());

describe("texts", () => {
  test.each(parts)("%s: every language has the same keys, in order, with the same values", (part) => {
    const wanted = Object.keys(texts.get(`en/${part}`)!);
    expect(wanted).toEqual(wanted.toSorted());
    for (const language of languages) {
      const found = texts.get(`${language}/${part}`)!;
      expect(Object.keys(found), language).toEqual(wanted);
      for (const [key, text] of Object.entries(found)) {
        expect(text.trim(), `${language} ${key}`).not.toBe("");
        expect(namesIn(text), `${language} ${key}`).toEqual(namesIn(english[key]!));
      }
    }
  });

  test("every text is used", () => {
    const all = [...sources.values()].join("\n");
    // `plan.state_${state}`: each key that begins so is used.
    const beginnings = [...all.matchAll(/`([a-z_]+\.[a-z_]*)\$\{/g)].map(([, beginning]) => beginning!);
    const unused = Object.keys(english).filter(
      (key) => !all.includes(`"${key}"`) && !beginnings.some((beginning) => key.startsWith(beginning)),
    );
    expect(unused).toEqual([]);
  });

  test("a text is found in the code", () => {
    expect(textsIn("a.tsx", 'const a = <p title="Hello there">{isNew ? "Some words" : t("a.b")} words</p>;')).toEqual([
      "Hello there",
      "Some words",
      " words",
    ]);
  });

  test.each([...sources])("no text stands in %s", (file, source) => {
    const found = textsIn(file, source);
    if (unconverted.has(file)) return expect(found, `${file} may leave the list`).not.toEqual([]);
    expect(found).toEqual([]);
  });
});

/** Attributes that people see or hear. Components of ours have others; what is none is `class`, `kind` or an address. */
const codeAttributes =
  /^(?:accept|popover\w*|shown|class|id|key|kind|of|look|verdict|state|type|name|icon|href|path|d|viewBox|preserveAspectRatio|role|value|html\w*|data-.*|aria-(?!label$|description$|valuetext$|placeholder$).*|auto\w+|enterkeyhint|enterKeyHint|inputMode|pattern|fill|stroke.*|tone|text-anchor|side|align|method|rel|target|scope|colSpan|lang|dir|first|prefix)$/;

/** Names and signs that are the same in every language. */
const isText = (text: string): boolean =>
  /\p{L}{2}/u.test(text) &&
  !/^(?:[a-z_]+\.[a-z_]+|[A-Z_]+_[A-Z_]+)$/.test(text) &&
  !/^\s*(?:Tollgate|API|CSV|JSON|tokens?\/s|ms|min)\s*$/.test(text);

/** Two words or more, the first with a capital: nothing else in the code looks like that. */
const isSentence = (text: string): boolean =>
  /^\p{Lu}\p{Ll}+[,:]? \p{L}{2,}/u.test(text) && !text.startsWith("Anthropic ");

/** Sentences, and words that JSX shows: its text, and strings in attributes and braces that no `t` gave. */
function textsIn(file: string, source: string): string[] {
  const found: string[] = [];
  const look = (node: any, shown: boolean): void => {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) return node.forEach((each) => look(each, shown));
    switch (node.type) {
      case "JSXText":
        if (isText(node.value)) found.push(node.value);
        return;
      case "JSXAttribute":
        return look(node.value, !codeAttributes.test(String(node.name.name)));
      case "JSXExpressionContainer":
        return look(node.expression, shown);
      case "JSXElement":
      case "JSXFragment":
        look(node.openingElement?.attributes ?? [], false);
        return look(node.children, true);
      case "Literal":
        if (typeof node.value === "string" && (shown ? isText(node.value) : isSentence(node.value)))
          found.push(node.value);
        return;
      case "TemplateLiteral":
        for (const { value } of node.quasis)
          if (shown ? isText(value.cooked) : isSentence(value.cooked)) found.push(value.cooked);
        return look(node.expressions, false);
      case "ConditionalExpression":
        look(node.test, false);
        look(node.consequent, shown);
        return look(node.alternate, shown);
      case "LogicalExpression":
        look(node.left, node.operator === "&&" ? false : shown);
        return look(node.right, shown);
      case "CallExpression":
        look(node.callee, false);
        look(node.arguments.slice(0, 1), node.callee.name === "toast");
        return look(node.arguments.slice(1), false);
      case "ThrowStatement":
        return;
      default:
        for (const [name, value] of Object.entries(node)) if (name !== "parent") look(value, false);
    }
  };
  look(parseSync(file, source).program.body, false);
  return found;
}

/** Pages whose texts still stand in the code. */
const unconverted = new Set<string>(["palette/chapters.ts", "parts/markdown.tsx"]);
