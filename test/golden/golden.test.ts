// Every scenario's stream and reply in every dialect, byte for byte: texts as strings and as bytes, compared with
// `replies/`. TOLLGATE_GOLDEN=write rewrites those files; read what changed before it is committed.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRefusal } from "../../src/core/refusals.ts";
import { type ViewedEndpoint, viewOf } from "../fixtures/client-view.ts";
import { askIn, type AnyDialectName, dialectNames, dialects } from "./dialects.ts";
import { compact, indented } from "./indented.ts";
import { replyOf, streamOf, ways } from "./player.ts";
import { saidIn } from "./said.ts";
import { modelOf, type Scenario, scenarios } from "./scenarios.ts";

const folder = join(import.meta.dir, "replies");
const rewrites = process.env["TOLLGATE_GOLDEN"] === "write";

const isText = ({ steps }: Scenario): boolean => steps.every(({ kind }) => kind === "text" || kind === "silence");
const dialectsOf = (scenario: Scenario): readonly AnyDialectName[] =>
  scenario.only ?? (isText(scenario) ? [...dialectNames, "completions"] : dialectNames);
const cases = Object.entries(scenarios).flatMap(([name, scenario]) =>
  dialectsOf(scenario).map((dialect) => [name, dialect, scenario] as const),
);
const fileOf = (name: string, dialect: AnyDialectName, form: "sse" | "json"): string => `${name}.${dialect}.${form}`;

/** The committed text of a file, which is first made this one where files are rewritten. */
function golden(file: string, now: string): string {
  const path = join(folder, file);
  if (rewrites) writeFileSync(path, now);
  return existsSync(path) ? readFileSync(path, "utf8") : `there is no ${file}; TOLLGATE_GOLDEN=write makes it`;
}

if (rewrites) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
}

describe.each(cases)("%s, %s", (name, dialect, scenario) => {
  const ask = askIn(dialect, modelOf(scenario), scenario.bodies?.[dialect]);

  test("the stream", () => {
    const [strings, bytes] = ways.map((way) => streamOf(dialect, ask, scenario, way));
    expect(strings!).toBe(golden(fileOf(name, dialect, "sse"), strings!));
    expect(bytes!).toBe(strings!);
  });

  test("the reply", () => {
    const [strings, bytes] = ways.map((way) => replyOf(dialect, ask, scenario, way));
    const laidOut = indented(strings!);
    expect(compact(laidOut)).toBe(strings!);
    expect(`${laidOut}\n`).toBe(golden(fileOf(name, dialect, "json"), `${laidOut}\n`));
    expect(bytes!).toBe(strings!);
  });

  test("a client finds both whole, and the same in both", () => {
    const endpoint = dialects[dialect].endpoint as ViewedEndpoint;
    const streamed = viewOf(endpoint, true, streamOf(dialect, ask, scenario, "strings"));
    const whole = viewOf(endpoint, false, replyOf(dialect, ask, scenario, "strings"));
    expect([streamed.faults, whole.faults]).toEqual([[], []]);
    const fails = isRefusal(scenario.end);
    expect([streamed.complete, whole.complete]).toEqual([!fails, !fails]);
    expect([streamed.error === null, whole.error === null]).toEqual([!fails, !fails]);
    expect(streamed.text).toBe(saidIn(dialect, scenario, ask.format !== null));
    if (!fails) expect(streamed).toEqual(whole);
  });
});

test("every file belongs to a scenario", () => {
  const known = cases.flatMap(([name, dialect]) => [fileOf(name, dialect, "sse"), fileOf(name, dialect, "json")]);
  expect(readdirSync(folder).sort()).toEqual(known.sort());
});
