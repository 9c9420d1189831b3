// tollgate nodes: how the inference nodes are, from the running server or by asking them.
import { systemClock } from "../clock.ts";
import { dataFolderOf, loadConfig } from "../config.ts";
import { inspectNode } from "../nodes/inspect.ts";
import type { NodePool } from "../nodes/pool.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "./control-socket.ts";
import { configFlags } from "./perform.ts";
import { formatTable } from "./table.ts";

export type NodeReport = Readonly<{
  name: string;
  health: "well" | "cooling" | "down";
  /** Requests it runs now; null while no server runs. */
  busy: number | null;
  slots: number;
  engine: string | null;
  /** Public model id -> the name the node knows it by. */
  models: Readonly<Record<string, string>>;
}>;

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
      nodes = await Promise.all(
        config.nodes.map(async (named): Promise<NodeReport> => {
          const { name, slots, well, engine } = await inspectNode(named, systemClock);
          return { name, health: well ? "well" : "down", busy: null, slots, engine, models: named.models };
        }),
      );
    }
    if (flags["json"] === true) console.log(JSON.stringify(nodes));
    else if (nodes.length === 0)
      console.log("No server runs on this data folder, and the configuration names no nodes.");
    else {
      const rows = nodes.map(({ name, health, busy, slots, engine, models }) => [
        name,
        health,
        busy,
        slots,
        engine,
        Object.entries(models)
          .map(([id, known]) => (id === known ? id : `${id} = ${known}`))
          .join(", "),
      ]);
      console.log(formatTable(["node", "health", "busy", "slots", "engine", "models"], rows));
    }
    return 0;
  },
};
export default command;

/** What a running server answers. */
export function nodeReports(pool: NodePool): NodeReport[] {
  return pool.states().map(({ name, health, busy, slots, engine, models }) => ({
    name,
    health,
    busy,
    slots,
    engine: engine.kind,
    models,
  }));
}
