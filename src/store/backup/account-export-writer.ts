// The Worker that writes what is kept of an account to a file: a single row may be tens of MB, for which no stream waits.
import { appendFileSync } from "node:fs";
import { type ExportOrder, type ExportReport, exportAccount } from "./account-export.ts";
import { messageOf } from "../folder/data-folder.ts";

declare const self: Worker;

/** Characters that are written together. */
const chunkLength = 64 * 1024;

self.onmessage = ({ data }: MessageEvent<ExportOrder>) => {
  try {
    write(data);
    report({ written: true });
  } catch (thrown) {
    report({ failed: messageOf(thrown) });
  }
  self.onmessage = null; // a Worker that listens to nothing ends
};

function write({ databaseFile, email, descriptor }: ExportOrder): void {
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

function report(message: ExportReport): void {
  self.postMessage(message);
}
