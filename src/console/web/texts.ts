// What the console says, in the language of the person.
//
// Texts stand in `data/languages/<language>/<part>.json`, in ICU's message format: "{count, plural, one {# key} other {#
// keys}}". `people.json` has what everybody sees, `operators.json` what is on the operators' pages alone, and
// `alerts.json`, which comes with it, what mails say, too. A key is
// "page.what"; a text that several pages share begins with "common.". The same key is in each language with the same
// values; `test/console-web/texts.test.ts` checks that, and that no text stands in the code.
//
// Call `t` and `rich` while drawing, never in a module's own scope: the texts come after the code.
import { IntlMessageFormat } from "intl-messageformat";
import type { ComponentChildren } from "preact";
import type alerts from "../../../data/languages/en/alerts.json";
import type operators from "../../../data/languages/en/operators.json";
import type people from "../../../data/languages/en/people.json";
import { language, languages } from "./language.ts";
import { loadMoreStyles } from "./more-styles.ts";
import { requestTexts, type Text, type TextPart } from "./text-files.ts";

export type TextKey = keyof typeof people | keyof typeof operators | keyof typeof alerts;

const texts = new Map<string, Text>();
const formats = new Map<string, IntlMessageFormat>();

export async function loadTexts(part: TextPart): Promise<void> {
  for (const [key, text] of Object.entries(await requestTexts(part))) texts.set(key, text);
}

/** A file of code that comes later, together with its texts and styles. */
export async function later<Module>(file: Promise<Module>, ...parts: readonly TextPart[]): Promise<Module> {
  const [module] = await Promise.all([file, loadMoreStyles(), loadTexts("people"), ...parts.map(loadTexts)]);
  return module;
}

/** The text of a key, with its values. */
export function t(key: TextKey, values?: Readonly<Record<string, string | number>>): string {
  const text = textOf(key);
  return typeof text === "string" ? text : String(formatOf(key, text).format(values));
}

/** A text with elements in it: `<link>so</link>` becomes what `link` makes of its content. */
export function rich(
  key: TextKey,
  values: Readonly<Record<string, ComponentChildren | ((inner: ComponentChildren) => ComponentChildren)>>,
): ComponentChildren {
  return formatOf(key, textOf(key)).format<ComponentChildren>(values as never) as ComponentChildren;
}

function textOf(key: string): Text {
  const text = texts.get(key);
  if (text === undefined) throw new Error(`no text ${key} is loaded`);
  return text;
}

function formatOf(key: string, text: Text): IntlMessageFormat {
  let format = formats.get(key);
  if (format === undefined) formats.set(key, (format = new IntlMessageFormat(text, languages[language].numbers)));
  return format;
}
