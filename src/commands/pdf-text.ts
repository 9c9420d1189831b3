// tollgate pdf-text: reads a PDF on standard input and writes its text. The server runs it for every PDF of a request, so
// that a file made to exhaust its reader exhausts a process that may die.
import { pdfText } from "../tools/media/pdf-text.ts";
import { standBehindGateway } from "../tools/worker-process.ts";
import { type Command, CommandError } from "./command.ts";

/** The command line of this same program; a compiled one is its own program, else the runtime is given the source. */
export const pdfTextCommand: readonly string[] = import.meta.url.includes("/$bunfs/")
  ? [process.execPath, "pdf-text"]
  : [process.execPath, Bun.main, "pdf-text"];

const command: Command = {
  words: [],
  flags: {},
  async run() {
    standBehindGateway();
    const bytes = await Bun.stdin.bytes();
    const text = await pdfText(bytes).catch((error: Error) => {
      throw new CommandError(`pdf-text: not a PDF that can be read: ${error.message}`);
    });
    await Bun.write(Bun.stdout, text);
    return 0;
  },
};
export default command;
