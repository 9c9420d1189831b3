// The command that reads one PDF: `tollgate pdf-text`, which is this program itself.

/** A compiled binary runs itself; from source, the runtime gets the source file. */
export const pdfTextCommand: readonly string[] = import.meta.url.includes("/$bunfs/")
  ? [process.execPath, "pdf-text"]
  : [process.execPath, Bun.main, "pdf-text"];
