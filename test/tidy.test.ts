// Rules about the sources that no compiler knows: who may import whom, where dangerous calls may stand, what must not
// be in the repository. Every rule is also tried on a planted violation, so that it is known to bite.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { missing } from "./fixtures/optional.ts";
import { type Import, type NamedFunction, readSyntax } from "./fixtures/syntax.ts";

const root = join(import.meta.dir, "..");
type Source = Readonly<{ path: string; text: string }>;

/** Files by glob; git is not asked, because the tests also run if there is none. */
const files = (...patterns: string[]): Source[] =>
  patterns
    .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true })])
    .filter((path) => !/(?:^|\/)(?:node_modules|\.venv|\.routers|__pycache__|results)\/|^\.git$/.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

const sources = files("src/**/*.{ts,tsx}");

const importsOf = ({ path, text }: Source): readonly Import[] => readSyntax(path, text).imports;

// ---------------------------------------------------------------------------------------------------------------
// Who may import whom
// ---------------------------------------------------------------------------------------------------------------

/**
 * A layer is a folder of src or a file there, at any depth: the longest row that a path begins with. Everything may import core/,
 * which imports nothing. A row allows what is needed today and no more.
 */
const layers: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: ["dialects"], // a model's row may have fields of requests
  dialects: [],
  account: [],
  nodes: ["config"],
  notices: ["config"],
  tokens: [],
  files: [],
  // implements the journal, records, stored responses and rows of files that these declare
  store: ["account", "dialects", "files"],
  // reads HTTP responses with the strict parser of nodes, keeps the index of a searched folder in the store
  tools: ["config", "files", "nodes", "store", "tokens"],
  books: ["account", "config", "files", "store"], // puts account and store together
  telemetry: ["config"],
  bodies: ["dialects", "nodes", "tokens", "tools"], // reads a body, writes it as a node gets it, renders it to be counted
  batches: ["account", "bodies", "dialects", "files", "gateway", "http", "office", "telemetry"], // lines pass the spine
  gateway: ["account", "bodies", "dialects", "telemetry", "tools"],
  docs: [],
  http: ["bodies", "dialects", "docs", "files", "gateway", "telemetry", "tokens", "tools"],
  // a thread that serves clients has everything that a request meets
  threads: ["account", "config", "dialects", "gateway", "http", "nodes", "telemetry", "tokens", "tools"],
  office: ["account"],
  console: ["account", "http", "office"],
  "console/web": ["console"], // the browser's side, which takes the contract's types
  server: [
    ...["account", "books", "config", "console", "files", "http", "nodes", "notices", "store"],
    ...["office", "telemetry", "tools"],
  ],
  // what joins the parts of a server, each for its subject
  "server/console": ["account", "books", "config", "console", "docs", "http", "nodes", "notices", "office", "server"],
  "server/threads": ["books", "config", "dialects", "http", "nodes", "threads"],
  "server/process/warm-up": ["account", "dialects", "http", "nodes", "store", "tools"],
  "server/compose": [
    ...[
      "account",
      "batches",
      "bodies",
      "config",
      "console",
      "files",
      "http",
      "nodes",
      "server",
      "server/console",
      "books",
    ],
    ...["office", "server/threads", "store", "telemetry", "threads", "tokens", "tools"],
  ],
  commands: [
    ...["account", "commands/perform", "config", "console", "nodes", "notices", "office", "server"],
    ...["books", "store", "tools"],
  ],
  "commands/commands": ["commands", "commands/serve", "config", "office"], // lists all, and loads what is asked for
  "commands/perform": ["commands", "config", "office", "server"],
  "commands/serve": ["account", "commands", "config", "server", "server/compose", "server/process/warm-up", "store"],
  main: ["commands", "commands/commands"],
  build: ["console"],
};

function layerOf(path: string): string {
  const place = path.replace(/^src\/|\.tsx?$/g, "");
  const layer = Object.keys(layers)
    .filter((name) => place === name || place.startsWith(`${name}/`))
    .sort((a, b) => b.length - a.length)[0];
  if (layer === undefined) throw new Error(`${path} is in no layer: put it into a folder that the table knows`);
  return layer;
}

const isRelative = ({ path }: Import): boolean => path.startsWith(".");
const resolved = (source: Source, { path }: Import): string => normalize(join(dirname(source.path), path));

/** What a file imports of other layers. */
function arrowsOf(source: Source): { from: string; to: string; path: string }[] {
  const from = layerOf(source.path);
  return importsOf(source)
    .filter(isRelative)
    .map((found) => resolved(source, found))
    .filter((path) => path.startsWith("src/"))
    .map((path) => ({ from, to: layerOf(path), path }))
    .filter(({ to }) => to !== from && to !== "core");
}

const misplacedImports = (source: Source): string[] =>
  arrowsOf(source)
    .filter(({ from, to }) => !layers[from]!.includes(to))
    .map(({ from, to, path }) => `${source.path} (${from}) imports ${path} (${to})`);

describe("who may import whom", () => {
  test("every import follows the table", () => {
    expect(sources.length).toBeGreaterThan(20);
    expect(sources.flatMap(misplacedImports)).toEqual([]);
  });

  test("no row of the table allows what nothing needs: whoever takes the last import away narrows the row", () => {
    const used = new Set(sources.flatMap(arrowsOf).map(({ from, to }) => `${from} -> ${to}`));
    const allowed = Object.entries(layers).flatMap(([from, row]) => row.map((to) => `${from} -> ${to}`));
    expect(allowed.filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test.each([
    ["src/dialects/a.ts", 'import { x } from "../account/ledger.ts";'],
    ["src/account/a.ts", 'import type { Dialect } from "../dialects/dialect.ts";'],
    ["src/nodes/a.ts", 'import type {\n  A,\n  B,\n} from "../store/open.ts";'],
    ["src/core/types.ts", 'import { gateway } from "../gateway.ts";'],
    ["src/gateway.ts", 'import { x } from "./http/app.ts";'],
    ["src/console/web/a.tsx", 'import { x } from "../../account/keys.ts";'],
    ["src/console/a.ts", 'import { x } from "../store/open.ts";'],
    ["src/store/a.ts", 'import { x } from "../tools/page-text.ts";'],
    ["src/http/a.ts", 'import { x } from "../threads/main-thread-client.ts";'],
    ["src/server/a.ts", 'import { compose } from "./compose.ts";'],
    ["src/commands/a.ts", 'import { x } from "../server/console.ts";'],
  ])("the table forbids %s: %s", (path, text) => {
    expect(misplacedImports({ path, text })).toHaveLength(1);
  });

  test.each([
    ['import { x } from "X";', false],
    ['import x from "X";', false],
    ['import * as x from "X";', false],
    ['import x, { type Y } from "X";', false],
    ['import "X";', false],
    ['import {} from "X";', false],
    ['import data from "X" with { type: "json" };', false],
    ['import x = require("X");', false],
    ['import /* of */ {\n  x, // used\n  type Y,\n}\nfrom "X";', false],
    ['const text = `${(await import("X")).x}`;', false],
    ['const { x } = await import("X");', false],
    ["const { x } = await import(`X`);", false],
    ['const x = require("X");', false],
    ['new Worker(new URL("X", import.meta.url));', false],
    ['export { x } from "X";', false],
    ['export * from "X";', false],
    ['export * as x from "X";', false],
    ['export { x, type Y } from "X";', false],
    ['import type { Y } from "X";', true],
    ['import type Y from "X";', true],
    ['import type * as Y from "X";', true],
    ['import { type Y, type Z } from "X";', true],
    ['let y: import("X").Y;', true],
    ['let y: import("X").Y<import("X").Z>;', true],
    ['type Y = typeof import("X");', true],
    ['export type { Y } from "X";', true],
    ['export type * from "X";', true],
    ['export { type Y } from "X";', true],
    ['declare module "X" {}', true],
  ])("every form of an import is seen: %s", (form, isType) => {
    const found = importsOf({ path: "src/account/a.ts", text: form.replaceAll("X", "../store/schema.ts") });
    expect(new Set(found.map((each) => JSON.stringify(each)))).toEqual(
      new Set([JSON.stringify({ path: "../store/schema.ts", isType })]),
    );
  });

  test("what only looks like an import is none", () => {
    const text = '// import "./a.ts";\nconst text = `import "./b.ts"`;\n/* import("./c.ts") */\nload("./d.ts");';
    expect(importsOf({ path: "src/account/a.ts", text })).toEqual([]);
  });

  test("core may be imported from everywhere, siblings of a folder by each other", () => {
    const text = 'import { assert } from "../core/assert.ts";\nimport { x } from "./b.ts";\nassert(x, "");';
    expect(misplacedImports({ path: "src/account/a.ts", text })).toEqual([]);
  });
});

/** Files that reach each other by imports, each group sorted; a file alone is none. Tarjan's algorithm. */
function circlesOf(files: readonly Source[], counts: (found: Import) => boolean = () => true): string[][] {
  const imports = new Map(
    files.map((source) => [
      source.path,
      importsOf(source)
        .filter((found) => isRelative(found) && counts(found))
        .map((found) => resolved(source, found)),
    ]),
  );
  const indexes = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (path: string): void => {
    const index = indexes.size;
    indexes.set(path, index);
    lowest.set(path, index);
    stack.push(path);
    for (const next of imports.get(path)!) {
      if (!imports.has(next)) continue;
      if (!indexes.has(next)) {
        visit(next);
        lowest.set(path, Math.min(lowest.get(path)!, lowest.get(next)!));
      } else if (stack.includes(next)) lowest.set(path, Math.min(lowest.get(path)!, indexes.get(next)!));
    }
    if (lowest.get(path) !== index) return;
    const group = stack.splice(stack.indexOf(path)).sort();
    if (group.length > 1) circles.push(group);
  };
  for (const path of imports.keys()) if (!indexes.has(path)) visit(path);
  return circles.sort((a, b) => b.length - a.length || (a[0]! < b[0]! ? -1 : 1));
}

/** Circles of types that are there, by folder. A new one fails; whoever opens one takes its row out. */
const knownCircles: Readonly<Record<string, readonly string[]>> = {
  "src/account/money/": ["balance-line", "end-users", "ledger", "loaded-account"],
  "src/store/postgres/": ["decide", "rows"],
};

describe("circles of imports", () => {
  const isValue = ({ isType }: Import): boolean => !isType;

  test("no files need each other to run", () => {
    expect(circlesOf(sources, isValue)).toEqual([]);
  });

  test("none of types is new, and none of the known ones grows", () => {
    const known = Object.entries(knownCircles).map(([folder, names]) => names.map((name) => `${folder}${name}.ts`));
    expect(circlesOf(sources)).toEqual(known);
  });

  test("one of types alone is found, and files that only import each other's imports are none", () => {
    const circle = [
      { path: "src/core/a.ts", text: 'import { type B } from "./b.ts";' },
      { path: "src/core/b.ts", text: 'export type { C } from "./c.ts";' },
      { path: "src/core/c.ts", text: 'let a: import("./a.ts").A;' },
    ];
    const aside = { path: "src/core/d.ts", text: 'import { b } from "./b.ts";\nimport { c } from "./c.ts";' };
    expect(circlesOf([aside, ...circle])).toEqual([circle.map(({ path }) => path)]);
    expect(circlesOf([aside, ...circle], isValue)).toEqual([]);
    expect(circlesOf([aside, ...circle.slice(0, 2)])).toEqual([]);
  });
});

// ---------------------------------------------------------------------------------------------------------------
// How long a function may be
// ---------------------------------------------------------------------------------------------------------------

const functionLinesMax = 70; // TigerBeetle's bound: what fits on a screen

/** Functions that are longer, with the lines that they have at most: by file and name, so that a folder may move. */
const longFunctions: Readonly<Record<string, number>> = {
  "accounting.ts openAccounting": 85,
  "app.ts startServer": 199,
  "compose.ts openDoors": 156,
  "compose.ts openGateway": 120,
  "console.ts makeConsole": 107,
  "gauges.ts gaugesOf": 93,
  "ledger-checks.ts ledgerChecks": 131,
  "postgres-accounting.ts openPostgresAccounting": 83,
  "usage-index.ts prepare": 127,
  "warm-up.ts privateGateway": 77,
};

const functionsOver = (files: readonly Source[]): NamedFunction[] =>
  files.flatMap(({ path, text }) =>
    readSyntax(path, text)
      .functions.filter(({ lines }) => lines > functionLinesMax)
      .map(({ name, lines }) => ({ name: `${basename(path)} ${name}`, lines })),
  );

describe("how long a function may be", () => {
  test("none is new above the bound, and none of the known ones grows", () => {
    const grown = functionsOver(sources).filter(({ name, lines }) => lines > (longFunctions[name] ?? 0));
    expect(grown).toEqual([]);
  });

  test("those that were split are off the list", () => {
    const over = new Set(functionsOver(sources).map(({ name }) => name));
    expect(Object.keys(longFunctions).filter((name) => !over.has(name))).toEqual([]);
  });

  test.each([
    ["function a() {", "}", "a"],
    ["export default function () {", "}", "(no name)"],
    ["const b = async () => {", "};", "b"],
    ["class C { #d = () => {", "} }", "C.#d"],
    ["class C { static async *e() {", "} }", "C.e"],
    ["class C { get f() {", "return 1; } }", "C.f"],
    ["const g = { h() {", "} };", "h"],
    ["const i = { j: function () {", "} };", "j"],
    ["call(() => {", "});", "call"],
    ["this.k.call(1, function () {", "});", "this.k.call"],
    ["const l = call(() => {", "});", "call"],
  ])("every form of a function is seen: %s", (first, last, name) => {
    const of = (lines: number) => [{ path: "src/core/a.ts", text: `${first}${"\n".repeat(lines - 1)}${last}` }];
    expect(functionsOver(of(functionLinesMax + 1))).toEqual([{ name: `a.ts ${name}`, lines: functionLinesMax + 1 }]);
    expect(functionsOver(of(functionLinesMax))).toEqual([]);
  });
});

// ---------------------------------------------------------------------------------------------------------------
// Where limits stand
// ---------------------------------------------------------------------------------------------------------------

/** Names in the code of each source. */
const wordsOf = (sources: readonly Source[]): ReadonlyMap<string, ReadonlySet<string>> =>
  new Map(sources.map(({ path, text }) => [path, new Set(withoutComments(text).match(/\b\w+\b/g))]));

/**
 * Limits of a limits.ts that one file alone uses, or of core/ that one room alone does: they belong there. Those that a relation
 * holds to others stay.
 */
function lonelyLimits({ path, text }: Source, words: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const code = withoutComments(text);
  const placeOf = (reader: string): string => (path.startsWith("src/core/") ? reader.split("/")[1]! : reader);
  return [...code.matchAll(/^export const (\w+)/gm)].flatMap(([, name = ""]) => {
    const readers = [...words].filter(([reader, found]) => reader !== path && found.has(name));
    const isShared = new Set(readers.map(([reader]) => placeOf(reader))).size > 1;
    return isShared || code.match(new RegExp(`\\b${name}\\b`, "g"))!.length > 1 ? [] : [`${path}: ${name}`];
  });
}

describe("where limits stand", () => {
  test("a limits.ts has what several files use, and that of core/ what several rooms use", () => {
    // store/postgres/ has on one page all the times for which gateways wait for one another
    const shared = sources.filter(({ path }) => path.endsWith("/limits.ts") && !path.startsWith("src/store/postgres/"));
    expect(shared.length).toBeGreaterThan(2);
    const words = wordsOf(sources);
    expect(shared.flatMap((source) => lonelyLimits(source, words))).toEqual([]);
  });

  test("one that a single room reads is found, and one that another is held to is not", () => {
    const text = "export const aMs = 1;\nexport const bMs = 2;\nassert(bMs > 1);";
    const readers = wordsOf(["a", "b"].map((file) => ({ path: `src/http/${file}.ts`, text: "x(aMs, bMs);" })));
    const one = new Map([...readers].slice(1));
    expect(lonelyLimits({ path: "src/core/limits.ts", text }, readers)).toEqual(["src/core/limits.ts: aMs"]);
    expect(lonelyLimits({ path: "src/http/limits.ts", text }, readers)).toEqual([]);
    expect(lonelyLimits({ path: "src/http/limits.ts", text }, one)).toEqual(["src/http/limits.ts: aMs"]);
  });
});

// ---------------------------------------------------------------------------------------------------------------
// Dangerous things have one home
// ---------------------------------------------------------------------------------------------------------------

type Home = Readonly<{ what: string; sign: RegExp; home: RegExp; example: string }>;

const homes: readonly Home[] = [
  { what: "SQLite", sign: /["']bun:sqlite["']|["']drizzle-orm/, home: /^src\/store\//, example: 'from "bun:sqlite"' },
  { what: "Elysia", sign: /["']elysia["']/, home: /^src\/(http|threads|console)\//, example: 'from "elysia"' },
  {
    what: "the client of MCP servers",
    sign: /["']@modelcontextprotocol\//,
    home: /^src\/tools\/mcp\//,
    example: 'await import("@modelcontextprotocol/client")',
  },
  {
    what: "the client of OpenTelemetry",
    sign: /["']@opentelemetry\//,
    home: /^src\/telemetry\/tracer\.ts$/,
    example: 'await import("@opentelemetry/api")',
  },
  {
    what: "the clock",
    sign: /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    home: /^src\/(core\/clock\.ts|console\/web\/clock\.ts)$/,
    example: "const now = Date.now();",
  },
  {
    what: "outgoing connections",
    sign: /(?<![.\w])fetch\(|\bBun\.connect\b|["']node:(?:net|http|https|tls|dgram)["']/,
    // commands speak to a running server over a unix socket, and relays to the main thread; the browser's side to the server that it came from;
    // `tollgate login` the gateway that its user named;
    // sign-in asks the identity provider that the operator named, within its own limits of time and size; webhooks are the operator's, too, and so are the servers whose certificates are looked at
    home: /^src\/(nodes\/|tools\/|server\/control-socket\.ts$|commands\/login\.ts$|threads\/pass-on\.ts$|console\/oidc\/identity-provider\.ts$|notices\/(post|certificate)\.ts$|console\/web\/(request|text-files|pages\/playground\/stream)\.ts$)/,
    example: "await fetch(url)",
  },
  {
    what: "servers",
    sign: /\bBun\.(?:serve|listen)\b/,
    home: /^src\/(http\/|nodes\/demo\/|threads\/relay-app\.ts$|server\/control-socket\.ts$)/,
    example: "Bun.serve({})",
  },
  {
    what: "the end of the process",
    sign: /\bprocess\.(?:exit|abort|kill|reallyExit)\b/,
    home: /^src\/(main\.ts$|build\.ts$|commands\/|server\/)/,
    example: "process.exit(1)",
  },
  {
    what: "the environment",
    sign: /\bprocess\.env\b|\bBun\.env\b/,
    // a bundle sets what its code reads; the console's examples for programs name a variable
    home: /^src\/(main\.ts$|build\.ts$|commands\/|server\/|console\/bundle\.ts$|console\/web\/pages\/)/,
    example: 'process.env["HOME"]',
  },
  {
    what: "parsing of untrusted JSON",
    sign: /\bJSON\.parse\(|\.json\(\)/,
    // a client's body, our own errors as examples, a node's events, our own threads' messages, the control socket, the operator's catalog; the
    // rank files that come with the program
    home: /^src\/(batches\/|core\/catalog\.ts$|core\/outside-json\.ts$|bodies\/body-json\.ts$|http\/documentation\.ts$|http\/openapi\/description\.ts$|nodes\/|store\/|telemetry\/traced-content\.ts$|threads\/|dialects\/|tools\/|tokens\/sequences\.ts$|server\/|commands\/|console\/)/,
    example: "JSON.parse(body)",
  },
  {
    what: "parsing of JSON that nobody looked through",
    // string literals are what a node's event was made of
    sign: /\bJSON\.parse\((?!(?:\w+\.)*literal\)|literals\[|`"|joined\(block\.literals\)|\(this\.#text\.empty)/,
    // what looks through it (lines of batches, once); what we wrote ourselves; the operator's; browsers
    home: /^src\/(batches\/|core\/catalog\.ts$|core\/outside-json\.ts$|bodies\/body-json\.ts$|nodes\/json\.ts$|dialects\/(stored-responses|chat\/encoder|completions\/logprobs)\.ts$|tools\/format\/answer-validator\.ts$|http\/documentation\.ts$|http\/openapi\/description\.ts$|store\/|threads\/|tokens\/sequences\.ts$|server\/|commands\/|console\/web\/)/,
    example: "JSON.parse(text)",
  },
  {
    what: "texts as HTML",
    sign: /\b(?:innerHTML|outerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|document\.write)\b/,
    home: /^$/,
    example: "element.innerHTML = text",
  },
  {
    what: "evaluation of text",
    sign: /\beval\(|\bnew Function\(/,
    home: /^$/,
    example: 'new Function("a")',
  },
];

/** Comments and strings may speak of what code may not do. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");

/** What it holds are programs for the readers of the API reference, as texts. */
const samples = "src/http/openapi/code-samples.ts";

const strays = ({ path, text }: Source, { what, sign, home }: Home): string[] =>
  path !== samples && !home.test(path) && sign.test(withoutComments(text)) ? [`${path}: ${what}`] : [];

describe("dangerous things have one home", () => {
  test.each(homes.map((home) => [home.what, home] as const))("%s", (_, home) => {
    expect(sources.flatMap((source) => strays(source, home))).toEqual([]);
    expect(strays({ path: "src/account/planted.ts", text: `\n${home.example}\n` }, home)).toHaveLength(1);
    expect(strays({ path: "src/account/planted.ts", text: `// ${home.example}\n` }, home)).toEqual([]);
  });
});

// ---------------------------------------------------------------------------------------------------------------
// What must not be in the repository
// ---------------------------------------------------------------------------------------------------------------

const forbidden: readonly (readonly [what: string, sign: RegExp, example: string])[] = [
  ["unfinished work", /\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b/, `// ${"TO"}${"DO"}: later`],
  ["a machine's own path", /(?<![\w.])\/(?:work|root|home\/\w+|Users\/\w+)\//, `"/${"work"}/data"`],
  [
    "a private address of a registry",
    /"resolved":\s*"https?:\/\/(?!registry\.npmjs\.org\/)/,
    `"resolved": "http${"s"}://npm.corp/x"`,
  ],
  ["a skipped or focused test", /\b(?:test|describe|it)\.(?:only|todo)\(/, `test.${"only"}("x")`],
  ["a literal that is spread where it could stand", /\.\.\.\{/, `{ ...${"{"} a } }`],
  ["an untyped escape", /@ts-(?:ignore|nocheck)\b/, `// @ts-${"ignore"}`],
];

const everything = files(
  "*",
  "{src,test,bench,data,.ci}/**/*.{ts,mjs,md,json,toml,py,css,html,svg,conf,txt}",
  ".ci/*",
  ".github/**/*.{md,yml}",
).filter(
  // recorded requests of real clients are as they were
  ({ path }) => !path.startsWith("test/fixtures/client-captures/") && !/\.(?:gguf|png|ico|woff2)$/.test(path),
);

describe("what must not be in the repository", () => {
  test.each(forbidden)("%s", (_, sign, example) => {
    expect(everything.filter(({ text }) => sign.test(text)).map(({ path }) => path)).toEqual([]);
    expect(sign.test(example)).toBe(true);
  });

  test("the license is the one that package.json names", () => {
    const named = (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { license: string }).license;
    const text = readFileSync(join(root, "LICENSE"), "utf8");
    expect(text).toStartWith(`${named} License\n\nCopyright (c) 2026 Tollgate contributors\n`);
  });

  // npm warns of each package that does not take the Node that runs it: of those that the program needs, and of all.
  test.each([
    ...(["20.6.0", "22.0.0", "24.0.0"] as const).map((node) => [node, "needed to run", false] as const),
    ...(["20.19.0", "22.13.0", "24.0.0"] as const).map((node) => [node, "of a checkout", true] as const),
  ])("Node %s is taken by every package %s", (node, _, withDevelopment) => {
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, { engines?: { node?: string }; dev?: boolean }>;
    };
    const refusing = Object.entries(packages)
      .filter(([, { dev }]) => withDevelopment || dev !== true)
      .flatMap(([path, { engines }]) =>
        engines?.node === undefined || Bun.semver.satisfies(node, engines.node)
          ? []
          : [`${path} wants ${engines.node}`],
      );
    expect(refusing).toEqual([]);
  });

  const hasGit = existsSync(join(root, ".git")) && Bun.which("git") !== null;
  if (!hasGit) console.log("skip: what stands at the top of the repository is not looked at (no git here)");
  test.skipIf(!hasGit)("nothing stands at its top that does not belong there", () => {
    const { stdout } = Bun.spawnSync(["git", "ls-files"], { cwd: root });
    const atTop = new Set(stdout.toString().match(/^[^/\n]+/gm));
    expect([...atTop].sort()).toEqual([
      ...[".ci", ".github", ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "bench", "bunfig.toml", "data"],
      ...["package-lock.json", "package.json", "src", "test", "tsconfig.json"],
    ]);
  });

  const withoutLinter = missing(
    "actionlint",
    Bun.which("actionlint") !== null,
    ".ci/run builds it where there is Go",
    false,
  );
  test.skipIf(withoutLinter)("the workflows are taken by their linter", () => {
    const workflows = files(".github/workflows/*.yml");
    const linted = Bun.spawnSync(["actionlint", "-shellcheck=", ...workflows.map(({ path }) => path)], { cwd: root });
    expect([linted.exitCode, linted.stdout.toString()]).toEqual([0, ""]);
  });

  test.skipIf(!hasGit)("no link is committed: it would lead to a place on somebody's machine", () => {
    const { stdout } = Bun.spawnSync(["git", "ls-files", "--stage"], { cwd: root });
    expect(stdout.toString().match(/^120000 .*$/gm) ?? []).toEqual([]);
  });

  test("every source and test file says in its first line what it is for", () => {
    const silent = [...sources, ...files("test/**/*.ts", "bench/**/*.ts")].filter(
      ({ text }) => !/^(?:#!.*\n)?(?:\/\/|\/\*\*?) ?\S/.test(text),
    );
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  // A stream that has ended answers each read at once: a loop that does not look for its end never gives way, and takes
  // with it all of the process's tests and their limits of time.
  test("no test reads a stream without looking for its end", () => {
    const endless = files("test/**/*.ts").filter(({ text }) =>
      /\(await [^\n]*\.read\(\)\)\.value, \{ stream/.test(text),
    );
    expect(endless.map(({ path }) => path)).toEqual([]);
  });

  test("a test that waits for the end of a program gives it a limit of time", () => {
    const waiting = files("test/**/*.ts").filter(
      ({ path, text }) => path !== "test/fixtures/children.ts" && /stderr\.text\(\), [\w.]+\.exited\]/.test(text),
    );
    expect(waiting.map(({ path }) => path)).toEqual([]);
  });

  test("no file or folder is called utils, helpers, misc or common", () => {
    const vague = everything.filter(({ path }) =>
      /(?:^|\/)(?:utils?|helpers?|misc|common|shared)(?:\/|\.\w+$)/.test(path),
    );
    expect(vague.map(({ path }) => path)).toEqual([]);
  });

  test("no file only hands on the exports of others", () => {
    const barrels = sources.filter(({ text }) => {
      const lines = withoutComments(text)
        .split("\n")
        .filter((line) => line.trim() !== "");
      return lines.length > 0 && lines.every((line) => /^export (?:type )?(?:\*|\{.*\}) .*from /.test(line));
    });
    expect(barrels.map(({ path }) => path)).toEqual([]);
  });
});
