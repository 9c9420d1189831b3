// Edits of a configuration file: one thing is another, all else stays as it was written, and secrets stay where they are.
import { describe, expect, test } from "bun:test";
import { CommandError } from "../../src/core/expected-error.ts";
import { join } from "node:path";
import { changedFile, withoutSecrets } from "../../src/config/file-changes.ts";
import { statementsOf, TomlFile, valueAt } from "../../src/config/toml-edit.ts";

/** The guide's file with every key of every table. */
const sample = await Bun.file(join(import.meta.dir, "../../src/docs/guide/sample.toml")).text();

const odd = `# first
title."a=b" = 1 # dotted
[[nodes]] # the first
name = "a" # its name
text = """
[nodes]
name = "none" # no comment
"""
aliases = [
  "one",   # first
  # between
  "two"
]
  [nodes.models] # indented
  "x#y" = 'z' # map
# of b
[[nodes]]
name = "b"
# slots = 8

[log]
level = "info"`;

const texts = [
  ["the guide's file", sample],
  ["an odd file", odd],
  ["an odd file of Windows", odd.replaceAll("\n", "\r\n")],
] as const;

describe.each(texts)("in %s", (_, text) => {
  const lines = text.split(/\r?\n/);
  const keys = statementsOf(lines).filter(({ value }) => value !== null);

  test("another value changes the lines of its own statement alone, and its comment stays", () => {
    expect(keys.length).toBeGreaterThan(5);
    for (const {
      path,
      lines: [from, to],
      value,
    } of keys) {
      const file = new TomlFile(text);
      file.set(path, "another");
      const next = file.text.split(/\r?\n/);
      expect(next.slice(0, from)).toEqual(lines.slice(0, from));
      expect(next.slice(from + 1)).toEqual(lines.slice(to));
      expect(next[from]).toContain('"another"');
      expect(next[from]).toEndWith(lines.slice(from, to).join("\n").slice(value![1]));
      expect(file.text.includes("\r\n")).toBe(text.includes("\r\n"));
    }
  });

  test("a key that is taken out takes its lines along, one that comes stands in its table", () => {
    for (const {
      path,
      lines: [from, to],
    } of keys) {
      const file = new TomlFile(text);
      file.set(path, undefined);
      expect(file.text.split(/\r?\n/)).toEqual(lines.toSpliced(from, to - from));
      if (path[0] === "title" || path[2] === "models") continue; // they would stand elsewhere
      const before = valueAt(Bun.TOML.parse(text), path);
      file.set(path, before);
      expect(new TomlFile(file.text).values).toEqual(Bun.TOML.parse(text) as object as never);
    }
  });

  test("a row that comes and goes leaves no trace", () => {
    const tables = Object.entries(Bun.TOML.parse(text)).filter(([, rows]) => Array.isArray(rows));
    expect(tables.length).toBeGreaterThan(0);
    for (const [table, rows] of tables) {
      const file = new TomlFile(text);
      const next = (rows as readonly unknown[]).length;
      file.set([table, next], { name: "new", models: { "*": "a.b" } });
      file.set([table, next], undefined);
      expect(file.text.trimEnd().replaceAll("\r\n", "\n")).toBe(lines.join("\n").trimEnd());
    }
  });
});

test("comments stay with what they are about", () => {
  const file = new TomlFile(odd);
  file.set(["nodes", 0, "aliases"], ["two", "three"]);
  expect(file.text).toContain('aliases = [\n  # between\n  "two",\n  "three",\n]\n');
  file.set(["nodes", 0, "models"], { "x#y": "z", more: "m" });
  expect(file.text).toContain(`  "x#y" = 'z' # map\n  more = "m"\n# of b\n`);
  file.set(["nodes", 0], undefined);
  expect(file.text).toBe(
    '# first\ntitle."a=b" = 1 # dotted\n# of b\n[[nodes]]\nname = "b"\n# slots = 8\n\n[log]\nlevel = "info"',
  );
  file.set(["nodes", 0], undefined);
  expect(file.text).toBe('# first\ntitle."a=b" = 1 # dotted\n\n[log]\nlevel = "info"');
});

test("what cannot be said in the file's form is refused, and nothing changes", () => {
  const file = new TomlFile("server.port = 1\n[nodes]\nshare_prefix_cache = true\n");
  expect(() => file.set(["server", "host"], "h")).toThrow("edit the file itself");
  const nodes = new TomlFile("[nodes]\nshare_prefix_cache = true\n");
  expect(() => nodes.set(["nodes", 0], { name: "a" })).toThrow();
});

const shop = `[server]
port = 1
[[nodes]]
name = "gpu.1"
url = "http://a/v1"
api_key = "sk-secret" # sk
# api_key = "sk-old"
# constructor = "none"
[[models]]
id = "a=b"
[[webhooks]]
name = "w"
url = "https://secret.example.org"
[[managed_settings]]
[managed_settings.settings.env]
TOKEN = "sk-of-a-program"
[[nodes]]
name = "run"
command = ["vllm", "{port}"]
env = { TOKEN = "sk-variable" }
`;

const changes = [
  [
    { set: ['models."a=b".price={ input = 1 }', "nodes.gpu.1.slots=auto"] },
    'models.a=b.price from nothing to { input = 1 }; nodes.gpu.1.slots from nothing to "auto"',
  ],
  [{ set: ["nodes.gpu.1.api_key=sk-new"] }, "nodes.gpu.1.api_key changed"],
  [
    { set: ["nodes.gpu.1.api_key=", "nodes.gpu.1.url=http://b"] },
    'nodes.gpu.1.api_key changed; nodes.gpu.1.url from "http://a/v1" to "http://b"',
  ],
  [
    {
      add: ["plans.gold"],
      set: ["plans.gold.priority=interactive", "queue.max_wait_seconds=9"],
      remove: ["nodes.run"],
    },
    '+ plans.gold; plans.gold.priority from nothing to "interactive"; queue.max_wait_seconds from nothing to 9; - nodes.run',
  ],
  [
    { set: ['nodes.gpu.1.name="c"', "nodes.gpu.1.slots=2"] },
    'nodes.gpu.1.name from "gpu.1" to "c"; nodes.gpu.1.slots from nothing to 2',
  ],
] as const;
test.each(changes)("%j is told without secrets", (asked, words) => {
  const { text, what } = changedFile(shop, asked, true);
  expect(what.join("; ")).toBe(words);
  const shown = withoutSecrets(text);
  expect(shown).not.toMatch(/sk-|secret\.example/);
  expect(withoutSecrets(shop)).not.toMatch(/sk-|secret\.example/);
});

const refused = [
  ["nodes.gpu.1.api_key_env=STRIPE_KEY", "nodes: api_key_env is set on the server's machine alone"],
  ['nodes.gpu.1.command=["sh"]', "nodes: command is set on the server's machine alone"],
  ['catalog.file="/etc/passwd"', "catalog: file is set on the server's machine alone"],
  ["metrics.token=sk-1", "metrics is changed on the server's machine alone"],
  ["server.host=0.0.0.0", "server is changed on the server's machine alone"],
  ["nodes.gpu.2.slots=1", 'no [[nodes]] has the name "gpu.2"; did you mean gpu.1?'],
  ["nodes.gpu.1.api_ky=sk-1", 'nodes has no key "api_ky"; did you mean api_key?'],
  ["nodes.gpu.1.__proto__=1", 'nodes has no key "__proto__"'],
  ["nods.gpu.1.slots=1", 'there is no table "nods"; did you mean nodes?'],
  ["nodes.slots=1", "a change must be such as nodes.NAME.KEY=VALUE"],
  ['nodes."\\q".slots=1', "no [[nodes]] has the name"],
  ["", 'there is no table ""'],
] as const;
test.each(refused)("from a browser or by a token, %s is refused without its value", (set, words) => {
  expect(() => changedFile(shop, { set: [set] }, true)).toThrow(words);
});

test("from a browser or by a token, a key does not go to another address unseen", () => {
  const faultsOf = (...set: string[]) => changedFile(shop, { set }, true).faults.map(({ path }) => path.join("."));
  const evil = "nodes.gpu.1.url=http://evil.example.org";
  expect(faultsOf(evil)).toEqual(["nodes.0.api_key"]);
  expect(faultsOf("nodes.gpu.1.slots=2", evil)).toEqual(["nodes.0.api_key"]);
  expect(faultsOf(evil, "nodes.gpu.1.api_key=sk-own")).toEqual([]);
});

test("dates elsewhere do not matter, and a file that is no TOML is the operator's to mend", () => {
  const dated = "[queue]\nmax_wait_seconds = 5\nsince = 1979-05-27T07:32:00Z\n";
  expect(changedFile(dated, { set: ["queue.max_wait_seconds=6"] }, true).text).toBe(dated.replace("= 5", "= 6"));
  expect(() => changedFile("[queue\n", { set: ["queue.max_wait_seconds=6"] }, true)).toThrow(CommandError);
});

test("whoever is on the machine may change all of it", () => {
  const set = ["server.host=0.0.0.0", "nodes.gpu.1.url=http://b", 'nodes.run.command=["sh", "{port}"]'];
  expect(changedFile(shop, { set }, false).what).toHaveLength(3);
});

test("a list of 20,000 lines with comments and brackets is edited in linear time", () => {
  const names = Array.from({ length: 20_000 }, (_, at) => `a]{${at}`);
  const text = `[[models]]\nid = "m"\naliases = [\n${names.map((name) => `  "${name}", # # ] of it\n`).join("")}]\n`;
  const set = [`models.m.aliases=${JSON.stringify([...names.slice(1), "new"])}`, "models.m.context=9000"];
  const next = changedFile(text, { set }, true).text;
  expect(next).toBe(text.replace(/ {2}.*\n/, "").replace(/\]\n$/, '  "new",\n]\ncontext = 9000\n'));
  expect(withoutSecrets(next)).toBe(next);
}, 20_000);
