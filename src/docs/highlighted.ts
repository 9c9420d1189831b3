// Marks the words of code for the style sheet. The samples are ours and simple, so a few patterns suffice; a
// highlighter's library would bring the browser's types into the server.
import { escaped } from "./markup.ts";
import type { CodeSample } from "./openapi-document.ts";

type Language = CodeSample["lang"];

const keywords: Readonly<Record<Language, RegExp>> = {
  Shell: /\b(?:curl)\b/,
  JavaScript: /\b(?:import|from|const|new|await|for|of|true|false|null)\b/,
  Python: /\b(?:import|from|for|in|if|or|with|as|print|True|False|None)\b/,
};

const string = /"(?:[^"\\]|\\.)*"|`[^`]*`/;
const number = /(?<=[\s(=])\d+(?=[,\s)}\]]|$)/;

const patterns = Object.fromEntries(
  Object.entries(keywords).map(([language, keyword]) => [
    language,
    new RegExp(`(?<string>${string.source})|(?<keyword>${keyword.source})|(?<number>${number.source})`, "g"),
  ]),
) as Readonly<Record<Language, RegExp>>;

/** HTML with everything in `source` escaped. */
export function highlighted(source: string, language: Language): string {
  let html = "";
  let end = 0;
  for (const match of source.matchAll(patterns[language])) {
    const [kind] = Object.entries(match.groups!).find(([, text]) => text !== undefined)!;
    html += `${escaped(source.slice(end, match.index))}<span class="${kind}">${escaped(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escaped(source.slice(end));
}
