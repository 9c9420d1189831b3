// The table of routes at the top of the console's contract lists exactly the routes that exist, with what they take.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as api from "../../src/console/api.ts";
import { ConsoleSite } from "./console-site.ts";

const source = readFileSync(join(import.meta.dir, "../../src/console/api.ts"), "utf8");
const rows = [...source.matchAll(/^\/\/ {3}(GET|POST) +\/console\/api(\S+) +(?:(\w+) +)?-> (\w+)/gm)].map(
  ([, method, path, takes = "", gives]) => ({ method, path, takes, gives }),
);

test("the table of routes is what the router has", () => {
  const { routes } = new ConsoleSite();
  const nameOf = new Map<unknown, string>(Object.entries(api).map(([name, schema]) => [schema, name]));
  const known = routes.map(({ method, path, body, query }) => {
    const takes = body ?? query;
    return { method, path, takes: takes === null ? "" : nameOf.get(takes) };
  });
  const sorted = (list: readonly object[]) => list.map((row) => JSON.stringify(row)).sort();
  expect(sorted(rows.map(({ method, path, takes }) => ({ method, path, takes })))).toEqual(sorted(known));
});

test("what a route answers in JSON is a type of the contract", () => {
  const types = new Set([...source.matchAll(/^export (?:type|const) (\w+)/gm)].map(([, name]) => name));
  const texts = ["text", "the"]; // a stream or a file
  expect(rows.map(({ gives }) => gives!).filter((gives) => !types.has(gives) && !texts.includes(gives))).toEqual([]);
});
