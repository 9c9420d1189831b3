// Stored responses in PostgreSQL, where each gateway finds them: the end of a reply waits until its response is kept.
import type { Log } from "../../core/log.ts";
import { startWorker } from "../../core/workers.ts";
import { KeptResponses, type SetLimits } from "../responses/kept-responses.ts";

export class PostgresResponses extends KeptResponses {
  constructor(url: string, limits: SetLimits, log: Log) {
    super({
      limits,
      log,
      awaited: true,
      worker: {
        start: () => startWorker("store/postgres/responses-worker.ts"),
        open: (all) => ({ order: "open", file: url, limits: all }),
      },
    });
  }
}
