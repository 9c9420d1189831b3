// tollgate nodes resume NAME
import { type Command, folderFlags } from "./command.ts";
import { fromGateway, onNode } from "./on-node.ts";

const command: Command = {
  words: ["NAME"],
  flags: folderFlags,
  async run(invocation) {
    const report = await onNode(invocation, "nodes resume");
    if (invocation.flags["json"] === true) console.log(JSON.stringify(report));
    else console.log(`${report.name} gets requests${fromGateway(report.gateway)}.`);
    return 0;
  },
};
export default command;
