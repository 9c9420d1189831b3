// Runs the checks against real engines with the gateway in front, and prints the table of engines and checks.
//
//   npm run test:engines -- vllm ollama [--only=text,tools]
//
// Each engine that is named and not there yet is installed first, into .engines or the folder that TOLLGATE_ENGINES
// names; without a name nothing is done. `vllm@8000` is one that runs already on that port of this machine: it is not
// ended, so that two checks are left out. The tiny model is the one of test/engine: TOLLGATE_TINY_MODEL names it.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GatewayProcess } from "../../fixtures/gateway-process.ts";
import { model } from "../engine.ts";
import { cannot } from "./cannot.ts";
import { type CheckName, checks, Trial } from "./checks.ts";
import { type EngineName, engineNames, engines, enginesFolder, installEngine } from "./engines.ts";
import { clientsMissing } from "./question.ts";
import { modelName, RunningEngine } from "./running-engine.ts";
import { Tap } from "./tap.ts";

type Column = { name: EngineName; version: string; cells: Map<CheckName, string> };

const slots = 8;
const endsEngine = new Set<CheckName>(["engine dies", "comes back with another model"]);
const names = Object.keys(checks) as CheckName[];

/** The engine's column of the table; `port`: where it runs already. */
async function columnOf(
  name: EngineName,
  port: number | null,
  wanted: readonly CheckName[],
  notes: string[],
): Promise<Column> {
  const { version, behind } = engines[name];
  const versions = [version(), ...(behind === undefined ? [] : [engines[behind].version()])];
  const column: Column = { name, version: versions.join(" before "), cells: new Map() };
  console.log(`${name}: starting ${column.version}`);
  await using engine = port === null ? await RunningEngine.start(name) : RunningEngine.at(name, port);
  using tap = await Tap.before(engine.port);
  const named = engines[name].namesNoModel === true ? `[nodes.models]\n"*" = "${modelName}"\n` : "";
  await using gateway = await GatewayProcess.start({
    config: `[[nodes]]\nname = "engine"\nurl = "${tap.url}"\nslots = ${slots}\n${named}`,
  });
  for (const check of wanted) {
    if (port !== null && endsEngine.has(check)) continue;
    if (check === "conversations on two nodes" && engines[name].inPairs !== true) continue;
    const startedMs = performance.now();
    const trial = new Trial(engine, tap, gateway, await gateway.account());
    await checks[check](trial).catch((thrown: unknown) => void trial.problems.push(String(thrown)));
    const cell = cellOf(name, check, trial.problems, notes);
    column.cells.set(check, cell);
    const elapsed = ((performance.now() - startedMs) / 1_000).toFixed(1);
    console.log([`${name}: ${check}: ${cell} (${elapsed} s)`, ...trial.problems].join("\n  "));
  }
  return column;
}

function cellOf(name: EngineName, check: CheckName, problems: readonly string[], notes: string[]): string {
  const reason = cannot[name]?.[check];
  if (problems.length > 0) return reason === undefined ? "WRONG" : "cannot";
  if (reason !== undefined) notes.push(`${name} is said not to do "${check}" (${reason}), and it held.`);
  return "ok";
}

function table(columns: readonly Column[], wanted: readonly CheckName[]): string {
  const rows = [
    ["", ...columns.map(({ name }) => name)],
    ...wanted.map((check) => [check, ...columns.map(({ cells }) => cells.get(check) ?? "not run")]),
  ];
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  const lines = rows.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |`);
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  const reasons = columns.flatMap(({ name, cells }) =>
    Object.entries(cannot[name] ?? {}).flatMap(([check, reason]) =>
      cells.get(check as CheckName) === "cannot" ? [`- ${name}, ${check}: ${reason}`] : [],
    ),
  );
  const versions = columns.map(({ version }) => version).join(", ");
  return [...lines, "", `${new Date().toISOString().slice(0, 10)}: ${versions}.`, ...reasons].join("\n");
}

const words = Bun.argv.slice(2);
const only = words
  .find((word) => word.startsWith("--only="))
  ?.slice("--only=".length)
  .split(",");
const wanted = names.filter((name) => only === undefined || only.includes(name));
const chosen = words.filter((word) => !word.startsWith("--only="));
const isKnown = (word: string): boolean => word.replace(/@\d+$/, "") in engines || word in checks;
const unknown = [...chosen, ...(only ?? [])].filter((word) => !isKnown(word));
if (chosen.length === 0 || unknown.length > 0) {
  console.error(`Name engines: npm run test:engines -- ${engineNames.join(" ")} [--only=${names.join(",")}]`);
  process.exit(2);
}
if (!existsSync(model)) {
  console.error("Name the tiny model, a small GGUF chat model of the Qwen3 kind, in TOLLGATE_TINY_MODEL.");
  process.exit(2);
}

// An engine takes minutes to install and to start.
if (clientsMissing !== null) {
  console.error(clientsMissing);
  process.exit(2);
}

const columns: Column[] = [];
const notes: string[] = [];
for (const word of chosen) {
  const [name, port] = word.split("@") as [EngineName, string | undefined];
  try {
    installEngine(name);
    columns.push(await columnOf(name, port === undefined ? null : Number(port), wanted, notes));
  } catch (thrown) {
    notes.push(`${name} was left out: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}
const result = [table(columns, wanted), ...notes].join("\n");
mkdirSync(enginesFolder, { recursive: true });
writeFileSync(join(enginesFolder, "table.md"), `${result}\n`);
console.log(`\n${result}`);
const wrong = columns.flatMap(({ cells }) => [...cells.values()]).filter((cell) => cell === "WRONG").length;
process.exit(wrong > 0 || columns.length < chosen.length ? 1 : 0);
