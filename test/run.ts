// Runs the tests, several files at once: what a newcomer can run in minutes, everything, or what is named.
//
//   npm test                     all that needs Node and npm alone and no minutes of its own
//   npm test -- ./test/nodes     this, whatever it needs and however long it takes
//   npm run test:all             everything, in its longer form; what is missing here is skipped with its reason
//   npm run test:longer          what `npm test` leaves out
//
// What is not named runs against the built binary: it starts in half the time of the sources, and hundreds of processes
// are started.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, constants, tmpdir } from "node:os";
import { join } from "node:path";
import { tableOfTimes, timesFileVariable } from "./processor-times.ts";

/** Only ends a test that hangs: nothing waits for it, and a busy machine takes many times as long as an idle one. */
const testTimeLimitMs = 180_000;

const root = join(import.meta.dir, "..");

/** What `npm test` leaves out, and why. */
const longer: Readonly<Record<string, string>> = {
  "account/two-gateways.test.ts": "a PostgreSQL server",
  "bench/": "the benchmarks, tried at tiny sizes",
  "clients/": "other people's clients, which are installed apart",
  "console-web/": "a browser",
  "crash/": "minutes of kills",
  "docs/page.test.ts": "a browser",
  "docs/schemathesis.test.ts": "Schemathesis",
  "engine/": "a real engine",
  ...Object.fromEntries(
    ["addresses", "beside", "database", "lane", "move", "server-facts", "units-and-lanes"].map((name) => [
      `store/postgres/${name}.test.ts`,
      "a PostgreSQL server",
    ]),
  ),
  "overload/": "loads that are measured",
};

/** Whether `npm test` leaves the file out. */
export const isLonger = (file: string): boolean => Object.keys(longer).some((path) => file.startsWith(`test/${path}`));

function filesOf(set: "default" | "longer" | "all"): string[] {
  const found = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].sort();
  return found
    .filter((file) => !file.includes("node_modules/") && !file.includes("/."))
    .filter((file) => set === "all" || isLonger(file) === (set === "longer"))
    .map((file) => `./${file}`);
}

/** `npm run build`; returns the binary. */
function build(): string {
  const built = Bun.spawnSync([process.execPath, join(root, "src/build.ts")], { cwd: root, stderr: "inherit" });
  if (!built.success) process.exit(1);
  return join(root, "dist", process.platform === "win32" ? "tollgate.exe" : "tollgate");
}

/** Runs them and prints what each file took of the processors. */
async function withTimes(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-times-"));
  try {
    const file = join(folder, "times");
    const child = Bun.spawn(
      [process.execPath, "test", `--preload=${join(import.meta.dir, "processor-times.ts")}`, ...words],
      { env: { ...environment, [timesFileVariable]: file }, stdio: ["inherit", "inherit", "inherit"] },
    );
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
    await child.exited;
    console.log(`\n${tableOfTimes(readFileSync(file, "utf8"))}`);
    const { cpuTime } = child.resourceUsage() ?? {};
    if (cpuTime !== undefined) console.log(`in all ${(Number(cpuTime.total) / 1e6).toFixed(1)} s`);
    return child.exitCode ?? 128 + constants.signals[child.signalCode as NodeJS.Signals];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const given = process.argv.slice(2);
  const set = given.includes("--all") ? "all" : given.includes("--longer") ? "longer" : "default";
  const passedOn = given.filter((argument) => argument !== "--all" && argument !== "--longer");
  const isNamed = passedOn.some((argument) => /^(?:\.\/)?test(?:\/|$)/.test(argument));
  if (set === "default" && !isNamed) {
    const reasons = Object.entries(longer).map(([path, reason]) => `  ${path.replace(/\/$/, "").padEnd(30)}${reason}`);
    console.log(`Left to \`npm run test:all\`:\n${reasons.join("\n")}\n`);
  }
  // Each waits for two fifths of its time: as many processes as cores left two cores idle for as much.
  const processes = process.env["TOLLGATE_TEST_PROCESSES"] ?? availableParallelism() + 1;
  const watchdog = `--preload=${join(import.meta.dir, "watchdog.ts")}`;
  const options = [`--timeout=${testTimeLimitMs}`, `--parallel=${processes}`, "--no-isolate", "--dots", watchdog];
  const files = isNamed ? [] : filesOf(set);
  const binary = !isNamed ? (process.env["TOLLGATE_BINARY"] ?? build()) : null;
  const environment = {
    ...process.env,
    ...(set === "default" ? {} : { TOLLGATE_TESTS: process.env["TOLLGATE_TESTS"] ?? "all" }),
    ...(binary === null ? {} : { TOLLGATE_BINARY: binary }),
  };
  if (process.env["TOLLGATE_TEST_TIMES"] === undefined)
    process.execve?.(process.execPath, [process.execPath, "test", ...options, ...passedOn, ...files], environment);
  process.exitCode = await withTimes([...options, ...passedOn, ...files], environment);
}
