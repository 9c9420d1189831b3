// Asks the running server to do something with one of its nodes.
import { CommandError } from "../core/expected-error.ts";
import { dataFolderOf } from "../config/config.ts";
import { askRunningServer } from "../server/control-socket.ts";
import type { DrainReport } from "../server/fleet/node-care.ts";
import { type Invocation, textFlag } from "./command.ts";

/** Throws CommandError where there is no such node, or no server runs. */
export const onNode = async (
  invocation: Invocation,
  operation: "nodes drain" | "nodes resume",
): Promise<DrainReport & Readonly<{ gateway?: string }>> =>
  (await askServer(invocation, operation, { name: invocation.words[0]! })) as DrainReport;

/** Of several gateways, which do so each. */
export const fromGateway = (gateway: string | undefined): string =>
  gateway === undefined ? "" : ` from the gateway ${gateway}, and the others go on as they did`;

export async function askServer(
  { flags, environment }: Invocation,
  operation: string,
  given: object,
): Promise<unknown> {
  const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  const answered = await askRunningServer(folder, operation, given, () => {});
  if (answered === null) throw new CommandError(`no server runs on the data folder ${folder}`);
  return answered.result;
}
