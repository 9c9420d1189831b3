// What a running server was started with that its configuration does not say. A check beside it must look at the same
// file and the same nodes.
import { CommandError } from "../core/expected-error.ts";
import { type ConfigFlags, dataFolderOf, type Environment } from "../config/config.ts";
import { type Flags, textFlag } from "./command.ts";
import type { StartedWith } from "../server/control-handler.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { configFlags } from "./perform.ts";

export type SeenFlags = Readonly<{
  flags: ConfigFlags;
  /** Whether the nodes are those of the running server's flags. */
  isNodesOfServer: boolean;
  /** Why no server could be asked; null where one was, or none runs. */
  unasked: string | null;
}>;

/** The flags of a command, with those of the running server in the places of what it does not name itself. */
export async function asRunningServer(flags: Flags, environment: Environment): Promise<SeenFlags> {
  const given = { ...configFlags(flags), node: flags["node"] as readonly string[] | undefined };
  const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  const alone = { flags: given, isNodesOfServer: false };
  let answered: { result: unknown } | null;
  try {
    answered = await askRunningServer(folder, "started with", {}, () => {});
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { ...alone, unasked: error.message };
  }
  if (answered === null || given.node !== undefined) return { ...alone, unasked: null };
  const { config, nodes } = answered.result as StartedWith;
  const isFileNamed = given.config !== undefined || environment["TOLLGATE_CONFIG"] !== undefined;
  const file = isFileNamed || config === null ? {} : { config };
  const isNodesOfServer = nodes.length > 0;
  return { flags: { ...given, ...file, ...(isNodesOfServer ? { node: nodes } : {}) }, isNodesOfServer, unasked: null };
}
