// The Worker that writes an account's export to a file: a single row may hold tens of MB, and no stream should wait for
// it.
import { answerCalls, endWorker } from "../../core/workers.ts";
import { type ExportCall, exportOfFile } from "./account-export.ts";
import { writePieces } from "./exported.ts";

declare const self: Worker;

answerCalls<ExportCall>(self, async (call) => {
  if (call.order === "close") return endWorker(self);
  await writePieces(await exportOfFile(call.databaseFile).account(call.email, call.withConversations), call.descriptor);
});
