// Batches of all accounts, for operators.
import { cancel } from "../../office/verbs/batches.ts";
import type { OperatorBatches } from "../api/batches.ts";
import { ask, failedAs } from "../ask.ts";
import type { ConsoleParts } from "../parts.ts";
import { isFailure, type Route, route } from "./route.ts";

const shownMax = 100;

export function batchRoutes({ work }: Pick<ConsoleParts, "work">): Route[] {
  const show = async (): Promise<OperatorBatches> => {
    const rows = (await work.fleet.batches?.list(null, shownMax)) ?? [];
    return { batches: rows.map(({ expires_at: _, errors: __, ...row }) => row) };
  };
  return [
    route("GET /operator/batches", show),
    route("POST /operator/batches/cancel", async (call) => {
      const outcome = await ask({ work }, "operator", call, cancel, call.body).catch(failedAs("not_found"));
      return isFailure(outcome) ? outcome : show();
    }),
  ];
}
