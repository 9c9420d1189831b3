// Flags of a running server that its configuration does not contain: a check beside it must look at the same file and nodes.
import { CommandError } from "../core/expected-error.ts";
import { type ConfigFlags, dataFolderOf, type Environment } from "../config/config.ts";
import { type Flags, textFlag } from "./command.ts";
import type { StartedWith } from "../server/control-handler.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { configFlags } from "./perform.ts";

export type SeenFlags = Readonly<{
  flags: ConfigFlags;
  isNodesOfServer: boolean;
  /** Why the server could not be asked; null: it was, or none runs. */
  unasked: string | null;
}>;

/** The command's flags, completed by those of the running server. */
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
