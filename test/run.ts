// Runs the tests, several files at once: what a newcomer can run in minutes, everything, or what is named.
//
//   npm test                    all that needs Node and npm alone and takes seconds
//   npm test -- ./test/nodes    this, whatever it needs and however long it takes
//   npm run test:all            everything, in its longer form; what is missing on this machine is skipped with its reason
//   npm run test:longer         what `npm test` leaves out
import { availableParallelism } from "node:os";
import { join } from "node:path";

/** Only ends a test that hangs: nothing waits for it, and a busy machine may take ten times as long as an idle one. */
const testTimeLimitMs = 180_000;

/** What `npm test` leaves out, and why. */
const longer: Readonly<Record<string, string>> = {
  "clients/": "other people's clients, which are installed apart",
  "console-web/": "a browser",
  "crash/": "minutes of kills",
  "docs/schemathesis.test.ts": "Schemathesis",
  "engine/": "a real engine",
  "overload/": "loads that are measured",
};

const root = join(import.meta.dir, "..");
const given = process.argv.slice(2);
const set = given.includes("--all") ? "all" : given.includes("--longer") ? "longer" : "default";
const passedOn = given.filter((argument) => argument !== "--all" && argument !== "--longer");
const isNamed = passedOn.some((argument) => argument.startsWith("./test") || argument.startsWith("test"));

function files(): string[] {
  if (isNamed) return [];
  const all = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].sort();
  const ours = all.filter((file) => !file.includes("node_modules/") && !file.includes("/."));
  const isLonger = (file: string): boolean => Object.keys(longer).some((path) => file.startsWith(`test/${path}`));
  return ours.filter((file) => set === "all" || isLonger(file) === (set === "longer")).map((file) => `./${file}`);
}

if (set === "default" && !isNamed) {
  const reasons = Object.entries(longer).map(([path, reason]) => `${path.replace(/\/$/, "")} (${reason})`);
  console.log(`Not run: ${reasons.join(", ")}. \`npm run test:all\` runs everything.`);
}
// One file's waiting is another's turn: two processes even where there is one core.
const processes = Math.max(2, availableParallelism());
const options = [`--timeout=${testTimeLimitMs}`, `--parallel=${processes}`, "--no-isolate", "--only-failures"];
process.execve?.(process.execPath, [process.execPath, "test", ...options, ...passedOn, ...files()], {
  ...process.env,
  ...(set === "default" ? {} : { TOLLGATE_TESTS: process.env["TOLLGATE_TESTS"] ?? "all" }),
});
