// The Worker that writes an account's export to a file: a single row may hold tens of MB, and no stream should wait for
// it.
import { appendFileSync } from "node:fs";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { type ExportCall, exportAccount } from "./account-export.ts";

declare const self: Worker;

const chunkLength = 64 * 1024;

answerCalls<ExportCall>(self, (call) => (call.order === "write" ? write(call) : endWorker(self)));

function write({ databaseFile, email, descriptor }: Extract<ExportCall, { order: "write" }>): void {
  const pieces = exportAccount(databaseFile, email);
  if (pieces === null) throw new Error("it was deleted meanwhile");
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < chunkLength) continue;
    appendFileSync(descriptor, text);
    text = "";
  }
  appendFileSync(descriptor, text);
}
