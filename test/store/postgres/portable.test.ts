// The books use nothing that engines lack which speak PostgreSQL's protocol and spread their rows over machines: CockroachDB,
// YugabyteDB, Aurora, AlloyDB.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dir, "../../../src/store/postgres");
const sources = [...new Bun.Glob("*.ts").scanSync(folder)].sort();
/** Asks each fact alone, and goes on without those that the engine does not know. */
const asksWhatMayBeUnknown = "server-facts.ts";

const lacking: readonly (readonly [string, RegExp])[] = [
  ["LISTEN and NOTIFY", /\b(?:UN)?LISTEN\b|\bNOTIFY\b|pg_notify/],
  ["advisory locks", /advisory/],
  ["sequences", /CREATE SEQUENCE|nextval|\b(?:BIG|SMALL)?SERIAL\b|AS IDENTITY/],
  ["triggers, rules, functions, procedures", /\b(?:TRIGGER|RULE|FUNCTION|PROCEDURE)\b|\bDO \$/],
  ["foreign keys", /\bREFERENCES\b|FOREIGN KEY|foreignKey|\.references\(/],
  ["places of rows", /\bctid\b|\bxmin\b|\bxmax\b/],
  ["tables without a log, temporary tables, table locks", /UNLOGGED|\bTEMP(?:ORARY)?\s+TABLE|LOCK TABLE/],
  ["rows that are passed over while others have them, cursors that outlive a transaction", /\bSKIP LOCKED\b|WITH HOLD/],
  ["MERGE, COPY", /\bMERGE INTO\b|\bCOPY\b/],
  ["extensions, full text, JSON operators", /EXTENSION|tsvector|to_tsquery|jsonb/],
];

test("the rooms are read", () => {
  expect(sources.length).toBeGreaterThan(8);
});

test.each(lacking)("%s are not used", (_what, pattern) => {
  const found = sources.filter((name) => {
    // Comments may say what is not used.
    const text = readFileSync(join(folder, name), "utf8").replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
    return name !== asksWhatMayBeUnknown && pattern.test(text);
  });
  expect(found).toEqual([]);
});
