// Finds Bun and runs it with the given arguments, so that `npm start` works where only Node and npm are installed.
// npm may refuse to run the install script of the `bun` package; its binary then still lies in node_modules/@oven.
// Plain JavaScript for Node 20: nothing here may need Bun. Usage: node src/launch.mjs ARGUMENT...
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = join(fileURLToPath(import.meta.url), "../.."); // Node 20.10 has no import.meta.dirname
// An installed package lies beside the packages that it needs.
const isInstalled = basename(dirname(root)) === "node_modules";
const moduleFolders = [join(root, "node_modules"), ...(isInstalled ? [dirname(root)] : [])];
const executable = process.platform === "win32" ? "bun.exe" : "bun";

/** Where Bun may be: $BUN, the platform package, the `bun` package, PATH. */
function* candidates() {
  if (process.env["BUN"]) yield process.env["BUN"];
  for (const modules of moduleFolders) {
    const platforms = join(modules, "@oven");
    if (existsSync(platforms)) {
      for (const name of readdirSync(platforms).sort()) {
        if (name.startsWith("bun-")) yield join(platforms, name, "bin", executable);
      }
    }
    // The package's file is called bun.exe on every system; before its install script ran it is only a text.
    yield join(modules, "bun", "bin", "bun.exe");
    yield join(modules, "bun", "bin", "bun");
  }
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) yield join(folder, executable);
}

/** A file that is there may still be built for another processor or C library: only one that runs is taken. */
function findBun() {
  for (const file of candidates()) {
    if (!existsSync(file)) continue;
    const { status, stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
    if (status === 0) return { file, version: stdout.trim() };
  }
  return null;
}

/** Null where nothing says it. */
function testedVersion() {
  try {
    return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).dependencies.bun;
  } catch {
    return null; // there is none, or one that npm could not read either
  }
}

const found = findBun();
if (found === null) {
  console.error('Bun was not found. Run "npm install" first, or name a Bun executable in the variable BUN.');
  process.exit(1);
}
const { file: bun, version } = found;
// Freed memory stays with the process for a minute, and its heap is not touched ahead: a short request costs 4 % less CPU under
// steady load, 5 to 15 % after pauses. By itself the allocator gives free pages back up to ten times a second, and takes them again. What
// is read before the program starts can be said here alone; the systemd unit and the image say the same. An option of the
// engine ends any Bun that does not know it.
const memory = { MIMALLOC_PURGE_DELAY: "60000", MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "60000" };
const engine = version === testedVersion() ? { BUN_JSC_useWarmUpMarkedBlocks: "0" } : {};
const env = { ...memory, ...engine, ...process.env };
// Listened to before the child can say a word: on a busy machine it is ready before this process goes on.
let child;
for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
  process.on(signal, () => child.kill(signal));
// A terminal sends Ctrl-C to the child as well: passing it on would be a second one, which means "stop at once".
process.on("SIGINT", () => {
  if (!process.stdin.isTTY) child.kill("SIGINT");
});
// A signal that npm gets ends npm and its shell without reaching this process: it only sees its parent change.
if (process.env["npm_lifecycle_event"] !== undefined) {
  const parent = process.ppid;
  const orphanCheckMs = 250;
  setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), orphanCheckMs).unref();
}
child = spawn(bun, process.argv.slice(2), { stdio: "inherit", env });
child.on("error", (error) => {
  console.error(`${bun} could not be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
