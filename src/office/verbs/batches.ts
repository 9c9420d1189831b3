// Batches of all accounts.
import { CommandError } from "../../core/expected-error.ts";
import { rowsMax, rowsMaxUsual, text } from "../fields.ts";
import { formatPairs, formatTable } from "../table.ts";
import { verb } from "../verb.ts";
import type { BatchesDesk, BatchRow, Work } from "../work.ts";
import { Type } from "@sinclair/typebox";

const id = text("The id of the batch.", "ID");

function deskOf({ fleet }: Work): BatchesDesk {
  if (fleet === null) throw new CommandError("no server runs here");
  if (fleet.batches === null) throw new CommandError("this server takes no batches: files.keep_days is 0");
  return fleet.batches;
}

function known(row: BatchRow | null, name: string): BatchRow {
  if (row === null) throw new CommandError(`no batch has the id ${name}`);
  return row;
}

export const list = verb({
  name: "batches list",
  summary: "List the newest batches, with their progress and cost",
  fields: { account: Type.Optional(text("Of the account with this e-mail address alone.", "EMAIL")), limit: rowsMax },
  scope: "read",
  needsServer: true,
  async run(work, { input: { account, limit = rowsMaxUsual } }) {
    const desk = deskOf(work);
    const of = account === undefined ? null : await work.office.read(({ accounts }) => accounts.ofEmail(account));
    return desk.list(of?.id ?? null, limit);
  },
  print: (rows) =>
    formatTable(
      ["id", "account", "state", "endpoint", "lines", "done", "failed", "billed tokens", "made"],
      rows.map((row) => [
        ...[row.id, row.account, row.state, row.endpoint, row.lines],
        ...[row.completed, row.failed, row.billed_tokens, row.created_at],
      ]),
    ),
});

export const show = verb({
  name: "batches show",
  summary: "Show one batch",
  fields: { id },
  words: ["id"],
  scope: "read",
  needsServer: true,
  run: async (work, { input }) => known(await deskOf(work).show(input.id), input.id),
  print: ({ errors, ...row }) => [formatPairs(Object.entries(row)), ...errors].join("\n"),
});

export const cancel = verb({
  name: "batches cancel",
  summary: "Cancel a batch",
  details: "What has run is charged, and its owner gets it; the rest does not run.",
  fields: { id },
  words: ["id"],
  scope: "people",
  needsServer: true,
  audit: { action: "batch.cancel", detail: ({ input }) => input.id },
  run: async (work, { input }) => known(await deskOf(work).cancel(input.id), input.id),
  print: ({ id: of, state }) => `${of} is ${state}.`,
});

export default [list, show, cancel];
