// What a start loads. A kilobyte of sources costs 0.17 ms of a start, and what is loaded stays in memory: a room that only
// some servers or some requests need is loaded when they do.
import { expect, setDefaultTimeout, test } from "bun:test";
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import { run, temporaryFolder } from "../commands/program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const root = join(import.meta.dir, "../..");
/** In all, with room for a few files more. Rather than raise it, see what a start does not need. */
const sourcesMaxBytes = 1_890_000;

test("a start on a ledger of this version loads what the first request needs, and little else", async () => {
  using folder = temporaryFolder();
  await run(["accounts", "create", "first@example.com", "--data", folder.path]);
  const program = [process.execPath, "--preload", join(import.meta.dir, "list-loaded.ts"), join(root, "src/main.ts")];
  const words = ["serve", "--port", "0", "--data", folder.path, "--node", "http://127.0.0.1:9/v1"];
  const { stdout, stderr } = await run(words, { program });
  expect(stderr).not.toContain("error:");
  const { modules, compiled } = JSON.parse(stdout) as { modules: string[]; compiled: number };
  expect(compiled).toBe(0); // 5 ms each: see compileBodySchemas
  const loaded = modules.map((file) => relative(root, file));

  const packages = loaded.flatMap((file) => /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []);
  // Elysia and what it needs: no drizzle, which only the making of a ledger and PostgreSQL need
  expect([...new Set(packages)].toSorted()).toEqual([
    "@sinclair/typebox",
    "cookie",
    "elysia",
    "exact-mirror",
    "fast-decode-uri-component",
    "memoirist",
  ]);
  const within = (room: string) =>
    loaded
      .filter((file) => file.startsWith(`src/${room}/`))
      .map((file) => file.slice(room.length + 5))
      .toSorted();
  expect({
    console: within("console"),
    docs: within("docs"),
    threads: within("threads"),
    demo: within("nodes/demo"),
    mcp: within("tools/mcp"),
    search: within("tools/search"),
    postgres: within("store/postgres"),
    office: within("office"),
  }).toEqual({
    console: ["assets.ts", "embedded.ts", "lazy-console.ts"],
    docs: [],
    threads: ["followed-nodes.ts"],
    demo: [],
    mcp: [],
    search: ["search-provider.ts"],
    postgres: ["place-of-url.ts"],
    office: ["reloaded.ts"],
  });
  const elsewhere = [
    "store/ledger/schema",
    "server/console",
    "server/stopped-books",
    "tools/tool-loop",
    "telemetry/tracer",
  ];
  expect(elsewhere.filter((file) => loaded.includes(`src/${file}.ts`))).toEqual([]);

  const sources = loaded.filter((file) => file.startsWith("src/"));
  expect(sources).toContain("src/gateway.ts");
  expect(sources.reduce((sum, file) => sum + statSync(join(root, file)).size, 0)).toBeLessThan(sourcesMaxBytes);
});
