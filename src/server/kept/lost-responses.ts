// Stored responses are no money: if their file is removed while the server runs, it logs the consequences once.
import { join } from "node:path";
import type { Log } from "../../core/log.ts";
import { responsesName } from "../../store/folder/data-folder.ts";
import { FilePlaces } from "../../store/folder/file-places.ts";

/** To be called again and again. */
export function lookForLostResponses(folder: string, log: Log): () => void {
  const file = join(folder, responsesName);
  const places = new FilePlaces([file]);
  let isTold = false;
  return () => {
    if (isTold || places.lost === null) return;
    isTold = true;
    log(
      "error",
      "the file of stored responses was removed, moved or replaced: its responses are lost at the next start",
      {
        file,
        remedy: "put that very file back, or start the server again to begin with none",
      },
    );
  };
}
