// tollgate check: reads the configuration and the catalog, and asks the identity provider and each node, including nodes
// that flags gave to a running server. Opens no data folder.
import { checkedCatalogOf } from "../config/configured-catalog.ts";
import { distinctModels } from "../core/catalog.ts";
import { loadConfig } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { isReported, modelInWords } from "../nodes/abilities.ts";
import { inspectNodes } from "../nodes/inspect.ts";
import type { Invocation } from "./command.ts";
import { checkPrograms } from "../server/fleet/nodes.ts";
import { missingAmong } from "../server/fleet/missing-models.ts";
import { missingLines } from "../server/fleet/model-report.ts";

import { providerFindings } from "./provider-findings.ts";
import { databaseAndUser } from "../store/postgres/place-of-url.ts";
import { asRunningServer } from "./started-with.ts";

export default async function check({ flags, environment }: Invocation): Promise<number> {
  const seen = await asRunningServer(flags, environment);
  const config = await loadConfig(seen.flags, environment);
  const catalog = await checkedCatalogOf(config);
  checkPrograms(config.nodes, environment as Record<string, string>);
  const nodes = await inspectNodes(config.nodes, catalog.models, systemClock);
  const missing = config.nodes.length === 0 ? [] : missingAmong(nodes, catalog);
  const managed = new Set(config.nodes.filter((node) => node.managed !== undefined).map(({ name }) => name));
  const signIn = await providerFindings(config);
  const wrong =
    nodes.some(({ problem }) => problem !== null) ||
    missing.length > 0 ||
    signIn.some(({ level }) => level === "problem");
  const { databaseUrl, dataFolder } = config;
  const ledger = databaseUrl === null ? `in ${dataFolder}` : `in ${databaseAndUser(databaseUrl)}`;
  if (flags["json"] === true) {
    console.log(
      JSON.stringify({
        ok: !wrong,
        config: config.file,
        ledger,
        models: distinctModels(catalog).length,
        sign_in: signIn,
        nodes,
        missing,
      }),
    );
  } else {
    console.log(`configuration  ok  ${config.file ?? "no file, defaults"}`);
    console.log(`catalog        ok  ${distinctModels(catalog).length} models, ${config.catalogFile ?? "as it comes"}`);
    console.log(`ledger         ${ledger}`);
    for (const { level, detail } of signIn) {
      const word = level === "problem" ? "WRONG" : level === "warning" ? "warning" : "ok";
      console.log(`sign-in        ${word}  ${detail}`);
    }
    for (const { name, url, engine, version, problem, warning, abilities } of nodes) {
      const by = seen.isNodesOfServer ? ", by --node of the running server" : "";
      const found = managed.has(name)
        ? "started by serve"
        : `${engine ?? "an engine that does not say which it is"}${version === null ? "" : ` ${version}`} at ${url}${by}`;
      const well = warning === null ? `ok  ${found}` : `warning  ${found}: ${warning}`;
      console.log(`node ${name}  ${problem === null ? well : `WRONG  ${problem}`}`);
      for (const model of abilities.models.filter(isReported)) console.log(`  ${model.name}  ${modelInWords(model)}`);
      for (const line of abilities.below) console.log(`  below the catalog: ${line}`);
    }
    for (const line of missingLines(missing)) console.log(`models         WRONG  ${line}`);
    if (seen.unasked !== null) console.log(`server         not asked: ${seen.unasked}`);
    if (config.nodes.length === 0)
      console.log("nodes          none named: serve looks for a local engine, then starts the demo node");
  }
  return wrong ? 1 : 0;
}
