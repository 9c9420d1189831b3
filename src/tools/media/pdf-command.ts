// The command that reads one PDF: `tollgate pdf-text`, which is this program itself.

/** A compiled binary is its own program; from source the runtime is given the source. */
export const pdfTextCommand: readonly string[] = import.meta.url.includes("/$bunfs/")
  ? [process.execPath, "pdf-text"]
  : [process.execPath, Bun.main, "pdf-text"];
