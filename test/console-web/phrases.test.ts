// What the server says in English is said in each language: every refusal that a person can meet has a phrase, and every phrase
// is of words that the code still has.
import { describe, expect, test } from "bun:test";
import { IntlMessageFormat } from "intl-messageformat";
import { parseSync } from "oxc-parser";
import { join } from "node:path";
import { fileTables } from "../../src/config/config.ts";
import { remoteTables } from "../../src/config/file-changes.ts";
import { Phrases } from "../../src/core/phrases.ts";
import { refusals } from "../../src/core/refusals.ts";

const root = join(import.meta.dir, "../..");
const catalogs = new Map<string, Readonly<Record<string, string>>>();
for (const language of ["de", "zh"])
  catalogs.set(language, await Bun.file(`${root}/data/languages/${language}/phrases.json`).json());
const phrasesIn = (language: string): Phrases<string> =>
  new Phrases(catalogs.get(language)!, (text, values) => String(new IntlMessageFormat(text, language).format(values)));
const [german, chinese] = [phrasesIn("de"), phrasesIn("zh")];

/** Those that the console shows. */
const options = fileTables.flatMap(({ name, keys }) => (remoteTables.has(name) ? Object.values(keys) : []));

const sources = new Map<string, string>();
for await (const file of new Bun.Glob("{config,console,account,office,core,nodes,server,store}/**/*.ts").scan(
  `${root}/src`,
))
  sources.set(file, await Bun.file(`${root}/src/${file}`).text());

/** Whose refusals a person in the console can meet. */
const met =
  /^(?:console\/(?!web|stripe)|account\/(?:people|money|sign-in\/(?!operator-tokens))|office\/(?:verb|verbs\/(?:accounts|keys|teams|report|purchases|batches))\.ts)/;

/** Only programs and payment providers hear these. */
const exempt =
  /^(?:The body |The signature |Try again\.$|nothing was added: |a reference |\S+ is \S+ now, but |\S+ \S+\.$|expires |the key "7" stays)/;

/** The sentences that a file's code refuses with, a 7 in the place of each value. */
function refusedIn(file: string, source: string): string[] {
  const found: string[] = [];
  const text = (node: any): string => {
    if (node?.type === "Literal") return String(node.value);
    if (node?.type === "TemplateLiteral") return node.quasis.map(({ value }: any) => value.cooked).join("7");
    return node?.type === "BinaryExpression" ? text(node.left) + text(node.right) : "";
  };
  const look = (node: any, isRefusal: boolean): void => {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) return node.forEach((each) => look(each, isRefusal));
    const name = node.callee?.name;
    if (name === "fail") found.push(text(node.arguments[1]));
    if (node.type === "NewExpression" && /^(?:Account|Command)Error$/.test(name)) found.push(text(node.arguments[0]));
    if (node.callee?.type === "Super" && isRefusal) found.push(text(node.arguments[0]));
    if (node.type === "Property" && node.key.name === "turnedAway") found.push(text(node.value));
    const inside = node.type === "ClassDeclaration" ? node.superClass?.name === "AccountError" : isRefusal;
    for (const [key, value] of Object.entries(node)) if (key !== "parent") look(value, inside);
  };
  look(parseSync(file, source).program.body, false);
  return found.filter((each) => /\p{L}{2}/u.test(each) && !exempt.test(each));
}

const ofPrograms = new Set(
  "invalid_api_key malformed unreadable model_not_for_key address_not_allowed previous_response_not_found invalid_stream_id websocket_stream_limit_reached websocket_connection_limit_reached threads_not_kept not_found file_too_large text_too_long unsupported_encoding upgrade_required deadline_unmet budget_over_end_user_quota".split(
    " ",
  ),
);

describe("phrases", () => {
  test("both languages have the same, each in ICU's format, with values that the English has", () => {
    const [wanted, others] = [...catalogs.values()].map((catalog) => Object.keys(catalog));
    expect(others!).toEqual(wanted!);
    const english = [...sources.values(), ...options.flatMap(({ about, otherwise }) => [about, otherwise])]
      .join("\n")
      .replaceAll(/["`] \+\s+["`]/g, "")
      .replaceAll('\\"', '"');
    const pieces = wanted!.flatMap((key) => key.split(/\{\w+\}/)).filter((piece) => piece.trim().length > 3);
    expect(pieces.filter((piece) => !english.includes(piece.trim().replaceAll(/^, |\.$/g, "")))).toEqual([]);
    for (const [language, catalog] of catalogs) {
      for (const [key, text] of Object.entries(catalog)) {
        const names = [...key.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, 7]);
        expect(String(new IntlMessageFormat(text, language).format(Object.fromEntries(names)))).not.toBe("");
      }
    }
  });

  const refused = [...sources].filter(([file]) => met.test(file)).map(([file, source]) => refusedIn(file, source));
  const ofApi = Object.entries(refusals).flatMap(([name, { message }]) => (ofPrograms.has(name) ? [] : [message]));

  test("whatever refuses a person is said in German and Chinese", () => {
    const all = [...refused.flat(), ...ofApi.map((message) => message.replaceAll(/\{\w+\}/g, "7"))];
    expect(all.length).toBeGreaterThan(150);
    expect(all.filter((text) => german.say(text) === text || chinese.say(text) === text)).toEqual([]);
  });

  test("each option that the console shows says in German and Chinese what it is for", () => {
    const texts = options.flatMap(({ about, otherwise }) =>
      /[a-z] [a-z]/.test(otherwise) ? [about, otherwise] : [about],
    );
    expect(texts.length).toBeGreaterThan(80);
    expect(texts.filter((text) => german.say(text) === text || chinese.say(text) === text)).toEqual([]);
  });

  test.each([
    ["This request is larger", "This request is larger"],
    ["Ada@example.org is disabled.", "Ada@example.org ist gesperrt."],
    ["An account with the e-mail a@b.c exists already.", "Es gibt schon ein Konto mit der E-Mail-Adresse a@b.c."],
    ["ada@b.c is disabled and has 1 open requests; delete it when they ended.", /noch 1 laufende Anfrage\. Löschen/],
    ["Password must be a password of 8 to 200 characters.", /^Password: Erwartet wird ein Passwort mit 8 bis 200/],
    ["it cannot be reached: nothing listens at its address", "nicht erreichbar: Unter der Adresse lauscht nichts"],
  ])("%s", (text, wanted) => expect(german.say(text)).toMatch(wanted));

  test.each([
    ["plan pro, credit 5000, an operator", "Tarif pro, Guthaben 5.000, Betreiber"],
    [
      "invitation 3: plan pro, credit 0, for one address, in place of 2",
      "Einladung 3: Tarif pro, Guthaben 0, für eine Adresse, anstelle von 2",
    ],
    ["key 4: limit_day 100, models none", "Schlüssel 4: limit_day 100, models: keines"],
    ["applied: nodes, models; needs a restart: port", "angewendet: nodes, models; braucht einen Neustart: port"],
    ['"a, plan b"', '"a, plan b"'],
    ['key 4 to "a, plan b" in team', 'Schlüssel 4 heißt jetzt "a, plan b" in team'],
  ])("audit: %s", (text, wanted) => expect(german.sayEach(text)).toBe(wanted));

  test("long words of strangers take no time", () => {
    const begin = performance.now();
    german.sayEach("key key 7: , ; ".repeat(100_000));
    expect(performance.now() - begin).toBeLessThan(2_000);
  });
});
