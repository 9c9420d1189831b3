// tollgate nodes drain: with --wait, until no request runs there.
import { drain } from "../office/verbs/server.ts";
import type { NodeReport } from "../server/fleet/node-report.ts";
import type { Invocation } from "./command.ts";
import { askServer, perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

const lookMs = 250;

export default async function drainNode(invocation: Invocation): Promise<number> {
  const { flags } = invocation;
  const wanted = inputOf(drain, invocation);
  const report = await perform(invocation, drain, wanted);
  let { busy } = report;
  const isJson = flags["json"] === true;
  if (!isJson) tell(invocation, drain, wanted, report);
  while (flags["wait"] === true && busy > 0) {
    await Bun.sleep(lookMs);
    const nodes = (await askServer(invocation, "nodes", {})) as readonly NodeReport[];
    busy = nodes.find((node) => node.name === report.name)?.busy ?? 0;
    if (!isJson && busy === 0) console.log("None is left.");
  }
  if (isJson) console.log(JSON.stringify({ ...report, busy }));
  return 0;
}
