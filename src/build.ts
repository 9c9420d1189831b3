// Builds the single binary dist/tollgate: everything but the system's C library is inside. With `--target NAME`, one of
// Bun's targets such as bun-linux-arm64 or bun-darwin-arm64, it is dist/tollgate-linux-arm64 for another machine; its
// runtime is then downloaded once, from npm's registry.
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { signAdHoc } from "./build/mach-o-signature.ts";
import { type Target, targets } from "./build/targets.ts";
import { bundleConsole, type EmbeddedFile } from "./console/bundle.ts";

const root = join(import.meta.dir, "..");
const { values } = parseArgs({ options: { target: { type: "string" } }, strict: true });
const target = targetOf(values.target);
const suffix = target === null ? "" : `-${target.slice("bun-".length)}`;
const madeFor = target ?? `bun-${process.platform}-${process.arch}`;
const extension = madeFor.startsWith("bun-win") ? ".exe" : "";
const output = join(root, "dist", `tollgate${suffix}${extension}`);

/** Machines that the program is made for; null: this one. */
function targetOf(name: string | undefined): Target | null {
  if (name === undefined) return null;
  const found = targets.find((each) => each === name);
  if (found !== undefined) return found;
  console.error(`--target must be one of ${targets.join(", ")}, is ${JSON.stringify(name)}`);
  process.exit(2);
}

/** A compiled binary can start a Worker only from an entry point of its own; ours say what their `self` is. */
async function workerFiles(): Promise<string[]> {
  const files: string[] = [];
  for await (const file of new Bun.Glob("src/**/*.ts").scan(root)) {
    const text = await Bun.file(join(root, file)).text();
    if (/^declare const self: Worker\b/m.test(text)) files.push(join(root, file));
  }
  return files.sort();
}

/** The console's browser side as the source of `console/embedded.ts`: a binary has no sources to bundle. */
async function embeddedConsole(): Promise<string> {
  const files = await bundleConsole({ brotliQuality: 11 });
  const embedded = files.map(({ path, type, brotli }) => ({ path, type, brotliBase64: brotli.toBase64() }));
  return `export const embedded = ${JSON.stringify(embedded satisfies EmbeddedFile[])};`;
}

// A running dist/tollgate cannot be overwritten, but replaced. Bun adds .exe where it is not there.
const partial = `${output}.partial${extension}`;
const built = await Bun.build({
  entrypoints: [join(root, "src/main.ts"), ...(await workerFiles())],
  root: join(root, "src"),
  files: { [join(root, "src/console/embedded.ts")]: await embeddedConsole() },
  target: "bun",
  // What a command does not need is not even read: 10 MB less in an idle server.
  splitting: true,
  // Already parsed: a start takes 0.38 s of a processor instead of 0.69 s, and 4 MB less; the file is 15 MiB larger.
  format: "esm",
  bytecode: true,
  // What a file beside the binary says must not change the program.
  compile: { outfile: partial, ...(target === null ? {} : { target }), autoloadDotenv: false, autoloadBunfig: false },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  // Elysia compiles handlers from its own source text, which renamed identifiers break.
  minify: { whitespace: true, syntax: true, identifiers: false },
  throw: false,
});
if (!built.success) {
  for (const message of built.logs) console.error(String(message));
  process.exit(1);
}
if (madeFor === "bun-darwin-x64")
  // what Bun makes for arm64 it signs itself
  writeFileSync(partial, signAdHoc(readFileSync(partial)));
chmodSync(partial, 0o755);
renameSync(partial, output);
console.log(`${output}: ${Math.round(statSync(output).size / 1024 ** 2)} MiB`);
