// What a mail says: a template for its kind and language, ours or the operator's, with values in it. Values are texts, and
// escaped where they stand in HTML. Ours have no images and nothing from elsewhere, and are read in the dark, too.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { IntlMessageFormat } from "intl-messageformat";
import germanAlerts from "../../data/languages/de/alerts.json" with { type: "json" };
import german from "../../data/languages/de/mail.json" with { type: "json" };
import germanPhrases from "../../data/languages/de/phrases.json" with { type: "json" };
import englishAlerts from "../../data/languages/en/alerts.json" with { type: "json" };
import english from "../../data/languages/en/mail.json" with { type: "json" };
import chineseAlerts from "../../data/languages/zh/alerts.json" with { type: "json" };
import chinese from "../../data/languages/zh/mail.json" with { type: "json" };
import chinesePhrases from "../../data/languages/zh/phrases.json" with { type: "json" };
import { Phrases } from "../core/phrases.ts";
import { type MailKind, mailKinds, type MailLanguage, mailLanguages } from "../core/mail.ts";

const texts: Readonly<Record<MailLanguage, Readonly<Record<string, string>>>> = {
  en: { ...english, ...englishAlerts },
  de: { ...german, ...germanAlerts },
  zh: { ...chinese, ...chineseAlerts },
};

type TextValues = Readonly<Record<string, string | number>>;
type Values = Readonly<Record<string, string>>;
/** More than a text's values: lists below headings, and a table. */
export type Letter = Readonly<{
  kind: MailKind;
  language: MailLanguage;
  values: Values;
  /** Where its button leads. */
  link: string;
  unsubscribe: string | null;
  lists?: readonly Readonly<{ heading: string; lines: readonly string[] }>[];
  table?: Readonly<{
    head: readonly string[];
    rows: readonly (readonly string[])[];
    foot: readonly (readonly string[])[];
  }>;
}>;
export type Written = Readonly<{ subject: string; text: string; html: string }>;

const format = (language: MailLanguage, text: string, values: TextValues): string =>
  String(new IntlMessageFormat(text, language, undefined, { ignoreTag: true }).format(values));

/** One of our texts, with values; a number is written as the language does. */
export const textIn = (language: MailLanguage, key: string, values: TextValues = {}): string =>
  format(language, texts[language][key]!, values);

const phrasesIn = (language: "de" | "zh", catalog: Readonly<Record<string, string>>): Phrases<string> =>
  new Phrases(catalog, (text, values) => format(language, text, values));
/** What the program says in English. */
const phrases = { en: null, de: phrasesIn("de", germanPhrases), zh: phrasesIn("zh", chinesePhrases) };

const dayForm = { dateStyle: "long", timeZone: "UTC" } as const;

/** Something that operators should look at, in a sentence. */
export function alertIn(language: MailLanguage, { kind, values }: Readonly<{ kind: string; values: TextValues }>) {
  const day = values["day"] === undefined ? "" : new Date(values["day"]).toLocaleDateString(language, dayForm);
  const problem = phrases[language]?.say(String(values["problem"])) ?? values["problem"]!;
  return textIn(language, `alert.${kind}`, { ...values, day, problem });
}

/** As ours have it. */
function usualLetter({ kind, language, values, link, unsubscribe, lists = [], table }: Letter): Written {
  const say = (what: string): string => textIn(language, what, values);
  const subject = values["subject"] ?? say(`${kind}.subject`);
  const paragraphs = say(`${kind}.text`).split("\n");
  const end = [say("common.automatic")];
  const row = (cells: readonly string[]): string => cells.join("  ");
  const text = [
    ...paragraphs,
    ...lists.flatMap(({ heading, lines }) => [heading, lines.map((line) => `- ${line}`).join("\n")]),
    ...(table === undefined ? [] : [[table.head, ...table.rows, ...table.foot].map(row).join("\n")]),
    `${say(`${kind}.button`)}: ${link}`,
    `-- \n${end.join("\n")}${unsubscribe === null ? "" : `\n${say("common.unsubscribe")}: ${unsubscribe}`}`,
  ].join("\n\n");
  const escape = Bun.escapeHTML;
  const cells = (tag: "td" | "th", found: readonly string[]): string =>
    `<tr>${found.map((cell, at) => `<${tag}${at === 0 ? "" : ' class="n"'}>${escape(cell)}</${tag}>`).join("")}</tr>`;
  const html = `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escape(subject)}</title>
<style>${style}</style>
</head>
<body style="margin:0">
<div class="mail">
<h1>${escape(subject)}</h1>
${paragraphs.map((paragraph) => `<p>${escape(paragraph)}</p>`).join("\n")}
${lists
  .map(
    ({ heading, lines }) =>
      `<h2>${escape(heading)}</h2>\n<ul>${lines.map((line) => `<li>${escape(line)}</li>`).join("")}</ul>`,
  )
  .join("\n")}
${
  table === undefined
    ? ""
    : `<table><thead>${cells("th", table.head)}</thead><tbody>${table.rows.map((found) => cells("td", found)).join("")}</tbody><tfoot>${table.foot.map((found) => cells("td", found)).join("")}</tfoot></table>`
}
<p><a class="button" href="${escape(link)}">${escape(say(`${kind}.button`))}</a></p>
<p class="link">${escape(link)}</p>
<p class="end">${end.map(escape).join("<br>")}${unsubscribe === null ? "" : ` <a href="${escape(unsubscribe)}">${escape(say("common.unsubscribe"))}</a>`}</p>
</div>
</body>
</html>
`;
  return { subject, text: `${text}\n`, html };
}

const style = `
:root { color-scheme: light dark; supported-color-schemes: light dark; }
body { background: #ffffff; color: #1c1d21; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", sans-serif; }
.mail { max-width: 600px; margin: 0 auto; padding: 24px 16px; overflow-wrap: anywhere; }
h1 { font-size: 20px; line-height: 1.3; margin: 0 0 16px; } h2 { font-size: 16px; margin: 24px 0 4px; }
p { margin: 0 0 16px; } ul { margin: 0 0 16px; padding-inline-start: 20px; }
table { width: 100%; border-collapse: collapse; font-size: 14px; margin: 0 0 24px; }
th, td { text-align: start; padding: 6px 8px 6px 0; border-bottom: 1px solid #d6d8de; } tfoot td { font-weight: 600; }
.n { text-align: end; padding: 6px 0 6px 8px; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.button { display: inline-block; padding: 10px 18px; border-radius: 8px; background: #2447c8; color: #ffffff; text-decoration: none; font-weight: 600; }
.link, .end { font-size: 13px; color: #5b5f6b; } .end a { color: inherit; }
@media (prefers-color-scheme: dark) {
  body { background: #16171b; color: #e7e8ec; } th, td { border-color: #3a3d46; }
  .button { background: #8ea6ff; color: #10131f; } .link, .end { color: #a3a7b3; }
}`;

// ---------------------------------------------------------------- templates of one's own

const templateMaxBytes = 256 * 1024;
const templateName = new RegExp(`^(${mailKinds.join("|")})\\.(${mailLanguages.join("|")})\\.(txt|html)$`);
/** Those without which a mail would be of no use. */
const needed = (kind: string): string | null =>
  ["invitation", "team_invitation", "password", "address"].includes(kind) ? "link" : null;

/** By kind, language and form; what is wrong with a file stands in its place. */
export type Templates = ReadonlyMap<string, Readonly<{ text: string } | { problem: string }>>;

/** Throws where the folder cannot be read. */
export function readTemplates(folder: string): Templates {
  return new Map(
    readdirSync(folder)
      .filter((name) => /\.(?:txt|html)$/.test(name))
      .map((name) => {
        const kind = templateName.exec(name)?.[1];
        if (kind === undefined) {
          return [name, { problem: `is no KIND.LANGUAGE.txt or .html; the kinds are ${mailKinds.join(", ")}` }];
        }
        try {
          if (statSync(join(folder, name)).size > templateMaxBytes)
            return [name, { problem: "is larger than 256 KiB" }];
          const text = readFileSync(join(folder, name), "utf8").replaceAll("\r\n", "\n");
          const problem = problemOf(text, kind, name.endsWith(".txt"));
          return [name, problem === null ? { text } : { problem }];
        } catch (thrown) {
          return [name, { problem: `cannot be read: ${(thrown as Error).message}` }];
        }
      }),
  );
}

function problemOf(text: string, kind: string, isText: boolean): string | null {
  if (isText && !/^Subject: ?\S.*\n\n/.test(text)) return 'must begin with a line "Subject: ..." and an empty line';
  const names = [...text.matchAll(/\{\{([^{}]{0,60})\}\}/g)].map(([, name]) => name!.trim());
  if (/\{\{|\}\}/.test(text.replaceAll(/\{\{[^{}]{0,60}\}\}/g, ""))) return "has {{ or }} that belong to nothing";
  const known = valuesOf[kind as MailKind];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) return `names {{${unknown}}}; there are ${known.map((each) => `{{${each}}}`).join(", ")}`;
  const missing = needed(kind);
  return missing === null || names.includes(missing) ? null : `must have {{${missing}}}`;
}

const everywhere = ["server", "link", "subject", "unsubscribe"];
/** What each kind of mail can say. */
const valuesOf: Readonly<Record<MailKind, readonly string[]>> = {
  invitation: [...everywhere, "by", "until"],
  team_invitation: [...everywhere, "by", "team", "until"],
  password: [...everywhere, "account", "until"],
  address: [...everywhere, "account", "until"],
  test: everywhere,
  limits: [...everywhere, "account", "what", "percent", "used", "most"],
  end_user_limits: [...everywhere, "account", "what", "percent", "used", "most"],
  statement: [...everywhere, "account", "month", "zone", "requests", "tokens", "usd"],
  alerts: [...everywhere, "began", "ended", "first"],
};

/** With what the operator's templates say in the place of ours. */
export function written(letter: Letter, templates: Templates | null): Written {
  const usual = usualLetter(letter);
  if (templates === null) return usual;
  const { kind, language, link, unsubscribe } = letter;
  const values: Values = { ...letter.values, link, subject: usual.subject, unsubscribe: unsubscribe ?? "" };
  const filled = (form: "txt" | "html", put: (value: string) => string): string | null => {
    const template = templates.get(`${kind}.${language}.${form}`);
    if (template === undefined || "problem" in template) return null;
    return template.text.replaceAll(/\{\{([^{}]{0,60})\}\}/g, (_, name: string) => put(values[name.trim()] ?? ""));
  };
  const text = filled("txt", (value) => value);
  const html = filled("html", Bun.escapeHTML) ?? usual.html;
  if (text === null) return { ...usual, html };
  const [first = "", ...rest] = text.split("\n");
  return { subject: first.slice("Subject:".length).trim(), text: rest.join("\n").trimStart(), html };
}
