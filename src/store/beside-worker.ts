// Workers that each have a file beside the ledger's.
import { closeSync, openSync } from "node:fs";
import type { Ms } from "../core/types.ts";
import { type HostCall, startWorker, WorkerClient, type WorkerFailed } from "../core/workers.ts";

/** The Worker of a file that only its owner may read. `open`: what the Worker's `host` is given. */
export const besideWorker = (
  file: string,
  worker: Parameters<typeof startWorker>[0],
  open: () => readonly unknown[],
  options: Readonly<{ idleMs?: Ms; onNews?(news: unknown): void; onFailure(error: WorkerFailed): void }>,
): WorkerClient<HostCall> =>
  new WorkerClient<HostCall>({
    ...options,
    start: () => {
      closeSync(openSync(file, "a", 0o600));
      return startWorker(worker);
    },
    open: () => ({ order: "open", given: open() }),
    close: { order: "close", given: [] },
  });
