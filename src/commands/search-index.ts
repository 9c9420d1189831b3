// tollgate search index: updates the index of the search folder and prints a summary. A running server shares the index;
// both may write it.
import { pdfTextCommand } from "../tools/media/pdf-command.ts";
import { CommandError } from "../core/expected-error.ts";
import { existsSync } from "node:fs";
import { systemClock } from "../core/clock.ts";
import { dataFolderOf, loadConfig, type SearchConfig } from "../config/config.ts";
import { standardErrorLog } from "../core/log.ts";
import { FolderSearch, type FolderSearchParts } from "../tools/search/folder-search.ts";
import { type Invocation, textFlag } from "./command.ts";
import { configFlags } from "./perform.ts";

export default async function updateIndex(invocation: Invocation): Promise<number> {
  const search = await searchConfigOf(invocation);
  if (search.provider !== "local") {
    throw new CommandError(`only provider "local" has an index; the configuration names "${search.provider}"`);
  }
  const folder = await FolderSearch.open(search, folderSearchParts(invocation));
  try {
    const { files, indexed, removed, skipped, skippedFiles } = await folder.scan();
    if (invocation.flags["json"] === true) {
      console.log(JSON.stringify({ files, indexed, removed, skipped, skippedFiles }));
    } else {
      console.log(`${files} files in ${search.folder}; searches cannot find ${skipped} of them`);
      console.log(`${indexed} were read because they are new or have changed, ${removed} are gone`);
      for (const { path, reason } of skippedFiles) console.log(`cannot be found: ${JSON.stringify(path)}: ${reason}`);
    }
    return 0;
  } finally {
    await folder.close();
  }
}

export async function searchConfigOf({ flags, environment }: Invocation): Promise<SearchConfig> {
  const { search, file } = await loadConfig(configFlags(flags), environment);
  if (search !== null) return search;
  throw new CommandError(
    file === null ? "no configuration is named; add --config FILE" : `${file}: there is no [search] with a provider`,
  );
}

export function folderSearchParts({ flags, environment }: Invocation): FolderSearchParts {
  const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  if (!existsSync(dataFolder)) throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  const log = standardErrorLog(() => systemClock.wall());
  return { dataFolder, clock: systemClock, log, pdfCommand: pdfTextCommand };
}
