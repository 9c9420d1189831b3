// tollgate nodes: the state of the inference nodes, from the running server or by asking them.
import { systemClock } from "../core/clock.ts";
import { dataFolderOf, loadConfig } from "../config/config.ts";
import { checkedCatalogOf } from "../config/configured-catalog.ts";
import { abilitiesInWords } from "../nodes/abilities.ts";
import { loadInWords } from "../nodes/engine-load.ts";
import { inspectNodes } from "../nodes/inspect.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { loadReport, type NodeReport } from "../server/fleet/node-lines.ts";
import { configFlags } from "./perform.ts";
import { formatTable } from "./table.ts";

const command: Command = {
  words: [],
  flags: { ...folderFlags, node: { type: "string", multiple: true } },
  async run({ flags, environment }) {
    const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    const answered = await askRunningServer(folder, "nodes", {}, () => {});
    let nodes: readonly NodeReport[];
    if (answered !== null) nodes = answered.result as readonly NodeReport[];
    else {
      const node = flags["node"] as readonly string[] | undefined;
      const config = await loadConfig({ ...configFlags(flags), node }, environment);
      const inspections = await inspectNodes(config.nodes, (await checkedCatalogOf(config)).models, systemClock);
      nodes = inspections.map((inspected, at): NodeReport => {
        const { name, url, slots, load, well, engine, version, context, abilities, problem, warning } = inspected;
        const { models, managed } = config.nodes[at]!;
        // A program of ours runs with the server alone.
        const health = managed !== undefined || !well ? "down" : "well";
        const unline = { waiting: null, waiting_accounts: null, waiting_since: null };
        const unknown = { since: null, last_error: null, drained_since: null, busy: null, ...unline };
        const told = { engine, version, context, abilities: abilities.models, below: abilities.below };
        const room = { slots, slots_auto: slots === null, load: loadReport(load) };
        return { name, url, health, problem: problem ?? warning, ...room, ...told, models, ...unknown };
      });
    }
    if (flags["json"] === true) console.log(JSON.stringify(nodes));
    else if (nodes.length === 0)
      console.log("No server runs on this data folder, and the configuration names no nodes.");
    else {
      const rows = nodes.map((node) => {
        const { name, url, health, since, problem, busy, slots, engine, version, context, models } = node;
        return [
          name,
          url,
          (problem !== null && health === "well" ? "unclear" : health) +
            (node.drained_since === null ? "" : ", drained"),
          since === null ? null : since.slice(0, 19).replace("T", " "),
          busy,
          node.waiting,
          node.slots_auto ? `auto${slots === null ? "" : ` (${slots})`}` : slots,
          engine === null || version === null ? engine : `${engine} ${version}`,
          context,
          Object.entries(models)
            .map(([id, known]) => (id === known ? id : `${id} = ${known}`))
            .join(", "),
        ];
      });
      const head = [
        "node",
        "address",
        "health",
        "since (UTC)",
        "busy",
        "waiting",
        "slots",
        "engine",
        "context",
        "models",
      ];
      console.log(formatTable(head, rows));
      const [{ gateway } = {}] = nodes;
      if (gateway !== undefined) {
        console.log(`This is how the gateway ${gateway} sees them. Others see them, and drain them, by themselves.`);
      }
      for (const { name, problem, last_error: error, abilities, below, load } of nodes) {
        if (load !== null) console.log(`${name}: its engine ${loadInWords({ ...load, cacheUse: load.cache_use })}`);
        for (const model of abilities) {
          const words = abilitiesInWords(model);
          if (words !== "") console.log(`${name}: ${model.name}: ${words}`);
        }
        for (const line of below) console.log(`${name}: ${line}`);
        if (problem !== null) console.log(`${name}: ${problem}`);
        if (error !== null && error.message !== problem)
          console.log(`${name}: last error ${error.at.slice(0, 19).replace("T", " ")}: ${error.message}`);
      }
    }
    return 0;
  },
};
export default command;
