// Runs every benchmark of a suite, one after the other, and rewrites the results in bench/README.md (not after
// `--quick`, whose numbers mean nothing but those of `--peers`). With the word `load` in front it is the load test of a
// running gateway; the word `report` writes the results at hand into bench/README.md again.
//
//   bun bench [--large | --peers | --soak] [--quick]
//   bun bench report
//   bun bench load --url http://127.0.0.1:8400 --key sk-tg-...
import { readFlags } from "./flags.ts";
import { load } from "./load.ts";
import { installPeers } from "./peers/install.ts";
import { peerNames } from "./peers.ts";
import { bun } from "./process.ts";
import { benches, flagWords, fullName, type Suite, writeReport } from "./report.ts";

async function runSuite(argv: readonly string[]): Promise<void> {
  const flags = readFlags({ large: false, peers: false, soak: false }, {}, argv);
  const suite: Suite = flags.large ? "large" : flags.peers ? "peers" : flags.soak ? "soak" : "default";
  const quick = argv.includes("--quick");
  const chosen = benches.filter((bench) => bench.suite === suite);
  if (suite === "peers") installPeers(peerNames);
  const startedMs = performance.now();
  const failed: string[] = [];
  for (const [index, bench] of chosen.entries()) {
    const elapsedSeconds = (performance.now() - startedMs) / 1_000;
    console.log(`[${index + 1}/${chosen.length}] ${fullName(bench)} (${elapsedSeconds.toFixed(0)} s)`);
    const child = Bun.spawn([bun, `${import.meta.dir}/${bench.name}.ts`, ...flagWords(bench, quick)], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    if ((await child.exited) !== 0) failed.push(fullName(bench));
  }
  if (!quick || suite === "peers") writeReport(chosen.map(fullName));
  console.log(`${chosen.length} benchmarks in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`);
  if (failed.length > 0) throw new Error(`failed: ${failed.join(", ")}`);
}

const argv = Bun.argv.slice(2);
if (argv[0] === "load") process.exitCode = await load(argv.slice(1));
else if (argv[0] === "report") writeReport();
else await runSuite(argv);
