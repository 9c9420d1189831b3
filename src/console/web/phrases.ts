// What the server said in English, in the language of the person. Its phrases come when something went wrong, or with a page
// that shows such words.
import { IntlMessageFormat } from "intl-messageformat";
import { Phrases } from "../../core/phrases.ts";
import { language, languages } from "./language.ts";
import { requestTexts, type Text } from "./text-files.ts";

let phrases: Phrases<Text> | null = null;

/** Where the phrases cannot be had, the words stay English. */
export async function inWords(text: string): Promise<string> {
  const catalog = phrases === null ? await requestTexts("phrases").catch(() => null) : null;
  if (catalog !== null)
    phrases = new Phrases(catalog, (phrase, values) =>
      typeof phrase === "string"
        ? phrase
        : String(new IntlMessageFormat(phrase, languages[language].numbers).format(values)),
    );
  return said(text);
}

export const said = (text: string): string => phrases?.say(text) ?? text;
/** Of a list, each part that is known. */
export const saidEach = (text: string): string => phrases?.sayEach(text) ?? text;
