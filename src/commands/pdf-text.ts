// tollgate pdf-text: reads a PDF from standard input and writes its text. The server runs it for every PDF of a
// request: a file made to exhaust its reader then exhausts a process that may die.
import { CommandError } from "../core/expected-error.ts";
import { pdfText } from "../tools/media/pdf-text.ts";
import { standBehindGateway } from "../tools/worker-process.ts";

export default async function printPdfText(): Promise<number> {
  standBehindGateway();
  const bytes = await Bun.stdin.bytes();
  const text = await pdfText(bytes).catch((error: Error) => {
    throw new CommandError(`pdf-text: not a PDF that can be read: ${error.message}`);
  });
  await Bun.write(Bun.stdout, text);
  return 0;
}
