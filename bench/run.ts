// Runs every benchmark, one after the other, and rewrites the results in bench/README.md (not after `--quick`, whose
// numbers mean nothing).
//
//   bun bench/run.ts [--quick]
import { readFlags } from "./flags.ts";
import { bun } from "./process.ts";
import { benches, fullName, writeReport } from "./report.ts";

const quick = Bun.argv.includes("--quick");
readFlags({}); // refuses flags that are not known

const startedMs = performance.now();
const failed: string[] = [];
for (const [index, bench] of benches.entries()) {
  console.log(`[${index + 1}/${benches.length}] ${fullName(bench)}`);
  const flags = quick ? [...bench.flags, "--quick"] : bench.flags;
  const child = Bun.spawn([bun, `${import.meta.dir}/${bench.name}.ts`, ...flags], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  if ((await child.exited) !== 0) failed.push(fullName(bench));
}
if (!quick) writeReport();
console.log(`${benches.length} benchmarks in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`);
if (failed.length > 0) throw new Error(`failed: ${failed.join(", ")}`);
