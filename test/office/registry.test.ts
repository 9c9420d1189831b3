// What is true of every verb: help, completion and the doors rely on it.
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { commandOf } from "../../src/commands/verb-command.ts";
import { ways } from "../../src/commands/ways.ts";
import { allVerbs, findVerb } from "../../src/office/registry.ts";

const verbs = (await allVerbs()).flatMap(([, each]) => each);

test("each is found by its name, which is its alone", async () => {
  for (const verb of verbs) expect(await findVerb(verb.name)).toBe(verb);
  expect(new Set(verbs.map(({ name }) => name)).size).toBe(verbs.length);
  for (const name of ["", "accounts", "accounts nonsense", "nonsense", "toString"])
    expect(await findVerb(name)).toBeNull();
});

test("what the shell does besides is said of verbs that there are", () => {
  expect(Object.keys(ways).filter((name) => !verbs.some((verb) => verb.name === name))).toEqual([]);
});

describe.each(verbs.map((verb) => [verb.name, verb] as const))("%s", (_, verb) => {
  const fields = Object.entries<TSchema>(verb.input.properties);

  test("explains itself and its fields", () => {
    expect(verb.summary).toMatch(/^[A-Z][a-z]+ .*[^.]$/);
    if (verb.details !== undefined) expect(verb.details).toMatch(/^[A-Z].*\.$/);
    for (const [field, { description, placeholder, type }] of fields) {
      expect([field, description]).toEqual([field, expect.stringMatching(/^[A-Z].*\.$/)]);
      if (type !== "boolean") expect([field, placeholder]).toEqual([field, expect.stringMatching(/^\S+$/)]);
    }
    for (const word of verb.words) expect(verb.input.required).toContain(word);
  });

  test("has a flag or a word of its own for each field", () => {
    const { flags, words } = commandOf(verb);
    const hidden = fields.filter(([, { flag }]) => flag === null).length;
    const opposites = Object.keys(flags).filter((flag) => flag.startsWith("no-")).length;
    const shell = [...Object.keys(ways[verb.name]?.flags ?? {}), ...(verb.warning === undefined ? [] : ["yes"])];
    const common = ["config", "data", "json"];
    expect(Object.keys(flags).length + words.length).toBe(
      fields.length - hidden + opposites + shell.length + common.length,
    );
  });
});
