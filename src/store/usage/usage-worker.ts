// The Worker that owns the usage index: however long a query or an update takes, no stream waits for it. It is stopped
// by a message, never terminated. Its news is why it could not follow the journal.
import type { Ms } from "../../core/types.ts";
import { host } from "../../core/workers.ts";
import { messageOf } from "../folder/folder-faults.ts";
import { UsageIndex } from "./usage-index.ts";

/** Between two looks for new lines while no query comes. */
const usageIndexIntervalMs = 60_000;

declare const self: Worker;

const { news } = host(
  self,
  (file: string, journalFile: string) => {
    const index = UsageIndex.open(file, journalFile);
    follow(index, 0);
    return index;
  },
  // A query must include everything on disk: clients look for the reply that they just got.
  (index) => {
    while (index.catchUp());
  },
);

/** A slice at a time, so that a question that comes meanwhile is answered soon; then again after a while. */
function follow(index: UsageIndex, ms: Ms): void {
  setTimeout(() => {
    if (index.isClosed) return;
    let more = false;
    try {
      more = index.catchUp() || index.prune();
    } catch (thrown) {
      news(messageOf(thrown));
    }
    follow(index, more ? 0 : usageIndexIntervalMs);
  }, ms).unref();
}
