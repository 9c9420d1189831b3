// tollgate nodes drain NAME [--wait]
import type { NodeReport } from "../server/fleet/node-lines.ts";
import { type Command, folderFlags } from "./command.ts";
import { askServer, fromGateway, onNode } from "./on-node.ts";

/** Between two looks whether any request is left. */
const lookMs = 250;

const command: Command = {
  words: ["NAME"],
  flags: { ...folderFlags, wait: { type: "boolean" } },
  async run(invocation) {
    const { flags } = invocation;
    const report = await onNode(invocation, "nodes drain");
    const { name, gateway } = report;
    let { busy } = report;
    const isJson = flags["json"] === true;
    if (!isJson) console.log(`${name} gets no new requests${fromGateway(gateway)}; ${stillRun(busy)}.`);
    while (flags["wait"] === true && busy > 0) {
      await Bun.sleep(lookMs);
      const nodes = (await askServer(invocation, "nodes", {})) as readonly NodeReport[];
      busy = nodes.find((node) => node.name === name)?.busy ?? 0;
      if (!isJson && busy === 0) console.log("None is left.");
    }
    if (isJson) console.log(JSON.stringify({ ...report, busy }));
    return 0;
  },
};
export default command;

const stillRun = (busy: number): string =>
  busy === 0 ? "none runs there" : busy === 1 ? "1 still runs there" : `${busy} still run there`;
