// The Worker that reads the folder and writes its index. A message stops it between two files.
import { answerCalls, endWorker } from "../../core/workers.ts";
import { systemClock } from "../../core/clock.ts";
import { prepareSearchIndex, SearchIndexWriter } from "../../store/search-index.ts";
import { PdfReader } from "../media/pdf-reader.ts";
import { type ScanResult, scanFolder } from "./folder-scan.ts";

export type ScanRequest =
  /** Creates the index at `file` if there is none; answered with null. */
  | Readonly<{ order: "prepare"; file: string }>
  /** Answered with a ScanResult, after repeated reports of the number of files read so far. */
  | Readonly<{ order: "scan"; file: string; folder: string; pdfCommand: readonly string[] }>
  | Readonly<{ order: "close" }>;

declare const self: Worker;

const stopping = new AbortController();
let index: SearchIndexWriter | null = null;
let scanning: Promise<unknown> = Promise.resolve();

answerCalls<ScanRequest>(self, async (request, progress) => {
  switch (request.order) {
    case "prepare":
      prepareSearchIndex(request.file);
      return null;
    case "scan": {
      const result = scan(request, progress);
      scanning = result.catch(() => undefined); // its caller gets the result
      return result;
    }
    case "close":
      stopping.abort();
      await scanning;
      index?.close();
      endWorker(self);
      return null;
    default:
      return request satisfies never;
  }
});

function scan(
  { file, folder, pdfCommand }: Extract<ScanRequest, { order: "scan" }>,
  progress: (indexed: number) => void,
): Promise<ScanResult> {
  index ??= new SearchIndexWriter(file);
  const pdf = new PdfReader(pdfCommand);
  return scanFolder({
    folder,
    index,
    // One after the other, for no account.
    readPdf: (bytes) => pdf.read(bytes, 0, stopping.signal),
    now: systemClock.wall(),
    progress,
    isStopped: () => stopping.signal.aborted,
  });
}
